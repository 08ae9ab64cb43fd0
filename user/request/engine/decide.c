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
	bool over = b->told_used + cost > capacity;

	return (struct sl_result){
		.verdict = over ? SL_OVER : SL_PASS,
		.wait_ns = !over ? 0 : cost > capacity ? ~0ULL : b->view.p.window_ns,
	};
}

static struct sl_result take_log(struct decision *d, struct bucket *b,
				 const struct store_ref *ref, u64 cost)
{
	struct sl_result res = { .word = ref->word };
	u64 capacity = b->view.p.capacity, count = request_log_count(ref->word);

	if (!cost)
		capacity += b->view.hold;
	if (b->told && b->told_used > count)
		return take_told(b, cost, capacity);
	if (count + cost <= capacity)
		return res;
	res.verdict = SL_OVER;
	res.wait_ns = ~0ULL;
	if (cost <= capacity)
		res.wait_ns = request_log_wait(&d->store->logs, b->view.spec, ref->word, d->now,
					       count + cost - capacity);
	return res;
}

/* As spec.h's, for all algorithms. */
static struct sl_result bucket_take(struct decision *d, struct bucket *b,
				    const struct store_ref *ref, u64 cost)
{
	if (is_log(b))
		return take_log(d, b, ref, cost);
	return spec_take(&b->view, ref->word, decision_now(d, b), cost);
}

u64 bucket_remaining(const struct decision *d, const struct bucket *b)
{
	const struct store_ref *ref = &d->ref[b->ref];
	u64 count = request_log_count(ref->word);

	if (!is_log(b))
		return spec_remaining(&b->view, ref->word, decision_now(d, b));
	if (b->told && b->told_used > count)
		count = b->told_used;
	return b->view.p.capacity > count ? b->view.p.capacity - count : 0;
}

u64 bucket_reset_ns(const struct decision *d, const struct bucket *b)
{
	const struct store_ref *ref = &d->ref[b->ref];

	if (!is_log(b))
		return spec_reset_ns(&b->view, ref->word, decision_now(d, b));
	return request_log_reset(&d->store->logs, b->view.spec, ref->word, d->now);
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
	struct store_ref *ref = &d->ref[b->ref];
	struct bucket soft = { .cost = b->cost };

	if (b->words < 2 || !ref[1].spec || !b->cost)
		return false;
	spec_view_init(&soft.view, ref[1].spec, 0, 0);
	if (bucket_take(d, &soft, &ref[1], b->cost).verdict == SL_OVER)
		return false;
	if (b->words < 3)
		return true;
	if (!ref[2].spec)
		return false;
	spec_view_init(&soft.view, ref[2].spec, 0, 0);
	return spec_take(&soft.view, ref[2].word, d->now, 1).verdict == SL_PASS;
}

/* How long until `cost` fits behind `ahead` others, each of whom takes his own. */
static u64 wait_behind(struct decision *d, struct bucket *b, const struct store_ref *ref)
{
	const struct sl_params *p = &b->view.p;
	u64 behind = b->ahead + b->cost, windows, first;

	if (b->cost > p->capacity)
		return ~0ULL;
	if (behind <= p->capacity)
		return bucket_take(d, b, ref, behind).wait_ns;
	if (b->view.spec->algo <= HTTP_LEAKY_BUCKET) {
		u64 most = bucket_take(d, b, ref, p->capacity).wait_ns;

		/* Beyond a whole bucket each takes its interval. */
		return most + (behind - p->capacity) * p->mult / SL_TICKS_PER_NS;
	}
	windows = (behind - 1) / p->capacity;
	first = bucket_take(d, b, ref, behind - windows * p->capacity).wait_ns;
	return first + windows * p->window_ns;
}

void decide_look(struct decision *d, struct bucket *b, struct decide_wait *wait)
{
	struct store_ref *ref = &d->ref[b->ref];
	bool shadow = b->rule && b->rule->shadow;

	for (u32 i = 0; i < b->words; i++)
		store_look(d->store, &ref[i], decision_now(d, b));
	b->full = !ref->spec;
	if (b->full)
		return;
	spec_view_init(&b->view, ref->spec, elastic_of(d, b->limit),
		       shadow ? 0 : hold_permille(d, b->rule));
	if (b->none) {
		b->over = true;
		b->wait_ns = ~0ULL;
		return;
	}
	if (b->decided)
		return;
	if (wait && wait->ahead && b->cost && b->rule && b->rule->wait_ns && !shadow)
		b->ahead = wait->ahead(wait->arg, ref->key);
	b->took = bucket_take(d, b, ref, b->cost);
	b->wait_ns = b->took.wait_ns;
	b->over = b->took.verdict == SL_OVER || b->ahead;
	if (b->ahead)
		b->wait_ns = wait_behind(d, b, ref);
	else if (b->shared)
		shared_look(d, b);
	else if (b->over)
		b->soft = fits_softly(d, b);
	if (b->soft)
		b->over = false;
}

