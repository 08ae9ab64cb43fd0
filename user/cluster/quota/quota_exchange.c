// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * quota_exchange.c - leases and restored losses: the fields of a command beside its cost, and the
 * changes by the reply.
 *
 * A lease is credit that Redis has charged already; the node may spend it within every_ns of the
 * command. Redis keeps it longer by a quarter of that and a tenth of a second, so that the node can
 * report its last spending before Redis refunds the rest. Credit ends with the window that it was
 * charged in, by the latest time that Redis' clock can show.
 *
 * Size: one and a half times the demand of the last every_ns, so it grows and shrinks with demand;
 * nothing for fewer than three requests. The cluster's thread renews it when a quarter of the time,
 * or a third of that amount, is left; or what three round trips to Redis take, so that no request
 * waits for the renewal. For that a node may hold what six of them take
 * (cluster_store_bucket.least).
 *
 * Cost. A request that is not covered is one command. A renewal is sent only if credit was spent
 * since the last one, that is, for at least one covered request. A lease is returned early only
 * after twenty covered requests. So no key takes more than 1.05 commands a decision, however rare
 * its requests are.
 *
 * Losses. Redis may lose charges that it had replied to, by a failover or an empty start. Each node
 * detects the loss of its own and restores them with its next command for that bucket
 * (cluster_store_bucket.spent beyond any lease is charged in any case; of buckets .window), so they
 * count before any other request is admitted. Without a next request the cluster's thread sends the
 * command. After a first loss it checks other buckets for losses.
 *
 *     windows   Redis counts the charges of each node (state.own). In a newer reply state.own is at
 *               least that of an older one of the same window plus the charges since, less this
 *               node's pending refunds (`refunding`)
 *     logs      the same, for charges that certainly still count: those of this half of the
 *               window's length and of the half before
 *     buckets   Redis does not count by node. The time at which a bucket will be empty only grows,
 *               unless there is a refund. A nearer time (with leases, by more than an eighth of the
 *               capacity) shows a loss, and this node restores the earlier value. The later of two
 *               such times applies, so several nodes may restore it. Redis returns the time of the
 *               last refund. A loss before that refund cannot be detected, except by a single node,
 *               which sends all refunds itself
 *
 * No loss are: replies out of order (only a newer one, by Redis' time, is compared); leases
 * (state.own has only the reported part of one; of a bucket they are a tenth at most); a reset,
 * here or on another node, which refunds all charges but lowers only that node's own; a
 * first-request window that ended by a refund, which Redis still has as the previous one.
 *
 * Replies may arrive in another order than Redis processed the commands, because each worker and
 * the cluster's thread have connections of their own. An old reply lacks charges of a newer one.
 * With write_back, where the state here admits alone, applying it would admit those again
 * (quota_is_stale()). An old reply with more of this node's charges than the newer one was
 * processed before the loss: its charge is lost, and the newer reply could not show that.
 *
 * Of a sliding window only the current part is restored: a refund may have lowered the previous
 * one.
 *
 * The same numbers give this node's part of the demand, used while Redis is unavailable.
 */
#include <math.h>

#include "cluster/quota/quota_private.h"
#include "limiter/algorithm.h"

#define REQUESTS_MIN 3
#define STORE_GRACE_US 100000ULL
#define WANT_MAX SL_COST_MAX
#define FLUSH_AGAIN_NS 100000000ULL
#define RESTORE_NS 100000000ULL /* delay: a command of a request may restore it first */
#define REFILL_ROUNDS 3
#define HELD_ROUNDS 6
#define DUE_NS 5000000ULL	 /* between two walks of the cluster's thread for what is due */
#define ROUNDED_US 2		 /* rounding: two times of one bucket may differ by this */
#define CLOCK_BACK_US 1000000ULL /* a Redis whose time is behind by this is another server */
#define QUOTA_PRIOR 8		 /* requests: the weight of the earlier value */

/* ------------------------------------------------------------------ demand */

void quota_count_demand(struct quota_entry *e, u64 cost, u64 now_ns)
{
	u64 passed = less(now_ns, e->period_ns);

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

/* The requests of the last every_ns, with that part of the previous period; 0: too few for a
 * lease. */
static double recent_demand(const struct quota_entry *e, u64 now_ns)
{
	double passed = (double)less(now_ns, e->period_ns) / e->every_ns;
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
	return demand + demand_before * (1 - passed);
}

u64 quota_target(const struct quota_entry *e, u64 now_ns)
{
	double demand = recent_demand(e, now_ns);

	return demand ? min_u64(demand * 3 / 2 + 1, WANT_MAX) : 0;
}

/* The most that a node holds of any limit for `rounds` round trips; charge.lua has the quarter,
 * too. */
static u64 rounds_max(const struct quotas *quotas, const struct spec_def *def, u32 rounds)
{
	u64 us = rounds * quotas->deadline_ns / 1000;

	return min_u64(us / quota_interval_us(def), quota_capacity(def) / 4);
}

/*
 * What so many round trips to Redis take of the demand: of the last every_ns, or of the time since
 * the key is in use. 0 while no round trip is known.
 */
static double demand_of_rounds(const struct quotas *quotas, const struct quota_entry *e, u32 rounds,
			       u64 now_ns)
{
	u64 round_ns = e->round_us * 1000ULL + DUE_NS, since_ns = e->every_ns;

	if (!e->round_us)
		return 0;
	if (!e->requests_before && now_ns < e->period_ns + since_ns)
		since_ns = less(now_ns, e->period_ns) + round_ns;
	return fmin(recent_demand(e, now_ns) * rounds * round_ns / since_ns,
		    rounds_max(quotas, &e->def, rounds));
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
	u64 before_ns = e->every_ns / 4, rounds_ns = REFILL_ROUNDS * e->round_us * 1000ULL;
	u64 at_ns = less(e->until_ns, max_u64(before_ns, rounds_ns));

	/*
	 * Earlier if little is left, but a grant smaller than requested does not make it earlier.
	 * At once if it may be spent before more can arrive.
	 */
	if (e->credit < demand_of_rounds(quotas, e, REFILL_ROUNDS, now_ns))
		at_ns = now_ns;
	else if (e->credit < quota_target(e, now_ns) / 3)
		at_ns = min_u64(at_ns, e->renewed_ns + e->every_ns / 8);
	quota_schedule(quotas, set, e, at_ns > now_ns ? at_ns : now_ns);
}

void quota_flush_lease(const struct quotas *quotas, struct quota_entry *e,
		       struct cluster_store_bucket *bucket, bool end, struct sl_now now)
{
	u64 refunded_ns = e->until_ns + e->every_ns / 3 + STORE_GRACE_US * 1000;
	u64 drained_ns = less(now.mono_ns, max_u64(refunded_ns, quota_empty_ns(quotas, e, now)));
	bool gone = quota_is_window(&e->def) &&
		    quota_window(e, quota_store_ns(quotas, now)) != e->lease_window;

	/* A window that is over and no longer counts needs no restore: drop both. */
	if (gone && !algorithm_is_sliding(e->def.algo)) {
		e->spent = e->credit = 0;
		return;
	}
	/* Redis has refunded it by now, and what was in the bucket before has drained, and then so
	 * much. */
	if (quota_is_bucket(&e->def))
		quota_sub(&e->spent, drained_ns / 1e3 / quota_interval_us(&e->def));
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

void quota_request_lease(const struct quotas *quotas, struct quota_entry *e,
			 struct cluster_store_bucket *bucket, u64 target, u64 now_ns)
{
	if (!(e->flags & QUOTA_LEASING))
		bucket->want = less(target, e->credit);
	if (bucket->want)
		e->flags |= QUOTA_LEASING;
	/* Rounded down: small limits have no units for that. */
	bucket->least = demand_of_rounds(quotas, e, HELD_ROUNDS, now_ns);
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
		/*
		 * The result is unknown. A second report admits fewer at worst; returned units are
		 * not used again.
		 */
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

/* Each node restores the whole bucket, and counts its own part in the statistics. */
static u64 counted(const struct quota_entry *e, u64 hits)
{
	return quota_is_bucket(&e->def) ? (hits * e->own_window + 999) / 1000 : hits;
}

static void note_lost(struct quotas *quotas, struct quota_set *set, struct quota_entry *e, u64 hits,
		      struct sl_now now)
{
	quota_add(&e->lost, hits);
	__atomic_fetch_add(&quotas->lost, counted(e, hits), __ATOMIC_RELAXED);
	__atomic_store_n(&quotas->lost_us, e->received_us, __ATOMIC_RELAXED);
	quota_schedule(quotas, set, e,
		       quota_phase(set->key[e - set->entry], RESTORE_NS, now.mono_ns));
}

static void note_quota(const struct quotas *quotas, struct quota_entry *e, double own, double all)
{
	double before = e->quota_permille;

	if (!before)
		before = 1000.0 / __atomic_load_n(&quotas->nodes, __ATOMIC_RELAXED);
	if (own > all)
		own = all;
	e->quota_permille = (own * 1000 + before * QUOTA_PRIOR) / (all + QUOTA_PRIOR) + 0.5;
	if (!e->quota_permille)
		e->quota_permille = 1;
}

/* ------------------------------------------------------------------ windows */

static void learn_window(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
			 const struct cluster_store_state *state, u64 charged, struct sl_now now)
{
	u64 least = less(e->own + charged, e->refunding);

	if (!state->window && e->own && state->before < e->own_window &&
	    quota_window(e, quota_store_ns(quotas, now)) == e->own_window) {
		/*
		 * Redis has no first-request window before the end of this one: restore it with its
		 * begin.
		 */
		note_lost(quotas, set, e, e->own, now);
		e->own = 0;
	}
	if (state->window < e->own_window &&
	    (!algorithm_is_anchored(e->def.algo) || !state->window))
		return;
	if (state->window < e->own_window) {
		/*
		 * A lost window was restored with its begin. Is the next one the last that ended?
		 */
		if (e->own && state->before < e->own_window &&
		    quota_overlaps(e, state->window, e->own_window))
			note_lost(quotas, set, e, e->own, now);
	} else if (state->window == e->own_window) {
		if (state->own < least)
			note_lost(quotas, set, e, least - state->own, now);
	} else if (e->own && state->before < e->own_window &&
		   quota_overlaps(e, e->own_window, state->window)) {
		/*
		 * Another window began before the end of this one, and Redis has no previous one.
		 */
		note_lost(quotas, set, e, e->own, now);
		/* Unflushed charges count in that window, too. */
		if (e->window == e->own_window)
			e->window = state->window;
	}
	e->own_window = state->window;
	e->own = state->own;
	note_quota(quotas, e, state->own, state->used);
}

/* Window counters: a charge counts for at least one bucket less than the window. */
static u64 log_half_us(const struct spec_def *def)
{
	u64 bucket_ns = def->buckets ? def->period_ns / def->buckets : 0;

	return (def->period_ns - bucket_ns) / 2000;
}

/* own: charges of this half; own_window: of the previous half; own_mark: number of this half. */
static void roll_log(struct quota_entry *e, u64 store_us)
{
	u64 half = store_us / log_half_us(&e->def);

	if (half <= e->own_mark)
		return;
	e->own_window = half == e->own_mark + 1 ? e->own : 0;
	e->own = 0;
	e->own_mark = half;
}

static void learn_log(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
		      const struct cluster_store_state *state, u64 charged, u64 store_us,
		      bool newer, struct sl_now now)
{
	u64 least;

	roll_log(e, store_us);
	e->own += charged;
	if (!newer)
		return;
	least = less(e->own + e->own_window, e->refunding);
	if (state->own < least && e->count_all && state->used >= quota_capacity(&e->def)) {
		/* Refused ones, here or elsewhere, took the place of older charges. */
		e->own = min_u64(e->own, state->own);
		e->own_window = min_u64(e->own_window, state->own - e->own);
	} else if (state->own < least) {
		note_lost(quotas, set, e, least - state->own, now);
		e->own = charged;
		e->own_window = 0;
	}
	note_quota(quotas, e, state->own, state->used);
}

/* ------------------------------------------------------------------ buckets */

/*
 * us: no loss if a bucket will be empty earlier by no more than this. Leases that end bring that
 * time nearer by up to all that nodes hold: a tenth of the capacity, or a quarter.
 */
static u64 unnoticed_us(const struct quotas *quotas, const struct quota_entry *e)
{
	u64 nodes = __atomic_load_n(&quotas->nodes, __ATOMIC_RELAXED);
	u64 capacity = quota_capacity(&e->def);
	u64 least = rounds_max(quotas, &e->def, HELD_ROUNDS);
	u64 held = min_u64(capacity / 8 + nodes * least, capacity * 3 / 10);

	if (e->consistency != CONSISTENCY_LEASE)
		return ROUNDED_US;
	return ROUNDED_US + held * quota_interval_us(&e->def);
}

/* Rounded up, since this count refuses until it is restored. */
static u64 whole_requests(double requests)
{
	return requests < QUOTA_COUNT_MAX ? ceil(requests) : QUOTA_COUNT_MAX;
}

/*
 * When it is empty at the earliest, us, by earlier replies and by what this command charged. A
 * forced charge has a time of its own; it drains from then on if the bucket was empty.
 */
static u64 expected_us(const struct quota_entry *e, const struct cluster_store_bucket *bucket,
		       u64 here_us, u64 store_us, u64 received_us)
{
	/* A bucket that was empty in the last reply may have been empty for long. */
	u64 own_us = e->own > received_us ? e->own : 0, begin_us = store_us;

	if (bucket->kind == CLUSTER_STORE_FORCE && bucket->window)
		begin_us = min_u64(bucket->window, store_us);
	return (own_us > begin_us ? own_us : begin_us) + here_us;
}

/* Uses one permille for all losses restored together, so the counts of lost and restored agree. */
static void mark_lost(struct quota_entry *e, u64 empty_us)
{
	if (!(e->lost | e->restored))
		e->own_window = e->quota_permille;
	e->own_mark = empty_us;
}

/*
 * own: time at which the bucket will be empty, us, by the last reply; own_mark: the same of a lost
 * bucket, with this node's charges since; own_window: this node's part of its demand, permille.
 */
static void learn_bucket(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
			 const struct cluster_store_bucket *bucket, u64 charged, u64 store_us,
			 u64 received_us, struct sl_now now)
{
	double interval = quota_interval_us(&e->def), capacity = quota_capacity(&e->def);
	u64 used_us = bucket->state.used / 1000, here_us = charged * interval;
	u64 was_us = less(e->own, store_us);
	u64 mark_us = expected_us(e, bucket, here_us, store_us, received_us), lost_us;
	/* A debt that was cut off does not show the earlier state of the bucket. */
	bool cut =
		bucket->kind == CLUSTER_STORE_FORCE && used_us + interval > 2 * capacity * interval;
	bool alone = __atomic_load_n(&quotas->nodes, __ATOMIC_RELAXED) == 1;
	bool refunded_there = !alone && bucket->state.own && bucket->state.own >= received_us;

	/* Restores the later time, not the sum: it includes the charges made in the meantime. */
	if (e->lost | e->restored) {
		e->own_mark += here_us;
		if (e->own_mark > mark_us)
			mark_us = e->own_mark;
	}
	/* A restore is not demand. */
	if (!bucket->restored)
		note_quota(quotas, e, charged + bucket->spent, less(used_us, was_us) / interval);
	/* A single node sends all refunds: they made the bucket empty earlier by at most this. */
	if (alone)
		mark_us = less(mark_us, e->refunding * interval);
	lost_us = less(mark_us, store_us + used_us);
	if (e->own && !cut && !refunded_there && !e->lost && lost_us > unnoticed_us(quotas, e)) {
		mark_lost(e, mark_us);
		note_lost(quotas, set, e, whole_requests(lost_us / interval), now);
	}
	e->own = store_us + used_us;
}

/* ------------------------------------------------------------------ both ways */

bool quota_may_be_lost(const struct quotas *quotas, const struct quota_entry *e, struct sl_now now)
{
	u64 store_ns = quota_store_ns(quotas, now);

	if (!e->own || e->received_us >= __atomic_load_n(&quotas->lost_us, __ATOMIC_RELAXED))
		return false;
	if (quota_is_bucket(&e->def))
		return e->own > store_ns / 1000;
	return !quota_is_window(&e->def) || quota_window(e, store_ns) == e->own_window;
}

void quota_report_refused(const struct quotas *quotas, struct quota_entry *e,
			  struct cluster_store_bucket *bucket, struct sl_now now)
{
	u64 ago_ns = less(now.mono_ns, e->refused_ns);

	if (!e->refused)
		return;
	bucket->refused = e->refused;
	bucket->refused_us = less(quota_store_ns(quotas, now), ago_ns) / 1000;
	quota_add(&e->refused_sent, e->refused);
	e->refused = 0;
}

/* A loss that would no longer count is not restored. */
void quota_restore(const struct quotas *quotas, struct quota_entry *e,
		   struct cluster_store_bucket *bucket, struct sl_now now)
{
	u64 store_ns = quota_store_ns(quotas, now), hits = e->lost;

	/* A report for a lease of another window is sent first. */
	if (!hits ||
	    (quota_is_window(&e->def) && bucket->window && bucket->window != e->own_window))
		return;
	e->lost = 0;
	if (quota_is_bucket(&e->def)) {
		bucket->window = e->own_mark;
		hits = min_u64(hits, whole_requests(less(e->own_mark, store_ns / 1000) /
						    quota_interval_us(&e->def)));
	} else {
		if (quota_is_window(&e->def)) {
			if (quota_window(e, store_ns) != e->own_window)
				return;
			bucket->window = e->own_window;
		}
		bucket->spent += hits;
	}
	bucket->restored = hits;
	quota_add(&e->restored, hits);
}

/* Without a reply the result is unknown: restores are sent again, refunds count as done. */
void quota_settle(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
		  const struct cluster_store_bucket *bucket, bool done, struct sl_now now)
{
	bool log = algorithm_is_log(e->def.algo);

	if (bucket->kind == CLUSTER_STORE_REFUND) {
		quota_sub(&e->refunding, bucket->cost);
		if (log)
			e->own_window = less(e->own_window, less(bucket->cost, e->own));
		if (log || (!done && quota_is_window(&e->def)))
			e->own = less(e->own, bucket->cost);
		if (!done)
			e->refunded_us = quota_store_latest_ns(quotas, now) / 1000;
	}
	quota_sub(&e->refused_sent, bucket->refused);
	if (bucket->refused && !done && !(e->flags & QUOTA_AGAIN)) {
		quota_add(&e->refused, bucket->refused);
		quota_schedule(quotas, set, e, now.mono_ns + RESTORE_NS);
	}
	quota_sub(&e->restored, bucket->restored);
	if (done) {
		__atomic_fetch_add(&quotas->restored, counted(e, bucket->restored),
				   __ATOMIC_RELAXED);
	} else if (bucket->restored && !(e->flags & QUOTA_AGAIN)) {
		quota_add(&e->lost, bucket->restored);
		quota_schedule(quotas, set, e, now.mono_ns + RESTORE_NS);
	}
}

bool quota_is_stale(const struct quotas *quotas, u64 key, u64 now_us)
{
	struct quota_set *set;
	struct quota_entry *e = quota_find(quotas, key, &set);
	bool old;

	if (!e)
		return false;
	old = now_us < e->received_us && now_us + CLOCK_BACK_US >= e->received_us;
	quota_unlock(&set->lock);
	return old;
}

u64 quota_undecided(const struct quotas *quotas, u64 key)
{
	struct quota_set *set;
	struct quota_entry *e = quota_find(quotas, key, &set);
	u64 undecided;

	if (!e)
		return 0;
	undecided = less(e->requested, e->overdue);
	quota_unlock(&set->lock);
	return undecided;
}

void quota_add_overdue(struct quotas *quotas, u64 key, s64 hits)
{
	struct quota_set *set;
	struct quota_entry *e = quota_find(quotas, key, &set);

	if (!e)
		return;
	if (hits > 0)
		quota_add(&e->overdue, hits);
	else
		quota_sub(&e->overdue, -hits);
	quota_unlock(&set->lock);
}

static u64 charged_by(const struct quota_entry *e, const struct cluster_store_bucket *bucket,
		      const struct cluster_store_request *request)
{
	u64 charged = 0;

	if ((bucket->kind == CLUSTER_STORE_CHARGE && request->passed) ||
	    (bucket->kind == CLUSTER_STORE_FORCE && !bucket->late))
		charged = bucket->cost;
	/* What a lease of an earlier window spent does not count in this one. */
	if (!quota_is_bucket(&e->def) &&
	    (!bucket->window || bucket->window == bucket->state.window))
		charged += bucket->spent;
	return charged;
}

/* Of two replies of one microsecond the later one has more, unless there was a refund. */
static void learn_same(struct quota_entry *e, const struct cluster_store_state *state, u64 store_us)
{
	u64 own = quota_is_bucket(&e->def) ? store_us + state->used / 1000 : state->own;

	if (own > e->own && (quota_is_bucket(&e->def) || state->window == e->own_window))
		e->own = own;
}

/*
 * A restore that was sent before this charge's reply lacks it. If it took the place of what Redis
 * had, with that charge, only the order of the replies shows it.
 */
static void note_restore(struct quota_entry *e, const struct cluster_store_bucket *bucket,
			 u64 charged, u64 store_us)
{
	u64 end_us = store_us + bucket->state.used / 1000;

	if (bucket->restored && store_us > e->restored_us &&
	    less(end_us, charged * quota_interval_us(&e->def)) <= bucket->window + ROUNDED_US)
		e->restored_us = store_us;
}

/* A reply after a newer one: the newer one has its charge, or Redis lost it. */
static void learn_old(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
		      const struct cluster_store_bucket *bucket, u64 charged, u64 store_us,
		      struct sl_now now)
{
	const struct cluster_store_state *state = &bucket->state;
	u64 end_us = store_us + state->used / 1000;
	bool lost = false;

	if (!charged || e->flags & QUOTA_AGAIN || store_us <= e->refunded_us)
		return;
	if (quota_is_bucket(&e->def) && store_us <= e->restored_us) {
		u64 here_us = charged * quota_interval_us(&e->def);

		lost = true;
		mark_lost(e, (e->lost | e->restored ? e->own_mark : e->own) + here_us);
	} else if (quota_is_bucket(&e->def)) {
		lost = end_us > e->own + unnoticed_us(quotas, e);
		if (lost && (!e->lost || end_us > e->own_mark))
			mark_lost(e, end_us);
	} else if (state->window == e->own_window) {
		lost = state->own > e->own;
	} else {
		lost = quota_overlaps(e, state->window, e->own_window);
	}
	if (lost)
		note_lost(quotas, set, e, charged, now);
}

void quotas_set_deadline(struct quotas *quotas, u64 deadline_ns)
{
	quotas->deadline_ns = deadline_ns;
}

/* Smoothed as a TCP's. A reply that is late for another reason than the distance counts little. */
static void learn_round(const struct quotas *quotas, struct quota_entry *e,
			const struct cluster_store_bucket *bucket, struct sl_now now)
{
	u64 us = min_u64(less(now.mono_ns, bucket->sent_ns), quotas->deadline_ns) / 1000;

	e->round_us = e->round_us ? (7 * e->round_us + us) / 8 : us;
}

void quota_learn(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
		 const struct cluster_store_bucket *bucket,
		 const struct cluster_store_request *request, struct sl_now now)
{
	u64 charged = charged_by(e, bucket, request);
	u64 received_us = e->received_us;
	bool newer = request->now_us > received_us;

	learn_round(quotas, e, bucket, now);
	/* Another server with another clock: earlier replies cannot be compared. */
	if (request->now_us + CLOCK_BACK_US < e->received_us) {
		e->own = e->own_window = e->own_mark = e->refunded_us = e->restored_us = 0;
		newer = true;
	}
	if (newer) {
		e->received_us = request->now_us;
		e->known_ns = bucket->sent_ns;
	}
	if (quota_is_bucket(&e->def))
		note_restore(e, bucket, charged, request->now_us);
	/* A reply of the same microsecond may be from before the refund. */
	if (bucket->kind == CLUSTER_STORE_REFUND && request->now_us == received_us &&
	    quota_is_window(&e->def) && bucket->state.window == e->own_window)
		e->own = min_u64(e->own, bucket->state.own);
	if (bucket->kind == CLUSTER_STORE_REFUND && request->now_us > e->refunded_us)
		e->refunded_us = request->now_us;
	if (algorithm_is_log(e->def.algo))
		learn_log(quotas, set, e, &bucket->state, charged, request->now_us, newer, now);
	else if (newer && quota_is_bucket(&e->def))
		learn_bucket(quotas, set, e, bucket, charged, request->now_us, received_us, now);
	else if (newer)
		learn_window(quotas, set, e, &bucket->state, charged, now);
	else if (request->now_us == e->received_us && request->now_us > e->refunded_us)
		learn_same(e, &bucket->state, request->now_us);
	else if (request->now_us < e->received_us)
		learn_old(quotas, set, e, bucket, charged, request->now_us, now);
}

/* ------------------------------------------------------------------ commands */

void quota_prepare(struct quotas *quotas, const struct quota_ref *ref,
		   struct cluster_store_bucket *bucket, struct sl_now now)
{
	struct quota_entry *e;
	struct quota_set *set;

	bucket->sent_ns = now.mono_ns;
	bucket->want = bucket->least = bucket->returned = bucket->spent = 0;
	bucket->lease_us = bucket->granted = 0;
	bucket->restored = bucket->refused = bucket->keep_us = 0;
	bucket->refusal_counts = ref->count_all && algorithm_is_log(ref->def->algo) &&
				 bucket->kind == CLUSTER_STORE_CHARGE;
	e = quota_claim(quotas, ref, now, &set);
	if (!e)
		return;
	e->used_ns = now.mono_ns;
	bucket->keep_us = quota_keep_us(quotas, e);
	if (bucket->kind == CLUSTER_STORE_REFUND)
		quota_add(&e->refunding, bucket->cost);
	if (bucket->kind == CLUSTER_STORE_CHARGE) {
		/*
		 * A retry of what was refused here: what was admitted and not flushed still counts.
		 */
		if (e->consistency == CONSISTENCY_WRITE_BACK)
			bucket->hold += less((u64)e->unflushed + e->flushing, e->refunded);
		quota_add(&e->requested, bucket->cost);
		if (e->consistency == CONSISTENCY_LEASE && bucket->cost) {
			quota_flush_lease(quotas, e, bucket, quota_lease_over(quotas, e, now), now);
			quota_request_lease(quotas, e, bucket, quota_target(e, now.mono_ns),
					    now.mono_ns);
		}
		quota_restore(quotas, e, bucket, now);
		quota_report_refused(quotas, e, bucket, now);
	}
	quota_unlock(&set->lock);
}

void quota_complete(struct quotas *quotas, const struct quota_ref *ref,
		    const struct cluster_store_bucket *bucket,
		    const struct cluster_store_request *request, enum cluster_store_outcome outcome,
		    struct sl_now now)
{
	struct quota_entry *e;
	struct quota_set *set;

	if (outcome == CLUSTER_STORE_LATE)
		return;
	if (outcome == CLUSTER_STORE_DONE) {
		quota_clock_update(quotas, bucket->sent_ns, now, request->now_us);
		quota_note_excess(quotas, ref->metric, bucket, request->now_us);
	}
	e = quota_find(quotas, ref->key, &set);
	if (!e)
		return;
	if (bucket->kind == CLUSTER_STORE_CHARGE)
		quota_sub(&e->requested, bucket->cost);
	if (outcome == CLUSTER_STORE_DONE) {
		if (!e->unflushed && !e->flushing)
			e->flags &= ~QUOTA_FAILED;
		quota_learn(quotas, set, e, bucket, request, now);
	}
	quota_settle(quotas, set, e, bucket, outcome == CLUSTER_STORE_DONE, now);
	quota_lease_complete(quotas, set, e, bucket, outcome == CLUSTER_STORE_DONE, now);
	if (!(e->flags & (QUOTA_FLUSHING | QUOTA_LEASING)))
		e->flags &= ~QUOTA_AGAIN;
	quota_unlock(&set->lock);
}
