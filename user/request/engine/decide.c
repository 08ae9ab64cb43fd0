// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * decide.c - see decide.h.
 *
 *     collect the buckets -> lock -> look at all -> all or none? -> find places -> charge -> unlock
 *
 * While the locks are held no other thread sees the request's bucket states, so they cannot change
 * between reading and writing, and no charge has to be refunded. If Redis has to decide as well,
 * this is the first half; cluster/quota has the second, and decide_again() makes the response.
 *
 * A limit of the cluster: its bucket state is the last reply of Redis and the charges here since.
 * It can refuse alone, except for one request a second (refusal_cache.h). A request that it admits
 * passes at once if quota.h covers it; otherwise the request goes to Redis. The state of a sliding
 * log has only this node's own requests. If these already fill the limit, the request is refused in
 * the same way; otherwise only Redis can decide, and the refusal cache keeps its refusals.
 *
 * The soft part of such a limit is another bucket in Redis, which is charged instead of the limit
 * if this node's state of the limit refuses. If only Redis refuses, the request is decided a second
 * time, with the replies (remote.c): all nodes together admit the limit and its soft part, to the
 * last request.
 */
#include <string.h>

#include "request/engine/decide_private.h"

/* A unit may come back at any time: a client tries again after this. */
#define IN_FLIGHT_WAIT_NS SL_NS_PER_SEC

/* Its cost counts above the limit, too (`count: debt`). */
static bool owes(const struct bucket *b)
{
	return b->debt && b->cost;
}

static bool is_log(const struct bucket *b)
{
	return algorithm_is_log(b->view.spec->algo);
}

/* ------------------------------------------------------------------ limits of the cluster */

/* The time for which a limit is soft begins once: a node does not begin it on its own. */
struct quota_ref decide_cluster_ref(const struct decision *d, const struct bucket *b, u32 state)
{
	const struct counters_ref *ref = &d->ref[b->ref + state];
	bool strict = algorithms[ref->def.algo]->strict_note || (state && state == b->grace_ref);

	return (struct quota_ref){
		.key = ref->key,
		.tag = b->tag,
		.def = &ref->def,
		.consistency = strict ? CONSISTENCY_STRICT : b->rule->consistency,
		.every_ns = b->rule->consistency_ns,
		.metric = b->rule->metric,
		.count_all = b->limit && b->limit->terms.count == COUNT_ALL,
	};
}

u64 decide_own_key(const struct decision *d, const struct bucket *b, u32 state)
{
	return b->has_own && (!state || state != b->grace_ref) ? d->ref[b->ref + state + 1].key : 0;
}

static bool is_up(const struct decision *d, const struct bucket *b)
{
	const struct cluster_store_ops *ops = d->store ? d->store->ops : NULL;

	return ops && ops->up(d->store, ops->slot_of(d->store, b->tag));
}

/*
 * Whether a request that this node would refuse goes to Redis. In a log that counts refusals each
 * one moves the wait, which only Redis knows until this node's own requests fill the log, and other
 * nodes go on.
 */
static bool is_due(const struct decision *d, const struct bucket *b)
{
	bool moves = is_log(b) && b->limit && b->limit->terms.count == COUNT_ALL;

	return (moves && b->from_store) ||
	       refusal_cache_due(d->refusal_cache, d->ref[b->ref].key,
				 moves ? QUOTA_REFUSED_NS / 2 : REFUSAL_CACHE_AGAIN_NS,
				 d->now.mono_ns);
}

/* The bucket is over by this node's state, but one request a second is still sent to Redis. */
static void cluster_look(struct decision *d, struct bucket *b)
{
	const struct counters_ref *ref = &d->ref[b->ref];

	if (!d->refusal_cache)
		return;
	if (algorithm_is_log(ref->def.algo)) {
		u64 wait_ns = refusal_cache_wait(d->refusal_cache, ref->key, b->cost + b->view.hold,
						 d->now.mono_ns);

		/* A refusal implies remaining < cost. */
		b->from_store = wait_ns && !b->over;
		b->reply_used =
			b->view.p.capacity >= b->cost ? b->view.p.capacity - b->cost + 1 : 0;
		b->over |= b->from_store;
		b->wait_ns = b->wait_ns > wait_ns ? b->wait_ns : wait_ns;
	}
	if (!b->over || b->wait_ns == ~0ULL || !is_up(d, b) || !is_due(d, b))
		return;
	b->over = false;
	b->from_store = false;
	b->wait_ns = 0;
	b->retries = true;
}

static void take_one(struct decision *d, struct bucket *b)
{
	struct quota_ref ref = decide_cluster_ref(d, b, decide_charged(d, b));
	u64 cost = d->request->peek ? 0 : b->cost;
	bool remote = true;

	/* A request that charges nothing needs Redis only if the state here cannot decide. */
	if (!cost)
		remote = (b->retries || ref.consistency == CONSISTENCY_STRICT) && is_up(d, b);
	/* While Redis is unavailable write_back does not count: on_store_failure decides. */
	else if (!b->retries && ref.consistency != CONSISTENCY_STRICT &&
		 (ref.consistency != CONSISTENCY_WRITE_BACK || is_up(d, b)))
		remote = quota_acquire(d->quotas, &ref, cost, d->now) == QUOTA_NOT_COVERED;
	b->needs_store = remote;
	b->covered = cost && !remote;
	b->grace_needs_store = b->soft && b->grace_ref && (remote || (cost && b->begins));
	d->needs_store |= remote || b->grace_needs_store;
}

