// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_rule_live.c - rules changed in a rule set in force are those that reading the files with all
 * changes gives. Random changes of rules and of values, with their ends, compared field by field
 * after each.
 */
#include "request/rules/override_private.h"
#include "lib/rng.h"
#include "lib/rule_text.h"
#include "lib/temp_dir.h"

#define CHANGES 600
#define EDITS_MAX 64
#define PAIRS_MAX 48

static const char base[] =
	"domain: {name: api, limits: 1000 requests/s, priority: low}\n"
	"default: {limits: 9 requests/m, metadata: {z: 1}}\n"
	"descriptors:\n"
	"  - key: user\n"
	"    limits: [10 requests/m, {rate: 500 requests/h, algorithm: sliding-window, name: hourly}]\n"
	"    prefix: {ipv4: [32, 24], ipv6: 64}\n"
	"    overrides:\n"
	"      - {value: acme, limits: 1000 requests/m}\n"
	"      - {value: 192.0.2.7, block: true}\n"
	"    overrides_file: plans.csv\n"
	"  - key: plain\n"
	"    limits: 5 requests/s\n"
	"    descriptors:\n"
	"      - {key: below, limits: 6 requests/s}\n"
	"  - {key: bucket, algorithm: token-bucket, burst: 7, limits: [5 requests/s, {rate: 9 requests/m, burst: 3}]}\n"
	"  - {key: envoy, rate_limit: {unit: minute, requests_per_unit: 12, name: e}, metadata: {a: b}}\n"
	"  - {key: free, rate_limit: {unlimited: true}}\n"
	"  - {key: first, priority: critical}\n"
	"  - {key: common, limits: 100 requests/m, consistency: {lease: 100ms}}\n"
	"  - {key: trial, limits: [10 requests/m, {rate: 8 requests/m, mode: shadow}]}\n"
	"  - {key: glob, value: 'a*', limits: 3 requests/m, share_threshold: true}\n"
	"  - {key: wait, limits: 5 requests/m, overrides: [{value: corp, limits: {rate: 9 requests/m, algorithm: token-bucket, count: all}}]}\n"
	"  - {key: none}\n";

static const char *const rule_names[] = {
	"api/domain", "api/default", "api/user",    "api/plain", "api/plain/below",
	"api/bucket", "api/envoy",   "api/free",    "api/first", "api/common",
	"api/trial",  "api/wait",    "api/glob=a*", "api/none",	 "api/gone",
};

static const char *any_pair(void)
{
	return RNG_ANY("limits=70 requests/m", "limits=30 requests/m,300 requests/h",
		       "limits.rate=8 requests/m",
		       "limits=", "rate_limit=", "rate_limit.requests_per_unit=6",
		       "rate_limit.unit=hour", "rate_limit.name=other", "algorithm=token-bucket",
		       "algorithm=sliding-window", "algorithm=", "burst=4", "burst=", "count=all",
		       "throttle.soft=10%", "throttle=", "scope=cluster",
		       "scope=", "consistency.lease=200ms", "consistency=", "on_store_failure=open",
		       "shadow_mode=true", "shadow_mode=", "quota_mode=true",
		       "detailed_metric=true", "value_to_metric=true", "share_threshold=true",
		       "share_threshold=", "metadata.b=2", "metadata=", "prefix.ipv4=24",
		       "prefix=", "prefix=none", "priority=critical",
		       "priority=", "on_limit.wait=2s", "on_limit=", "ban.after=3 rejections/m",
		       "ban=", "push_down.after=3 rejections/s", "reserve.critical=20%", "speed=1",
		       "buckets=9", "window=first-request");
}

static const char *const value_names[] = { "acme", "192.0.2.7", "corp",	       "old",
					   "new",  "a, b",	"198.51.100.1" };

static int setup(void **state)
{
	if (temp_dir_make(state))
		return -1;
	temp_put("r.yaml", base);
	temp_put("plans.csv", "corp,70 requests/m\nold,80 requests/m\n");
	return 0;
}

