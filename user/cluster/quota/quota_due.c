// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * quota_due.c - flushes in the background, and their pace.
 *
 * An entry flushes one kind at a time, the oldest first: charges of a window that is over, refunds,
 * restores, its lease, new counts, refused ones that count. Sending subtracts the count from the
 * entry; a failed flush adds it again.
 *
 * If the connection ends, the result of a flush is unknown. It is sent again, so it may be charged
 * twice; this admits fewer. A refund is sent again only if it was never sent.
 *
 * A failed flush is retried after a random delay of some hundred milliseconds, and all retries
 * together are limited to 100 a second. After the first success the rate doubles every 100 ms, so
 * the backlog does not overload a Redis that is available again. Checks for losses have the same
 * rate. Other flushes are not delayed, because only one server of many may be unavailable.
 */
#include <math.h>

#include "cluster/quota/quota_private.h"

#define RETRY_MIN_NS 100000000ULL
#define RETRY_MAX_NS 2000000000ULL
#define PACE_SLOW 100.0
#define PACE_FREE 100000.0
#define PACE_RAISE_NS 100000000ULL
#define LOOK_EVERY_NS (5 * SL_NS_PER_SEC)
#define LOOKUP_JITTER_NS 100000000ULL
#define EARNED_RETURN 20 /* covered requests per lease returned early: quota_exchange.c */

/* ------------------------------------------------------------------ pace */

static u32 pace_allows(struct quota_pace *pace, u32 max, u64 now_ns)
{
	double most = pace->rate / 10 + 1;

	if (!pace->slow)
		return max;
	pace->tokens += less(now_ns, pace->at_ns) / 1e9 * pace->rate;
	pace->at_ns = now_ns;
	if (pace->tokens > most)
		pace->tokens = most;
	return pace->tokens < max ? (u32)pace->tokens : max;
}

static void pace_begin(struct quota_pace *pace, u64 now_ns)
{
	if (!pace->slow)
		*pace = (struct quota_pace){
			.slow = true, .rate = PACE_SLOW, .at_ns = now_ns, .raised_ns = now_ns
		};
}

static void pace_complete(struct quota_pace *pace, bool arrived, bool again, u64 now_ns)
{
	if (!arrived && !pace->slow) {
		pace_begin(pace, now_ns);
	} else if (!arrived) {
		pace->rate = pace->rate / 2 > PACE_SLOW ? pace->rate / 2 : PACE_SLOW;
	} else if (pace->slow && again && now_ns >= pace->raised_ns + PACE_RAISE_NS) {
		pace->rate *= 2;
		pace->raised_ns = now_ns;
		pace->slow = pace->rate < PACE_FREE;
	}
}

/* ------------------------------------------------------------------ what an entry flushes */

static bool fill_late(struct quota_entry *e, struct quota_due *due)
{
	due->kind = QUOTA_DUE_LATE;
	due->bucket.kind = CLUSTER_STORE_FORCE;
	due->bucket.cost = e->late;
	due->bucket.window = e->late_window;
	e->late = 0;
	return due->bucket.cost;
}

static bool fill_refund(struct quota_entry *e, struct quota_due *due)
{
	due->kind = QUOTA_DUE_REFUND;
	due->bucket.kind = CLUSTER_STORE_REFUND;
	due->bucket.cost = e->refunded;
	due->bucket.window = 0;
	e->refunded = 0;
	quota_add(&e->refunding, due->bucket.cost);
	return due->bucket.cost;
}

static bool fill_restore(const struct quotas *quotas, struct quota_entry *e, struct quota_due *due,
			 struct sl_now now)
{
	bool look = e->flags & QUOTA_LOOKUP && quota_may_be_lost(quotas, e, now);

	e->flags &= ~QUOTA_LOOKUP;
	due->kind = QUOTA_DUE_RESTORE;
	due->bucket.kind = CLUSTER_STORE_CHARGE;
	quota_restore(quotas, e, &due->bucket, now);
	return due->bucket.restored || look;
}

