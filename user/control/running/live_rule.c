// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* live_rule.c - see live_rule.h. */
#include "control/running/live_rule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *op;
	enum rule_edit_what what;
	bool of_value;
} rule_kinds[] = {
	{ "rule set", EDIT_SET, false },
	{ "user set", EDIT_SET, true },
	{ "user unset", EDIT_UNSET, true },
	{ "user block", EDIT_BLOCK, true },
	{ "user exempt", EDIT_EXEMPT, true },
};

#define RULE_KINDS (sizeof(rule_kinds) / sizeof(rule_kinds[0]))

static const char *rule_member(const json_t *op, const char *key)
{
	const char *text = json_string_value(json_object_get(op, key));

	return text ? text : "";
}

static size_t rule_kind_of(const json_t *op)
{
	size_t i;

	for (i = 0; i < RULE_KINDS; i++)
		if (!strcmp(rule_member(op, "op"), rule_kinds[i].op))
			break;
	return i;
}

bool live_rule_is(const json_t *op)
{
	return rule_kind_of(op) < RULE_KINDS;
}

int live_rule_apply(const json_t *op, const struct policy *policy, struct sl_err *err)
{
	size_t kind = rule_kind_of(op);

	if (!policy->http)
		return sl_err_set(err, ENOENT,
				  "the HTTP tier is not configured: sluice.yaml has no section 'http'");
	if (!rule_member(op, "name")[0] ||
	    (rule_kinds[kind].of_value && !json_is_string(json_object_get(op, "value"))))
		return sl_err_set(err, EINVAL, "a change to a rule needs the name of the rule, and one "
				  "of a user the value");
	return 0;
}

static bool same_rule_subject(const json_t *a, const json_t *b)
{
	size_t kind_a = rule_kind_of(a), kind_b = rule_kind_of(b);

	return kind_a < RULE_KINDS && kind_b < RULE_KINDS &&
	       rule_kinds[kind_a].of_value == rule_kinds[kind_b].of_value &&
	       !strcmp(rule_member(a, "name"), rule_member(b, "name")) &&
	       !strcmp(rule_member(a, "value"), rule_member(b, "value"));
}

static bool has_rule_key(const json_t *pairs, const char *pair)
{
	size_t len = strcspn(pair, "="), i;
	const json_t *other;

	json_array_foreach(pairs, i, other) {
		const char *text = json_string_value(other);

		if (text && strcspn(text, "=") == len && !strncmp(text, pair, len))
			return true;
	}
	return false;
}

/* The pairs of an earlier "rule set" that the later one does not replace, then its own. */
static json_t *merged_rule_pairs(const json_t *before, const json_t *op)
{
	json_t *pairs = json_array(), *pair;
	const json_t *own = json_object_get(op, "pairs");
	size_t i;

	json_array_foreach(json_object_get(before, "pairs"), i, pair)
		if (!has_rule_key(own, json_string_value(pair)))
			json_array_append(pairs, pair);
	json_array_extend(pairs, (json_t *)own);
	return pairs;
}

int live_rule_add(json_t *live, json_t *op)
{
	json_t *kept = json_copy(op);

	if (!kept)
		return -ENOMEM;
	for (size_t i = json_array_size(live); i-- > 0;) {
		const json_t *before = json_array_get(live, i);

		if (!same_rule_subject(before, op))
			continue;
		if (!rule_kinds[rule_kind_of(op)].of_value)
			json_object_set_new(kept, "pairs", merged_rule_pairs(before, kept));
		json_array_remove(live, i);
	}
	if (json_is_true(json_object_get(op, "forget"))) {
		json_decref(kept);
		return 0;
	}
	return json_array_append_new(live, kept) ? -ENOMEM : 0;
}

void live_rule_describe(const json_t *op, char *buf, size_t size)
{
	size_t used = (size_t)snprintf(buf, size, "%s %s", rule_member(op, "op"), rule_member(op, "name"));
	const json_t *pair;
	size_t i;

	if (rule_kinds[rule_kind_of(op)].of_value && used < size)
		used += (size_t)snprintf(buf + used, size - used, " %s", rule_member(op, "value"));
	json_array_foreach(json_object_get(op, "pairs"), i, pair)
		if (used < size)
			used += (size_t)snprintf(buf + used, size - used, " %s",
						 json_string_value(pair));
}

static json_t *pick_rules(const json_t *live, bool timed_only)
{
	json_t *list = json_array(), *op;
	size_t i;

	json_array_foreach((json_t *)live, i, op)
		if (live_rule_is(op) &&
		    (!timed_only || json_integer_value(json_object_get(op, "until_utc_ns"))))
			json_array_append(list, op);
	return list;
}

json_t *live_rules(const json_t *live)
{
	return pick_rules(live, false);
}

json_t *live_rules_timed(const json_t *live)
{
	return pick_rules(live, true);
}

/* ------------------------------------------------------------------ as edits */

static int make_rule_edit(const json_t *op, struct rule_edit *ret)
{
	const json_t *pairs = json_object_get(op, "pairs"), *pair;
	size_t kind = rule_kind_of(op), i;
	const char **text = calloc(json_array_size(pairs) + 1, sizeof(*text));

	if (!text)
		return -ENOMEM;
	json_array_foreach(pairs, i, pair)
		text[i] = json_string_value(pair) ? json_string_value(pair) : "";
	*ret = (struct rule_edit){
		.what = rule_kinds[kind].what, .rule = rule_member(op, "name"), .pair = text,
		.value = rule_kinds[kind].of_value ? rule_member(op, "value") : NULL,
		.pair_count = json_array_size(pairs),
	};
	return 0;
}

int live_rule_edits(const json_t *live, struct rule_edit **ret, size_t **ret_at,
		    size_t *ret_count)
{
	size_t size = json_array_size(live) + 1, count = 0, i;
	struct rule_edit *edit = calloc(size, sizeof(*edit));
	size_t *at = calloc(size, sizeof(*at));
	const json_t *op;
	int r = edit && at ? 0 : -ENOMEM;

	json_array_foreach((json_t *)live, i, op) {
		if (r || !live_rule_is(op))
			continue;
		r = make_rule_edit(op, &edit[count]);
		at[count] = i;
		count += !r;
	}
	if (r < 0) {
		live_rule_edits_free(edit, at, count);
		return r;
	}
	*ret = edit;
	*ret_at = at;
	*ret_count = count;
	return 0;
}

void live_rule_edits_free(struct rule_edit *edit, size_t *at, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free((void *)edit[i].pair);
	free(edit);
	free(at);
}
