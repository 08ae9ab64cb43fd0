// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * meters.c - see meters.h.
 *
 * Each rate of a limit has a meter at each step of its prefix hierarchy; the first meter is the
 * head. Steps of the two families with the same multiplier share their meters, since a packet is
 * of one family; otherwise a meter counts one family only.
 *
 * The name of a meter's limit_id has the name of the limit, the number of the rate (from 1) and the
 * purpose: "web#2s" is the soft meter of the second rate of web. The prefix is not in the name but
 * in the kind, so the other steps keep their bucket states when a step is added or removed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/whole.h"
#include "packet/compile/compile.h"
#include "packet/compile/meters.h"
#include "limiter/algorithm.h"

/* The least capacity in bytes and the largest frame that params.c accepts. */
#define WINDOW_MIN_BYTES 64

/* on_full: prefix: the prefix lengths by which sources are grouped when the table is full. */
static const u8 full_prefix[SL_FAMILY_COUNT] = { [SL_V4] = 24, [SL_V6] = 48 };

struct level {
	u8 prefix[SL_FAMILY_COUNT]; /* SL_PREFIX_NONE: a step of the other family only */
	u32 scale;
};

/* The rate and burst of a meter. */
struct allowance {
	struct rate rate;
	u64 burst; /* 0: the algorithm has none */
};

struct builder {
	struct meters *meters;
	const struct limit_def *def;
	u32 head;
	struct sl_limit model; /* the common part of all meters of the limit */
};

static bool counts_bytes(const struct rate *rate)
{
	return rate->unit == RATE_BYTES || rate->unit == RATE_BITS;
}

static u8 unit_of_rate(const struct rate *rate)
{
	switch (rate->unit) {
	case RATE_PACKETS:
		return SL_UNIT_PACKETS;
	case RATE_CONNECTIONS:
		return SL_UNIT_CONNECTIONS;
	default:
		return SL_UNIT_BYTES;
	}
}

void meter_init(struct sl_limit *meter, u32 head)
{
	meter->head = head;
	meter->single_meter = 1;
	meter->next = meter->soft = meter->full = meter->overridden = meter->ban = SL_NO_METER;
}

/* ------------------------------------------------------------------ the prefix hierarchy */

/* The steps of both families; returns their number, at most 2 x PREFIX_HIERARCHY_MAX. */
static u32 find_levels(const struct limit_def *def, struct level *ret)
{
	bool taken[PREFIX_HIERARCHY_MAX] = { false };
	u32 count = 0;

	for (u32 i = 0; i < def->prefix.count[SL_V4]; i++) {
		struct level *level = &ret[count++];

		*level = (struct level){
			.prefix = { [SL_V4] = def->prefix.len[SL_V4][i], [SL_V6] = SL_PREFIX_NONE },
			.scale = def->prefix.scale[SL_V4][i],
		};
		for (u32 k = 0; k < def->prefix.count[SL_V6]; k++) {
			if (taken[k] || def->prefix.scale[SL_V6][k] != level->scale)
				continue;
			level->prefix[SL_V6] = def->prefix.len[SL_V6][k];
			taken[k] = true;
			break;
		}
	}
	for (u32 k = 0; k < def->prefix.count[SL_V6]; k++) {
		if (taken[k])
			continue;
		ret[count++] = (struct level){
			.prefix = { [SL_V4] = SL_PREFIX_NONE, [SL_V6] = def->prefix.len[SL_V6][k] },
			.scale = def->prefix.scale[SL_V6][k],
		};
	}
	return count;
}

/* ------------------------------------------------------------------ what meters allow */

/*
 * One rate of the limit at one step of its prefix hierarchy: rate and burst times the step's
 * multiplier.
 */
static struct allowance allowed(const struct builder *b, const struct rates *rates, u32 rate,
				u32 scale)
{
	struct allowance a = { rates->rate[rate], rates->burst[rate] };

	if (algorithms[b->def->terms.algorithm]->default_burst && !a.burst)
		a.burst = algorithms[b->def->terms.algorithm]->default_burst(&a.rate,
									     b->meters->max_frame);
	a.rate.count = mul_saturated(a.rate.count, scale);
	a.burst = mul_saturated(a.burst, scale);
	return a;
}

