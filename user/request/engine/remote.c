// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * remote.c - see remote.h: requests that ask Redis, from decision to response.
 *
 *     decision -> struct remote -> commands -> replies, or the deadline -> settle -> response
 *
 * A remote contains all that it needs of a request, because the request may be gone before the last
 * reply is here. Bucket states are looked up again by their keys whenever they are locked.
 *
 * To settle:
 *
 *     lock all -> apply replies -> the verdict, as decide_refused() has it -> each state -> unlock
 *
 * A bucket that passed in Redis gets the state of the reply, and own is charged. In a refused
 * request, what this node charged is refunded here, and what Redis charged is marked `back`. A
 * bucket without a reply whose rule admits the request stays unflushed until it is known that Redis
 * did not charge it, or that this will never be known. It may then be charged twice, and never
 * admits more than is due.
 *
 * over 500 lines: all that happens to one struct remote, and nothing outside needs its fields.
 */
#include "request/engine/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "request/engine/decide_private.h"

/* One that was charged here, or is asked for. */
struct remote_bucket {
	struct quota_ref ref;		/* shared; its def is word->def */
	struct counters_ref *bucket_state, *own;	/* own NULL: none */
	struct cluster_store_bucket *requested;	/* NULL: it is not asked for */
	struct remote_request *cluster_request;
	struct decide_result *result;
	u64 cost, hold;
	u32 hold_permille, group;
	enum store_failure on_failure;
	bool shared, needs_store, covered, retries;
	bool over, failed;		/* failed: nobody answered, and the rule refuses that */
	bool unflushed;			/* let through without the store's word */
	bool back;			/* to be given back there */
};

struct remote_part {
	bool shadow, quota;
	bool over;
	enum response_code failed;		/* RESPONSE_OK, RESPONSE_CLOSED, RESPONSE_ERROR */
	u32 count;
	u16 bucket[RULE_LIMITS_MAX * RULE_PREFIXES_MAX];	/* of the remote's */
};

enum remote_request_state { REMOTE_SENT, REMOTE_DONE, REMOTE_LATE, REMOTE_DOWN };

/* Buckets of one place that go all or none: those of enforced parts, or of one other part. */
struct remote_request {
	struct cluster_store_request cluster_request; /* first: all that the store hands back */
	struct remote *remote;
	u32 place, group;
	enum remote_request_state state;
};

struct remote {
	struct engine_thread *thread;
	struct cluster_store *shared;	/* the way to the store; NULL: none, or too many ask */
	const struct request *request;	/* NULL: nobody waits for the answer */
	remote_done_fn done;
	void *arg;
	struct sl_now now;		/* when it was charged here */
	bool peek;			/* charges nothing */
	bool settled;
	bool through;			/* ... and was let through */
	bool quota_watched;		/* a part with quota_mode only watches: it has quota left */
	u32 open;			/* asks that nobody answered yet, not even with LATE */
	u32 left;			/* ... and those whose answer is late */
	u32 bucket_count, request_count, part_count, result_count;
	struct remote_bucket *bucket;
	struct remote_request *cluster_request;
	struct cluster_store_bucket *requested;
	struct remote_part *part;
	struct decide_result *result;
	struct counters_ref *bucket_state;		/* all of them, to lock them by */
	u32 state_count;
};

static inline const struct ledger *ledger_of(const struct remote *remote)
{
	return &remote->thread->engine->ledger;
}

/* The time for its windows. */
static inline struct sl_now remote_time(const struct remote *remote, const struct remote_bucket *b,
					struct sl_now now)
{
	return b->shared ? counters_shared_now(ledger_of(remote)->counters, now) : now;
}

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

static void count_asking(struct remote *remote, s64 n)
{
	__atomic_add_fetch(&remote->thread->engine->asking, n, __ATOMIC_RELAXED);
}

static u64 deadline_ns(const struct remote *remote)
{
	return remote->thread->engine->store_deadline_ns;
}

/* ------------------------------------------------------------------ made from a decision */

/* Whose the bucket is: 0 of an enforced part, else of its first part. */
static u32 group_of(const struct decision *d, u32 bucket)
{
	u32 group = 0;

	for (u32 i = d->part_count; i--;) {
		const struct part *part = &d->part[i];

		for (u32 k = 0; !part->over && k < part->count; k++) {
			if (part->bucket[k] != bucket)
				continue;
			if (!part->shadow && !part->quota)
				return 0;
			group = 1 + i;
		}
	}
	return group;
}

static struct remote *remote_alloc(u32 buckets, u32 parts, u32 results)
{
	struct remote *remote;
	size_t size = sizeof(*remote) + parts * sizeof(*remote->part) +
		      results * sizeof(*remote->result) +
		      buckets * (sizeof(*remote->bucket) + sizeof(*remote->cluster_request) +
				 sizeof(*remote->requested) + 2 * sizeof(*remote->bucket_state));

