// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * VALUE of rules with one key and with several: each text names these values and no others, what is
 * written is read again as it was, and what no request can have is refused with what is accepted.
 */
#include <errno.h>

#include "lib/rule_text.h"

#include "lib/rng.h"
#include "request/rules/rule_values.h"

static const char several[] =
	"domain: api\n"
	"default: {limits: 5 requests/m}\n"
	"descriptors:\n"
	"  - key: user\n"
	"    limits: 9 requests/m\n"
	"    overrides: [{value: 'a,b', block: true}]\n"
	"    descriptors:\n"
	"      - key: path\n"
	"        value: /search\n"
	"        limits: 9 requests/m\n"
	"        overrides: [{value: 'bob,/search', block: true}, {value: al, block: true}]\n"
	"      - {key: path, value: '/img/*', limits: 9 requests/m}\n"
	"      - key: path\n"
	"        limits: 9 requests/m\n"
	"        overrides: [{value: 'bob,/a', block: true}, {value: '\"b,c\",/\"', block: true}]\n"
	"  - key: plan\n"
	"    value: free\n"
	"    limits: 9 requests/m\n"
	"    descriptors:\n"
	"      - key: source\n"
	"        limits: 9 requests/m\n"
	"        overrides: [{value: 10.0.0.0/8, block: true}, {value: 'free,2001:db8::1', block: true}]\n"
	"        descriptors:\n"
	"          - {key: user, limits: 9 requests/m, overrides: [{value: '192.0.2.7,bob', block: true}]}\n"
	"  - {key: ext, value: '*.php', share_threshold: true, limits: 9 requests/m,\n"
	"     overrides: [{value: '*.php', block: true}]}\n";

/* `named`: the values of the entries, separated by '|'; or a part of the error. */
static const struct {
	const char *rule, *text, *named;
	int rc;
} table[] = {
	{ "api/user", "bob", "bob", 0 },
	{ "api/user", "a,\"b\"", "a,\"b\"", 0 },
	{ "api/user/path=/search", "bob,/search", "bob|/search", 0 },
	{ "api/user/path=/search", "bob", "bob|/search", 0 },
	{ "api/user/path=/search", "\"a,b\"", "a,b|/search", 0 },
	{ "api/user/path=/search", "\"a \"\",\"\" b\",/search", "a \",\" b|/search", 0 },
	{ "api/user/path=/search", ",/search", "|/search", 0 },
	{ "api/user/path=/search", "bob,/searching",
	  "which is not for /search; accepted: USER,/search", -EINVAL },
	{ "api/user/path=/search", "a,b,/search", "3 values for 2 keys; accepted: USER,/search",
	  -EINVAL },
	{ "api/user/path=/search", "\"bob,/search", "where a quote is wrong", -EINVAL },
	{ "api/user/path=/search", "\"bob\"y,/search", "where a quote is wrong", -EINVAL },
	{ "api/user/path=/search", NULL, "VALUE is missing; accepted: USER,/search", -EINVAL },
	{ "api/user/path", "bob,/a", "bob|/a", 0 },
	{ "api/user/path", "bob", "1 value for 2 keys; accepted: USER,PATH", -EINVAL },
	{ "api/user/path", "bob,/search", "requests meet api/user/path=/search", -ENOENT },
	{ "api/user/path=/img/*", "bob,/img/1", "bob|/img/1", 0 },
	{ "api/user/path=/img/*", "bob,/css/1", "requests meet api/user/path", -ENOENT },
	{ "api/plan=free", NULL, "free", 0 },
	{ "api/plan=free", "pro", "which is not for free", -EINVAL },
	{ "api/plan=free/source", "::1", "free|::1", 0 },
	{ "api/plan=free/source/user", "10.0.0.1,bob", "free|10.0.0.1|bob", 0 },
	{ "api/plan=free/source/user", "free,10.0.0.1,bob", "free|10.0.0.1|bob", 0 },
	{ "api/ext=*.php", "*.php", "*.php", 0 },
	{ "api/ext=*.php", "/a.php", "which is not for *.php", -EINVAL },
	{ "api/default", "a=b,\"c=d,e\"", "b|d,e", 0 },
	{ "api/default", "bob", "that has no key", -EINVAL },
};

TEST(test_named)
{
	struct ruleset *set = rules(several);

	for (size_t i = 0; i < COUNT(table); i++) {
		const struct rule *rule = ruleset_find(set, table[i].rule);
		struct bytes text = { table[i].text, table[i].text ? strlen(table[i].text) : 0 };
		struct sl_err err = { .message = "" };
		struct rule_values values;
		struct rule_match match;
		char gave[256] = "";
		int rc;

		assert_non_null(rule);
		rc = rule_values_match(set, rule, text, &values, &match, &err);
		for (u32 k = 0; !rc && k < values.descriptor.count; k++)
			sprintf(gave + strlen(gave), "%s%.*s", k ? "|" : "",
				(int)values.descriptor.entry[k].value.len,
				values.descriptor.entry[k].value.at);
		if (rc != table[i].rc ||
		    (rc ? !strstr(err.message, table[i].named) : strcmp(gave, table[i].named) != 0))
			fail_msg("%s %s: %d, %s%s", table[i].rule, table[i].text, rc, gave,
				 err.message);
		rule_values_free(&values);
	}
	ruleset_free(set);
}

