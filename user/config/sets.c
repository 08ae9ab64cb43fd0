// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sets.c - sets, and the keys that name them: src and dst of a match, entries of block and exempt.
 *
 * Readers of a model see plain prefixes: those of the sets stand after those written directly, and
 * are expanded again when a set changes. A change is made on a copy of the policy and swapped in,
 * since it can fail at any key that names the set.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/model.h"

/* ---- expanding sets ---- */

static int expand_prefixes(const struct policy *policy, struct match_sets *sets,
			   struct sl_prefix **prefix, size_t *count)
{
	*count -= sets->prefixes;
	sets->prefixes = 0;
	for (size_t i = 0; i < sets->count; i++) {
		const struct set_def *set = policy_find_set(policy, sets->name[i]);

		for (size_t k = 0; set && k < set->count; k++) {
			if (append(*prefix, *count, set->prefix[k]))
				return -ENOMEM;
			sets->prefixes++;
		}
	}
	return 0;
}

int match_expand(const struct policy *policy, struct match_def *m)
{
	int rc = expand_prefixes(policy, &m->sets[MATCH_SRC], &m->src, &m->src_count);

	return rc ? rc : expand_prefixes(policy, &m->sets[MATCH_DST], &m->dst, &m->dst_count);
}

int list_expand(const struct policy *policy, struct list_def *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++)
		if (!list->entry[i].from)
			list->entry[kept++] = list->entry[i];
	list->count = kept;
	for (size_t i = 0; i < list->set_count; i++) {
		const struct list_set *ref = &list->set[i];
		const struct set_def *set = policy_find_set(policy, ref->name);
		struct list_entry entry = ref->entry;

		entry.from = i + 1;
		for (size_t k = 0; set && k < set->count; k++) {
			entry.prefix = set->prefix[k];
			if (append(list->entry, list->count, entry))
				return -ENOMEM;
		}
	}
	return list_index(list, 0);
}

/* ---- which keys name a set ---- */

const struct list_set *list_find_set(const struct list_def *list, const char *name)
{
	for (size_t i = 0; i < list->set_count; i++)
		if (!strcmp(list->set[i].name, name))
			return &list->set[i];
	return NULL;
}

/* Expands all keys that name the set again. A match must not become one that matches all. */
static int expand_users(struct policy *policy, const struct set_def *set, struct sl_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < policy->limit_count && !rc; i++) {
		struct limit_def *limit = &policy->limit[i];

		if (!match_names_set(&limit->match, set->name))
			continue;
		if (!set->count)
			return sl_err_set(err, EINVAL,
					  "set \"%s\" would be empty, and limit \"%s\" "
					  "matches on it; accepted: a set with addresses, or first "
					  "another match",
					  set->name, limit->name);
		rc = match_expand(policy, &limit->match);
	}
	for (int kind = 0; kind < LIST_KIND_COUNT && !rc; kind++)
		if (list_find_set(&policy->list[kind], set->name))
			rc = list_expand(policy, &policy->list[kind]);
	return rc ? sl_err_no_memory(err) : 0;
}

/* ---- changes ---- */

static int no_such_set(const char *name, struct sl_err *err)
{
	return sl_err_set(err, ENOENT, "there is no set \"%.63s\"", name);
}

/* The set of that name; a new one is inserted in order of the names. */
static int find_or_make(struct policy *policy, const char *name, struct set_def **ret,
			struct sl_err *err)
{
	struct set_def made = { .live = true }, *found;
	size_t len = strlen(name), at = 0;

	found = (struct set_def *)policy_find_set(policy, name);
	if (!found) {
		if (!len || len >= SL_NAME_MAX || strspn(name, IDENTIFIER_CHARACTERS) != len)
			return sl_err_set(err, EINVAL,
					  "set \"%.80s\": accepted: a name of 1 to 63 "
					  "characters of a-z, 0-9 and -",
					  name);
		memcpy(made.name, name, len + 1);
		while (at < policy->set_count && strcmp(policy->set[at].name, name) < 0)
			at++;
		if (insert_at(policy->set, policy->set_count, at, made))
			return sl_err_no_memory(err);
		found = &policy->set[at];
	}
	*ret = found;
	return 0;
}

/* A change of a set; all three take `prefix` and `count`. */
typedef int set_change(struct policy *policy, const char *name, const struct sl_prefix *prefix,
		       size_t count, struct set_def **ret, struct sl_err *err);

static int compare_prefixes(const void *a, const void *b)
{
	return sl_prefix_compare(a, b);
}

/* At least one byte, for bsearch(); NULL: out of memory. */
static struct sl_prefix *sorted_copy(const struct sl_prefix *prefix, size_t count)
{
	struct sl_prefix *copy = calloc(count + 1, sizeof(*copy));

