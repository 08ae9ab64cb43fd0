// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * decide.c - see decide.h.
 *
 *     collect the buckets -> lock -> look at all -> all or none? -> find places -> write -> unlock
 *
 * Between lock and unlock nobody else sees any of the call's words, so nothing that was looked
 * at can have changed when it is written, and nothing has to be given back. Where the store of all
 * nodes has to be asked as well, this is the first half, and remote.c has the second.
 */
#include <string.h>

#include "request/engine/decide_private.h"

/* ------------------------------------------------------------------ one bucket */

static bool is_log(const struct bucket *b)
{
	return b->view.spec->algo == HTTP_SLIDING_LOG;
}

/* A log that nodes share: the times of the others' requests are not known here. */
static struct sl_result take_told(const struct bucket *b, u64 cost, u64 capacity)
{
	bool over = b->reply_used + cost > capacity;

	return (struct sl_result){
		.verdict = over ? SL_OVER : SL_PASS,
		.wait_ns = !over ? 0 : cost > capacity ? ~0ULL : b->view.p.window_ns,
	};
}

static struct sl_result take_log(struct decision *d, struct bucket *b,
				 const struct counters_ref *ref, u64 cost)
{
	struct sl_result res = { .bucket_state = ref->bucket_state };
	u64 capacity = b->view.p.capacity, count = request_log_count(ref->bucket_state);

	if (!cost)
		capacity += b->view.hold;
	if (b->from_store && b->reply_used > count)
		return take_told(b, cost, capacity);
	if (count + cost <= capacity)
		return res;
	res.verdict = SL_OVER;
	res.wait_ns = ~0ULL;
	if (cost <= capacity)
		res.wait_ns = request_log_wait(&d->counters->logs, b->view.spec, ref->bucket_state,
					       d->now, count + cost - capacity);
	return res;
}

/* As spec.h's, for all algorithms. */
static struct sl_result bucket_charge(struct decision *d, struct bucket *b,
				      const struct counters_ref *ref, u64 cost)
{
	if (is_log(b))
		return take_log(d, b, ref, cost);
	return spec_charge(&b->view, ref->bucket_state, decision_now(d, b), cost);
}

u64 bucket_remaining(const struct decision *d, const struct bucket *b)
{
	const struct counters_ref *ref = &d->ref[b->ref];
	u64 count = request_log_count(ref->bucket_state);

	if (!is_log(b))
		return spec_remaining(&b->view, ref->bucket_state, decision_now(d, b));
	if (b->from_store && b->reply_used > count)
		count = b->reply_used;
	return b->view.p.capacity > count ? b->view.p.capacity - count : 0;
}

u64 bucket_reset_ns(const struct decision *d, const struct bucket *b)
{
	const struct counters_ref *ref = &d->ref[b->ref];

	if (!is_log(b))
		return spec_reset_ns(&b->view, ref->bucket_state, decision_now(d, b));
	return request_log_reset(&d->counters->logs, b->view.spec, ref->bucket_state, d->now);
}

/* What of the limit is kept for calls of a higher priority than this. */
static u32 hold_permille(const struct decision *d, const struct rule *rule)
{
	u32 hold = 0;

	for (u32 i = 0; rule && i < (u32)d->priority; i++)
		hold += rule->reserve_permille[i];
	return hold > 1000 ? 1000 : hold;
}

/* The scale of an elastic limit, while it is valid. */
static u32 elastic_of(const struct decision *d, const struct rule_limit *limit)
{
	if (!limit || limit->throttle.kind != THROTTLE_ELASTIC ||
	    __atomic_load_n(&limit->scale_until_ns, __ATOMIC_ACQUIRE) <= d->now.mono_ns)
		return 0;
	return __atomic_load_n(&limit->scale, __ATOMIC_RELAXED);
}

/* Whether what soft adds takes what the limit refused: its word and, if any, its grace. */
static bool fits_softly(struct decision *d, struct bucket *b)
{
	struct counters_ref *ref = &d->ref[b->ref];
	struct bucket soft = { .cost = b->cost };

	if (b->refs < 2 || !ref[1].spec || !b->cost)
		return false;
	spec_view_init(&soft.view, ref[1].spec, 0, 0);
	if (bucket_charge(d, &soft, &ref[1], b->cost).verdict == SL_OVER)
		return false;
	if (b->refs < 3)
		return true;
	if (!ref[2].spec)
		return false;
	spec_view_init(&soft.view, ref[2].spec, 0, 0);
	return spec_charge(&soft.view, ref[2].bucket_state, d->now, 1).verdict == SL_PASS;
}

/* How long until `cost` fits behind `ahead` others, each of whom takes his own. */
static u64 wait_behind(struct decision *d, struct bucket *b, const struct counters_ref *ref)
{
	const struct sl_params *p = &b->view.p;
	u64 behind = b->ahead + b->cost, windows, first;

	if (b->cost > p->capacity)
		return ~0ULL;
	if (behind <= p->capacity)
		return bucket_charge(d, b, ref, behind).wait_ns;
	if (b->view.spec->algo <= HTTP_LEAKY_BUCKET) {
		u64 most = bucket_charge(d, b, ref, p->capacity).wait_ns;

		/* Beyond a whole bucket each takes its interval. */
		return most + (behind - p->capacity) * p->mult / SL_TICKS_PER_NS;
	}
	windows = (behind - 1) / p->capacity;
	first = bucket_charge(d, b, ref, behind - windows * p->capacity).wait_ns;
	return first + windows * p->window_ns;
}

