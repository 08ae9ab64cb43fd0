// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * decide_shared.c - buckets that many nodes share, as far as this node can say.
 *
 * Their first word is what all nodes have used, as the store said last, and what was charged here
 * since. It refuses by itself, but for one call a second (recall.h). What it lets through may pass
 * where share.h has it covered; else the store is to be asked, and remote.c goes on.
 *
 * A sliding log's word is this node's own requests: what those alone refuse is refused, in the same
 * way; beyond it only the store knows, and what it refused is recalled.
 */
#include "request/engine/decide_private.h"

struct share_ref shared_ref(const struct decision *d, const struct bucket *b)
{
	const struct store_ref *ref = &d->ref[b->ref];
	bool log = ref->def.algo == HTTP_SLIDING_LOG;

	return (struct share_ref){
		.key = ref->key,
		.tag = b->tag,
		.def = &ref->def,
		.consistency = log ? CONSISTENCY_STRICT : b->rule->consistency,
		.every_ns = b->rule->consistency_ns,
		.metric = b->rule->metric,
	};
}

static bool is_up(const struct decision *d, const struct bucket *b)
{
	const struct shared_ops *ops = d->shared ? d->shared->ops : NULL;

	return ops && ops->up(d->shared, ops->place(d->shared, b->tag));
}

void shared_look(struct decision *d, struct bucket *b)
{
	const struct store_ref *ref = &d->ref[b->ref];

	if (!d->recall)
		return;
	if (ref->def.algo == HTTP_SLIDING_LOG && !b->over) {
		b->wait_ns = recall_wait(d->recall, ref->key, b->cost, d->now.mono_ns);
		b->over = b->wait_ns;
		/* Who is refused has less than he asked for. */
		b->told = b->over;
		b->told_used = b->view.p.capacity >= b->cost ? b->view.p.capacity - b->cost + 1 : 0;
	}
	if (!b->over || b->wait_ns == ~0ULL || !is_up(d, b) ||
	    !recall_due(d->recall, ref->key, d->now.mono_ns))
		return;
	b->over = false;
	b->told = false;
	b->wait_ns = 0;
	b->retries = true;
}

static void take_one(struct decision *d, struct bucket *b)
{
	struct share_ref ref = shared_ref(d, b);
	u64 cost = d->call->peek ? 0 : b->cost;
	bool ask = true;

	/* Who only looks is answered by what is known where nobody else can say. */
	if (!cost)
		ask = (b->retries || ref.consistency == CONSISTENCY_STRICT) && is_up(d, b);
	/* Nothing is to be written back to a store that is away: the rule says what holds then. */
	else if (!b->retries && (ref.consistency != CONSISTENCY_WRITE_BACK || is_up(d, b)))
		ask = share_take(d->store->shares, &ref, cost, d->now) == SHARE_ASK;
	b->asks = ask;
	b->covered = cost && !ask;
	d->asks |= ask;
}

void shared_take(struct decision *d)
{
	if (!d->recall || d->call->report)
		return;
	for (u32 i = 0; i < d->part_count; i++) {
		const struct part *part = &d->part[i];

		for (u32 k = 0; !part->over && k < part->count; k++) {
			struct bucket *b = &d->bucket[part->bucket[k]];

			if (b->shared && !b->asks && !b->covered)
				take_one(d, b);
		}
	}
}

void shared_charge_own(struct decision *d, struct bucket *b)
{
	struct store_ref *own = &d->ref[b->ref + 1];
	struct spec_view view;

	if (b->words < 2 || !own->spec || !(own->present || own->claimed))
		return;
	spec_view_init(&view, own->spec, 0, 0);
	store_put(d->store, own, spec_force(&view, own->word, decision_now(d, b), b->cost));
}

void shared_owe(struct decision *d, struct bucket *b, bool charged)
{
	struct share_ref ref = shared_ref(d, b);

	if (charged && b->cost) {
		share_owe(d->store->shares, &ref, b->cost, d->then);
		shared_charge_own(d, b);
	}
	if (b->refund)
		share_owe(d->store->shares, &ref, -(s64)b->refund, d->then);
}

/* ------------------------------------------------------------------ the second half */

/* What became of it. */
static void shared_result(struct bucket *b, const struct decide_result *result)
{
	b->told = result->told;
	b->told_used = result->told_used;
	b->away = result->away;
	b->over = result->over;
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

void decide_again(struct decision *d, const struct ruleset *rules,
		  const struct decide_result *result, u32 count, enum call_code code,
		  struct answer *ret, struct decide_wait *ret_wait)
{
	decide_collect(d, rules);
	store_begin(d->store, &d->locks, d->ref, d->ref_count);
	for (u32 i = 0; i < d->bucket_count; i++) {
		struct bucket *b = &d->bucket[i];
		const struct decide_result *was = result_of(result, count, d->ref[b->ref].key);

		b->decided = !d->call->peek;
		if (was)
			shared_result(b, was);
		decide_look(d, b, NULL);
		b->full |= was && was->full;
	}
	if (decide_refused(d) && d->call->peek)
		code = CALL_OVER_LIMIT;
	decide_answer(d, code, ret);
	store_end(&d->locks);
	if (code == CALL_CLOSED || code == CALL_ERROR)
		ret->retry_after_ns = DECIDE_CLOSED_WAIT_NS;
	decide_find_wait(d, code, ret_wait);
}
