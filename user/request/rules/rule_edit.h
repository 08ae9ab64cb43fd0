/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rule_edit.h - live changes to rules: read by the rows of their keys after the file's own, so that
 * a key means the same live as in a file, and the files stay the base of the rule set.
 */
#ifndef SLUICE_HTTP_RULE_EDIT_H
#define SLUICE_HTTP_RULE_EDIT_H

#include "request/rules/rule.h"

enum rule_edit_what { EDIT_SET, EDIT_UNSET, EDIT_BLOCK, EDIT_EXEMPT };

/* Keys of a rule (EDIT_SET alone), or the limits of one value. */
struct rule_edit {
	enum rule_edit_what what;
	const char *rule;	 /* "DOMAIN/PATH" */
	const char *value;	 /* NULL: the rule's keys */
	const char *const *pair; /* KEY=VALUE, as in the file; of EDIT_SET */
	size_t pair_count;
	bool applied;	  /* out */
	char reason[320]; /* out: the reason if not applied */
};

/*
 * ruleset_load() with these applied in their order. One that does not apply is left out, with its
 * reason; only errors in the files make the load fail.
 */
int ruleset_load_edited(const char *dir, const struct ruleset *old, struct rule_edit *edit,
			size_t count, struct ruleset **ret, struct sl_err *err);

/*
 * The same to a set in force, of one value of one rule: the rule gets another index of values,
 * which has all others as before. `forget`: back to what the files have. 0, *ret_old (may be NULL)
 * is then to be freed once no reader has it; 1 and nothing done where the files must be read, or
 * the edit does not apply. Readers see one or the other. By the thread that makes rule sets.
 */
struct override_index;
int ruleset_edit_value(struct ruleset *set, const struct rule_edit *edit, bool forget,
		       struct override_index **ret_old);
void override_index_free(struct override_index *index); /* NULL is fine */

/*
 * The same of a rule's own keys: `edit` has the change, and the live changes of the rule's values.
 * 1 where they change what another rule or the files must say: where the rule is found, labels of
 * those below it, a new series, values in files whose limits follow the rule's. What is replaced is
 * freed with the set.
 */
int ruleset_edit_rule(struct ruleset *set, struct rule_edit *edit, size_t count);

/*
 * A rule file's text with the edits of its rules applied, changed only where it must. *ret is for
 * the caller to free, NULL if none is about this file. `set` is the current rule set, of these
 * files.
 */
int rule_file_edited(const char *path, const struct ruleset *set, struct rule_edit *edit,
		     size_t count, char **ret, size_t *ret_size, struct sl_err *err);

#endif
