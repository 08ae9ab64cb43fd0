/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * spread_table.h - of each block, ban and push-down: whose it is, since when, and whether it was
 * taken back.
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
#ifndef SLUICE_DAEMON_SPREAD_TABLE_H
#define SLUICE_DAEMON_SPREAD_TABLE_H

#include "lib/addr.h"
#include "config/cluster_def.h"
#include "sluice/types.h"

enum spread_kind { SPREAD_BLOCK, SPREAD_BAN, SPREAD_PUSH, SPREAD_KIND_COUNT };

#define SPREAD_MAX 10000		/* of each kind: ours, theirs, and taken back */
#define SPREAD_GONE_NS (86400ULL * 1000000000)

struct spread_item {
	struct spread_item *next;
	enum spread_kind kind;
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

struct spread_table {
	struct spread_item *chain[4096];
	u32 ours[SPREAD_KIND_COUNT], theirs[SPREAD_KIND_COUNT], gone[SPREAD_KIND_COUNT];
	u64 refused;		/* of theirs: no room */
};

void spread_table_clear(struct spread_table *table);
struct spread_item *spread_find(const struct spread_table *table, enum spread_kind kind,
				const struct sl_prefix *prefix);

/*
 * This node has it; *ret_new where it did not say so before. `at_us` is taken where it is new. NULL:
 * no room.
 */
struct spread_item *spread_ours(struct spread_table *table, enum spread_kind kind,
				const struct sl_prefix *prefix, u64 at_us, bool *ret_new);
/* This node has it no more. */
void spread_ours_end(struct spread_table *table, struct spread_item *item);

enum spread_news {
	SPREAD_IGNORED,		/* ours, or a later one of theirs, is in force; or there is no room */
	SPREAD_KNOWN,		/* as before: hold it longer */
	SPREAD_NEW,		/* another than before, or none was */
	SPREAD_GONE,		/* it was taken back: tell them */
};
/* `node` says that it began at at_us. KNOWN and NEW: *ret_item. */
enum spread_news spread_hear(struct spread_table *table, enum spread_kind kind,
			     const struct sl_prefix *prefix, const char *node, u64 at_us,
			     struct spread_item **ret_item);
void spread_theirs_end(struct spread_table *table, struct spread_item *item);

/* What began up to at_us is taken back; returns the item, which may be ours or theirs still, or NULL. */
struct spread_item *spread_take_back(struct spread_table *table, enum spread_kind kind,
				     const struct sl_prefix *prefix, u64 at_us, u64 now_ns);

/* All of them: each() may end what an item is, not free it. Then what is nothing any more goes. */
void spread_each(struct spread_table *table, void (*each)(struct spread_item *item, void *arg),
		 void *arg, u64 now_ns);

#endif