/* Covers each bucket of a request that is admitted here, or marks it needs_store. */
static void cluster_acquire(struct decision *d)
{
	if (!d->refusal_cache || d->request->report)
		return;
	for (u32 i = 0; i < d->part_count; i++) {
		const struct part *part = &d->part[i];

		for (u32 k = 0; !part->over && k < part->count; k++) {
			struct bucket *b = &d->bucket[part->bucket[k]];

			if (b->cluster && !b->needs_store && !b->covered && !owes(b))
				take_one(d, b);
		}
	}
}

static void cluster_charge_own(struct decision *d, struct bucket *b)
{
	u32 state = decide_charged(d, b);
	struct quota_ref ref = decide_cluster_ref(d, b, state);

	if (b->has_own)
		quota_charge_own(d->ledger, &d->ref[b->ref + state + 1], &ref, b->cost,
				 decision_now(d, b));
}

/* Reports, refunds and charges of candidates reach Redis with a flush. */
static void cluster_flush(struct decision *d, struct bucket *b, bool charged)
{
	struct quota_ref ref = decide_cluster_ref(d, b, decide_charged(d, b));

	if (charged && b->cost) {
		quota_add_unflushed(d->quotas, &ref, b->cost, d->then);
		if (!b->candidate)
			cluster_charge_own(d, b);
	}
	if (charged && b->soft && b->grace_ref && b->begins) {
		ref = decide_cluster_ref(d, b, b->grace_ref);
		quota_add_unflushed(d->quotas, &ref, b->begins, d->then);
	}
	ref = decide_cluster_ref(d, b, 0);
	if (b->refund)
		quota_add_unflushed(d->quotas, &ref, -(s64)b->refund, d->then);
}

/* ------------------------------------------------------------------ one bucket */

static bool is_shadow(const struct bucket *b)
{
	return b->rule && b->rule->shadow;
}

/* The time of the request: reports have an earlier one. A limit of the cluster has Redis' UTC. */
static struct sl_now decision_then(const struct decision *d, const struct bucket *b)
{
	struct sl_now then = d->then;

	then.utc_ns += decision_now(d, b).utc_ns - d->now.utc_ns;
	return then;
}

/*
 * A sliding log of the cluster: this node does not have the times of other nodes' requests, but the
 * wait of what was refused.
 */
static struct sl_result take_replied(const struct bucket *b, u64 cost, u64 capacity)
{
	bool over = b->reply_used + cost > capacity;

	return (struct sl_result){
		.verdict = over ? SL_OVER : SL_PASS,
		.wait_ns = !over	     ? 0
			   : cost > capacity ? ~0ULL
			   : b->over	     ? b->wait_ns
					     : b->view.p.window_ns,
	};
}

static struct sl_result take_log(const struct decision *d, const struct bucket *b,
				 const struct counters_ref *ref, u64 cost)
{
	struct sl_result res = { .bucket_state = ref->bucket_state };
	u64 capacity = b->view.p.capacity, count = request_log_count(ref->bucket_state);

	if (!cost)
		capacity += b->view.hold;
	if (b->from_store && (b->over || b->reply_used > count))
		return take_replied(b, cost, capacity);
	if (count + cost <= capacity)
		return res;
	res.verdict = SL_OVER;
	res.wait_ns = ~0ULL;
	if (cost <= capacity && b->in_flight)
		res.wait_ns = IN_FLIGHT_WAIT_NS;
	else if (cost <= capacity)
		res.wait_ns = request_log_wait(&d->counters->logs, b->view.spec, ref->bucket_state,
					       decision_now(d, b), count + cost - capacity);
	return res;
}

/* As spec.h's, for all algorithms. */
static struct sl_result bucket_charge(const struct decision *d, const struct bucket *b,
				      const struct counters_ref *ref, u64 cost)
{
	if (is_log(b))
		return take_log(d, b, ref, cost);
	return spec_charge(&b->view, ref->bucket_state, decision_now(d, b), cost);
}

static u64 bucket_remaining(const struct decision *d, const struct bucket *b)
{
	const struct counters_ref *ref = &d->ref[b->ref];
	u64 count = request_log_count(ref->bucket_state);

	if (!is_log(b))
		return spec_remaining(&b->view, ref->bucket_state, decision_now(d, b));
	if (b->from_store && b->reply_used > count)
		count = b->reply_used;
	return b->view.p.capacity > count ? b->view.p.capacity - count : 0;
}

static u64 bucket_reset_ns(const struct decision *d, const struct bucket *b)
{
	const struct counters_ref *ref = &d->ref[b->ref];
	u64 reset;

	if (is_log(b))
		reset = request_log_reset(&d->counters->logs, b->view.spec, ref->bucket_state,
					  decision_now(d, b));
	else
		reset = spec_reset_ns(&b->view, ref->bucket_state, decision_now(d, b));
	return reset > b->ban_left_ns ? reset : b->ban_left_ns;
}

/*
 * The part of the limit that is reserved for requests of a higher priority: the rule's `reserve`,
 * and where the limit shrank (scale, 16.16) at least so many quarters of the share that it shrank
 * by. A bucket refills for all, so that a part of the burst for critical requests costs the others
 * nothing; of a window these have what it shrank by, unless it shrinks for them, too (for_all).
 */
static u32 hold_permille(const struct decision *d, const struct rule *rule, bool for_all, u32 scale)
{
	static const u32 of_bucket[PRIORITY_COUNT] = { 0, 2, 3 },
			 of_window[PRIORITY_COUNT] = { 0, 0, 2 };
	const u32 *quarters = for_all ? of_bucket : of_window;
	u32 hold = 0, shrunk = 0;

	for (u32 i = 0; rule && i < (u32)d->priority; i++)
		hold += rule->reserve_permille[i];
	if (scale && scale < SL_ELASTIC_ONE)
		shrunk = quarters[d->priority] * 250ULL * (SL_ELASTIC_ONE - scale) / SL_ELASTIC_ONE;
	hold = hold > shrunk ? hold : shrunk;
	return hold > 1000 ? 1000 : hold;
}

