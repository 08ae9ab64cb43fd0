// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rule_live.c - keys of a rule changed in a rule set that is in force: the rule is made again of
 * its draft with the change, by the same reader and checks as from a file, and the pointers to it
 * are replaced. No file is read, and no other rule changes.
 *
 * Not here: what other rules, or the place of the rule, depend on; see ruleset_edit_rule().
 */
#include <stdio.h>
#include <stdlib.h>

#include "request/rules/override_private.h"
#include "request/rules/rule_keys.h"

/* Until a set is loaded anew: what it no longer uses stays in its arena. */
#define CHANGES_MAX 10000

static const struct yaml_node no_map = { .kind = YAML_MAP };

void draft_of_rule(struct build *b, struct ruleset *set, const struct rule *rule, struct draft *ret)
{
	const struct rule_source *source = rule->source;

	b->set = set;
	b->domain = rule->domain;
	b->place = rule->place;
	snprintf(b->path, sizeof(b->path), "%s", rule->path);
	*ret = *b->usual;
	ret->b = b;
	ret->map = &no_map;
	ret->rule = *rule;
	ret->rule.metadata = json_incref(rule->metadata);
	ret->rule.overrides = NULL;
	ret->share = rule->share;
	ret->ignore = rule->depth ? rule->entry[rule->depth - 1].ignore : 0;
	ret->value_to_metric = rule->depth && rule->value_to_metric >> (rule->depth - 1) & 1;
	ret->given = source->given;
	memcpy(ret->limit_given, source->limit_given, rule->limit_count * sizeof(u64));
	for (u32 i = 0; i < rule->limit_count; i++) {
		ret->limit[i] = rule->limit[i];
		ret->limit[i].metric = 0;
		ret->limit[i].scale = 0;
		ret->limit[i].scale_until_ns = 0;
	}
	draft_take_concurrency(ret);
	if (source->defaults)
		ret->defaults = *source->defaults;
	/* As before check_draft(): without a scope it is implied; a priority alone makes a rule. */
	if (!draft_given(ret, "scope"))
		ret->defaults.terms.cluster = b->usual->defaults.terms.cluster;
	if (!draft_given(ret, "rate_limit"))
		ret->rule.unlimited = false;
}

/* Whether the rule stands where it stood, and all others are as they were. */
static bool keeps_place(const struct draft *draft, const struct rule *rule)
{
	u32 value_to_metric = rule->depth ? rule->value_to_metric >> (rule->depth - 1) & 1 : 0;

	if (!draft->rule.limit_count && (!draft->rule.unlimited || rule->overrides))
		return false;
	return draft->share == rule->share &&
	       (!rule->depth || draft->ignore == rule->entry[rule->depth - 1].ignore) &&
	       draft->value_to_metric == value_to_metric;
}

/* The rule of a draft that was checked, in place of `before`. */
static int replace(struct draft *draft, struct rule *before, const char *name)
{
	struct ruleset *set = draft->b->set;
	struct rule *rule = draft_make_rule(draft, before->source->at);

	if (!rule)
		return -ENOMEM;
	/* With a new series it is freed with the set. */
	if (ruleset_retire(set, rule) || rule_assign_series(set, rule, false))
		return -ENOENT;
	set->private->retired->rule = before;
	__atomic_store_n(before->source->at, rule, __ATOMIC_RELEASE);
	set->rule[rule->index] = rule;
	ruleset_rename(set, name, before, rule);
	set->private->live_changes++;
	set->generation++;
	return 0;
}

int ruleset_edit_rule(struct ruleset *set, struct rule_edit *edit, size_t count)
{
	struct rule *rule = (struct rule *)ruleset_find(set, edit->rule);
	struct build *b = calloc(1, sizeof(*b));
	struct draft *draft = calloc(1, sizeof(*draft));
	struct sl_err ignored;
	int rc = 1;

	if (!b || !draft || !rule || set->private->live_changes > CHANGES_MAX ||
	    build_init(b, &ignored))
		goto out;
	if (index_edits(b, edit, count))
		goto out;
	draft_of_rule(b, set, rule, draft);
	draft->overrides_now = rule->overrides;
	rc = read_edits(b, draft);
	if (!rc)
		rc = draft_add_concurrency(&b->r, draft);
	if (!rc)
		rc = check_draft(b, draft);
	for (size_t i = 0; i < count && !rc; i++)
		rc = edit[i].reason[0];
	if (!rc)
		rc = !keeps_place(draft, rule) || replace(draft, rule, edit->rule);
	draft_clear(draft);
out:
	if (b)
		build_clear(b);
	free(draft);
	free(b);
	return rc ? 1 : 0;
}
