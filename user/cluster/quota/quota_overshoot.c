// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * quota_overshoot.c - the excess of a rule over its limit, by the counts in Redis.
 *
 * Each reply contains the excess of its bucket. For each rule the largest of the windows that end
 * in the same five minutes is kept for an hour, as a ratio to the limit. Redis counts exactly, and
 * includes flushes after the end of a window, so the last reply for a window has its whole excess.
 * Each node has the excess of the buckets that it sent commands for.
 */
#include "cluster/quota/quota_private.h"
#include "limiter/algorithm.h"

#define SLOT_NS (300 * SL_NS_PER_SEC)
#define HOUR_NS (3600 * SL_NS_PER_SEC)

static bool is_over(const struct quota_excess *excess, u64 now_ns)
{
	return (excess->slot + 1) * SLOT_NS + HOUR_NS <= now_ns;
}

/* The record of the rule; a new one may replace a record whose values are all too old. */
static struct quota_overshoot *record_of(struct quotas *quotas, u32 metric, u64 now_ns)
{
	u32 first = (metric * 0x9e3779b1U) % OVERSHOOT_RULES;
	struct quota_overshoot *unused = NULL;

	for (u32 i = 0; i < OVERSHOOT_RULES; i++) {
		struct quota_overshoot *o = &quotas->overshoot[(first + i) % OVERSHOOT_RULES];
		bool over = true;

		if (o->metric == metric + 1)
			return o;
		for (u32 k = 0; o->metric && over && k < OVERSHOOT_SLOTS; k++)
			over = is_over(&o->excess[k], now_ns);
		if (over && !unused)
			unused = o;
		if (!o->metric)
			break;
	}
	if (unused)
		*unused = (struct quota_overshoot){ .metric = metric + 1 };
	return unused;
}

static u64 end_of(const struct cluster_store_bucket *bucket, u64 store_us)
{
	u64 window = bucket->late ? bucket->window : bucket->state.window;
	const struct spec_def *def = &bucket->def;

	if (quota_calendar(def))
		return calendar_begin_ns(quota_calendar(def), window + 1);
	if (quota_is_aligned(def))
		return (window + 1) * def->period_ns;
	if (algorithm_is_anchored(def->algo))
		return window * 1000 + def->period_ns;
	return store_us * 1000;
}

void quota_keep_excess(struct quotas *quotas, u32 metric, const struct cluster_store_bucket *bucket,
		       u64 store_us)
{
	struct quota_excess *best, *e;
	struct quota_overshoot *o;
	u64 now_ns = store_us * 1000, slot;
	double ratio;

	ratio = (double)bucket->excess / quota_capacity(&bucket->def);
	/* The overshoot of a soft part is a ratio to its limit. */
	if (bucket->def.soft_permille)
		ratio = ratio * bucket->def.soft_permille / 1000;
	slot = end_of(bucket, store_us) / SLOT_NS;
	pthread_mutex_lock(&quotas->overshoot_lock);
	o = record_of(quotas, metric, now_ns);
	best = o ? o->excess : NULL;
	for (u32 k = 0; o && k < OVERSHOOT_SLOTS; k++) {
		e = &o->excess[k];
		if (is_over(e, now_ns))
			e->ratio = 0;
		if (e->slot == slot && e->ratio > 0) {
			best = e;
			break;
		}
		if (e->ratio < best->ratio)
			best = e;
	}
	if (best && ratio > best->ratio)
		*best = (struct quota_excess){ slot, ratio };
	pthread_mutex_unlock(&quotas->overshoot_lock);
}

double quotas_overshoot(const struct quotas *quotas, u32 metric)
{
	struct quotas *mutable = (struct quotas *)quotas;
	u64 now_ns = __atomic_load_n(&quotas->store_ns, __ATOMIC_RELAXED);
	u32 first = (metric * 0x9e3779b1U) % OVERSHOOT_RULES;
	double ratio = 0;

	pthread_mutex_lock(&mutable->overshoot_lock);
	for (u32 i = 0; i < OVERSHOOT_RULES; i++) {
		const struct quota_overshoot *o = &quotas->overshoot[(first + i) % OVERSHOOT_RULES];

		if (!o->metric)
			break;
		if (o->metric != metric + 1)
			continue;
		for (u32 k = 0; k < OVERSHOOT_SLOTS; k++)
			if (!is_over(&o->excess[k], now_ns) && o->excess[k].ratio > ratio)
				ratio = o->excess[k].ratio;
		break;
	}
	pthread_mutex_unlock(&mutable->overshoot_lock);
	return ratio;
}
