// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which rule a descriptor meets: the order of exact values, patterns and bare keys, depth, and
 * which values share a bucket. The cases are those that envoyproxy/ratelimit documents, in our own
 * words, and attacks by any client.
 */
#include "lib/rule_text.h"

#define NESTED                                                                        \
	"domain: api\n"                                                               \
	"descriptors:\n"                                                              \
	"  - key: plan\n"                                                             \
	"    value: free\n"                                                           \
	"    rate_limit: {unit: second, requests_per_unit: 1}\n"                      \
	"    descriptors:\n"                                                          \
	"      - key: user\n"                                                         \
	"        rate_limit: {unit: minute, requests_per_unit: 2}\n"                  \
	"      - key: user\n"                                                         \
	"        value: bob\n"                                                        \
	"        rate_limit: {unit: hour, requests_per_unit: 3}\n"                    \
	"  - key: user\n"                                                             \
	"    rate_limit: {unit: day, requests_per_unit: 4}\n"                         \
	"  - key: open\n"                                                             \
	"  - key: path\n"                                                             \
	"    value: /a*\n"                                                            \
	"    rate_limit: {unit: week, requests_per_unit: 5}\n"                        \
	"  - key: path\n"                                                             \
	"    value: '*b*c'\n"                                                         \
	"    share_threshold: true\n"                                                 \
	"    rate_limit: {unit: month, requests_per_unit: 6}\n"                       \
	"  - key: path\n"                                                             \
	"    value: /abc\n"                                                           \
	"    rate_limit: {unit: year, requests_per_unit: 7}\n"                        \
	"  - key: path\n"                                                             \
	"    rate_limit: {unlimited: true}\n"

TEST(test_order)
{
	struct ruleset *set = rules(NESTED);
	static const struct {
		const char *entries, *rule;
	} cases[] = {
		{ "plan=free", "plan=free" },
		{ "plan=paid", NULL },			/* no such value, no bare key */
		{ "plan", NULL },
		{ "plan=free,user=eve", "plan=free/user" },
		{ "plan=free,user=bob", "plan=free/user=bob" },
		{ "plan=free,user=bobby", "plan=free/user" },
		{ "plan=free,user=", "plan=free/user" },
		{ "plan=free,user=bob,x=y", NULL },	/* deeper than the file */
		{ "plan=free,other=bob", NULL },
		{ "user=bob", "user" },
		{ "user=bob,plan=free", NULL },		/* the order of entries counts */
		{ "open=1", NULL },			/* known, and without a limit */
		{ "path=/abc", "path=/abc" },		/* exact before patterns written earlier */
		{ "path=/ab/c", "path=/a*" },		/* of patterns the first written */
		{ "path=/a", "path=/a*" },		/* '*' may stand for nothing */
		{ "path=xbxc", "path=*b*c" },
		{ "path=bc", "path=*b*c" },
		{ "path=xbxcx", "path" },
		{ "path=cb", "path" },
		{ "path=", "path" },
		{ "User=bob", NULL },			/* case counts */
		{ "user_bob=", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_matches(set, "api", cases[i].entries, cases[i].rule);
	assert_matches(set, "API", "user=bob", NULL);
	assert_matches(set, "", "user=bob", NULL);
	ruleset_free(set);
}

TEST(test_limits)
{
	struct ruleset *set = rules(NESTED);
	const struct rule *rule = ruleset_find(set, "api/plan=free/user");

	assert_non_null(rule);
	assert_int_equal(rule->limit_count, 1);
	assert_int_equal(rule->limit[0].terms.rates.rate[0].count, 2);
	assert_int_equal(rule->limit[0].terms.rates.rate[0].period_ns, 60 * SL_NS_PER_SEC);
	assert_int_equal(rule->limit[0].terms.algorithm, SL_ALGO_FIXED_WINDOW);
	assert_string_equal(rule->limit[0].name, "plan=free/user");
	assert_true(rule->envoy);
	assert_int_equal(rule->unit, REQUEST_UNIT_MINUTE);
	assert_int_equal(rule->depth, 2);
	assert_int_equal(rule->line, 7);
	assert_int_equal(ruleset_find(set, "api/path=/a*")->limit[0].terms.rates.rate[0].period_ns,
			 7 * 86400 * SL_NS_PER_SEC);
	assert_int_equal(ruleset_find(set, "api/path=*b*c")->limit[0].terms.rates.rate[0].period_ns,
			 30 * 86400 * SL_NS_PER_SEC);
	assert_int_equal(ruleset_find(set, "api/path=/abc")->limit[0].terms.rates.rate[0].period_ns,
			 365 * 86400 * SL_NS_PER_SEC);
	assert_true(ruleset_find(set, "api/path")->unlimited);
	assert_int_equal(ruleset_find(set, "api/path")->limit_count, 0);
	assert_null(ruleset_find(set, "api/open"));
	assert_null(ruleset_find(set, "api/"));
	assert_null(ruleset_find(set, "api"));
	assert_int_equal(set->rule_count, 8);
	ruleset_free(set);
}

/* Each combination of values has its own bucket, but where a pattern shares one. */
TEST(test_values)
{
	struct ruleset *set = rules(NESTED);
	struct rule_match match;

	match_text(set, "api", "plan=free,user=eve", &match);
	assert_int_equal(match.count, 2);
	assert_memory_equal(match.value[0].at, "free", 4);
	assert_memory_equal(match.value[1].at, "eve", 3);
	match_text(set, "api", "path=1b2c", &match);
	assert_int_equal(match.value[0].len, 4);
	assert_memory_equal(match.value[0].at, "*b*c", 4);
	match_text(set, "api", "path=/ax", &match);
	assert_int_equal(match.value[0].len, 3);
	assert_memory_equal(match.value[0].at, "/ax", 3);
	ruleset_free(set);
}

TEST_MAIN
