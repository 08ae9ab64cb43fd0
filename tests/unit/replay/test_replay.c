// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_replay.c - captures through whole configurations: least, most, and an innocent neighbor. */
#include "replay/replay.h"
#include "unit/replay/pcap_file.h"

#define MS (SL_NS_PER_SEC / 1000)

static struct sl_err error;

static json_t *replay(const struct pcap_file *file, const char *compare, u32 count)
{
	char path[300];
	struct replay_plan plan = { .input = file->path, .count = count };
	json_t *report;

	snprintf(path, sizeof(path), "%s", temp_path("one.yaml"));
	plan.config = path;
	plan.compare = compare ? temp_path(compare) : NULL;
	memset(&error, 0, sizeof(error));
	if (replay_run(&plan, &report, &error)) {
		fprintf(stderr, "# %d:%d: %s\n", error.line, error.column, error.message);
		return NULL;
	}
	return report;
}

static json_int_t number(const json_t *report, const char *list, const char *who, const char *key)
{
	json_t *item;
	size_t i;

	json_array_foreach(json_object_get(report, list), i, item) {
		const char *name = json_string_value(json_object_get(item, "who"));

		if (!name)
			name = json_string_value(json_object_get(item, "name"));
		if (!strcmp(name, who))
			return json_integer_value(json_object_get(item, key));
	}
	return -1;
}

/* Ten seconds: 100 packets a second of one, 5 of another, against 10 a second and 20 at once. */
static void write_capture(struct pcap_file *file)
{
	*file = (struct pcap_file){ .nano = true };
	pcap_begin(file, "in.pcap", LINK_ETHERNET);
	for (u32 i = 0; i < 1000; i++) {
		pcap_frame(file, i * 10 * MS, "192.0.2.1", 53);
		if (i % 20 == 0)
			pcap_frame(file, i * 10 * MS + 1, "192.0.2.2", 53);
	}
	pcap_end(file);
}

/* The capture by a configuration, or by this and another one. */
static json_t *replayed(const char *config, const char *other)
{
	struct pcap_file file;
	json_t *report;

	write_capture(&file);
	temp_put("one.yaml", config);
	if (other)
		temp_put("two.yaml", other);
	report = replay(&file, other ? "two.yaml" : NULL, 10);
	assert_non_null(report);
	return report;
}

#define ETH0 "interfaces: [{name: eth0}]\n"
#define DNS ETH0 "limits:\n  - {name: dns, match: {dport: 53}, rate: 10 packets/s, burst: 20"

TEST(a_limit_and_its_neighbor)
{
	json_t *report = replayed(DNS "}\n", NULL);

	assert_in_range(number(report, "heaviest", "192.0.2.1", "passed"), 117, 120);
	assert_int_equal(number(report, "heaviest", "192.0.2.2", "passed"), 50);
	assert_int_equal(number(report, "refused", "192.0.2.2", "refused"), -1);
	assert_int_equal(number(report, "nearest", "192.0.2.2", "passed"), 50);
	assert_int_equal(number(report, "limits", "dns", "passed") +
				 number(report, "limits", "dns", "refused"),
			 1050);
	json_decref(report);
}

TEST(shadow_refuses_nothing_unless_it_is_to_be_enforced)
{
	struct replay_plan plan = { .count = 10, .enforce = true };
	char path[300], input[300];
	json_t *report = replayed(DNS ", mode: shadow}\n", NULL);

	assert_in_range(number(report, "limits", "dns", "shadow"), 880, 883);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(report, "totals"), "refused")),
		0);
	json_decref(report);
	snprintf(path, sizeof(path), "%s", temp_path("one.yaml"));
	plan.config = path;
	snprintf(input, sizeof(input), "%s", temp_path("in.pcap"));
	plan.input = input;
	assert_int_equal(replay_run(&plan, &report, &error), 0);
	assert_in_range(number(report, "limits", "dns", "refused"), 880, 883);
	json_decref(report);
}

TEST(whom_another_configuration_hurts)
{
	json_t *report = replayed(
		DNS "}\n", ETH0
		"limits:\n  - {name: new, match: {src: 192.0.2.2}, rate: 1 packets/s, burst: 1}\n");

	assert_int_equal(json_array_size(json_object_get(report, "hurt")), 1);
	assert_int_equal(json_array_size(json_object_get(report, "spared")), 1);
	assert_int_equal(number(report, "hurt", "192.0.2.2", "refused"), 0);
	assert_in_range(number(report, "spared", "192.0.2.1", "refused"), 880, 883);
	assert_in_range(number(report, "compare_limits", "new", "passed"), 9, 11);
	json_decref(report);
}

TEST(lists_are_in_force_and_end_at_their_time)
{
	/* The capture begins at 2023-11-14T22:13:20Z, and lasts ten seconds. */
	json_t *report =
		replayed(ETH0 "exempt: [192.0.2.2]\n"
			      "block:\n  - {prefix: 192.0.2.1, until: '2023-11-14T22:13:25Z'}\n"
			      "limits:\n  - {name: none, rate: 1 packets/h, burst: 1}\n",
			 NULL);

	assert_int_equal(number(report, "heaviest", "192.0.2.2", "passed"), 50);
	assert_int_equal(number(report, "heaviest", "192.0.2.1", "passed"), 1);
	assert_in_range(number(report, "limits", "none", "refused"), 498, 500);
	json_decref(report);
}

/* Time does not go back: a packet of before is judged now, and gains nothing. */
TEST(packets_out_of_order)
{
	struct pcap_file file = { .nano = true };
	json_t *report;

	temp_put("one.yaml", ETH0 "limits:\n  - {name: dns, rate: 1 packets/h, burst: 5}\n");
	pcap_begin(&file, "back.pcap", LINK_ETHERNET);
	for (u32 i = 0; i < 20; i++)
		pcap_frame(&file, (20 - i) * MS, "192.0.2.1", 53);
	pcap_end(&file);
	report = replay(&file, NULL, 10);
	assert_int_equal(number(report, "heaviest", "192.0.2.1", "passed"), 5);
	assert_int_equal(json_integer_value(json_object_get(report, "span_ns")), 0);
	assert_true(json_array_size(json_object_get(report, "notes")) > 0);
	json_decref(report);
}

TEST(an_empty_capture_still_checks_the_configuration)
{
	struct pcap_file file = { .nano = true };
	json_t *report;

	pcap_begin(&file, "empty.pcap", LINK_ETHERNET);
	pcap_end(&file);
	temp_put("one.yaml", ETH0 "limits: []\n");
	report = replay(&file, NULL, 10);
	assert_int_equal(json_integer_value(json_object_get(report, "count")), 0);
	json_decref(report);
	temp_put("one.yaml", ETH0 "limitz: []\n");
	assert_null(replay(&file, NULL, 10));
	assert_non_null(strstr(error.message, "limitz"));
	assert_int_equal(error.line, 2);
}

int main(void)
{
	return test_run(temp_dir_make, temp_dir_drop);
}
