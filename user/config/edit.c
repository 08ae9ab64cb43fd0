// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * edit.c - live changes to a policy.
 *
 * `limit set` reads its pairs by the rows of their keys, as from a file. Every change is made on a
 * copy, which replaces the original once it is valid.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/override.h"
#include "conf/pair.h"
#include "config/keys.h"
#include "conf/config_text.h"

static int no_memory(struct sl_err *err)
{
	return sl_err_set(err, ENOMEM, "out of memory");
}

/* ---- limit set ---- */

/* Refuses keys that `limit set` cannot change. */
static int check_pair(const char *limit, const char *pair, struct sl_err *err)
{
	size_t len = strcspn(pair, "=");

	if (len == 4 && !strncmp(pair, "name", len))
		return sl_err_set(err, EINVAL, "limit \"%s\": name: a limit cannot be renamed; "
				  "accepted: limit del and limit add", limit);
	if (!strncmp(pair, "overrides", 9))
		return sl_err_set(err, EINVAL, "limit \"%s\": overrides: limit set cannot change these; "
				  "accepted: override set, override del, or the file and reload", limit);
	return 0;
}

int policy_limit_set(struct policy *policy, const char *name, char *const *pairs, size_t count,
		     struct sl_err *err)
{
	struct reader r = { .file = "", .err = err, .model = policy };
	struct limit_def *limit = policy_find_limit(policy, name);
	struct limit_def before, after;
	char subject[SL_NAME_MAX + 16];
	int rc = 0;

	if (!limit)
		return sl_err_set(err, ENOENT, "no limit \"%.63s\"", name);
	for (size_t i = 0; i < count; i++)
		if (check_pair(limit->name, pairs[i], err))
			return -EINVAL;
	snprintf(subject, sizeof(subject), "limit \"%s\"", limit->name);
	r.subject = subject;
	after = *limit;
	keys_copy(&limit_def_keys, &after, &rc);
	rc = rc ? no_memory(err) : pairs_read(&r, &limit_def_keys, &after, pairs, count);
	if (!rc)
		rc = overrides_check(&after, err);
	if (rc) {
		limit_clear(&after);
		return rc;
	}
	before = *limit;
	*limit = after;
	rc = policy_check(policy, err);
	if (rc)
		*limit = before;
	limit_clear(rc ? &after : &before);
	return rc;
}

/* What the checks over a whole policy and those of overrides read of it is as before. */
static bool weighs_the_same(const struct limit_def *before, const struct limit_def *after)
{
	const struct rates *a = &before->terms.rates, *b = &after->terms.rates;

	if (!a->count || a->count != b->count || before->mode == SL_MODE_OFF ||
	    after->mode == SL_MODE_OFF)
		return false;
	for (u8 i = 0; i < a->count; i++)
		if (a->rate[i].unit != b->rate[i].unit ||
		    (sl_algo_is_window(after->terms.algorithm) &&
		     a->rate[i].period_ns != b->rate[i].period_ns))
			return false;
	return true;
}

bool limit_revalue(const struct limit_def *limit, char *const *pairs, size_t count,
		   struct limit_def *ret)
{
	struct sl_err err;
	struct reader r = { .file = "", .err = &err, .subject = "" };

	if (!pairs_are(&limit_def_keys, KEY_OWN, pairs, count))
		return false;
	*ret = *limit;
	return !pairs_read(&r, &limit_def_keys, ret, pairs, count) && weighs_the_same(limit, ret);
}

/* ---- limit add, del ---- */

static void truncate_limits(struct policy *policy, size_t count)
{
	while (policy->limit_count > count)
		limit_clear(&policy->limit[--policy->limit_count]);
}

/* The list of limits in the text: its root, or the value of `limits`. */
static int find_limits(struct reader *r, const struct yaml_node *root, const struct yaml_node **ret)
{
	const struct yaml_node *key = yaml_node_find(root, "limits");

	if (key && root->count > 1)
		return read_fail(r, root, EINVAL, "found other keys next to limits; accepted: a limit, a "
				 "list of limits, or only the key limits");
	*ret = key ? key->value : root;
	return 0;
}

int policy_limit_add(struct policy *policy, const char *name, const char *yaml, size_t size,
		     struct sl_err *err)
{
	struct reader r = { .file = name, .err = err, .model = policy, .subject = "" };
	const struct yaml_node *limits = NULL;
	size_t i, before = policy->limit_count;
	struct tree tree = { 0 };
	int rc;

	rc = tree_parse(name, yaml, size, &tree, err);
	if (!rc)
		rc = find_limits(&r, tree.root, &limits);
	if (!rc)
		rc = read_limits(&r, limits, policy);
	tree_free(&tree);
	for (i = before; i < policy->limit_count; i++)
		policy->limit[i].pos = (struct config_pos){ 0, 0 };
	if (!rc)
		rc = policy_check(policy, err);
	if (rc)
		truncate_limits(policy, before);
	return rc;
}

