// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * remote_settle.c - what becomes of a call's words when the store has answered, or has not.
 *
 *     lock all -> what was said -> the verdict, as decide_refused() has it -> each word -> unlock
 *
 * A bucket that passed there: its word is what the store says, and own is charged. One of a call
 * that is refused: what this node charged for it is taken back; what the store charged is marked
 * `back`. One that nobody answered for, and whose rule lets it through: owed, once it is known
 * that the store did not charge it, or that nobody will ever know; that may charge it twice, and
 * never lets more through than is due.
 */
#include "request/engine/remote_private.h"

/* ------------------------------------------------------------------ the store is away */

static bool is_log(const struct remote_bucket *b)
{
	return b->bucket_state->def.algo == HTTP_SLIDING_LOG;
}

/* Until this node's own requests fit into a share; they are in its log already, with this call's. */
static u64 own_log_wait(struct counters *counters, const struct remote_bucket *b, u32 permille,
			struct sl_now now)
{
	const struct counters_ref *ref = b->bucket_state;
	u64 count = request_log_count(ref->bucket_state), most, wait_ns;

	if (!ref->spec)
		return 0;
	most = (ref->spec->capacity - b->hold) * permille / 1000;
	most += !most;
	if (count <= most)
		return 0;
	if (b->cost > most)
		return ~0ULL;
	wait_ns =
		request_log_wait(&counters->logs, ref->spec, ref->bucket_state, now, count - most);
	return wait_ns ? wait_ns : 1;
}

/* By what this node has let through itself, of its share. A share that is none: by all it knows. */
static void judge_own(const struct ledger *ledger, struct remote_bucket *b, struct sl_now now)
{
	struct spec_view view;
	struct sl_result took;

	if (is_log(b)) {
		b->result->wait_ns = own_log_wait(
			ledger->counters, b, quota_permille(ledger->quotas, b->ref.key, now), now);
		b->over = b->result->wait_ns;
		return;
	}
	if (!b->own || !b->own->spec)
		return;
	spec_view_init(&view, b->own->spec, 0, b->hold_permille);
	took = spec_charge(&view, b->own->bucket_state, now, b->cost);
	b->over = took.verdict == SL_OVER;
	b->result->wait_ns = took.wait_ns;
}

/*
 * It was over by what is known here, and asked whether that is still so: nobody said no. Without this
 * an offender would get through an open door once a second for each worker that has yet to notice
 * that the store is away.
 */
static void judge_again(struct remote *remote, struct remote_bucket *b, struct sl_now now)
{
	struct refusal_cache *refusal_cache = ledger_of(remote)->refusal_cache;
	struct spec_view view;

	b->over = true;
	if (is_log(b)) {
		u64 own_ns = own_log_wait(ledger_of(remote)->counters, b, 1000, now);

		b->result->wait_ns =
			refusal_cache_wait(refusal_cache, b->ref.key, b->cost, now.mono_ns);
		if (b->result->wait_ns < own_ns)
			b->result->wait_ns = own_ns;
	} else if (b->bucket_state->spec) {
		spec_view_init(&view, b->bucket_state->spec, 0, b->hold_permille);
		b->result->wait_ns = spec_charge(&view, b->bucket_state->bucket_state,
						 remote_time(remote, b, now), b->cost)
					     .wait_ns;
	}
}

/* ------------------------------------------------------------------ the verdict */

