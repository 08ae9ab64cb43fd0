// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Overrides in the rule model: reading them from YAML and from a file of lines, refused ones
 * and their places, which of two counts, live changes, and writing all of it back.
 */
#include <time.h>
#include <unistd.h>

#include "lib/test.h"
#include "lib/policy_text.h"
#include "lib/temp_dir.h"

#define LIMIT "limits:\n  - name: web\n    rate: 1000 packets/s\n    "

/* As a file in the directory, so that x.csv is beside it. */
static int try_parse(const char *yaml, struct policy **ret, struct sl_err *err)
{
	return policy_parse(temp_path("x.yaml"), yaml, strlen(yaml), ret, err);
}

static struct policy *parse_here(const char *yaml)
{
	return parse_at(temp_path("x.yaml"), yaml);
}

/* The count of the first rate that holds for a source; 0: the limit's. */
static u64 rate_for(const struct policy *policy, const char *text)
{
	const struct limit_def *limit = &policy->limit[0];
	struct sl_prefix prefix = prefix_of(text);
	const struct override_def *def = override_match(limit, &prefix);

	return def ? limit->override_rates[def->rates].rate[0].count : 0;
}

TEST(test_longest_match)
{
	struct policy *policy =
		parse_here(LIMIT "overrides:\n"
				 "      - {src: 192.0.2.7, rate: 5000 packets/s, burst: 9000}\n"
				 "      - {src: 192.0.2.0/24, rate: 10 packets/s}\n"
				 "      - {src: 192.0.2.0/25, rate: 20 packets/s}\n"
				 "      - {src: 0.0.0.0/0, rate: 30 packets/s}\n"
				 "      - {src: '2001:db8::/32', rate: 40 packets/s}\n"
				 "      - {src: '2001:db8:1::/48', rate: 50 packets/s}\n");

	assert_int_equal(override_count(&policy->limit[0]), 6);
	assert_int_equal(rate_for(policy, "192.0.2.7"), 5000);
	assert_int_equal(rate_for(policy, "192.0.2.8"), 20);
	assert_int_equal(rate_for(policy, "192.0.2.200"), 10);
	assert_int_equal(rate_for(policy, "192.0.3.7"), 30);
	assert_int_equal(rate_for(policy, "2001:db8::1"), 40);
	assert_int_equal(rate_for(policy, "2001:db8:1:2::1"), 50);
	/* The IPv4 /0 is not IPv6's. */
	assert_int_equal(rate_for(policy, "2001:db9::1"), 0);
	policy_free(policy);
}

