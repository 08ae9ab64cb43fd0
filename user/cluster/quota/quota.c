// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * quota.c - see quota.h: what a decision does with its node's share, without the store.
 *
 * Why write_back stays within (nodes - 1) x what a node admits in an interval: a node knows, of
 * what the store has been told, all up to its own last telling, and tells what it admits at most
 * an interval after the first of it. Of the nodes' last untold admissions let k's be the one that
 * begins last. What the store knew then k knew, too, and with it and its own k stayed within the
 * limit; all that it did not know is what each other node had not told, at most what that node
 * admits in an interval. (And while answers are on their way: in an interval and a round trip.)
 *
 * That needs a store that answers. A telling that failed, or that did not go out in time, therefore
 * ends it: until one arrives, calls of that bucket go the way of those that ask, and
 * on_store_failure decides.
 */
#include "cluster/quota/quota_private.h"

#define UNFLUSHED_AFTER_NS 20000000ULL	/* what is owed at once waits for more of it */
#define UNFLUSHED_JITTER_NS 50000000ULL
#define OVERDUE_NS 10000000ULL		/* a few turns of the cluster's thread */
#define COMPLETED_NS 20000000ULL

u64 quota_capacity(const struct spec_def *def)
{
	struct spec spec;

	return spec_make_def(def, &spec, NULL) ? 1 : spec.capacity;
}