/*
 * For critical requests a limit does not shrink, nor for reports: a count of more than what is left
 * now must not be cut to that. One of the cluster does: Redis has one rate of this node.
 */
u32 decide_scale(const struct decision *d, const struct rule_limit *limit)
{
	u32 scale;

	if (!limit || limit->terms.throttle.kind != THROTTLE_ELASTIC ||
	    __atomic_load_n(&limit->scale_until_ns, __ATOMIC_ACQUIRE) <= d->now.mono_ns)
		return 0;
	scale = __atomic_load_n(&limit->scale, __ATOMIC_RELAXED);
	if (scale < SL_ELASTIC_ONE && !(limit->terms.cluster && d->quotas) &&
	    (d->priority == PRIORITY_CRITICAL || d->request->report))
		return 0;
	return scale;
}

static void cluster_result(struct bucket *b, const struct decide_result *result)
{
	b->from_store = result->from_store;
	b->reply_used = result->reply_used;
	b->unavailable = result->unavailable;
	b->over = result->over;
	b->by_store = result->by_store;
	b->soft = result->soft;
	b->wait_ns = result->wait_ns;
}

static const struct decide_result *result_of(const struct decide_result *result, u32 count, u64 key)
{
	for (u32 i = 0; i < count; i++)
		if (result[i].key == key)
			return &result[i];
	return NULL;
}

/* "own" is looked up when it is charged. */
static bool is_looked(const struct bucket *b, u32 state)
{
	return !b->has_own || (state != 1 && (!b->soft_ref || state != b->soft_ref + 1u));
}

/* Whether the time for which the limit is soft is open, or may begin. */
static bool fits_grace(struct decision *d, struct bucket *b)
{
	struct counters_ref *ref = &d->ref[b->ref + b->grace_ref];
	struct spec_view view;

	if (!b->grace_ref)
		return true;
	if (!ref->spec)
		return false;
	spec_view_init(&view, ref->spec, 0, 0);
	b->begins = !b->cluster || spec_expired(ref->spec, ref->bucket_state, d->now);
	return spec_charge(&view, ref->bucket_state, d->now, b->begins).verdict == SL_PASS;
}

/* Whether soft admits what the limit refused: its state and, if any, its grace. */
static bool fits_softly(struct decision *d, struct bucket *b)
{
	struct counters_ref *ref = &d->ref[b->ref + b->soft_ref];
	struct bucket soft;

	if (!b->soft_ref || !ref->spec || !b->cost)
		return false;
	soft = (struct bucket){ .cost = b->cost, .cluster = b->cluster };
	spec_view_init(&soft.view, ref->spec, 0, 0);
	/* Of a log of the cluster only Redis has the requests of all nodes. */
	if (b->cluster && d->refusal_cache && is_log(&soft) &&
	    refusal_cache_wait(d->refusal_cache, ref->key, b->cost, d->now.mono_ns))
		return false;
	return bucket_charge(d, &soft, ref, b->cost).verdict == SL_PASS && fits_grace(d, b);
}

/* Redis refused it in the first charge of this request: the state here may have been refunded
 * since. */
static bool is_refused_there(const struct decision *d, struct bucket *b)
{
	const struct decide_result *was = result_of(d->first, d->first_count, d->ref[b->ref].key);

	if (!was || !was->by_store)
		return false;
	cluster_result(b, was);
	return true;
}

/* The time until `cost` fits after `ahead` other hits, each of which is charged. */
static u64 wait_behind(struct decision *d, struct bucket *b, const struct counters_ref *ref)
{
	const struct sl_params *p = &b->view.p;
	u64 behind = b->ahead + b->cost, windows, first, more;

	if (b->cost > p->capacity)
		return ~0ULL;
	if (behind <= p->capacity)
		return bucket_charge(d, b, ref, behind).wait_ns;
	if (algorithm_is_bucket(b->view.spec->algo)) {
		u64 most = bucket_charge(d, b, ref, p->capacity).wait_ns;

		/* Beyond a whole bucket each hit takes one interval. */
		if (__builtin_mul_overflow(behind - p->capacity, p->mult, &more))
			return ~0ULL;
		return most + more / SL_TICKS_PER_NS;
	}
	windows = (behind - 1) / p->capacity;
	first = bucket_charge(d, b, ref, behind - windows * p->capacity).wait_ns;
	if (first == ~0ULL || __builtin_mul_overflow(windows, p->window_ns, &more))
		return ~0ULL;
	more = calendar_wait_ns(b->view.spec->calendar, decision_now(d, b).utc_ns + first, more);
	return more > ~0ULL - first ? ~0ULL : first + more;
}

/* One request in flight is one unit, whatever its hits. What is reported has ended. */
static void set_in_flight(const struct decision *d, struct bucket *b)
{
	const struct request *request = d->request;

	b->cost = b->cost && !request->report && !request->release.count && !request->ends_unknown;
	b->refund = 0;
}

