/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * compile_limit.c - one limit's values, or one of its overrides, compiled into a copy of an image:
 * its meters keep their places and limit_ids; prefixes, other overrides, dimensions and all other
 * limits stay. Where that is not so (a change that adds or removes a meter, or gives one another
 * kind), the whole is to be compiled.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/bitmap.h"
#include "lib/spare.h"
#include "packet/compile/compile.h"
#include "packet/compile/limit_ids.h"
#include "packet/compile/meters.h"
#include "packet/compile/prefix_index.h"

static struct spare rules_spare;

struct sl_rules *image_rules_new(void)
{
	return spare_take(&rules_spare, sizeof(struct sl_rules));
}

void image_rules_free(struct sl_rules *rules)
{
	spare_put(&rules_spare, rules, sizeof(*rules));
}

/* A limit's meters but the first are one behind the other, in the order in which they were
 * taken. */
static bool is_further(const struct sl_rules *rules, u32 index, u32 head)
{
	return index < SL_METERS_MAX && rules->limits[index].slot &&
	       rules->limits[index].head == head;
}

/* The same meter with other values. */
static bool same_meter(const struct sl_limit *a, const struct sl_limit *b)
{
	return a->next == b->next && a->soft == b->soft && a->full == b->full &&
	       a->overridden == b->overridden && a->ban == b->ban && a->refusals == b->refusals &&
	       a->of_overrides == b->of_overrides && limit_kind(a) == limit_kind(b);
}

static bool rebind(const struct sl_limit *was, struct sl_limit *meter,
		   struct sl_limit_id_info *slots)
{
	if (!same_meter(was, meter))
		return false;
	meter->slot = was->slot;
	if (!meter->of_overrides)
		limit_id_set_params(&slots[meter->slot], &meter->params);
	return true;
}

static bool compile(struct meters *meters, const struct limit_def *def, u32 index,
		    const struct sl_rules *before, struct sl_limit_id_info *slots)
{
	u32 first = SL_METER_FURTHER;
	bool same;

	while (first < SL_METERS_MAX && !is_further(before, first, index))
		first++;
	meters->next = first;
	same = !meters_of_limit(meters, def, index) &&
	       rebind(&before->limits[index], &meters->meter[index], slots);
	for (u32 i = first; same && i < meters->next; i++)
		same = is_further(before, i, index) &&
		       rebind(&before->limits[i], &meters->meter[i], slots);
	return same && !is_further(before, meters->next, index);
}

/* Without any, the limit has no meters for them. */
static bool has_overrides(const struct limit_def *def)
{
	size_t i = 0;

	while (i < def->override_count && def->override[i].removed)
		i++;
	return i < def->override_count;
}

int image_change_limit(const struct limit_def *def, u32 index, const struct override_def *changed,
		       bool counters, struct compile_env *env, struct sl_image **ret)
{
	const struct sl_rules *before = env->before->rules;
	bool drops = limit_drops(def), dropped = bitmap_has(&before->dropping, index);
	struct sl_image *image = malloc(sizeof(*image));
	struct sl_rules *rules = image_rules_new();
	struct meters meters = {
		.name = malloc(SL_METERS_MAX * sizeof(*meters.name)),
		/* Not env->cpus: the other limits' leases, and which CPUs have any, are of
		 * these. */
		.cpus = before->lease_cpus,
		.max_frame = env->max_frame,
		.counters = counters,
		.before = before->limits,
		.changed = changed,
	};
	struct override_index *overrides = env->before->overrides;
	bool made = false;

	/* The lengths of bans are of limits that drop. */
	if (!image || !rules || !meters.name || (drops != dropped && def->ban.after) ||
	    (changed && !has_overrides(def)))
		goto out;
	memcpy(rules, before, sizeof(*rules));
	rules->generation = env->generation;
	bitmap_put(&rules->dropping, index, drops);
	meters.meter = rules->limits;
	meters.ban = rules->ban;
	made = compile(&meters, def, index, before, env->slots) &&
	       (!changed ||
		!override_index_change(&meters.overrides, changed, overrides, rules, &overrides));
	if (!made)
		goto out;
	*image = *env->before;
	image->rules = rules;
	image->prefixes->refs++;
	image->overrides = overrides;
	image->overrides->users += !changed;
	if (changed)
		image->pfx_digest = image_pfx_digest(image);
	*ret = image;
out:
	if (changed)
		override_meters_free(&meters.overrides);
	free(meters.name);
	if (!made) {
		image_rules_free(rules);
		free(image);
	}
	return !made;
}
