// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * quota_prepare.c - what goes to the store with an ask beside its cost, and what comes back:
 * leases.
 *
 * A lease is credit that the store has charged already, to be spent here within every_ns of when
 * it was asked for. The store keeps it for a quarter of that and a tenth of a second longer, so
 * what was spent last can still be said before the store takes the rest back for spent by nobody.
 * Credit ends with the window that it was charged in, on the latest that the store's clock can
 * show.
 *
 * How much: what was asked for in the last every_ns, and half as much again, so it grows and
 * shrinks with demand; nothing where fewer than three calls came. It is renewed when a quarter of
 * the time, or a third of that amount, is left, by the cluster's thread.
 *
 * What it costs. An ask is a call that was not covered; a renewal goes out only where something was
 * spent since the last one, that is, for at least one call that was covered; and a lease that is
 * given back early although nothing was spent is paid for by twenty such calls. So no key takes
 * more than 1.05 commands a decision, however rarely it is asked.
 */
#include "cluster/quota/quota_private.h"

#define REQUESTS_MIN 3
#define STORE_GRACE_US 100000ULL
#define WANT_MAX SL_COST_MAX
#define FLUSH_AGAIN_NS 100000000ULL

/* ------------------------------------------------------------------ demand */

void quota_count_demand(struct quota_entry *e, u64 cost, u64 now_ns)
{
	u64 passed = quota_less(now_ns, e->period_ns);

	if (passed >= e->every_ns) {
		bool next = passed < 2 * e->every_ns;

		e->requests_before = next ? e->requests : 0;
		e->demand_before = next ? e->demand : 0;
		e->requests = 0;
		e->demand = 0;
		e->period_ns = next ? e->period_ns + e->every_ns : now_ns;
	}
	if (e->requests < 0xffff)
		e->requests++;
	quota_add(&e->demand, cost);
}

/* Of the period before, what of it lies within the last every_ns. */
u64 quota_target(const struct quota_entry *e, u64 now_ns)
{
	double passed = (double)quota_less(now_ns, e->period_ns) / e->every_ns;
	double requests = e->requests, before = e->requests_before;
	double demand = e->demand, demand_before = e->demand_before;

	if (passed >= 1) {
		passed -= 1;
		before = requests;
		demand_before = demand;
		requests = demand = 0;
	}
	if (passed >= 1 || requests + before * (1 - passed) < REQUESTS_MIN)
		return 0;
	demand += demand_before * (1 - passed);
	return quota_min(demand * 3 / 2 + 1, WANT_MAX);
}

/* ------------------------------------------------------------------ leases */

bool quota_lease_over(const struct quotas *quotas, const struct quota_entry *e, struct sl_now now)
{
	if (now.mono_ns >= e->until_ns || __atomic_load_n(&quotas->ending, __ATOMIC_RELAXED))
		return true;
	return quota_is_window(&e->def) &&
	       quota_window(e, quota_store_latest_ns(quotas, now)) != e->lease_window;
}

void quota_schedule_lease(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
			  u64 now_ns)
{
	u64 at_ns = quota_less(e->until_ns, e->every_ns / 4);

	/* Short of what is wanted; but where the store gave less than that, no sooner for it. */
	if (e->credit < quota_target(e, now_ns) / 3)
		at_ns = quota_min(at_ns, e->renewed_ns + e->every_ns / 8);
	quota_schedule(quotas, set, e, at_ns > now_ns ? at_ns : now_ns);
}

void quota_flush_lease(const struct quotas *quotas, struct quota_entry *e,
		       struct cluster_store_bucket *bucket, bool end, struct sl_now now)
{
	bool gone = quota_is_window(&e->def) &&
		    quota_window(e, quota_store_ns(quotas, now)) != e->lease_window;

	/* In a window that is over and counts no more both are as good as charged. */
	if (gone && e->def.algo != HTTP_SLIDING_WINDOW) {
		e->spent = e->credit = 0;
		return;
	}
	bucket->spent = e->spent;
	quota_add(&e->spent_sent, e->spent);
	e->spent = 0;
	if (end || gone) {
		bucket->returned = e->credit;
		e->credit = 0;
	}
	if (quota_is_window(&e->def) && (bucket->spent || bucket->returned))
		bucket->window = e->lease_window;
}

void quota_request_lease(struct quota_entry *e, struct cluster_store_bucket *bucket, u64 target)
{
	if (!(e->flags & QUOTA_LEASING))
		bucket->want = quota_less(target, e->credit);
	if (bucket->want)
		e->flags |= QUOTA_LEASING;
	if (bucket->want || bucket->spent || bucket->returned || e->credit)
		bucket->lease_us = e->every_ns / 1000 + e->every_ns / 4000 + STORE_GRACE_US;
}