void decide_look(struct decision *d, struct bucket *b, struct decide_delay *wait)
{
	struct counters_ref *ref = &d->ref[b->ref];
	bool shadow = b->rule && b->rule->shadow, there;
	u32 scale;

	if (b->in_flight)
		set_in_flight(d, b);
	for (u32 i = 0; i < b->refs; i++)
		if (is_looked(b, i))
			counters_look(d->counters, &ref[i], decision_now(d, b));
	b->full = !ref->spec;
	if (b->beyond) {
		b->over = true;
		b->wait_ns = ~0ULL;
	}
	if (b->full)
		return;
	/* A limit of the cluster has been scaled by decide_collect(). */
	scale = decide_scale(d, b->limit);
	spec_view_init(&b->view, ref->spec, b->cluster ? 0 : scale,
		       shadow ? 0
			      : hold_permille(d, b->rule,
					      b->cluster || algorithm_is_bucket(ref->spec->algo),
					      scale));
	if (b->beyond)
		return;
	if (b->none) {
		b->over = true;
		b->wait_ns = ~0ULL;
		return;
	}
	if (b->decided)
		return;
	if (wait && wait->ahead && b->cost && b->rule && b->rule->wait_ns && !shadow)
		b->ahead = wait->ahead(wait->arg, ref->key);
	/* Without a cost yet, a limit that counts debts asks for something to be left. */
	b->took = bucket_charge(d, b, ref, b->debt && !b->cost ? 1 : b->cost);
	b->wait_ns = b->took.wait_ns;
	b->over = b->took.verdict == SL_OVER || b->ahead;
	there = is_refused_there(d, b);
	if (b->ahead)
		b->wait_ns = wait_behind(d, b, ref);
	else if (b->over)
		b->soft = fits_softly(d, b);
	if (b->cluster && !b->candidate && !b->ahead && !b->soft && !owes(b) && !there) {
		cluster_look(d, b);
		b->soft = b->over && fits_softly(d, b);
	}
	if (b->soft)
		b->over = false;
}

/* ------------------------------------------------------------------ the verdict */

/* Shadow parts never refuse; of parts with quota_mode one must fit, or be a shadow. */
bool decide_refused_but(const struct decision *d, const struct rule *rule)
{
	bool quota = false, quota_fits = false, refuses = false;

	for (u32 i = 0; i < d->part_count; i++) {
		const struct part *part = &d->part[i];

		if (rule && part->rule == rule)
			continue;
		if (part->quota) {
			quota = true;
			quota_fits |= !part->over || part->shadow;
		} else if (!part->shadow) {
			refuses |= part->over;
		}
	}
	return refuses || (quota && !quota_fits);
}

bool decide_refused(struct decision *d)
{
	for (u32 i = 0; i < d->part_count; i++) {
		struct part *part = &d->part[i];

		for (u32 k = 0; k < part->count; k++)
			part->over |= d->bucket[part->bucket[k]].over;
	}
	return decide_refused_but(d, NULL);
}

static bool charges(const struct decision *d, const struct part *part)
{
	return d->request->report || !part->over;
}

/* ------------------------------------------------------------------ charging */

bool decide_claim(struct decision *d, struct counters_ref *ref)
{
	return ref->present || ref->claimed || counters_claim(d->counters, ref, d->now);
}

static bool claim_bucket_state(struct decision *d, const struct bucket *b, struct counters_ref *ref,
			       u64 cost)
{
	ref->chunk = 0;
	if (!decide_claim(d, ref))
		return false;
	if (!algorithm_is_log(ref->spec->algo) ||
	    !request_log_needs(&d->counters->logs, ref->spec, ref->bucket_state,
			       decision_then(d, b), cost))
		return true;
	d->chunks = true;
	ref->chunk = request_chunk_get(&d->counters->logs);
	if (!ref->chunk && counters_shed_log(d->counters, d->now))
		ref->chunk = request_chunk_get(&d->counters->logs);
	return ref->chunk;
}

/* A bucket is charged once; one without cost needs no room in the table. */
static bool is_charged(const struct bucket *b)
{
	return b->cost && !b->full && !b->none && !b->claimed;
}

bool decide_claim_bucket(struct decision *d, struct bucket *b)
{
	struct counters_ref *ref = &d->ref[b->ref];

	if (is_charged(b)) {
		b->claimed = true;
		b->full = !claim_bucket_state(d, b, &ref[decide_charged(d, b)], b->cost) ||
			  (decide_charged(d, b) && b->grace_ref &&
			   !claim_bucket_state(d, b, &ref[b->grace_ref], 1));
	}
	return !b->full;
}

/* Finds room for the new states of a part. False: no room, and on_full is closed. */
static bool claim_part(struct decision *d, struct part *part)
{
	bool ok = true;

	for (u32 k = 0; k < part->count; k++)
		ok &= decide_claim_bucket(d, &d->bucket[part->bucket[k]]);
	return ok || !d->counters->full_closed || part->shadow;
}

static bool claim(struct decision *d)
{
	bool ok = true;

	for (u32 i = 0; i < d->part_count; i++)
		if (charges(d, &d->part[i]))
			ok &= claim_part(d, &d->part[i]);
	return ok;
}

static void put_log(struct decision *d, const struct bucket *b, struct counters_ref *ref, u64 cost)
{
	u64 bucket_state = request_log_add(&d->counters->logs, ref->spec, ref->bucket_state,
					   decision_then(d, b), cost, ref->chunk);

	ref->chunk = 0;
	counters_put(d->counters, ref, bucket_state);
}

static void charge_soft(struct decision *d, struct bucket *b)
{
	struct counters_ref *ref = &d->ref[b->ref + b->soft_ref];
	struct spec_view view;

	if (is_log(b)) {
		put_log(d, b, ref, b->cost);
	} else {
		spec_view_init(&view, ref->spec, 0, 0);
		counters_put(d->counters, ref,
			     spec_charge(&view, ref->bucket_state, decision_now(d, b), b->cost)
				     .bucket_state);
	}
	ref = &d->ref[b->ref + b->grace_ref];
	if (!b->grace_ref || !b->begins)
		return;
	spec_view_init(&view, ref->spec, 0, 0);
	counters_put(d->counters, ref,
		     spec_charge(&view, ref->bucket_state, d->now, 1).bucket_state);
}