static void judge(struct remote *remote, struct remote_bucket *b, struct sl_now now)
{
	struct refusal_cache *refusal_cache = ledger_of(remote)->refusal_cache;
	struct decide_result *result = b->result;

	if (b->cluster_request->state == REMOTE_DONE) {
		result->from_store = is_log(b);
		result->reply_used = b->requested->state.used;
		b->over = !b->cluster_request->cluster_request.passed && b->requested->over;
		result->wait_ns = b->requested->wait_ns;
		if (b->over && b->cost)
			refusal_cache_note(refusal_cache, b->ref.key, b->cost,
					   b->requested->wait_ns, now.mono_ns);
		else if (b->retries)
			refusal_cache_forget(refusal_cache, b->ref.key);
	} else if (b->cost && b->retries) {
		judge_again(remote, b, now);
	} else if (b->cost) {
		result->unavailable = true;
		b->failed = b->on_failure > STORE_FAILS_OPEN;
		if (b->on_failure == STORE_FAILS_LOCAL)
			judge_own(ledger_of(remote), b, remote_time(remote, b, now));
	}
	result->over |= b->over;
	if (!b->over)
		result->wait_ns = 0;
}

static enum response_code worse(enum response_code a, enum response_code b)
{
	return a == RESPONSE_ERROR || b == RESPONSE_ERROR ? RESPONSE_ERROR : a > b ? a : b;
}

static void judge_part(struct remote *remote, struct remote_part *part)
{
	for (u32 i = 0; i < part->count; i++) {
		const struct remote_bucket *b = &remote->bucket[part->bucket[i]];

		part->over |= b->over;
		if (b->failed)
			part->failed = worse(part->failed, b->on_failure == STORE_FAILS_ERROR
								   ? RESPONSE_ERROR
								   : RESPONSE_CLOSED);
	}
}

/* A refusal, else error, else closed, else what is let through. */
static enum response_code verdict(struct remote *remote)
{
	enum response_code failed = RESPONSE_OK, quota_failed = RESPONSE_OK;
	bool refused = false, quota = false, quota_fits = remote->quota_watched, quota_over = false;

	for (u32 i = 0; i < remote->part_count; i++) {
		struct remote_part *part = &remote->part[i];

		judge_part(remote, part);
		if (part->shadow)
			continue;
		if (part->quota) {
			quota = true;
			quota_over |= part->over;
			quota_fits |= !part->over && part->failed == RESPONSE_OK;
			quota_failed = worse(quota_failed, part->failed);
			continue;
		}
		refused |= part->over;
		failed = worse(failed, part->failed);
	}
	if (quota && !quota_fits) {
		refused |= quota_over;
		failed = worse(failed, quota_failed);
	}
	return refused ? RESPONSE_OVER_LIMIT : failed;
}

/* Whether one of its parts is let through, and so it is charged. */
static bool is_kept(const struct remote *remote, u32 bucket)
{
	for (u32 i = 0; i < remote->part_count; i++) {
		const struct remote_part *part = &remote->part[i];

		if (part->over || (part->quota && part->failed != RESPONSE_OK))
			continue;
		for (u32 k = 0; k < part->count; k++)
			if (part->bucket[k] == bucket)
				return true;
	}
	return false;
}

/* ------------------------------------------------------------------ words; they are locked */

/* What was charged here when the call was made is not any more. */
static void refund_late(struct remote *remote, struct remote_bucket *b, struct sl_now now)
{
	struct counters *counters = ledger_of(remote)->counters;
	struct counters_ref *ref = b->bucket_state;
	bool done = b->needs_store && b->cluster_request->state == REMOTE_DONE;
	struct spec_view view;

	if (!(ref->present || ref->claimed) || !ref->spec || !b->cost)
		return;
	if (is_log(b)) {
		counters_put(counters, ref,
			     request_log_remove(&counters->logs, ref->bucket_state, b->cost));
		return;
	}
	/* It did not fit, so it was not charged here; the store's own word has it. */
	if (b->retries && !done)
		return;
	spec_view_init(&view, ref->spec, 0, 0);
	counters_put(counters, ref, spec_uncommit(&view, ref->bucket_state, now,
						  remote_time(remote, b, remote->now), b->cost));
}

