/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * compile.c - struct policy -> struct sl_image.
 *
 * Limits become meters of sl_rules.limits in file order (followed by further meters: meters.c),
 * and bits of the same number in every result of the classifier. The result of a dimension has the
 * limits that match a value and those without a condition on it, so the data path only computes
 * an AND. A limit with mode off has its meter and its limit_id, but no bit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bitmap.h"
#include "packet/compile/compile.h"
#include "packet/compile/compile_events.h"
#include "packet/compile/dims.h"
#include "packet/compile/limit_ids.h"
#include "packet/compile/meters.h"
#include "packet/compile/override_index.h"
#include "packet/compile/prefix_index.h"

/* Blocks wider than this do not shut failsafe ports. */
static const u8 wide_below[SL_FAMILY_COUNT] = { [SL_V4] = 8, [SL_V6] = 16 };

/* A connection of failsafe_rate counts as this many other packets: see internal[]. */
#define FAILSAFE_PACKETS 10
#define FAILSAFE_PACKETS_SOCKET 100
/* Neighbor discovery of all sources together: as of so many of them. */
#define ESSENTIAL_LINK 10
#define INTERNAL_RATE_MAX 1000000000ULL /* per second: the maximum of params_compile() */

/* Built-in limits. A limit of a file cannot have an '@' in its name. */
static const struct internal_limit {
	const char *name;
	const char *key; /* of the configuration: the rate, times `scale` */
	u32 scale;
	enum sl_unit unit;
	u32 per;    /* enum sl_per, or-ed */
	u8 prefix6; /* how IPv6 sources are grouped */
} internal[SL_METER_FURTHER - SL_LIMITS_MAX] = {
	/* Neighbors share a /64, and forge any address of it: hence the sum. */
	{ "@essential", "essential", 1, SL_UNIT_PACKETS, SL_PER_SOURCE, 128 },
	{ "@failsafe", "failsafe_rate", 1, SL_UNIT_CONNECTIONS, SL_PER_SOURCE, 64 },
	{ "@failsafe_tcp", "failsafe_rate", FAILSAFE_PACKETS, SL_UNIT_PACKETS, SL_PER_SOURCE, 64 },
	{ "@failsafe_sum", "failsafe_rate", FAILSAFE_PACKETS_SOCKET, SL_UNIT_PACKETS, 0, 64 },
	{ "@failsafe_socket", "failsafe_rate", FAILSAFE_PACKETS_SOCKET, SL_UNIT_PACKETS,
	  SL_PER_SOURCE, 64 },
	{ "@path_mtu", "essential", 1, SL_UNIT_PACKETS, 0, 64 },
	{ "@path_mtu_socket", "essential", 1, SL_UNIT_PACKETS, SL_PER_SOURCE | SL_PER_DPORT, 64 },
	{ "@essential_link", "essential", ESSENTIAL_LINK, SL_UNIT_PACKETS, 0, 64 },
	{ "@essential_gateway", "essential", 1, SL_UNIT_PACKETS, SL_PER_SOURCE, 128 },
};

struct compiler {
	const struct policy *policy;
	const struct compile_env *env;
	struct sl_err *err;
	struct sl_rules *rules;
	struct sl_limit_id_info *slots; /* a copy of env->slots */
	struct meters meters;
	struct prefix_list prefixes;
};

/* ------------------------------------------------------------------ limits */

static int limit_error(const struct compiler *c, const struct limit_def *def, int code,
		       const char *reason)
{
	if (c->policy->path && def->pos.line)
		return sl_err_at(c->err, code, c->policy->path, def->pos.line, def->pos.column,
				 "limit '%s': %s", def->name, reason);
	return sl_err_set(c->err, code, "limit '%s': %s", def->name, reason);
}

