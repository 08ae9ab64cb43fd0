// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * remote.c - see remote.h.
 *
 *     decision -> struct quota_charge -> cluster/quota -> result -> decide_again() -> response
 */
#include "request/engine/remote.h"

#include <stdlib.h>

#include "cluster/quota/quota_charge.h"
#include "request/engine/decide_private.h"

struct remote {
	struct engine_thread *thread;
	const struct request *request;
	struct quota_charging *charging;
	remote_done_fn done;
	void *arg;
	u32 result_count;
	struct decide_result result[];	/* of all buckets of the request */
};

/* What is handed to quota_charge(), which copies it. */
struct charge_input {
	struct quota_charge charge;
	struct quota_charge_bucket bucket[DECIDE_BUCKETS_MAX];
	struct quota_charge_part part[DECIDE_PARTS_MAX];
	u16 listed[DECIDE_PARTS_MAX][RULE_LIMITS_MAX * PREFIX_HIERARCHY_MAX];
};

/* ------------------------------------------------------------------ from the decision */

/* The group of a bucket: 0 of an enforced part, else of its first part. */
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

static void fill_bucket(const struct decision *d, u32 number, struct quota_charge_bucket *ret)
{
	const struct bucket *b = &d->bucket[number];

	*ret = (struct quota_charge_bucket){
		.state = &d->ref[b->ref + (b->soft ? b->soft_ref : 0)],
		.cost = d->request->peek ? 0 : b->cost,
		.hold = b->view.hold,
		.group = group_of(d, number),
		.cluster = b->cluster && !b->soft,
	};
	if (ret->hold)
		ret->hold_permille = ret->hold * 1000 / (ret->hold + b->view.p.capacity);
	if (!ret->cluster)
		return;
	ret->needs_store = b->needs_store;
	ret->covered = b->covered;
	ret->retries = b->retries;
	ret->queued = b->rule->defer.max;
	ret->on_failure = b->rule->on_store_failure;
	ret->ref = decide_cluster_ref(d, b);
	ret->own_key = algorithm_is_log(d->ref[b->ref].def.algo) ? 0 : d->ref[b->ref + 1].key;
}

static void fill_parts(const struct decision *d, const u16 *number, struct charge_input *input)
{
	for (u32 i = 0; i < d->part_count; i++) {
		const struct part *from = &d->part[i];
		u32 at = input->charge.part_count, count = 0;

		input->charge.quota_watched |= from->quota && from->shadow;
		if (from->over)
			continue;
		for (u32 k = 0; k < from->count; k++)
			if (number[from->bucket[k]])
				input->listed[at][count++] = number[from->bucket[k]] - 1;
		input->part[at] = (struct quota_charge_part){
			.shadow = from->shadow,
			.quota = from->quota,
			.count = count,
			.bucket = input->listed[at],
		};
		input->charge.part_count++;
	}
}

/* What was charged here, and what needs Redis. */
static void fill_charge(const struct decision *d, struct charge_input *input)
{
	u16 number[DECIDE_BUCKETS_MAX];		/* 1 + its index in the charge; 0 none */

	for (u32 i = 0; i < d->bucket_count; i++) {
		const struct bucket *b = &d->bucket[i];
		bool charged = b->charged && b->cost && !b->full && !b->candidate && !b->debt;

		number[i] = 0;
		if (!charged && !b->needs_store && !b->covered)
			continue;
		fill_bucket(d, i, &input->bucket[input->charge.bucket_count]);
		number[i] = ++input->charge.bucket_count;
	}
	fill_parts(d, number, input);
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

/* ------------------------------------------------------------------ to the response */

static void apply_result(struct remote *remote, const struct quota_charge_bucket *b)
{
	for (u32 i = 0; i < remote->result_count; i++) {
		struct decide_result *result = &remote->result[i];

		if (result->key != b->ref.key)
			continue;
		result->by_store = b->over && !result->over;
		result->over |= b->over;
		result->wait_ns = b->wait_ns;
		result->unavailable = b->unavailable;
		result->from_store = b->from_store;
		result->reply_used = b->reply_used;
		return;
	}
}

static void respond(struct remote *remote, const struct ruleset *rules,
		    const struct quota_charge *charge, struct response *ret,
		    struct decide_delay *ret_wait)
{
	static const enum response_code code[] = {
		[QUOTA_PASSED] = RESPONSE_OK,
		[QUOTA_REFUSED] = RESPONSE_OVER_LIMIT,
		[QUOTA_CLOSED] = RESPONSE_CLOSED,
		[QUOTA_ERROR] = RESPONSE_ERROR,
	};
	const struct ledger *ledger = charge->ledger;

	for (u32 i = 0; i < charge->bucket_count; i++)
		if (charge->bucket[i].needs_store)
			apply_result(remote, &charge->bucket[i]);
	decide_again(decision_begin(ledger, remote->request, counters_now(ledger->counters)), rules,
		     remote->result, remote->result_count, code[charge->result], ret, ret_wait);
}

static void on_charged(void *arg, const struct quota_charge *charge)
{
	struct remote *remote = arg;
	struct engine *engine = remote->thread->engine;
	const struct ruleset *rules = engine_rules_enter(engine);
	struct decide_delay wait = { .ahead = NULL };
	struct response ret;

	respond(remote, rules, charge, &ret, &wait);
	remote->done(remote->arg, &ret, &wait);
	engine_rules_leave(engine);
	free(remote);
}

/* What was charged here stays charged. */
static void no_memory(const struct decision *d, struct response *ret, struct decide_delay *ret_wait)
{
	*ret = (struct response){ .code = RESPONSE_ERROR, .count = d->part_count - d->has_domain,
				.has_domain = d->has_domain, .retry_after_ns = DECIDE_CLOSED_WAIT_NS };
	for (u32 i = 0; i < d->part_count; i++)
		ret->status[i].rule = d->part[i].rule;
	if (ret_wait)
		ret_wait->key = 0;
}

/* ------------------------------------------------------------------ requests */

struct remote *remote_send(struct engine_thread *thread, const struct ruleset *rules,
			   const struct decision *d, struct response *ret,
			   struct decide_delay *ret_wait)
{
	static _Thread_local struct charge_input input;
	struct engine *engine = thread->engine;
	struct remote *remote =
		malloc(sizeof(*remote) + d->bucket_count * sizeof(remote->result[0]));

	if (!remote) {
		no_memory(d, ret, ret_wait);
		return NULL;
	}
	*remote = (struct remote){ .thread = thread, .request = d->request };
	fill_results(remote, d);
	input.charge = (struct quota_charge){
		.ledger = &engine->ledger,
		.store = d->store,
		.deadline_ns = engine->store_deadline_ns,
		.pending = &engine->pending,
		.now = d->now,
		.peek = d->request->peek,
		.bucket = input.bucket,
		.part = input.part,
		.done = on_charged,
		.arg = remote,
	};
	fill_charge(d, &input);
	if (quota_charge(&input.charge, &remote->charging) < 0)
		no_memory(d, ret, ret_wait);
	else if (remote->charging)
		return remote;
	else
		respond(remote, rules, &input.charge, ret, ret_wait);
	free(remote);
	return NULL;
}

void remote_on(struct remote *remote, remote_done_fn done, void *arg)
{
	remote->done = done;
	remote->arg = arg;
}

void remote_cancel(struct remote *remote)
{
	quota_charge_cancel(remote->charging);
	free(remote);
}
