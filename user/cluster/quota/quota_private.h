/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * quota_private.h - private declarations of the quota files.
 *
 *     quota.c           the table of entries; acquire, release, forget: decisions without Redis
 *     quota_exchange.c  leases and losses: fields of commands, changes by replies
 *     quota_due.c       flushes in the background, and their pace
 *     quota_clock.c     the clock of Redis, estimated from replies
 *     quota_overshoot.c the excess of windows that ended
 *
 * The table has sets of seven entries; a key has one set, and a set has a lock of one byte, held
 * for a few dozen instructions. A miss reads only the cache line of the keys of one set. Nothing
 * blocks here.
 */
#ifndef SLUICE_QUOTA_PRIVATE_H
#define SLUICE_QUOTA_PRIVATE_H

#include <pthread.h>

#include "cluster/quota/quota.h"
#include "lib/whole.h"
#include "limiter/algorithm.h"

#define QUOTA_WAYS 7
#define QUOTA_COUNT_MAX                                                                            \
	SL_BIT(31) /* the largest count of an entry; above it the request goes to Redis */
#define QUOTA_NEVER (~0ULL)

enum quota_flag {
	QUOTA_FLUSHING = 1, /* a flush is pending: no other until its reply */
	QUOTA_LEASING = 2,  /* a command that requests a lease is pending */
	QUOTA_FAILED = 4,   /* the last flush failed: on_store_failure decides */
	QUOTA_AGAIN = 8,    /* the bucket was reset while a flush was pending */
	QUOTA_RETRY = 16,   /* the last flush failed: the next one is paced */
	QUOTA_LOOKUP = 32,  /* Redis lost charges: check whether it still has this bucket */
};

/* The quota of one bucket. Counts are in requests. */
struct quota_entry {
	u64 tag;
	struct spec_def def;
	u64 every_ns;
	u32 metric;
	u8 consistency;
	u8 flags;
	bool count_all;
	u16 quota_permille; /* of the demand, at the last reply; 0: none yet */
	u64 window; /* of `unflushed`: number of an aligned one, begin of a first-request one, us */
	u64 due_ns; /* the next flush; QUOTA_NEVER: none */
	u64 until_ns;	  /* lease: its end here */
	u64 lease_window; /* of `credit` and `spent` */
	u64 used_ns;	  /* the last request here */
	u64 period_ns;	  /* when `requests` and `demand` began to count */
	u64 renewed_ns;	  /* lease: the last reply for it; else: when `flushing` was sent */
	u64 received_us;  /* Redis' time of the newest reply */
	u64 known_ns;	 /* when its command was sent: the state here has all that Redis had then */
	u64 refunded_us; /* Redis' time of this node's newest refund; it may have lowered `own` */
	u64 restored_us; /* buckets: Redis' time of the newest restore that took the place of its
			    state */
	u64 own, own_window,
		own_mark;    /* charges of this node that Redis must have: quota_exchange.c */
	u64 empty_ns;	     /* buckets: when `unflushed` alone would have drained */
	u64 late_window;     /* of `late` */
	u32 unflushed, late; /* charged here, not flushed: of `window`, and of one that is over */
	u32 refunded;	     /* refunded here, not flushed */
	u32 lost;	     /* to be restored in Redis */
	u32 restored;	     /* part of `lost` in pending commands */
	u32 refunding;	     /* refunds in pending commands */
	u32 requested;	     /* costs in pending commands */
	u32 overdue;	     /* of these: admitted at the deadline, without a reply */
	u32 spent_sent;	     /* spent of leases, in pending commands */
	u32 flushing;	     /* in a pending flush */
	u32 credit, spent;   /* lease: unspent units; units spent and not reported */
	u32 demand, demand_before; /* requests of this period of every_ns, and of the one before */
	u16 requests, requests_before;
	u32 refused, refused_sent; /* `count: all`: refused here, not in Redis; of them in pending
				      commands */
	u64 refused_ns;		   /* the last of `refused` */
	u32 earned;		   /* requests covered since a lease was last returned early */
	u32 round_us; /* of a command to Redis and back, smoothed; at most quotas.deadline_ns */
};

