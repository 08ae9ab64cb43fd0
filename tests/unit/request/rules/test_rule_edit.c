// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Live changes to rules: their effect, which are left out and why, and the same as a file's text,
 * which must load to the running rules.
 */
#include <unistd.h>

#include "request/rules/rule_edit.h"
#include "lib/rule_text.h"

#include "lib/temp_dir.h"

static char file[256];

static const char base[] =
	"# what is said about it\n"
	"domain: api\n"
	"descriptors:\n"
	"  - key: user\n"
	"    limits: [10 requests/m, {rate: 500 requests/h, algorithm: sliding-window, name: hourly}]\n"
	"    prefix: {ipv4: [32, 24], ipv6: 64}\n"
	"    prefix_scale: {ipv4: [1, 16]}\n"
	"    overrides:\n"
	"      - {value: acme, limits: 1000 requests/m}\n"
	"      - {value: 192.0.2.7, block: true}\n"
	"    overrides_file: plans.csv\n"
	"    metadata: {a: '1', b: 1, c: -1.5, d: true, e: 'true', f: [x, {y: ''}], g: , h: {}}\n"
	"    descriptors:\n"
	"      - {key: path, value: '/it''s', rate_limit: {unit: day, requests_per_unit: 5}}\n"
	"  - key: other\n"
	"    rate_limit: {unlimited: true}\n";

static int setup(void **state)
{
	if (temp_dir_make(state))
		return -1;
	snprintf(file, sizeof(file), "%s", temp_path("r.yaml"));
	temp_put("r.yaml", base);
	temp_put("plans.csv", "corp,70 requests/m\nold,80 requests/m\n");
	return 0;
}

static u64 own_count(const struct ruleset *set, const char *value)
{
	const struct override_limits *limits = override_value_find(
		ruleset_find(set, "api/user"), &(struct bytes){ value, strlen(value) });

	if (!limits)
		return 0;
	return limits->unlimited       ? 999
	       : limits->limit[0].none ? 998
				       : limits->limit[0].terms.rates.rate[0].count;
}

/* clang-format off */
#define PAIRS(...) (const char *const[]){ __VA_ARGS__ }, \
	sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), .reason = ""
/* clang-format on */
#define NO_PAIRS NULL, 0, .reason = ""

static struct rule_edit edits[] = {
	{ EDIT_SET, "api/user", NULL,
	  PAIRS("limits=20 requests/m", "algorithm=token-bucket", "burst=7", "throttle.soft=10%",
		"prefix_scale=", "prefix.ipv4=") },
	{ EDIT_SET, "api/user/path=/it's", NULL, PAIRS("rate_limit.requests_per_unit=6") },
	{ EDIT_SET, "api/other", NULL, PAIRS("rate_limit=", "limits=1 requests/s") },
	{ EDIT_SET, "api/user", "acme", PAIRS("rate=2000 requests/m", "burst=9") },
	{ EDIT_SET, "api/user", "new, one", PAIRS("limits=30 requests/m,300 requests/h") },
	{ EDIT_UNSET, "api/user", "::ffff:192.0.2.7", NO_PAIRS },
	{ EDIT_BLOCK, "api/user", "eve", NO_PAIRS },
	{ EDIT_EXEMPT, "api/user", "root", NO_PAIRS },
	{ EDIT_UNSET, "api/user", "old", NO_PAIRS },
};

