/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * quota_private.h - what the files of quota share.
 *
 *     quota.c           the table of entries; acquire, release, forget: decisions without Redis
 *     quota_exchange.c  what a command carries beside its cost, what its reply changes; leases, losses
 *     quota_due.c       flushes in the background, and their pace
 *     quota_clock.c     the clock of Redis, estimated from replies
 *     quota_overshoot.c the excess of windows that ended
 *
 * The table is sets of seven entries; a key has one set, and a set a lock of a byte, held for a
 * few dozen instructions. A set's line of keys is all that a miss reads. Nothing waits in here.
 */
#ifndef SLUICE_QUOTA_PRIVATE_H
#define SLUICE_QUOTA_PRIVATE_H

#include <pthread.h>

#include "cluster/quota/quota.h"

#define QUOTA_WAYS 7
#define QUOTA_COUNT_MAX SL_BIT(31)	/* what a count of an entry holds; above it the store is asked */
#define QUOTA_NEVER (~0ULL)

enum quota_flag {
	QUOTA_FLUSHING = 1,	/* a due is on its way: no other until it is answered */
	QUOTA_LEASING = 2,	/* an ask that wants a lease is on its way */
	QUOTA_FAILED = 4,	/* what was told last did not arrive: the rule's contract holds */
	QUOTA_AGAIN = 8,	/* of a due on its way: the bucket was reset meanwhile */
	QUOTA_RETRY = 16,	/* the last due did not arrive: the next one is paced */
	QUOTA_LOOKUP = 32,	/* the store has lost something: does it still have this? */
};

/* What is known and owed of one bucket. Counts in requests. */
struct quota_entry {
	u64 tag;
	struct spec_def def;
	u64 every_ns;
	u32 metric;
	u8 consistency;
	u8 flags;
	u16 quota_permille;	/* of the demand, when the store was last heard; 0: not yet */
	u64 window;		/* of `unsent`: aligned its number, first-request its beginning, us */
	u64 due_ns;		/* QUOTA_NEVER: nothing is */
	u64 until_ns;		/* lease: its end here */
	u64 lease_window;	/* of `credit` and `spent` */
	u64 used_ns;		/* the last request here */
	u64 period_ns;		/* when `calls` and `demand` began to count */
	u64 renewed_ns;		/* lease: when the store last answered for it; else: when `told` went out */
	u64 received_us;		/* the store's time of its newest answer */
	u64 refunded_us;	/* ... of this node's newest refund; before it `own` may have been more */
	u64 own, own_window, own_mark;	/* of this node's charges that Redis must have: quota_exchange.c */
	u64 empty_ns;		/* buckets: when `unsent` alone would have drained */
	u64 late_window;	/* of `late` */
	u32 unflushed, late;	/* charged here, not told: of `window`, and of one that is over */
	u32 refunded;		/* given back here, not told */
	u32 lost;		/* to be put back */
	u32 restored;		/* lost, in asks on their way */
	u32 refunding;		/* given back, in asks on their way */
	u32 requested;		/* costs in asks on their way */
	u32 spent_sent;		/* spent, in asks on their way */
	u32 flushing;		/* unsent, in a due on its way */
	u32 credit, spent;	/* lease: what is left, and what was spent and not said yet */
	u32 demand, demand_before;	/* requests of this period of every_ns, and of the one before */
	u16 requests, requests_before;
	u32 earned;		/* calls covered since a lease was last given back early */
};

struct quota_set {
	u8 lock;
	u8 pad[7];
	u64 key[QUOTA_WAYS];	/* 0: free */
	struct quota_entry entry[QUOTA_WAYS];
};

/* The store's time less this node's mono_ns, as it was known at at_ns; see quota_clock.c. */
struct quota_clock {
	u8 lock;
	bool known;
	s64 offset_ns;
	u64 error_ns;		/* at most so wrong, either way */
	u64 at_ns;
};

/* The most that windows ending in one interval were above their limit. */
struct quota_excess {
	u64 slot;		/* end / OVERSHOOT_SLOT_NS */
	double ratio;
};

#define OVERSHOOT_SLOTS 16
#define OVERSHOOT_RULES 4096

struct quota_overshoot {
	u32 metric;		/* + 1; 0: free */
	struct quota_excess excess[OVERSHOOT_SLOTS];
};

/* How fast what did not arrive goes out again: without bound, but for when the store was away. */
struct quota_pace {
	bool slow;
	double rate, tokens;	/* a second */
	u64 at_ns, raised_ns;
};

struct quotas {
	struct quota_set *set;
	u64 *due_ns;		/* of each set, the earliest; QUOTA_NEVER: none */
	u32 sets;
	u32 cursor;		/* where quotas_due() goes on */
	u64 next_ns;		/* nothing is due before */
	u32 nodes;
	bool ending;
	u64 full, lost, restored;
	u64 lost_us;		/* the store's time of the last answer that showed a loss */
	u64 looked_us, looked_ns;	/* the one that was last looked after, and when */
	u64 store_ns;		/* the store's time, when it was last looked for what is due */
	s64 *utc_ns;		/* where the clock's offset is published; NULL: nowhere */
	struct quota_clock clock;
	struct quota_pace pace;
	pthread_mutex_t overshoot_lock;
	struct quota_overshoot *overshoot;	/* OVERSHOOT_RULES */
};

