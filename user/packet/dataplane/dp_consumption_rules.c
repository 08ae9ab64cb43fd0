// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dp_consumption_rules.c - see dp_consumption.h: the counters, and the buckets beside them with
 * their parameters.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "packet/dataplane/dp_consumption_private.h"
#include "config/override.h"

/* ------------------------------------------------------------------ groups */

static u64 units_in(const struct sl_params *p, u64 ns)
{
	if (sl_is_bucket(p))
		return p->mult ? (u64)(((unsigned __int128)ns * SL_TICKS_PER_NS
					<< (p->shift & 63)) /
				       p->mult)
			       : 0;
	return p->window_ns ? (u64)((unsigned __int128)p->capacity * ns / p->window_ns) : 0;
}

void consumption_find_least(struct dp_consumption *u, struct group *g)
{
	u64 least = g->worth / 8 / u->nodes;

	g->least = least ? least : 1;
}

static void add_target(struct dp_consumption *u, struct group *g, const struct sl_rules *rules,
		       const struct sl_limit *meter, u32 index, u32 refusals)
{
	u64 minute = units_in(&meter->params, 60 * SL_NS_PER_SEC);
	u64 worth = meter->params.capacity < minute ? meter->params.capacity : minute;

	g->refusals[g->meters] = refusals;
	if (refusals)
		u->group_of_limit_id[refusals] = (u16)u->groups;
	g->meter[g->meters++] = index;
	u->params[index] = meter->params;
	u->meter_limit_id[index] = meter->slot;
	u->elastic[index] = meter->elastic
				    ? rules->limits[meter->head % SL_LIMITS_MAX].slot % SL_LIMIT_IDS
				    : SL_LIMIT_IDS;
	u->of_bytes[index] = meter->unit == SL_UNIT_BYTES;
	if (g->meters == 1 || worth < g->worth)
		g->worth = worth ? worth : 1;
}

static bool goes_with(const struct sl_limit *counter, const struct sl_limit *meter)
{
	return !meter->counter && meter->unit == counter->unit &&
	       !memcmp(meter->prefix, counter->prefix, sizeof(meter->prefix));
}

/* `counter`, which may be of sources with overrides, and the meters beside it. */
static void add_group(struct dp_consumption *u, const struct sl_rules *rules, u32 head,
		      const struct sl_limit *counter, bool overridden)
{
	struct group *g = &u->group[u->groups];

	*g = (struct group){ .slot = counter->slot, .overridden = overridden };
	for (u32 i = head; i < SL_METERS_MAX && g->meters < RATES_MAX; i = rules->limits[i].next) {
		const struct sl_limit *meter = &rules->limits[i];
		const struct sl_limit *refusals = &rules->limits[meter->refusals];

		if (!goes_with(counter, meter) ||
		    (overridden && meter->overridden >= SL_METERS_MAX))
			continue;
		if (overridden)
			add_target(u, g, rules, &rules->limits[meter->overridden],
				   meter->overridden,
				   meter->refusals ? rules->limits[refusals->overridden].slot : 0);
		else
			add_target(u, g, rules, meter, i, meter->refusals ? refusals->slot : 0);
	}
	if (!g->meters)
		return;
	consumption_find_least(u, g);
	u->group_of_limit_id[counter->slot] = (u16)u->groups++;
}

static void add_limit(struct dp_consumption *u, const struct sl_rules *rules, u32 head)
{
	for (u32 i = head; i < SL_METERS_MAX; i = rules->limits[i].next) {
		const struct sl_limit *meter = &rules->limits[i];

		if (!meter->counter || u->groups + 2 > GROUPS_MAX)
			continue;
		add_group(u, rules, head, meter, false);
		if (meter->overridden < SL_METERS_MAX)
			add_group(u, rules, head, &rules->limits[meter->overridden], true);
	}
}

/* ------------------------------------------------------------------ overrides */