static void charge_own(struct counters *counters, struct remote_bucket *b, struct sl_now now)
{
	struct counters_ref *own = b->own;
	struct spec_view view;

	if (!own || !own->spec || !b->cost ||
	    (!own->present && !counters_claim(counters, own, now)))
		return;
	spec_view_init(&view, own->spec, 0, 0);
	counters_put(counters, own, spec_force(&view, own->bucket_state, now, b->cost));
}

static void keep(struct remote *remote, struct remote_bucket *b, struct sl_now now)
{
	struct counters *counters = ledger_of(remote)->counters;

	if (!b->shared || !b->cost)
		return;
	charge_own(counters, b, remote_time(remote, b, now));
	if (!b->needs_store)
		return;
	/* Where it was done and did not pass, another part of the call was refused with it. */
	b->unflushed = b->cluster_request->state != REMOTE_DONE ||
		       !b->cluster_request->cluster_request.passed;
	if (b->unflushed && b->cluster_request->state != REMOTE_LATE) {
		quota_add_unflushed(ledger_of(remote)->quotas, &b->ref, b->cost, now);
		b->unflushed = false;
	}
	/* What an open door lets through is not to close it. */
	if (b->cluster_request->state != REMOTE_DONE && b->on_failure != STORE_FAILS_LOCAL &&
	    !is_log(b))
		refund_late(remote, b, remote_time(remote, b, now));
}

static void refund(struct remote *remote, struct remote_bucket *b, struct sl_now now)
{
	b->back = b->needs_store && b->cost &&
		  (b->cluster_request->state == REMOTE_LATE ||
		   (b->cluster_request->state == REMOTE_DONE &&
		    b->cluster_request->cluster_request.passed));
	if (b->covered)
		quota_release(ledger_of(remote)->quotas, &b->ref, b->cost);
	/* The store's word of what it refused is without it. */
	if (b->needs_store && b->cluster_request->state == REMOTE_DONE &&
	    !b->cluster_request->cluster_request.passed && !is_log(b))
		return;
	refund_late(remote, b, remote_time(remote, b, now));
}

static void look(struct remote *remote, struct sl_now now)
{
	struct counters *counters = ledger_of(remote)->counters;

	for (u32 i = 0; i < remote->bucket_count; i++) {
		struct remote_bucket *b = &remote->bucket[i];

		counters_look(counters, b->bucket_state, remote_time(remote, b, now));
		if (b->own)
			counters_look(counters, b->own, remote_time(remote, b, now));
	}
}

/* Of this node's requests no more than there are in all: others were given back, or it was reset. */
static void trim_log(const struct ledger *ledger, struct remote_bucket *b)
{
	u64 count = request_log_count(b->bucket_state->bucket_state);
	u64 most = b->requested->state.used + quota_unflushed(ledger->quotas, b->ref.key);

	if (count > most)
		counters_put(ledger->counters, b->bucket_state,
			     request_log_remove(&ledger->counters->logs,
						b->bucket_state->bucket_state, count - most));
}

/* Whether the state is more than what Redis said: this node has charges that are not in that. */
static bool on_reply(struct remote *remote, struct remote_bucket *b, struct sl_now now)
{
	struct counters *counters = ledger_of(remote)->counters;
	struct quotas *quotas = ledger_of(remote)->quotas;
	bool done = b->cluster_request->state == REMOTE_DONE, old;
	u64 before, unflushed;

	if (b->cluster_request->state == REMOTE_LATE)
		return false;
	old = done &&
	      quota_is_stale(quotas, b->ref.key, b->cluster_request->cluster_request.now_us);
	before = quota_unflushed(quotas, b->ref.key);
	quota_complete(quotas, &b->ref, b->requested, &b->cluster_request->cluster_request,
		       done ? CLUSTER_STORE_DONE : CLUSTER_STORE_DOWN, now);
	unflushed = quota_unflushed(quotas, b->ref.key);
	if (old)
		quota_discount(counters, b->bucket_state, before, unflushed,
			       remote_time(remote, b, now));
	else if (done)
		quota_adopt(counters, b->bucket_state, &b->requested->state, unflushed,
			    remote_time(remote, b, now));
	if (done && is_log(b) && b->retries && b->cluster_request->cluster_request.passed)
		trim_log(ledger_of(remote), b);
	return old || unflushed;
}