	if (!copy)
		return NULL;
	if (count)
		memcpy(copy, prefix, count * sizeof(*copy));
	qsort(copy, count, sizeof(*copy), compare_prefixes);
	return copy;
}

/* Skips prefixes that the set contains; sorted, to find them among many. */
static int change_add(struct policy *policy, const char *name, const struct sl_prefix *prefix,
		      size_t count, struct set_def **ret, struct sl_err *err)
{
	struct sl_prefix *sorted;
	size_t before;
	int rc = find_or_make(policy, name, ret, err);

	if (rc)
		return rc;
	before = (*ret)->count;
	sorted = sorted_copy((*ret)->prefix, before);
	if (!sorted)
		return sl_err_no_memory(err);
	for (size_t i = 0; i < count && !rc; i++) {
		if (bsearch(&prefix[i], sorted, before, sizeof(*sorted), compare_prefixes))
			continue;
		if (append((*ret)->prefix, (*ret)->count, prefix[i]))
			rc = sl_err_no_memory(err);
	}
	free(sorted);
	return rc;
}

/* A prefix that is not in the set is no error, unless none is. */
static int change_del(struct policy *policy, const char *name, const struct sl_prefix *prefix,
		      size_t count, struct set_def **ret, struct sl_err *err)
{
	struct set_def *set = (struct set_def *)policy_find_set(policy, name);
	size_t before, kept = 0;
	struct sl_prefix *sorted;

	if (!set)
		return no_such_set(name, err);
	sorted = sorted_copy(prefix, count);
	if (!sorted)
		return sl_err_no_memory(err);
	before = set->count;
	for (size_t i = 0; i < before; i++)
		if (!bsearch(&set->prefix[i], sorted, count, sizeof(*sorted), compare_prefixes))
			set->prefix[kept++] = set->prefix[i];
	free(sorted);
	set->count = kept;
	*ret = set;
	return kept < before
		       ? 0
		       : sl_err_set(err, ENOENT, "set \"%s\" has none of these prefixes", name);
}

static int change_replace(struct policy *policy, const char *name, const struct sl_prefix *prefix,
			  size_t count, struct set_def **ret, struct sl_err *err)
{
	int rc = find_or_make(policy, name, ret, err);

	if (!rc)
		(*ret)->count = 0;
	return rc ? rc : change_add(policy, name, prefix, count, ret, err);
}

static int change_set(struct policy *policy, set_change *change, const char *name,
		      const struct sl_prefix *prefix, size_t count, struct sl_err *err)
{
	struct policy *copy, swapped;
	struct set_def *set = NULL;
	int rc;

	if (policy_clone(policy, &copy))
		return sl_err_no_memory(err);
	rc = change(copy, name, prefix, count, &set, err);
	if (!rc) {
		free(set->file); /* its content is no longer the file's */
		set->file = NULL;
		set->skipped = 0;
		set->live = true;
		rc = expand_users(copy, set, err);
	}
	if (!rc) {
		swapped = *policy;
		*policy = *copy;
		*copy = swapped;
	}
	policy_free(copy);
	return rc;
}

int policy_set_add(struct policy *policy, const char *name, const struct sl_prefix *prefix,
		   size_t count, struct sl_err *err)
{
	return change_set(policy, change_add, name, prefix, count, err);
}

int policy_set_del(struct policy *policy, const char *name, const struct sl_prefix *prefix,
		   size_t count, struct sl_err *err)
{
	return change_set(policy, change_del, name, prefix, count, err);
}

int policy_set_replace(struct policy *policy, const char *name, const struct sl_prefix *prefix,
		       size_t count, struct sl_err *err)
{
	return change_set(policy, change_replace, name, prefix, count, err);
}

/* ---- sets in block and exempt ---- */

int policy_list_add_set(struct policy *policy, enum list_kind kind, const struct list_set *ref,
			struct sl_err *err)
{
	struct list_def *list = &policy->list[kind];
	struct list_set *listed = (struct list_set *)list_find_set(list, ref->name);

	if (!policy_find_set(policy, ref->name))
		return no_such_set(ref->name, err);
	if (listed)
		*listed = *ref;
	else if (append(list->set, list->set_count, *ref))
		return sl_err_no_memory(err);
	return list_expand(policy, list) ? sl_err_no_memory(err) : 0;
}

int policy_list_del_set(struct policy *policy, enum list_kind kind, const char *name,
			struct sl_err *err)
{
	struct list_def *list = &policy->list[kind];
	struct list_set *listed = (struct list_set *)list_find_set(list, name);

	if (!listed)
		return sl_err_set(err, ENOENT, "%s: @%.63s is not listed",
				  kind == LIST_BLOCK ? "block" : "exempt", name);
	remove_at(list->set, list->set_count, listed - list->set);
	return list_expand(policy, list) ? sl_err_no_memory(err) : 0;
}
