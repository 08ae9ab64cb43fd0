// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * remote.c - see remote.h.
 *
 *     decision -> struct quota_charge -> cluster/quota -> result -> decide_again() -> response
 *
 * If Redis refuses a request by limits that have a soft part, which was not charged as this node
 * did not know that the limit is used up, all is refunded, and the request is decided and charged
 * once more with their soft parts, within the same deadline. From then on this node's state of the
 * limit refuses, so for each key that happens about once a window and node, not per request.
 */
#include "request/engine/remote.h"

#include <errno.h>
#include <stdlib.h>

#include "cluster/quota/quota_charge.h"
#include "lib/whole.h"
#include "request/engine/decide_private.h"

struct remote {
	struct engine_thread *thread;
	const struct request *request;
	struct quota_charging *charging;
	remote_done_fn done;
	void *arg;
	u64 until_ns;	      /* the deadline */
	bool second;	      /* charged once more, with soft parts */
	struct permit permit; /* units that were taken on this node before Redis decides */
	u32 result_count;
	struct decide_result *result; /* of all buckets of the request */
};

/* What is handed to quota_charge(), which copies it. */
struct charge_input {
	struct quota_charge charge;
	struct quota_charge_bucket bucket[3 * DECIDE_BUCKETS_MAX];
	struct quota_charge_part part[DECIDE_PARTS_MAX];
	u16 listed[DECIDE_PARTS_MAX][2 * RULE_LIMITS_MAX * PREFIX_HIERARCHY_MAX];
};

/* 1 + the index in the charge of a bucket's limit or soft part, and of its grace; 0 none. */
struct numbers {
	u16 charged, grace;
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

/* Adds one state of a bucket (0, soft_ref, grace_ref); returns 1 + its index. */
static u16 add_state(const struct decision *d, u32 number, u32 state, u64 cost,
		     struct charge_input *input)
{
	struct quota_charge_bucket *ret = &input->bucket[input->charge.bucket_count];
	const struct bucket *b = &d->bucket[number];

	*ret = (struct quota_charge_bucket){
		.state = &d->ref[b->ref + state],
		.cost = d->request->peek ? 0 : cost,
		.hold = state ? 0 : b->view.hold,
		.group = group_of(d, number),
		.cluster = b->cluster,
	};
	if (ret->hold)
		ret->hold_permille = ret->hold * 1000 / (ret->hold + b->view.p.capacity);
	if (b->cluster) {
		ret->needs_store = b->needs_store;
		ret->covered = b->covered;
		ret->retries = !state && b->retries;
		ret->queued = b->rule->defer.max;
		ret->on_failure = b->rule->on_store_failure;
		ret->ref = decide_cluster_ref(d, b, state);
		ret->own_key = decide_own_key(d, b, state);
	}
	return ++input->charge.bucket_count;
}

/*
 * What is charged of a bucket. With its soft part the limit is read: other nodes may have charged
 * or refunded it. A peek reads all of its states, as the limit may be used up in Redis.
 */
static struct numbers add_bucket(const struct decision *d, u32 number, struct charge_input *input)
{
	const struct bucket *b = &d->bucket[number];
	u32 charged = decide_charged(d, b);
	struct numbers ret = { .charged = add_state(d, number, charged, b->cost, input) };

