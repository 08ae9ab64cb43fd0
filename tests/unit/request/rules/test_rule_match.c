// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which rule a descriptor meets: the order of exact values, patterns and bare keys, depth, and
 * which values share a bucket. The cases are those that envoyproxy/ratelimit documents, in our own
 * words, and attacks by any client.
 */
#include "lib/rule_text.h"

#define NESTED                                                                                     \
	"domain: api\n"                                                                            \
	"descriptors:\n"                                                                           \
	"  - key: plan\n"                                                                          \
	"    value: free\n"                                                                        \
	"    rate_limit: {unit: second, requests_per_unit: 1}\n"                                   \
	"    descriptors:\n"                                                                       \
	"      - key: user\n"                                                                      \
	"        rate_limit: {unit: minute, requests_per_unit: 2}\n"                               \
	"      - key: user\n"                                                                      \
	"        value: bob\n"                                                                     \
	"        rate_limit: {unit: hour, requests_per_unit: 3}\n"                                 \
	"  - key: user\n"                                                                          \
	"    rate_limit: {unit: day, requests_per_unit: 4}\n"                                      \
	"  - key: open\n"                                                                          \
	"  - key: path\n"                                                                          \
	"    value: /a*\n"                                                                         \
	"    rate_limit: {unit: week, requests_per_unit: 5}\n"                                     \
	"  - key: path\n"                                                                          \
	"    value: '*b*c'\n"                                                                      \
	"    share_threshold: true\n"                                                              \
	"    rate_limit: {unit: month, requests_per_unit: 6}\n"                                    \
	"  - key: path\n"                                                                          \
	"    value: /abc\n"                                                                        \
	"    rate_limit: {unit: year, requests_per_unit: 7}\n"                                     \
	"  - key: path\n"                                                                          \
	"    rate_limit: {unlimited: true}\n"