/*
 * A bucket's key does not show its source or rates. But an override no wider than the limit's
 * grouping has one bucket, whose key can be computed. (For wider ones the smallest of the limit's
 * overrides is used: charges are too high rather than too low.)
 */
static struct own *own_find(const struct dp_consumption *u, u64 key)
{
	for (u64 i = consumption_hash(key); u->own; i++) {
		struct own *own = &u->own[i & (u->owns - 1)];

		if (!own->key || own->key == key)
			return own;
	}
	return NULL;
}

static void own_add(struct dp_consumption *u, const struct sl_image *image, u32 meter,
		    const struct override_def *def)
{
	u32 len = image->rules->limits[meter].prefix[def->src.family];
	struct dp_bucket bucket;
	struct own *own;

	if (def->removed || len == SL_PREFIX_NONE || def->src.len < len ||
	    !dp_bucket_of(image, meter, &def->src, def->src.len, &bucket))
		return;
	own = own_find(u, bucket.key);
	if (own)
		*own = (struct own){ bucket.key, bucket.params };
}

static int owns_make(struct dp_consumption *u, const struct sl_image *image,
		     const struct policy *policy)
{
	const struct sl_limit *limits = image->rules->limits;
	u64 count = 0;

	for (size_t i = 0; i < policy->limit_count; i++)
		if (policy->limit[i].terms.cluster)
			count += policy->limit[i].override_count * RATES_MAX * PREFIX_HIERARCHY_MAX;
	free(u->own);
	u->own = NULL;
	if (!count)
		return 0;
	u->owns = consumption_power_of_two(2 * count);
	u->own = calloc(u->owns, sizeof(*u->own));
	if (!u->own)
		return -ENOMEM;
	for (size_t i = 0; i < policy->limit_count; i++) {
		const struct limit_def *def = &policy->limit[i];

		for (u32 meter = def->terms.cluster ? (u32)i : SL_NO_METER; meter < SL_METERS_MAX;
		     meter = limits[meter].next)
			for (size_t k = 0; k < def->override_count && !limits[meter].counter; k++)
				own_add(u, image, meter, &def->override[k]);
	}
	return 0;
}

/* As the data path does it (bpf/elastic.h): what others admitted counts at this node's scale. */
static void scale_params(const struct dp_consumption *u, u32 meter, struct sl_now now,
			 struct sl_params *params)
{
	const struct sl_elastic *elastic;

	if (u->elastic[meter] == SL_LIMIT_IDS)
		return;
	elastic = &u->dp->elastic[u->elastic[meter]];
	if (elastic->scale == SL_ELASTIC_ONE || elastic->scale < SL_SCALE_MIN ||
	    elastic->scale > SL_SCALE_MAX || now.mono_ns >= elastic->valid_until_ns)
		return;
	sl_scale_params(params, elastic->scale, elastic->inverse,
			u->of_bytes[meter] ? SL_FRAME_LARGE : 1);
}

void consumption_bucket(const struct dp_consumption *u, const struct group *g, u32 n, u64 hash,
			struct sl_now now, struct dp_bucket *ret)
{
	u64 key = sl_key(u->meter_limit_id[g->meter[n]], hash);
	const struct own *own = g->overridden ? own_find(u, key) : NULL;

	ret->key = key;
	ret->params = own && own->key ? own->params : u->params[g->meter[n]];
	scale_params(u, g->meter[n], now, &ret->params);
}

/* ------------------------------------------------------------------ rules */

int dp_consumption_rules(struct dp_consumption *u, const struct sl_image *image,
			 const struct policy *policy, struct sl_now now)
{
	const struct sl_rules *rules = image->rules;
	int r;

	u->groups = 0;
	memset(u->group_of_limit_id, 0xff, sizeof(u->group_of_limit_id));
	r = owns_make(u, image, policy);
	if (r < 0)
		return r;
	for (u32 i = 0; i < rules->limits_count; i++)
		add_limit(u, rules, i);
	if (u->groups && !u->begun)
		consumption_begin(u, now);
	return 0;
}
