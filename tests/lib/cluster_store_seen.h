/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cluster_store_seen.h - a bucket of the model at one time, before a change to it
 * is stored; for cluster_store_model.c and its parts alone.
 */
#ifndef SLUICE_TESTS_CLUSTER_STORE_SEEN_H
#define SLUICE_TESTS_CLUSTER_STORE_SEEN_H

#include "lib/cluster_store_model.h"
#include "lib/whole.h"
#include "limiter/algorithm.h"

#define TICKS_PER_US (1000 * SL_TICKS_PER_NS)

/* A bucket as it stands now; window, count, before, held... take the place of the entry's. */
struct seen {
	struct cluster_store_entry *e;
	struct cluster_store_bucket *b;
	struct cluster_store_rate rate;
	u64 now_us;
	u32 node;
	u64 debt, at_us;
	u64 empty_us; /* buckets: when it was or will be empty */
	u64 given_us, given_end_us;
	u64 window, count, before, before_window;
	u64 left_us; /* sliding: how much of the previous window still counts */
	u64 held;
	u64 late_excess; /* of the window before */
	u64 dropped;	 /* charged in any case, and above what is kept */
	bool late;	 /* of a window that is over */
	bool rolled;	 /* another window than the entry's: nobody's own */
	bool dirty;
	bool took;
};

static inline bool is_bucket(const struct seen *s)
{
	return algorithm_is_bucket(s->rate.algo);
}

static inline bool is_log(const struct seen *s)
{
	return algorithm_is_log(s->rate.algo);
}

static inline bool is_window(const struct seen *s)
{
	return !is_bucket(s) && !is_log(s);
}

/* An interval bucket: a window whose count falls at an edge by rate.mult. */
static inline bool is_refilled(const struct seen *s)
{
	return algorithm_kind(s->rate.algo) == STATE_WINDOW && s->rate.mult;
}

/* cluster_store_seen.c */
void seen_open(struct seen *s);
void seen_close(struct seen *s);
/* Requests; of a bucket ticks. */
u64 seen_used(const struct seen *s);
/* The window that came before the current one. */
bool seen_is_previous(const struct seen *s, u64 window);
u64 own_of(const struct seen *s);
void own_add(struct seen *s, u32 node, u64 count);
void own_charge(struct seen *s, u32 node, u64 count);
void *array_grown(void *array, u32 count, size_t size);

/* cluster_store_charge.c */
void seen_charge(struct seen *s, u64 cost);
void seen_force(struct seen *s, u64 cost, u64 window);
/* Refused ones that count. */
void seen_fill(struct seen *s, u64 cost, u64 since_us);
void seen_refund(struct seen *s, u64 cost, u64 window);
/* The part of a bucket that nobody refunded: the rest of a lease. */
void seen_drain(struct seen *s, u64 cost);

/* cluster_store_lease.c */
/* Leases that have run out. */
void seen_lapse(struct seen *s);
/* This node's report on its lease: spent, returned, how long it goes on. */
void seen_report(struct seen *s);
/* What this node holds of the current window. */
u64 seen_leased(const struct seen *s);
/* How much of `want` it gets. */
u64 seen_grant(struct seen *s);

#endif
