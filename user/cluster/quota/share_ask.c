// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * share_ask.c - what goes to the store with an ask beside its cost, and what comes back: leases.
 *
 * A lease is credit that the store has charged already, to be spent here within every_ns of when
 * it was asked for. The store keeps it for a quarter of that and a tenth of a second longer, so
 * what was spent last can still be said before the store takes the rest back for spent by nobody.
 * Credit ends with the window that it was charged in, on the latest that the store's clock can show.
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
#include "cluster/quota/share_private.h"

#define CALLS_MIN 3
#define STORE_GRACE_US 100000ULL
#define WANT_MAX SL_COST_MAX
#define SAY_AGAIN_NS 100000000ULL

/* ------------------------------------------------------------------ demand */

void share_count_demand(struct share_entry *e, u64 cost, u64 now_ns)
{
	u64 passed = share_less(now_ns, e->period_ns);

	if (passed >= e->every_ns) {
		bool next = passed < 2 * e->every_ns;

		e->calls_before = next ? e->calls : 0;
		e->demand_before = next ? e->demand : 0;
		e->calls = 0;
		e->demand = 0;
		e->period_ns = next ? e->period_ns + e->every_ns : now_ns;
	}
	if (e->calls < 0xffff)
		e->calls++;
	share_add(&e->demand, cost);
}

/* Of the period before, what of it lies within the last every_ns. */
u64 share_target(const struct share_entry *e, u64 now_ns)
{
	double passed = (double)share_less(now_ns, e->period_ns) / e->every_ns;
	double calls = e->calls, before = e->calls_before;
	double demand = e->demand, demand_before = e->demand_before;

	if (passed >= 1) {
		passed -= 1;
		before = calls;
		demand_before = demand;
		calls = demand = 0;
	}
	if (passed >= 1 || calls + before * (1 - passed) < CALLS_MIN)
		return 0;
	demand += demand_before * (1 - passed);
	return share_min(demand * 3 / 2 + 1, WANT_MAX);
}

/* ------------------------------------------------------------------ leases */

bool share_lease_over(const struct shares *shares, const struct share_entry *e, struct sl_now now)
{
	if (now.mono_ns >= e->until_ns || __atomic_load_n(&shares->ending, __ATOMIC_RELAXED))
		return true;
	return share_is_window(&e->def) &&
	       share_window(e, share_store_latest_ns(shares, now)) != e->lease_window;
}

void share_schedule_lease(struct shares *shares, struct share_set *set, struct share_entry *e,
			  u64 now_ns)
{
	u64 at_ns = share_less(e->until_ns, e->every_ns / 4);

	/* Short of what is wanted; but where the store gave less than that, no sooner for it. */
	if (e->credit < share_target(e, now_ns) / 3)
		at_ns = share_min(at_ns, e->renewed_ns + e->every_ns / 8);
	share_schedule(shares, set, e, at_ns > now_ns ? at_ns : now_ns);
}

void share_say_lease(const struct shares *shares, struct share_entry *e,
		     struct shared_bucket *bucket, bool end, struct sl_now now)
{
	bool gone = share_is_window(&e->def) &&
		    share_window(e, share_store_ns(shares, now)) != e->lease_window;

	/* In a window that is over and counts no more both are as good as charged. */
	if (gone && e->def.algo != HTTP_SLIDING_WINDOW) {
		e->spent = e->credit = 0;
		return;
	}
	bucket->spent = e->spent;
	share_add(&e->said, e->spent);
	e->spent = 0;
	if (end || gone) {
		bucket->returned = e->credit;
		e->credit = 0;
	}
	if (share_is_window(&e->def) && (bucket->spent || bucket->returned))
		bucket->window = e->lease_window;
}

void share_want_lease(struct share_entry *e, struct shared_bucket *bucket, u64 target)
{
	if (!(e->flags & SHARE_WANTING))
		bucket->want = share_less(target, e->credit);
	if (bucket->want)
		e->flags |= SHARE_WANTING;
	if (bucket->want || bucket->spent || bucket->returned || e->credit)
		bucket->lease_us = e->every_ns / 1000 + e->every_ns / 4000 + STORE_GRACE_US;
}

