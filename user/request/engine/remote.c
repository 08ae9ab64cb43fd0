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
#include "request/engine/wait.h"

static struct tier_shared *shared_of(const struct remote *remote)
{
	return remote->worker->tier->shared;
}

static void count_asking(struct worker *worker, s64 n)
{
	__atomic_add_fetch(&worker->tier->shared->asking, n, __ATOMIC_RELAXED);
}

/* Calls that ask are held as those that wait are, and bounded with them. */
static bool has_room(const struct http_tier *tier)
{
	u64 held = __atomic_load_n(&tier->shared->asking, __ATOMIC_RELAXED);

	if (tier->waits)
		held += waits_total(tier->waits);
	return held < tier->started->max_waiting;
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

static struct remote *remote_new(u32 buckets, u32 parts, u32 results)
{
	struct remote *remote;
	size_t size = sizeof(*remote) + parts * sizeof(*remote->part) +
		      results * sizeof(*remote->result) +
		      buckets * (sizeof(*remote->bucket) + sizeof(*remote->ask) +
				 sizeof(*remote->asked) + 2 * sizeof(*remote->word));

	remote = calloc(1, size);
	if (!remote)
		return NULL;
	remote->bucket = (void *)(remote + 1);
	remote->ask = (void *)(remote->bucket + buckets);
	remote->asked = (void *)(remote->ask + buckets);
	remote->word = (void *)(remote->asked + buckets);
	remote->result = (void *)(remote->word + 2 * buckets);
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
	to->word = &remote->word[remote->word_count++];
	*to->word = d->ref[b->ref + b->soft];
	if (!b->shared)
		return;
	to->shared = true;
	to->asks = b->asks;
	to->covered = b->covered;
	to->retries = b->retries;
	to->on_failure = b->rule->on_store_failure;
	to->ref = shared_ref(d, b);
	to->ref.def = &to->word->def;
	if (b->words < 2)
		return;
	to->own = &remote->word[remote->word_count++];
	*to->own = d->ref[b->ref + 1];
}

static void fill_parts(struct remote *remote, const struct decision *d, const u16 *number)
{
	for (u32 i = 0; i < d->part_count; i++) {
		const struct part *from = &d->part[i];
		struct remote_part *to;

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
			.told = b->told,
			.told_used = b->told_used,
		};
	}
}

/* Each bucket joins the ask of its place and group. */
static void group_asks(struct remote *remote)
{
	struct shared *shared = remote->shared;

	for (u32 i = 0; i < remote->bucket_count; i++) {
		struct remote_bucket *b = &remote->bucket[i];
		u32 place = 0, at = 0;

		if (!b->asks)
			continue;
		if (shared)
			place = shared->ops->place(shared, b->ref.tag);
		while (at < remote->ask_count &&
		       (remote->ask[at].place != place || remote->ask[at].group != b->group ||
			remote->ask[at].ask.count == SHARED_BUCKETS_MAX))
			at++;
		b->ask = &remote->ask[at];
		if (at == remote->ask_count)
			remote->ask[remote->ask_count++] = (struct remote_ask){
				.remote = remote, .place = place, .group = b->group,
			};
		b->ask->ask.count++;
	}
}

/* What is asked for together stands together. */
static void fill_asked(struct remote *remote)
{
	struct shared_bucket *next = remote->asked;

	for (u32 i = 0; i < remote->ask_count; i++) {
		remote->ask[i].ask.bucket = next;
		for (u32 k = 0; k < remote->bucket_count; k++) {
			struct remote_bucket *b = &remote->bucket[k];

			if (b->ask != &remote->ask[i])
				continue;
			b->asked = next++;
			*b->asked = (struct shared_bucket){
				.key = b->ref.key,
				.tag = b->ref.tag,
				.def = b->word->def,
				.kind = SHARED_TAKE,
				.cost = b->cost,
				.hold = b->hold,
			};
		}
	}
}

/* NULL: no memory. */
static struct remote *make(struct worker *worker, const struct decision *d)
{
	u16 number[DECIDE_BUCKETS_MAX];		/* 1 + its place in the remote; 0 none */
	struct remote *remote;
	u32 count = 0;