/* A report, or a cost of `count: debt`, is charged whether it fits or not; the debt is at most one
 * capacity. */
static void charge_report(struct decision *d, struct bucket *b)
{
	struct counters_ref *ref = &d->ref[b->ref];
	u64 most = 2 * (b->view.p.capacity + b->view.hold);
	u64 count = request_log_count(ref->bucket_state), cost = b->cost;

	if (!is_log(b)) {
		counters_put(d->counters, ref,
			     spec_report(&b->view, ref->bucket_state, decision_now(d, b),
					 decision_then(d, b), cost));
		return;
	}
	if (cost > most - (count < most ? count : most))
		cost = most - (count < most ? count : most);
	if (cost && !request_log_is_past(b->view.spec, decision_then(d, b), decision_now(d, b)))
		put_log(d, b, ref, cost);
}

static void refund(struct decision *d, struct bucket *b)
{
	struct counters_ref *ref = &d->ref[b->ref];

	if (!ref->present && !ref->claimed)
		return;
	if (is_log(b))
		counters_put(d->counters, ref,
			     request_log_remove(&d->counters->logs, ref->spec, ref->bucket_state,
						b->refund));
	else
		counters_put(
			d->counters, ref,
			spec_refund(&b->view, ref->bucket_state, decision_now(d, b), b->refund));
}

void decide_charge(struct decision *d, struct bucket *b)
{
	struct counters_ref *ref = &d->ref[b->ref];
	struct counters_ref *charged = ref + decide_charged(d, b);
	u64 before = charged->bucket_state;

	if (b->charged || b->none)
		return;
	b->charged = true;
	if (b->cost && !b->full) {
		if (d->request->report || owes(b))
			charge_report(d, b);
		else if (b->soft)
			charge_soft(d, b);
		else if (is_log(b))
			put_log(d, b, ref, b->cost);
		else if (!b->retries)
			counters_put(d->counters, ref, b->took.bucket_state);
		if (b->in_flight && d->permit.count < PERMIT_UNITS_MAX)
			d->permit.key[d->permit.count++] = ref->key;
	}
	if (b->cluster && (d->request->report || owes(b) || b->candidate))
		cluster_flush(d, b, b->full || charged->bucket_state != before);
	else if (b->cluster && b->cost && !d->needs_store)
		cluster_charge_own(d, b);
	if (b->refund && ref->spec)
		refund(d, b);
}

/* Frees chunks of logs that were reserved but not charged. */
static void unclaim(struct decision *d)
{
	for (u32 i = 0; d->chunks && i < d->bucket_count; i++) {
		struct bucket *b = &d->bucket[i];

		for (u32 k = 0; b->claimed && k < b->refs; k++) {
			struct counters_ref *ref = &d->ref[b->ref + k];

			if (!is_looked(b, k))
				continue;
			if (ref->spec && algorithm_is_log(ref->spec->algo) && ref->chunk)
				request_chunk_put(&d->counters->logs, ref->chunk);
			ref->chunk = 0;
		}
	}
}

/* A log keeps the newest requests, as many as the limit: older ones make no difference. */
static void fill_log(struct decision *d, struct bucket *b, struct counters_ref *ref)
{
	u64 capacity = b->view.p.capacity, cost = b->cost < capacity ? b->cost : capacity;
	u64 count = request_log_count(ref->bucket_state), most = capacity - cost;

	if (count > most)
		ref->bucket_state = request_log_drop(&d->counters->logs, ref->spec,
						     ref->bucket_state, count - most);
	if (cost && claim_bucket_state(d, b, ref, cost))
		put_log(d, b, ref, cost);
	else if (ref->present)
		counters_put(d->counters, ref, ref->bucket_state);
}

void decide_count_refused(struct decision *d, struct bucket *b)
{
	struct counters_ref *ref = &d->ref[b->ref];
	u64 wait_ns;

	if (!b->limit || b->limit->terms.count != COUNT_ALL || !is_charged(b))
		return;
	if (is_log(b))
		fill_log(d, b, ref);
	else if (claim_bucket_state(d, b, ref, b->cost))
		counters_put(d->counters, ref,
			     spec_fill(&b->view, ref->bucket_state, decision_now(d, b), b->cost));
	if (b->cluster) {
		struct quota_ref shared = decide_cluster_ref(d, b, 0);

		quota_add_refused(d->quotas, &shared, b->cost, d->now);
	}
	wait_ns = bucket_charge(d, b, ref, b->cost).wait_ns;
	/* Of a log Redis may have reported a longer one: it has the requests of other nodes. */
	b->wait_ns = b->wait_ns > wait_ns ? b->wait_ns : wait_ns;
}

/*
 * `count: all`: the first limit that refuses counts the request, as in the packet tier, and so does
 * each in shadow mode. The wait is longer by that. `by_store`: those that Redis refused.
 */
static void count_refused(struct decision *d, bool by_store)
{
	bool refused = false;

	for (u32 i = 0; i < d->bucket_count; i++) {
		struct bucket *b = &d->bucket[i];

		if (!b->over || b->by_store != by_store || b->candidate ||
		    (refused && !is_shadow(b)) || (d->first && !by_store && is_shadow(b)))
			continue;
		refused |= !is_shadow(b);
		decide_count_refused(d, b);
	}
}

/* `count: debt`: the cost is known only now, when the request has run; so it counts whatever is
 * decided. */
static void charge_debts(struct decision *d)
{
	for (u32 i = 0; i < d->bucket_count; i++) {
		struct bucket *b = &d->bucket[i];

		if (!owes(b))
			continue;
		decide_claim_bucket(d, b);
		decide_charge(d, b);
		if (b->over && !b->beyond && !b->full)
			b->wait_ns = bucket_charge(d, b, &d->ref[b->ref], b->cost).wait_ns;
	}
	unclaim(d);
}