static void check_edited(const struct ruleset *set)
{
	const struct rule *rule = ruleset_find(set, "api/user");

	assert_int_equal(rule->limit_count, 1);
	assert_int_equal(rule->limit[0].terms.rates.rate[0].count, 20);
	assert_int_equal(rule->limit[0].terms.algorithm, SL_ALGO_TOKEN_BUCKET);
	assert_int_equal(rule->limit[0].terms.rates.burst[0], 7);
	assert_int_equal(rule->limit[0].terms.throttle.soft_permille, 100);
	assert_int_equal(rule->prefix.count[SL_V4], 1);
	assert_int_equal(rule->prefix.len[SL_V6][0], 64);
	assert_int_equal(
		ruleset_find(set, "api/user/path=/it's")->limit[0].terms.rates.rate[0].count, 6);
	assert_int_equal(ruleset_find(set, "api/other")->limit[0].terms.rates.rate[0].count, 1);
	assert_int_equal(own_count(set, "acme"), 2000);
	assert_int_equal(own_count(set, "new, one"), 30);
	assert_int_equal(own_count(set, "192.0.2.7"), 0);
	assert_int_equal(own_count(set, "eve"), 998);
	assert_int_equal(own_count(set, "root"), 999);
	assert_int_equal(own_count(set, "old"), 0);
	assert_int_equal(own_count(set, "corp"), 70);
	assert_int_equal(own_count(set, "innocent"), 0);
}

TEST(test_edits)
{
	struct ruleset *set = rules_edited(temp_dir, edits, COUNT(edits));

	for (size_t i = 0; i < COUNT(edits); i++)
		if (!edits[i].applied)
			fail_msg("edit %zu: %s", i, edits[i].reason);
	check_edited(set);
	assert_true(ruleset_find(set, "api/user")->live);
	ruleset_free(set);
	/* and without them it is the file's again */
	set = rules_edited(temp_dir, NULL, 0);
	assert_int_equal(ruleset_find(set, "api/user")->limit_count, 2);
	assert_false(ruleset_find(set, "api/user")->live);
	assert_int_equal(own_count(set, "acme"), 1000);
	assert_int_equal(own_count(set, "old"), 80);
	ruleset_free(set);
}

/* Part of a key is changed beside what the file has; keys of the whole rule apply to its limits. */
TEST(test_parts)
{
	struct rule_edit parts[] = {
		{ EDIT_SET, "api/user", NULL,
		  PAIRS("limits.rate=30 requests/m", "metadata.b=2", "consistency.lease=200ms",
			"on_limit.wait=2s") },
		{ EDIT_SET, "api/user", NULL,
		  PAIRS("on_limit.queue=7", "push_down.after=3 rejections/s",
			"push_down.steps=tag,drop") },
	};
	struct ruleset *set = rules_edited(temp_dir, parts, 2);
	const struct rule *rule = ruleset_find(set, "api/user");

	assert_string_equal(parts[0].reason, "");
	assert_string_equal(parts[1].reason, "");
	assert_int_equal(rule->limit_count, 1);
	assert_int_equal(rule->limit[0].terms.rates.rate[0].count, 30);
	assert_true(rule->limit[0].terms.cluster);
	assert_int_equal(rule->consistency, CONSISTENCY_LEASE);
	assert_int_equal(rule->wait_ns, 2 * SL_NS_PER_SEC);
	assert_int_equal(rule->queue, 7);
	assert_int_equal(rule->push.step_count, 2);
	assert_int_equal(rule->push.step_ns, 60 * SL_NS_PER_SEC);
	assert_string_equal(json_string_value(json_object_get(rule->metadata, "b")), "2");
	assert_true(json_is_real(json_object_get(rule->metadata, "c")));
	assert_string_equal(json_string_value(json_object_get(rule->metadata, "a")), "1");
	assert_int_equal(rule->prefix.scale[SL_V4][1], 16);
	assert_int_equal(own_count(set, "acme"), 1000);
	ruleset_free(set);
}

