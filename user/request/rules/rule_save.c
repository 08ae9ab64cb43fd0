// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rule_save.c - live changes into the text of a rule file.
 *
 * The file is read with its live changes. Of each rule that has some, the keys are written by their
 * rows before and after them, and the difference goes into the rule's mapping, as with sluice.yaml
 * (config/write_into.c). The edited text is read the same way: then nothing may differ.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "request/rules/override_private.h"
#include "conf/config_text.h"
#include "conf/text_edit.h"
#include "conf/tree_merge.h"

/* A rule with live changes. */
struct saved_rule {
	struct yaml_node *map; /* while its file is read */
	int line;
	struct written before, after;
	struct writer w; /* to `before`; out: NULL when it is complete */
};

struct saving {
	struct saved_rule *rule;
	size_t count;
	struct written edited;	    /* the text; NULL: it needs no change */
	const struct saving *saved; /* what this text was edited for; or NULL */
};

/* ---- while the file is read ---- */

/* The keys that are given; `overrides` are written apart: the draft has them as nodes. */
static int write_draft(struct writer *w, const struct draft *draft)
{
	const struct keys *keys = draft_keys(draft);
	u64 given = draft->given;

	for (size_t i = 0; i < keys->count; i++)
		if (!strncmp(keys->key[i].name, "overrides", 9))
			given &= ~(1ULL << i);
	keys_write_given(w, keys, draft, given);
	return w->failed ? -ENOMEM : 0;
}

int saving_begin(struct build *b, const struct draft *draft)
{
	struct saving *saving = b->saving;
	struct saved_rule *rule;
	size_t at = 0;

	if (!saving || !next_edit(b, &at))
		return 0;
	if (append(saving->rule, saving->count,
		   (struct saved_rule){ .map = (struct yaml_node *)draft->map,
					.line = draft->map->line }))
		return -ENOMEM;
	rule = &saving->rule[saving->count - 1];
	rule->w.out = open_memstream(&rule->before.text, &rule->before.size);
	return rule->w.out ? write_draft(&rule->w, draft) : -ENOMEM;
}

int saving_end(struct build *b, const struct draft *draft)
{
	struct saving *saving = b->saving;
	struct saved_rule *rule = saving && saving->count ? &saving->rule[saving->count - 1] : NULL;
	struct writer after = { .failed = false };
	int rc;

	if (!rule || rule->map != draft->map || !rule->w.out)
		return 0;
	after.out = open_memstream(&rule->after.text, &rule->after.size);
	if (!after.out)
		return -ENOMEM;
	rc = write_draft(&after, draft);
	override_write_own(&rule->w, draft, false, ~0U);
	override_write_own(&after, draft, true, ~0U);
	rc |= fclose(after.out) | fclose(rule->w.out);
	rule->w.out = NULL;
	return rc ? -ENOMEM : 0;
}

static void saving_free(struct saving *saving)
{
	for (size_t i = 0; i < saving->count; i++) {
		if (saving->rule[i].w.out)
			fclose(saving->rule[i].w.out);
		free(saving->rule[i].before.text);
		free(saving->rule[i].after.text);
	}
	free(saving->rule);
	free(saving->edited.text);
}

static int cannot(struct sl_err *err, const char *path, int line)
{
	return sl_err_at(err, EINVAL, path, line, 0,
			 "the changes of this rule cannot be written into "
			 "the file; accepted: the same changes by hand, and reload");
}

static bool same(const struct written *a, const struct written *b)
{
	return a->size == b->size && !memcmp(a->text, b->text, a->size);
}

/* The file now has each rule as it was with its live changes. */
static int check_saved(const struct build *b, const struct saving *saving)
{
	const struct saving *saved = saving->saved;
	size_t i = 0;

	while (i < saving->count && i < saved->count &&
	       same(&saving->rule[i].before, &saved->rule[i].after))
		i++;
	if (i == saving->count && i == saved->count)
		return 0;
	return cannot(b->r.err, b->file, i < saved->count ? saved->rule[i].line : 0);
}

/* The rules that differ. */
int saving_text(struct build *b, const char *text, size_t size)
{
	struct saving *saving = b->saving;
	bool any = false;
	int rc = 0;

	if (saving && saving->saved)
		return check_saved(b, saving);
	for (size_t i = 0; saving && i < saving->count && !rc; i++) {
		const struct saved_rule *rule = &saving->rule[i];
		struct yaml_node *map = rule->map;

		if (same(&rule->before, &rule->after))
			continue;
		any = true;
		rc = tree_merge(b->tree, &map, &rule->before, &rule->after, b->r.err);
		if (!rc && map != rule->map)
			rc = cannot(b->r.err, b->file, rule->line);
	}
	return rc || !any ? rc
			  : text_edit(b->file, text, size, b->tree->root, &saving->edited.text,
				      &saving->edited.size, b->r.err);
}

/* ---- the file ---- */

/*
 * All changes to rules that the running set has from this file must apply to it, except the removal
 * of what is gone: a save that failed after this file is repeated.
 */
static int check_applied(const char *path, const struct ruleset *set, const struct rule_edit *edit,
			 size_t count, struct sl_err *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct rule *rule = ruleset_find(set, edit[i].rule);

		if (rule && !strcmp(rule->file, path) && !edit[i].applied &&
		    edit[i].what != EDIT_UNSET)
			return sl_err_at(err, EINVAL, path, 0, 0,
					 "a live change does not apply to the "
					 "file, which has changed since it was loaded (%s); reload "
					 "first, then save again",
					 edit[i].reason[0] ? edit[i].reason
							   : "it has no such rule");
	}
	return 0;
}

/* Only reads; what is noted is in `saving`. */
static int read_saving(const char *path, const char *text, size_t size, const struct ruleset *set,
		       struct rule_edit *edit, size_t count, struct saving *saving,
		       struct sl_err *err)
{
	struct ruleset *read;
	int rc = ruleset_parse_edited(path, text, size, set, edit, count, saving, &read, err);

	if (!rc)
		ruleset_free(read);
	return rc;
}

int rule_file_edited(const char *path, const struct ruleset *set, struct rule_edit *edit,
		     size_t count, char **ret, size_t *ret_size, struct sl_err *err)
{
	struct saving saving = { 0 }, again = { .saved = &saving };
	size_t size;
	char *text;
	int rc = config_text_read(path, true, &text, &size, err);

	*ret = NULL;
	if (rc)
		return rc;
	rc = read_saving(path, text, size, set, edit, count, &saving, err);
	if (!rc)
		rc = check_applied(path, set, edit, count, err);
	if (!rc && saving.edited.text)
		rc = read_saving(path, saving.edited.text, saving.edited.size, set, edit, count,
				 &again, err);
	if (!rc) {
		*ret = saving.edited.text;
		*ret_size = saving.edited.size;
		saving.edited.text = NULL;
	}
	free(text);
	saving_free(&saving);
	saving_free(&again);
	return rc;
}