/* ------------------------------------------------------------------ the verdict */

/* Shadow parts never refuse; of parts with quota_mode one has to fit. */
bool decide_refused(struct decision *d)
{
	bool quota = false, quota_fits = false, refuses = false;

	for (u32 i = 0; i < d->part_count; i++) {
		struct part *part = &d->part[i];

		for (u32 k = 0; k < part->count; k++)
			part->over |= d->bucket[part->bucket[k]].over;
		if (part->shadow)
			continue;
		if (part->quota) {
			quota = true;
			quota_fits |= !part->over;
		} else {
			refuses |= part->over;
		}
	}
	return refuses || (quota && !quota_fits);
}

static bool charges(const struct decision *d, const struct part *part)
{
	return d->call->report || !part->over;
}

/* ------------------------------------------------------------------ charging */

static bool claim_word(struct decision *d, struct store_ref *ref, u64 cost)
{
	ref->chunk = 0;
	if (!ref->present && !ref->claimed && !store_claim(d->store, ref, d->now))
		return false;
	if (ref->spec->algo != HTTP_SLIDING_LOG ||
	    !request_log_needs(&d->store->logs, ref->word, cost))
		return true;
	ref->chunk = request_chunk_get(&d->store->logs);
	if (!ref->chunk && store_shed_log(d->store, d->now))
		ref->chunk = request_chunk_get(&d->store->logs);
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
		struct store_ref *ref = &d->ref[b->ref];

		if (is_charged(b)) {
			b->claimed = true;
			if (b->shared && b->words > 1 && ref[1].spec)
				claim_word(d, &ref[1], b->cost);
			if (!b->soft)
				b->full = !claim_word(d, ref, b->cost);
			else
				b->full = !claim_word(d, &ref[1], b->cost) ||
					  (b->words > 2 && !claim_word(d, &ref[2], 1));
		}
		ok &= !b->full;
	}
	return ok || !d->store->full_closed || part->shadow;
}

static bool claim(struct decision *d)
{
	bool ok = true;

	for (u32 i = 0; i < d->part_count; i++)
		if (charges(d, &d->part[i]))
			ok &= claim_part(d, &d->part[i]);
	return ok;
}

static void put_log(struct decision *d, struct store_ref *ref, u64 cost)
{
	u64 word = request_log_add(&d->store->logs, ref->spec, ref->word, d->then, cost,
				   ref->chunk);

	ref->chunk = 0;
	store_put(d->store, ref, word);
}

static void charge_soft(struct decision *d, struct bucket *b)
{
	struct store_ref *ref = &d->ref[b->ref];
	struct spec_view view;

	if (is_log(b)) {
		put_log(d, &ref[1], b->cost);
	} else {
		spec_view_init(&view, ref[1].spec, 0, 0);
		store_put(d->store, &ref[1],
			  spec_take(&view, ref[1].word, d->now, b->cost).word);
	}
	if (b->words < 3)
		return;
	spec_view_init(&view, ref[2].spec, 0, 0);
	store_put(d->store, &ref[2], spec_take(&view, ref[2].word, d->now, 1).word);
}

/* What has happened is charged, fit or not; a debt is at most one capacity. */
static void charge_report(struct decision *d, struct bucket *b)
{
	struct store_ref *ref = &d->ref[b->ref];
	u64 most = 2 * (b->view.p.capacity + b->view.hold);
	u64 count = request_log_count(ref->word), cost = b->cost;

	if (!is_log(b)) {
		struct sl_now now = decision_now(d, b), then = d->then;

		then.utc_ns += now.utc_ns - d->now.utc_ns;
		store_put(d->store, ref, spec_report(&b->view, ref->word, now, then, cost));
		return;
	}
	if (cost > most - (count < most ? count : most))
		cost = most - (count < most ? count : most);
	if (cost && d->then.mono_ns + b->view.p.window_ns > d->now.mono_ns)
		put_log(d, ref, cost);
}

