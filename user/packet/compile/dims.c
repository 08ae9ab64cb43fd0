/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dims.c - the classifier's result for each value of each 8- and 16-bit dimension.
 *
 * A result has the limits that match the value and those without a condition on the
 * dimension. 8-bit dimensions store it per value; 16-bit ones store a class number per value,
 * since the 65536 values have few different results. And which limits decide by their match alone.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/bitmap.h"
#include "packet/compile/dims.h"

struct dims {
	const struct policy *policy;
	const char (*iface)[16];
	struct sl_rules *rules;
	struct sl_err *err;
	u32 class16_count;
};

/* ------------------------------------------------------------------ 16-bit dimensions */

/* The class of a bitmap, new or known. The dimensions share them. */
static int intern16(struct dims *d, const struct sl_bitmap *bitmap, u16 *ret)
{
	u32 i;

	for (i = 0; i < d->class16_count; i++) {
		if (bitmap_equal(&d->rules->class16[i], bitmap))
			break;
	}
	if (i == SL_CLASS16_MAX)
		return sl_err_set(
			d->err, E2BIG,
			"the ports, lengths and VLANs of all limits form more than %d different combinations",
			SL_CLASS16_MAX);
	if (i == d->class16_count)
		d->rules->class16[d->class16_count++] = *bitmap;
	*ret = i;
	return 0;
}

/* `of`: scratch memory of 65536 bitmaps with the limits that match each value. */
static int compile_dim16(struct dims *d, enum sl_dim16 dim, struct sl_bitmap *of)
{
	struct sl_rules *rules = d->rules;
	struct sl_bitmap *none = &rules->none16[dim];
	u16 *class = rules->dim16[dim];
	const struct match_key *key = match_key_of(SL_DIMS_16(dim));
	size_t count;

	for (u32 i = 0; i < rules->limits_count; i++) {
		if (!match_count(&d->policy->limit[i].match, key) && bitmap_has(&rules->all, i))
			bitmap_set(none, i);
	}
	if (bitmap_equal(none, &rules->all))
		return 0;
	rules->dims |= SL_DIMS_16(dim);

	for (u32 value = 0; value < 65536; value++)
		of[value] = *none;
	for (u32 i = 0; i < rules->limits_count; i++) {
		const struct u16_range *range =
			match_values(&d->policy->limit[i].match, key, &count);

		if (!bitmap_has(&rules->all, i))
			continue;
		for (size_t r = 0; r < count; r++)
			for (u32 value = range[r].first; value <= range[r].last; value++)
				bitmap_set(&of[value], i);
	}
	for (u32 value = 0; value < 65536; value++) {
		int err;

		if (value && bitmap_equal(&of[value], &of[value - 1])) {
			class[value] = class[value - 1];
			continue;
		}
		err = intern16(d, &of[value], &class[value]);
		if (err)
			return err;
	}
	return 0;
}

static int compile_dims16(struct dims *d)
{
	struct sl_bitmap *of = malloc(65536 * sizeof(*of));
	u16 class0;
	int err;

	if (!of)
		return sl_err_set(d->err, ENOMEM, "no memory for the rule set");
	/* Class 0 excludes no limit. It is the class of all values in unused dimensions. */
	err = intern16(d, &d->rules->all, &class0);
	for (u32 dim = 0; !err && dim < SL_DIM16_COUNT; dim++)
		err = compile_dim16(d, dim, of);
	free(of);
	return err;
}

/* ------------------------------------------------------------------ 8-bit dimensions */

static bool matches_iface(const struct dims *d, const struct match_def *match, u32 slot)
{
	if (!d->iface || slot >= SL_IFACES_MAX || !d->iface[slot][0])
		return false;
	for (size_t i = 0; i < match->interface_count; i++) {
		if (!strncmp(match->interface[i], d->iface[slot], sizeof(*match->interface)))
			return true;
	}
	return false;
}

static bool matches8(const struct dims *d, const struct match_def *match,
		     const struct match_key *key, enum sl_dim8 dim, u32 value)
{
	if (key->kind == MATCH_INTERFACES)
		return matches_iface(d, match, value);
	return match_holds(match, key, dim == SL_DIM_ICMPV6 ? SL_V6 : SL_V4, value);
}