static int compile_limit(struct compiler *c, u32 index)
{
	const struct limit_def *def = &c->policy->limit[index];
	int err = meters_of_limit(&c->meters, def, index);

	if (err)
		return limit_error(c, def, -err, c->meters.reason);
	if (def->mode == SL_MODE_OFF)
		return 0;
	bitmap_set(&c->rules->all, index);
	if (limit_drops(def))
		bitmap_set(&c->rules->dropping, index);
	return 0;
}

const char *internal_limit_name(u32 index)
{
	if (index < SL_LIMITS_MAX || index >= SL_METER_FURTHER)
		return NULL;
	return internal[index - SL_LIMITS_MAX].name;
}

struct rate internal_limit_rate(const struct policy *policy, u32 index)
{
	const struct internal_limit *def = &internal[index - SL_LIMITS_MAX];
	bool essential = !strcmp(def->key, "essential");
	struct rate rate = essential ? policy->essential_rate : policy->failsafe_rate;
	u64 most = (unsigned __int128)INTERNAL_RATE_MAX * rate.period_ns / SL_NS_PER_SEC;

	if (def->unit == SL_UNIT_PACKETS)
		rate.unit = RATE_PACKETS;
	if (def->scale > 1)
		rate.count = rate.count < most / def->scale ? rate.count * def->scale : most;
	return rate;
}

/* Exact, enforced, open. */
static int compile_internal(struct compiler *c, u32 index)
{
	const struct internal_limit *def = &internal[index - SL_LIMITS_MAX];
	struct rate rate = internal_limit_rate(c->policy, index);
	struct sl_limit *limit = &c->rules->limits[index];
	const char *reason;
	int err;

	err = params_compile(SL_ALGO_TOKEN_BUCKET, &rate, 0, c->env->max_frame, &limit->params,
			     &reason);
	if (err)
		return sl_err_set(c->err, -err, "%s: %s", def->key, reason);
	limit->unit = def->unit;
	limit->per = def->per;
	limit->prefix[SL_V4] = 32;
	limit->prefix[SL_V6] = def->prefix6;
	limit->action = SL_ACT_DROP;
	limit->mode = SL_MODE_ENFORCE;
	limit->on_full = SL_FULL_OPEN;
	meter_init(limit, index);
	strcpy(c->meters.name[index], def->name);
	return 0;
}

static int compile_limits(struct compiler *c)
{
	const struct policy *policy = c->policy;
	int err;

	if (policy->limit_count > SL_LIMITS_MAX)
		return sl_err_set(c->err, E2BIG, "%zu limits; at most %d are possible",
				  policy->limit_count, SL_LIMITS_MAX);
	c->rules->limits_count = policy->limit_count;
	for (u32 i = 0; i < policy->limit_count; i++) {
		err = compile_limit(c, i);
		if (err)
			return err;
	}
	for (u32 i = SL_LIMITS_MAX; i < SL_METER_FURTHER; i++) {
		err = compile_internal(c, i);
		if (err)
			return err;
	}
	return 0;
}

static void claim_meter(const struct compiler *c, u32 index, struct limit_id_claim *ret)
{
	const struct sl_limit *meter = &c->rules->limits[index];
	const char *limit =
		meter->head < c->rules->limits_count ? c->policy->limit[meter->head].name : "";

	ret->name = c->meters.name[index];
	ret->kind = limit_kind(meter);
	if (index >= SL_METER_FURTHER)
		ret->kind = limit_kind_of(ret->kind, limit);
}

/* The numbers between the limits and their further meters are unused. */
static bool is_meter(const struct compiler *c, u32 index)
{
	return index < c->rules->limits_count || index >= SL_LIMITS_MAX;
}