static void give_back(struct decision *d, struct bucket *b)
{
	struct store_ref *ref = &d->ref[b->ref];

	if (!ref->present && !ref->claimed)
		return;
	if (is_log(b))
		store_put(d->store, ref,
			  request_log_remove(&d->store->logs, ref->word, b->refund));
	else
		store_put(d->store, ref,
			  spec_refund(&b->view, ref->word, decision_now(d, b), b->refund));
}

static void charge(struct decision *d, struct bucket *b)
{
	struct store_ref *ref = &d->ref[b->ref];
	u64 before = ref->word;

	if (b->charged || b->none)
		return;
	b->charged = true;
	if (b->cost && !b->full) {
		if (d->call->report)
			charge_report(d, b);
		else if (b->soft)
			charge_soft(d, b);
		else if (is_log(b))
			put_log(d, ref, b->cost);
		else if (!b->retries)
			store_put(d->store, ref, b->took.word);
	}
	if (b->shared && d->call->report)
		shared_owe(d, b, b->full || ref->word != before);
	else if (b->shared && b->cost && !d->asks)
		shared_charge_own(d, b);
	if (b->refund && ref->spec)
		give_back(d, b);
}

/* Chunks that were got for what is not charged after all. */
static void unclaim(struct decision *d)
{
	for (u32 i = 0; i < d->bucket_count; i++) {
		struct bucket *b = &d->bucket[i];

		for (u32 k = 0; b->claimed && k < b->words; k++) {
			struct store_ref *ref = &d->ref[b->ref + k];

			if (ref->spec && ref->spec->algo == HTTP_SLIDING_LOG && ref->chunk)
				request_chunk_put(&d->store->logs, ref->chunk);
			ref->chunk = 0;
		}
	}
}

static enum call_code take(struct decision *d)
{
	enum call_code code = decide_refused(d) ? CALL_OVER_LIMIT : CALL_OK;

	if (code != CALL_OK && !d->call->report)
		return code;
	if (!d->call->peek && !claim(d) && !d->call->report)
		code = CALL_CLOSED;
	if (d->shared_count && code == CALL_OK)
		shared_take(d);
	if (d->call->peek)
		return code;
	for (u32 i = 0; i < d->part_count && code != CALL_CLOSED; i++) {
		struct part *part = &d->part[i];

		for (u32 k = 0; charges(d, part) && k < part->count; k++)
			charge(d, &d->bucket[part->bucket[k]]);
	}
	unclaim(d);
	return code;
}

/* ------------------------------------------------------------------ waiting */

/* For the bucket that takes longest, and no longer than the least patient of the rules allows. */
void decide_find_wait(const struct decision *d, enum call_code code, struct decide_wait *wait)
{
	wait->key = 0;
	wait->limit_ns = ~0ULL;
	wait->wait_ns = 0;
	for (u32 i = 0; code == CALL_OVER_LIMIT && i < d->part_count; i++) {
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

void decision_init(struct decision *d, struct store *store, const struct call *call,
		   struct sl_now now)
{
	u64 ago = call->at_utc_ns && call->at_utc_ns < now.utc_ns ?
			  now.utc_ns - call->at_utc_ns : 0;

	d->store = store;
	d->call = call;
	d->now = d->then = now;
	if (call->report) {
		d->then.utc_ns -= ago;
		d->then.mono_ns -= ago < now.mono_ns ? ago : now.mono_ns;
	}
	d->bucket_count = d->ref_count = d->shared_count = 0;
	d->asks = false;
	d->shared = NULL;
	d->recall = NULL;
	d->shared_utc_ns = 0;
	if (store->shares)
		d->shared_utc_ns = shares_clock_offset_ns(store->shares);
}

bool decide_here(struct decision *d, const struct ruleset *rules, struct answer *ret,
		 struct decide_wait *ret_wait)
{
	enum call_code code;

	decide_collect(d, rules);
	store_begin(d->store, &d->locks, d->ref, d->ref_count);
	for (u32 i = 0; i < d->bucket_count; i++)
		decide_look(d, &d->bucket[i], ret_wait);
	code = take(d);
	if (!d->asks)
		decide_answer(d, code, ret);
	store_end(&d->locks);
	if (d->asks)
		return false;
	if (code == CALL_CLOSED)
		ret->retry_after_ns = DECIDE_CLOSED_WAIT_NS;
	if (ret_wait)
		decide_find_wait(d, code, ret_wait);
	return true;
}

void decide(struct store *store, const struct ruleset *rules, const struct call *call,
	    struct sl_now now, struct answer *ret, struct decide_wait *ret_wait)
{
	struct decision d;

	decision_init(&d, store, call, now);
	decide_here(&d, rules, ret, ret_wait);
}
