// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * quota.c - see quota.h: the table of entries, and what a decision does with this node's quota
 * without Redis.
 *
 * The table. A key has one set of seven entries. When the set is full, a new key replaces the least
 * recently used entry that has nothing to flush; its counts of this node's part and demand start
 * again. When all seven have something to flush, the key gets no entry and its requests go to Redis
 * each time.
 *
 * The cluster's thread finds due entries by a scan of one number for each set, the time of its
 * earliest entry. That is 8 bytes a set: the table of a million users (125000 sets) takes a few
 * microseconds, and there is no scan before the earliest time.
 *
 * Why write_back exceeds the limit by at most (nodes - 1) x what a node admits in an interval and a
 * round trip, of the two intervals before. An admission is covered only if the command of the
 * newest reply was sent at most an interval and 30 ms before (is_recent(); a flush may be so late):
 * the state here has all that was in Redis then, and this node's own since. Any other goes to
 * Redis, whose state is that of the moment. At the time of the largest excess, let node k be that
 * with the newest reply of those that decided by it, at time r. k kept to the limit by all that was
 * in Redis at r and its own. What of another node is missing in that was admitted after its last
 * flush before r. Not after its next flush: with a reply newer than r it would have been k. So it
 * is of one interval between two flushes, and it began less than an interval before r, which is
 * less than an interval ago.
 *
 * Buckets: a flush is charged for the time of its requests (quota_due.c), and the bucket may have
 * been empty since. Redis keeps it for an interval longer (quota_keep_us()), with the time at which
 * it became empty, or it would lose what others charged within the time of the flush. Requests of
 * several nodes are then taken one after the other: if none of them waited, the debt is too high by
 * up to what they admitted in an interval, so a burst smaller than that may be refused though it
 * would fit.
 *
 * The proof needs a Redis that replies. A failed or late flush therefore suspends write-back for
 * that bucket: until a flush succeeds, its requests go to Redis and on_store_failure decides.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/quota/quota_private.h"
#include "lib/spin.h"

#define ENTRIES_MIN 4096
#define UNFLUSHED_AFTER_NS 20000000ULL /* delay of urgent counts, to batch them */
#define UNFLUSHED_JITTER_NS 50000000ULL
#define OVERDUE_NS 10000000ULL /* a few turns of the cluster's thread */
#define COMPLETED_NS 20000000ULL
#define KEEP_GRACE_US 100000ULL /* more than both of these together */

int quotas_new(u64 entries, struct quotas **ret)
{
	struct quotas *quotas = calloc(1, sizeof(*quotas));

	if (!quotas)
		return -ENOMEM;
	entries = entries < ENTRIES_MIN ? ENTRIES_MIN : min_u64(entries, SL_BIT(31));
	quotas->sets = (entries + QUOTA_WAYS - 1) / QUOTA_WAYS;
	quotas->set = calloc(quotas->sets, sizeof(*quotas->set));
	quotas->due_ns = malloc(quotas->sets * sizeof(*quotas->due_ns));
	quotas->overshoot = calloc(OVERSHOOT_RULES, sizeof(*quotas->overshoot));
	pthread_mutex_init(&quotas->overshoot_lock, NULL);
	quotas->nodes = 1;
	quotas->next_ns = QUOTA_NEVER;
	if (!quotas->set || !quotas->due_ns || !quotas->overshoot) {
		quotas_free(quotas);
		return -ENOMEM;
	}
	for (u32 i = 0; i < quotas->sets; i++)
		quotas->due_ns[i] = QUOTA_NEVER;
	*ret = quotas;
	return 0;
}

void quotas_free(struct quotas *quotas)
{
	if (!quotas)
		return;
	pthread_mutex_destroy(&quotas->overshoot_lock);
	free(quotas->overshoot);
	free(quotas->due_ns);
	free(quotas->set);
	free(quotas);
}

/* ------------------------------------------------------------------ locks */

void quota_lock(u8 *lock)
{
	u32 turns = 0;

	while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
		spin_wait(&turns);
}