void decide_look(struct decision *d, struct bucket *b, struct decide_delay *wait)
{
	struct counters_ref *ref = &d->ref[b->ref];
	bool shadow = b->rule && b->rule->shadow;

	for (u32 i = 0; i < b->refs; i++)
		counters_look(d->counters, &ref[i], decision_now(d, b));
	b->full = !ref->spec;
	if (b->beyond) {
		b->over = true;
		b->wait_ns = ~0ULL;
	}
	if (b->full)
		return;
	spec_view_init(&b->view, ref->spec, elastic_of(d, b->limit),
		       shadow ? 0 : hold_permille(d, b->rule));
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
	b->took = bucket_charge(d, b, ref, b->cost);
	b->wait_ns = b->took.wait_ns;
	b->over = b->took.verdict == SL_OVER || b->ahead;
	if (b->ahead)
		b->wait_ns = wait_behind(d, b, ref);
	else if (b->shared)
		decide_cluster_look(d, b);
	else if (b->over)
		b->soft = fits_softly(d, b);
	if (b->soft)
		b->over = false;
}

/* ------------------------------------------------------------------ the verdict */

/* Shadow parts never refuse; of parts with quota_mode one has to fit, or only to watch. */
bool decide_refused(struct decision *d)
{
	bool quota = false, quota_fits = false, refuses = false;

	for (u32 i = 0; i < d->part_count; i++) {
		struct part *part = &d->part[i];

		for (u32 k = 0; k < part->count; k++)
			part->over |= d->bucket[part->bucket[k]].over;
		if (part->quota) {
			quota = true;
			quota_fits |= !part->over || part->shadow;
		} else if (!part->shadow) {
			refuses |= part->over;
		}
	}
	return refuses || (quota && !quota_fits);
}

static bool charges(const struct decision *d, const struct part *part)
{
	return d->request->report || !part->over;
}

/* ------------------------------------------------------------------ charging */

static bool claim_bucket_state(struct decision *d, struct counters_ref *ref, u64 cost)
{
	ref->chunk = 0;
	if (!ref->present && !ref->claimed && !counters_claim(d->counters, ref, d->now))
		return false;
	if (ref->spec->algo != HTTP_SLIDING_LOG ||
	    !request_log_needs(&d->counters->logs, ref->bucket_state, cost))
		return true;
	ref->chunk = request_chunk_get(&d->counters->logs);
	if (!ref->chunk && counters_shed_log(d->counters, d->now))
		ref->chunk = request_chunk_get(&d->counters->logs);
	return ref->chunk;
}

/* What is charged once only; what charges nothing needs no place. */
static bool is_charged(const struct bucket *b)
{
	return b->cost && !b->full && !b->none && !b->claimed;
}

