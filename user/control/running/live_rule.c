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

static size_t rule_kind_of(const json_t *op)
{
	size_t i;

	for (i = 0; i < RULE_KINDS; i++)
		if (!strcmp(op_text(op, "op"), rule_kinds[i].op))
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
	if (!op_text(op, "name")[0] ||
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
	       !strcmp(op_text(a, "name"), op_text(b, "name")) &&
	       !strcmp(op_text(a, "value"), op_text(b, "value"));
}

int live_rule_add(json_t *live, json_t *op)
{
	json_t *kept = json_copy(op);
	int r = 0;

	if (!kept)
		return -ENOMEM;
	for (size_t i = json_array_size(live); i-- > 0;) {
		const json_t *before = json_array_get(live, i);

		if (!same_rule_subject(before, op))
			continue;
		if (!rule_kinds[rule_kind_of(op)].of_value)
			r |= op_merge_pairs(kept, before);
		json_array_remove(live, i);
	}
	if (json_is_true(json_object_get(op, "forget"))) {
		json_decref(kept);
		return 0;
	}
	return json_array_append_new(live, kept) || r ? -ENOMEM : 0;
}

size_t live_rule_describe(const json_t *op, char *buf, size_t size)
{
	const char *value = rule_kinds[rule_kind_of(op)].of_value ? op_text(op, "value") : NULL;

	return (size_t)snprintf(buf, size, "%s %s%s%s", op_text(op, "op"), op_text(op, "name"),
				value ? " " : "", value ? value : "");
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
		.what = rule_kinds[kind].what, .rule = op_text(op, "name"), .pair = text,
		.value = rule_kinds[kind].of_value ? op_text(op, "value") : NULL,
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