static int bind_limit_ids(struct compiler *c)
{
	struct limit_id_claim *claim = calloc(SL_METERS_MAX, sizeof(*claim));
	u32 *index = calloc(SL_METERS_MAX, sizeof(*index)); /* of each claim's meter */
	bool kept[SL_METERS_MAX] = { false };		    /* named as `full` */
	u32 count = 0;
	int err = -ENOMEM;

	if (!claim || !index)
		goto out;
	for (u32 i = 0; i < c->meters.next; i++)
		if (is_meter(c, i) && c->rules->limits[i].full < SL_METERS_MAX)
			kept[c->rules->limits[i].full] = true;
	for (u32 i = 0; i < c->meters.next; i++) {
		if (!is_meter(c, i))
			continue;
		index[count] = i;
		claim[count].kept = kept[i];
		claim_meter(c, i, &claim[count++]);
	}
	err = limit_ids_claim(c->slots, claim, count);
	for (u32 slot = 0; slot < SL_LIMIT_IDS; slot++)
		c->rules->limit_of_id[slot] = SL_NO_LIMIT;
	for (u32 i = 0; !err && i < count; i++) {
		struct sl_limit *meter = &c->rules->limits[index[i]];

		meter->slot = claim[i].slot;
		/*
		 * The bucket states of each override are moved separately, since they have no
		 * generations.
		 */
		if (!meter->of_overrides)
			limit_id_set_params(&c->slots[meter->slot], &meter->params);
		c->rules->limit_of_id[meter->slot] = index[i];
	}
out:
	free(claim);
	free(index);
	if (err == -ENOSPC)
		return sl_err_set(
			c->err, ENOSPC,
			"too many limits: those changed or deleted recently still have entries in the table; try again in a minute");
	return err ? sl_err_set(c->err, ENOMEM, "no memory for the rule set") : 0;
}

/* ------------------------------------------------------------------ prefixes */

static int add_prefix(struct compiler *c, enum sl_pdim dim, const struct sl_prefix *prefix,
		      struct prefix_entry entry)
{
	entry.addr = prefix->addr;
	entry.family = prefix->family;
	entry.len = prefix->len;
	entry.dim = dim;
	if (prefix_list_add(&c->prefixes, &entry))
		return sl_err_set(c->err, ENOMEM, "no memory for the prefixes");
	return 0;
}

/* The prefixes of limits on one dimension; base: the limits without any. */
static int add_limit_prefixes(struct compiler *c, enum sl_pdim dim, struct sl_bitmap *base)
{
	for (u32 i = 0; i < c->rules->limits_count; i++) {
		const struct match_def *match = &c->policy->limit[i].match;
		const struct sl_prefix *prefix = dim == SL_PDIM_SRC ? match->src : match->dst;
		size_t count = dim == SL_PDIM_SRC ? match->src_count : match->dst_count;

		if (!bitmap_has(&c->rules->all, i))
			continue;
		if (count)
			c->rules->dims |= SL_DIMS_P(dim);
		else
			bitmap_set(base, i);
		for (size_t k = 0; k < count; k++) {
			struct prefix_entry entry = { .fact = PREFIX_LIMIT, .limit = i };
			int err = add_prefix(c, dim, &prefix[k], entry);

			if (err)
				return err;
		}
	}
	return 0;
}

/* A UTC deadline as monotonic time: 0 if it has passed, ~0 for no end. */
static u64 mono_deadline(const struct compile_env *env, u64 until_utc_ns)
{
	if (!until_utc_ns)
		return ~0ULL;
	if (until_utc_ns <= env->mono_ns + env->utc_offset_ns)
		return 0;
	return until_utc_ns - env->utc_offset_ns;
}

static enum prefix_fact list_fact(enum list_kind kind, const struct sl_prefix *prefix)
{
	switch (kind) {
	case LIST_EXEMPT:
		return PREFIX_EXEMPT;
	case LIST_NEVER_BAN:
		return PREFIX_NO_BAN;
	default:
		return prefix->len < wide_below[prefix->family] ? PREFIX_WIDE_BLOCK : PREFIX_BLOCK;
	}
}

