// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * override_live.c - limits of one value changed in a rule set that is in force: the rule's index of values
 * is copied with the change, and the pointer to it replaced. No file is read, and no other rule changes.
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
	struct bytes key;
	u32 number;

	if (override_value_reason(rule, (struct bytes){ value, strlen(value) }, &key) ||
	    !override_table_find(index->own, override_hash(rule, key), &number))
		return ~0U;
	return number;
}

/* Of two texts of one address, or of one group, the order of the changes decides: it is not known here. */
static bool has_other_text(const struct rule *rule, const struct override_index *index, const char *value)
{
	u32 number = find_own(rule, index, value);

	return number != ~0U && (index->own_list[number].other_text ||
				 strcmp(index->own_list[number].value, value) != 0);
}

/* Takes out a value that no file has. */
static int forget_own(const struct rule *rule, struct override_index *index, const char *value)
{
	u32 number = find_own(rule, index, value);

	if (number == ~0U || index->own_list[number].in_file)
		return 1;
	index->own_list[number] = index->own_list[--index->own_count];
	numbers_free(&index->own->values);
	index->own->values = (struct numbers){ .size = 0 };
	for (u32 i = 0; i < index->own_count; i++) {
		const char *text = index->own_list[i].value;
		struct bytes key;

		if (override_value_reason(rule, (struct bytes){ text, strlen(text) }, &key) ||
		    numbers_add(&index->own->values, override_hash(rule, key), i))
			return -ENOMEM;
	}
	return 0;
}

static struct override_index *index_copy(const struct override_index *from)
{
	struct override_index *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->own = from ? override_table_copy(from->own) : override_table_new();
	copy->own_count = from ? from->own_count : 0;
	copy->own_list = override_array_copy(from ? from->own_list : NULL, copy->own_count,
					     sizeof(*copy->own_list));
	if (from && from->file_text)
		copy->file_text = strdup(from->file_text);
	if (from && from->file) {
		copy->file = from->file;
		copy->file->users++;
	}
	if (copy->own && copy->own_list && !copy->file_text == !(from && from->file_text))
		return copy;
	override_index_free(copy);
	return NULL;
}

/* The rule as while it was loaded, but for the defaults of limits that it does not have. */
static void draft_of(struct build *b, struct ruleset *set, const struct rule *rule, struct sl_err *err,
		     struct draft *ret)
{
	b->set = set;
	b->r.err = err;
	b->r.file = "";
	b->r.subject = "";
	b->domain = rule->domain;
	b->place = rule->place;
	snprintf(b->path, sizeof(b->path), "%s", rule->path);
	ret->b = b;
	ret->rule = *rule;
	for (u32 i = 0; i < rule->limit_count; i++) {
		ret->limit[i] = rule->limit[i];
		ret->limit[i].scale = 0;
		ret->limit[i].scale_until_ns = 0;
	}
}

/* Whether a value's limits are each like one of the rule's: the others need the defaults of the file. */
static bool are_like_the_rule(const struct draft *draft, const struct override_index *index,
			      const char *value)
{
	u32 number = find_own(&draft->rule, index, value);
	const struct override_limits *limits;

	if (number == ~0U)
		return false;
	limits = index->own_list[number].limits;
	return !limits || !limits->limit_count || override_enforced_limit(draft, limits->limit_count - 1);
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

	if (b && draft && rule && rule->limit_count)
		index = index_copy(rule->overrides);
	if (!index || (index->own->base && index->own->base->copies > COPIES_MAX))
		goto out;
	if (has_other_text(rule, index, edit->value))
		goto out;
	draft_of(b, set, rule, &ignored, draft);
	if (forget) {
		rc = forget_own(rule, index, edit->value);
	} else {
		struct making making = { .r = &b->r, .draft = draft, .table = index->own };

		rc = override_load_edit(&making, index, edit);
		rc = rc ? rc : !are_like_the_rule(draft, index, edit->value);
	}
	if (rc)
		goto out;
	*ret_old = rule->overrides;
	__atomic_store_n(&rule->overrides, index, __ATOMIC_RELEASE);
	index = NULL;
	set->generation++;
out:
	override_index_free(index);
	free(draft);
	free(b);
	return rc ? 1 : 0;
}
