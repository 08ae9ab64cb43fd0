// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* replication_table.c - see replication_table.h. */
#include "control/replication/replication_table.h"

#include <stdlib.h>
#include <string.h>

#define CHAINS (sizeof(((struct replication_table *)0)->chain) / sizeof(struct replication_item *))

/* Senders have the secret, so an attacker cannot choose prefixes that share a chain. */
static u32 chain_of(enum replication_kind kind, const struct sl_prefix *prefix)
{
	u64 mixed = prefix->addr.hi * 0x9e3779b97f4a7c15ULL ^ prefix->addr.lo;

	mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93ULL;
	return (u32)((mixed >> 32) + prefix->len * 31U + (u32)kind) % CHAINS;
}

struct replication_item *replication_find(const struct replication_table *table,
					  enum replication_kind kind,
					  const struct sl_prefix *prefix)
{
	struct replication_item *item = table->chain[chain_of(kind, prefix)];

	while (item && (item->kind != kind || !sl_prefix_equal(&item->prefix, prefix)))
		item = item->next;
	return item;
}

static struct replication_item *find_or_make(struct replication_table *table,
					     enum replication_kind kind,
					     const struct sl_prefix *prefix)
{
	struct replication_item *item = replication_find(table, kind, prefix);
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

struct replication_item *replication_ours(struct replication_table *table,
					  enum replication_kind kind,
					  const struct sl_prefix *prefix, u64 at_us, bool *ret_new)
{
	struct replication_item *item = replication_find(table, kind, prefix);

	*ret_new = !item || !item->ours;
	if (!*ret_new)
		return item;
	if (table->ours[kind] >= REPLICATION_MAX)
		return NULL;
	item = find_or_make(table, kind, prefix);
	if (!item)
		return NULL;
	replication_end_theirs(table, item);
	item->ours = true;
	item->at_us = at_us;
	table->ours[kind]++;
	return item;
}

void replication_end_ours(struct replication_table *table, struct replication_item *item)
{
	table->ours[item->kind] -= item->ours;
	item->ours = false;
}

void replication_end_theirs(struct replication_table *table, struct replication_item *item)
{
	table->theirs[item->kind] -= item->theirs;
	item->theirs = false;
}

enum replication_news replication_receive(struct replication_table *table,
					  enum replication_kind kind,
					  const struct sl_prefix *prefix, const char *node,
					  u64 at_us, struct replication_item **ret_item)
{
	struct replication_item *item = replication_find(table, kind, prefix);
	bool known;

	if (item && item->gone_us && at_us <= item->gone_us)
		return REPLICATION_GONE;
	if (item && item->ours)
		return REPLICATION_IGNORED;
	if (item && item->theirs &&
	    (at_us < item->at_us || (at_us == item->at_us && strcmp(node, item->node) < 0)))
		return REPLICATION_IGNORED;
	if ((!item || !item->theirs) && table->theirs[kind] >= REPLICATION_MAX) {
		table->refused++;
		return REPLICATION_IGNORED;
	}
	item = find_or_make(table, kind, prefix);
	if (!item)
		return REPLICATION_IGNORED;
	known = item->theirs && item->at_us == at_us && !strcmp(item->node, node);
	table->theirs[kind] += !item->theirs;
	item->theirs = true;
	item->at_us = at_us;
	strncpy(item->node, node, sizeof(item->node) - 1);
	*ret_item = item;
	return known ? REPLICATION_KNOWN : REPLICATION_NEW;
}

struct replication_item *replication_withdraw(struct replication_table *table,
					      enum replication_kind kind,
					      const struct sl_prefix *prefix, u64 at_us, u64 now_ns)
{
	struct replication_item *item = replication_find(table, kind, prefix);

	if (!item && table->gone[kind] >= REPLICATION_MAX)
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

static bool is_nothing(struct replication_table *table, struct replication_item *item, u64 now_ns)
{
	if (item->gone_us && now_ns - item->gone_ns > REPLICATION_GONE_NS) {
		item->gone_us = 0;
		table->gone[item->kind]--;
	}
	return !item->ours && !item->theirs && !item->gone_us;
}

void replication_each(struct replication_table *table,
		      void (*each)(struct replication_item *item, void *arg), void *arg, u64 now_ns)
{
	for (u32 i = 0; i < CHAINS; i++) {
		struct replication_item **link = &table->chain[i];

		while (*link) {
			struct replication_item *item = *link;

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

static void forget(struct replication_item *item, void *arg)
{
	item->ours = item->theirs = false;
	item->gone_us = 0;
}

void replication_table_clear(struct replication_table *table)
{
	replication_each(table, forget, NULL, 0);
	memset(table, 0, sizeof(*table));
}