	for (u32 i = 0; i < d->bucket_count; i++) {
		const struct bucket *b = &d->bucket[i];
		bool charged = b->charged && b->cost && !b->full;

		number[i] = charged || b->asks || b->covered ? ++count : 0;
	}
	remote = remote_new(count, d->part_count, d->bucket_count);
	if (!remote)
		return NULL;
	remote->worker = worker;
	remote->shared = d->shared;
	remote->call = d->call;
	remote->now = d->now;
	remote->peek = d->call->peek;
	fill_results(remote, d);
	for (u32 i = 0; i < d->bucket_count; i++)
		if (number[i])
			fill_bucket(remote, d, i);
	fill_parts(remote, d, number);
	group_asks(remote);
	fill_asked(remote);
	return remote;
}

/* ------------------------------------------------------------------ given back */

/* What was charged at one place; the call it was of may be answered and gone. */
struct giving {
	struct shared_ask ask;		/* first */
	struct store *store;
	struct share_ref ref[];		/* as many as it has buckets, which stand behind them */
};

static void given(struct shared_ask *ask, enum shared_outcome outcome)
{
	struct giving *giving = (struct giving *)ask;
	struct sl_now now = store_now(giving->store);

	if (outcome == SHARED_LATE)
		return;
	for (u32 i = 0; i < ask->count; i++)
		quota_reply(giving->store, &giving->ref[i], &ask->bucket[i], ask, outcome, now);
	free(giving);
}

/* Sends it; without a way, or memory, the cluster's thread is to. */
static void give_back(struct remote *remote, const struct remote_ask *ask, struct sl_now now)
{
	struct shared *shared = remote->shared;
	struct shares *shares = shared_of(remote)->shares;
	struct store *store = remote->worker->tier->store;
	u32 most = ask->ask.count, count = 0;
	struct giving *giving = calloc(1, sizeof(*giving) + most * (sizeof(struct share_ref) +
								    sizeof(struct shared_bucket)));

	for (u32 i = 0; i < remote->bucket_count; i++) {
		struct remote_bucket *b = &remote->bucket[i];
		struct shared_bucket *to;

		if (b->ask != ask || !b->back)
			continue;
		b->back = false;
		if (!giving) {
			share_owe(shares, &b->ref, -(s64)b->cost, now);
			continue;
		}
		to = (struct shared_bucket *)&giving->ref[most] + count;
		*to = (struct shared_bucket){
			.key = b->ref.key, .tag = b->ref.tag, .def = b->word->def,
			.kind = SHARED_BACK, .cost = b->cost, .window = b->asked->state.window,
		};
		giving->ref[count] = b->ref;
		giving->ref[count++].def = &to->def;
		share_ask(shares, &b->ref, to, now);
	}
	if (!count) {
		free(giving);
		return;
	}
	giving->store = store;
	giving->ask = (struct shared_ask){
		.bucket = (struct shared_bucket *)&giving->ref[most],
		.count = count,
		.deadline_ns = shared_of(remote)->deadline_ns,
		.done = given,
		.late = given,
	};
	if (shared->ops->ask(shared, &giving->ask) >= 0)
		return;
	for (u32 i = 0; i < count; i++) {
		struct share_ref *ref = &giving->ref[i];

		quota_reply(store, ref, &giving->ask.bucket[i], &giving->ask, SHARED_DOWN, now);
		share_owe(shares, ref, -(s64)giving->ask.bucket[i].cost, now);
	}
	free(giving);
}

/* ------------------------------------------------------------------ asked and answered */

/* The verdict is known and words are as they are to be: what is not, is given back there. */
static enum call_code settle(struct remote *remote)
{
	struct sl_now now = store_now(remote->worker->tier->store);
	enum call_code code = remote_settle(remote, now);

	for (u32 i = 0; i < remote->ask_count; i++)
		if (remote->ask[i].state == ASK_DONE)
			give_back(remote, &remote->ask[i], now);
	return code;
}

static void __attribute__((noinline)) answer(struct remote *remote, const struct ruleset *rules,
					     enum call_code code, struct answer *ret,
					     struct decide_wait *ret_wait)
{
	struct store *store = remote->worker->tier->store;
	struct decision d;

	decision_init(&d, store, remote->call, store_now(store));
	decide_again(&d, rules, remote->result, remote->result_count, code, ret, ret_wait);
}

static void forget(struct remote *remote)
{
	if (remote->left || !remote->settled)
		return;
	count_asking(remote->worker, -1);
	free(remote);
}

