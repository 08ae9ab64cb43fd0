/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* policy_text.h - policies and prefixes from text, texts that are refused, and policies back to
 * text. */
#ifndef SLUICE_TESTS_POLICY_TEXT_H
#define SLUICE_TESTS_POLICY_TEXT_H

#include <stdlib.h>
#include <string.h>

#include "lib/refused.h"
#include "config/policy.h"

static inline struct sl_prefix prefix_of(const char *text)
{
	struct sl_prefix prefix;
	const char *reason;

	if (sl_prefix_parse(text, &prefix, &reason))
		fail_msg("%s: %s", text, reason);
	return prefix;
}

static inline struct policy *parse_at(const char *path, const char *yaml)
{
	struct policy *policy = NULL;
	struct sl_err err;

	if (policy_parse(path, yaml, strlen(yaml), &policy, &err))
		fail_msg("%d:%d: %s\n%.300s", err.line, err.column, err.message, yaml);
	return policy;
}

static inline struct policy *parse(const char *yaml)
{
	return parse_at("x.yaml", yaml);
}

static inline void policy_refused(const struct bad *bad, size_t size)
{
	struct unmarked text = unmark(bad->text, size);
	struct policy *policy = NULL;
	struct sl_err err = { .line = -1 };
	int rc = policy_parse("x.yaml", text.text, text.size, &policy, &err);

	assert_error(bad->text, text.line, text.column, bad->words, rc, &err);
	assert_null(policy);
}

static inline void policies_refused(const struct bad *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		policy_refused(&cases[i], strlen(cases[i].text));
}

static inline char *written(const struct policy *policy)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(policy_write(policy, out), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static inline int policy_compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline int policy_compare_prefixes(const void *a, const void *b)
{
	return sl_prefix_compare(a, b);
}

/* What a policy says, whatever the order of its lines, and of the prefixes of a set. To be
 * freed. */
static inline char *policy_lines(const struct policy *policy)
{
	char *text, *line[400], *rest, *sorted;
	size_t count = 0;

	for (size_t i = 0; i < policy->set_count; i++)
		if (policy->set[i].count)
			qsort(policy->set[i].prefix, policy->set[i].count, sizeof(struct sl_prefix),
			      policy_compare_prefixes);
	rest = text = written(policy);
	sorted = calloc(1, strlen(text) + 2);
	while ((line[count] = strsep(&rest, "\n")))
		assert_true(++count < 400);
	qsort(line, count, sizeof(*line), policy_compare_lines);
	for (size_t i = 0; i < count; i++)
		strcat(strcat(sorted, line[i]), i ? "\n" : "");
	free(text);
	return sorted;
}

/* Reads the text written of `policy`, and expects an equal policy. Frees it. */
static inline void assert_round_trip(struct policy *policy)
{
	char *first = written(policy), *second, *third;
	struct policy *back = parse_at(policy->path, first), *clone = NULL;

	second = written(back);
	assert_string_equal(first, second);
	assert_int_equal(policy_clone(policy, &clone), 0);
	policy_free(policy); /* the clone shares nothing with it */
	third = written(clone);
	assert_string_equal(first, third);
	policy_free(clone);
	policy_free(back);
	free(first);
	free(second);
	free(third);
}

#endif