/* Each alone, since a rule takes all its changes or none; the rule stays as in the file. */
TEST(test_refused)
{
	static const struct {
		const char *rule, *pair, *words;
	} refused[] = {
		{ "api/user", "prefix.ipv4=24", "2 multipliers for 1 prefix length" },
		{ "api/user", "overrides.x=1", "overrides: accepted: user set" },
		{ "api/user", "buckets=10", "buckets is given, but algorithm is fixed-window" },
		{ "api/user", "count=all", "" },
		{ "api/user", "on_store_failure=open", "" },
		{ "api/user", "metadata=x", "a mapping" },
		{ "api/user/path=/it's", "limits=1 requests/s", "limits beside rate_limit" },
		{ "api/user/path=/it's", "rate_limit.unit=", "key \"unit\" is missing" },
		{ "api/other", "on_limit.wait=1s", "this is unlimited" },
	};

	for (size_t i = 0; i < COUNT(refused); i++) {
		const char *const pair[] = { refused[i].pair };
		struct rule_edit edit = { EDIT_SET, refused[i].rule, NULL, pair, 1, .reason = "" };
		struct ruleset *set = rules_edited(temp_dir, &edit, 1);
		bool good = !refused[i].words[0];

		if (edit.applied != good || !strstr(edit.reason, refused[i].words))
			fail_msg("%s: %d \"%s\"", refused[i].pair, edit.applied, edit.reason);
		assert_int_equal(ruleset_find(set, refused[i].rule)->live, good);
		assert_int_equal(own_count(set, "acme"), 1000);
		ruleset_free(set);
	}
}

TEST(test_left_out)
{
	struct rule_edit bad[] = {
		{ EDIT_SET, "api/gone", NULL, PAIRS("limits=1 requests/s") },
		{ EDIT_SET, "api/gone", "x", PAIRS("limits=1 requests/s") },
		{ EDIT_SET, "api/user", NULL, PAIRS("burst=5") },
		{ EDIT_SET, "api/user/path=/it's", NULL, PAIRS("key=x") },
		{ EDIT_SET, "api/other", "x", PAIRS("limits=1 requests/s") },
		{ EDIT_SET, "api/user", "x", PAIRS("limits=1 packets/s") },
		{ EDIT_SET, "api/user", "y", PAIRS("limit=1 requests/s") },
		{ EDIT_UNSET, "api/user", "nobody", NO_PAIRS },
		{ EDIT_SET, "api/user", "good", PAIRS("limits=40 requests/m") },
	};
	static const char *const words[] = {
		"there is no rule \"api/gone\"", "there is no rule",
		"algorithm is fixed-window",	 "key: accepted: the file",
		"the rule is unlimited",	 "accepted here: requests",
		"unknown key \"limit\"",	 "nobody has no limits of its own",
	};
	struct ruleset *set = rules_edited(temp_dir, bad, COUNT(bad));

	for (size_t i = 0; i < COUNT(words); i++)
		if (bad[i].applied || !strstr(bad[i].reason, words[i]))
			fail_msg("edit %zu: %d \"%s\", wanted \"%s\"", i, bad[i].applied,
				 bad[i].reason, words[i]);
	assert_true(bad[8].applied);
	assert_int_equal(own_count(set, "good"), 40);
	assert_int_equal(own_count(set, "acme"), 1000);
	assert_int_equal(ruleset_find(set, "api/user")->limit_count, 2);
	ruleset_free(set);
}

/* The saved text loads, without the changes, to the running rules; saving again keeps these. */
TEST(test_saved)
{
	size_t count = COUNT(edits), size, again_size;
	struct ruleset *set = rules_edited(temp_dir, edits, count), *saved;
	char *metadata = json_dumps(ruleset_find(set, "api/user")->metadata, JSON_SORT_KEYS),
	     *later;
	char *text, *again;
	struct sl_err err;

	assert_int_equal(rule_file_edited(file, set, edits, 0, &text, &size, &err), 0);
	assert_null(text);
	if (rule_file_edited(file, set, edits, count, &text, &size, &err))
		fail_msg("%s", err.message);
	assert_non_null(text);
	temp_put("r.yaml", text);
	saved = rules_edited(temp_dir, NULL, 0);
	check_edited(saved);
	later = json_dumps(ruleset_find(saved, "api/user")->metadata, JSON_SORT_KEYS);
	assert_string_equal(metadata, later);
	assert_int_equal(rule_file_edited(file, saved, edits, count, &again, &again_size, &err), 0);
	temp_put("r.yaml", again ? again : text);
	ruleset_free(saved);
	saved = rules_edited(temp_dir, NULL, 0);
	check_edited(saved);
	temp_put("r.yaml", base);
	free(metadata);
	free(later);
	free(text);
	free(again);
	ruleset_free(saved);
	ruleset_free(set);
}

