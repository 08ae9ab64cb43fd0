// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * decide_cluster.c - buckets that many nodes share, as far as this node can say.
 *
 * Their first word is what all nodes have used, as the store said last, and what was charged here
 * since. It refuses by itself, but for one call a second (refusal_cache.h). What it lets through
 * may pass where quota.h has it covered; else the store is to be asked, and remote.c goes on.
 *
 * A sliding log's word is this node's own requests: what those alone refuse is refused, in the same
 * way; beyond it only the store knows, and what it refused is recalled.
 */
#include "request/engine/decide_private.h"

struct quota_ref decide_cluster_ref(const struct decision *d, const struct bucket *b)
{
	const struct counters_ref *ref = &d->ref[b->ref];
	bool log = ref->def.algo == HTTP_SLIDING_LOG;

	return (struct quota_ref){
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
	const struct cluster_store_ops *ops = d->shared ? d->shared->ops : NULL;

	return ops && ops->up(d->shared, ops->slot_of(d->shared, b->tag));
}

void decide_cluster_look(struct decision *d, struct bucket *b)
{
	const struct counters_ref *ref = &d->ref[b->ref];

	if (!d->refusal_cache)
		return;
	if (ref->def.algo == HTTP_SLIDING_LOG && !b->over) {
		b->wait_ns =
			refusal_cache_wait(d->refusal_cache, ref->key, b->cost, d->now.mono_ns);
		b->over = b->wait_ns;
		/* Who is refused has less than he asked for. */
		b->from_store = b->over;
		b->reply_used =
			b->view.p.capacity >= b->cost ? b->view.p.capacity - b->cost + 1 : 0;
	}
	if (!b->over || b->wait_ns == ~0ULL || !is_up(d, b) ||
	    !refusal_cache_due(d->refusal_cache, ref->key, d->now.mono_ns))
		return;
	b->over = false;
	b->from_store = false;
	b->wait_ns = 0;
	b->retries = true;
}

static void take_one(struct decision *d, struct bucket *b)
{
	struct quota_ref ref = decide_cluster_ref(d, b);
	u64 cost = d->request->peek ? 0 : b->cost;
	bool ask = true;

	/* Who only looks is answered by what is known where nobody else can say. */
	if (!cost)
		ask = (b->retries || ref.consistency == CONSISTENCY_STRICT) && is_up(d, b);
	/* Nothing is to be written back to a store that is away: the rule says what holds then. */
	else if (!b->retries && (ref.consistency != CONSISTENCY_WRITE_BACK || is_up(d, b)))
		ask = quota_acquire(d->quotas, &ref, cost, d->now) == QUOTA_NOT_COVERED;
	b->needs_store = ask;
	b->covered = cost && !ask;
	d->needs_store |= ask;
}

void decide_cluster_acquire(struct decision *d)
{
	if (!d->refusal_cache || d->request->report)
		return;
	for (u32 i = 0; i < d->part_count; i++) {
		const struct part *part = &d->part[i];

		for (u32 k = 0; !part->over && k < part->count; k++) {
			struct bucket *b = &d->bucket[part->bucket[k]];

			if (b->shared && !b->needs_store && !b->covered)
				take_one(d, b);
		}
	}
}

void decide_cluster_charge_own(struct decision *d, struct bucket *b)
{
	struct counters_ref *own = &d->ref[b->ref + 1];
	struct spec_view view;

	if (b->refs < 2 || !own->spec || !(own->present || own->claimed))
		return;
	spec_view_init(&view, own->spec, 0, 0);
	counters_put(d->counters, own,
		     spec_force(&view, own->bucket_state, decision_now(d, b), b->cost));
}

void decide_cluster_flush(struct decision *d, struct bucket *b, bool charged)
{
	struct quota_ref ref = decide_cluster_ref(d, b);

	if (charged && b->cost) {
		quota_add_unflushed(d->quotas, &ref, b->cost, d->then);
		decide_cluster_charge_own(d, b);
	}
	if (b->refund)
		quota_add_unflushed(d->quotas, &ref, -(s64)b->refund, d->then);
}

/* ------------------------------------------------------------------ the second half */

/* What became of it. */
static void decide_cluster_result(struct bucket *b, const struct decide_result *result)
{
	b->from_store = result->from_store;
	b->reply_used = result->reply_used;
	b->unavailable = result->unavailable;
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
		  const struct decide_result *result, u32 count, enum response_code code,
		  struct response *ret, struct decide_delay *ret_wait)
{
	decide_collect(d, rules);
	store_begin(d->counters, &d->locks, d->ref, d->ref_count);
	for (u32 i = 0; i < d->bucket_count; i++) {
		struct bucket *b = &d->bucket[i];
		const struct decide_result *was = result_of(result, count, d->ref[b->ref].key);

		b->decided = !d->request->peek;
		if (was)
			decide_cluster_result(b, was);
		decide_look(d, b, NULL);
		b->full |= was && was->full;
	}
	if (decide_refused(d) && d->request->peek)
		code = RESPONSE_OVER_LIMIT;
	decide_response(d, code, ret);
	counters_end(&d->locks);
	if (code == RESPONSE_CLOSED || code == RESPONSE_ERROR)
		ret->retry_after_ns = DECIDE_CLOSED_WAIT_NS;
	decide_find_delay(d, code, ret_wait);
}