TEST(test_order)
{
	struct ruleset *set = rules(NESTED);
	static const struct {
		const char *entries, *rule;
	} cases[] = {
		{ "plan=free", "plan=free" },
		{ "plan=paid", NULL }, /* no such value, no bare key */
		{ "plan", NULL },
		{ "plan=free,user=eve", "plan=free/user" },
		{ "plan=free,user=bob", "plan=free/user=bob" },
		{ "plan=free,user=bobby", "plan=free/user" },
		{ "plan=free,user=", "plan=free/user" },
		{ "plan=free,user=bob,x=y", NULL }, /* deeper than the file */
		{ "plan=free,other=bob", NULL },
		{ "user=bob", "user" },
		{ "user=bob,plan=free", NULL }, /* the order of entries counts */
		{ "open=1", NULL },		/* known, and without a limit */
		{ "path=/abc", "path=/abc" },	/* exact before patterns written earlier */
		{ "path=/ab/c", "path=/a*" },	/* of patterns the first written */
		{ "path=/a", "path=/a*" },	/* '*' may stand for nothing */
		{ "path=xbxc", "path=*b*c" },
		{ "path=bc", "path=*b*c" },
		{ "path=xbxcx", "path" },
		{ "path=cb", "path" },
		{ "path=", "path" },
		{ "User=bob", NULL }, /* case counts */
		{ "user_bob=", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
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

/* A pattern that ends with a slash and two stars is for a path and all below it. */
TEST(test_below)
{
	struct ruleset *set = rules(
		"domain: api\n"
		"descriptors:\n"
		"  - {key: path, value: /foo/**, share_threshold: true, limits: 1 requests/d}\n"
		"  - {key: path, value: /u/*/p/**, limits: 2 requests/d}\n"
		"  - {key: path, value: /foo*, limits: 3 requests/d}\n"
		"  - {key: all, value: /**, limits: 4 requests/d}\n");
	static const struct {
		const char *entries, *rule;
	} cases[] = { ITEMS(
		{ "path=/foo", "path=/foo/**" }, { "path=/foo/", "path=/foo/**" },
		{ "path=/foo/bar/baz", "path=/foo/**" }, { "path=/foobar", "path=/foo*" },
		{ "path=/fo", NULL }, { "path=/x/foo", NULL }, { "path=/", NULL },
		{ "path=/u/1/p", "path=/u/*/p/**" }, { "path=/u/1/p/2", "path=/u/*/p/**" },
		{ "path=/u/1/px", NULL }, { "path=/u/p", NULL }, { "all=/", "all=/**" },
		{ "all=/x", "all=/**" }, { "all=", "all=/**" }, { "all=x", NULL }) };

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_matches(set, "api", cases[i].entries, cases[i].rule);
	ruleset_free(set);
}

/* The value that the last entry of `entries` counts by. */
static void assert_counts_by(const struct ruleset *set, const char *entries, const char *rule,
			     const char *value)
{
	struct rule_match match;
	struct bytes by;

	assert_matches(set, "api", entries, rule);
	match_text(set, "api", entries, &match);
	if (!rule)
		return;
	by = rule_value(match.rule, match.count - 1, match.value[match.count - 1]);
	if (by.len != strlen(value) || memcmp(by.at, value, by.len))
		fail_msg("%s counts by %.*s, wanted %s", entries, (int)by.len, by.at, value);
}

TEST(test_ignore)
{
	struct ruleset *set = rules(
		"domain: api\n"
		"descriptors:\n"
		"  - {key: path, value: /Search/, ignore: [case, trailing-slash, params], limits: 1 requests/d}\n"
		"  - {key: path, value: /sEARCH, limits: 2 requests/d}\n"
		"  - {key: path, value: /up, ignore: case, limits: 3 requests/d}\n"
		"  - {key: path, value: '/Api/*/x/**', ignore: [case, trailing-slash], share_threshold: true, limits: 4 requests/d}\n"
		"  - {key: path, ignore: [trailing-slash], limits: 5 requests/d, descriptors: [{key: user, limits: 6 requests/d}]}\n"
		"  - {key: user, ignore: case, limits: 7 requests/d, overrides: [{value: Acme, unlimited: true}]}\n"
		"  - {key: plain, value: /A, limits: 8 requests/d}\n");
	static const struct {
		const char *entries, *rule, *by;
	} cases[] = {
		{ "path=/search", "path=/Search/", "/search" },
		{ "path=/SEARCH/", "path=/Search/", "/search" },
		{ "path=/search//", "path=/Search/", "/search" },
		{ "path=/search;jsessionid=1", "path=/Search/", "/search" },
		{ "path=/;a/search;b/;c", "path=/Search/", "/search" },
		{ "path=/x/..;y/search", "path=/Search/", "/search" },
		{ "path=/search/x;/..;/", "path=/Search/", "/search" },
		{ "path=/sEARCH", "path=/sEARCH",
		  "/sEARCH" }, /* what is written exactly comes first */
		{ "path=/search/x", "path", "/search/x" },
		{ "path=/research", "path", "/research" },
		{ "path=/UP", "path=/up", "/up" },
		{ "path=/UP/", "path", "/UP" }, /* only what the descriptor says is ignored */
		{ "path=/up;x", "path", "/up;x" },
		{ "path=/api/1/X", "path=/Api/*/x/**", "/api/*/x/**" },
		{ "path=/API/1/x/Y/", "path=/Api/*/x/**", "/api/*/x/**" },
		{ "path=/Page/", "path", "/Page" },
		{ "path=/", "path", "/" },
		{ "path=//", "path", "/" },
		{ "path=", "path", "" },
		{ "path=/Page/,user=Bob", "path/user", "Bob" },
		{ "user=BOB", "user", "bob" },
		{ "user=\xc3\x89", "user", "\xc3\x89" }, /* ASCII alone */
		{ "plain=/A", "plain=/A", "/A" },
		{ "plain=/a", NULL, NULL },
	};
	struct rule_match match;
	struct bytes by;

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_counts_by(set, cases[i].entries, cases[i].rule, cases[i].by);
	match_text(set, "api", "path=/Page/,user=Bob", &match);
	by = rule_value(match.rule, 0, match.value[0]);
	assert_int_equal(by.len, 5);
	assert_true(
		override_value_find(ruleset_find(set, "api/user"), &BYTES_OF("aCME"))->unlimited);
	assert_null(override_value_find(ruleset_find(set, "api/user"), &BYTES_OF("acme2")));
	ruleset_free(set);
}

/* Of a value that is longer than any rule's, the beginning counts: it is counted with others, not
 * alone. */
TEST(test_ignore_long)
{
	struct ruleset *set = rules("domain: api\ndescriptors:\n"
				    "  - {key: path, ignore: case, limits: 1 requests/d}\n");
	size_t size = REQUEST_VALUE_MAX + 100;
	char *text = malloc(size);
	struct bytes by;

	memset(text, 'A', size);
	by = rule_value(ruleset_find(set, "api/path"), 0, (struct bytes){ text, size });
	assert_int_equal(by.len, REQUEST_VALUE_MAX);
	assert_int_equal(by.at[REQUEST_VALUE_MAX - 1], 'a');
	free(text);
	ruleset_free(set);
}

TEST_MAIN