/* A file that changed since it was loaded: what no longer applies is not lost, the rest is
 * saved. */
TEST(test_changed_file)
{
	struct rule_edit edit[] = {
		{ EDIT_SET, "api/user", NULL, PAIRS("limits=20 requests/m") },
		{ EDIT_UNSET, "api/user", "acme", NO_PAIRS },
	};
	struct ruleset *set = rules_edited(temp_dir, edit, 2);
	struct sl_err err;
	char *text;
	size_t size;

	temp_put("r.yaml", "domain: api\ndescriptors:\n  - {key: other, limits: 1 requests/s}\n");
	assert_int_equal(rule_file_edited(file, set, edit, 2, &text, &size, &err), -EINVAL);
	assert_non_null(strstr(err.message, "no rule \"api/user\""));
	assert_non_null(strstr(err.message, "reload first"));
	temp_put("r.yaml", "domain: api\ndescriptors:\n"
			   "  - {key: user, limits: 1 requests/s}  # as is\n");
	assert_int_equal(rule_file_edited(file, set, edit, 2, &text, &size, &err), 0);
	assert_string_equal(text, "domain: api\ndescriptors:\n"
				  "  - {key: user, limits: 20 requests/m}  # as is\n");
	free(text);
	temp_put("r.yaml", base);
	ruleset_free(set);
}

/* An alias' content is the rule's own: a change does not change the anchor's rule, live or
 * saved. */
TEST(test_aliased)
{
	struct rule_edit edit[] = {
		{ EDIT_SET, "api/two", NULL, PAIRS("rate_limit.requests_per_unit=7") },
		{ EDIT_SET, "api/two", NULL, PAIRS("consistency={lease: 50ms}") },
		{ EDIT_SET, "api/two", NULL, PAIRS("on_store_failure=closed") },
	};
	const struct rule *one, *two;
	struct ruleset *set;
	struct sl_err err;
	size_t size;
	char *text;

	temp_put("r.yaml", "domain: api\n"
			   "descriptors:\n"
			   "  - key: one\n"
			   "    rate_limit: &plan {unit: minute, requests_per_unit: 5}\n"
			   "  - {key: two, rate_limit: *plan}\n"
			   "  - {key: three, rate_limit: {<<: *plan, unit: hour}}\n");
	set = rules_edited(temp_dir, edit, 3);
	for (int i = 0; i < 3; i++)
		if (!edit[i].applied)
			fail_msg("edit %d: %s", i, edit[i].reason);
	assert_int_equal(rule_file_edited(file, set, edit, 3, &text, &size, &err), 0);
	temp_put("r.yaml", text);
	ruleset_free(set);
	set = rules_edited(temp_dir, NULL, 0);
	one = ruleset_find(set, "api/one");
	two = ruleset_find(set, "api/two");
	assert_int_equal(one->limit[0].terms.rates.rate[0].count, 5);
	assert_false(one->limit[0].terms.cluster);
	assert_int_equal(two->limit[0].terms.rates.rate[0].count, 7);
	assert_true(two->limit[0].terms.cluster);
	assert_int_equal(two->consistency, CONSISTENCY_LEASE);
	assert_int_equal(two->on_store_failure, STORE_FAILS_CLOSED);
	assert_int_equal(ruleset_find(set, "api/three")->unit, REQUEST_UNIT_HOUR);
	assert_string_equal(text,
			    "domain: api\n"
			    "descriptors:\n"
			    "  - key: one\n"
			    "    rate_limit: &plan {unit: minute, requests_per_unit: 5}\n"
			    "  - {key: two, rate_limit: {unit: minute, requests_per_unit: 7}, "
			    "consistency: {lease: 50ms}, on_store_failure: closed}\n"
			    "  - {key: three, rate_limit: {<<: *plan, unit: hour}}\n");
	free(text);
	ruleset_free(set);
	temp_put("r.yaml", base);
}

int main(void)
{
	return test_run(setup, temp_dir_drop);
}
