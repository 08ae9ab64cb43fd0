/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dims.c - what the classifier answers for each value of each 8- and 16-bit dimension.
 *
 * An answer is the limits that match the value and those without a condition on the
 * dimension. 8-bit dimensions hold it per value; 16-bit ones hold a class number per value,
 * since few different answers occur among 65536.
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

static const struct u16_range *ranges_of(const struct match_def *match, enum sl_dim16 dim,
					 size_t *ret_count)
{
	switch (dim) {
	case SL_DIM_DPORT:
		*ret_count = match->dport_count;
		return match->dport;
	case SL_DIM_SPORT:
		*ret_count = match->sport_count;
		return match->sport;
	case SL_DIM_LENGTH:
		*ret_count = match->length_count;
		return match->length;
	default:
		*ret_count = match->vlan_count;
		return match->vlan;
	}
}

/* The class of a bitmap, new or known. The dimensions share them. */
static int intern16(struct dims *d, const struct sl_bitmap *bitmap, u16 *ret)
{
	u32 i;

	for (i = 0; i < d->class16_count; i++) {
		if (bitmap_equal(&d->rules->class16[i], bitmap))
			break;
	}
	if (i == SL_CLASS16_MAX)
		return sl_err_set(d->err, E2BIG,
				  "the ports, lengths and VLANs of all limits form more than %d different combinations",
				  SL_CLASS16_MAX);
	if (i == d->class16_count)
		d->rules->class16[d->class16_count++] = *bitmap;
	*ret = i;
	return 0;
}

/* `of`: scratch of 65536 bitmaps: the limits that match each value. */
static int compile_dim16(struct dims *d, enum sl_dim16 dim, struct sl_bitmap *of)
{
	struct sl_rules *rules = d->rules;
	struct sl_bitmap *none = &rules->none16[dim];
	u16 *class = rules->dim16[dim];
	size_t count;

	for (u32 i = 0; i < rules->limits_count; i++) {
		ranges_of(&d->policy->limit[i].match, dim, &count);
		if (!count && bitmap_has(&rules->all, i))
			bitmap_set(none, i);
	}
	if (bitmap_equal(none, &rules->all))
		return 0;
	rules->dims |= SL_DIMS_16(dim);

	for (u32 value = 0; value < 65536; value++)
		of[value] = *none;
	for (u32 i = 0; i < rules->limits_count; i++) {
		const struct u16_range *range = ranges_of(&d->policy->limit[i].match, dim, &count);

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
	/* Class 0 takes nothing away: what dimensions not in use say of any value. */
	err = intern16(d, &d->rules->all, &class0);
	for (u32 dim = 0; !err && dim < SL_DIM16_COUNT; dim++)
		err = compile_dim16(d, dim, of);
	free(of);
	return err;
}

/* ------------------------------------------------------------------ 8-bit dimensions */

/* Whether a limit has a condition on a dimension. icmp_type is one, over two of them. */
static bool has_condition8(const struct match_def *match, enum sl_dim8 dim)
{
	switch (dim) {
	case SL_DIM_PROTO:
		return match->proto_count;
	case SL_DIM_TCP_FLAGS:
		return match->tcp_flags_count;
	case SL_DIM_ICMP:
	case SL_DIM_ICMPV6:
		return match->icmp_type_count;
	default:
		return match->interface_count;
	}
}

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

static bool matches_icmp(const struct match_def *match, u8 family, u32 type)
{
	for (size_t i = 0; i < match->icmp_type_count; i++) {
		if (match->icmp_type[i].family == family && match->icmp_type[i].type == type)
			return true;
	}
	return false;
}

static bool matches8(const struct dims *d, const struct match_def *match, enum sl_dim8 dim,
		     u32 value)
{
	switch (dim) {
	case SL_DIM_PROTO:
		for (size_t i = 0; i < match->proto_count; i++) {
			if (match->proto[i] == value)
				return true;
		}
		return false;
	case SL_DIM_TCP_FLAGS:
		for (size_t i = 0; i < match->tcp_flags_count; i++) {
			const struct tcp_flags_cond *cond = &match->tcp_flags[i];

			if ((value & cond->set) == cond->set && !(value & cond->clear))
				return true;
		}
		return false;
	case SL_DIM_ICMP:
		return matches_icmp(match, SL_V4, value);
	case SL_DIM_ICMPV6:
		return matches_icmp(match, SL_V6, value);
	default:
		return matches_iface(d, match, value);
	}
}

static void compile_dims8(struct dims *d)
{
	struct sl_rules *rules = d->rules;

	for (u32 dim = 0; dim < SL_DIM8_COUNT; dim++) {
		for (u32 i = 0; i < rules->limits_count; i++) {
			const struct match_def *match = &d->policy->limit[i].match;
			bool any = !has_condition8(match, dim);

			if (!bitmap_has(&rules->all, i))
				continue;
			if (any)
				bitmap_set(&rules->none8[dim], i);
			else
				rules->dims |= SL_DIMS_8(dim);
			for (u32 value = 0; value < 256; value++) {
				if (any || matches8(d, match, dim, value))
					bitmap_set(&rules->dim8[dim][value], i);
			}
		}
	}
}

static bool counts_connections(const struct limit_def *limit)
{
	for (u32 i = 0; i < limit->rates.count; i++)
		if (limit->rates.rate[i].unit == RATE_CONNECTIONS)
			return true;
	return false;
}

/* Whether a limit asks for what only the first fragment of a datagram says. */
static bool asks_l4(const struct limit_def *limit)
{
	const struct match_def *match = &limit->match;

	return match->dport_count || match->sport_count || match->tcp_flags_count ||
	       match->icmp_type_count || match->proto_count ||
	       counts_connections(limit) ||
	       (limit->per & (SL_PER_DPORT | SL_PER_PROTO));
}

int dims_compile(const struct policy *policy, const char (*iface)[16], struct sl_rules *rules,
		 struct sl_err *err)
{
	struct dims d = { .policy = policy, .iface = iface, .rules = rules, .err = err };

	for (u32 i = 0; i < rules->limits_count; i++)
		if (bitmap_has(&rules->all, i) && asks_l4(&policy->limit[i]))
			rules->dims |= SL_DIMS_L4;
	compile_dims8(&d);
	return compile_dims16(&d);
}