static int add_list(struct compiler *c, enum list_kind kind)
{
	const struct list_def *list = &c->policy->list[kind];

	for (size_t i = 0; i < list->count; i++) {
		const struct sl_prefix *prefix = &list->entry[i].prefix;
		struct prefix_entry entry = {
			.fact = list_fact(kind, prefix),
			.until = mono_deadline(c->env, list->entry[i].until_utc_ns),
		};
		int err;

		if (!entry.until || (kind != LIST_NEVER_BAN && list_entry_is_live(&list->entry[i])))
			continue;
		err = add_prefix(c, SL_PDIM_SRC, prefix, entry);
		if (err)
			return err;
		c->rules->dims |= SL_DIMS_P(SL_PDIM_SRC);
	}
	return 0;
}

static int add_local(struct compiler *c)
{
	if (!c->policy->failsafe_count)
		return 0;
	c->rules->dims |= SL_DIMS_LOCAL;
	for (size_t i = 0; i < c->env->local_count; i++) {
		struct prefix_entry entry = { .fact = PREFIX_LOCAL };
		int err = add_prefix(c, SL_PDIM_DST, &c->env->local[i], entry);

		if (err)
			return err;
	}
	return 0;
}

static int compile_prefixes(struct compiler *c, struct sl_image *image)
{
	struct sl_bitmap base[SL_PDIM_COUNT] = { 0 };
	const struct prefix_index *index;
	int err;

	for (u32 dim = 0; dim < SL_PDIM_COUNT; dim++) {
		err = add_limit_prefixes(c, dim, &base[dim]);
		if (err)
			return err;
	}
	/*
	 * These limits are not read then, so the index needs one length less (class 0 is shared).
	 */
	if (!(c->rules->dims & SL_DIMS_P(SL_PDIM_DST)))
		base[SL_PDIM_DST] = base[SL_PDIM_SRC];
	for (u32 kind = 0; kind < LIST_KIND_COUNT; kind++) {
		if (kind == LIST_NEVER_BAN && !(c->rules->dims & SL_DIMS_BANS))
			continue;
		err = add_list(c, kind);
		if (err)
			return err;
	}
	err = add_local(c);
	if (!err && events_add_no_ban(c->env, c->rules, &c->prefixes))
		err = sl_err_set(c->err, ENOMEM, "no memory for the prefixes");
	if (!err)
		err = prefix_index_share(c->env->before ? c->env->before->prefixes : NULL,
					 &c->prefixes, base, c->env->seed, &image->prefixes,
					 c->err);
	if (err)
		return err;
	index = image->prefixes;
	memcpy(c->rules->lengths, index->lengths, sizeof(index->lengths));
	c->rules->pfx_buckets = index->buckets;
	image->v4_top = index->v4_top;
	image->v4_line = index->v4.line;
	image->v4_lines = index->v4.count;
	image->bucket = index->bucket;
	image->pclass = index->pclass;
	image->pclass_count = index->pclass_count;
	return 0;
}

/* ------------------------------------------------------------------ overrides */

/* What bpf/refused.h must know of the meters of all limits. */
static void find_meter_dims(struct sl_rules *rules, u32 meters)
{
	for (u32 i = 0; i < meters; i++) {
		const struct sl_limit *meter = &rules->limits[i];

		if (i >= SL_LIMITS_MAX && i < SL_METER_FURTHER)
			continue; /* the order's own */
		if (meter->unit == SL_UNIT_CONNECTIONS)
			rules->dims |= SL_DIMS_CONNECTIONS;
		if (meter->slot && meter->overridden != SL_NO_METER)
			rules->dims |= SL_DIMS_OVERRIDES;
	}
}

/* Both indexes are applied together. The number of buckets is in the rules. */
u64 image_pfx_digest(const struct sl_image *image)
{
	return sl_rotl(image->prefixes->digest, 7) + image->overrides->digest +
	       image->overrides->buckets * 0x9e3779b97f4a7c15ULL;
}