/* The count of a window is an integer; the rate of a bucket may be an integer in a longer time. */
static void rate_share(struct rate *rate, u32 permille, bool whole)
{
	u64 product = mul_saturated(rate->count, permille);
	u64 least = counts_bytes(rate) ? WINDOW_MIN_BYTES : 1;
	u64 divisor = greatest_divisor(product, 1000);

	if (rate->unit == RATE_BITS)
		least *= 8;
	if (whole || product == ~0ULL) {
		rate->count = product == ~0ULL ? rate->count / 1000 * permille : product / 1000;
		rate->count = max_u64(rate->count, least);
		return;
	}
	rate->count = product / divisor;
	rate->period_ns = mul_saturated(rate->period_ns, 1000 / divisor);
}

/* Adds the soft part of rate and burst: at least a packet or a frame. */
static struct allowance soft_share(const struct builder *b, struct allowance a)
{
	u32 permille = b->def->terms.throttle.soft_permille;
	u64 frame = b->meters->max_frame ? b->meters->max_frame : SL_FRAME_LARGE;
	u64 least = counts_bytes(&a.rate) ? frame : 1;

	if (a.rate.unit == RATE_BITS)
		least *= 8;
	rate_share(&a.rate, permille, sl_algo_is_window(b->def->terms.algorithm));
	if (a.burst)
		a.burst = max_u64(a.burst / 1000 * permille + a.burst % 1000 * permille / 1000,
				  least);
	return a;
}

/* Whether the buckets of a meter are shared by leases (bpf/lease.h), where they are large
 * enough. */
static void set_lease(const struct builder *b, struct sl_limit *meter)
{
	meter->percpu = b->def->accounting == ACCOUNTING_PERCPU && !b->def->terms.count &&
			!params_percpu_note(meter->params.algo);
	meter->lease =
		meter->percpu ? sl_lease_batch(&meter->params, b->meters->cpus, meter->unit) : 0;
}

static void no_lease(struct sl_limit *meter)
{
	meter->percpu = 0;
	meter->lease = 0;
}

/* ------------------------------------------------------------------ meters */

/*
 * The name of a meter's limit_id. A long name is truncated: the kind also identifies it
 * (limit_ids.c).
 */
static void name_meter(struct builder *b, u32 index, u32 rate, const char *role)
{
	char tag[16];

	snprintf(tag, sizeof(tag), "#%u%s", rate + 1, role);
	if (index == b->head)
		tag[0] = 0;
	snprintf(b->meters->name[index], SL_NAME_MAX, "%.*s%s",
		 (int)(SL_NAME_MAX - 1 - strlen(tag)), b->def->name, tag);
}

static int fail(struct builder *b, int code, const char *what, const char *reason)
{
	snprintf(b->meters->reason, sizeof(b->meters->reason), "%s%s", what, reason);
	return -code;
}

static u32 ceiling_of(const struct builder *b)
{
	return b->model.elastic ? b->def->terms.throttle.ceiling_percent : 100;
}

static int fill_meter(struct builder *b, u32 index, enum sl_algo algo, const struct level *level,
		      const struct allowance *a, const char *what)
{
	struct sl_limit *meter = &b->meters->meter[index];
	const char *reason;

	*meter = b->model;
	meter->prefix[SL_V4] = level->prefix[SL_V4];
	meter->prefix[SL_V6] = level->prefix[SL_V6];
	meter->unit = unit_of_rate(&a->rate);
	if (params_compile(algo, &a->rate, a->burst, b->meters->max_frame, &meter->params, &reason))
		return fail(b, ERANGE, what, reason);
	if (params_divide(&meter->params, b->def->terms.buckets, ceiling_of(b), &reason) ||
	    params_anchor(&meter->params, b->def->terms.first_request, ceiling_of(b), &reason))
		return fail(b, ERANGE, what, reason);
	if (meter->elastic)
		params_make_room(&meter->params, b->def->terms.throttle.ceiling_percent);
	if (meter->elastic &&
	    params_check_floor(&meter->params, b->def->terms.throttle.floor_percent, &reason))
		return fail(b, ERANGE, what, reason);
	if (params_error_ppm(&meter->params, &a->rate) > PARAMS_ERROR_MAX_PPM)
		return fail(b, ERANGE, what, "the rate cannot be represented within 1 %");
	set_lease(b, meter);
	return 0;
}