	if (b->grace_needs_store) {
		ret.grace = add_state(d, number, b->grace_ref, b->begins, input);
		input->bucket[ret.grace - 1].needs_store = true;
		input->bucket[ret.grace - 1].covered = false;
	}
	if (charged && b->needs_store)
		add_state(d, number, 0, 0, input);
	if (d->request->peek && b->needs_store && b->soft_ref && !charged) {
		add_state(d, number, b->soft_ref, 0, input);
		if (b->grace_ref)
			add_state(d, number, b->grace_ref, 0, input);
	}
	return ret;
}

static void fill_parts(const struct decision *d, const struct numbers *number,
		       struct charge_input *input)
{
	for (u32 i = 0; i < d->part_count; i++) {
		const struct part *from = &d->part[i];
		u32 at = input->charge.part_count, count = 0;

		input->charge.quota_watched |= from->quota && from->shadow;
		if (from->over)
			continue;
		for (u32 k = 0; k < from->count; k++) {
			struct numbers of = number[from->bucket[k]];

			if (of.charged)
				input->listed[at][count++] = of.charged - 1;
			if (of.grace)
				input->listed[at][count++] = of.grace - 1;
		}
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
	struct numbers number[DECIDE_BUCKETS_MAX];

	for (u32 i = 0; i < d->bucket_count; i++) {
		const struct bucket *b = &d->bucket[i];
		bool charged = b->charged && b->cost && !b->full && !b->candidate && !b->debt &&
			       !b->in_flight;

		number[i] = (struct numbers){ 0 };
		if (charged || b->needs_store || b->covered)
			number[i] = add_bucket(d, i, input);
	}
	fill_parts(d, number, input);
}

static int fill_results(struct remote *remote, const struct decision *d)
{
	struct decide_result *result = realloc(remote->result, d->bucket_count * sizeof(*result));

	if (!result)
		return -ENOMEM;
	remote->result = result;
	remote->result_count = d->bucket_count;
	for (u32 i = 0; i < d->bucket_count; i++) {
		const struct bucket *b = &d->bucket[i];

		result[i] = (struct decide_result){
			.key = d->ref[b->ref].key,
			.charged_key = d->ref[b->ref + decide_charged(d, b)].key,
			.grace_key = b->grace_needs_store ? d->ref[b->ref + b->grace_ref].key : 0,
			.over = b->over,
			.by_store = b->by_store,
			.may_soften = b->soft_ref && !b->soft && b->cost,
			.shadow = b->rule && b->rule->shadow,
			.wait_ns = b->wait_ns,
			.soft = b->soft,
			.full = b->full,
			.from_store = b->from_store,
			.reply_used = b->reply_used,
		};
	}
	return 0;
}

/* ------------------------------------------------------------------ to the response */

static void apply_result(struct remote *remote, const struct quota_charge_bucket *b)
{
	for (u32 i = 0; i < remote->result_count; i++) {
		struct decide_result *result = &remote->result[i];

		if (result->key == b->ref.key && result->charged_key != b->ref.key &&
		    b->from_store) {
			result->from_store = true;
			result->reply_used = b->reply_used;
			return;
		}
		if (result->charged_key != b->ref.key && result->grace_key != b->ref.key)
			continue;
		result->by_store |= b->over && !result->over;
		result->over |= b->over;
		result->unavailable |= b->unavailable;
		/* The wait of a soft part that is used up is that of its limit. */
		if (result->soft || result->charged_key != result->key) {
			result->soft = !result->over;
			return;
		}
		result->wait_ns = b->wait_ns;
		result->from_store = b->from_store;
		result->reply_used = b->reply_used;
		return;
	}
}

static void apply_results(struct remote *remote, const struct quota_charge *charge)
{
	for (u32 i = 0; i < charge->bucket_count; i++)
		if (charge->bucket[i].needs_store)
			apply_result(remote, &charge->bucket[i]);
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
	struct sl_now now = counters_now(ledger->counters);

	if (charge->result != QUOTA_PASSED)
		decide_release(ledger, &remote->permit, now);
	decide_again(decision_begin(ledger, remote->request, now), rules, remote->result,
		     remote->result_count, code[charge->result], ret, ret_wait);
	if (ret->code == RESPONSE_OK)
		ret->permit = remote->permit;
}

/* What was charged here stays charged. */
static void no_memory(const struct decision *d, struct response *ret, struct decide_delay *ret_wait)
{
	*ret = (struct response){ .code = RESPONSE_ERROR,
				  .count = d->part_count - d->has_domain,
				  .has_domain = d->has_domain,
				  .retry_after_ns = DECIDE_CLOSED_WAIT_NS };
	for (u32 i = 0; i < d->part_count; i++)
		ret->status[i].rule = d->part[i].rule;
	if (ret_wait)
		ret_wait->key = 0;
}

/* ------------------------------------------------------------------ requests */

/* Whether only limits refused whose soft parts were not charged. */
static bool may_soften(const struct remote *remote, const struct quota_charge *charge)
{
	bool any = false;

	if (remote->second || charge->result != QUOTA_REFUSED || charge->peek)
		return false;
	for (u32 i = 0; i < remote->result_count; i++) {
		const struct decide_result *result = &remote->result[i];

		any |= result->over && result->may_soften;
		if (result->over && result->by_store && !result->may_soften && !result->shadow)
			return false;
	}
	return any;
}

/* Decides a refused request again. NULL: decided here, and *ret is the response. */
static struct decision *decide_softly(struct remote *remote, const struct ruleset *rules,
				      struct response *ret, struct decide_delay *ret_wait)
{
	struct engine *engine = remote->thread->engine;
	struct sl_now now = counters_now(engine->ledger.counters);
	struct decision *d = decision_begin(&engine->ledger, remote->request, now);

