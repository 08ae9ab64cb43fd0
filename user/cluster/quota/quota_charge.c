// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * quota_charge.c - see quota_charge.h: from the charge on this node to the replies of Redis.
 *
 * Bucket states are looked up again by their keys whenever they are locked. Settling a request:
 *
 *     lock all -> apply replies -> the result -> each state -> unlock
 *
 * A bucket that passed in Redis gets the state of the reply, and this node's own count is charged.
 * In a refused request, charges of this node are refunded here, and charges in Redis are marked
 * `refund`. A bucket without a reply whose rule admits the request stays unflushed until a reply
 * shows that Redis did not charge it, or there will be no reply. It may then be charged twice,
 * which never admits too much.
 */
#include "cluster/quota/quota_charge.h"

#include <errno.h>
#include <stdlib.h>

#include "cluster/quota/quota_apply.h"
#include "lib/whole.h"
#include "limiter/algorithm.h"

enum command_state { COMMAND_SENT, COMMAND_DONE, COMMAND_LATE, COMMAND_DOWN };

/* Buckets of one hash slot and group. */
struct quota_charge_command {
	struct cluster_store_request request; /* first: the store returns this */
	struct quota_charging *charging;
	u32 slot, group;
	enum command_state state;
};

struct quota_charging {
	struct quota_charge charge;
	bool cancelled, settled;
	u32 open; /* commands without a reply, nor LATE */
	u32 left; /* commands without a reply */
	u32 command_count, state_count;
	struct quota_charge_command *command;
	struct cluster_store_bucket *sent;
	struct counters_ref *state; /* of all buckets, to lock them by */
};

/* Cluster limits use Redis' clock. */
static struct sl_now time_of(const struct quota_charge *charge, const struct quota_charge_bucket *b,
			     struct sl_now now)
{
	return b->cluster ? counters_shared_now(charge->ledger->counters, now) : now;
}

static bool is_done(const struct quota_charge_bucket *b)
{
	return b->command->state == COMMAND_DONE;
}

static bool is_passed(const struct quota_charge_bucket *b)
{
	return is_done(b) && b->command->request.passed;
}

/* ------------------------------------------------------------------ this node's own count */

/*
 * A part in permille, rounded down to six significant bits: each value is a class of its own in the
 * counter table (counters_class.c), and a limit may have at most two hundred. The even part of a
 * few nodes stays exact.
 */
static u32 round_down(u32 permille)
{
	u32 drop = permille >> 6 ? 26 - (u32)__builtin_clz(permille) : 0;

	for (u32 nodes = 1; nodes <= 10; nodes++)
		if (permille == 1000 / nodes)
			return permille;
	return permille >> drop << drop;
}

static void look_own(const struct ledger *ledger, struct counters_ref *own,
		     const struct quota_ref *ref, struct sl_now now)
{
	u32 part = round_down(quota_permille(ledger->quotas, ref->key, now));

	own->def = *ref->def;
	/* This node's part of the limit, or of its soft part. */
	if (own->def.soft_permille)
		part = part * own->def.soft_permille / 1000;
	own->def.soft_permille = part ? part : 1;
	counters_look(ledger->counters, own, now);
}

void quota_charge_own(const struct ledger *ledger, struct counters_ref *own,
		      const struct quota_ref *ref, u64 cost, struct sl_now now)
{
	struct spec_view view;

	if (!cost)
		return;
	look_own(ledger, own, ref, now);
	if (!own->spec || (!own->present && !counters_claim(ledger->counters, own, now)))
		return;
	spec_view_init(&view, own->spec, 0, 0);
	counters_put(ledger->counters, own, spec_force(&view, own->bucket_state, now, cost));
}

/* ------------------------------------------------------------------ one bucket's result */

static bool is_log(const struct quota_charge_bucket *b)
{
	return algorithm_is_log(b->here->def.algo);
}