int policy_limit_del(struct policy *policy, const char *name, struct sl_err *err)
{
	struct limit_def *limit = policy_find_limit(policy, name);

	if (!limit)
		return sl_err_set(err, ENOENT, "no limit \"%.63s\"", name);
	limit_clear(limit);
	remove_at(policy->limit, policy->limit_count, limit - policy->limit);
	return 0;
}

/* ---- block and exempt ---- */

static const char *const list_names[LIST_KIND_COUNT] = {
	[LIST_BLOCK] = "block",
	[LIST_EXEMPT] = "exempt",
	[LIST_NEVER_BAN] = "never_ban",
};

int policy_list_add(struct policy *policy, enum list_kind kind, const struct list_entry *entry,
		    struct sl_err *err)
{
	struct list_def *list = &policy->list[kind];
	size_t i;

	if (!memchr(entry->reason, 0, sizeof(entry->reason)) ||
	    !config_text_printable(entry->reason, strlen(entry->reason)))
		return sl_err_set(err, EINVAL, "%s: bad reason; accepted: up to 63 bytes of text on "
				  "one line", list_names[kind]);
	for (i = 0; i < list->count; i++) {
		if (list->entry[i].from ||
		    !sl_prefix_equal(&list->entry[i].prefix, &entry->prefix))
			continue;
		list->entry[i] = *entry;
		return 0;
	}
	return append(list->entry, list->count, *entry) ? no_memory(err) : 0;
}

/* Removes the entries that `keep` rejects; returns how many. */
static size_t list_filter(struct list_def *list,
			  bool (*keep)(const struct list_entry *entry, const void *arg),
			  const void *arg)
{
	size_t i, kept = 0, before = list->count;

	for (i = 0; i < list->count; i++)
		if (keep(&list->entry[i], arg))
			list->entry[kept++] = list->entry[i];
	list->count = kept;
	return before - kept;
}

static bool differs(const struct list_entry *entry, const void *prefix)
{
	return entry->from || !sl_prefix_equal(&entry->prefix, prefix);
}

static bool lasts(const struct list_entry *entry, const void *now_utc_ns)
{
	return !entry->until_utc_ns || entry->until_utc_ns > *(const u64 *)now_utc_ns;
}

int policy_list_del(struct policy *policy, enum list_kind kind, const struct sl_prefix *prefix,
		    struct sl_err *err)
{
	struct list_def *list = &policy->list[kind];
	char text[SL_PREFIX_TEXT];
	size_t i;

	/* a file may list a prefix twice: remove all */
	if (list_filter(list, differs, prefix))
		return 0;
	for (i = 0; i < list->count; i++)
		if (sl_prefix_equal(&list->entry[i].prefix, prefix))
			return sl_err_set(err, ENOENT, "%s: %s is part of the set @%s; accepted: set "
					  "del %s %s, or %s del @%s", list_names[kind],
					  sl_prefix_format(prefix, text, sizeof(text)),
					  list->set[list->entry[i].from - 1].name,
					  list->set[list->entry[i].from - 1].name, text,
					  list_names[kind], list->set[list->entry[i].from - 1].name);
	return sl_err_set(err, ENOENT, "%s: %s is not listed", list_names[kind],
			  sl_prefix_format(prefix, text, sizeof(text)));
}

static bool is_written(const struct list_entry *entry, const void *arg)
{
	return !entry->derived;
}

void policy_list_underive(struct policy *policy)
{
	for (int kind = 0; kind < LIST_KIND_COUNT; kind++)
		list_filter(&policy->list[kind], is_written, NULL);
}

static int by_prefix(const void *a, const void *b)
{
	return sl_prefix_compare(&((const struct list_entry *)a)->prefix,
				 &((const struct list_entry *)b)->prefix);
}

int policy_list_derive(struct policy *policy, enum list_kind kind, struct list_entry *entry,
		       size_t count)
{
	struct list_def *list = &policy->list[kind];
	size_t written = list->count, i;

	qsort(entry, count, sizeof(*entry), by_prefix);
	for (i = 0; i < count; i++)
		entry[i].derived = true;
	for (i = 0; i < written; i++) {
		struct list_entry *same = bsearch(&list->entry[i], entry, count, sizeof(*entry),
						  by_prefix);

		if (same)
			same->derived = false;
	}
	for (i = 0; i < count; i++)
		if (entry[i].derived && append(list->entry, list->count, entry[i]) < 0)
			return -ENOMEM;
	return 0;
}

size_t policy_list_expire(struct policy *policy, u64 now_utc_ns)
{
	size_t gone = 0;
	int kind;

	for (kind = 0; kind < LIST_KIND_COUNT; kind++) {
		struct list_def *list = &policy->list[kind];
		size_t i, kept = 0;

		gone += list_filter(list, lasts, &now_utc_ns);
		for (i = 0; i < list->set_count; i++)
			if (lasts(&list->set[i].entry, &now_utc_ns))
				list->set[kept++] = list->set[i];
		if (kept == list->set_count)
			continue;
		list->set_count = kept;
		list_expand(policy, list);	/* shorter than before, so it fits */
	}
	return gone;
}
