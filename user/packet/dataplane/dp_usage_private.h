/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* dp_usage_private.h - what dp_usage.c (sources) and dp_usage_rules.c (limits) share. */
#ifndef SLUICE_DP_USAGE_PRIVATE_H
#define SLUICE_DP_USAGE_PRIVATE_H

#include "packet/dataplane/dp_bucket.h"
#include "packet/dataplane/dp_usage.h"

#define GROUPS_MAX SL_ROWS_MAX
#define NO_GROUP 0xffff

struct group {
	u32 slot;		/* of the counter */
	u32 row[RATES_MAX];	/* what is charged with it */
	u32 rows;
	bool overridden;	/* rows are of sources with rates of their own */
	u64 worth;		/* units: a burst, or what a minute allows if that is less */
	u64 least;		/* worth telling */
};

/* A bucket beside a counter, as far as it is a token or leaky bucket. In ticks. */
struct debt {
	u64 was;		/* when it was looked at last */
	u64 charged;		/* since then, of what others told */
	u64 idle;		/* it was full so long, of late: so much of what others tell costs nothing */
};

struct source {
	u64 key;		/* the counter's; 0: free */
	u64 word;		/* as it was seen last; 0: never here */
	u64 way;		/* where */
	u64 untold, since_ns;
	u64 heard_ns;		/* when others told of it last */
	u32 share;		/* of `worth`, of late */
	u32 group;
	struct debt debt[RATES_MAX];
};

/* Of a source with rates of its own: what its bucket is stepped with. */
struct own {
	u64 key;		/* 0: free */
	struct sl_params params;
};

struct dp_usage {
	struct dp *dp;
	struct group group[GROUPS_MAX];
	u32 groups;
	u16 group_of_slot[SL_SLOTS];
	bool begun;
	struct sl_params params[SL_ROWS_MAX];	/* of the rows that groups name */
	u32 row_slot[SL_ROWS_MAX];
	struct own *own;	/* a hash by key, of a power of two; NULL: no overrides */
	u64 owns;

	u32 nodes;
	u64 sync_ns;
	struct source *source;	/* a hash by key, of a power of two */
	u64 sources, room;
	u64 cursor, looked_ns, crowded_ns;
	u32 dice;
	struct dp_usage_stats stats;
};

static inline u64 usage_hash(u64 key)
{
	return key * 0x9e3779b97f4a7c15ULL >> 20;
}

static inline u64 usage_power_of_two(u64 least)
{
	u64 size = 64;

	while (size < least)
		size *= 2;
	return size;
}

/* dp_usage_rules.c. How little of a group is worth telling, for so many nodes. */
void usage_find_least(struct dp_usage *usage, struct group *group);
/* The bucket beside a counter with this hash, of the group's n-th row. */
void usage_bucket(const struct dp_usage *usage, const struct group *group, u32 n, u64 hash,
		  struct dp_bucket *ret);
/* dp_usage.c. What counters there are is not told. */
void usage_begin(struct dp_usage *usage, struct sl_now now);

#endif
