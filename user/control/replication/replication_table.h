/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * replication_table.h - of each block, ban and push-down: its origin, its begin, and whether it
 * was withdrawn.
 *
 *     ours: began on this node, which publishes it; theirs: began on another node
 *     the latest one is in force, ordered by (begin, name of the node)
 *     withdrawn at T: an entry that began before T is not accepted, from any node
 *
 * A withdrawal is remembered for a day: a node that was unavailable then still publishes the entry
 * when it comes back, and gets the withdrawal. Times are those of the cluster store, microseconds
 * since 1970, except _ns, which is CLOCK_MONOTONIC.
 *
 * Pure and bounded: a maximum of theirs per kind, and of withdrawals.
 */
#ifndef SLUICE_REPLICATION_REPLICATION_TABLE_H
#define SLUICE_REPLICATION_REPLICATION_TABLE_H

#include "lib/addr.h"
#include "config/cluster_def.h"
#include "sluice/types.h"

enum replication_kind {
	REPLICATION_BLOCK,
	REPLICATION_BAN,
	REPLICATION_PUSH,
	REPLICATION_KIND_COUNT
};

#define REPLICATION_MAX 10000 /* per kind: ours, theirs, and withdrawn */
#define REPLICATION_GONE_NS (86400ULL * 1000000000)

struct replication_item {
	struct replication_item *next;
	enum replication_kind kind;
	struct sl_prefix prefix;
	bool ours, theirs;
	u64 at_us;    /* when it began */
	u64 until_ns; /* its own end; ~0: permanent */
	/* Ours. */
	u64 digest; /* of the last published message */
	u64 round;  /* of the last scan that found it */
	/* Theirs. */
	char node[CLUSTER_NODE_MAX + 1];
	u64 hold_ns;  /* expires then unless published again */
	u64 given_ns; /* of a ban: its end in the map */
	char reason[64];
	/* Withdrawn. */
	u64 gone_us, gone_ns; /* entries begun up to gone_us; at gone_ns; 0: none */
	bool gone_here;	      /* on this node, which publishes it again when a node joins */
	bool gone_untimed;    /* gone_us is not known until the store's time is */
};

struct replication_table {
	struct replication_item *chain[4096];
	u32 ours[REPLICATION_KIND_COUNT], theirs[REPLICATION_KIND_COUNT],
		gone[REPLICATION_KIND_COUNT];
	u64 refused; /* of theirs: the table is full */
};

void replication_table_clear(struct replication_table *table);
struct replication_item *replication_find(const struct replication_table *table,
					  enum replication_kind kind,
					  const struct sl_prefix *prefix);

/*
 * This node has the entry; *ret_new if it is to be published as new, with at_us as its begin.
 * NULL: the table is full.
 */
struct replication_item *replication_ours(struct replication_table *table,
					  enum replication_kind kind,
					  const struct sl_prefix *prefix, u64 at_us, bool *ret_new);
/* The entry ended on this node. */
void replication_end_ours(struct replication_table *table, struct replication_item *item);

enum replication_news {
	REPLICATION_IGNORED, /* ours, or a later one of theirs, is in force; or the table is full */
	REPLICATION_KNOWN,   /* unchanged: hold it longer */
	REPLICATION_NEW,     /* new or changed */
	REPLICATION_GONE,    /* it was withdrawn: publish that */
};
/* `node` published an entry that began at at_us. KNOWN and NEW set *ret_item. */
enum replication_news replication_receive(struct replication_table *table,
					  enum replication_kind kind,
					  const struct sl_prefix *prefix, const char *node,
					  u64 at_us, struct replication_item **ret_item);
void replication_end_theirs(struct replication_table *table, struct replication_item *item);

/* Withdraws entries begun up to at_us. Returns the item, which may still be ours or theirs, or
 * NULL. */
struct replication_item *replication_withdraw(struct replication_table *table,
					      enum replication_kind kind,
					      const struct sl_prefix *prefix, u64 at_us,
					      u64 now_ns);

/* Visits all items; each() may end an item, not free it. Frees items that are empty afterwards. */
void replication_each(struct replication_table *table,
		      void (*each)(struct replication_item *item, void *arg), void *arg,
		      u64 now_ns);

#endif