/* The time until this node's own requests fit into its part; its log has them and this request. */
static u64 own_log_wait(struct counters *counters, const struct quota_charge_bucket *b,
			u32 permille, struct sl_now now)
{
	const struct counters_ref *ref = b->here;
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

/*
 * Decides by this node's own admissions, limited to its part. Without an own count: by the state
 * here.
 */
static void judge_own(const struct ledger *ledger, struct quota_charge_bucket *b, struct sl_now now)
{
	struct spec_view view;
	struct sl_result took;

	if (is_log(b)) {
		b->wait_ns = own_log_wait(ledger->counters, b,
					  quota_permille(ledger->quotas, b->ref.key, now), now);
		b->over = b->wait_ns;
		return;
	}
	if (!b->own)
		return;
	look_own(ledger, b->own, &b->ref, now);
	if (!b->own->spec)
		return;
	spec_view_init(&view, b->own->spec, 0, b->hold_permille);
	took = spec_charge(&view, b->own->bucket_state, now, b->cost);
	b->over = took.verdict == SL_OVER;
	b->wait_ns = took.wait_ns;
}

/*
 * Refuses a retry without a reply, which this node would refuse. Otherwise `open` would admit an
 * offender once a second for each worker that has not detected yet that Redis is unavailable.
 */
static void refuse_retry(const struct quota_charge *charge, struct quota_charge_bucket *b,
			 struct sl_now now)
{
	const struct ledger *ledger = charge->ledger;
	struct spec_view view;

	b->over = true;
	if (is_log(b)) {
		u64 own_ns = own_log_wait(ledger->counters, b, 1000, now);

		b->wait_ns = refusal_cache_wait(ledger->refusal_cache, b->ref.key,
						b->cost + b->hold, now.mono_ns);
		if (b->wait_ns < own_ns)
			b->wait_ns = own_ns;
	} else if (b->here->spec) {
		spec_view_init(&view, b->here->spec, 0, b->hold_permille);
		b->wait_ns =
			spec_charge(&view, b->here->bucket_state, time_of(charge, b, now), b->cost)
				.wait_ns;
	}
}

static void judge(const struct quota_charge *charge, struct quota_charge_bucket *b,
		  struct sl_now now)
{
	struct refusal_cache *refusal_cache = charge->ledger->refusal_cache;

	b->over = false;
	if (is_done(b)) {
		b->from_store = is_log(b);
		b->reply_used = b->sent->state.used;
		b->over = !is_passed(b) && b->sent->over;
		b->wait_ns = b->sent->wait_ns;
		if (b->over && b->cost)
			refusal_cache_note(refusal_cache, b->ref.key, b->cost + b->hold, b->wait_ns,
					   now.mono_ns);
		else if (b->retries)
			refusal_cache_forget(refusal_cache, b->ref.key);
	} else if (b->cost && b->retries) {
		refuse_retry(charge, b, now);
	} else if (b->cost) {
		b->unavailable = true;
		b->failed = b->on_failure > STORE_FAILS_OPEN;
		if (b->on_failure == STORE_FAILS_LOCAL)
			judge_own(charge->ledger, b, time_of(charge, b, now));
	}
	if (!b->over)
		b->wait_ns = 0;
}

/*
 * Reduces the log to the count in Redis and the unflushed requests: the rest was refunded or reset.
 */
static void trim_log(const struct ledger *ledger, struct quota_charge_bucket *b)
{
	u64 count = request_log_count(b->here->bucket_state);
	u64 most = b->sent->state.used + quota_unflushed(ledger->quotas, b->ref.key);

	if (count > most)
		counters_put(ledger->counters, b->here,
			     request_log_remove(&ledger->counters->logs, b->here->spec,
						b->here->bucket_state, count - most));
}

/* Applies the reply. Returns whether the state has charges of this node that the reply lacks. */
static bool apply_reply(const struct quota_charge *charge, struct quota_charge_bucket *b,
			struct sl_now now)
{
	const struct ledger *ledger = charge->ledger;
	bool newer;

	if (b->command->state == COMMAND_LATE)
		return false;
	newer = quota_apply(ledger->counters, ledger->quotas, b->here, &b->ref, b->sent,
			    &b->command->request,
			    is_done(b) ? CLUSTER_STORE_DONE : CLUSTER_STORE_DOWN, now);
	if (is_log(b) && b->retries && is_passed(b))
		trim_log(ledger, b);
	return newer;
}

/*
 * This node would refuse a retry, but Redis had room, after a refund elsewhere or a loss. After a
 * loss the state includes the charges that this node restores, and the request may not fit any
 * more. The charges that Redis still decides do not count here: one of them may have made this a
 * retry, and comes too late.
 */
static void judge_retry(const struct quota_charge *charge, struct quota_charge_bucket *b,
			struct sl_now now)
{
	const struct ledger *ledger = charge->ledger;
	struct spec_view view;
	struct sl_result took;
	u64 used, undecided = quota_undecided(ledger->quotas, b->ref.key);

	if (!b->retries || !b->cost || b->over || !is_done(b) || !b->here->spec)
		return;
	if (is_log(b)) {
		used = b->sent->state.used + quota_unflushed(ledger->quotas, b->ref.key);
		b->over = less(used, undecided) + b->hold > b->here->spec->capacity;
		b->wait_ns = own_log_wait(ledger->counters, b, 1000, now);
		if (!b->wait_ns)
			b->wait_ns = SL_NS_PER_SEC;
	} else {
		/*
		 * The state of a bucket starts at the arrival of the reply, but is as old as the
		 * command.
		 */
		now = time_of(charge, b, now);
		now.mono_ns += now.mono_ns - b->sent->sent_ns;
		spec_view_init(&view, b->here->spec, 0, b->hold_permille);
		took = spec_charge(
			&view, spec_refund(&view, b->here->bucket_state, now, b->cost + undecided),
			now, b->cost);
		b->over = took.verdict == SL_OVER;
		b->wait_ns = took.wait_ns;
	}
	if (b->over)
		refusal_cache_note(ledger->refusal_cache, b->ref.key, b->cost + b->hold, b->wait_ns,
				   charge->now.mono_ns);
	else
		b->wait_ns = 0;
}

/* ------------------------------------------------------------------ the result of all */

static void judge_part(const struct quota_charge *charge, struct quota_charge_part *part)
{
	for (u32 i = 0; i < part->count; i++) {
		const struct quota_charge_bucket *b = &charge->bucket[part->of[i]];

		part->over |= b->over;
		part->error |= b->failed && b->on_failure == STORE_FAILS_ERROR;
		part->closed |= b->failed && b->on_failure != STORE_FAILS_ERROR;
	}
}

static bool is_failed(const struct quota_charge_part *part)
{
	return part->closed || part->error;
}

/* The first that applies: refused, error, closed, passed. */
static enum quota_charge_result result_of_all(const struct quota_charge *charge)
{
	struct quota_charge_part enforced = { 0 }, quota = { 0 };
	bool fits = charge->quota_watched, any = false;

	for (u32 i = 0; i < charge->part_count; i++) {
		struct quota_charge_part *part = &charge->part[i], *sum;

		judge_part(charge, part);
		if (part->shadow)
			continue;
		any |= part->quota;
		fits |= part->quota && !part->over && !is_failed(part);
		sum = part->quota ? &quota : &enforced;
		sum->over |= part->over;
		sum->closed |= part->closed;
		sum->error |= part->error;
	}
	if (any && !fits) {
		enforced.over |= quota.over;
		enforced.closed |= quota.closed;
		enforced.error |= quota.error;
	}
	return enforced.over	 ? QUOTA_REFUSED
	       : enforced.error	 ? QUOTA_ERROR
	       : enforced.closed ? QUOTA_CLOSED
				 : QUOTA_PASSED;
}

/* Whether a part with this bucket is admitted, so that the bucket stays charged. */
static bool is_kept(const struct quota_charge *charge, u32 bucket)
{
	for (u32 i = 0; i < charge->part_count; i++) {
		const struct quota_charge_part *part = &charge->part[i];

		if (part->over || (part->quota && is_failed(part)))
			continue;
		for (u32 k = 0; k < part->count; k++)
			if (part->of[k] == bucket)
				return true;
	}
	return false;
}

/* ------------------------------------------------------------------ bucket states; locked */

/* Refunds the charge made on this node before the commands were sent. */
static void refund_here(const struct quota_charge *charge, struct quota_charge_bucket *b,
			struct sl_now now)
{
	struct counters *counters = charge->ledger->counters;
	struct counters_ref *ref = b->here;
	struct spec_view view;

	if (!(ref->present || ref->claimed) || !ref->spec || !b->cost)
		return;
	if (is_log(b)) {
		counters_put(
			counters, ref,
			request_log_remove(&counters->logs, ref->spec, ref->bucket_state, b->cost));
		return;
	}
	/* A retry was not charged here; only the state from a reply contains it. */
	if (b->retries && !(b->needs_store && is_done(b)))
		return;
	spec_view_init(&view, ref->spec, 0, 0);
	counters_put(counters, ref,
		     spec_uncommit(&view, ref->bucket_state, now, time_of(charge, b, charge->now),
				   b->cost));
}

static void keep(const struct quota_charge *charge, struct quota_charge_bucket *b,
		 struct sl_now now)
{
	const struct ledger *ledger = charge->ledger;

	if (!b->cluster || !b->cost)
		return;
	if (b->own)
		quota_charge_own(ledger, b->own, &b->ref, b->cost, time_of(charge, b, now));
	if (!b->needs_store)
		return;
	/* Done and not passed: another part of the request was refused with it. */
	b->unflushed = !is_passed(b);
	if (b->unflushed && b->command->state != COMMAND_LATE) {
		quota_add_unflushed(ledger->quotas, &b->ref, b->cost, now);
		b->unflushed = false;
	}
	if (b->unflushed)
		quota_add_overdue(ledger->quotas, b->ref.key, b->cost);
	/* Requests admitted by `open` do not count here, so they cause no refusals later. */
	if (!is_done(b) && b->on_failure != STORE_FAILS_LOCAL && !is_log(b))
		refund_here(charge, b, time_of(charge, b, now));
}

static void refund(const struct quota_charge *charge, struct quota_charge_bucket *b,
		   struct sl_now now)
{
	b->refund =
		b->needs_store && b->cost && (b->command->state == COMMAND_LATE || is_passed(b));
	if (b->covered)
		quota_release(charge->ledger->quotas, &b->ref, b->cost);
	/* A reply with a refusal does not contain the charge. */
	if (b->needs_store && is_done(b) && !is_passed(b) && !is_log(b))
		return;
	refund_here(charge, b, time_of(charge, b, now));
}

static void settle_states(struct quota_charging *charging, struct sl_now now)
{
	struct quota_charge *charge = &charging->charge;
	struct counters *counters = charge->ledger->counters;
	struct counters_locks locks;
	bool admitted;

	store_begin(counters, &locks, charging->state, charging->state_count);
	for (u32 i = 0; i < charge->bucket_count; i++)
		counters_look(counters, charge->bucket[i].here,
			      time_of(charge, &charge->bucket[i], now));
	for (u32 i = 0; i < charge->bucket_count; i++) {
		struct quota_charge_bucket *b = &charge->bucket[i];

		if (!b->needs_store)
			continue;
		judge(charge, b, now);
		if (apply_reply(charge, b, now))
			judge_retry(charge, b, now);
	}
	charge->result = result_of_all(charge);
	admitted = charge->result == QUOTA_PASSED && !charging->cancelled;
	for (u32 i = 0; i < charge->bucket_count && !charge->peek; i++) {
		if (admitted && is_kept(charge, i))
			keep(charge, &charge->bucket[i], now);
		else
			refund(charge, &charge->bucket[i], now);
	}
	counters_end(&locks);
	charging->settled = true;
}

/* ------------------------------------------------------------------ refunds in Redis */

/* Refunds the charges of one command; the request may be freed before the reply. */
struct refund_command {
	struct cluster_store_request request; /* first */
	const struct ledger *ledger;
	struct quota_ref ref[]; /* one for each bucket; the buckets follow them */
};

static void on_refunded(struct cluster_store_request *request, enum cluster_store_outcome outcome)
{
	struct refund_command *command = (struct refund_command *)request;
	const struct ledger *ledger = command->ledger;
	struct sl_now now = counters_now(ledger->counters);

	if (outcome == CLUSTER_STORE_LATE)
		return;
	for (u32 i = 0; i < request->count; i++)
		quota_reply(ledger->counters, ledger->quotas, &command->ref[i], &request->bucket[i],
			    request, outcome, now);
	free(command);
}

/* Without a connection or memory the refund is left to the cluster's thread. */
static void refund_command(const struct quota_charge *charge, const struct quota_charge_command *of,
			   struct sl_now now)
{
	struct cluster_store *store = charge->store;
	const struct ledger *ledger = charge->ledger;
	u32 most = of->request.count, count = 0;
	struct refund_command *command =
		calloc(1, sizeof(*command) + most * (sizeof(struct quota_ref) +
						     sizeof(struct cluster_store_bucket)));
	struct cluster_store_bucket *bucket =
		command ? (struct cluster_store_bucket *)&command->ref[most] : NULL;

	for (u32 i = 0; i < charge->bucket_count; i++) {
		struct quota_charge_bucket *b = &charge->bucket[i];

		if (b->command != of || !b->refund)
			continue;
		b->refund = false;
		if (!command) {
			quota_add_unflushed(ledger->quotas, &b->ref, -(s64)b->cost, now);
			continue;
		}
		bucket[count] = (struct cluster_store_bucket){
			.key = b->ref.key,
			.tag = b->ref.tag,
			.def = b->here->def,
			.kind = CLUSTER_STORE_REFUND,
			.cost = b->cost,
			.window = b->sent->state.window,
		};
		command->ref[count] = b->ref;
		command->ref[count].def = &bucket[count].def;
		quota_prepare(ledger->quotas, &b->ref, &bucket[count++], now);
	}
	if (!count) {
		free(command);
		return;
	}
	command->ledger = ledger;
	command->request = (struct cluster_store_request){
		.bucket = bucket,
		.count = count,
		.deadline_ns = charge->deadline_ns,
		.done = on_refunded,
		.late = on_refunded,
	};
	if (store->ops->send(store, &command->request) >= 0)
		return;
	for (u32 i = 0; i < count; i++) {
		quota_reply(ledger->counters, ledger->quotas, &command->ref[i], &bucket[i],
			    &command->request, CLUSTER_STORE_DOWN, now);
		quota_add_unflushed(ledger->quotas, &command->ref[i], -(s64)bucket[i].cost, now);
	}
	free(command);
}

/* ------------------------------------------------------------------ commands and replies */

static void settle(struct quota_charging *charging)
{
	struct sl_now now = counters_now(charging->charge.ledger->counters);

	settle_states(charging, now);
	for (u32 i = 0; i < charging->command_count; i++)
		if (charging->command[i].state == COMMAND_DONE)
			refund_command(&charging->charge, &charging->command[i], now);
}

static void release(struct quota_charging *charging)
{
	if (charging->left || !charging->settled)
		return;
	__atomic_sub_fetch(charging->charge.pending, 1, __ATOMIC_RELAXED);
	free(charging);
}

static enum command_state state_of(enum cluster_store_outcome outcome)
{
	return outcome == CLUSTER_STORE_DONE   ? COMMAND_DONE
	       : outcome == CLUSTER_STORE_LATE ? COMMAND_LATE
					       : COMMAND_DOWN;
}

static void on_done(struct cluster_store_request *request, enum cluster_store_outcome outcome)
{
	struct quota_charge_command *command = (struct quota_charge_command *)request;
	struct quota_charging *charging = command->charging;

	command->state = state_of(outcome);
	charging->left -= outcome != CLUSTER_STORE_LATE;
	if (--charging->open)
		return;
	settle(charging);
	if (!charging->cancelled)
		charging->charge.done(charging->charge.arg, &charging->charge);
	release(charging);
}

static void settle_late(struct quota_charging *charging, struct quota_charge_command *command,
			enum cluster_store_outcome outcome, struct sl_now now)
{
	const struct ledger *ledger = charging->charge.ledger;
	bool charged = outcome == CLUSTER_STORE_DONE && command->request.passed;

	for (u32 i = 0; i < charging->charge.bucket_count; i++) {
		struct quota_charge_bucket *b = &charging->charge.bucket[i];

		if (b->command != command)
			continue;
		quota_reply(ledger->counters, ledger->quotas, &b->ref, b->sent, &command->request,
			    outcome, now);
		b->refund &= charged;
		if (b->unflushed)
			quota_add_overdue(ledger->quotas, b->ref.key, -(s64)b->cost);
		if (b->unflushed && !charged)
			quota_add_unflushed(ledger->quotas, &b->ref, b->cost, now);
		b->unflushed = false;
	}
}

static void on_late(struct cluster_store_request *request, enum cluster_store_outcome outcome)
{
	struct quota_charge_command *command = (struct quota_charge_command *)request;
	struct quota_charging *charging = command->charging;
	struct sl_now now = counters_now(charging->charge.ledger->counters);

	charging->left--;
	/* Other commands are open, so this reply is still in time. */
	if (!charging->settled) {
		command->state = state_of(outcome);
		return;
	}
	settle_late(charging, command, outcome, now);
	refund_command(&charging->charge, command, now);
	release(charging);
}

static void send_commands(struct quota_charging *charging)
{
	const struct quota_charge *charge = &charging->charge;
	struct cluster_store *store = charge->store;

	for (u32 i = 0; i < charge->bucket_count; i++) {
		const struct quota_charge_bucket *b = &charge->bucket[i];

		if (b->needs_store)
			quota_prepare(charge->ledger->quotas, &b->ref, b->sent, charge->now);
	}
	for (u32 i = 0; i < charging->command_count; i++) {
		struct quota_charge_command *command = &charging->command[i];

		command->request.deadline_ns = charge->deadline_ns;
		command->request.done = on_done;
		command->request.late = on_late;
		command->state = COMMAND_DOWN;
		if (!store || !store->ops->up(store, command->slot) ||
		    store->ops->send(store, &command->request) < 0)
			continue;
		command->state = COMMAND_SENT;
		charging->open++;
		charging->left++;
	}
}

/* ------------------------------------------------------------------ made from a request */

/* Each bucket joins the command of its hash slot and group. */
static void group_buckets(struct quota_charging *charging)
{
	struct cluster_store *store = charging->charge.store;

	for (u32 i = 0; i < charging->charge.bucket_count; i++) {
		struct quota_charge_bucket *b = &charging->charge.bucket[i];
		struct quota_charge_command *command = charging->command;
		struct quota_charge_command *end = command + charging->command_count;
		u32 slot;

		if (!b->needs_store)
			continue;
		slot = store ? store->ops->slot_of(store, b->ref.tag) : 0;
		while (command < end && (command->slot != slot || command->group != b->group ||
					 command->request.count == CLUSTER_STORE_BUCKETS_MAX))
			command++;
		if (command == end) {
			*command = (struct quota_charge_command){
				.charging = charging,
				.slot = slot,
				.group = b->group,
			};
			charging->command_count++;
		}
		b->command = command;
		command->request.count++;
	}
}

/* The buckets of a command are adjacent. */
static void fill_sent(struct quota_charging *charging)
{
	struct cluster_store_bucket *next = charging->sent;

	for (u32 i = 0; i < charging->command_count; i++) {
		charging->command[i].request.bucket = next;
		for (u32 k = 0; k < charging->charge.bucket_count; k++) {
			struct quota_charge_bucket *b = &charging->charge.bucket[k];

			if (b->command != &charging->command[i])
				continue;
			b->sent = next++;
			*b->sent = (struct cluster_store_bucket){
				.key = b->ref.key,
				.tag = b->ref.tag,
				.def = b->here->def,
				.kind = CLUSTER_STORE_CHARGE,
				.cost = b->cost,
				.hold = b->hold,
				.queued = b->queued,
			};
		}
	}
}

/* One block of memory: the arrays with 8-byte alignment first. */
static struct quota_charging *charging_alloc(const struct quota_charge *charge)
{
	u32 buckets = charge->bucket_count, parts = charge->part_count, listed = 0;
	struct quota_charging *charging;
	u16 *of;

	for (u32 i = 0; i < parts; i++)
		listed += charge->part[i].count;
	charging = calloc(
		1, sizeof(*charging) + parts * sizeof(*charge->part) +
			   buckets * (sizeof(*charge->bucket) + sizeof(*charging->command) +
				      sizeof(*charging->sent) + 2 * sizeof(*charging->state)) +
			   listed * sizeof(*of));
	if (!charging)
		return NULL;
	charging->charge = *charge;
	charging->charge.bucket = (void *)(charging + 1);
	charging->command = (void *)(charging->charge.bucket + buckets);
	charging->sent = (void *)(charging->command + buckets);
	charging->state = (void *)(charging->sent + buckets);
	charging->charge.part = (void *)(charging->state + 2 * buckets);
	of = (void *)(charging->charge.part + parts);
	for (u32 i = 0; i < parts; i++) {
		struct quota_charge_part *part = &charging->charge.part[i];

		*part = charge->part[i];
		part->of = of;
		for (u32 k = 0; k < part->count; k++)
			*of++ = part->bucket[k];
	}
	return charging;
}

static void copy_bucket(struct quota_charging *charging, const struct quota_charge_bucket *from,
			struct quota_charge_bucket *to)
{
	*to = *from;
	to->here = &charging->state[charging->state_count++];
	*to->here = *from->state;
	to->ref.def = &to->here->def;
	if (!from->own_key)
		return;
	to->own = &charging->state[charging->state_count++];
	to->own->key = from->own_key;
}

int quota_charge(struct quota_charge *charge, struct quota_charging **ret)
{
	struct quota_charging *charging = charging_alloc(charge);

	if (!charging)
		return -ENOMEM;
	for (u32 i = 0; i < charge->bucket_count; i++)
		copy_bucket(charging, &charge->bucket[i], &charging->charge.bucket[i]);
	group_buckets(charging);
	fill_sent(charging);
	__atomic_add_fetch(charge->pending, 1, __ATOMIC_RELAXED);
	send_commands(charging);
	*ret = charging;
	if (charging->open)
		return 0;
	*ret = NULL;
	settle(charging);
	charge->result = charging->charge.result;
	for (u32 i = 0; i < charge->bucket_count; i++)
		charge->bucket[i] = charging->charge.bucket[i];
	release(charging);
	return 0;
}

void quota_charge_cancel(struct quota_charging *charging)
{
	charging->cancelled = true;
}