/* Finds places for a part's new words. False: there is none, and the rule says closed. */
static bool claim_part(struct decision *d, struct part *part)
{
	bool ok = true;

	for (u32 k = 0; k < part->count; k++) {
		struct bucket *b = &d->bucket[part->bucket[k]];
		struct counters_ref *ref = &d->ref[b->ref];

		if (is_charged(b)) {
			b->claimed = true;
			if (b->shared && b->refs > 1 && ref[1].spec)
				claim_bucket_state(d, &ref[1], b->cost);
			if (!b->soft)
				b->full = !claim_bucket_state(d, ref, b->cost);
			else
				b->full = !claim_bucket_state(d, &ref[1], b->cost) ||
					  (b->refs > 2 && !claim_bucket_state(d, &ref[2], 1));
		}
		ok &= !b->full;
	}
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

static void put_log(struct decision *d, struct counters_ref *ref, u64 cost)
{
	u64 bucket_state = request_log_add(&d->counters->logs, ref->spec, ref->bucket_state,
					   d->then, cost, ref->chunk);

	ref->chunk = 0;
	counters_put(d->counters, ref, bucket_state);
}

static void charge_soft(struct decision *d, struct bucket *b)
{
	struct counters_ref *ref = &d->ref[b->ref];
	struct spec_view view;

	if (is_log(b)) {
		put_log(d, &ref[1], b->cost);
	} else {
		spec_view_init(&view, ref[1].spec, 0, 0);
		counters_put(d->counters, &ref[1],
			     spec_charge(&view, ref[1].bucket_state, d->now, b->cost).bucket_state);
	}
	if (b->refs < 3)
		return;
	spec_view_init(&view, ref[2].spec, 0, 0);
	counters_put(d->counters, &ref[2],
		     spec_charge(&view, ref[2].bucket_state, d->now, 1).bucket_state);
}

/* What has happened is charged, fit or not; a debt is at most one capacity. */
static void charge_report(struct decision *d, struct bucket *b)
{
	struct counters_ref *ref = &d->ref[b->ref];
	u64 most = 2 * (b->view.p.capacity + b->view.hold);
	u64 count = request_log_count(ref->bucket_state), cost = b->cost;

	if (!is_log(b)) {
		struct sl_now now = decision_now(d, b), then = d->then;

		then.utc_ns += now.utc_ns - d->now.utc_ns;
		counters_put(d->counters, ref,
			     spec_report(&b->view, ref->bucket_state, now, then, cost));
		return;
	}
	if (cost > most - (count < most ? count : most))
		cost = most - (count < most ? count : most);
	if (cost && d->then.mono_ns + b->view.p.window_ns > d->now.mono_ns)
		put_log(d, ref, cost);
}

static void refund(struct decision *d, struct bucket *b)
{
	struct counters_ref *ref = &d->ref[b->ref];

	if (!ref->present && !ref->claimed)
		return;
	if (is_log(b))
		counters_put(d->counters, ref,
			     request_log_remove(&d->counters->logs, ref->bucket_state, b->refund));
	else
		counters_put(
			d->counters, ref,
			spec_refund(&b->view, ref->bucket_state, decision_now(d, b), b->refund));
}

static void charge(struct decision *d, struct bucket *b)
{
	struct counters_ref *ref = &d->ref[b->ref];
	u64 before = ref->bucket_state;

	if (b->charged || b->none)
		return;
	b->charged = true;
	if (b->cost && !b->full) {
		if (d->request->report)
			charge_report(d, b);
		else if (b->soft)
			charge_soft(d, b);
		else if (is_log(b))
			put_log(d, ref, b->cost);
		else if (!b->retries)
			counters_put(d->counters, ref, b->took.bucket_state);
	}
	if (b->shared && d->request->report)
		decide_cluster_flush(d, b, b->full || ref->bucket_state != before);
	else if (b->shared && b->cost && !d->needs_store)
		decide_cluster_charge_own(d, b);
	if (b->refund && ref->spec)
		refund(d, b);
}

/* Chunks that were got for what is not charged after all. */
static void unclaim(struct decision *d)
{
	for (u32 i = 0; i < d->bucket_count; i++) {
		struct bucket *b = &d->bucket[i];

		for (u32 k = 0; b->claimed && k < b->refs; k++) {
			struct counters_ref *ref = &d->ref[b->ref + k];

			if (ref->spec && ref->spec->algo == HTTP_SLIDING_LOG && ref->chunk)
				request_chunk_put(&d->counters->logs, ref->chunk);
			ref->chunk = 0;
		}
	}
}

static enum response_code take(struct decision *d)
{
	enum response_code code = decide_refused(d) ? RESPONSE_OVER_LIMIT : RESPONSE_OK;

	if (code != RESPONSE_OK && !d->request->report)
		return code;
	if (!d->request->peek && !claim(d) && !d->request->report)
		code = RESPONSE_CLOSED;
	if (d->cluster_count && code == RESPONSE_OK)
		decide_cluster_acquire(d);
	if (d->request->peek)
		return code;
	for (u32 i = 0; i < d->part_count && code != RESPONSE_CLOSED; i++) {
		struct part *part = &d->part[i];

		for (u32 k = 0; charges(d, part) && k < part->count; k++)
			charge(d, &d->bucket[part->bucket[k]]);
	}
	unclaim(d);
	return code;
}

/* ------------------------------------------------------------------ waiting */

/* For the bucket that takes longest, and no longer than the least patient of the rules allows. */
void decide_find_delay(const struct decision *d, enum response_code code, struct decide_delay *wait)
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

/* ------------------------------------------------------------------ calls */

void decision_init(struct decision *d, const struct ledger *ledger, const struct request *request,
		   struct sl_now now)
{
	u64 ago = request->at_utc_ns && request->at_utc_ns < now.utc_ns ?
			  now.utc_ns - request->at_utc_ns : 0;

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
	d->needs_store = false;
	d->shared = NULL;
	d->refusal_cache = NULL;
}

bool decide_here(struct decision *d, const struct ruleset *rules, struct response *ret,
		 struct decide_delay *ret_wait)
{
	enum response_code code;

	decide_collect(d, rules);
	store_begin(d->counters, &d->locks, d->ref, d->ref_count);
	for (u32 i = 0; i < d->bucket_count; i++)
		decide_look(d, &d->bucket[i], ret_wait);
	code = take(d);
	if (!d->needs_store)
		decide_response(d, code, ret);
	counters_end(&d->locks);
	if (d->needs_store)
		return false;
	if (code == RESPONSE_CLOSED)
		ret->retry_after_ns = DECIDE_CLOSED_WAIT_NS;
	if (ret_wait)
		decide_find_delay(d, code, ret_wait);
	return true;
}

void decide(const struct ledger *ledger, const struct ruleset *rules, const struct request *request,
	    struct sl_now now, struct response *ret, struct decide_delay *ret_wait)
{
	struct decision d;

	decision_init(&d, ledger, request, now);
	decide_here(&d, rules, ret, ret_wait);
}
