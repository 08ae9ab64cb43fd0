// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_access_log.c - lines of nginx, HAProxy and Envoy as requests, and whole logs through
 * rules. */
#include <zlib.h>

#include "lib/test.h"
#include "lib/rng.h"
#include "lib/temp_dir.h"
#include "replay/access_log.h"
#include "replay/page.h"
#include "replay/replay.h"

#define RULES                                                                                      \
	"domain: api\ndescriptors:\n"                                                              \
	"  - {key: user, rate_limit: {unit: hour, requests_per_unit: 10}}\n"                       \
	"  - {key: path, value: /slow, rate_limit: {unit: hour, requests_per_unit: 5}}\n"

static struct access_log log_;
static struct sl_err error;

static int read_text(const char *line)
{
	memset(&error, 0, sizeof(error));
	log_.domain = (struct bytes){ "api", 3 };
	return access_log_read(&log_, line, strlen(line), &error);
}

/* "source=192.0.2.7 path=/x user=bob user=bob,path=/x @1767225600" */
static const char *described(void)
{
	static char text[512];
	int used = 0;

	for (u32 i = 0; i < log_.request.count; i++) {
		const struct request_descriptor *d = &log_.request.descriptor[i];

		for (u32 k = 0; k < d->count; k++)
			used += snprintf(text + used, sizeof(text) - used, "%s%.*s=%.*s",
					 k ? "," : "", (int)d->entry[k].key.len, d->entry[k].key.at,
					 (int)d->entry[k].value.len, d->entry[k].value.at);
		used += snprintf(text + used, sizeof(text) - used, " ");
	}
	snprintf(text + used, sizeof(text) - used, "@%llu", log_.request.at_utc_ns / 1000000);
	return text;
}

TEST(formats)
{
	static const struct {
		const char *line, *expected;
	} rows[] = {
		{ "192.0.2.7 - bob [01/Jan/2026:00:00:00 +0000] \"GET /a/../x?y=1 HTTP/1.1\" 200 5 \"-\" \"-\"",
		  "source=192.0.2.7 path=/x user=bob user=bob,path=/x @1767225600000" },
		{ "2001:db8::1 - - [01/Jan/2026:01:00:00 +0100] \"GET / HTTP/1.1\" 429 5",
		  "source=2001:db8::1 path=/ @1767225600000" },
		{ "192.0.2.7 - two words [01/Jan/2026:00:00:00 -0130] \"GET / HTTP/1.1\" 200 5",
		  "source=192.0.2.7 path=/ user=two words user=two words,path=/ @1767231000000" },
		/* What a client writes is no JSON of the proxy's. */
		{ "192.0.2.7 - - [01/Jan/2026:00:00:00 +0000] \"GET /x HTTP/1.1\" 200 5 \"-\" \"{\\\"domain\\\":\\\"b\\\"}\"",
		  "source=192.0.2.7 path=/x @1767225600000" },
		{ "<134>Jan  1 00:00:00 lb haproxy[77]: 192.0.2.7:4000 [01/Jan/2026:00:00:00.250] web app/one "
		  "10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {a|b} {} \"GET /x HTTP/1.1\"",
		  "source=192.0.2.7 path=/x @1767225600250" },
		{ "[2026-01-01T00:00:00.250Z] \"GET /x?y HTTP/2\" 200 - 154 0 226 100 \"10.0.0.1, 192.0.2.7\" \"a\" "
		  "\"id\" \"host\" \"192.0.2.9:80\"",
		  "source=192.0.2.7 path=/x @1767225600250" },
		{ "[2026-01-01T00:00:00.250Z] \"GET /x HTTP/2\" 200 - 154 0 226 100 \"-\" \"a\" \"i\" \"h\" \"-\"",
		  "path=/x @1767225600250" },
		{ "<190>Jan  1 00:00:00 sluice: {\"domain\":\"api\",\"d\":[{\"user\":\"bob\"}],\"at\":1767225600.5}",
		  "user=bob @1767225600500" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		if (read_text(rows[i].line))
			fail_msg("%s: %s", rows[i].line, error.message);
		assert_string_equal(described(), rows[i].expected);
		assert_int_equal(log_.status, i == 1 ? 429 : i == 7 ? 0 : 200);
	}
	access_log_clear(&log_);
}

TEST(what_is_no_request)
{
	static const char *const rows[] = { ITEMS(
		"", "nonsense", "192.0.2.7", "192.0.2.7 - - [",
		"192.0.2.7 - - [01/Foo/2026:00:00:00 +0000] \"GET / H\" 2",
		"192.0.2.7 - - [01/Jan/2026:00:00:00 +0000] \"GET", "[", "[2026-01-01T00:00:00Z]",
		"{\"domain\":", "{\"domain\":\"api\"}",
		"lb haproxy[7]: 192.0.2.7:4 [01/Jan/2026:00:00:00.2] web") };

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(read_text(rows[i]), -EINVAL);
		assert_true(error.message[0]);
	}
}

/* Any bytes, and good lines with any bytes changed: a request or an error. */
TEST(hostile_lines)
{
	static const char good[] =
		"192.0.2.7 - bob [01/Jan/2026:00:00:00 +0000] \"GET /a/../x?y=1 HTTP/1.1\" 200 5 {\"d\"";

	rng_start("hostile_lines");
	for (u32 round = 0; round < 200000; round++) {
		char line[sizeof(good)];
		size_t len = round % 2 ? sizeof(good) - 1 : rng_below(sizeof(good));

		memcpy(line, good, sizeof(good));
		for (u32 i = 0; i < 1 + round % 8; i++)
			line[rng_below(sizeof(good))] = "[]\"{}\\: \0\xff/09"[rng_below(14)];
		memset(&error, 0, sizeof(error));
		if (access_log_read(&log_, line, len, &error))
			assert_true(error.message[0]);
		else
			assert_in_range(log_.request.count, 0, 4);
	}
	access_log_clear(&log_);
}

