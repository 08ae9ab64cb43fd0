// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * remote.c - calls that ask the store of all nodes: sent, answered, cancelled, given back. See
 * remote.h; what becomes of words is remote_settle.c's.
 */
#include "request/engine/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "request/engine/remote_private.h"

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

static void __attribute__((noinline)) response(struct remote *remote, const struct ruleset *rules,
					       enum response_code code, struct response *ret,
					       struct decide_delay *ret_wait)
{
	const struct ledger *ledger = ledger_of(remote);
	struct decision d;

	decision_init(&d, ledger, remote->request, counters_now(ledger->counters));
	decide_again(&d, rules, remote->result, remote->result_count, code, ret, ret_wait);
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