TEST(test_refused)
{
	static const struct bad cases[] = {
		{ LIMIT "overrides: [^{src: 192.0.2.7}]", "key \"rate\" is missing" },
		{ LIMIT "overrides: [^{rate: 1 packet/s}]", "key \"src\" is missing" },
		{ LIMIT "overrides: [{src: ^192.0.2.300, rate: 1 packet/s}]", "not an address" },
		{ LIMIT "overrides: [{src: ^192.0.2.7/24, rate: 1 packet/s}]",
		  "host bits are set" },
		{ LIMIT "overrides: [{src: 192.0.2.7, rate: ^1 byte/s}]", "another unit" },
		{ LIMIT "overrides: [{src: 192.0.2.7, rate: ^[1 packet/s, 2 packets/m]}]",
		  "2 rates, but the limit has 1" },
		{ LIMIT "overrides: [{src: 192.0.2.7, rate: ^fast}]", "not a rate" },
		{ LIMIT "overrides: [{src: 192.0.2.7, rate: 1 packet/s, burst: ^0}]", "1 or more" },
		{ LIMIT "overrides: [{src: 192.0.2.7, rate: 1 packet/s, burst: ^[1, 2]}]",
		  "found a list of 2 for 1 rate; accepted: a burst for each rate" },
		{ LIMIT "overrides: [{src: 192.0.2.7, rate: 1 packet/s, ^speed: 1}]",
		  "unknown key \"speed\"" },
		{ LIMIT "overrides: [{src: 192.0.2.7, rate: 1 packet/s, removed: ^yes}]",
		  "found removed with rate; accepted: one of them" },
		{ LIMIT "overrides: [^{src: 192.0.2.7, removed: no}]", "key \"rate\" is missing" },
		{ LIMIT "overrides: ^5", "a mapping of src, rate, burst, removed" },
		{ LIMIT "overrides:\n    - {src: 192.0.2.7, rate: 1 packet/s}\n"
			"    - {src: 192.0.2.8, rate: 1 packet/s}\n"
			"    - {src: ^192.0.2.7/32, rate: 2 packets/s}",
		  "found 192.0.2.7 again, first in line 5" },
		{ LIMIT "per: [dst]\n    overrides: ^[{src: 192.0.2.7, rate: 1 packet/s}]",
		  "per does not contain source" },
		{ LIMIT "algorithm: fixed-window\n"
			"    overrides: [{src: 192.0.2.7, rate: ^1 packet/m}]",
		  "not as long as the limit's" },
		{ LIMIT "algorithm: fixed-window\n"
			"    overrides: [{src: 192.0.2.7, rate: ^1 packet/s, burst: 2}]",
		  "algorithm fixed-window has none" },
		{ LIMIT "algorithm: sliding-window\n"
			"    overrides: [{src: 192.0.2.7, rate: ^50M packets/s}]",
		  "33554431" },
		{ LIMIT "prefix_scale: {ipv4: [65536]}\n"
			"    overrides: [{src: 192.0.2.7, rate: ^1M packets/s}]",
		  "prefix_scale of 65536" },
		{ LIMIT "overrides_file: no-such.csv", "cannot open" },
		{ LIMIT "overrides_file: ^[]", "path of a file" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct unmarked text = unmark(cases[i].text, strlen(cases[i].text));
		struct policy *policy = NULL;
		struct sl_err err = { .line = -1 };

		assert_refused(&cases[i], try_parse(text.text, &policy, &err), &err);
	}
}

TEST(test_file)
{
	struct policy *policy;

	temp_put("x.csv", "# customers\n"
			  "src,rate,burst\n"
			  "\n"
			  "192.0.2.7,5000 packets/s,9000\r\n"
			  "  192.0.2.8 , 10 packets/s ,  # no burst\n"
			  "2001:db8::/48,20 packets/s");
	policy = parse_here(LIMIT "overrides_file: x.csv");
	assert_int_equal(override_count(&policy->limit[0]), 3);
	assert_int_equal(rate_for(policy, "192.0.2.7"), 5000);
	assert_int_equal(rate_for(policy, "192.0.2.8"), 10);
	assert_int_equal(rate_for(policy, "2001:db8::1"), 20);
	assert_int_equal(policy->limit[0].override[0].line, 4);
	assert_int_equal(
		policy->limit[0].override_rates[policy->limit[0].override[0].rates].burst[0], 9000);
	policy_free(policy);

	temp_put("x.csv", "\"192.0.2.7\",10 packets/s;500 packets/h,20;500\n");
	policy = parse_here(
		"limits: [{name: a, rate: [1 packet/s, 50 packets/h], overrides_file: x.csv}]");
	assert_int_equal(policy->limit[0].override_rates[0].count, 2);
	assert_int_equal(policy->limit[0].override_rates[0].burst[1], 500);
	policy_free(policy);
	temp_put("x.csv", "");
	policy = parse_here(LIMIT "overrides_file: x.csv");
	assert_int_equal(override_count(&policy->limit[0]), 0);
	policy_free(policy);
}

TEST(test_file_refused)
{
	static const struct bad cases[] = {
		{ "^192.0.2.7\n", "no comma" },
		{ "192.0.2.7,1 packet/s,2,^3\n", "more than three" },
		{ "#\n^'192.0.2.7',1 packet/s\n", "not an address" },
		{ "^\"192.0.2.7,1 packet/s\n", "no comma" },
		{ "192.0.2.7, ^fast\n", "\"fast\": not a rate" },
		{ "192.0.2.7,1 packet/s,^many\n", "\"many\": not a number" },
		{ "192.0.2.7,1 packet/s,^0\n", "\"0\"; accepted: 1 or more" },
		{ "192.0.2.7,1 packet/s,^1;2\n", "a list of 2 for 1 rate" },
		{ "192.0.2.7,^1 byte/s\n", "another unit" },
		{ " ^here,1 packet/s\n", "not an address" },
		{ "192.0.2.7,1 packet/s\n192.0.2.6,1 packet/s\n^192.0.2.7,2 packets/s\n",
		  "found 192.0.2.7 again, first in line 1" },
		/* A header is the first line or none. */
		{ "192.0.2.7,1 packet/s\n^src,rate\n", "not an address" },
		{ "192.0.2.7,1 packet/s\n^\x01\n", "control character" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct policy *policy = NULL;
		struct sl_err err = { .line = -1 };

		temp_put("x.csv", unmark(cases[i].text, strlen(cases[i].text)).text);
		assert_refused(&cases[i], try_parse(LIMIT "overrides_file: x.csv", &policy, &err),
			       &err);
		assert_non_null(strstr(err.file, "x.csv"));
	}
}

/* The written configuration equals the one read: compared as text, which contains everything. */
TEST(test_round_trip)
{
	struct policy *policy, *again, *copy;
	char *first, *second;

	temp_put("x.csv", "192.0.2.7,1 packet/s\n192.0.2.8,2 packets/s\n");
	policy = parse_here(
		"limits: [{name: web, rate: [1000 packets/s, 2000 packets/h], burst: [3, 4],\n"
		"  overrides: [{src: 192.0.2.9, rate: [3 packets/s, 4 packets/h], burst: [5, 6]},\n"
		"    {src: '2001:db8::/48', rate: [7 packets/s, 8 packets/h]},\n"
		"    {src: 198.51.100.0/24, removed: true}]}]");
	first = written(policy);
	again = parse_here(first);
	second = written(again);
	assert_string_equal(first, second);
	assert_non_null(strstr(first, "{src: '192.0.2.9', rate: [3 packets/s, 4 packets/h], "
				      "burst: [5, 6]}"));
	assert_int_equal(override_count(&again->limit[0]), 2);
	assert_int_equal(policy_clone(again, &copy), 0);
	policy_free(again);
	free(second);
	second = written(copy);
	assert_string_equal(first, second);
	free(first);
	free(second);
	policy_free(copy);
	policy_free(policy);

	/* A file of them stays one. */
	policy = parse_here(LIMIT "overrides_file: x.csv");
	first = written(policy);
	assert_non_null(strstr(first, "overrides_file: x.csv"));
	assert_null(strstr(first, "192.0.2.7"));
	again = parse_here(first);
	assert_int_equal(override_count(&again->limit[0]), 2);
	free(first);
	policy_free(policy);
	policy_free(again);
}

/* An override in the configuration goes before one of overrides_file; the file's can be removed. */
TEST(test_both)
{
	struct policy *policy, *again;
	struct sl_prefix seven = prefix_of("192.0.2.7"), eight = prefix_of("192.0.2.8");
	char *const rate[] = { "rate=70 packets/s" };
	struct sl_err err;
	char *text;

	temp_put("x.csv", "192.0.2.7,1 packet/s\n192.0.2.8,2 packets/s\n192.0.2.9,3 packets/s\n");
	policy = parse_here(
		LIMIT
		"overrides_file: x.csv\n    overrides: [{src: 192.0.2.7, rate: 7 packets/s}]");
	assert_int_equal(override_count(&policy->limit[0]), 3);
	assert_int_equal(rate_for(policy, "192.0.2.7"), 7);
	assert_int_equal(policy_override_del(policy, "web", &seven, &err), 0);
	assert_int_equal(policy_override_del(policy, "web", &eight, &err), 0);
	assert_int_equal(policy_override_del(policy, "web", &eight, &err), -ENOENT);
	assert_int_equal(override_count(&policy->limit[0]), 1);
	text = written(policy);
	again = parse_here(text);
	assert_int_equal(override_count(&again->limit[0]), 1);
	assert_int_equal(rate_for(again, "192.0.2.7"), 0);
	assert_int_equal(rate_for(again, "192.0.2.9"), 3);
	free(text);
	assert_int_equal(policy_override_set(again, "web", &seven, rate, 1, &err), 0);
	assert_int_equal(rate_for(again, "192.0.2.7"), 70);
	policy_free(again);
	policy_free(policy);
}

TEST(test_live)
{
	static const struct {
		const char *pair, *words;
	} refused[] = {
		{ "burst=1,2",
		  "limit \"web\": override 192.0.2.7: burst: found a list of 2 for 1 rate; "
		  "accepted: a burst for each rate, in their order, or no burst at all" },
		{ "rate=", "limit \"web\": override 192.0.2.7: key \"rate\" is missing" },
		{ "speed=1", "limit \"web\": override 192.0.2.7: unknown key \"speed\"; accepted: "
			     "rate, burst" },
		{ "burst",
		  "limit \"web\": override 192.0.2.7: found \"burst\"; accepted: KEY=VALUE, as "
		  "rate='5000 packets/s' burst=9000" },
	};
	struct policy *policy =
		parse_here(LIMIT "overrides: [{src: 192.0.2.7, rate: 5 packets/s}]");
	char *const full[] = { "rate=50 packets/s", "burst=9" }, *const burst[] = { "burst=3" };
	char *const none[] = { "burst=" }, *const bad[] = { "rate=1 byte/s" };
	char *const limit_rate[] = { "rate=1M bytes/s" }, *const mode[] = { "mode=shadow" };
	char *const key[] = { "overrides=x" };
	struct sl_prefix seven = prefix_of("192.0.2.7"), eight = prefix_of("192.0.2.8"),
			 net = prefix_of("192.0.0.0/16");
	const struct limit_def *web = &policy->limit[0];
	struct sl_err err;
	char *before, *after;

	assert_int_equal(policy_override_set(policy, "web", &eight, full, 2, &err), 0);
	assert_int_equal(policy_override_set(policy, "web", &net, full, 1, &err), 0);
	assert_int_equal(override_count(web), 3);
	assert_int_equal(policy_override_set(policy, "web", &seven, burst, 1, &err), 0);
	assert_int_equal(rate_for(policy, "192.0.2.7"), 5);
	assert_int_equal(web->override_rates[override_find(web, &seven)->rates].burst[0], 3);
	assert_int_equal(policy_override_set(policy, "web", &seven, none, 1, &err), 0);
	assert_int_equal(web->override_rates[override_find(web, &seven)->rates].burst[0], 0);

	/* Refused: all stays as it was. */
	before = written(policy);
	assert_int_equal(policy_override_set(policy, "web", &seven, bad, 1, &err), -EINVAL);
	assert_non_null(strstr(err.message, "another unit"));
	for (size_t i = 0; i < COUNT(refused); i++) {
		assert_int_equal(policy_override_set(policy, "web", &seven,
						     (char *[]){ (char *)refused[i].pair }, 1,
						     &err),
				 -EINVAL);
		if (strcmp(err.message, refused[i].words))
			fail_msg("%s: %s", refused[i].pair, err.message);
	}
	assert_int_equal(policy_override_set(policy, "no", &seven, full, 1, &err), -ENOENT);
	assert_int_equal(policy_limit_set(policy, "web", limit_rate, 1, &err), -EINVAL);
	assert_non_null(strstr(err.message, "would not fit"));
	assert_int_equal(policy_limit_set(policy, "web", key, 1, &err), -EINVAL);
	assert_non_null(strstr(err.message, "override set"));
	after = written(policy);
	assert_string_equal(before, after);
	free(before);
	free(after);

	/* A limit set live keeps its overrides. */
	assert_int_equal(policy_limit_set(policy, "web", mode, 1, &err), 0);
	assert_int_equal(override_count(&policy->limit[0]), 3);
	assert_int_equal(policy_override_del(policy, "web", &net, &err), 0);
	assert_int_equal(policy_override_del(policy, "web", &eight, &err), 0);
	assert_int_equal(rate_for(policy, "192.0.2.8"), 0);
	assert_int_equal(policy_override_set(policy, "web", &eight, burst, 1, &err), -EINVAL);
	assert_non_null(strstr(err.message, "needs rate="));
	policy_free(policy);
}

/* Unused rates are freed. */
TEST(test_rates_do_not_pile_up)
{
	struct policy *policy =
		parse_here(LIMIT "overrides: [{src: 192.0.2.9, rate: 5 packets/s}]");
	struct sl_prefix seven = prefix_of("192.0.2.7");
	struct sl_err err;

	for (int i = 1; i < 1000; i++) {
		char text[64], *pairs[] = { text };

		snprintf(text, sizeof(text), "rate=%d packets/s", i * 7);
		assert_int_equal(policy_override_set(policy, "web", &seven, pairs, 1, &err), 0);
		assert_int_equal(rate_for(policy, "192.0.2.7"), i * 7);
		assert_int_equal(rate_for(policy, "192.0.2.9"), 5);
	}
	assert_in_range(policy->limit[0].override_rates_count, 2, 64);
	policy_free(policy);
}

/* 100000 of them, on 100000 different rates: in under a second, from a file and from YAML. */
TEST(test_100k)
{
	struct timespec begin, end;
	struct policy *policy;
	double took;
	FILE *out;

	for (int yaml = 0; yaml < 2; yaml++) {
		char *text = NULL;
		size_t size;

		out = yaml ? open_memstream(&text, &size) : fopen(temp_path("x.csv"), "w");
		assert_non_null(out);
		if (yaml)
			fputs(LIMIT "overrides:\n", out);
		for (u32 i = 0; i < 100000; i++) {
			u32 a = i * 2654435761U;

			fprintf(out,
				yaml ? "    - {src: %u.%u.%u.%u, rate: %u packets/s}\n"
				     : "%u.%u.%u.%u,%u packets/s\n",
				a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255, i + 1);
		}
		fclose(out);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
		policy = parse_here(yaml ? text : LIMIT "overrides_file: x.csv");
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
		took = (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) / 1e9;
		print_message("# 100k from %s: %.3f s\n", yaml ? "YAML" : "a file", took);
		assert_int_equal(override_count(&policy->limit[0]), 100000);
		/* The bound is a second of a CPU's time. Slack for a slow one. */
		assert_true(took < 4);
		policy_free(policy);
		free(text);
	}
}

int main(void)
{
	return test_run(temp_dir_make, temp_dir_drop);
}