	remote = calloc(1, size);
	if (!remote)
		return NULL;
	remote->bucket = (void *)(remote + 1);
	remote->cluster_request = (void *)(remote->bucket + buckets);
	remote->requested = (void *)(remote->cluster_request + buckets);
	remote->bucket_state = (void *)(remote->requested + buckets);
	remote->result = (void *)(remote->bucket_state + 2 * buckets);
	/* The last: it alone is no whole number of words. */
	remote->part = (void *)(remote->result + results);
	return remote;
}

static void fill_bucket(struct remote *remote, const struct decision *d, u32 number)
{
	struct remote_bucket *to = &remote->bucket[remote->bucket_count++];
	const struct bucket *b = &d->bucket[number];

	to->result = &remote->result[number];
	to->cost = remote->peek ? 0 : b->cost;
	to->hold = b->view.hold;
	if (to->hold)
		to->hold_permille = to->hold * 1000 / (to->hold + b->view.p.capacity);
	to->group = group_of(d, number);
	to->bucket_state = &remote->bucket_state[remote->state_count++];
	*to->bucket_state = d->ref[b->ref + b->soft];
	if (!b->shared)
		return;
	to->shared = true;
	to->needs_store = b->needs_store;
	to->covered = b->covered;
	to->retries = b->retries;
	to->on_failure = b->rule->on_store_failure;
	to->ref = decide_cluster_ref(d, b);
	to->ref.def = &to->bucket_state->def;
	if (b->refs < 2)
		return;
	to->own = &remote->bucket_state[remote->state_count++];
	*to->own = d->ref[b->ref + 1];
}

static void fill_parts(struct remote *remote, const struct decision *d, const u16 *number)
{
	for (u32 i = 0; i < d->part_count; i++) {
		const struct part *from = &d->part[i];
		struct remote_part *to;

		remote->quota_watched |= from->quota && from->shadow;
		if (from->over)
			continue;
		to = &remote->part[remote->part_count++];
		to->shadow = from->shadow;
		to->quota = from->quota;
		for (u32 k = 0; k < from->count; k++)
			if (number[from->bucket[k]])
				to->bucket[to->count++] = number[from->bucket[k]] - 1;
	}
}

static void fill_results(struct remote *remote, const struct decision *d)
{
	for (u32 i = 0; i < d->bucket_count; i++) {
		const struct bucket *b = &d->bucket[i];

		remote->result[remote->result_count++] = (struct decide_result){
			.key = d->ref[b->ref].key,
			.over = b->over,
			.wait_ns = b->wait_ns,
			.soft = b->soft,
			.full = b->full,
			.from_store = b->from_store,
			.reply_used = b->reply_used,
		};
	}
}

/* Each bucket joins the ask of its place and group. */
static void group_requests(struct remote *remote)
{
	struct cluster_store *shared = remote->shared;

	for (u32 i = 0; i < remote->bucket_count; i++) {
		struct remote_bucket *b = &remote->bucket[i];
		u32 place = 0, at = 0;

		if (!b->needs_store)
			continue;
		if (shared)
			place = shared->ops->slot_of(shared, b->ref.tag);
		while (at < remote->request_count &&
		       (remote->cluster_request[at].place != place ||
			remote->cluster_request[at].group != b->group ||
			remote->cluster_request[at].cluster_request.count ==
				CLUSTER_STORE_BUCKETS_MAX))
			at++;
		b->cluster_request = &remote->cluster_request[at];
		if (at == remote->request_count)
			remote->cluster_request[remote->request_count++] = (struct remote_request){
				.remote = remote, .place = place, .group = b->group,
			};
		b->cluster_request->cluster_request.count++;
	}
}

/* What is asked for together stands together. */
static void fill_requested(struct remote *remote)
{
	struct cluster_store_bucket *next = remote->requested;

	for (u32 i = 0; i < remote->request_count; i++) {
		remote->cluster_request[i].cluster_request.bucket = next;
		for (u32 k = 0; k < remote->bucket_count; k++) {
			struct remote_bucket *b = &remote->bucket[k];

			if (b->cluster_request != &remote->cluster_request[i])
				continue;
			b->requested = next++;
			*b->requested = (struct cluster_store_bucket){
				.key = b->ref.key,
				.tag = b->ref.tag,
				.def = b->bucket_state->def,
				.kind = CLUSTER_STORE_CHARGE,
				.cost = b->cost,
				.hold = b->hold,
			};
		}
	}
}

