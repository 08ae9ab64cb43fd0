/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_consumption_private.h - shared by dp_consumption.c (sources) and dp_consumption_rules.c
 * (limits).
 */
#ifndef SLUICE_DP_CONSUMPTION_PRIVATE_H
#define SLUICE_DP_CONSUMPTION_PRIVATE_H

#include "packet/dataplane/dp_bucket.h"
#include "packet/dataplane/dp_consumption.h"

#define GROUPS_MAX SL_METERS_MAX
#define NO_GROUP 0xffff

struct group {
	u32 slot;		 /* of the counter */
	u32 meter[RATES_MAX];	 /* meters charged with it */
	u32 refusals[RATES_MAX]; /* slots of the counters of what these refuse; 0: that does not
				    count */
	u32 meters;
	bool overridden; /* meters are of sources with rates of their own */
	u64 worth;	 /* units: a burst, or what a minute allows if that is less */
	u64 least;	 /* worth publishing */
};

/* A bucket beside a counter, as far as it is a token or leaky bucket. In ticks. */
struct debt {
	u64 was;     /* at the last look */
	u64 charged; /* charges of other nodes since then */
	u64 idle; /* recently full for so long: that much of other nodes' charges costs nothing */
	u64 refusals; /* the counter of what its meter refused, at the last look */
	u64 refused,
		refused_ns; /* units to publish: refused from then on, a bucket's last one then */
	bool filled;	    /* by refusals, here or elsewhere, since the last look */
};

struct source {
	u64 key;	  /* the counter's; 0: free */
	u64 bucket_state; /* at the last look; 0: never here */
	u64 way;	  /* its place in the table */
	u64 unpublished, since_ns;
	u64 received_ns; /* last report of another node */
	u32 share;	 /* recent use, as a share of `worth` */
	u32 group;
	struct debt debt[RATES_MAX];
};

/* The parameters of a source with rates of its own. */
struct own {
	u64 key; /* 0: free */
	struct sl_params params;
};

struct dp_consumption {
	struct dp *dp;
	struct group group[GROUPS_MAX];
	u32 groups;
	u16 group_of_limit_id[SL_LIMIT_IDS];
	bool begun;
	struct sl_params params[SL_METERS_MAX]; /* of the meters that groups name */
	u32 meter_limit_id[SL_METERS_MAX];
	u32 elastic[SL_METERS_MAX]; /* the limit_id of its scale; SL_LIMIT_IDS: none */
	bool of_bytes[SL_METERS_MAX];
	struct own *own; /* a hash by key, of a power of two; NULL: no overrides */
	u64 owns;

	u32 nodes;
	u64 sync_ns;
	struct source *source; /* a hash by key, of a power of two */
	u64 sources, room;
	u64 cursor, looked_ns, crowded_ns;
	u32 dice;
	struct dp_consumption_stats stats;
};

static inline u64 consumption_hash(u64 key)
{
	return key * 0x9e3779b97f4a7c15ULL >> 20;
}

static inline u64 consumption_power_of_two(u64 least)
{
	u64 size = 64;

	while (size < least)
		size *= 2;
	return size;
}

/* dp_consumption_rules.c. The least amount of a group worth publishing, for so many nodes. */
void consumption_find_least(struct dp_consumption *consumption, struct group *group);
/* The bucket beside a counter with this hash, of the group's n-th meter. */
void consumption_bucket(const struct dp_consumption *consumption, const struct group *group, u32 n,
			u64 hash, struct sl_now now, struct dp_bucket *ret);
/* dp_consumption.c. Existing counters are not published. */
void consumption_begin(struct dp_consumption *consumption, struct sl_now now);
/* A source's place, or the place for it. */
struct source *consumption_find_source(struct dp_consumption *consumption, u64 key);
/* A place for a new source with this consumption; NULL: all others have more. */
struct source *consumption_add_source(struct dp_consumption *consumption, u64 key, u32 share,
				      u64 now_ns);
/* Units as a share of the group's worth. */
u32 consumption_share(const struct group *group, u64 units);
u64 consumption_ticks(const struct sl_params *p, u64 units);

/* The group of a report of what a group's n-th meter refused. */
static inline u32 consumption_refusals(u32 group, u32 n)
{
	return group + GROUPS_MAX * (1 + n);
}

#endif
