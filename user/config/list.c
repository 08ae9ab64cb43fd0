// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * list.c - block, exempt and never_ban: their entries by prefix, and changes of them.
 *
 * Entries are chained by the hash of their prefix, the last one first: beside 100000 others a
 * change of one walks over no list. Numbers in chains are 1 + index of an entry; 0 ends a chain.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/config_text.h"
#include "config/model.h"

static const char *const list_names[LIST_KIND_COUNT] = {
	[LIST_BLOCK] = "block",
	[LIST_EXEMPT] = "exempt",
	[LIST_NEVER_BAN] = "never_ban",
};

/* ---- by prefix ---- */

static u32 *head_of(const struct list_def *list, const struct sl_prefix *prefix)
{
	return &list->head[sl_prefix_hash(prefix) & (list->head_count - 1)];
}

int list_index(struct list_def *list, size_t from)
{
	size_t heads = list->head_count ? list->head_count : 4;
	u32 *head;

	while (heads < list->count)
		heads *= 2;
	if (heads != list->head_count) {
		head = reallocarray(list->head, heads, sizeof(*head));
		if (!head)
			return -ENOMEM;
		list->head = head;
		list->head_count = heads;
		from = 0;
	}
	if (!from)
		memset(list->head, 0, heads * sizeof(*head));
	for (size_t i = from; i < list->count; i++) {
		head = head_of(list, &list->entry[i].prefix);
		list->entry[i].next = *head;
		*head = (u32)i + 1;
	}
	return 0;
}

/* The first entry for a prefix; `any`: also one of a set. */
static struct list_entry *find(const struct list_def *list, const struct sl_prefix *prefix,
			       bool any)
{
	struct list_entry *found = NULL;

	if (!list->head_count)
		return NULL;
	for (u32 at = *head_of(list, prefix); at; at = list->entry[at - 1].next)
		if ((any || !list->entry[at - 1].from) &&
		    sl_prefix_equal(&list->entry[at - 1].prefix, prefix))
			found = &list->entry[at - 1];
	return found;
}

struct list_entry *list_find_entry(const struct list_def *list, const struct sl_prefix *prefix)
{
	return find(list, prefix, false);
}

static int add(struct list_def *list, const struct list_entry *entry)
{
	if (append(list->entry, list->count, *entry))
		return -ENOMEM;
	if (list_index(list, list->count - 1)) {
		list->count--;
		return -ENOMEM;
	}
	return 0;
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
	if (kept < before)
		list_index(list, 0); /* fewer than before, so it fits */
	return before - kept;
}

/* ---- changes ---- */

static bool differs(const struct list_entry *entry, const void *prefix)
{
	return entry->from || !sl_prefix_equal(&entry->prefix, prefix);
}

/* Not another entry for the prefix of the entry `of`. */
static bool is_no_twin(const struct list_entry *entry, const void *of)
{
	return entry == of || differs(entry, &((const struct list_entry *)of)->prefix);
}

int policy_list_add(struct policy *policy, enum list_kind kind, const struct list_entry *entry,
		    struct sl_err *err)
{
	struct list_def *list = &policy->list[kind];
	struct list_entry *found;
	u32 next;

	if (!memchr(entry->reason, 0, sizeof(entry->reason)) ||
	    !config_text_printable(entry->reason, strlen(entry->reason)))
		return sl_err_set(err, EINVAL,
				  "%s: bad reason; accepted: up to 63 bytes of text on "
				  "one line",
				  list_names[kind]);
	found = list_find_entry(list, &entry->prefix);
	if (!found)
		return add(list, entry) ? sl_err_no_memory(err) : 0;
	if (!list_entry_is_live(found)) /* a file may list a prefix twice: one stays */
		list_filter(list, is_no_twin, found);
	next = found->next;
	*found = *entry;
	found->next = next;
	return 0;
}

static bool lasts(const struct list_entry *entry, const void *now_utc_ns)
{
	return !entry->until_utc_ns || entry->until_utc_ns > *(const u64 *)now_utc_ns;
}

static u32 *link_to(const struct list_def *list, const struct list_entry *entry)
{
	u32 *link = head_of(list, &entry->prefix);

	while (&list->entry[*link - 1] != entry)
		link = &list->entry[*link - 1].next;
	return link;
}

/*
 * Removes a live entry: the last one takes its place. False: the last one is the file's, whose
 * entries keep their order.
 */
static bool take_out(struct list_def *list, struct list_entry *entry)
{
	struct list_entry *last = &list->entry[list->count - 1];

	if (!list_entry_is_live(entry) || (!last->from && !list_entry_is_live(last)))
		return false;
	*link_to(list, entry) = entry->next;
	if (entry != last) {
		*link_to(list, last) = (u32)(entry - list->entry) + 1;
		*entry = *last;
	}
	list->count--;
	return true;
}

int policy_list_del(struct policy *policy, enum list_kind kind, const struct sl_prefix *prefix,
		    struct sl_err *err)
{
	struct list_def *list = &policy->list[kind];
	struct list_entry *found = list_find_entry(list, prefix);
	char text[SL_PREFIX_TEXT];
	const char *set;

	if (found) {
		if (!take_out(list, found))
			list_filter(list, differs,
				    prefix); /* a file may list a prefix twice: all */
		return 0;
	}
	found = find(list, prefix, true);
	if (!found)
		return sl_err_set(err, ENOENT, "%s: %s is not listed", list_names[kind],
				  sl_prefix_format(prefix, text, sizeof(text)));
	set = list->set[found->from - 1].name;
	return sl_err_set(err, ENOENT,
			  "%s: %s is part of the set @%s; accepted: set del %s %s, or %s "
			  "del @%s",
			  list_names[kind], sl_prefix_format(prefix, text, sizeof(text)), set, set,
			  text, list_names[kind], set);
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

int policy_list_derive(struct policy *policy, enum list_kind kind, const struct list_entry *entry,
		       size_t count)
{
	struct list_def *list = &policy->list[kind];

	for (size_t i = 0; i < count; i++) {
		struct list_entry derived = entry[i];

		derived.derived = true;
		if (!find(list, &derived.prefix, true) && add(list, &derived))
			return -ENOMEM;
	}
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
		list_expand(policy, list); /* shorter than before, so it fits */
	}
	return gone;
}