void quota_unlock(u8 *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------ entries */

static struct quota_set *set_of(const struct quotas *quotas, u64 key)
{
	return &quotas->set[(key >> 32) * quotas->sets >> 32];
}

static struct quota_entry *find_way(struct quota_set *set, u64 key)
{
	for (u32 way = 0; way < QUOTA_WAYS; way++)
		if (set->key[way] == key)
			return &set->entry[way];
	return NULL;
}

struct quota_entry *quota_find(const struct quotas *quotas, u64 key, struct quota_set **ret_set)
{
	struct quota_set *set = set_of(quotas, key);
	struct quota_entry *e;

	quota_lock(&set->lock);
	e = find_way(set, key ? key : 1);
	if (!e)
		quota_unlock(&set->lock);
	*ret_set = set;
	return e;
}

/* Nothing is unflushed or pending, so the entry may be replaced. */
static bool is_settled(const struct quota_entry *e)
{
	return !(e->unflushed | e->late | e->refunded | e->lost | e->restored | e->refunding |
		 e->refused | e->refused_sent | e->requested | e->spent_sent | e->flushing |
		 e->credit | e->spent) &&
	       !(e->flags & (QUOTA_FLUSHING | QUOTA_LEASING));
}

static struct quota_entry *entry_at(struct quota_set *set, u64 key)
{
	u32 best = QUOTA_WAYS;

	for (u32 way = 0; way < QUOTA_WAYS; way++) {
		if (!set->key[way]) {
			best = way;
			break;
		}
		if (is_settled(&set->entry[way]) &&
		    (best == QUOTA_WAYS || set->entry[way].used_ns < set->entry[best].used_ns))
			best = way;
	}
	if (best == QUOTA_WAYS)
		return NULL;
	set->key[best] = key;
	return &set->entry[best];
}

/* A new entry, or one of a changed limit, whose counts do not apply to the new limit. */
static void begin(struct quota_entry *e, const struct quota_ref *ref, struct sl_now now)
{
	*e = (struct quota_entry){ .due_ns = QUOTA_NEVER, .used_ns = now.mono_ns };
	e->tag = ref->tag;
	e->def = *ref->def;
}

struct quota_entry *quota_claim(struct quotas *quotas, const struct quota_ref *ref,
				struct sl_now now, struct quota_set **ret_set)
{
	struct quota_set *set = set_of(quotas, ref->key);
	struct quota_entry *e;

	quota_lock(&set->lock);
	e = find_way(set, ref->key ? ref->key : 1);
	if (!e) {
		e = entry_at(set, ref->key ? ref->key : 1);
		if (!e) {
			quota_unlock(&set->lock);
			__atomic_fetch_add(&quotas->full, 1, __ATOMIC_RELAXED);
			return NULL;
		}
		begin(e, ref, now);
	} else if (memcmp(&e->def, ref->def, sizeof(e->def))) {
		if (e->def.algo != ref->def->algo || e->def.period_ns != ref->def->period_ns)
			begin(e, ref, now);
		/* Redis recomputes the time with the new rate. That is not a loss. */
		if (quota_is_bucket(ref->def))
			e->own = 0;
		e->def = *ref->def;
	}
	e->every_ns = ref->every_ns;
	e->metric = ref->metric;
	e->count_all = ref->count_all;
	e->consistency = ref->consistency;
	*ret_set = set;
	return e;
}

/* ------------------------------------------------------------------ when */

void quota_lower(u64 *at, u64 to)
{
	u64 old = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (to < old &&
	       !__atomic_compare_exchange_n(at, &old, to, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

void quota_schedule(struct quotas *quotas, struct quota_set *set, struct quota_entry *e, u64 at_ns)
{
	if (at_ns >= e->due_ns)
		return;
	e->due_ns = at_ns;
	if (e->flags & QUOTA_FLUSHING)
		return;
	quota_lower(&quotas->due_ns[set - quotas->set], at_ns);
	quota_lower(&quotas->next_ns, at_ns);
}

u64 quota_phase(u64 key, u64 every_ns, u64 now_ns)
{
	u64 phase = (key * 0x9e3779b97f4a7c15ULL) % every_ns;

	return now_ns + every_ns - (now_ns + every_ns - phase) % every_ns;
}

/* ------------------------------------------------------------------ limits and nodes */

u64 quota_capacity(const struct spec_def *def)
{
	struct spec spec;

	return spec_make_def(def, &spec, NULL) ? 1 : spec.capacity;
}

void quotas_set_nodes(struct quotas *quotas, u32 nodes)
{
	__atomic_store_n(&quotas->nodes, nodes ? nodes : 1, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------------ acquire, release */

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

/* How long after it was sent a reply is overdue. */
static u64 completed_ns(const struct quota_entry *e)
{
	return COMPLETED_NS + e->round_us * 1250ULL;
}

/* A flush was not sent in time, or its reply is overdue. */
static bool is_overdue(const struct quota_entry *e, u64 now_ns)
{
	if (e->unflushed && now_ns > e->due_ns && now_ns - e->due_ns > OVERDUE_NS)
		return true;
	return e->flushing && now_ns > e->renewed_ns + completed_ns(e);
}

/* Whether the last reply is no older than an interval, and a flush that is as late as may be. */
static bool is_recent(const struct quota_entry *e, u64 now_ns)
{
	return e->known_ns && now_ns <= e->known_ns + e->every_ns + OVERDUE_NS + completed_ns(e);
}

u64 quota_keep_us(const struct quotas *quotas, const struct quota_entry *e)
{
	bool kept = e->consistency == CONSISTENCY_WRITE_BACK && quota_is_bucket(&e->def);

	return kept ? (e->every_ns + 2 * quotas->deadline_ns) / 1000 + KEEP_GRACE_US : 0;
}

static enum quota_verdict take_counted(struct quotas *quotas, struct quota_set *set,
				       struct quota_entry *e, u64 key, u64 cost, struct sl_now now)
{
	/* Without Redis' clock the current window is unknown. */
	if (e->flags & QUOTA_FAILED || !quotas->clock.known || is_overdue(e, now.mono_ns) ||
	    !is_recent(e, now.mono_ns))
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
	answer = e->consistency == CONSISTENCY_LEASE
			 ? take_lease(quotas, set, e, cost, now)
			 : take_counted(quotas, set, e, ref->key, cost, now);
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
	/* The rest has been flushed already. */
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
	/* A refund or a reset makes room for other requests, so it is flushed at once. */
	if (e->consistency == CONSISTENCY_WRITE_BACK && !e->refunded)
		at_ns = quota_phase(ref->key, e->every_ns, now.mono_ns);
	else
		at_ns = quota_phase(ref->key, UNFLUSHED_JITTER_NS, at_ns);
	quota_schedule(quotas, set, e, at_ns);
	quota_unlock(&set->lock);
}

void quota_add_refused(struct quotas *quotas, const struct quota_ref *ref, u64 hits,
		       struct sl_now now)
{
	struct quota_set *set;
	struct quota_entry *e = quota_claim(quotas, ref, now, &set);

	if (!e)
		return;
	e->used_ns = e->refused_ns = now.mono_ns;
	quota_add(&e->refused, hits);
	if (e->credit) {
		quota_add(&e->spent, e->credit);
		e->credit = 0;
		quota_schedule_lease(quotas, set, e, now.mono_ns);
	}
	quota_schedule(quotas, set, e, quota_phase(ref->key, QUOTA_REFUSED_NS / 2, now.mono_ns));
	quota_unlock(&set->lock);
}

u64 quota_refused(const struct quotas *quotas, u64 key)
{
	struct quota_set *set;
	struct quota_entry *e = quota_find(quotas, key, &set);
	u64 refused;

	if (!e)
		return 0;
	refused = (u64)e->refused + e->refused_sent;
	quota_unlock(&set->lock);
	return refused;
}

void quota_forget(struct quotas *quotas, u64 key)
{
	struct quota_set *set;
	struct quota_entry *e = quota_find(quotas, key, &set);

	if (!e)
		return;
	e->unflushed = e->late = e->refunded = e->lost = e->flushing = 0;
	e->credit = e->spent = e->spent_sent = e->refused = e->refused_sent = 0;
	e->own = e->own_window = e->own_mark = e->restored_us = e->known_ns = 0;
	if (e->flags & (QUOTA_FLUSHING | QUOTA_LEASING))
		e->flags |= QUOTA_AGAIN;
	quota_unlock(&set->lock);
}

/* ------------------------------------------------------------------ unflushed */

u64 quota_entry_unflushed(const struct quota_entry *e)
{
	u64 more = (u64)e->requested + e->unflushed + e->flushing + e->spent + e->spent_sent +
		   e->lost + e->restored;

	return less(more, e->refunded);
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
 * The part of the limit is this node's part of the demand, but at least half of an even part, since
 * a node without demand so far may get some. Nodes with nearly all of the demand get less in
 * return.
 */
u32 quota_even_permille(const struct quotas *quotas)
{
	u32 share = 1000 / __atomic_load_n(&quotas->nodes, __ATOMIC_RELAXED);

	return share ? share : 1;
}

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

/* ------------------------------------------------------------------ measured */

void quotas_stats(const struct quotas *quotas, struct quotas_stats *ret)
{
	*ret = (struct quotas_stats){
		.room = (u64)quotas->sets * QUOTA_WAYS,
		.full = __atomic_load_n(&quotas->full, __ATOMIC_RELAXED),
		.lost = __atomic_load_n(&quotas->lost, __ATOMIC_RELAXED),
		.restored = __atomic_load_n(&quotas->restored, __ATOMIC_RELAXED),
	};
	for (u32 i = 0; i < quotas->sets; i++) {
		struct quota_set *set = &quotas->set[i];

		quota_lock(&set->lock);
		for (u32 way = 0; way < QUOTA_WAYS; way++) {
			const struct quota_entry *e = &set->entry[way];

			if (!set->key[way])
				continue;
			ret->entries++;
			ret->leases += e->credit > 0;
			ret->credit += e->credit;
			ret->unflushed +=
				e->unflushed + e->late + e->flushing + e->spent + e->spent_sent;
		}
		quota_unlock(&set->lock);
	}
}
