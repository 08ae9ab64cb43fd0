/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shared_model.h - what the shared store does to a bucket, in C: the words of which charge.lua is
 * a translation. shared.h says what it has to do, this how.
 *
 * Integers throughout. What the script has to do in doubles stays below 2^53, or is a multiple
 * of a power of two with which it does, so that both come to the same numbers:
 *
 *   buckets	A debt in ticks of 1/16 ns, as it was at a time in us. Of a bucket that takes longer
 *		than 2^52 ticks (3.2 days) to empty a request's interval is rounded up to 2^s ticks,
 *		where twice its capacity is below 2^(53 + s) ticks: every debt is then a multiple of
 *		2^s, or of 128 where s is more (a microsecond is 125 x 128 ticks). Rounded up means
 *		that it admits less, by less than capacity / 2^50 of its rate. Below that it is exact.
 *		Where the rate has changed it is a debt of another tau: the share of it stays.
 *   sliding	previous x left / W is exact below 2^53. Beyond, left and W are cut to so many fewer
 *		bits, left rounded up and W down: never less than is right.
 *
 * A clock that is set back: a debt stays as it is until the time it was made at comes again, but
 * no longer than the bucket takes to empty; a window goes on until its end where it is the next
 * one, as in include/sluice/algo_window.h, and else begins anew.
 */
#ifndef SLUICE_SHARED_MODEL_H
#define SLUICE_SHARED_MODEL_H

#include "cluster/quota/shared.h"

/* So long after its end a fixed window is still known, for charges that come late. */
#define SHARED_GRACE_US 2000000ULL

/* A limit, as the store sees it. */
struct shared_rate {
	u64 capacity;
	u64 mult;		/* buckets: a request's interval in ticks */
	u64 tau;		/* capacity x mult */
	u64 most;		/* buckets: the largest debt that is kept, ticks; at least 2 tau */
	u64 period_us;		/* windows, logs */
	u8 algo;		/* enum http_algo */
};
/* 0, or -EINVAL where a def makes no limit (a grace, a rate of 0). */
int shared_rate_make(const struct spec_def *def, struct shared_rate *ret);

/* Of a bucket, ticks, where it may be so many requests above its capacity (0: one capacity). */
u64 shared_most_debt(const struct shared_rate *rate, u64 above);

/* 0; -EINVAL, -E2BIG: it is none that a store can answer. */
int shared_ask_check(const struct shared_ask *ask);

/* What an ask comes to for a bucket, before waits and states are made of it. */
struct shared_raw {
	u64 used;		/* count; of a bucket ticks of debt; of a log with what is held */
	u64 before, window, own;
	u64 held;		/* of `used` what this node's own lease holds, requests */
	u64 granted;
	u64 excess;
	u64 fits_us;		/* of a log that refused: the time at which it would fit */
	bool over, late;
};
/* Fills a bucket's `out` part. */
void shared_settle(struct shared_bucket *bucket, const struct shared_rate *rate,
		   const struct shared_raw *raw, u64 now_us);

/* previous x left / W, see above. */
u64 shared_share(u64 previous, u64 left_us, u64 period_us);

struct shared_lease {
	u32 node;
	u64 granted;		/* and neither said to be spent nor returned */
	u64 until_us;
	u64 window;
};

struct shared_own {
	u32 node;
	u64 count;
};

/* Of a log: so many requests of a node at one time. */
struct shared_time {
	u64 us;
	u64 count;		/* that count */
	u64 own;		/* that its node has charged; more than `count` where another gave some back */
	u32 node;
};

/* A bucket. Zeroes are an unused one. */
struct shared_entry {
	u64 key, tag;
	u8 algo;
	u64 expires_ms;
	u64 debt, at_us, tau;			/* buckets; the tau that the debt was made at */
	u64 window, count;			/* windows; a log: the count */
	u64 before, before_window;		/* the window before the current one */
	u64 given_us, given_end_us;		/* buckets: when some was given back, and until when that is of
						   interest: it would have been empty by then */
	u64 held;				/* of all leases in the current window */
	struct shared_lease *lease;
	u32 lease_count;
	u64 first_end_us, last_end_us;		/* of leases; the first may be over, the last given back */
	struct shared_own *own;
	u32 own_count;
	struct shared_time *time;		/* oldest first */
	u32 time_count;
	struct shared_entry *next;		/* of its table */
};
void shared_entry_clear(struct shared_entry *entry);	/* frees what it holds, and makes it unused */

/*
 * One ask, at `now_us`. entry[i] is that of bucket[i]. Returns whether it passed. -ENOMEM does not
 * happen: tests and simulations end there.
 */
bool shared_model_ask(struct shared_entry **entry, struct shared_bucket *bucket, u32 count,
		      u32 node, u64 now_us);

#endif