static int compile_overrides(struct compiler *c, struct sl_image *image)
{
	struct override_index *before = c->env->before ? c->env->before->overrides : NULL;
	int err = override_index_build(&c->meters.overrides, before, c->rules, &image->overrides);

	if (err)
		return sl_err_set(c->err, -err,
				  err == -ENOMEM ? "no memory for the overrides"
						 : "too many overrides");
	image->pfx_digest = image_pfx_digest(image);
	find_meter_dims(c->rules, c->meters.next);
	return 0;
}

/* ------------------------------------------------------------------ the image */

static void compile_globals(struct compiler *c)
{
	struct sl_rules *rules = c->rules;

	rules->generation = c->env->generation;
	rules->on_parse_error = c->policy->on_parse_error;
	rules->fragments = c->policy->fragments;
	rules->seed = c->env->seed;
	for (size_t i = 0; i < c->policy->failsafe_count; i++) {
		const struct failsafe_port *port = &c->policy->failsafe[i];
		u8 *bits = port->proto == 6 ? rules->failsafe_tcp : rules->failsafe_udp;

		bits[port->port / 8] |= 1U << (port->port % 8);
	}
}

static int compile_all(struct compiler *c, struct sl_image *image)
{
	int err;

	compile_globals(c);
	err = compile_limits(c);
	if (!err)
		err = bind_limit_ids(c);
	if (!err)
		err = dims_compile(c->policy, c->env->iface, c->rules, c->err);
	if (err)
		return err;
	image->sessions = events_compile(c->env, c->rules);
	err = compile_prefixes(c, image);
	return err ? err : compile_overrides(c, image);
}

int image_compile(const struct policy *policy, struct compile_env *env, struct sl_image **ret,
		  struct sl_err *err)
{
	struct compiler c = { .policy = policy, .env = env, .err = err };
	struct sl_image *image = calloc(1, sizeof(*image));
	int code;

	c.slots = malloc(SL_LIMIT_IDS * sizeof(*c.slots));
	if (image)
		c.rules = image->rules = image_rules_new();
	c.meters.name = calloc(SL_METERS_MAX, sizeof(*c.meters.name));
	if (!c.slots || !c.rules || !c.meters.name) {
		code = sl_err_set(err, ENOMEM, "no memory for the rule set");
		goto out;
	}
	memset(c.rules, 0, sizeof(*c.rules));
	memcpy(c.slots, env->slots, SL_LIMIT_IDS * sizeof(*c.slots));
	c.meters.meter = c.rules->limits;
	c.meters.ban = c.rules->ban;
	c.meters.next = SL_METER_FURTHER;
	c.meters.cpus = c.rules->lease_cpus = env->cpus;
	c.meters.max_frame = env->max_frame;
	c.meters.counters = policy->cluster;
	code = compile_all(&c, image);
	if (code)
		goto out;
	memcpy(env->slots, c.slots, SL_LIMIT_IDS * sizeof(*c.slots));
	*ret = image;
	image = NULL;
out:
	prefix_list_free(&c.prefixes);
	override_meters_free(&c.meters.overrides);
	free(c.slots);
	free(c.meters.name);
	image_free(image);
	return code;
}

void image_free(struct sl_image *image)
{
	if (!image)
		return;
	prefix_index_put(image->prefixes);
	override_index_put(image->overrides);
	image_rules_free(image->rules);
	free(image);
}

u32 image_pclass(const struct sl_image *image, enum sl_pdim dim, const struct sl_prefix *addr)
{
	const struct sl_rules *rules = image->rules;
	struct prefix_view view = {
		.v4_top = image->v4_top,
		.v4_line = image->v4_line,
		.lengths = &rules->lengths[dim],
		.bucket = image->bucket,
		.buckets = rules->pfx_buckets,
		.dim = dim,
		.family = addr->family,
		.seed = rules->seed,
	};

	return prefix_index_lookup(&view, addr->addr);
}
