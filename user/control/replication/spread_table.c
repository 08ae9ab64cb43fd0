// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* spread_table.c - see spread_table.h. */
#include "control/replication/spread_table.h"

#include <stdlib.h>
#include <string.h>

#define CHAINS (sizeof(((struct spread_table *)0)->chain) / sizeof(struct spread_item *))

/* Who sends them has the secret, so nobody chooses prefixes to share a chain. */
static u32 chain_of(enum spread_kind kind, const struct sl_prefix *prefix)
{
	u64 mixed = prefix->addr.hi * 0x9e3779b97f4a7c15ULL ^ prefix->addr.lo;

	mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93ULL;
	return (u32)((mixed >> 32) + prefix->len * 31U + (u32)kind) % CHAINS;
}

struct spread_item *spread_find(const struct spread_table *table, enum spread_kind kind,
				const struct sl_prefix *prefix)
{
	struct spread_item *item = table->chain[chain_of(kind, prefix)];

	while (item && (item->kind != kind || !sl_prefix_equal(&item->prefix, prefix)))
		item = item->next;
	return item;
}

static struct spread_item *find_or_make(struct spread_table *table, enum spread_kind kind,
					const struct sl_prefix *prefix)
{
	struct spread_item *item = spread_find(table, kind, prefix);
	u32 chain = chain_of(kind, prefix);

	if (item)
		return item;
	item = calloc(1, sizeof(*item));
	if (!item)
		return NULL;
	item->kind = kind;
	item->prefix = *prefix;
	item->next = table->chain[chain];
	table->chain[chain] = item;
	return item;
}

struct spread_item *spread_ours(struct spread_table *table, enum spread_kind kind,
				const struct sl_prefix *prefix, u64 at_us, bool *ret_new)
{
	struct spread_item *item = spread_find(table, kind, prefix);

	*ret_new = !item || !item->ours;
	if (!*ret_new)
		return item;
	if (table->ours[kind] >= SPREAD_MAX)
		return NULL;
	item = find_or_make(table, kind, prefix);
	if (!item)
		return NULL;
	spread_theirs_end(table, item);
	item->ours = true;
	item->at_us = at_us;
	table->ours[kind]++;
	return item;
}

void spread_ours_end(struct spread_table *table, struct spread_item *item)
{
	table->ours[item->kind] -= item->ours;
	item->ours = false;
}

void spread_theirs_end(struct spread_table *table, struct spread_item *item)
{
	table->theirs[item->kind] -= item->theirs;
	item->theirs = false;
}

enum spread_news spread_hear(struct spread_table *table, enum spread_kind kind,
			     const struct sl_prefix *prefix, const char *node, u64 at_us,
			     struct spread_item **ret_item)
{
	struct spread_item *item = spread_find(table, kind, prefix);
	bool known;

	if (item && item->gone_us && at_us <= item->gone_us)
		return SPREAD_GONE;
	if (item && item->ours)
		return SPREAD_IGNORED;
	if (item && item->theirs &&
	    (at_us < item->at_us || (at_us == item->at_us && strcmp(node, item->node) < 0)))
		return SPREAD_IGNORED;
	if ((!item || !item->theirs) && table->theirs[kind] >= SPREAD_MAX) {
		table->refused++;
		return SPREAD_IGNORED;
	}
	item = find_or_make(table, kind, prefix);
	if (!item)
		return SPREAD_IGNORED;
	known = item->theirs && item->at_us == at_us && !strcmp(item->node, node);
	table->theirs[kind] += !item->theirs;
	item->theirs = true;
	item->at_us = at_us;
	strncpy(item->node, node, sizeof(item->node) - 1);
	*ret_item = item;
	return known ? SPREAD_KNOWN : SPREAD_NEW;
}

struct spread_item *spread_take_back(struct spread_table *table, enum spread_kind kind,
				     const struct sl_prefix *prefix, u64 at_us, u64 now_ns)
{
	struct spread_item *item = spread_find(table, kind, prefix);

	if (!item && table->gone[kind] >= SPREAD_MAX)
		return NULL;
	item = find_or_make(table, kind, prefix);
	if (!item)
		return NULL;
	table->gone[kind] += !item->gone_us;
	if (at_us > item->gone_us)
		item->gone_us = at_us;
	item->gone_ns = now_ns;
	return item;
}

static bool is_nothing(struct spread_table *table, struct spread_item *item, u64 now_ns)
{
	if (item->gone_us && now_ns - item->gone_ns > SPREAD_GONE_NS) {
		item->gone_us = 0;
		table->gone[item->kind]--;
	}
	return !item->ours && !item->theirs && !item->gone_us;
}

void spread_each(struct spread_table *table, void (*each)(struct spread_item *item, void *arg),
		 void *arg, u64 now_ns)
{
	for (u32 i = 0; i < CHAINS; i++) {
		struct spread_item **link = &table->chain[i];

		while (*link) {
			struct spread_item *item = *link;

			each(item, arg);
			if (!is_nothing(table, item, now_ns)) {
				link = &item->next;
				continue;
			}
			*link = item->next;
			free(item);
		}
	}
}

static void forget(struct spread_item *item, void *arg)
{
	item->ours = item->theirs = false;
	item->gone_us = 0;
}

void spread_table_clear(struct spread_table *table)
{
	spread_each(table, forget, NULL, 0);
	memset(table, 0, sizeof(*table));
}