static bool fill_lease(const struct quotas *quotas, struct quota_entry *e, struct quota_due *due,
		       struct sl_now now)
{
	bool over = quota_lease_over(quotas, e, now), ending = quotas->ending;
	bool idle = now.mono_ns > e->used_ns + e->every_ns / 2;
	u64 target = idle || ending ? 0 : quota_target(e, now.mono_ns);

	if (!e->spent && over && !ending)
		e->credit = 0;
	if (!e->credit && !e->spent)
		return false;
	due->kind = QUOTA_DUE_LEASE;
	due->bucket.kind = CLUSTER_STORE_CHARGE;
	if (!e->spent && !(idle && e->earned >= EARNED_RETURN) && !ending)
		return false;
	e->earned = idle && !e->spent ? 0 : e->earned;
	quota_flush_lease(quotas, e, &due->bucket, over || !target, now);
	quota_request_lease(quotas, e, &due->bucket, target, now.mono_ns);
	/* Spent units that no longer count are not reported, but the next lease is requested. */
	return due->bucket.spent || due->bucket.returned || due->bucket.want;
}

/* The time in which so many requests drain from a bucket. */
static u64 drain_ns(const struct quota_entry *e, u64 hits)
{
	return hits * quota_interval_us(&e->def) * 1e3;
}

/*
 * The time of a single charge of all of them that would leave the present debt. A bucket that no
 * other node uses then has the same state in Redis as here.
 */
static u64 when_us(const struct quota_entry *e, u64 hits, u64 store_ns, u64 now_ns)
{
	u64 all_ns = drain_ns(e, hits);

	return less(store_ns, less(all_ns, less(e->empty_ns, now_ns))) / 1000;
}

/*
 * strict and lease: of what was admitted while Redis was unavailable, what would not have drained
 * by now if this node had had the bucket alone since. All of it, at once, would refuse requests on
 * every node, of users, too, that are below the limit. It drains after what Redis has, also after
 * what was charged there since: another command may have succeeded. The first attempt charges all.
 */
static u64 left_of_outage(const struct quotas *quotas, const struct quota_entry *e,
			  struct quota_due *due, struct sl_now now)
{
	u64 after_ns = quota_empty_ns(quotas, e, now) + drain_ns(e, e->unflushed);

	due->empty_ns = max_u64(e->empty_ns, after_ns);
	if (!(e->flags & QUOTA_RETRY))
		return e->unflushed;
	return min_u64(e->unflushed,
		       ceil(less(due->empty_ns, now.mono_ns) / 1e3 / quota_interval_us(&e->def)));
}

/* empty_ns after a failed flush: new charges, if any, came after those of the flush. */
static u64 empty_after(const struct quota_entry *e, const struct quota_due *due)
{
	if (e->consistency == CONSISTENCY_WRITE_BACK)
		return QUOTA_NEVER / 2;
	return max_u64(due->empty_ns + drain_ns(e, e->unflushed), e->empty_ns);
}

/*
 * A bucket flushes at most what a node can admit in two intervals. After an outage the rest is
 * dropped, or the limit would refuse for as long as it had been open.
 */
static bool fill_flush(const struct quotas *quotas, struct quota_entry *e, struct quota_due *due,
		       struct sl_now now)
{
	u64 hits = e->unflushed, store_ns = quota_store_ns(quotas, now);

	if (quota_is_bucket(&e->def) && e->consistency != CONSISTENCY_WRITE_BACK)
		hits = left_of_outage(quotas, e, due, now);
	e->unflushed = 0;
	due->kind = QUOTA_DUE_FLUSH;
	due->bucket.kind = CLUSTER_STORE_FORCE;
	due->bucket.window = quota_is_window(&e->def) ? e->window : 0;
	if (hits && quota_is_bucket(&e->def)) {
		/* By the last reply it was not empty before that. Redis may have lost it. */
		due->bucket.window = when_us(e, hits, store_ns, now.mono_ns);
		if (due->bucket.window < e->own)
			due->bucket.window = min_u64(e->own, store_ns / 1000);
		e->empty_ns = 0;
	}
	if (hits && quota_is_bucket(&e->def) && e->consistency == CONSISTENCY_WRITE_BACK) {
		u64 most = quota_capacity(&e->def) +
			   2 * e->every_ns / 1e3 / quota_interval_us(&e->def);

		hits = min_u64(hits, most);
		due->bucket.debt = SL_BIT(40);
	}
	due->bucket.cost = hits;
	e->flushing = hits;
	e->renewed_ns = now.mono_ns;
	return hits;
}