/* Allocates a meter; 0: all are in use. */
static u32 take_meter(struct builder *b)
{
	if (b->meters->next < SL_METERS_MAX)
		return b->meters->next++;
	snprintf(
		b->meters->reason, sizeof(b->meters->reason),
		"too many rates, prefix lengths and soft throttles in all limits together: each takes one meter, accepted: up to %d meters",
		SL_METERS_MAX - SL_METER_FURTHER);
	return 0;
}

/* The time for which the limit stays soft. */
static int add_grace(struct builder *b, u32 rate, const struct level *level, u16 *ret)
{
	struct allowance stretch = { { 1, b->def->terms.throttle.soft_for_ns, RATE_PACKETS }, 0 };
	u32 index;

	if (!stretch.rate.period_ns)
		return 0;
	index = take_meter(b);
	if (!index)
		return -E2BIG;
	name_meter(b, index, rate, "g");
	*ret = index;
	return fill_meter(b, index, SL_ALGO_GRACE, level, &stretch, "throttle for: ");
}

/* Whether `b` drains sooner than `a`, so its utilization is never too small for the other. */
static bool is_less(const struct sl_params *b, const struct sl_params *a)
{
	return a->tau ? b->tau < a->tau : b->capacity < a->capacity;
}

/* The parameters of the overrides' rates, and the least of all. */
static int override_params(struct builder *b, struct override_meter *to, u32 rate,
			   const struct level *level, bool soft, struct sl_params *least)
{
	const struct override_def *changed = b->meters->changed;
	const struct limit_def *def = b->def;

	for (size_t i = 0; i < def->override_rates_count; i++) {
		struct sl_params *params = &to->params[i];
		struct allowance a;
		const char *reason;

		if (changed && (changed->removed || changed->rates != i))
			continue;
		a = allowed(b, &def->override_rates[i], rate, level->scale);
		if (soft)
			a = soft_share(b, a);
		if (params_compile(def->terms.algorithm, &a.rate, a.burst, b->meters->max_frame,
				   params, &reason) ||
		    params_divide(params, def->terms.buckets, ceiling_of(b), &reason)) {
			snprintf(b->meters->reason, sizeof(b->meters->reason), "an override: %s",
				 reason);
			return -ERANGE;
		}
		if ((!i && !changed) || is_less(params, least))
			*least = *params;
	}
	return 0;
}

/*
 * The meter for the bucket states of sources with overrides, beside a meter that overrides apply
 * to. When the table is full, utilization is computed without the source: it uses the smallest of
 * all overrides, so a source over its limit never counts as lightly used.
 */
static int add_overridden(struct builder *b, u32 of, u32 rate, const struct level *level, bool soft)
{
	const struct limit_def *def = b->def;
	struct override_meter *to;
	struct sl_limit *meter;
	u32 index;
	int err;

	if (b->meters->before ? b->meters->before[of].overridden == SL_NO_METER
			      : !override_count(def))
		return 0;
	index = take_meter(b);
	if (!index)
		return -E2BIG;
	name_meter(b, index, rate, soft ? "so" : "o");
	meter = &b->meters->meter[index];
	*meter = b->meters->meter[of];
	meter->single_meter = 0;
	meter->of_overrides = 1;
	meter->next = meter->soft = meter->full = meter->overridden = meter->ban = SL_NO_METER;
	b->meters->meter[of].overridden = index;
	if (b->meters->before)
		meter->params = b->meters->before[index].params;
	if (b->meters->before && !b->meters->changed) {
		set_lease(b, meter);
		return 0;
	}
	to = override_meters_add(&b->meters->overrides, def, of);
	if (!to) {
		snprintf(b->meters->reason, sizeof(b->meters->reason),
			 "no memory for its overrides");
		return -ENOMEM;
	}
	for (u32 family = 0; family < SL_FAMILY_COUNT; family++) {
		to->prefix[family] = level->prefix[family];
		to->finest[family] = level->prefix[family] == def->prefix.len[family][0];
	}
	err = override_params(b, to, rate, level, soft, &meter->params);
	if (!err)
		set_lease(b, meter);
	return err;
}

