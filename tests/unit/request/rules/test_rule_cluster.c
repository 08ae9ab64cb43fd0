// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* scope, consistency and on_store_failure of rules: their meaning, and back to text. */
#include "lib/rule_text.h"

#define D "domain: api\ndescriptors:\n"
#define MS 1000000ULL

static const struct rule *rule_of(const struct ruleset *set, const char *name)
{
	const struct rule *rule = ruleset_find(set, name);

	assert_non_null(rule);
	return rule;
}

static char *written(const struct rule *rule)
{
	char *text, *body;
	size_t size;
	FILE *out = open_memstream(&body, &size);

	assert_int_equal(rule_write(rule, out, 4), 0);
	assert_int_equal(fclose(out), 0);
	body[2] = '-';
	assert_true(asprintf(&text, D "%s", body) > 0);
	free(body);
	return text;
}

/* The written text of a rule is read as the same rule. */
static void assert_written(const struct rule *rule)
{
	char *first = written(rule), *second;
	struct ruleset *back = rules(first);
	const struct rule *again = back->rule[0];

	second = written(again);
	assert_string_equal(first, second);
	assert_int_equal(rule->limit_count, again->limit_count);
	for (u32 i = 0; i < rule->limit_count; i++)
		assert_int_equal(rule->limit[i].terms.cluster, again->limit[i].terms.cluster);
	if (rule->limit[0].terms.cluster) {
		assert_int_equal(rule->consistency, again->consistency);
		assert_int_equal(rule->consistency_ns, again->consistency_ns);
		assert_int_equal(rule->on_store_failure, again->on_store_failure);
	}
	ruleset_free(back);
	free(first);
	free(second);
}

struct expected {
	const char *rule;  /* of one descriptor, without its braces */
	const char *scope; /* of each limit: n, c */
	enum consistency consistency;
	u64 ns;
	enum store_failure failure;
};

