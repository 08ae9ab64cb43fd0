// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rule_edit.c - see rule_edit.h: finds the changes of a rule, and reads them by the rows of its
 * keys.
 */
#include "request/rules/rule_edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "request/rules/override_private.h"
#include "conf/pair.h"
#include "conf/config_text.h"

/* ---- the edits of a rule ---- */

static u64 rule_name_hash(const char *name)
{
	return hash_bytes(hash_seed(), 4, name, strlen(name));
}

/* The first and the last edit of a rule: others may be in between. */
struct edit_span {
	const char *rule;
	size_t first, last;
};

int index_edits(struct build *b, struct rule_edit *edit, size_t count)
{
	b->edit = edit;
	b->edit_count = count;
	for (size_t i = 0; i < count; i++) {
		u64 hash = rule_name_hash(edit[i].rule);
		struct edit_span *span;
		u32 at = hash;

		edit[i].applied = false;
		edit[i].reason[0] = 0;
		while ((span = index_next(&b->edits, hash, &at)))
			if (!strcmp(span->rule, edit[i].rule))
				break;
		if (span) {
			span->last = i;
			continue;
		}
		span = arena_alloc(&b->scratch, sizeof(*span));
		if (!span)
			return -ENOMEM;
		*span = (struct edit_span){ edit[i].rule, i, i };
		if (index_add(&b->edits, hash, span))
			return -ENOMEM;
	}
	return 0;
}

static const struct edit_span *span_of(const struct build *b)
{
	char name[REQUEST_DOMAIN_MAX + sizeof(b->path) + 2];
	const struct edit_span *span;
	u64 hash;
	u32 at;

	if (!b->edit_count)
		return NULL;
	snprintf(name, sizeof(name), "%s/%s", b->domain, b->path);
	at = hash = rule_name_hash(name);
	while ((span = index_next(&b->edits, hash, &at)))
		if (!strcmp(span->rule, name))
			break;
	return span;
}

struct rule_edit *next_edit(const struct build *b, size_t *at)
{
	const struct edit_span *span = span_of(b);
	size_t i;

	if (!span)
		return NULL;
	for (i = *at > span->first ? *at : span->first; i <= span->last; i++) {
		if (strcmp(b->edit[i].rule, span->rule))
			continue;
		*at = i + 1;
		return &b->edit[i];
	}
	return NULL;
}

void refuse_edits(struct build *b, bool of_values, const char *reason)
{
	struct rule_edit *edit;
	size_t at = 0;

	while ((edit = next_edit(b, &at))) {
		if (!edit->value == of_values)
			continue;
		edit->applied = false;
		if (!edit->reason[0])
			snprintf(edit->reason, sizeof(edit->reason), "%.*s",
				 (int)config_text_cut(reason, sizeof(edit->reason) - 1), reason);
	}
}

/* ---- a rule's keys ---- */

/* Keys that identify a rule, and those that other commands change. */
static int check_key(const char *subject, const char *pair, struct sl_err *err)
{
	static const char *const fixed[] = {
		"key", "value", "descriptors", "name", "overrides", "overrides_file",
	};
	size_t len = strcspn(pair, ".=");

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		if (strlen(fixed[i]) == len && !strncmp(pair, fixed[i], len))
			return sl_err_set(
				err, EINVAL, "%s: %s: accepted: %s", subject, fixed[i],
				i < 4 ? "the file, and reload"
				      : "user set and user unset, or the file and reload");
	return 0;
}

bool has_edits(const struct build *b)
{
	const struct rule_edit *edit;
	size_t at = 0;

	while ((edit = next_edit(b, &at)))
		if (!edit->value)
			return true;
	return false;
}

int read_edits(struct build *b, struct draft *draft)
{
	struct rule_edit *edit;
	size_t at = 0;
	int rc = 0;

	draft->rule.live = true;
	while (!rc && (edit = next_edit(b, &at))) {
		if (edit->value)
			continue;
		for (size_t i = 0; i < edit->pair_count && !rc; i++)
			rc = check_key(b->r.subject, edit->pair[i], b->r.err);
		if (!rc)
			rc = pairs_read(&b->r, draft_keys(draft), draft, (char *const *)edit->pair,
					edit->pair_count);
		edit->applied = !rc;
	}
	memset(draft->limit_at, 0, sizeof(draft->limit_at)); /* of trees that are freed */
	return rc;
}