static bool fill_refused(const struct quotas *quotas, struct quota_entry *e, struct quota_due *due,
			 struct sl_now now)
{
	due->kind = QUOTA_DUE_REFUSED;
	due->bucket.kind = CLUSTER_STORE_CHARGE;
	due->bucket.cost = due->bucket.window = due->bucket.debt = 0;
	quota_report_refused(quotas, e, &due->bucket, now);
	return due->bucket.refused;
}

static bool fill(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
		 struct quota_due *due, struct sl_now now)
{
	u64 key = set->key[e - set->entry];

	quota_roll(quotas, set, e, now);
	*due = (struct quota_due){ .def = e->def };
	due->bucket.key = key;
	due->bucket.tag = e->tag;
	due->bucket.def = e->def;
	due->bucket.sent_ns = now.mono_ns;
	due->bucket.keep_us = quota_keep_us(quotas, e);
	due->ref = (struct quota_ref){ key,	    e->tag,    NULL,	    e->consistency,
				       e->every_ns, e->metric, e->count_all };
	if (fill_late(e, due) || fill_refund(e, due))
		return true;
	if (fill_restore(quotas, e, due, now))
		return true;
	if (e->consistency == CONSISTENCY_LEASE && fill_lease(quotas, e, due, now))
		return true;
	return fill_flush(quotas, e, due, now) || fill_refused(quotas, e, due, now);
}

/* ------------------------------------------------------------------ due */

/*
 * After a loss: looks at each bucket of which Redis should have charges of this node and which had
 * no reply since. There may be no request for it for long, while other nodes admit what was lost.
 * Looks are sent at the pace of failed flushes.
 */
static void look_after_loss(struct quotas *quotas, struct sl_now now)
{
	u64 lost_us = __atomic_load_n(&quotas->lost_us, __ATOMIC_RELAXED);

	if (lost_us == quotas->looked_us ||
	    (quotas->looked_us && now.mono_ns < quotas->looked_ns + LOOK_EVERY_NS))
		return;
	quotas->looked_us = lost_us;
	quotas->looked_ns = now.mono_ns;
	pace_begin(&quotas->pace, now.mono_ns);
	for (u32 i = 0; i < quotas->sets; i++) {
		struct quota_set *set = &quotas->set[i];

		quota_lock(&set->lock);
		for (u32 way = 0; way < QUOTA_WAYS; way++) {
			struct quota_entry *e = &set->entry[way];

			if (!set->key[way] || !quota_may_be_lost(quotas, e, now))
				continue;
			e->flags |= QUOTA_LOOKUP;
			quota_schedule(quotas, set, e,
				       quota_phase(set->key[way], LOOKUP_JITTER_NS, now.mono_ns));
		}
		quota_unlock(&set->lock);
	}
}

/* Any other flush is a look as well, and does not wait. */
static bool only_looks(const struct quota_entry *e)
{
	return e->flags & QUOTA_LOOKUP && !(e->unflushed | e->late | e->refunded | e->lost |
					    e->credit | e->spent | e->refused);
}