/* Values that clients choose: what is written of them names them, and cannot be read as
 * another's. */
TEST(test_written)
{
	struct ruleset *set = rules(several);

	rng_start("rule_values");
	for (int round = 0; round < 20000; round++) {
		const struct rule *rule = ruleset_find(
			set, RNG_ANY("api/user", "api/user/path=/search", "api/user/path",
				     "api/plan=free/source/user", "api/default"));
		struct request_descriptor given = { .count = rule->depth ? rule->depth
									 : 1 + rng_below(3) };
		char value[REQUEST_ENTRIES_MAX][8], text[256];
		struct rule_values values;
		size_t len;

		for (u32 i = 0; i < given.count; i++) {
			size_t bytes = rng_below(6);

			for (size_t k = 0; k < bytes; k++)
				value[i][k] = RNG_ANY(",", "\"", "a", "=", "/")[0];
			given.entry[i].key = BYTES_OF("k");
			given.entry[i].value = (struct bytes){ value[i], bytes };
			if (rule->depth && rule->entry[i].fixed)
				given.entry[i].value =
					(struct bytes){ rule->entry[i].fixed,
							strlen(rule->entry[i].fixed) };
		}
		len = rule_values_write(rule, &given, text, sizeof(text));
		text[len] = 0;
		if (rule_values_read(rule, (struct bytes){ text, len }, &values, NULL) ||
		    values.descriptor.count != given.count)
			fail_msg("%s/%s: %s", rule->domain, rule->path, text);
		for (u32 i = 0; i < given.count; i++)
			if (values.descriptor.entry[i].value.len != given.entry[i].value.len ||
			    memcmp(values.descriptor.entry[i].value.at, given.entry[i].value.at,
				   given.entry[i].value.len))
				fail_msg("%s/%s: %s: value %u", rule->domain, rule->path, text, i);
		rule_values_free(&values);
	}
	ruleset_free(set);
}

static bool blocked(const struct ruleset *set, const char *name, const char *a, const char *b,
		    const char *c)
{
	const struct bytes value[] = { { a, strlen(a) }, { b, strlen(b) }, { c, strlen(c) } };
	const struct override_limits *limits = override_value_find(ruleset_find(set, name), value);

	return limits && limits->limit[0].none;
}

static const char one_of_two[] = "domain: a\n"
				 "descriptors:\n"
				 "  - key: k\n"
				 "    descriptors:\n"
				 "      - {key: v, limits: 9 requests/m,\n"
				 "         overrides: [{value: x, block: true}]}\n";

/* Overrides are for these values, each with neighbors that differ in one. */
TEST(test_overrides)
{
	struct ruleset *set = rules(several);
	struct sl_err err;

	assert_true(blocked(set, "api/user", "a,b", "", ""));
	assert_false(blocked(set, "api/user", "a", "", ""));
	assert_true(blocked(set, "api/user/path=/search", "bob", "/search", ""));
	assert_true(blocked(set, "api/user/path=/search", "al", "/search", ""));
	assert_false(blocked(set, "api/user/path=/search", "/search", "/search", ""));
	assert_false(blocked(set, "api/user/path=/search", "eve", "/search", ""));
	assert_true(blocked(set, "api/user/path", "bob", "/a", ""));
	assert_false(blocked(set, "api/user/path", "bob", "/b", ""));
	assert_false(blocked(set, "api/user/path", "al", "/a", ""));
	assert_false(blocked(set, "api/user/path", "/a", "bob", ""));
	assert_true(blocked(set, "api/user/path", "b,c", "/\"", ""));
	assert_false(blocked(set, "api/user/path", "b", "c,/\"", ""));
	assert_true(blocked(set, "api/plan=free/source", "free", "10.9.9.9", ""));
	assert_false(blocked(set, "api/plan=free/source", "free", "11.9.9.9", ""));
	assert_true(blocked(set, "api/plan=free/source", "free", "2001:db8::2", ""));
	assert_true(blocked(set, "api/plan=free/source/user", "free", "::ffff:192.0.2.7", "bob"));
	assert_false(blocked(set, "api/plan=free/source/user", "free", "192.0.2.8", "bob"));
	assert_false(blocked(set, "api/plan=free/source/user", "free", "192.0.2.7", "al"));
	assert_true(blocked(set, "api/ext=*.php", "*.php", "", ""));
	ruleset_free(set);

	assert_int_equal(ruleset_parse("r.yaml", one_of_two, strlen(one_of_two), &set, &err),
			 -EINVAL);
	assert_int_equal(err.line, 6);
	assert_non_null(strstr(err.message, "1 value for 2 keys; accepted: K,V"));
}

int main(void)
{
	return test_run(NULL, NULL);
}