static void settle_and_tell(struct remote *remote)
{
	enum call_code code = settle(remote);
	struct decide_wait wait = { .ahead = NULL };
	struct answer ret;

	if (remote->call) {
		const struct ruleset *rules = rules_enter();

		answer(remote, rules, code, &ret, &wait);
		remote->call = NULL;
		remote->done(remote->arg, &ret, &wait);
		rules_leave();
	}
	forget(remote);
}

static void on_done(struct shared_ask *of, enum shared_outcome outcome)
{
	struct remote_ask *ask = (struct remote_ask *)of;
	struct remote *remote = ask->remote;

	ask->state = outcome == SHARED_DONE ? ASK_DONE :
		     outcome == SHARED_LATE ? ASK_LATE : ASK_DOWN;
	remote->left -= outcome != SHARED_LATE;
	if (!--remote->open)
		settle_and_tell(remote);
}

static void on_late(struct shared_ask *of, enum shared_outcome outcome)
{
	struct remote_ask *ask = (struct remote_ask *)of;
	struct remote *remote = ask->remote;
	struct sl_now now = store_now(remote->worker->tier->store);

	remote->left--;
	/* Others are out yet: it is not too late for this one. */
	if (!remote->settled) {
		ask->state = outcome == SHARED_DONE ? ASK_DONE : ASK_DOWN;
		return;
	}
	remote_settle_late(remote, ask, outcome, now);
	give_back(remote, ask, now);
	forget(remote);
}

static void send_asks(struct remote *remote)
{
	struct shared *shared = remote->shared;

	for (u32 i = 0; i < remote->bucket_count; i++) {
		struct remote_bucket *b = &remote->bucket[i];

		if (b->asks)
			share_ask(shared_of(remote)->shares, &b->ref, b->asked, remote->now);
	}
	for (u32 i = 0; i < remote->ask_count; i++) {
		struct remote_ask *ask = &remote->ask[i];

		ask->ask.deadline_ns = shared_of(remote)->deadline_ns;
		ask->ask.done = on_done;
		ask->ask.late = on_late;
		ask->state = ASK_DOWN;
		if (!shared || !shared->ops->up(shared, ask->place) ||
		    shared->ops->ask(shared, &ask->ask) < 0)
			continue;
		ask->state = ASK_OUT;
		remote->open++;
		remote->left++;
	}
}

/* ------------------------------------------------------------------ calls */

/* There is no memory to ask: what was charged here stays so, and the call is an error. */
static void no_memory(const struct decision *d, struct answer *ret, struct decide_wait *ret_wait)
{
	*ret = (struct answer){ .code = CALL_ERROR, .count = d->part_count,
				.retry_after_ns = DECIDE_CLOSED_WAIT_NS };
	for (u32 i = 0; i < d->part_count; i++)
		ret->status[i].rule = d->part[i].rule;
	if (ret_wait)
		ret_wait->key = 0;
}

/* True: answered. Else *ret_remote asks, or NULL: no memory. */
static bool __attribute__((noinline)) first_half(struct worker *worker, const struct ruleset *rules,
						 const struct call *call, struct sl_now now,
						 struct answer *ret, struct decide_wait *ret_wait,
						 struct remote **ret_remote)
{
	struct http_tier *tier = worker->tier;
	struct decision d;

	decision_init(&d, tier->store, call, now);
	if (tier->shared) {
		d.recall = tier->shared->recall;
		d.shared = has_room(tier) ? worker->shared : NULL;
	}
	if (decide_here(&d, rules, ret, ret_wait))
		return true;
	*ret_remote = make(worker, &d);
	if (*ret_remote)
		return false;
	no_memory(&d, ret, ret_wait);
	return true;
}

struct remote *remote_decide(struct worker *worker, const struct ruleset *rules,
			     const struct call *call, struct sl_now now, struct answer *ret,
			     struct decide_wait *ret_wait)
{
	struct remote *remote;
	enum call_code code;

	if (first_half(worker, rules, call, now, ret, ret_wait, &remote))
		return NULL;
	count_asking(worker, 1);
	send_asks(remote);
	if (remote->open)
		return remote;
	/* Nobody could be asked. */
	code = settle(remote);
	answer(remote, rules, code, ret, ret_wait);
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
	remote->call = NULL;
}