void share_lease_answered(struct shares *shares, struct share_set *set, struct share_entry *e,
			  const struct shared_bucket *bucket, bool done, struct sl_now now)
{
	u64 until_ns = bucket->asked_ns + e->every_ns - e->every_ns / 64;
	u64 spent = bucket->spent;

	if (bucket->want)
		e->flags &= ~SHARE_WANTING;
	if (!share_is_bucket(&e->def))
		spent -= bucket->put_back;
	share_sub(&e->said, spent);
	if (!done) {
		/* Nobody knows; to say it twice errs towards fewer. What was returned is not taken back. */
		if (spent && !(e->flags & SHARE_AGAIN)) {
			share_add(&e->spent, spent);
			share_schedule(shares, set, e, now.mono_ns + SAY_AGAIN_NS);
		}
		return;
	}
	if (!bucket->lease_us)
		return;
	e->renewed_ns = now.mono_ns;
	if (bucket->granted && bucket->granted <= bucket->want && !(e->flags & SHARE_AGAIN)) {
		if (share_is_window(&e->def) && e->lease_window != bucket->state.window) {
			e->credit = e->spent = 0;
			e->lease_window = bucket->state.window;
		}
		share_add(&e->credit, bucket->granted);
	}
	if (e->credit && until_ns > e->until_ns)
		e->until_ns = until_ns;
	if (e->credit || e->spent)
		share_schedule_lease(shares, set, e, now.mono_ns);
}

/* ------------------------------------------------------------------ asks */

void share_ask(struct shares *shares, const struct share_ref *ref, struct shared_bucket *bucket,
	       struct sl_now now)
{
	struct share_entry *e;
	struct share_set *set;

	bucket->asked_ns = now.mono_ns;
	bucket->want = bucket->returned = bucket->spent = bucket->lease_us = bucket->granted = 0;
	bucket->put_back = 0;
	e = share_claim(shares, ref, now, &set);
	if (!e)
		return;
	e->used_ns = now.mono_ns;
	if (bucket->kind == SHARED_BACK)
		share_add(&e->backing, bucket->cost);
	if (bucket->kind == SHARED_TAKE) {
		/* Asked although it was refused here: what was let through and is not told stays so. */
		if (e->consistency == CONSISTENCY_WRITE_BACK)
			bucket->hold += share_less((u64)e->unsent + e->told, e->back);
		share_add(&e->asked, bucket->cost);
		if (e->consistency == CONSISTENCY_LEASE && bucket->cost) {
			share_say_lease(shares, e, bucket, share_lease_over(shares, e, now), now);
			share_want_lease(e, bucket, share_target(e, now.mono_ns));
		}
		share_put_back(shares, e, bucket, now);
	}
	share_unlock(&set->lock);
}

void share_answered(struct shares *shares, const struct share_ref *ref,
		    const struct shared_bucket *bucket, const struct shared_ask *ask,
		    enum shared_outcome outcome, struct sl_now now)
{
	struct share_entry *e;
	struct share_set *set;

	if (outcome == SHARED_LATE)
		return;
	if (outcome == SHARED_DONE) {
		share_clock_heard(shares, bucket->asked_ns, now, ask->now_us);
		share_note_excess(shares, ref->metric, bucket, ask->now_us);
	}
	e = share_find(shares, ref->key, &set);
	if (!e)
		return;
	if (bucket->kind == SHARED_TAKE)
		share_sub(&e->asked, bucket->cost);
	if (outcome == SHARED_DONE) {
		if (!e->unsent && !e->told)
			e->flags &= ~SHARE_FAILED;
		share_learn(shares, set, e, bucket, ask, now);
	}
	share_settle(shares, set, e, bucket, outcome == SHARED_DONE, now);
	share_lease_answered(shares, set, e, bucket, outcome == SHARED_DONE, now);
	if (!(e->flags & (SHARE_TELLING | SHARE_WANTING)))
		e->flags &= ~SHARE_AGAIN;
	share_unlock(&set->lock);
}