static int add_soft(struct builder *b, u32 rate, const struct level *level,
		    const struct allowance *a, u16 *ret)
{
	struct allowance share = soft_share(b, *a);
	u32 index;
	int err;

	if (b->def->terms.throttle.kind != THROTTLE_SOFT)
		return 0;
	index = take_meter(b);
	if (!index)
		return -E2BIG;
	name_meter(b, index, rate, "s");
	*ret = index;
	err = fill_meter(b, index, b->def->terms.algorithm, level, &share, "throttle soft: ");
	if (!err)
		err = add_overridden(b, index, rate, level, true);
	return err ? err : add_grace(b, rate, level, &b->meters->meter[index].next);
}

static int add_full(struct builder *b, u32 rate, const struct level *level,
		    const struct allowance *a, u16 *ret)
{
	struct level wider = *level;
	bool any = false;
	u32 index;
	int err;

	if (b->def->on_full != SL_FULL_PREFIX)
		return 0;
	/* The group is at least as wide already: on_full stays open. */
	for (u32 family = 0; family < SL_FAMILY_COUNT; family++) {
		bool less = level->prefix[family] != SL_PREFIX_NONE &&
			    level->prefix[family] > full_prefix[family];

		wider.prefix[family] = less ? full_prefix[family] : SL_PREFIX_NONE;
		any |= less;
	}
	if (!any)
		return 0;
	index = take_meter(b);
	if (!index)
		return -E2BIG;
	name_meter(b, index, rate, "f");
	*ret = index;
	err = fill_meter(b, index, b->def->terms.algorithm, &wider, a, "on_full prefix: ");
	b->meters->meter[index].link = 0;
	return err;
}

/* Makes the meters of a rate at a step of the prefix hierarchy: its own, soft, override. */
static int add_charged(struct builder *b, u32 index, u32 rate, const struct level *level)
{
	struct allowance a = allowed(b, &b->def->terms.rates, rate, level->scale);
	struct sl_limit *meter = &b->meters->meter[index];
	char what[64] = "";
	int err;

	if (level->scale > 1)
		snprintf(what, sizeof(what), "times its prefix_scale of %u: ", level->scale);
	name_meter(b, index, rate, "");
	err = fill_meter(b, index, b->def->terms.algorithm, level, &a, what);
	if (!err)
		err = add_overridden(b, index, rate, level, false);
	if (!err)
		err = add_soft(b, rate, level, &a, &meter->soft);
	if (!err)
		err = add_full(b, rate, level, &a, &meter->full);
	return err;
}

/* The durations of repeated bans: each is multiplied by the factor, up to the longest. */
static void ban_durations(const struct ban_def *def, struct sl_ban *ret)
{
	u64 dur_ns = def->for_ns;

	for (ret->levels = 0; ret->levels < SL_BAN_LEVELS;) {
		ret->dur_ns[ret->levels++] = dur_ns < def->max_ns ? dur_ns : def->max_ns;
		if (dur_ns >= def->max_ns || def->factor_percent == 100)
			break;
		/* at most 365 days times 100 */
		dur_ns = dur_ns / 100 * def->factor_percent +
			 dur_ns % 100 * def->factor_percent / 100;
	}
}

/*
 * The meter that counts the drops of a source. It is charged with the source grouped as by the
 * meter that refused, so one meter counts for all steps of the prefix hierarchy.
 */