	decide_release(&engine->ledger, &remote->permit, now);
	remote->permit.count = 0;
	remote->second = true;
	d->first = remote->result;
	d->first_count = remote->result_count;
	d->refusal_cache = engine->ledger.refusal_cache;
	d->store = now.mono_ns < remote->until_ns ? remote->thread->store : NULL;
	return decide_here(d, rules, ret, ret_wait) ? NULL : d;
}

static void on_charged(void *arg, const struct quota_charge *charge);

static int charge(struct remote *remote, const struct decision *d, struct charge_input *input)
{
	struct engine *engine = remote->thread->engine;

	if (fill_results(remote, d))
		return -ENOMEM;
	remote->permit = d->permit;
	input->charge = (struct quota_charge){
		.ledger = &engine->ledger,
		.store = d->store,
		.deadline_ns = less(remote->until_ns, d->now.mono_ns),
		.pending = &engine->pending,
		.now = d->now,
		.peek = d->request->peek,
		.bucket = input->bucket,
		.part = input->part,
		.done = on_charged,
		.arg = remote,
	};
	fill_charge(d, input);
	return quota_charge(&input->charge, &remote->charging);
}

/* True: a reply is to come. Otherwise *ret is the response. `d`: NULL: it is already. */
static bool send_decision(struct remote *remote, const struct ruleset *rules,
			  const struct decision *d, struct response *ret,
			  struct decide_delay *ret_wait)
{
	static _Thread_local struct charge_input input;

	while (d) {
		if (charge(remote, d, &input) < 0) {
			no_memory(d, ret, ret_wait);
			return false;
		}
		if (remote->charging)
			return true;
		apply_results(remote, &input.charge);
		if (!may_soften(remote, &input.charge)) {
			respond(remote, rules, &input.charge, ret, ret_wait);
			return false;
		}
		d = decide_softly(remote, rules, ret, ret_wait);
	}
	return false;
}

static void remote_free(struct remote *remote)
{
	free(remote->result);
	free(remote);
}

static void on_charged(void *arg, const struct quota_charge *charge)
{
	struct remote *remote = arg;
	struct engine *engine = remote->thread->engine;
	const struct ruleset *rules = engine_rules_enter(engine);
	struct decide_delay wait = { .ahead = NULL };
	struct response ret;
	bool sent = false;

	apply_results(remote, charge);
	if (may_soften(remote, charge))
		sent = send_decision(remote, rules, decide_softly(remote, rules, &ret, &wait), &ret,
				     &wait);
	else
		respond(remote, rules, charge, &ret, &wait);
	if (!sent) {
		remote->done(remote->arg, &ret, &wait);
		engine_rules_leave(engine);
		remote_free(remote);
		return;
	}
	engine_rules_leave(engine);
}

struct remote *remote_send(struct engine_thread *thread, const struct ruleset *rules,
			   const struct decision *d, struct response *ret,
			   struct decide_delay *ret_wait)
{
	struct remote *remote = calloc(1, sizeof(*remote));

	if (!remote) {
		no_memory(d, ret, ret_wait);
		return NULL;
	}
	remote->thread = thread;
	remote->request = d->request;
	remote->until_ns = d->now.mono_ns + thread->engine->store_deadline_ns;
	if (send_decision(remote, rules, d, ret, ret_wait))
		return remote;
	remote_free(remote);
	return NULL;
}

void remote_on(struct remote *remote, remote_done_fn done, void *arg)
{
	remote->done = done;
	remote->arg = arg;
}

void remote_cancel(struct remote *remote)
{
	const struct ledger *ledger = &remote->thread->engine->ledger;

	decide_release(ledger, &remote->permit, counters_now(ledger->counters));
	quota_charge_cancel(remote->charging);
	remote_free(remote);
}
