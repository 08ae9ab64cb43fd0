/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * replication_table.h - of each block, ban and push-down: whose it is, since when, and whether it
 * was taken back.
 *
 *     ours: this node began it, and says it; theirs: another one did
 *     whoever was last decides, by (when it began, name of the node)
 *     taken back at T: nothing that began before T comes in again, whoever says it
 *
 * What somebody took back is remembered for a day: a node that was away then still says what it
 * knows when it comes back, and is told. Times are the store's, microseconds since 1970, but those
 * in _ns, which are CLOCK_MONOTONIC.
 *
 * Pure, and bounded: so many of theirs for each kind, so many taken back.
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

#define REPLICATION_MAX 10000		/* of each kind: ours, theirs, and taken back */
#define REPLICATION_GONE_NS (86400ULL * 1000000000)

struct replication_item {
	struct replication_item *next;
	enum replication_kind kind;
	struct sl_prefix prefix;
	bool ours, theirs;
	u64 at_us;		/* when it began */
	u64 until_ns;		/* its own end; ~0 for good */
	/* Ours. */
	u64 digest;		/* of what was said last */
	u64 round;		/* of the last look that found it */
	/* Theirs. */
	char node[CLUSTER_NODE_MAX + 1];
	u64 hold_ns;		/* unless it is said again it ends then */
	u64 given_ns;		/* of a ban: its end as it was put into the map */
	char reason[64];
	/* Taken back. */
	u64 gone_us, gone_ns;	/* everything that began up to gone_us; since gone_ns; 0 nothing */
	bool gone_here;		/* on this node, which says it again when another comes */
	bool gone_untimed;	/* the store's time was not known: up to when is found out */
};

struct replication_table {
	struct replication_item *chain[4096];
	u32 ours[REPLICATION_KIND_COUNT], theirs[REPLICATION_KIND_COUNT],
		gone[REPLICATION_KIND_COUNT];
	u64 refused;		/* of theirs: no room */
};

void replication_table_clear(struct replication_table *table);
struct replication_item *replication_find(const struct replication_table *table,
					  enum replication_kind kind,
					  const struct sl_prefix *prefix);

/*
 * This node has it; *ret_new where it did not say so before. `at_us` is taken where it is new. NULL:
 * no room.
 */
struct replication_item *replication_ours(struct replication_table *table,
					  enum replication_kind kind,
					  const struct sl_prefix *prefix, u64 at_us, bool *ret_new);
/* This node has it no more. */
void replication_end_ours(struct replication_table *table, struct replication_item *item);

enum replication_news {
	REPLICATION_IGNORED,		/* ours, or a later one of theirs, is in force; or there is no room */
	REPLICATION_KNOWN,		/* as before: hold it longer */
	REPLICATION_NEW,		/* another than before, or none was */
	REPLICATION_GONE,		/* it was taken back: tell them */
};
/* `node` says that it began at at_us. KNOWN and NEW: *ret_item. */
enum replication_news replication_receive(struct replication_table *table,
					  enum replication_kind kind,
					  const struct sl_prefix *prefix, const char *node,
					  u64 at_us, struct replication_item **ret_item);
void replication_end_theirs(struct replication_table *table, struct replication_item *item);

/* What began up to at_us is taken back; returns the item, which may be ours or theirs still, or NULL. */
struct replication_item *replication_withdraw(struct replication_table *table,
					      enum replication_kind kind,
					      const struct sl_prefix *prefix, u64 at_us,
					      u64 now_ns);

/* All of them: each() may end what an item is, not free it. Then what is nothing any more goes. */
void replication_each(struct replication_table *table,
		      void (*each)(struct replication_item *item, void *arg), void *arg,
		      u64 now_ns);

#endif