/* ---- equal ---- */

static void check_limit(const struct rule_limit *x, const struct rule_limit *y)
{
	assert_string_equal(x->name, y->name);
	assert_int_equal(x->none, y->none);
	assert_int_equal(x->mode, y->mode);
	assert_int_equal(x->metric, y->metric);
	assert_int_equal(x->scale, y->scale);
	assert_int_equal(x->terms.rates.count, y->terms.rates.count);
	assert_int_equal(override_hash_limits(x, 1, false), override_hash_limits(y, 1, false));
}

static void check_values(const struct override_index *x, const struct override_index *y)
{
	u32 numbers[2];

	if (!x || !y) {
		assert_int_equal(x ? x->own_count : 0, y ? y->own_count : 0);
		return;
	}
	assert_true(!x->file == !y->file);
	assert_int_equal(x->file ? x->file->values.count : 0, y->file ? y->file->values.count : 0);
	assert_int_equal(x->own_count, y->own_count);
	assert_int_equal(x->own->values.count, y->own->values.count);
	for (u32 i = 0; i < x->own_count; i++) {
		const struct override_own *a = &x->own_list[i], *b = &y->own_list[i];

		assert_string_equal(a->value, b->value);
		assert_int_equal(a->live, b->live);
		assert_int_equal(a->in_file, b->in_file);
		assert_int_equal(a->other_text, b->other_text);
		assert_true(!a->limits == !b->limits);
		for (u32 k = 0; a->limits && k < a->limits->limit_count; k++)
			check_limit(&a->limits->limit[k], &b->limits->limit[k]);
		assert_int_equal(a->limits ? a->limits->unlimited : 2,
				 b->limits ? b->limits->unlimited : 2);
	}
	for (u32 i = 0; i < COUNT(value_names); i++) {
		u64 hash = hash_bytes(hash_seed(), 1, value_names[i], strlen(value_names[i]));
		bool found = override_table_find(x->file, hash, &numbers[0]);

		assert_int_equal(found, override_table_find(y->file, hash, &numbers[1]));
		if (found)
			check_limit(&x->file->limits[numbers[0]]->limit[0],
				    &y->file->limits[numbers[1]]->limit[0]);
	}
}

static void check_text(const struct rule *x, const struct rule *y)
{
	char *text[2];
	size_t size;

	for (int i = 0; i < 2; i++) {
		FILE *out = open_memstream(&text[i], &size);

		rule_write(i ? y : x, out, 0);
		fclose(out);
	}
	assert_string_equal(text[0], text[1]);
	free(text[0]);
	free(text[1]);
}