struct quota_set {
	u8 lock;
	u8 pad[7];
	u64 key[QUOTA_WAYS]; /* 0: free */
	struct quota_entry entry[QUOTA_WAYS];
};

/* Redis' time less this node's mono_ns, as estimated at at_ns; see quota_clock.c. */
struct quota_clock {
	u8 lock;
	bool known;
	s64 offset_ns;
	u64 error_ns; /* the largest error, either way */
	u64 at_ns;
};

/* The largest excess of windows that ended in one interval. */
struct quota_excess {
	u64 slot; /* end / OVERSHOOT_SLOT_NS */
	double ratio;
};

#define OVERSHOOT_SLOTS 16
#define OVERSHOOT_RULES 4096

struct quota_overshoot {
	u32 metric; /* + 1; 0: free */
	struct quota_excess excess[OVERSHOOT_SLOTS];
};

/* Rate of retried flushes: unlimited, unless Redis was unavailable. */
struct quota_pace {
	bool slow;
	double rate, tokens; /* per second */
	u64 at_ns, raised_ns;
};

struct quotas {
	struct quota_set *set;
	u64 *due_ns; /* of each set, the earliest; QUOTA_NEVER: none */
	u32 sets;
	u32 cursor;  /* where quotas_due() continues */
	u64 next_ns; /* no entry is due before */
	u32 nodes;
	u64 deadline_ns;
	bool ending;
	u64 full, lost, restored;
	u64 lost_us;		  /* Redis' time of the last reply that showed a loss */
	u64 looked_us, looked_ns; /* the loss that was last checked, and when */
	u64 store_ns;		  /* Redis' time at the last walk for due entries */
	s64 *utc_ns;		  /* where the clock's offset is published; NULL: not published */
	struct quota_clock clock;
	struct quota_pace pace;
	pthread_mutex_t overshoot_lock;
	struct quota_overshoot *overshoot; /* OVERSHOOT_RULES */
};

static inline void quota_add(u32 *count, u64 more)
{
	*count = min_u64(*count + more, QUOTA_COUNT_MAX);
}

/* Subtracts up to `less`; returns the rest. */
static inline u64 quota_sub(u32 *count, u64 less)
{
	u64 taken = min_u64(*count, less);

	*count -= taken;
	return less - taken;
}

static inline bool quota_is_bucket(const struct spec_def *def)
{
	return algorithm_is_bucket(def->algo);
}

static inline bool quota_is_aligned(const struct spec_def *def)
{
	return algorithm_is_aligned(def->algo);
}

static inline bool quota_is_window(const struct spec_def *def)
{
	return quota_is_aligned(def) || algorithm_is_anchored(def->algo);
}

/* Of a limit by a calendar; NULL: it has none. */
static inline const struct calendar *quota_calendar(const struct spec_def *def)
{
	return def->calendar ? calendar_find(def->calendar, def->period_ns) : NULL;
}

/* The time for which a request counts in a bucket; of a calendar somewhat more. */
static inline double quota_interval_us(const struct spec_def *def)
{
	double soft = def->soft_permille ? def->soft_permille / 1e3 : 1;

	return (double)def->period_ns / 1e3 / ((double)def->count * def->scale * soft);
}

/* Requests that an unused bucket admits at once. */
u64 quota_capacity(const struct spec_def *def);
/* quota_unflushed() of an entry. */
u64 quota_entry_unflushed(const struct quota_entry *e);

/* ------------------------------------------------------------------ quota.c */

/* Finds the entry of a key and locks its set. Without an entry: NULL, and the set is not locked. */
struct quota_entry *quota_find(const struct quotas *quotas, u64 key, struct quota_set **ret_set);
/* The same, but creates a missing entry. NULL: the set is full. */
struct quota_entry *quota_claim(struct quotas *quotas, const struct quota_ref *ref,
				struct sl_now now, struct quota_set **ret_set);