/* The due entries of a set; the time of the set is then that of its next entry. */
static u32 due_of_set(struct quotas *quotas, u32 index, struct quota_due *ret, u32 max,
		      u32 *retries, struct sl_now now)
{
	struct quota_set *set = &quotas->set[index];
	u64 next = QUOTA_NEVER;
	u32 count = 0;

	quota_lock(&set->lock);
	for (u32 way = 0; way < QUOTA_WAYS; way++) {
		struct quota_entry *e = &set->entry[way];

		if (!set->key[way] || e->flags & QUOTA_FLUSHING)
			continue;
		bool paced = e->flags & QUOTA_RETRY || only_looks(e);

		if (e->due_ns <= now.mono_ns && count < max && (!paced || *retries)) {
			e->due_ns = QUOTA_NEVER;
			if (fill(quotas, set, e, &ret[count], now)) {
				*retries -= paced;
				e->flags |= QUOTA_FLUSHING;
				count++;
				continue;
			}
		}
		next = min_u64(next, e->due_ns);
	}
	__atomic_store_n(&quotas->due_ns[index], next, __ATOMIC_RELAXED);
	quota_unlock(&set->lock);
	return count;
}

u32 quotas_due(struct quotas *quotas, struct quota_due *ret, u32 max, struct sl_now now)
{
	u32 allowed = pace_allows(&quotas->pace, max, now.mono_ns), retries = allowed;
	u32 count = 0, walked;
	u64 next = QUOTA_NEVER, at;

	quota_clock_check(quotas, now);
	look_after_loss(quotas, now);
	if (__atomic_load_n(&quotas->next_ns, __ATOMIC_ACQUIRE) > now.mono_ns)
		return 0;
	/* quota_schedule() lowers it again from here on. */
	__atomic_store_n(&quotas->next_ns, QUOTA_NEVER, __ATOMIC_SEQ_CST);
	for (walked = 0; walked < quotas->sets; walked++) {
		u32 index = quotas->cursor;

		at = __atomic_load_n(&quotas->due_ns[index], __ATOMIC_RELAXED);
		if (at <= now.mono_ns && count < max) {
			count += due_of_set(quotas, index, &ret[count], max - count, &retries, now);
			at = __atomic_load_n(&quotas->due_ns[index], __ATOMIC_RELAXED);
		}
		next = min_u64(next, at);
		if (count == max) {
			next = now.mono_ns;
			break;
		}
		quotas->cursor = index + 1 == quotas->sets ? 0 : index + 1;
	}
	quota_lower(&quotas->next_ns, next);
	for (u32 i = 0; i < count; i++)
		ret[i].ref.def = &ret[i].def;
	if (quotas->pace.slow)
		quotas->pace.tokens -= allowed - retries;
	return count;
}

void quotas_end(struct quotas *quotas)
{
	__atomic_store_n(&quotas->ending, true, __ATOMIC_RELAXED);
	for (u32 i = 0; i < quotas->sets; i++) {
		struct quota_set *set = &quotas->set[i];

		quota_lock(&set->lock);
		for (u32 way = 0; way < QUOTA_WAYS; way++) {
			struct quota_entry *e = &set->entry[way];

			if (set->key[way] && (e->unflushed | e->late | e->refunded | e->lost |
					      e->credit | e->spent | e->refused))
				quota_schedule(quotas, set, e, 0);
		}
		quota_unlock(&set->lock);
	}
}

/* ------------------------------------------------------------------ results */

static void arrived(struct quotas *quotas, struct quota_set *set, struct quota_entry *e,
		    const struct quota_due *due, const struct cluster_store_request *request,
		    struct sl_now now)
{
	if (due->kind == QUOTA_DUE_FLUSH || !e->unflushed)
		e->flags &= ~QUOTA_FAILED;
	quota_learn(quotas, set, e, &due->bucket, request, now);
}

static void failed(struct quota_entry *e, const struct quota_due *due, bool sent)
{
	u64 hits = due->bucket.cost;

	/* Whatever it flushed: new counts wait behind it, and would pile up. */
	e->flags |= QUOTA_FAILED;
	switch (due->kind) {
	case QUOTA_DUE_LATE:
		if (!e->late)
			e->late_window = due->bucket.window;
		if (e->late_window == due->bucket.window)
			quota_add(&e->late, hits);
		break;
	case QUOTA_DUE_REFUND:
		if (!sent)
			quota_add(&e->refunded, hits);
		break;
	case QUOTA_DUE_FLUSH:
		if (!quota_is_window(&e->def) || due->bucket.window == e->window ||
		    quota_overlaps(e, due->bucket.window, e->window)) {
			e->empty_ns = empty_after(e, due);
			quota_add(&e->unflushed, hits);
		} else if (!e->late || e->late_window == due->bucket.window) {
			e->late_window = due->bucket.window;
			quota_add(&e->late, hits);
		}
		break;
	default:
		break;
	}
}