/* The second charge of a request: its debts and candidates have been charged. */
static void take_second(struct decision *d, enum response_code code)
{
	for (u32 i = 0; i < d->bucket_count; i++)
		if (owes(&d->bucket[i]))
			d->bucket[i].claimed = d->bucket[i].charged = true;
	if (code != RESPONSE_OK)
		count_refused(d, true);
}

static enum response_code take(struct decision *d)
{
	enum response_code code = decide_refused(d) ? RESPONSE_OVER_LIMIT : RESPONSE_OK;

	if (d->first)
		take_second(d, code);
	if (!d->request->peek && !d->request->report) {
		if (d->debts && !d->first)
			charge_debts(d);
		count_refused(d, false);
		if (d->bans && (!d->first || code != RESPONSE_OK))
			decide_ban_note(d, code);
	}
	if (d->candidates && !d->request->peek && !d->first)
		decide_candidates(d);
	if (code != RESPONSE_OK && !d->request->report)
		return code;
	if (!d->request->peek && !claim(d) && !d->request->report)
		code = RESPONSE_CLOSED;
	if (d->cluster_count && code == RESPONSE_OK)
		cluster_acquire(d);
	if (d->request->peek)
		return code;
	for (u32 i = 0; i < d->part_count && code != RESPONSE_CLOSED; i++) {
		struct part *part = &d->part[i];

		for (u32 k = 0; charges(d, part) && k < part->count; k++)
			decide_charge(d, &d->bucket[part->bucket[k]]);
	}
	unclaim(d);
	return code;
}

/* ------------------------------------------------------------------ the response
 *
 * The limit that binds is, of those that refuse, the one with the longest wait; of those that
 * do not, the one with the smallest part of it left.
 */

static u64 ceil_div(u64 a, u64 b)
{
	return a / b + (a % b != 0);
}

static u64 ceil_u128(unsigned __int128 a, unsigned __int128 b)
{
	return (a + b - 1) / b;
}

/* The whole limit, including what is reserved from this request. */
u64 decide_capacity(const struct bucket *b)
{
	return b->none || !b->view.spec ? 0 : b->view.p.capacity + b->view.hold;
}

/* Of all buckets, after the charge. */
static void read_left(struct decision *d)
{
	for (u32 i = 0; i < d->bucket_count; i++) {
		struct bucket *b = &d->bucket[i];
		bool known = b->view.spec && !b->none;

		b->reset_ns = known ? bucket_reset_ns(d, b) : 0;
		if (b->none || b->ahead || b->ban_left_ns)
			b->left = 0;
		else
			b->left = known ? bucket_remaining(d, b) : ~0ULL;
	}
}

/* a / b < c / d, for the remaining parts of two limits. */
static bool less_left(u64 a, u64 b, u64 c, u64 d)
{
	return (unsigned __int128)a * d < (unsigned __int128)c * b;
}

/* Whether `b` is the binding limit, rather than `than`. */
static bool binds(const struct bucket *b, const struct bucket *than)
{
	if (b->over != than->over)
		return b->over;
	if (b->over)
		return b->wait_ns > than->wait_ns;
	return less_left(b->left, decide_capacity(b), than->left, decide_capacity(than));
}

/* The rate in force: elastic multiplies it. */
static u64 requests_of(const struct bucket *b)
{
	const struct spec *spec = b->view.spec;

	if (b->none || !spec)
		return 0;
	if (decide_capacity(b) == spec->capacity)
		return spec->requests;
	return (unsigned __int128)spec->requests * decide_capacity(b) / spec->capacity;
}

/* Of a calendar: of its present window. */
static u64 window_ns_of(const struct decision *d, const struct bucket *b)
{
	u64 begin_ns, end_ns;

	if (!b->limit || !b->limit->terms.calendar)
		return d->ref[b->ref].def.period_ns;
	calendar_window(b->limit->terms.calendar, decision_now(d, b).utc_ns, &begin_ns, &end_ns);
	return end_ns - begin_ns;
}

static void fill_status(const struct decision *d, const struct part *part,
			struct response_status *ret)
{
	const struct bucket *bound = NULL;
	u32 level = 0;

	memset(ret, 0, offsetof(struct response_status, candidate));
	decide_candidate_status(d, part, ret);
	ret->rule = part->rule;
	ret->unlimited = part->unlimited;
	ret->over = part->over;
	ret->shadow = part->over && part->shadow;
	ret->ban_left_ns = decide_ban_left(d, part, &level);
	ret->ban_level = (u8)level;
	ret->ban_began = part->ban_began;
	if (part->unlimited)
		ret->remaining = ~0U;
	for (u32 i = 0; i < part->count; i++) {
		const struct bucket *b = &d->bucket[part->bucket[i]];

		ret->soft |= b->soft;
		ret->full |= b->full;
		ret->unavailable |= b->unavailable;
		if (!bound || binds(b, bound))
			bound = b;
	}
	if (!bound)
		return;
	ret->limit = bound->limit;
	ret->requests = requests_of(bound);
	ret->capacity = bound->none || bound->prefix_len ? 0 : decide_capacity(bound);
	ret->window_ns = window_ns_of(d, bound);
	ret->remaining = bound->left;
	ret->reset_ns = bound->reset_ns;
	if (bound->over)
		ret->retry_after_ns = bound->wait_ns;
	ret->soft &= !part->over;
}

/*
 * The time until more fits than now: of a bucket until its next unit, of a window until it ends or
 * slides on. Not before a refused request may come back. ~0: it will never be more.
 */