/* NULL: no memory. */
static struct remote *make(struct engine_thread *thread, const struct decision *d)
{
	u16 number[DECIDE_BUCKETS_MAX];		/* 1 + its place in the remote; 0 none */
	struct remote *remote;
	u32 count = 0;

	for (u32 i = 0; i < d->bucket_count; i++) {
		const struct bucket *b = &d->bucket[i];
		bool charged = b->charged && b->cost && !b->full;

		number[i] = charged || b->needs_store || b->covered ? ++count : 0;
	}
	remote = remote_alloc(count, d->part_count, d->bucket_count);
	if (!remote)
		return NULL;
	remote->thread = thread;
	remote->shared = d->shared;
	remote->request = d->request;
	remote->now = d->now;
	remote->peek = d->request->peek;
	fill_results(remote, d);
	for (u32 i = 0; i < d->bucket_count; i++)
		if (number[i])
			fill_bucket(remote, d, i);
	fill_parts(remote, d, number);
	group_requests(remote);
	fill_requested(remote);
	return remote;
}

/* ------------------------------------------------------------------ given back */

/* What was charged at one place; the call it was of may be answered and gone. */
struct refund_request {
	struct cluster_store_request cluster_request;		/* first */
	const struct ledger *ledger;
	struct quota_ref ref[];		/* as many as it has buckets, which stand behind them */
};

static void given(struct cluster_store_request *cluster_request, enum cluster_store_outcome outcome)
{
	struct refund_request *refund_request = (struct refund_request *)cluster_request;
	const struct ledger *ledger = refund_request->ledger;
	struct sl_now now = counters_now(ledger->counters);

	if (outcome == CLUSTER_STORE_LATE)
		return;
	for (u32 i = 0; i < cluster_request->count; i++)
		quota_reply(ledger->counters, ledger->quotas, &refund_request->ref[i],
			    &cluster_request->bucket[i], cluster_request, outcome, now);
	free(refund_request);
}

/* Sends it; without a way, or memory, the cluster's thread is to. */
static void refund_remote(struct remote *remote, const struct remote_request *cluster_request,
			  struct sl_now now)
{
	struct cluster_store *shared = remote->shared;
	const struct ledger *ledger = ledger_of(remote);
	struct quotas *quotas = ledger->quotas;
	u32 most = cluster_request->cluster_request.count, count = 0;
	struct refund_request *refund_request =
		calloc(1, sizeof(*refund_request) + most * (sizeof(struct quota_ref) +
							    sizeof(struct cluster_store_bucket)));

	for (u32 i = 0; i < remote->bucket_count; i++) {
		struct remote_bucket *b = &remote->bucket[i];
		struct cluster_store_bucket *to;

		if (b->cluster_request != cluster_request || !b->back)
			continue;
		b->back = false;
		if (!refund_request) {
			quota_add_unflushed(quotas, &b->ref, -(s64)b->cost, now);
			continue;
		}
		to = (struct cluster_store_bucket *)&refund_request->ref[most] + count;
		*to = (struct cluster_store_bucket){
			.key = b->ref.key,
			.tag = b->ref.tag,
			.def = b->bucket_state->def,
			.kind = CLUSTER_STORE_REFUND,
			.cost = b->cost,
			.window = b->requested->state.window,
		};
		refund_request->ref[count] = b->ref;
		refund_request->ref[count++].def = &to->def;
		quota_prepare(quotas, &b->ref, to, now);
	}
	if (!count) {
		free(refund_request);
		return;
	}
	refund_request->ledger = ledger;
	refund_request->cluster_request = (struct cluster_store_request){
		.bucket = (struct cluster_store_bucket *)&refund_request->ref[most],
		.count = count,
		.deadline_ns = deadline_ns(remote),
		.done = given,
		.late = given,
	};
	if (shared->ops->send(shared, &refund_request->cluster_request) >= 0)
		return;
	for (u32 i = 0; i < count; i++) {
		struct quota_ref *ref = &refund_request->ref[i];

		quota_reply(ledger->counters, quotas, ref,
			    &refund_request->cluster_request.bucket[i],
			    &refund_request->cluster_request, CLUSTER_STORE_DOWN, now);
		quota_add_unflushed(quotas, ref,
				    -(s64)refund_request->cluster_request.bucket[i].cost, now);
	}
	free(refund_request);
}

/* ------------------------------------------------------------------ asked and answered */

/* The verdict is known and words are as they are to be: what is not, is given back there. */
static enum response_code settle(struct remote *remote)
{
	struct sl_now now = counters_now(ledger_of(remote)->counters);
	enum response_code code = remote_settle(remote, now);

	for (u32 i = 0; i < remote->request_count; i++)
		if (remote->cluster_request[i].state == REMOTE_DONE)
			refund_remote(remote, &remote->cluster_request[i], now);
	return code;
}

