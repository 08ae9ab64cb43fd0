// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * share.c - see share.h: what a decision does with its node's share, without the store.
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
#include "cluster/quota/share_private.h"

#define OWED_AFTER_NS 20000000ULL	/* what is owed at once waits for more of it */
#define OWED_SPREAD_NS 50000000ULL
#define OVERDUE_NS 10000000ULL		/* a few turns of the cluster's thread */
#define ANSWERED_NS 20000000ULL

u64 share_capacity(const struct spec_def *def)
{
	struct spec spec;

	return spec_make_def(def, &spec, NULL) ? 1 : spec.capacity;
}

void shares_set_nodes(struct shares *shares, u32 nodes)
{
	__atomic_store_n(&shares->nodes, nodes ? nodes : 1, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------------ take */

static enum share_answer take_lease(struct shares *shares, struct share_set *set,
				    struct share_entry *e, u64 cost, struct sl_now now)
{
	share_count_demand(e, cost, now.mono_ns);
	if (cost > e->credit || share_lease_over(shares, e, now))
		return SHARE_ASK;
	e->credit -= cost;
	share_add(&e->spent, cost);
	share_add(&e->earned, 1);
	share_schedule_lease(shares, set, e, now.mono_ns);
	return SHARE_COVERED;
}

static void note_new(struct share_entry *e, u64 cost, u64 now_ns)
{
	if (!share_is_bucket(&e->def))
		return;
	if (e->empty_ns < now_ns)
		e->empty_ns = now_ns;
	e->empty_ns += cost * share_interval_us(&e->def) * 1e3;
}

/* What was charged here was not told in time, or its telling takes too long to be answered. */
static bool is_overdue(const struct share_entry *e, u64 now_ns)
{
	if (e->unsent && now_ns > e->due_ns && now_ns - e->due_ns > OVERDUE_NS)
		return true;
	return e->told && now_ns > e->renewed_ns + ANSWERED_NS;
}

static enum share_answer take_counted(struct shares *shares, struct share_set *set,
				      struct share_entry *e, u64 key, u64 cost, struct sl_now now)
{
	/* Without the store's clock nobody knows which window it is. */
	if (e->flags & SHARE_FAILED || !shares->clock.known || is_overdue(e, now.mono_ns))
		return SHARE_ASK;
	share_roll(shares, set, e, now);
	if (e->unsent + cost > SHARE_COUNT_MAX)
		return SHARE_ASK;
	e->unsent += cost;
	note_new(e, cost, now.mono_ns);
	if (cost)
		share_schedule(shares, set, e, share_phase(key, e->every_ns, now.mono_ns));
	return SHARE_COVERED;
}

enum share_answer share_take(struct shares *shares, const struct share_ref *ref, u64 cost,
			     struct sl_now now)
{
	enum share_answer answer;
	struct share_entry *e;
	struct share_set *set;

	if (ref->consistency == CONSISTENCY_STRICT ||
	    __atomic_load_n(&shares->ending, __ATOMIC_RELAXED))
		return SHARE_ASK;
	e = share_claim(shares, ref, now, &set);
	if (!e)
		return SHARE_ASK;
	e->used_ns = now.mono_ns;
	answer = e->consistency == CONSISTENCY_LEASE ?
			 take_lease(shares, set, e, cost, now) :
			 take_counted(shares, set, e, ref->key, cost, now);
	share_unlock(&set->lock);
	return answer;
}

void share_untake(struct shares *shares, const struct share_ref *ref, u64 cost)
{
	struct share_set *set;
	struct share_entry *e = share_find(shares, ref->key, &set);
	u64 rest;

	if (!e)
		return;
	if (e->consistency == CONSISTENCY_LEASE) {
		rest = share_sub(&e->spent, cost);
		share_add(&e->credit, cost - rest);
	} else {
		rest = share_sub(&e->unsent, cost);
		rest = share_sub(&e->late, rest);
	}
	/* It has been told already. */
	share_add(&e->back, rest);
	if (rest)
		share_schedule(shares, set, e, 0);
	share_unlock(&set->lock);
}

void share_owe(struct shares *shares, const struct share_ref *ref, s64 hits, struct sl_now now)
{
	struct share_set *set;
	struct share_entry *e = share_claim(shares, ref, now, &set);
	u64 at_ns;

	if (!e)
		return;
	e->used_ns = now.mono_ns;
	share_roll(shares, set, e, now);
	if (hits > 0) {
		share_add(&e->unsent, hits);
		note_new(e, hits, now.mono_ns);
	} else {
		share_add(&e->back, share_sub(&e->unsent, -hits));
	}
	at_ns = now.mono_ns + OWED_AFTER_NS;
	/* What is given back lets others through, a reset also here: that does not wait. */
	if (e->consistency == CONSISTENCY_WRITE_BACK && !e->back)
		at_ns = share_phase(ref->key, e->every_ns, now.mono_ns);
	else
		at_ns = share_phase(ref->key, OWED_SPREAD_NS, at_ns);
	share_schedule(shares, set, e, at_ns);
	share_unlock(&set->lock);
}

void share_forget(struct shares *shares, u64 key)
{
	struct share_set *set;
	struct share_entry *e = share_find(shares, key, &set);

	if (!e)
		return;
	e->unsent = e->late = e->back = e->lost = e->told = 0;
	e->credit = e->spent = e->said = 0;
	e->own = e->own_window = e->own_mark = 0;
	if (e->flags & (SHARE_TELLING | SHARE_WANTING))
		e->flags |= SHARE_AGAIN;
	share_unlock(&set->lock);
}

/* ------------------------------------------------------------------ known */

u64 share_entry_unsent(const struct share_entry *e)
{
	u64 more = (u64)e->asked + e->unsent + e->told + e->spent + e->said + e->lost + e->restored;

	return share_less(more, e->back);
}

u64 share_unsent(const struct shares *shares, u64 key)
{
	struct share_set *set;
	struct share_entry *e = share_find(shares, key, &set);
	u64 unsent;

	if (!e)
		return 0;
	unsent = share_entry_unsent(e);
	share_unlock(&set->lock);
	return unsent;
}

/*
 * As much of the limit as this node had of the demand, but never less than half of an even share:
 * whoever had none may well have some now. What that gives away is taken from who had nearly all.
 */
u32 share_permille(const struct shares *shares, u64 key, struct sl_now now)
{
	u32 nodes = __atomic_load_n(&shares->nodes, __ATOMIC_RELAXED);
	u32 least = 500 / nodes, most = 1000 - 500 * (nodes - 1) / nodes, share = 1000 / nodes;
	struct share_set *set;
	struct share_entry *e = share_find(shares, key, &set);

	if (e) {
		if (e->share_permille)
			share = e->share_permille;
		share_unlock(&set->lock);
	}
	share = share < least ? least : share > most ? most : share;
	return share ? share : 1;
}
