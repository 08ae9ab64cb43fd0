// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_value_live.c - limits of a value changed in a rule set in force are those that reading the
 * files with all changes gives. Random changes of a few values, compared after each.
 */
#include "request/rules/rule_edit.h"
#include "lib/rule_text.h"
#include "lib/rng.h"
#include "lib/temp_dir.h"

#define RULE "api/user"
#define CHANGES 400

static const char base[] =
	"domain: api\n"
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
	"  - {key: free, rate_limit: {unlimited: true}}\n";

static const char *const values[] = { "acme",	    "192.0.2.7",    "::ffff:192.0.2.7",
				      "corp",	    "old",	    "new",
				      "a, b",	    "198.51.100.1", "2001:db8::1",
				      "2001:db8::2" };
static const char *const pairs[] = {
	"rate=70 requests/m",  "limits=30 requests/m,300 requests/h",
	"limits=1 requests/s", "limits=1 requests/s,2 requests/s,3 requests/s",
	"rate=9 requests/s",   "speed=1"
};
#define VALUES COUNT(values)

static int setup(void **state)
{
	if (temp_dir_make(state))
		return -1;
	temp_put("r.yaml", base);
	temp_put("plans.csv", "corp,70 requests/m\nold,80 requests/m\n");
	return 0;
}

static struct bytes bytes_of(const char *text)
{
	return (struct bytes){ text, strlen(text) };
}

static void check_same(const struct ruleset *a, const struct ruleset *b, const char *rule,
		       const char *value)
{
	const struct rule *one = ruleset_find(a, rule), *other = ruleset_find(b, rule);
	const struct override_limits *x =
		override_value_find(one, &(struct bytes){ value, strlen(value) });
	const struct override_limits *y =
		override_value_find(other, &(struct bytes){ value, strlen(value) });
	bool in_file[2], live[2], other_text;

	if (!x != !y)
		fail_msg("%s: limits in one only", value);
	override_value_where(one, bytes_of(value), &in_file[0], &live[0], &other_text);
	override_value_where(other, bytes_of(value), &in_file[1], &live[1], &other_text);
	assert_int_equal(in_file[0], in_file[1]);
	assert_int_equal(live[0], live[1]);
	assert_int_equal(override_values(one), override_values(other));
	if (!x)
		return;
	assert_int_equal(x->unlimited, y->unlimited);
	assert_int_equal(x->limit_count, y->limit_count);
	for (u32 i = 0; i < x->limit_count; i++) {
		assert_string_equal(x->limit[i].name, y->limit[i].name);
		assert_int_equal(x->limit[i].none, y->limit[i].none);
		assert_int_equal(x->limit[i].terms.rates.rate[0].count,
				 y->limit[i].terms.rates.rate[0].count);
		assert_int_equal(x->limit[i].terms.rates.rate[0].period_ns,
				 y->limit[i].terms.rates.rate[0].period_ns);
		assert_int_equal(x->limit[i].terms.rates.burst[0],
				 y->limit[i].terms.rates.burst[0]);
		assert_int_equal(x->limit[i].terms.algorithm, y->limit[i].terms.algorithm);
		assert_int_equal(x->limit[i].terms.cluster, y->limit[i].terms.cluster);
	}
}

/* The list of changes with another one: the last of each value, as live.json keeps them. */
static size_t put_edit(struct rule_edit *edit, size_t count, const struct rule_edit *new,
		       bool forget)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(edit[i].value, new->value) || strcmp(edit[i].rule, new->rule))
			continue;
		memmove(&edit[i], &edit[i + 1], (--count - i) * sizeof(*edit));
		break;
	}
	if (!forget)
		edit[count++] = *new;
	return count;
}

static bool change(struct ruleset **set, struct rule_edit *edit, size_t *count, const char *dir)
{
	const char *pair[2] = { rng_text(pairs, COUNT(pairs)), "burst=4" };
	static const char *kept[CHANGES][2];
	static u32 next;
	struct rule_edit all[3 * VALUES], one = {
		.what = rng_below(4),
		.rule = RNG_ANY(RULE, RULE, "api/plain", "api/free", "api/none"),
		.value = rng_text(values, VALUES),
	};
	const struct rule *rule = ruleset_find(*set, one.rule);
	bool in_file = false, live = false, other_text, forget, made;
	struct override_index *old = NULL;
	struct ruleset *whole;
	size_t now;

	if (one.what == EDIT_SET) {
		memcpy(kept[next], pair, sizeof(pair));
		one.pair = kept[next++];
		one.pair_count = 1 + !strncmp(pair[0], "rate", 4) * rng_below(2);
	}
	if (rule)
		override_value_where(rule, bytes_of(one.value), &in_file, &live, &other_text);
	forget = one.what == EDIT_UNSET && !in_file && live;
	memcpy(all, edit, *count * sizeof(*edit));
	now = put_edit(all, *count, &one, forget);
	made = !ruleset_edit_value(*set, &one, forget, &old);
	if (made)
		override_index_free(old);
	whole = rules_edited(dir, all, now);
	if (made || forget || all[now - 1].applied) {
		if (!forget && !all[now - 1].applied)
			fail_msg("%s: made in place, but refused: %s", one.value,
				 all[now - 1].reason);
		memcpy(edit, all, now * sizeof(*edit));
		*count = now;
		if (!made) {
			ruleset_free(*set);
			*set = whole;
			whole = NULL;
		}
	}
	for (size_t i = 0; whole && made && i < VALUES; i++) {
		check_same(*set, whole, RULE, values[i]);
		check_same(*set, whole, "api/plain", values[i]);
	}
	ruleset_free(whole);
	return made;
}

TEST_WITH(test_as_the_files, setup, temp_dir_drop)
{
	struct rule_edit edit[3 * VALUES];
	struct ruleset *set;
	size_t count = 0;
	u32 made = 0;

	rng_start("test_value_live");
	set = rules_edited(temp_dir, NULL, 0);
	for (u32 i = 0; i < CHANGES; i++)
		made += change(&set, edit, &count, temp_dir);
	fprintf(stderr, "# %u of %u in place, %zu kept\n", made, CHANGES, count);
	assert_true(made > CHANGES / 4);
	ruleset_free(set);
}

/* What others read stays as it was until it is freed; no other value and no other rule changes. */
TEST_WITH(test_readers, setup, temp_dir_drop)
{
	struct ruleset *set = rules_edited(temp_dir, NULL, 0);
	const struct rule *rule = ruleset_find(set, RULE);
	const struct override_limits *was =
		override_value_find(rule, &(struct bytes){ "acme", strlen("acme") });
	const struct override_index *plain = ruleset_find(set, "api/plain")->overrides;
	struct rule_edit one = { .what = EDIT_BLOCK, .rule = RULE, .value = "acme" };
	struct override_index *old;
	u64 generation = set->generation;

	assert_int_equal(ruleset_edit_value(set, &one, false, &old), 0);
	assert_int_equal(was->limit[0].terms.rates.rate[0].count, 1000);
	assert_true(override_value_find(rule, &(struct bytes){ "acme", strlen("acme") })
			    ->limit[0]
			    .none);
	assert_ptr_equal(ruleset_find(set, RULE), rule);
	assert_ptr_equal(ruleset_find(set, "api/plain")->overrides, plain);
	assert_int_equal(set->generation, generation + 1);
	override_index_free(old);
	assert_int_equal(override_value_find(rule, &(struct bytes){ "corp", strlen("corp") })
				 ->limit[0]
				 .terms.rates.rate[0]
				 .count,
			 70);
	ruleset_free(set);
}

TEST_MAIN