static void response(struct remote *remote, const struct ruleset *rules, enum response_code code,
		     struct response *ret, struct decide_delay *ret_wait)
{
	const struct ledger *ledger = ledger_of(remote);
	struct decision *d =
		decision_begin(ledger, remote->request, counters_now(ledger->counters));

	decide_again(d, rules, remote->result, remote->result_count, code, ret, ret_wait);
}

static void forget(struct remote *remote)
{
	if (remote->left || !remote->settled)
		return;
	count_asking(remote, -1);
	free(remote);
}

static void settle_and_respond(struct remote *remote)
{
	enum response_code code = settle(remote);
	struct decide_delay wait = { .ahead = NULL };
	struct response ret;

	if (remote->request) {
		struct engine *engine = remote->thread->engine;
		const struct ruleset *rules = engine_rules_enter(engine);

		response(remote, rules, code, &ret, &wait);
		remote->request = NULL;
		remote->done(remote->arg, &ret, &wait);
		engine_rules_leave(engine);
	}
	forget(remote);
}

static void on_done(struct cluster_store_request *of, enum cluster_store_outcome outcome)
{
	struct remote_request *cluster_request = (struct remote_request *)of;
	struct remote *remote = cluster_request->remote;

	cluster_request->state = outcome == CLUSTER_STORE_DONE ? REMOTE_DONE :
		     outcome == CLUSTER_STORE_LATE ? REMOTE_LATE : REMOTE_DOWN;
	remote->left -= outcome != CLUSTER_STORE_LATE;
	if (!--remote->open)
		settle_and_respond(remote);
}

static void on_late(struct cluster_store_request *of, enum cluster_store_outcome outcome)
{
	struct remote_request *cluster_request = (struct remote_request *)of;
	struct remote *remote = cluster_request->remote;
	struct sl_now now = counters_now(ledger_of(remote)->counters);

	remote->left--;
	/* Others are out yet: it is not too late for this one. */
	if (!remote->settled) {
		cluster_request->state = outcome == CLUSTER_STORE_DONE ? REMOTE_DONE : REMOTE_DOWN;
		return;
	}
	remote_settle_late(remote, cluster_request, outcome, now);
	refund_remote(remote, cluster_request, now);
	forget(remote);
}

static void send_requests(struct remote *remote)
{
	struct cluster_store *shared = remote->shared;

	for (u32 i = 0; i < remote->bucket_count; i++) {
		struct remote_bucket *b = &remote->bucket[i];

		if (b->needs_store)
			quota_prepare(ledger_of(remote)->quotas, &b->ref, b->requested,
				      remote->now);
	}
	for (u32 i = 0; i < remote->request_count; i++) {
		struct remote_request *cluster_request = &remote->cluster_request[i];

		cluster_request->cluster_request.deadline_ns = deadline_ns(remote);
		cluster_request->cluster_request.done = on_done;
		cluster_request->cluster_request.late = on_late;
		cluster_request->state = REMOTE_DOWN;
		if (!shared || !shared->ops->up(shared, cluster_request->place) ||
		    shared->ops->send(shared, &cluster_request->cluster_request) < 0)
			continue;
		cluster_request->state = REMOTE_SENT;
		remote->open++;
		remote->left++;
	}
}

/* ------------------------------------------------------------------ calls */

/* There is no memory to ask: what was charged here stays so, and the call is an error. */
static void no_memory(const struct decision *d, struct response *ret, struct decide_delay *ret_wait)
{
	*ret = (struct response){ .code = RESPONSE_ERROR, .count = d->part_count,
				.retry_after_ns = DECIDE_CLOSED_WAIT_NS };
	for (u32 i = 0; i < d->part_count; i++)
		ret->status[i].rule = d->part[i].rule;
	if (ret_wait)
		ret_wait->key = 0;
}

struct remote *remote_new(struct engine_thread *thread, const struct decision *d,
			  struct response *ret, struct decide_delay *ret_wait)
{
	struct remote *remote = make(thread, d);

	if (!remote)
		no_memory(d, ret, ret_wait);
	return remote;
}

struct remote *remote_send(struct remote *remote, const struct ruleset *rules,
			   struct response *ret, struct decide_delay *ret_wait)
{
	enum response_code code;

	count_asking(remote, 1);
	send_requests(remote);
	if (remote->open)
		return remote;
	/* Nobody could be asked. */
	code = settle(remote);
	response(remote, rules, code, ret, ret_wait);
	forget(remote);
	return NULL;
}

void remote_on(struct remote *remote, remote_done_fn done, void *arg)
{
	remote->done = done;
	remote->arg = arg;
}

void remote_cancel(struct remote *remote)
{
	remote->request = NULL;
}