static u64 more_after_ns(const struct decision *d, const struct bucket *b)
{
	u64 wait_ns;

	if (b->none || !b->view.spec || (!b->over && b->left >= decide_capacity(b)))
		return ~0ULL;
	wait_ns = bucket_charge(d, b, &d->ref[b->ref], b->left + 1).wait_ns;
	return b->over && b->wait_ns != ~0ULL && b->wait_ns > wait_ns ? b->wait_ns : wait_ns;
}

void decide_policy(const struct decision *d, const struct bucket *b, struct response_policy *ret)
{
	const struct spec *spec = b->view.spec;

	*ret = (struct response_policy){
		.rule = b->rule,
		.limit = b->limit,
		.q = decide_capacity(b),
		.w_s = ceil_div(window_ns_of(d, b), SL_NS_PER_SEC),
		.r = b->left,
		.t_ns = more_after_ns(d, b),
		.reset_ns = b->reset_ns,
		.wait_ns = b->over ? b->wait_ns : 0,
		.prefix_len = b->prefix_len,
		.refused = b->over,
	};
	/* A bucket: the time that it takes to fill. */
	if (spec && algorithm_is_bucket(spec->algo))
		ret->w_s = ceil_u128((unsigned __int128)spec->capacity * spec->period_ns,
				     (unsigned __int128)spec->requests * SL_NS_PER_SEC);
}

/* Enforced buckets, each once, the binding one first, as many as a response has; returns their
 * number. */
static u32 list_enforced(struct decision *d, enum response_code code,
			 const struct bucket *ret[RESPONSE_POLICIES_MAX])
{
	const struct bucket *bound = NULL;
	u32 count = 0, before = 0;

	for (u32 i = 0; i < d->part_count; i++) {
		const struct part *part = &d->part[i];

		/* A used-up quota does not bind if another one admitted the request. */
		if (part->shadow || (part->quota && part->over && code == RESPONSE_OK))
			continue;
		for (u32 k = 0; k < part->count; k++) {
			struct bucket *b = &d->bucket[part->bucket[k]];

			if (b->full || b->listed)
				continue;
			b->listed = true;
			if (!bound || binds(b, bound)) {
				bound = b;
				before = count;
			}
			if (count < RESPONSE_POLICIES_MAX)
				ret[count++] = b;
		}
	}
	if (before) {
		before = before < RESPONSE_POLICIES_MAX ? before : RESPONSE_POLICIES_MAX - 1;
		memmove(ret + 1, ret, before * sizeof(*ret));
		ret[0] = bound;
	}
	return count;
}

/* The time until the request fits: the longest wait; of quotas the shortest, as one is enough. */
static u64 retry_after(const struct decision *d)
{
	u64 wait = 0, quota = ~0ULL;
	bool any_quota = false, quota_fits = false;

	for (u32 i = 0; i < d->part_count; i++) {
		const struct part *part = &d->part[i];
		u64 longest = 0;

		quota_fits |= part->quota && part->shadow;
		if (part->shadow)
			continue;
		for (u32 k = 0; k < part->count; k++) {
			const struct bucket *b = &d->bucket[part->bucket[k]];

			if (b->over && b->wait_ns > longest)
				longest = b->wait_ns;
		}
		if (!part->quota) {
			wait = longest > wait ? longest : wait;
			continue;
		}
		any_quota = true;
		quota_fits |= !part->over;
		quota = longest < quota ? longest : quota;
	}
	if (any_quota && !quota_fits && quota > wait)
		wait = quota;
	return wait;
}

void decide_response(struct decision *d, enum response_code code, struct response *ret)
{
	const struct bucket *enforced[RESPONSE_POLICIES_MAX];

	read_left(d);
	ret->code = code;
	ret->beyond = NULL;
	ret->count = d->part_count - d->has_domain;
	ret->has_domain = d->has_domain;
	ret->delayed_ns = 0;
	ret->ticket[0] = '\0';
	ret->permit.count = ret->released = 0;
	ret->retry_after_ns = code == RESPONSE_OVER_LIMIT ? retry_after(d) : 0;
	for (u32 i = 0; i < d->part_count; i++)
		fill_status(d, &d->part[i], &ret->status[i]);
	ret->policy_count = list_enforced(d, code, enforced);
	for (u32 i = 0; i < ret->policy_count; i++)
		decide_policy(d, enforced[i], &ret->policy[i]);
}

/* ------------------------------------------------------------------ waiting */

/*
 * A request may wait if every rule that refuses it has on_limit: for the bucket that takes longest,
 * and no longer than the shortest wait that these rules allow.
 */
static void find_delay(const struct decision *d, enum response_code code, struct decide_delay *wait)
{
	wait->key = 0;
	wait->limit_ns = ~0ULL;
	wait->wait_ns = 0;
	for (u32 i = 0; code == RESPONSE_OVER_LIMIT && i < d->part_count; i++) {
		const struct part *part = &d->part[i];

		for (u32 k = 0; !part->shadow && k < part->count; k++) {
			const struct bucket *b = &d->bucket[part->bucket[k]];

			if (!b->over)
				continue;
			if (!b->rule || !b->rule->wait_ns || b->wait_ns == ~0ULL) {
				wait->key = 0;
				return;
			}
			if (b->rule->wait_ns < wait->limit_ns)
				wait->limit_ns = b->rule->wait_ns;
			if (wait->key && b->wait_ns <= wait->wait_ns)
				continue;
			wait->key = d->ref[b->ref].key;
			wait->rule_id = b->rule->id;
			wait->hits = b->cost;
			wait->before = b->ahead;
			wait->wait_ns = b->wait_ns;
			wait->queue = b->rule->queue;
		}
	}
}