static void compile_dims8(struct dims *d)
{
	struct sl_rules *rules = d->rules;

	for (u32 dim = 0; dim < SL_DIM8_COUNT; dim++) {
		const struct match_key *key = match_key_of(SL_DIMS_8(dim));

		for (u32 i = 0; i < rules->limits_count; i++) {
			const struct match_def *match = &d->policy->limit[i].match;
			bool any = !match_count(match, key);

			if (!bitmap_has(&rules->all, i))
				continue;
			if (any)
				bitmap_set(&rules->none8[dim], i);
			else
				rules->dims |= SL_DIMS_8(dim);
			for (u32 value = 0; value < 256; value++) {
				if (any || matches8(d, match, key, dim, value))
					bitmap_set(&rules->dim8[dim][value], i);
			}
		}
	}
}

static bool counts_connections(const struct limit_def *limit)
{
	for (u32 i = 0; i < limit->terms.rates.count; i++)
		if (limit->terms.rates.rate[i].unit == RATE_CONNECTIONS)
			return true;
	return false;
}

/* Whether a limit needs fields that only the first fragment of a datagram has. */
static bool needs_l4(const struct limit_def *limit)
{
	for (u32 i = 0; i < MATCH_KEY_COUNT; i++)
		if (match_keys[i].needs && match_count(&limit->match, &match_keys[i]))
			return true;
	return limit->match.proto_count || counts_connections(limit) ||
	       (limit->per & (SL_PER_DPORT | SL_PER_PROTO));
}

/* IPv6 extension headers as protocols: a later fragment may have them itself. */
static bool names_headers(const struct match_def *match)
{
	return match_holds(match, match_key_of(SL_DIMS_8(SL_DIM_PROTO)), SL_V6, 0) ||
	       match_holds(match, match_key_of(SL_DIMS_8(SL_DIM_PROTO)), SL_V6, 43) ||
	       match_holds(match, match_key_of(SL_DIMS_8(SL_DIM_PROTO)), SL_V6, 44) ||
	       match_holds(match, match_key_of(SL_DIMS_8(SL_DIM_PROTO)), SL_V6, 60);
}

/* A limit without a rate: what it decides, and what a packet must show for that. */
static void compile_by_match(struct sl_rules *rules, const struct limit_def *def, u32 index)
{
	const struct match_def *match = &def->match;
	bool names_l4 = false, drops = def->action == SL_ACT_DROP;

	rules->by_match = 1;
	if (def->mode != SL_MODE_ENFORCE || def->action == SL_ACT_TAG)
		return;
	bitmap_set(drops ? &rules->refusing : &rules->passing, index);
	/* Not the same of each fragment of a datagram: then a later one may meet the drop alone. */
	if (drops && (match->length_count || match->vlan_count || match->interface_count ||
		      (match->proto_count && names_headers(match))))
		return;
	for (u32 i = 0; i < MATCH_KEY_COUNT; i++)
		names_l4 |= match_keys[i].needs && match_count(match, &match_keys[i]);
	if (names_l4)
		bitmap_set(&rules->unproven[SL_HIDDEN_L4], index);
	if (names_l4 || match->proto_count || match->length_count)
		bitmap_set(&rules->unproven[SL_HIDDEN_PROTO], index);
}

int dims_compile(const struct policy *policy, const char (*iface)[16], struct sl_rules *rules,
		 struct sl_err *err)
{
	struct dims d = { .policy = policy, .iface = iface, .rules = rules, .err = err };

	for (u32 i = 0; i < rules->limits_count; i++) {
		if (!bitmap_has(&rules->all, i))
			continue;
		if (needs_l4(&policy->limit[i]))
			rules->dims |= SL_DIMS_L4;
		if (policy->limit[i].per & SL_PER_DPORT)
			rules->dims |= SL_DIMS_PER_DPORT;
		if (!policy->limit[i].terms.rates.count)
			compile_by_match(rules, &policy->limit[i], i);
	}
	compile_dims8(&d);
	return compile_dims16(&d);
}