void quota_lock(u8 *lock);
void quota_unlock(u8 *lock);
/* Makes the entry due at at_ns at the latest. Its set is locked. */
void quota_schedule(struct quotas *quotas, struct quota_set *set, struct quota_entry *e, u64 at_ns);
/* *at becomes `to` if that is earlier. */
void quota_lower(u64 *at, u64 to);
/* Buckets: for how long Redis keeps an empty one. */
u64 quota_keep_us(const struct quotas *quotas, const struct quota_entry *e);
/* The next time, after now, of an action that a key takes every every_ns; spread over the keys. */
u64 quota_phase(u64 key, u64 every_ns, u64 now_ns);

/* ------------------------------------------------------------------ quota_clock.c */

/* Redis' time: the estimate, and the latest possible. */
u64 quota_store_ns(const struct quotas *quotas, struct sl_now now);
u64 quota_store_latest_ns(const struct quotas *quotas, struct sl_now now);
/* Buckets: when one is empty by the last reply, in monotonic time. */
static inline u64 quota_empty_ns(const struct quotas *quotas, const struct quota_entry *e,
				 struct sl_now now)
{
	return less(now.mono_ns + e->own * 1000, quota_store_ns(quotas, now));
}
void quota_clock_update(struct quotas *quotas, u64 sent_ns, struct sl_now answered, u64 store_us);
/* Publishes the offset again: this node's UTC may have stepped. */
void quota_clock_check(struct quotas *quotas, struct sl_now now);

/*
 * First-request windows: the later one began before the earlier one's end, so Redis lost the
 * earlier one.
 */
static inline bool quota_overlaps(const struct quota_entry *e, u64 earlier, u64 later)
{
	return algorithm_is_anchored(e->def.algo) && earlier < later &&
	       later < earlier + e->def.period_ns / 1000;
}

/* The window of a request at that time; 0: buckets, logs, and while it is unknown. */
u64 quota_window(const struct quota_entry *e, u64 store_ns);
/* Advances the entry to `now`: unflushed charges of a window that is over become `late`. */
void quota_roll(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
		struct sl_now now);

/* ------------------------------------------------------------------ quota_exchange.c */

void quota_count_demand(struct quota_entry *e, u64 cost, u64 now_ns);
/* The number of requests to lease now; 0: too little demand. */
u64 quota_target(const struct quota_entry *e, u64 now_ns);
/* Whether a lease has ended: by its time, or with its window. */
bool quota_lease_over(const struct quotas *quotas, const struct quota_entry *e, struct sl_now now);
/* Adds the spent units to `bucket`; with `end` also returns the rest. */
void quota_flush_lease(const struct quotas *quotas, struct quota_entry *e,
		       struct cluster_store_bucket *bucket, bool end, struct sl_now now);
/* Requests the missing units up to `target`, and extends an existing lease. */
void quota_request_lease(const struct quotas *quotas, struct quota_entry *e,
			 struct cluster_store_bucket *bucket, u64 target, u64 now_ns);
/* Applies the result to the lease: reported, granted, or unknown. */
void quota_lease_complete(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
			  const struct cluster_store_bucket *bucket, bool done, struct sl_now now);
/* Schedules the renewal of a lease or, without demand, its return. */
void quota_schedule_lease(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
			  u64 now_ns);

/* Adds refused requests that count, if any, to a CLUSTER_STORE_CHARGE. */
void quota_report_refused(const struct quotas *quotas, struct quota_entry *e,
			  struct cluster_store_bucket *bucket, struct sl_now now);
/* Adds charges that Redis lost, if any, to a CLUSTER_STORE_CHARGE. */
void quota_restore(const struct quotas *quotas, struct quota_entry *e,
		   struct cluster_store_bucket *bucket, struct sl_now now);
/* Applies the result to restores and to a CLUSTER_STORE_REFUND. */
void quota_settle(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
		  const struct cluster_store_bucket *bucket, bool done, struct sl_now now);
/* Whether Redis lost charges since its last reply for this bucket, so that a check is due. */
bool quota_may_be_lost(const struct quotas *quotas, const struct quota_entry *e, struct sl_now now);
/* Compares a reply (DONE) with the earlier replies; call it before quota_settle(). */
void quota_learn(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
		 const struct cluster_store_bucket *bucket,
		 const struct cluster_store_request *request, struct sl_now now);

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
