// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* list.c - block, exempt and never_ban: changes of their entries. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/config_text.h"
#include "config/model.h"

static int no_memory(struct sl_err *err)
{
	return sl_err_set(err, ENOMEM, "out of memory");
}

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