/* ------------------------------------------------------------------ whole logs */

static json_t *replay(const char *compare)
{
	struct replay_plan plan = { .input = strdup(temp_path("log")), .count = 20 };
	char *rules = strdup(temp_path("rules.yaml"));
	json_t *report = NULL;

	plan.config = rules;
	plan.compare = compare ? temp_path(compare) : NULL;
	memset(&error, 0, sizeof(error));
	if (replay_run(&plan, &report, &error))
		report = NULL;
	free((char *)plan.input);
	free(rules);
	return report;
}

static json_int_t number(const json_t *report, const char *list, const char *member,
			 const char *who, const char *key)
{
	json_t *item;
	size_t i;

	json_array_foreach(json_object_get(report, list), i, item)
		if (!strcmp(json_string_value(json_object_get(item, member)), who))
			return json_integer_value(json_object_get(item, key));
	return -1;
}

/* Bob calls once a second, al once a minute, for ten minutes; every fourth call of bob is of
 * /slow. */
static void write_log(void)
{
	FILE *out = fopen(temp_path("log"), "w");

	for (u32 i = 0; i < 600; i++) {
		fprintf(out,
			"192.0.2.7 - bob [01/Jan/2026:00:%02u:%02u +0000] \"GET %s HTTP/1.1\" 200 5\n",
			i / 60, i % 60, i % 4 ? "/" : "/slow");
		if (i % 60 == 0)
			fprintf(out,
				"192.0.2.8 - al [01/Jan/2026:00:%02u:00 +0000] \"GET / HTTP/1.1\" 200 5\n",
				i / 60);
	}
	fclose(out);
}

TEST(a_rule_and_its_neighbor)
{
	json_t *report;

	write_log();
	temp_put("rules.yaml", RULES);
	report = replay(NULL);
	assert_non_null(report);
	assert_int_equal(json_integer_value(json_object_get(report, "count")), 610);
	assert_int_equal(number(report, "heaviest", "who", "api user=bob", "passed"), 10);
	assert_int_equal(number(report, "heaviest", "who", "api user=bob", "refused"), 590);
	assert_int_equal(number(report, "nearest", "who", "api user=al", "passed"), 10);
	assert_int_equal(number(report, "limits", "name", "api/user", "passed"), 20);
	json_decref(report);
}

TEST(whom_other_rules_hurt)
{
	json_t *report;

	write_log();
	temp_put("rules.yaml", RULES);
	temp_put("two.yaml",
		 "domain: api\ndescriptors:\n"
		 "  - {key: user, value: al, rate_limit: {unit: hour, requests_per_unit: 1}}\n");
	report = replay("two.yaml");
	assert_non_null(report);
	assert_int_equal(number(report, "hurt", "who", "api user=al", "refused"), 0);
	assert_int_equal(number(report, "spared", "who", "api user=bob", "refused"), 590);
	assert_int_equal(json_array_size(json_object_get(report, "hurt")), 1);
	json_decref(report);
}

TEST(bad_lines_are_named_and_a_file_of_them_is_refused)
{
	json_t *report;
	FILE *out;

	write_log();
	out = fopen(temp_path("log"), "a");
	fprintf(out, "nonsense\n\n%0200000d\n", 0);
	fclose(out);
	temp_put("rules.yaml", RULES);
	report = replay(NULL);
	assert_non_null(report);
	assert_int_equal(json_integer_value(json_object_get(report, "count")), 610);
	json_decref(report);
	temp_put("log", "nonsense\n");
	assert_null(replay(NULL));
	assert_non_null(strstr(error.message,
			       "neither a capture (pcap, pcapng) nor an access log: line 1: "));
}

/* A gzip file that ends early: what was there counts. */
TEST(a_cut_gzip_file)
{
	char text[65536], path[256];
	size_t size;
	json_t *report;
	FILE *in;
	gzFile gz;

	write_log();
	snprintf(path, sizeof(path), "%s", temp_path("log"));
	in = fopen(path, "r");
	size = fread(text, 1, sizeof(text), in);
	fclose(in);
	gz = gzopen(path, "w0");
	gzwrite(gz, text, size);
	gzclose(gz);
	assert_int_equal(truncate(path, size / 2), 0);
	temp_put("rules.yaml", RULES);
	report = replay(NULL);
	assert_non_null(report);
	assert_non_null(json_object_get(report, "damage"));
	assert_in_range(json_integer_value(json_object_get(report, "count")), 250, 350);
	json_decref(report);
}

/* Values are untrusted: in the page they are text. */
TEST(a_page_has_no_markup_of_the_input)
{
	char *page = NULL;
	size_t size;
	json_t *report;
	FILE *out;

	temp_put(
		"log",
		"192.0.2.7 - <script>alert(1)</script> [01/Jan/2026:00:00:00 +0000] \"GET / HTTP/1.1\" 200 5\n");
	temp_put("rules.yaml", RULES);
	report = replay(NULL);
	assert_non_null(report);
	out = open_memstream(&page, &size);
	replay_page(report, out);
	fclose(out);
	assert_null(strstr(page, "<script"));
	assert_non_null(strstr(page, "user=&lt;script&gt;"));
	assert_null(strstr(page, "http://"));
	assert_null(strstr(page, "src="));
	assert_non_null(strstr(page, "</html>"));
	free(page);
	json_decref(report);
}

int main(void)
{
	return test_run(temp_dir_make, temp_dir_drop);
}
