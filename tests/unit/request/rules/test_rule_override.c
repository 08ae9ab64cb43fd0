// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Limits of one value's own: in the rule and in a file of a few and of a million, whose neighbours
 * keep the rule's; addresses as the groups that they are in; errors in the file and their places.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/rule_text.h"

#include "lib/refused.h"
#include "lib/temp_dir.h"

static const struct override_limits *own(const struct ruleset *set, const char *rule,
					 const char *value)
{
	const struct rule *found = ruleset_find(set, rule);

	assert_non_null(found);
	return override_value_find(found, &(struct bytes){ value, strlen(value) });
}

static void assert_own(const struct ruleset *set, const char *value, u64 count, u64 seconds)
{
	const struct override_limits *limits = own(set, "a/user", value);

	if (!count) {
		if (limits)
			fail_msg("%s has limits of its own", value);
		return;
	}
	if (!limits)
		fail_msg("%s has no limits of its own", value);
	assert_int_equal(limits->limit[0].terms.rates.rate[0].count, count);
	assert_int_equal(limits->limit[0].terms.rates.rate[0].period_ns, seconds * SL_NS_PER_SEC);
}

TEST(test_inline)
{
	struct ruleset *set = rules(
		"domain: a\n"
		"descriptors:\n"
		"  - key: user\n"
		"    limits: [10 requests/m, {rate: 100 requests/h, algorithm: sliding-window, name: h}]\n"
		"    algorithm: token-bucket\n"
		"    burst: 7\n"
		"    overrides:\n"
		"      - {value: acme, limits: 1000 requests/m}\n"
		"      - {value: corp, limits: [20 requests/m, 200 requests/h, 5 requests/s]}\n"
		"      - {value: Corp, limits: [{rate: 20 requests/m, burst: 9}]}\n"
		"      - {value: eve, block: true}\n"
		"      - {value: 'root, \"the one\"', unlimited: true}\n"
		"      - {value: 192.0.2.7, limits: 70 requests/m}\n"
		"      - {value: '2001:db8::/64', limits: 60 requests/m}\n");
	const struct override_limits *limits;

	assert_own(set, "bob", 0, 0);
	assert_own(set, "acm", 0, 0);
	assert_own(set, "acme ", 0, 0);
	assert_own(set, "", 0, 0);
	assert_own(set, "acme", 1000, 60);
	limits = own(set, "a/user", "acme");
	assert_int_equal(limits->limit_count, 1);
	assert_string_equal(limits->limit[0].name, "user");
	assert_int_equal(limits->limit[0].terms.algorithm, SL_ALGO_TOKEN_BUCKET);
	assert_int_equal(limits->limit[0].terms.rates.burst[0],
			 0); /* the rule's is for the rule's rate */
	limits = own(set, "a/user", "corp");
	assert_int_equal(limits->limit_count, 3);
	assert_string_equal(limits->limit[1].name, "h");
	assert_int_equal(limits->limit[1].terms.algorithm, SL_ALGO_SLIDING_WINDOW);
	assert_string_equal(limits->limit[2].name, "user-3");
	assert_int_equal(own(set, "a/user", "Corp")->limit[0].terms.rates.burst[0], 9);
	assert_true(own(set, "a/user", "eve")->limit[0].none);
	assert_true(own(set, "a/user", "root, \"the one\"")->unlimited);
	/* an address is its group, whatever its spelling */
	assert_own(set, "192.0.2.7", 70, 60);
	assert_own(set, "::ffff:192.0.2.7", 70, 60);
	assert_own(set, "192.0.2.8", 0, 0);
	assert_own(set, "2001:DB8:0:0:ffff::1", 60, 60);
	assert_own(set, "2001:db8:0:1::1", 0, 0);
	assert_int_equal(override_values(ruleset_find(set, "a/user")), 7);
	ruleset_free(set);
}

/* ---- files ---- */

static const char with_file[] = "domain: a\n"
				"descriptors:\n"
				"  - key: user\n"
				"    limits: 10 requests/m\n"
				"    overrides: [{value: acme, limits: 1 requests/m}]\n"
				"    overrides_file: plans.csv\n";