static int add_ban(struct builder *b)
{
	static const struct level whole = { { [SL_V4] = 32, [SL_V6] = 128 }, 1 };
	const struct ban_def *def = &b->def->ban;
	struct allowance drops = { { def->after, def->within_ns, RATE_PACKETS }, 0 };
	struct sl_ban *ban = &b->meters->ban[b->head];
	struct sl_limit *meter;
	u32 index;
	int err;

	if (!def->after)
		return 0;
	index = take_meter(b);
	if (!index)
		return -E2BIG;
	name_meter(b, index, 0, "b");
	b->model.elastic = 0;
	err = fill_meter(b, index, SL_ALGO_SLIDING_WINDOW, &whole, &drops, "ban after: ");
	if (err)
		return err;
	meter = &b->meters->meter[index];
	meter->per = SL_PER_SOURCE;
	meter->link = 0;
	no_lease(meter);
	ban_durations(def, ban);
	ban->trigger = index;
	ban->spoofable = def->spoofable;
	b->meters->meter[b->head].ban = b->head;
	return 0;
}

static void model_of(struct builder *b)
{
	const struct limit_def *def = b->def;

	meter_init(&b->model, b->head);
	b->model.single_meter = 0;
	b->model.per = def->per;
	b->model.dst_prefix[SL_V4] = def->dst_prefix[SL_V4] < 32 ? def->dst_prefix[SL_V4] : 0;
	b->model.dst_prefix[SL_V6] = def->dst_prefix[SL_V6] < 128 ? def->dst_prefix[SL_V6] : 0;
	b->model.action = def->action;
	b->model.mode = def->mode;
	b->model.count_all = def->terms.count == COUNT_ALL;
	b->model.on_full = def->on_full;
	b->model.tag = (def->has_dscp ? SL_TAG_DSCP : 0) | (def->has_mark ? SL_TAG_MARK : 0);
	b->model.dscp = def->dscp;
	b->model.mark = def->mark;
	b->model.elastic = def->terms.throttle.kind == THROTTLE_ELASTIC;
	b->model.by_match = !def->terms.rates.count;
	b->model.link = (def->per & SL_PER_SOURCE) && def->prefix.count[SL_V6] == 1 &&
			def->prefix.len[SL_V6][0] > SL_LINK_PREFIX &&
			def->prefix.len[SL_V6][0] < 128 && !b->model.elastic &&
			!def->terms.cluster && !b->model.by_match;
}

/* Without a rate: a meter that is never charged. Its parameters are only valid ones. */
static int add_by_match(struct builder *b, const struct level *level)
{
	static const struct allowance any = { { 1, SL_NS_PER_SEC, RATE_PACKETS }, 1 };

	name_meter(b, b->head, 0, "");
	return fill_meter(b, b->head, SL_ALGO_TOKEN_BUCKET, level, &any, "");
}

int meters_of_limit(struct meters *meters, const struct limit_def *def, u32 index)
{
	struct builder b = { .meters = meters, .def = def, .head = index };
	struct level level[2 * PREFIX_HIERARCHY_MAX];
	u32 levels = find_levels(def, level);
	struct sl_limit *head = &meters->meter[index];
	u32 last = index;
	int err = 0;

	model_of(&b);
	if (!def->terms.rates.count)
		return add_by_match(&b, &level[0]);
	for (u32 i = 0; i < levels; i++) {
		for (u32 rate = 0; rate < def->terms.rates.count; rate++) {
			u32 meter = i || rate ? take_meter(&b) : index;

			if (!meter && (i || rate))
				return -E2BIG;
			err = add_charged(&b, meter, rate, &level[i]);
			if (err)
				return err;
			if (meter != index)
				meters->meter[last].next = meter;
			last = meter;
		}
	}
	if (def->terms.cluster && meters->counters)
		err = meters_add_counters(meters, def, index);
	if (!err)
		err = add_ban(&b);
	if (err)
		return err;
	head->single_meter = head->next == SL_NO_METER && head->soft == SL_NO_METER &&
			     head->full == SL_NO_METER && head->ban == SL_NO_METER &&
			     !head->elastic;
	return 0;
}