/*
 * A request with a reference may be deferred if every rule that refuses it defers, and all that its
 * release has to charge is in Redis: it joins the queue of the bucket that takes longest.
 */
static void find_defer(struct decision *d, enum response_code code, struct decide_delay *wait)
{
	u64 longest_ns = 0;

	wait->defer = NULL;
	wait->decision = d;
	if (code != RESPONSE_OVER_LIMIT || !d->request->reference.len || d->request->peek ||
	    d->request->report)
		return;
	for (u32 i = 0; i < d->part_count; i++) {
		const struct part *part = &d->part[i];

		for (u32 k = 0; !part->shadow && k < part->count; k++) {
			const struct bucket *b = &d->bucket[part->bucket[k]];
			bool waits =
				b->over && b->rule && b->rule->defer.max && b->wait_ns != ~0ULL;

			if (part->quota || !b->cluster || b->soft || b->debt || !b->cost ||
			    (b->over && !waits)) {
				wait->defer = NULL;
				return;
			}
			if (!waits || (wait->defer && b->wait_ns <= longest_ns))
				continue;
			wait->defer = b->rule;
			wait->defer_bucket = part->bucket[k];
			longest_ns = b->wait_ns;
		}
	}
}

/* ------------------------------------------------------------------ decisions */

struct decision *decision_begin(const struct ledger *ledger, const struct request *request,
				struct sl_now now)
{
	static _Thread_local struct decision decision;
	struct decision *d = &decision;
	u64 ago = request->at_utc_ns && request->at_utc_ns < now.utc_ns
			  ? now.utc_ns - request->at_utc_ns
			  : 0;

	d->ledger = ledger;
	d->counters = ledger->counters;
	d->quotas = ledger->quotas;
	d->request = request;
	d->now = d->then = now;
	d->cluster_store_now = counters_shared_now(d->counters, now);
	if (request->report) {
		d->then.utc_ns -= ago;
		d->then.mono_ns -= ago < now.mono_ns ? ago : now.mono_ns;
	}
	d->bucket_count = d->ref_count = d->cluster_count = 0;
	d->needs_store = d->has_domain = false;
	d->bans = d->candidates = d->chunks = d->debts = false;
	d->store = NULL;
	d->refusal_cache = NULL;
	d->first = NULL;
	d->first_count = 0;
	d->permit.at_ns = decide_permit_time(now.mono_ns);
	d->permit.count = 0;
	return d;
}

/* A candidate is charged as if its rule had no other limit, but a request that is refused is not in
 * flight. */
static void return_units(struct decision *d)
{
	for (u32 i = 0; i < d->bucket_count; i++) {
		struct bucket *b = &d->bucket[i];
		struct counters_ref *ref = &d->ref[b->ref];

		if (b->in_flight && b->charged && b->cost && !b->full)
			counters_put(d->counters, ref,
				     request_log_release(&d->counters->logs, ref->spec,
							 ref->bucket_state, d->then, d->now));
	}
	d->permit.count = 0;
}

bool decide_here(struct decision *d, const struct ruleset *rules, struct response *ret,
		 struct decide_delay *ret_wait)
{
	enum response_code code;

	decide_collect(d, rules);
	store_begin(d->counters, &d->locks, d->ref, d->ref_count);
	for (u32 i = 0; i < d->bucket_count; i++)
		decide_look(d, &d->bucket[i], ret_wait);
	if (d->bans)
		decide_ban_look(d);
	code = take(d);
	if (code != RESPONSE_OK && d->permit.count)
		return_units(d);
	if (!d->needs_store) {
		decide_response(d, code, ret);
		if (code == RESPONSE_OK)
			ret->permit = d->permit;
	}
	counters_end(&d->locks);
	if (d->needs_store)
		return false;
	if (code == RESPONSE_CLOSED)
		ret->retry_after_ns = DECIDE_CLOSED_WAIT_NS;
	if (ret_wait) {
		find_delay(d, code, ret_wait);
		find_defer(d, code, ret_wait);
	}
	return true;
}

void decide(const struct ledger *ledger, const struct ruleset *rules, const struct request *request,
	    struct sl_now now, struct response *ret, struct decide_delay *ret_wait)
{
	decide_here(decision_begin(ledger, request, now), rules, ret, ret_wait);
}

/* ------------------------------------------------------------------ the second half */

void decide_again(struct decision *d, const struct ruleset *rules,
		  const struct decide_result *result, u32 count, enum response_code code,
		  struct response *ret, struct decide_delay *ret_wait)
{
	decide_collect(d, rules);
	store_begin(d->counters, &d->locks, d->ref, d->ref_count);
	for (u32 i = 0; i < d->bucket_count; i++) {
		struct bucket *b = &d->bucket[i];
		const struct decide_result *was = result_of(result, count, d->ref[b->ref].key);

		b->decided = !d->request->peek;
		if (was)
			cluster_result(b, was);
		decide_look(d, b, NULL);
		b->full |= was && was->full;
	}
	/* A request that passed before the ban began has passed. */
	if (d->request->peek || code == RESPONSE_OVER_LIMIT)
		decide_ban_look(d);
	if (decide_refused(d) && d->request->peek)
		code = RESPONSE_OVER_LIMIT;
	if (!d->request->peek && !d->request->report)
		count_refused(d, true);
	if (!d->request->peek && code == RESPONSE_OVER_LIMIT)
		decide_ban_note(d, code);
	decide_response(d, code, ret);
	counters_end(&d->locks);
	if (code == RESPONSE_CLOSED || code == RESPONSE_ERROR)
		ret->retry_after_ns = DECIDE_CLOSED_WAIT_NS;
	find_delay(d, code, ret_wait);
	find_defer(d, code, ret_wait);
}
