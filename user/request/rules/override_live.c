// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * override_live.c - limits of one value changed in a rule set that is in force: the rule's index of
 * values is copied with the change, and the pointer to it replaced. No file is read, and no other
 * rule changes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request/rules/override_private.h"

/* Copies of a table until it is loaded anew: what they no longer use stays in its arena. */
#define COPIES_MAX 10000

/* The number of own_list that has the value, or ~0. */
static u32 find_own(const struct rule *rule, const struct override_index *index, const char *value)
{
	struct override_key key;
	u32 number;

	if (override_key_read(rule, (struct bytes){ value, strlen(value) }, &key, NULL) ||
	    !override_table_find(index->own, key.hash, &number))
		return ~0U;
	return number;
}

/* Of two texts of one address, or of one group, the order of the changes decides: it is not known
 * here. */
static bool has_other_text(const struct rule *rule, const struct override_index *index,
			   const char *value)
{
	u32 number = find_own(rule, index, value);

	return number != ~0U && (index->own_list[number].other_text ||
				 strcmp(index->own_list[number].value, value) != 0);
}

/* A value is as in the rule file again, or out where that has not got it. */
static int forget_own(const struct rule *rule, struct override_index *index, const char *value)
{
	u32 number = find_own(rule, index, value);
	struct override_own *own = number == ~0U ? NULL : &index->own_list[number];

	if (!own || !own->live)
		return 1;
	if (own->in_file) {
		own->limits = own->file_limits;
		own->live = false;
		return 0;
	}
	memmove(own, own + 1, (--index->own_count - number) * sizeof(*own));
	numbers_free(&index->own->values);
	index->own->values = (struct numbers){ .size = 0 };
	for (u32 i = 0; i < index->own_count; i++) {
		const char *text = index->own_list[i].value;
		struct override_key key;

		if (override_key_read(rule, (struct bytes){ text, strlen(text) }, &key, NULL) ||
		    override_table_add(index->own, &key, i))
			return -ENOMEM;
	}
	return 0;
}

int ruleset_edit_value(struct ruleset *set, const struct rule_edit *edit, bool forget,
		       struct override_index **ret_old)
{
	struct rule *rule = (struct rule *)ruleset_find(set, edit->rule);
	struct build *b = calloc(1, sizeof(*b));
	struct draft *draft = calloc(1, sizeof(*draft));
	struct override_index *index = NULL;
	struct sl_err ignored;
	int rc = 1;

	if (b && draft && rule && rule->limit_count && !build_init(b, &ignored))
		index = override_index_copy(rule->overrides);
	if (!index || (index->own->base && index->own->base->copies > COPIES_MAX))
		goto out;
	if (has_other_text(rule, index, edit->value))
		goto out;
	draft_of_rule(b, set, rule, draft);
	imply_scope(draft);
	/* Live ones are in the order of the changes. */
	rc = forget_own(rule, index, edit->value);
	if (!forget && rc >= 0) {
		struct making making = { .r = &b->r, .draft = draft, .table = index->own };

		rc = override_load_edit(&making, index, edit);
	}
	if (rc)
		goto out;
	*ret_old = rule->overrides;
	__atomic_store_n(&rule->overrides, index, __ATOMIC_RELEASE);
	index = NULL;
	set->generation++;
out:
	override_index_free(index);
	if (draft)
		draft_clear(draft);
	if (b)
		build_clear(b);
	free(draft);
	free(b);
	return rc ? 1 : 0;
}