TEST(test_meanings)
{
	static const struct expected cases[] = {
		{ "limits: 5 requests/s", "n", 0, 0, 0 },
		{ "limits: 5 requests/s, scope: node", "n", 0, 0, 0 },
		{ "limits: 5 requests/s, scope: cluster", "c", CONSISTENCY_STRICT, 0,
		  STORE_FAILS_LOCAL },
		{ "rate_limit: {unit: day, requests_per_unit: 5}, scope: cluster", "c", 0, 0, 0 },
		{ "rate_limit: {unit: day, requests_per_unit: 5}, consistency: {lease: 100ms}", "c",
		  CONSISTENCY_LEASE, 100 * MS, STORE_FAILS_LOCAL },
		{ "limits: 5 requests/s, consistency: strict", "c", 0, 0, 0 },
		{ "limits: 5 requests/s, on_store_failure: error", "c", 0, 0, STORE_FAILS_ERROR },
		{ "limits: 5 requests/s, on_store_failure: open, consistency: {write_back: 1s}",
		  "c", CONSISTENCY_WRITE_BACK, 1000 * MS, STORE_FAILS_OPEN },
		{ "limits: 5 requests/h, consistency: {write_back: 1h}, on_store_failure: closed",
		  "c", CONSISTENCY_WRITE_BACK, 3600000 * MS, STORE_FAILS_CLOSED },
		{ "limits: [{rate: 5 requests/s, scope: node}, 9 requests/h], consistency: strict",
		  "nc", 0, 0, 0 },
		{ "limits: [{rate: 5 requests/s, scope: cluster}, 9 requests/h]", "cn", 0, 0, 0 },
		{ "limits: [{rate: 5 requests/s, scope: cluster}, 9 requests/h], scope: node, "
		  "on_store_failure: open",
		  "cn", 0, 0, STORE_FAILS_OPEN },
		{ "limits: 5 requests/s, algorithm: sliding-log, scope: cluster", "c", 0, 0, 0 },
		{ "limits: [{rate: 5 requests/m, algorithm: sliding-log, scope: node}, 9 requests/h], "
		  "consistency: {lease: 1s}",
		  "nc", CONSISTENCY_LEASE, 1000 * MS, 0 },
		{ "limits: 5 requests/s, scope: cluster, reserve: {critical: 20%}, priority: low",
		  "c", 0, 0, 0 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char yaml[512], scope[8] = "";
		struct ruleset *set;
		const struct rule *rule;

		snprintf(yaml, sizeof(yaml), D "  - {key: a, %s}\n", cases[i].rule);
		set = rules(yaml);
		rule = rule_of(set, "api/a");
		for (u32 k = 0; k < rule->limit_count; k++)
			strcat(scope, rule->limit[k].terms.cluster ? "c" : "n");
		assert_string_equal(scope, cases[i].scope);
		assert_int_equal(rule->consistency, cases[i].consistency);
		assert_int_equal(rule->consistency_ns, cases[i].ns);
		assert_int_equal(rule->on_store_failure, cases[i].failure);
		assert_written(rule);
		ruleset_free(set);
	}
}

/* A value's own limits have the scope of the rule's, unless they state one. */
TEST(test_overrides)
{
	struct ruleset *set =
		rules(D "  - key: a\n"
			"    limits: [{rate: 5 requests/s, scope: node}, 9 requests/h]\n"
			"    consistency: {lease: 50ms}\n"
			"    overrides:\n"
			"      - {value: x, limits: [50 requests/s, 90 requests/h]}\n"
			"      - {value: y, limits: [{rate: 50 requests/s, scope: cluster}]}\n"
			"      - {value: z, block: true}\n");
	const struct rule *rule = rule_of(set, "api/a");
	const struct override_limits *own;

	own = override_value_find(rule, &(struct bytes){ "x", 1 });
	assert_int_equal(own->limit_count, 2);
	assert_false(own->limit[0].terms.cluster);
	assert_true(own->limit[1].terms.cluster);
	own = override_value_find(rule, &(struct bytes){ "y", 1 });
	assert_true(own->limit[0].terms.cluster);
	assert_written(rule);
	ruleset_free(set);
}

/* What is written has every key of a rule, and reads as the same. */
TEST(test_written)
{
	static const struct {
		const char *rule, *written;
	} cases[] = {
		{ "rate_limit: {unit: week, requests_per_unit: 5}, algorithm: token-bucket, burst: 9, "
		  "throttle: {elastic: 200%, while: {cpu: 70%}}",
		  "throttle: {elastic: 200%, while: {cpu: 70%}}\n" },
		{ "rate_limit: {unit: day, requests_per_unit: 0, name: n, replaces: [{name: o}, {name: p}]}",
		  "{unit: day, requests_per_unit: 0, name: n, replaces: [{name: o}, {name: p}]}\n" },
		{ "rate_limit: {unlimited: true}", "rate_limit: {unlimited: true}\n" },
		{ "limits: [5 requests/m], prefix: none, on_limit: {wait: 2s}", "prefix: none\n" },
		{ "limits: [5 requests/m], on_limit: {wait: 2s}",
		  "on_limit: {wait: 2s, queue: 100}\n" },
		{ "limits: [5 requests/m], scope: cluster, on_limit: {defer: {max: 7}}",
		  "on_limit: {defer: {max: 7, ttl: 1h, deliveries: 5, retry: 1m}}\n" },
		{ "limits: [5 requests/m], prefix: {ipv4: [32, 24]}, prefix_scale: {ipv4: [1, 2]}",
		  "prefix: {ipv4: [32, 24], ipv6: [64, 56, 48]}\n    prefix_scale: {ipv4: [1, 2], ipv6: [1, 2, 4]}\n" },
		{ "limits: [5 requests/m]", "    prefix: {ipv4: 32, ipv6: [64, 56, 48]}\n" },
		{ "limits: [5 requests/m], prefix_scale: {ipv6: [1, 1, 1]}",
		  "prefix: {ipv4: 32, ipv6: [64, 56, 48]}\n    prefix_scale: {ipv4: [1], ipv6: [1, 1, 1]}\n" },
		{ "limits: [5 requests/m], prefix: {ipv6: [64, 48]}",
		  "    prefix: {ipv4: 32, ipv6: [64, 48]}\n" },
		{ "limits: [5 requests/m], push_down: {after: 20 rejections/10s, steps: [limit 50 packets/s, "
		  "drop]}",
		  "push_down: {after: 20 rejections/10s, steps: [limit 50 packets/s, drop], step: 1m, "
		  "down: 1m, max: 1h}\n" },
		{ "limits: [5 requests/m], reserve: {critical: 20%}, priority: low, metadata: {a: [1, 2]}",
		  "metadata: {\"a\": [1, 2]}\n" },
		{ "value: 'f*', limits: [5 requests/m], share_threshold: true, value_to_metric: true",
		  "value_to_metric: true\n    share_threshold: true\n" },
		{ "calendar: Europe/Berlin, limits: [5 requests/m, 7 requests/month, 9 requests/30h]",
		  "limits:\n      - {rate: 5 requests/m, name: 'k', algorithm: fixed-window}\n      - {rate: 7 requests/month, name: 'k-2', algorithm: fixed-window, "
		  "calendar: Europe/Berlin}\n" },
		{ "limits: [5 requests/week], calendar: UTC, overrides: [{value: x, limits: [6 requests/m]}, "
		  "{value: y, limits: [{rate: 9 requests/d, calendar: Asia/Kolkata}]}]",
		  "- {value: y, limits: [{rate: 9 requests/d, calendar: Asia/Kolkata}]}" },
		{ "rate_limit: {unit: month, requests_per_unit: 5}, calendar: UTC",
		  "calendar: UTC\n" },
		{ "limits: [{rate: 5 requests/m, count: all, algorithm: sliding-window}]",
		  "- {rate: 5 requests/m, name: 'k', algorithm: sliding-window, count: all}\n" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ruleset *set;
		char *text;

		assert_true(asprintf(&text, D "  - {key: k, %s}\n", cases[i].rule) > 0);
		set = rules(text);
		free(text);
		assert_written(set->rule[0]);
		text = written(set->rule[0]);
		if (!strstr(text, cases[i].written))
			fail_msg("%s: %s", cases[i].rule, text);
		free(text);
		ruleset_free(set);
	}
}

TEST_MAIN