#define SAME(field)                                                                                \
	do {                                                                                       \
		if ((u64)x->field != (u64)y->field)                                                \
			fail_msg("%s: " #field, x->path);                                          \
	} while (0)

static void check_rule(const struct rule *x, const struct rule *y)
{
	assert_string_equal(x->domain, y->domain);
	assert_string_equal(x->path, y->path);
	assert_string_equal(x->name ? x->name : "-", y->name ? y->name : "-");
	assert_string_equal(x->file, y->file);
	assert_string_equal(x->key ? x->key : "-", y->key ? y->key : "-");
	assert_string_equal(x->value ? x->value : "-", y->value ? y->value : "-");
	SAME(line);
	SAME(index);
	SAME(id);
	SAME(metric);
	SAME(depth);
	SAME(share);
	SAME(place);
	SAME(limit_count);
	SAME(unlimited);
	SAME(shadow);
	SAME(quota_mode);
	SAME(detailed_metric);
	SAME(value_to_metric);
	SAME(live);
	SAME(envoy);
	SAME(unit);
	SAME(replaces_count);
	SAME(priority);
	SAME(has_priority);
	SAME(wait_ns);
	SAME(queue);
	SAME(push.after);
	SAME(push.step_count);
	SAME(ban.after);
	SAME(consistency);
	SAME(consistency_ns);
	SAME(on_store_failure);
	SAME(source->given);
	assert_memory_equal(&x->prefix, &y->prefix, sizeof(x->prefix));
	assert_memory_equal(x->reserve_permille, y->reserve_permille, sizeof(x->reserve_permille));
	assert_true(x->metadata == y->metadata || json_equal(x->metadata, y->metadata));
	for (u32 i = 0; i < x->limit_count; i++)
		check_limit(&x->limit[i], &y->limit[i]);
	check_values(x->overrides, y->overrides);
	check_text(x, y);
}

static void check_sets(const struct ruleset *a, const struct ruleset *b)
{
	assert_int_equal(a->rule_count, b->rule_count);
	for (u32 i = 0; i < a->rule_count; i++)
		check_rule(a->rule[i], b->rule[i]);
	for (u32 i = 0; i < COUNT(rule_names); i++) {
		const struct rule *x = ruleset_find(a, rule_names[i]),
				  *y = ruleset_find(b, rule_names[i]);

		assert_int_equal(x ? x->index : ~0U, y ? y->index : ~0U);
		if (x)
			assert_ptr_equal(x, a->rule[x->index]);
	}
}

/* What a request finds is the rule of the list. */
static void check_matches(const struct ruleset *set)
{
	static const char *const keys[] = { "user",  "plain",  "bucket", "envoy", "free",
					    "first", "common", "trial",	 "wait",  "none" };
	struct rule_match match;
	char text[64];

	assert_true(ruleset_of_domain(set, (struct bytes){ "api", 3 }) ==
		    ruleset_find(set, "api/domain"));
	for (u32 i = 0; i < COUNT(keys); i++) {
		const struct rule *rule;

		snprintf(text, sizeof(text), "api/%s", keys[i]);
		rule = ruleset_find(set, text);
		snprintf(text, sizeof(text), "%s=one", keys[i]);
		match_text(set, "api", text, &match);
		assert_ptr_equal(match.rule, rule ? rule : ruleset_find(set, "api/default"));
	}
}

/* ---- the list of changes, as live.json keeps it ---- */

struct list {
	struct rule_edit edit[EDITS_MAX];
	const char *pair[EDITS_MAX][PAIRS_MAX];
	size_t count;
};

static bool has_key(const struct rule_edit *edit, const char *pair)
{
	size_t len = strcspn(pair, "=");

	for (size_t i = 0; i < edit->pair_count; i++)
		if (strcspn(edit->pair[i], "=") == len && !strncmp(edit->pair[i], pair, len))
			return true;
	return false;
}

static bool same_subject(const struct rule_edit *a, const struct rule_edit *b)
{
	return !strcmp(a->rule, b->rule) && !a->value == !b->value &&
	       (!a->value || !strcmp(a->value, b->value));
}

/* `new` comes last; the pairs of an earlier change of the rule that it leaves stay. */
static void list_put(const struct list *from, const struct rule_edit *new, bool forget,
		     struct list *ret)
{
	const char **pair;

	ret->count = 0;
	for (size_t i = 0; i < from->count; i++)
		if (!same_subject(&from->edit[i], new)) {
			memcpy(ret->pair[ret->count], from->pair[i], sizeof(from->pair[i]));
			ret->edit[ret->count++] = from->edit[i];
		}
	if (!forget) {
		pair = ret->pair[ret->count];
		ret->edit[ret->count] = *new;
		ret->edit[ret->count].pair_count = 0;
		for (size_t i = 0; i < from->count; i++)
			for (size_t k = 0; same_subject(&from->edit[i], new) &&
					   !new->value &&k < from->edit[i].pair_count;
			     k++)
				if (!has_key(new, from->edit[i].pair[k]))
					pair[ret->edit[ret->count].pair_count++] =
						from->edit[i].pair[k];
		for (size_t k = 0; k < new->pair_count; k++)
			pair[ret->edit[ret->count].pair_count++] = new->pair[k];
		ret->count++;
	}
	for (size_t i = 0; i < ret->count; i++)
		ret->edit[i].pair = ret->pair[i];
	assert_true(ret->count < EDITS_MAX);
}

/* With the values of its rule, as control/running/http_rules.c has them. */
static int edit_in_place(struct ruleset *set, const struct list *list, const struct rule_edit *one)
{
	struct rule_edit edit[EDITS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->edit[i].value && !strcmp(list->edit[i].rule, one->rule))
			edit[count++] = list->edit[i];
	edit[count++] = *one;
	return ruleset_edit_rule(set, edit, count);
}

static int change_value(struct ruleset *set, const struct rule_edit *one, bool forget)
{
	struct override_index *old = NULL;
	int r = ruleset_edit_value(set, one, forget, &old);

	override_index_free(old);
	return r;
}

static const char *value_pair[] = { "limits=44 requests/m", "rate=3 requests/s",
				    "limits=1 requests/s,2 requests/s" };

static void random_change(struct rule_edit *ret, const char **pair)
{
	*ret = (struct rule_edit){ .what = EDIT_SET,
				   .rule = rng_text(rule_names, COUNT(rule_names)) };
	ret->pair = pair;
	if (rng_below(3) == 0) {
		ret->rule = RNG_ANY("api/user", "api/user", "api/plain", "api/bucket");
		ret->value = rng_text(value_names, COUNT(value_names));
		ret->what = rng_below(4);
		ret->pair_count = ret->what == EDIT_SET;
		pair[0] = rng_text(value_pair, COUNT(value_pair));
		return;
	}
	for (u64 count = 1 + rng_below(2); ret->pair_count < count;) {
		const char *text = any_pair();

		if (!has_key(ret, text))
			pair[ret->pair_count++] = text;
	}
}

struct tally {
	u32 rules, values, ends, whole;
};

static bool is_listed(const struct list *list, const struct rule_edit *one)
{
	for (size_t i = 0; i < list->count; i++)
		if (same_subject(&list->edit[i], one))
			return true;
	return false;
}

static void change(struct ruleset **set, struct list *list, struct tally *tally)
{
	static struct list next;
	const char *pair[PAIRS_MAX];
	struct rule_edit one;
	struct ruleset *whole;
	struct sl_err err;
	bool end, made, all = true;

	random_change(&one, pair);
	end = one.value && is_listed(list, &one) && rng_below(2);
	list_put(list, &one, end, &next);
	made = !(one.value ? change_value(*set, &one, end) : edit_in_place(*set, list, &one));
	if (ruleset_load_edited(temp_dir, *set, next.edit, next.count, &whole, &err))
		fail_msg("%s", err.message);
	for (size_t i = 0; i < next.count; i++)
		all &= next.edit[i].applied;
	if (made && !all)
		fail_msg("%s %s: made in place, but refused", one.rule,
			 one.pair_count ? one.pair[0] : "");
	if (made) {
		check_sets(*set, whole);
		check_matches(*set);
		ruleset_free(whole);
		*(one.value ? end ? &tally->ends : &tally->values : &tally->rules) += 1;
	} else if (all) {
		ruleset_free(*set);
		*set = whole;
		tally->whole++;
	} else {
		ruleset_free(whole);
		return;
	}
	*list = next;
	for (size_t i = 0; i < list->count; i++)
		list->edit[i].pair = list->pair[i];
}

TEST_WITH(test_as_the_files, setup, temp_dir_drop)
{
	static struct list list;
	struct tally tally = { 0 };
	struct ruleset *set;

	rng_start("test_rule_live");
	set = rules_edited(temp_dir, NULL, 0);
	for (u32 i = 0; i < CHANGES; i++) {
		if (i % 100 == 0) {
			ruleset_free(set);
			set = rules_edited(temp_dir, NULL, 0);
			list.count = 0;
		}
		change(&set, &list, &tally);
	}
	fprintf(stderr, "# in place: %u of rules, %u of values, %u ends; %u whole\n", tally.rules,
		tally.values, tally.ends, tally.whole);
	assert_true(tally.rules > 100 && tally.values > 20 && tally.ends > 10);
	ruleset_free(set);
}

TEST_MAIN
