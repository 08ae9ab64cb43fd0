/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rule_text.h - rules from text, and calls from "key=value,key=value", for the tests of rules. */
#ifndef SLUICE_TESTS_RULE_TEXT_H
#define SLUICE_TESTS_RULE_TEXT_H
#include "lib/test.h"
#include "request/rules/override_value.h"
#include "request/rules/rule.h"
#include "request/rules/rule_edit.h"

static inline struct ruleset *rules(const char *text)
{
	struct ruleset *set = NULL;
	struct sl_err err;
	char words[1024];

	if (ruleset_parse("r.yaml", text, strlen(text), &set, &err))
		fail_msg("%s\n%s", sl_err_format(&err, words, sizeof(words)), text);
	return set;
}

/* The rule files of a directory; those that are as in `old` (NULL: none) keep what they are. */
static inline struct ruleset *rules_in(const char *dir, const struct ruleset *old)
{
	struct ruleset *set = NULL;
	struct sl_err err;

	if (ruleset_load(dir, old, &set, &err))
		fail_msg("%s:%d:%d: %s", err.file, err.line, err.column, err.message);
	return set;
}

/* The same with live changes. */
static inline struct ruleset *rules_edited(const char *dir, struct rule_edit *edit, size_t count)
{
	struct ruleset *set = NULL;
	struct sl_err err;

	if (ruleset_load_edited(dir, NULL, edit, count, &set, &err))
		fail_msg("%s:%d:%d: %s", err.file, err.line, err.column, err.message);
	return set;
}

/* The match points into `entries`. */
static inline void match_text(const struct ruleset *set, const char *domain, const char *entries,
			      struct rule_match *ret)
{
	struct request_descriptor descriptor = { .hits = 1 };

	while (*entries) {
		struct request_entry *entry = &descriptor.entry[descriptor.count++];
		size_t len = strcspn(entries, ","), key = strcspn(entries, "=,");

		entry->key = (struct bytes){ entries, key };
		entry->value =
			(struct bytes){ entries + key + (key < len), len - key - (key < len) };
		entries += len + (entries[len] == ',');
	}
	ruleset_match(set, (struct bytes){ domain, strlen(domain) }, &descriptor, ret);
}

/* `path` NULL: no rule. */
static inline void assert_matches(const struct ruleset *set, const char *domain,
				  const char *entries, const char *path)
{
	struct rule_match match;
	const char *found;

	match_text(set, domain, entries, &match);
	found = match.rule ? match.rule->path : NULL;
	if (!found != !path || (path && strcmp(path, found)))
		fail_msg("%s met %s, wanted %s", entries, found ? found : "nothing",
			 path ? path : "nothing");
}

#endif
