/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cluster_store_model.h - what the cluster store does to a bucket, in C: charge.lua is a
 *translation of it. cluster_store.h states what it does, this file how.
 *
 * Integers throughout. What the script computes in doubles stays below 2^53, or is a multiple
 * of a power of two with which it does, so that both get the same numbers:
 *
 *   buckets	As user/cluster/quota/cluster_store_settle.h says. Where the rate has changed a debt
 *is one of another tau: the share of it stays. sliding	previous x left / W is exact below 2^53.
 *Beyond, left and W are cut to so many fewer bits, left rounded up and W down: never less than is
 *right.
 *
 * A clock that is set back: a debt stays as it is until its own time comes again, but
 * no longer than the bucket takes to empty; a window goes on until its end where it is the next
 * one, as in include/sluice/algo_window.h, and else begins anew.
 */
#ifndef SLUICE_TESTS_CLUSTER_STORE_MODEL_H
#define SLUICE_TESTS_CLUSTER_STORE_MODEL_H

#include "cluster/quota/cluster_store_settle.h"

/* A fixed window is kept for so long after its end, for late charges. */
#define CLUSTER_STORE_GRACE_US 2000000ULL

struct cluster_store_lease {
	u32 node;
	u64 granted; /* neither spent nor returned yet */
	u64 until_us;
	u64 window;
};

struct cluster_store_own {
	u32 node;
	u64 count;
};

/* Of a log: so many requests of a node at one time. */
struct cluster_time {
	u64 us;
	u64 count; /* that count */
	u64 own; /* that its node has charged; more than `count` where another node refunded some */
	u32 node;
};

/* A bucket. Zeroes are an unused one. */
struct cluster_store_entry {
	u64 key, tag;
	u8 algo;
	u64 expires_ms;
	u64 debt, at_us, tau;	    /* buckets; the tau that the debt was made at */
	u64 window, count;	    /* windows; a log: the count */
	u64 before, before_window;  /* the window before the current one */
	u64 given_us, given_end_us; /* buckets: when some was refunded, and until when that is of
				       interest: it would have been empty by then */
	u64 held;		    /* of all leases in the current window */
	struct cluster_store_lease *lease;
	u32 lease_count;
	u64 first_end_us, last_end_us; /* of leases; the first may be over, the last refunded */
	struct cluster_store_own *own;
	u32 own_count;
	struct cluster_time *time; /* oldest first */
	u32 time_count;
	struct cluster_store_entry *next; /* of its table */
};
void cluster_store_entry_clear(
	struct cluster_store_entry *entry); /* frees what it holds, and makes it unused */

/*
 * One request, at `now_us`. entry[i] is that of bucket[i]. Returns whether it passed. -ENOMEM does
 * not happen: tests and simulations end there.
 */
bool cluster_store_model_request(struct cluster_store_entry **entry,
				 struct cluster_store_bucket *bucket, u32 count, u32 node,
				 u64 now_us);

#endif
