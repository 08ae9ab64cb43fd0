// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * entry_table.c - see entry_table.h. Entries of one prefix have one hash, whatever their list and
 * origin: what all of them say together is found in one chain.
 */
#include "control/running/entry_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"

void entry_table_init(struct entry_table *table)
{
	memset(table, 0, sizeof(*table));
	table->free = HELD_NONE;
	table->names = ORIGIN_FEEDS;
}

void entry_table_free(struct entry_table *table)
{
	for (u32 i = 0; i < table->count; i++)
		free(table->held[i].reason);
	free(table->held);
	free(table->head);
	entry_table_init(table);
}

int entry_table_origin(struct entry_table *table, const char *name, bool make)
{
	for (u32 i = ORIGIN_FEEDS; i < table->names; i++)
		if (!strcmp(table->name[i], name))
			return (int)i;
	if (!make)
		return -ENOENT;
	/* A number without entries is given away again. */
	for (u32 i = ORIGIN_FEEDS; i < ORIGINS_MAX; i++) {
		if (i < table->names &&
		    (table->of_origin[i][LIST_BLOCK] || table->of_origin[i][LIST_EXEMPT]))
			continue;
		snprintf(table->name[i], sizeof(table->name[i]), "%s", name);
		if (i >= table->names)
			table->names = i + 1;
		return (int)i;
	}
	return -ENOSPC;
}

/* ------------------------------------------------------------------ places */

static u32 hash_of(const struct entry_table *table, const struct sl_prefix *prefix)
{
	return (u32)sl_prefix_hash(prefix) & (table->heads - 1);
}

static void link_held(struct entry_table *table, u32 at)
{
	u32 *head = &table->head[hash_of(table, &table->held[at].prefix)];

	table->held[at].next = *head;
	*head = at;
}

static int grow_heads(struct entry_table *table)
{
	u32 heads = table->heads ? 2 * table->heads : 1024;
	u32 *head = realloc(table->head, heads * sizeof(*head));

	if (!head)
		return -ENOMEM;
	memset(head, 0xff, heads * sizeof(*head));
	table->head = head;
	table->heads = heads;
	for (u32 i = 0; i < table->count; i++)
		if (table->held[i].used)
			link_held(table, i);
	return 0;
}

/* A place for one more; HELD_NONE: no memory. */
static u32 take_place(struct entry_table *table)
{
	u32 at = table->free;
	struct held *held;

	if (at != HELD_NONE) {
		table->free = table->held[at].next;
		return at;
	}
	held = array_grow(table->held, table->count, sizeof(*held));
	if (!held)
		return HELD_NONE;
	table->held = held;
	return table->count++;
}

struct held *entry_table_find(const struct entry_table *table, u32 origin, enum list_kind list,
			      const struct sl_prefix *prefix)
{
	u32 at = table->heads ? table->head[hash_of(table, prefix)] : HELD_NONE;

	for (; at != HELD_NONE; at = table->held[at].next) {
		struct held *held = &table->held[at];

		if (held->origin == origin && held->list == list &&
		    sl_prefix_equal(&held->prefix, prefix))
			return held;
	}
	return NULL;
}

int entry_table_put(struct entry_table *table, u32 origin, const struct entry *entry, u64 from_ns)
{
	struct held *held = entry_table_find(table, origin, entry->list, &entry->prefix);
	char *reason = entry->reason[0] ? strdup(entry->reason) : NULL;
	u32 at;

	if (entry->reason[0] && !reason)
		return -ENOMEM;
	if (held) {
		free(held->reason);
		held->reason = reason;
		held->until_utc_ns = entry->until_utc_ns;
		held->from_ns = from_ns;
		return 0;
	}
	if (table->live >= table->heads && grow_heads(table) < 0) {
		free(reason);
		return -ENOMEM;
	}
	at = take_place(table);
	if (at == HELD_NONE) {
		free(reason);
		return -ENOMEM;
	}
	table->held[at] = (struct held){
		.prefix = entry->prefix,
		.until_utc_ns = entry->until_utc_ns,
		.from_ns = from_ns,
		.reason = reason,
		.list = entry->list,
		.origin = origin,
		.used = true,
	};
	link_held(table, at);
	table->live++;
	table->of_origin[origin][entry->list]++;
	return 0;
}

void entry_table_del(struct entry_table *table, struct held *held)
{
	u32 at = (u32)(held - table->held), *link = &table->head[hash_of(table, &held->prefix)];

	while (*link != at)
		link = &table->held[*link].next;
	*link = held->next;
	table->of_origin[held->origin][held->list]--;
	free(held->reason);
	*held = (struct held){ .next = table->free };
	table->free = at;
	table->live--;
}

/* ------------------------------------------------------------------ together */

static void add_term(struct sl_list_term *term, u64 from_ns, u64 until_ns)
{
	if (!term->until_ns || from_ns < term->from_ns)
		term->from_ns = from_ns;
	if (until_ns > term->until_ns)
		term->until_ns = until_ns;
}

bool entry_table_value(const struct entry_table *table, const struct sl_prefix *prefix,
		       u64 utc_offset_ns, u64 now_utc_ns, struct sl_listed *ret)
{
	u32 at = table->heads ? table->head[hash_of(table, prefix)] : HELD_NONE;
	bool any = false;

	memset(ret, 0, sizeof(*ret));
	for (; at != HELD_NONE; at = table->held[at].next) {
		const struct held *held = &table->held[at];

		if (!sl_prefix_equal(&held->prefix, prefix) ||
		    (held->until_utc_ns && held->until_utc_ns <= now_utc_ns))
			continue;
		any = true;
		add_term(held->list == LIST_BLOCK ? &ret->block : &ret->exempt, held->from_ns,
			 held->until_utc_ns ? held->until_utc_ns - utc_offset_ns : ~0ULL);
	}
	return any;
}

struct entry entry_of(const struct held *held)
{
	struct entry entry = { .list = held->list,
			       .prefix = held->prefix,
			       .until_utc_ns = held->until_utc_ns };

	if (held->reason)
		snprintf(entry.reason, sizeof(entry.reason), "%s", held->reason);
	return entry;
}

void entry_table_unmark(struct entry_table *table)
{
	for (u32 i = 0; i < table->count; i++)
		table->held[i].mark = false;
}

bool entry_is_same(const struct held *held, const struct entry *entry)
{
	return held->until_utc_ns == entry->until_utc_ns &&
	       !strcmp(held->reason ? held->reason : "", entry->reason);
}