TEST(test_file)
{
	struct ruleset *set, *next, *third;

	temp_put("r.yaml", with_file);
	temp_put("plans.csv", "value,limits\n"
			      "# customers\n"
			      "acme,1000 requests/m\n"
			      "corp , 20 requests/m , 200 requests/h\r\n"
			      "\"Smith, \"\"J\"\"\",30 requests/s\n"
			      "\n"
			      "bad,block  # since May\n"
			      "boss,unlimited\n"
			      "2001:db8::/64,5 requests/d");
	set = rules_in(temp_dir, NULL);
	assert_own(set, "acme", 1, 60); /* the rule's own override goes before the file's */
	assert_own(set, "corp", 20, 60);
	assert_int_equal(own(set, "a/user", "corp")->limit_count, 2);
	assert_own(set, "Smith, \"J\"", 30, 1);
	assert_own(set, "value", 0, 0);
	assert_own(set, "# customers", 0, 0);
	assert_true(own(set, "a/user", "bad")->limit[0].none);
	assert_true(own(set, "a/user", "boss")->unlimited);
	assert_own(set, "2001:db8::9", 5, 86400);
	assert_int_equal(override_values(ruleset_find(set, "a/user")), 6);

	/* Reused where nothing changed, and alive without the set that created it. */
	next = rules_in(temp_dir, set);
	assert_ptr_equal(own(next, "a/user", "corp"), own(set, "a/user", "corp"));
	ruleset_free(set);
	assert_own(next, "corp", 20, 60);
	temp_put("plans.csv", "corp,21 requests/m\n");
	third = rules_in(temp_dir, next);
	assert_own(third, "corp", 21, 60);
	assert_own(next, "corp", 20, 60);
	ruleset_free(next);
	ruleset_free(third);
}

TEST(test_file_errors)
{
	static const struct bad cases[] = {
		{ "^acme", "no comma" },
		{ "a,1 requests/m\n^,2 requests/m", "an empty value" },
		{ "a,1 requests/m\nb,^2\n", "\"2\": not a limit" },
		{ "a,^1 packets/m", "requests" },
		{ "a,1 requests/m, ^x", "\"x\"" },
		{ "a,1 requests/m,^block", "block beside limits" },
		{ "a,^unlimited,1 requests/m", "unlimited beside limits" },
		{ "a,^1 requests/m burst 3", "only a token-bucket" },
		{ "a,1 requests/s,1 requests/m,1 requests/h,1 requests/d,^2 requests/d",
		  "one limit more than 4" },
		{ "b,block\na,block\nc,block\n^\"a\",block", "first in line 2" },
		{ "192.0.2.7,block\n^::ffff:192.0.2.7,block", "first in line 1" },
		{ "^10.0.0.1/8,block", "host bits are set" },
		{ "^2001:db8::/96,block", "narrower than the rule's first prefix" },
		{ "a,^\"1 requests/m\"", "not a limit" },
		{ "^\"a,block", "no comma" },
		{ "^\xff,block", "UTF-8" },
	};

	temp_put("r.yaml", with_file);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ruleset *set;
		struct sl_err err;

		temp_put("plans.csv", unmark(cases[i].text, strlen(cases[i].text)).text);
		assert_refused(&cases[i], ruleset_load(temp_dir, NULL, &set, &err), &err);
		assert_non_null(strstr(err.file, "/plans.csv"));
	}
}

/* A hundred thousand on five plans: each finds its own, and no other value does. */
TEST(test_many)
{
	struct ruleset *set;
	char value[32];
	FILE *file;

	temp_put("r.yaml", with_file);
	file = fopen(temp_path("plans.csv"), "w");
	for (u32 i = 0; i < 100000; i++)
		fprintf(file, "customer-%u,%u requests/m\n", i, i % 5 + 1);
	fclose(file);
	set = rules_in(temp_dir, NULL);
	for (u32 i = 0; i < 100000; i += 7) {
		snprintf(value, sizeof(value), "customer-%u", i);
		assert_own(set, value, i % 5 + 1, 60);
		snprintf(value, sizeof(value), "customer-%u", i + 100000);
		assert_own(set, value, 0, 0);
	}
	assert_int_equal(override_values(ruleset_find(set, "a/user")), 100001);
	ruleset_free(set);
}

/* More distinct limits than the counter table has classes are refused, with the line. */
TEST(test_too_many_plans)
{
	struct ruleset *set;
	struct sl_err err;
	FILE *file;

	temp_put("r.yaml", with_file);
	file = fopen(temp_path("plans.csv"), "w");
	for (u32 i = 1; i <= OVERRIDE_LIMITS_MAX; i++)
		fprintf(file, "%u,%u requests/m\n", i, i + 5);
	fclose(file);
	assert_int_equal(ruleset_load(temp_dir, NULL, &set, &err), -EINVAL);
	assert_int_equal(err.line, 5); /* the one that stands in the rule */
	assert_non_null(strstr(err.message, "60000 different limits"));
}

int main(void)
{
	return test_run(temp_dir_make, temp_dir_drop);
}