void quota_lease_complete(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
			  const struct cluster_store_bucket *bucket, bool done, struct sl_now now)
{
	u64 until_ns = bucket->sent_ns + e->every_ns - e->every_ns / 64;
	u64 spent = bucket->spent;

	if (bucket->want)
		e->flags &= ~QUOTA_LEASING;
	if (!quota_is_bucket(&e->def))
		spent -= bucket->restored;
	quota_sub(&e->spent_sent, spent);
	if (!done) {
		/* Nobody knows; to say it twice errs towards fewer. What was returned is not taken back. */
		if (spent && !(e->flags & QUOTA_AGAIN)) {
			quota_add(&e->spent, spent);
			quota_schedule(quotas, set, e, now.mono_ns + FLUSH_AGAIN_NS);
		}
		return;
	}
	if (!bucket->lease_us)
		return;
	e->renewed_ns = now.mono_ns;
	if (bucket->granted && bucket->granted <= bucket->want && !(e->flags & QUOTA_AGAIN)) {
		if (quota_is_window(&e->def) && e->lease_window != bucket->state.window) {
			e->credit = e->spent = 0;
			e->lease_window = bucket->state.window;
		}
		quota_add(&e->credit, bucket->granted);
	}
	if (e->credit && until_ns > e->until_ns)
		e->until_ns = until_ns;
	if (e->credit || e->spent)
		quota_schedule_lease(quotas, set, e, now.mono_ns);
}

/* ------------------------------------------------------------------ asks */

void quota_prepare(struct quotas *quotas, const struct quota_ref *ref,
		   struct cluster_store_bucket *bucket, struct sl_now now)
{
	struct quota_entry *e;
	struct quota_set *set;

	bucket->sent_ns = now.mono_ns;
	bucket->want = bucket->returned = bucket->spent = bucket->lease_us = bucket->granted = 0;
	bucket->restored = 0;
	e = quota_claim(quotas, ref, now, &set);
	if (!e)
		return;
	e->used_ns = now.mono_ns;
	if (bucket->kind == CLUSTER_STORE_REFUND)
		quota_add(&e->refunding, bucket->cost);
	if (bucket->kind == CLUSTER_STORE_CHARGE) {
		/* Asked although it was refused here: what was let through and is not told stays so. */
		if (e->consistency == CONSISTENCY_WRITE_BACK)
			bucket->hold += quota_less((u64)e->unflushed + e->flushing, e->refunded);
		quota_add(&e->requested, bucket->cost);
		if (e->consistency == CONSISTENCY_LEASE && bucket->cost) {
			quota_flush_lease(quotas, e, bucket, quota_lease_over(quotas, e, now), now);
			quota_request_lease(e, bucket, quota_target(e, now.mono_ns));
		}
		quota_restore(quotas, e, bucket, now);
	}
	quota_unlock(&set->lock);
}

void quota_complete(struct quotas *quotas, const struct quota_ref *ref,
		    const struct cluster_store_bucket *bucket,
		    const struct cluster_store_request *ask, enum cluster_store_outcome outcome,
		    struct sl_now now)
{
	struct quota_entry *e;
	struct quota_set *set;

	if (outcome == CLUSTER_STORE_LATE)
		return;
	if (outcome == CLUSTER_STORE_DONE) {
		quota_clock_update(quotas, bucket->sent_ns, now, ask->now_us);
		quota_note_excess(quotas, ref->metric, bucket, ask->now_us);
	}
	e = quota_find(quotas, ref->key, &set);
	if (!e)
		return;
	if (bucket->kind == CLUSTER_STORE_CHARGE)
		quota_sub(&e->requested, bucket->cost);
	if (outcome == CLUSTER_STORE_DONE) {
		if (!e->unflushed && !e->flushing)
			e->flags &= ~QUOTA_FAILED;
		quota_learn(quotas, set, e, bucket, ask, now);
	}
	quota_settle(quotas, set, e, bucket, outcome == CLUSTER_STORE_DONE, now);
	quota_lease_complete(quotas, set, e, bucket, outcome == CLUSTER_STORE_DONE, now);
	if (!(e->flags & (QUOTA_FLUSHING | QUOTA_LEASING)))
		e->flags &= ~QUOTA_AGAIN;
	quota_unlock(&set->lock);
}