void quotas_set_nodes(struct quotas *quotas, u32 nodes)
{
	__atomic_store_n(&quotas->nodes, nodes ? nodes : 1, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------------ take */

static enum quota_verdict take_lease(struct quotas *quotas, struct quota_set *set,
				     struct quota_entry *e, u64 cost, struct sl_now now)
{
	quota_count_demand(e, cost, now.mono_ns);
	if (cost > e->credit || quota_lease_over(quotas, e, now))
		return QUOTA_NOT_COVERED;
	e->credit -= cost;
	quota_add(&e->spent, cost);
	quota_add(&e->earned, 1);
	quota_schedule_lease(quotas, set, e, now.mono_ns);
	return QUOTA_COVERED;
}

static void note_new(struct quota_entry *e, u64 cost, u64 now_ns)
{
	if (!quota_is_bucket(&e->def))
		return;
	if (e->empty_ns < now_ns)
		e->empty_ns = now_ns;
	e->empty_ns += cost * quota_interval_us(&e->def) * 1e3;
}

/* What was charged here was not told in time, or its telling takes too long to be answered. */
static bool is_overdue(const struct quota_entry *e, u64 now_ns)
{
	if (e->unflushed && now_ns > e->due_ns && now_ns - e->due_ns > OVERDUE_NS)
		return true;
	return e->flushing && now_ns > e->renewed_ns + COMPLETED_NS;
}

static enum quota_verdict take_counted(struct quotas *quotas, struct quota_set *set,
				       struct quota_entry *e, u64 key, u64 cost, struct sl_now now)
{
	/* Without the store's clock nobody knows which window it is. */
	if (e->flags & QUOTA_FAILED || !quotas->clock.known || is_overdue(e, now.mono_ns))
		return QUOTA_NOT_COVERED;
	quota_roll(quotas, set, e, now);
	if (e->unflushed + cost > QUOTA_COUNT_MAX)
		return QUOTA_NOT_COVERED;
	e->unflushed += cost;
	note_new(e, cost, now.mono_ns);
	if (cost)
		quota_schedule(quotas, set, e, quota_phase(key, e->every_ns, now.mono_ns));
	return QUOTA_COVERED;
}

enum quota_verdict quota_acquire(struct quotas *quotas, const struct quota_ref *ref, u64 cost,
				 struct sl_now now)
{
	enum quota_verdict answer;
	struct quota_entry *e;
	struct quota_set *set;

	if (ref->consistency == CONSISTENCY_STRICT ||
	    __atomic_load_n(&quotas->ending, __ATOMIC_RELAXED))
		return QUOTA_NOT_COVERED;
	e = quota_claim(quotas, ref, now, &set);
	if (!e)
		return QUOTA_NOT_COVERED;
	e->used_ns = now.mono_ns;
	answer = e->consistency == CONSISTENCY_LEASE ?
			 take_lease(quotas, set, e, cost, now) :
			 take_counted(quotas, set, e, ref->key, cost, now);
	quota_unlock(&set->lock);
	return answer;
}

void quota_release(struct quotas *quotas, const struct quota_ref *ref, u64 cost)
{
	struct quota_set *set;
	struct quota_entry *e = quota_find(quotas, ref->key, &set);
	u64 rest;

	if (!e)
		return;
	if (e->consistency == CONSISTENCY_LEASE) {
		rest = quota_sub(&e->spent, cost);
		quota_add(&e->credit, cost - rest);
	} else {
		rest = quota_sub(&e->unflushed, cost);
		rest = quota_sub(&e->late, rest);
	}
	/* It has been told already. */
	quota_add(&e->refunded, rest);
	if (rest)
		quota_schedule(quotas, set, e, 0);
	quota_unlock(&set->lock);
}

void quota_add_unflushed(struct quotas *quotas, const struct quota_ref *ref, s64 hits,
			 struct sl_now now)
{
	struct quota_set *set;
	struct quota_entry *e = quota_claim(quotas, ref, now, &set);
	u64 at_ns;

	if (!e)
		return;
	e->used_ns = now.mono_ns;
	quota_roll(quotas, set, e, now);
	if (hits > 0) {
		quota_add(&e->unflushed, hits);
		note_new(e, hits, now.mono_ns);
	} else {
		quota_add(&e->refunded, quota_sub(&e->unflushed, -hits));
	}
	at_ns = now.mono_ns + UNFLUSHED_AFTER_NS;
	/* What is given back lets others through, a reset also here: that does not wait. */
	if (e->consistency == CONSISTENCY_WRITE_BACK && !e->refunded)
		at_ns = quota_phase(ref->key, e->every_ns, now.mono_ns);
	else
		at_ns = quota_phase(ref->key, UNFLUSHED_JITTER_NS, at_ns);
	quota_schedule(quotas, set, e, at_ns);
	quota_unlock(&set->lock);
}

void quota_forget(struct quotas *quotas, u64 key)
{
	struct quota_set *set;
	struct quota_entry *e = quota_find(quotas, key, &set);

	if (!e)
		return;
	e->unflushed = e->late = e->refunded = e->lost = e->flushing = 0;
	e->credit = e->spent = e->spent_sent = 0;
	e->own = e->own_window = e->own_mark = 0;
	if (e->flags & (QUOTA_FLUSHING | QUOTA_LEASING))
		e->flags |= QUOTA_AGAIN;
	quota_unlock(&set->lock);
}

/* ------------------------------------------------------------------ known */

u64 quota_entry_unflushed(const struct quota_entry *e)
{
	u64 more = (u64)e->requested + e->unflushed + e->flushing + e->spent + e->spent_sent +
		   e->lost + e->restored;

	return quota_less(more, e->refunded);
}

u64 quota_unflushed(const struct quotas *quotas, u64 key)
{
	struct quota_set *set;
	struct quota_entry *e = quota_find(quotas, key, &set);
	u64 unflushed;

	if (!e)
		return 0;
	unflushed = quota_entry_unflushed(e);
	quota_unlock(&set->lock);
	return unflushed;
}

/*
 * As much of the limit as this node had of the demand, but never less than half of an even share:
 * whoever had none may well have some now. What that gives away is taken from who had nearly all.
 */
u32 quota_permille(const struct quotas *quotas, u64 key, struct sl_now now)
{
	u32 nodes = __atomic_load_n(&quotas->nodes, __ATOMIC_RELAXED);
	u32 least = 500 / nodes, most = 1000 - 500 * (nodes - 1) / nodes, share = 1000 / nodes;
	struct quota_set *set;
	struct quota_entry *e = quota_find(quotas, key, &set);

	if (e) {
		if (e->quota_permille)
			share = e->quota_permille;
		quota_unlock(&set->lock);
	}
	share = share < least ? least : share > most ? most : share;
	return share ? share : 1;
}