static inline u64 quota_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 quota_less(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

static inline void quota_add(u32 *count, u64 more)
{
	*count = quota_min(*count + more, QUOTA_COUNT_MAX);
}

/* Takes up to `less` out; returns what it did not have. */
static inline u64 quota_sub(u32 *count, u64 less)
{
	u64 taken = quota_min(*count, less);

	*count -= taken;
	return less - taken;
}

static inline bool quota_is_bucket(const struct spec_def *def)
{
	return def->algo <= HTTP_LEAKY_BUCKET;
}

static inline bool quota_is_aligned(const struct spec_def *def)
{
	return def->algo == HTTP_FIXED_WINDOW || def->algo == HTTP_SLIDING_WINDOW;
}

static inline bool quota_is_window(const struct spec_def *def)
{
	return quota_is_aligned(def) || def->algo == HTTP_FIRST_REQUEST;
}

/* Of a bucket: how long a request counts. */
static inline double quota_interval_us(const struct spec_def *def)
{
	return (double)def->period_ns / 1e3 / ((double)def->count * def->scale);
}

/* Requests that fit at once. */
u64 quota_capacity(const struct spec_def *def);
/* quota_unflushed() of an entry. */
u64 quota_entry_unflushed(const struct quota_entry *e);

/* ------------------------------------------------------------------ quota.c */

/* The entry of a key, its set locked; NULL, and nothing locked, where there is none. */
struct quota_entry *quota_find(const struct quotas *quotas, u64 key, struct quota_set **ret_set);
/* The same, made where there is none; NULL where there is no place. */
struct quota_entry *quota_claim(struct quotas *quotas, const struct quota_ref *ref,
				struct sl_now now, struct quota_set **ret_set);
void quota_lock(u8 *lock);
void quota_unlock(u8 *lock);
/* The entry becomes due at at_ns, where it is not earlier already. Its set is locked. */
void quota_schedule(struct quotas *quotas, struct quota_set *set, struct quota_entry *e, u64 at_ns);
/* *at becomes `to` where that is less. */
void quota_lower(u64 *at, u64 to);
/* When something of a key comes round that comes every every_ns, after now: spread over the keys. */
u64 quota_phase(u64 key, u64 every_ns, u64 now_ns);

/* ------------------------------------------------------------------ quota_clock.c */

/* The store's time: as near as it is known, and the latest that it can be. */
u64 quota_store_ns(const struct quotas *quotas, struct sl_now now);
u64 quota_store_latest_ns(const struct quotas *quotas, struct sl_now now);
void quota_clock_update(struct quotas *quotas, u64 sent_ns, struct sl_now answered, u64 store_us);
/* From time to time: this node's UTC may have stepped. */
void quota_clock_check(struct quotas *quotas, struct sl_now now);

/* Of first-request windows: the later one has begun before the earlier one's end; the store has forgotten that. */
static inline bool quota_overlaps(const struct quota_entry *e, u64 earlier, u64 later)
{
	return e->def.algo == HTTP_FIRST_REQUEST && earlier < later &&
	       later < earlier + e->def.period_ns / 1000;
}

/* The window that a request counts in at that time; 0: buckets, logs, and where it is not known. */
u64 quota_window(const struct quota_entry *e, u64 store_ns);
/* The entry at a time: what was charged in a window that is over becomes `late`. */
void quota_roll(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
		struct sl_now now);

/* ------------------------------------------------------------------ quota_exchange.c */

void quota_count_demand(struct quota_entry *e, u64 cost, u64 now_ns);
/* How many requests a lease ought to hold now; 0: too few ask. */
u64 quota_target(const struct quota_entry *e, u64 now_ns);
/* Whether a lease has ended: by its time, or with its window. */
bool quota_lease_over(const struct quotas *quotas, const struct quota_entry *e, struct sl_now now);
/* Puts what was spent into `bucket`, and with `end` what is left as returned. */
void quota_flush_lease(const struct quotas *quotas, struct quota_entry *e,
		       struct cluster_store_bucket *bucket, bool end, struct sl_now now);
/* Asks for as much as is missing, and makes the lease last, where there is one. */
void quota_request_lease(struct quota_entry *e, struct cluster_store_bucket *bucket, u64 target);
/* What came of it: said, granted, or unknown. */
void quota_lease_complete(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
			  const struct cluster_store_bucket *bucket, bool done, struct sl_now now);
/* When a lease is to be renewed or, where nobody asks any more, given back. */
void quota_schedule_lease(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
			  u64 now_ns);

/* Says what the store lost, where there is something, with a CLUSTER_STORE_CHARGE. */
void quota_restore(const struct quotas *quotas, struct quota_entry *e,
		   struct cluster_store_bucket *bucket, struct sl_now now);
/* What became of what was put back, and of a CLUSTER_STORE_REFUND. */
void quota_settle(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
		  const struct cluster_store_bucket *bucket, bool done, struct sl_now now);
/* Whether the store ought to be asked for what it has of this: it has lost something since. */
bool quota_may_be_lost(const struct quotas *quotas, const struct quota_entry *e, struct sl_now now);
/* An answer, DONE; before quota_settle(). */
void quota_learn(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
		 const struct cluster_store_bucket *bucket, const struct cluster_store_request *ask,
		 struct sl_now now);

/* ------------------------------------------------------------------ quota_overshoot.c */

void quota_keep_excess(struct quotas *quotas, u32 metric, const struct cluster_store_bucket *bucket,
		       u64 store_us);

static inline void quota_note_excess(struct quotas *quotas, u32 metric,
				     const struct cluster_store_bucket *bucket, u64 store_us)
{
	if (bucket->excess)
		quota_keep_excess(quotas, metric, bucket, store_us);
}

#endif