/*
 * It was over by what is known here, and Redis had room. Something was refunded elsewhere, or Redis has
 * forgotten: then what this node restores is in the state by now, and the request does not fit beside it.
 */
static void judge_retried(struct remote *remote, struct remote_bucket *b, struct sl_now now)
{
	const struct ledger *ledger = ledger_of(remote);
	struct spec_view view;
	struct sl_result took;
	u64 used;

	if (!b->retries || !b->cost || b->over || b->cluster_request->state != REMOTE_DONE ||
	    !b->bucket_state->spec)
		return;
	if (is_log(b)) {
		used = b->requested->state.used + quota_unflushed(ledger->quotas, b->ref.key);
		b->over = used + b->hold > b->bucket_state->spec->capacity;
		b->result->wait_ns = own_log_wait(ledger->counters, b, 1000, now);
		if (!b->result->wait_ns)
			b->result->wait_ns = SL_NS_PER_SEC;
	} else {
		/* A bucket's state begins when the reply came: it is as old as the command. */
		now = remote_time(remote, b, now);
		now.mono_ns += now.mono_ns - b->requested->sent_ns;
		spec_view_init(&view, b->bucket_state->spec, 0, b->hold_permille);
		took = spec_charge(&view, spec_refund(&view, b->bucket_state->bucket_state, now, b->cost), now, b->cost);
		b->over = took.verdict == SL_OVER;
		b->result->wait_ns = took.wait_ns;
	}
	if (!b->over) {
		b->result->wait_ns = 0;
		return;
	}
	b->result->over = true;
	refusal_cache_note(ledger->refusal_cache, b->ref.key, b->cost,
			   b->result->wait_ns, remote->now.mono_ns);
}

enum response_code remote_settle(struct remote *remote, struct sl_now now)
{
	struct counters *counters = ledger_of(remote)->counters;
	struct counters_locks locks;
	enum response_code code;

	store_begin(counters, &locks, remote->bucket_state, remote->state_count);
	look(remote, now);
	for (u32 i = 0; i < remote->bucket_count; i++) {
		struct remote_bucket *b = &remote->bucket[i];

		if (!b->needs_store)
			continue;
		judge(remote, b, now);
		if (on_reply(remote, b, now))
			judge_retried(remote, b, now);
	}
	code = verdict(remote);
	remote->through = code == RESPONSE_OK && remote->request && !remote->peek;
	for (u32 i = 0; i < remote->bucket_count && !remote->peek; i++) {
		if (remote->through && is_kept(remote, i))
			keep(remote, &remote->bucket[i], now);
		else
			refund(remote, &remote->bucket[i], now);
	}
	counters_end(&locks);
	/* What is late comes back marked by remote_settle_late(), when it is known. */
	remote->settled = true;
	return code;
}

/* ------------------------------------------------------------------ one by one */

void remote_settle_late(struct remote *remote, struct remote_request *cluster_request,
			enum cluster_store_outcome outcome, struct sl_now now)
{
	const struct ledger *ledger = ledger_of(remote);
	bool charged = outcome == CLUSTER_STORE_DONE && cluster_request->cluster_request.passed;

	for (u32 i = 0; i < remote->bucket_count; i++) {
		struct remote_bucket *b = &remote->bucket[i];

		if (b->cluster_request != cluster_request)
			continue;
		quota_reply(ledger->counters, ledger->quotas, &b->ref, b->requested,
			    &cluster_request->cluster_request, outcome, now);
		b->back &= charged;
		if (b->unflushed && !charged)
			quota_add_unflushed(ledger->quotas, &b->ref, b->cost, now);
		b->unflushed = false;
	}
}
