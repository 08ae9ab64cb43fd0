// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * override_move.c - see override_move.h.
 *
 * The table holds no addresses, so only buckets with computable keys are found: those of limits
 * per source alone, and up to 65536 groups of an override that is a prefix. docs/operations.md
 * describes wider ones.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "lib/clock.h"
#include "control/running/override_move.h"

/* At most 2^16 groups of one override, and in one change. */
#define GROUP_BITS_MAX 16
#define MOVES_MAX (1U << 20)

/* The meters with the same limit_id in the two images. */
struct pair {
	const struct sl_image *before, *after;
	u32 meter_before, meter_after;
};

static void add_move(struct override_moves *moves, const struct pair *pair,
		     const struct sl_prefix *source, u32 longest)
{
	struct override_move move = { .bucket_state = 0 };

	if (moves->count == MOVES_MAX ||
	    !dp_bucket_of(pair->before, pair->meter_before, source, longest, &move.from) ||
	    !dp_bucket_of(pair->after, pair->meter_after, source, longest, &move.to))
		return;
	if (move.from.key == move.to.key && move.from.params.tau == move.to.params.tau)
		return;
	/* Without memory the rest starts with empty buckets. */
	(void)append(moves->move, moves->count, move);
}

static struct sl_prefix nth_group(const struct sl_prefix *src, u32 len, u64 n)
{
	struct sl_prefix group = *src;

	group.len = len;
	if (len <= 64) {
		group.addr.hi |= len ? n << (64 - len) : 0;
	} else if (len - 64 >= GROUP_BITS_MAX) {
		group.addr.lo |= n << (128 - len);
	} else {
		group.addr.hi |= n >> (len - 64);
		group.addr.lo |= n << (128 - len);
	}
	return group;
}

/* All groups of an override, in one meter. */
static void move_override(struct override_moves *moves, const struct pair *pair,
			  const struct sl_prefix *src)
{
	const struct sl_limit *meter = &pair->after->rules->limits[pair->meter_after];
	u32 len = meter->prefix[src->family];

	if (len == SL_PREFIX_NONE)
		return;
	if (src->len >= len) {
		add_move(moves, pair, src, src->len);
		return;
	}
	if (len - src->len > GROUP_BITS_MAX)
		return;
	for (u64 n = 0; n < 1ULL << (len - src->len); n++) {
		struct sl_prefix group = nth_group(src, len, n);

		add_move(moves, pair, &group, len);
	}
}

static bool same_rates(const struct limit_def *a, const struct override_def *of_a,
		       const struct limit_def *b, const struct override_def *of_b)
{
	if (of_a->removed || of_b->removed)
		return of_a->removed == of_b->removed;
	return !memcmp(&a->override_rates[of_a->rates], &b->override_rates[of_b->rates],
		       sizeof(struct rates));
}

/* Walks both sorted lists for overrides that are in one only, or differ. */
static void move_limit(struct override_moves *moves, const struct pair *pair,
		       const struct limit_def *before, const struct limit_def *after)
{
	size_t i = 0, k = 0;

	while (i < before->override_count || k < after->override_count) {
		const struct override_def *a =
			i < before->override_count ? &before->override[i] : NULL;
		const struct override_def *b =
			k < after->override_count ? &after->override[k] : NULL;
		int order = !a ? 1 : !b ? -1 : sl_prefix_compare(&a->src, &b->src);

		if (order || !same_rates(before, a, after, b))
			move_override(moves, pair, order <= 0 ? &a->src : &b->src);
		i += order <= 0;
		k += order >= 0;
	}
}

/* The image's meter with this limit_id, or SL_NO_METER. */
static u32 meter_of_limit_id(const struct sl_image *image, u32 slot)
{
	return image->rules->limit_of_id[slot];
}

/* src NULL: all overrides that differ between `before` and `after`; else that for `src`. */
static void move_meters(struct override_moves *moves, struct pair *pair, u32 head,
			const struct sl_prefix *src, const struct limit_def *before,
			const struct limit_def *after)
{
	const struct sl_limit *meters = pair->after->rules->limits;

	for (u32 meter = head; meter < SL_METERS_MAX; meter = meters[meter].next) {
		const u32 charged[] = { meter, meters[meter].soft };

		for (u32 n = 0; n < 2; n++) {
			if (charged[n] >= SL_METERS_MAX ||
			    meters[charged[n]].per != SL_PER_SOURCE || meters[charged[n]].counter)
				continue;
			pair->meter_after = charged[n];
			pair->meter_before =
				meter_of_limit_id(pair->before, meters[charged[n]].slot);
			if (pair->meter_before >= SL_METERS_MAX)
				continue;
			if (src)
				move_override(moves, pair, src);
			else
				move_limit(moves, pair, before, after);
		}
	}
}

static void carry(struct running *run, struct override_moves *moves)
{
	for (size_t i = 0; i < moves->count; i++)
		dp_bucket_carry(run->packets->dp, &moves->move[i].from, &moves->move[i].to,
				moves->then, &moves->move[i].bucket_state);
}

void override_moves_begin(struct running *run, const struct policy *policy,
			  const struct sl_image *image, struct override_moves *ret)
{
	struct pair pair = { .before = run->image, .after = image };

	*ret = (struct override_moves){ .then = dp_now(run->packets->dp) };
	if (!run->image || !run->policy || run->policy == policy)
		return;
	for (size_t i = 0; i < policy->limit_count; i++) {
		const struct limit_def *after = &policy->limit[i];
		const struct limit_def *before = policy_find_limit(run->policy, after->name);

		if (before && (before->override_count || after->override_count))
			move_meters(ret, &pair, i, NULL, before, after);
	}
	carry(run, ret);
}

void override_move_begin(struct running *run, u32 head, const struct sl_prefix *src,
			 const struct sl_image *image, struct override_moves *ret)
{
	struct pair pair = { .before = run->image, .after = image };

	*ret = (struct override_moves){ .then = dp_now(run->packets->dp) };
	move_meters(ret, &pair, head, src, NULL, NULL);
	carry(run, ret);
}

void override_moves_end(struct running *run, struct override_moves *moves)
{
	struct sl_now now = dp_now(run->packets->dp);

	for (size_t i = 0; i < moves->count; i++)
		dp_bucket_carry_rest(run->packets->dp, &moves->move[i].from, &moves->move[i].to,
				     moves->then, now, moves->move[i].bucket_state);
}

void override_moves_free(struct override_moves *moves)
{
	free(moves->move);
	moves->move = NULL;
	moves->count = 0;
}