/*
 * When the rest of an entry is due. New counts are due at once if another kind was flushed in their
 * turn.
 */
static void go_on(struct quotas *quotas, struct quota_set *set, struct quota_entry *e, u64 key,
		  enum quota_due_kind flushing, bool ok, u64 now_ns)
{
	u64 at_ns = now_ns, retry_ns = e->every_ns;

	if (!ok) {
		retry_ns = retry_ns < RETRY_MIN_NS ? RETRY_MIN_NS : min_u64(retry_ns, RETRY_MAX_NS);
		at_ns = quota_phase(key, retry_ns, now_ns + retry_ns / 2);
	}
	if (e->late | e->refunded | e->lost | e->refused)
		quota_schedule(quotas, set, e, at_ns);
	if (e->consistency == CONSISTENCY_LEASE && (e->spent || e->credit)) {
		if (ok)
			quota_schedule_lease(quotas, set, e, now_ns);
		else
			quota_schedule(quotas, set, e, at_ns);
	}
	if (!e->unflushed)
		return;
	if (ok && flushing == QUOTA_DUE_FLUSH && e->consistency == CONSISTENCY_WRITE_BACK)
		at_ns = quota_phase(key, e->every_ns, now_ns);
	quota_schedule(quotas, set, e, at_ns);
}

void quotas_flushed(struct quotas *quotas, const struct quota_due *due,
		    const struct cluster_store_request *request, enum cluster_store_outcome outcome,
		    struct sl_now now, u64 *ret_unflushed)
{
	bool ok = outcome == CLUSTER_STORE_DONE;
	struct quota_set *set;
	struct quota_entry *e;
	u64 due_ns;

	*ret_unflushed = 0;
	if (outcome == CLUSTER_STORE_LATE) {
		/* Until a flush succeeds, nothing more is admitted unflushed. */
		e = quota_find(quotas, due->ref.key, &set);
		if (e) {
			e->flags |= QUOTA_FAILED;
			*ret_unflushed = quota_entry_unflushed(e);
			quota_unlock(&set->lock);
		}
		return;
	}
	if (ok) {
		quota_clock_update(quotas, due->bucket.sent_ns, now, request->now_us);
		quota_note_excess(quotas, due->ref.metric, &due->bucket, request->now_us);
	}
	e = quota_find(quotas, due->ref.key, &set);
	if (!e)
		return;
	pace_complete(&quotas->pace, ok, e->flags & QUOTA_RETRY || due->kind == QUOTA_DUE_RESTORE,
		      now.mono_ns);
	e->flushing = 0;
	e->flags = ok ? e->flags & ~QUOTA_RETRY : e->flags | QUOTA_RETRY;
	if (ok)
		arrived(quotas, set, e, due, request, now);
	else if (!(e->flags & QUOTA_AGAIN))
		failed(e, due, request != NULL);
	quota_settle(quotas, set, e, &due->bucket, ok, now);
	if (due->kind == QUOTA_DUE_LEASE)
		quota_lease_complete(quotas, set, e, &due->bucket, ok, now);
	e->flags &= ~QUOTA_FLUSHING;
	if (!(e->flags & QUOTA_LEASING))
		e->flags &= ~QUOTA_AGAIN;
	/* The time of the set lacks what became due meanwhile. */
	due_ns = e->due_ns;
	e->due_ns = QUOTA_NEVER;
	quota_schedule(quotas, set, e, due_ns);
	go_on(quotas, set, e, due->ref.key, due->kind, ok, now.mono_ns);
	*ret_unflushed = quota_entry_unflushed(e);
	quota_unlock(&set->lock);
}
