// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * decide_candidate.c - limits in shadow beside the enforced ones of their rule: what another rate
 * or algorithm would have done.
 *
 * A candidate is judged as if it stood alone in its rule: what the enforced limits of the rule
 * refuse is charged to it if it would admit it. So its count is that of the same requests with the
 * candidate in their place, for a laxer limit, too. What another rule refuses is not charged, as it
 * would not be then.
 *
 * Its buckets are in the decision like all others, but in no part's list of buckets: nothing that
 * decides, delays, bans or makes a header sees them. With scope: cluster the estimate of all nodes'
 * usage decides, and a charge reaches Redis with a flush, so that no request waits for it.
 */
#include "request/engine/decide_private.h"

/* The buckets of a limit: one for each length of the prefix hierarchy. */
static bool is_of(const struct decision *d, const struct part *part, u32 k,
		  const struct rule_limit *limit)
{
	return d->bucket[part->candidate[k]].limit == limit;
}

static bool is_first(const struct decision *d, const struct part *part, u32 at)
{
	for (u32 k = 0; k < at; k++)
		if (is_of(d, part, k, d->bucket[part->candidate[at]].limit))
			return false;
	return true;
}

static bool refuses(const struct decision *d, const struct part *part,
		    const struct rule_limit *limit)
{
	for (u32 k = 0; k < part->candidates; k++)
		if (is_of(d, part, k, limit) && d->bucket[part->candidate[k]].over)
			return true;
	return false;
}

/* Without room for one of its buckets it is charged to none. */
static bool claim(struct decision *d, const struct part *part, const struct rule_limit *limit)
{
	bool ok = true;

	for (u32 k = 0; k < part->candidates && ok; k++)
		if (is_of(d, part, k, limit))
			ok = decide_claim_bucket(d, &d->bucket[part->candidate[k]]);
	return ok;
}

static void charge(struct decision *d, const struct part *part, const struct rule_limit *limit)
{
	bool over = refuses(d, part, limit) && !d->request->report;

	if (!over && !claim(d, part, limit))
		return;
	for (u32 k = 0; k < part->candidates; k++) {
		struct bucket *b = &d->bucket[part->candidate[k]];

		if (!is_of(d, part, k, limit))
			continue;
		if (!over)
			decide_charge(d, b);
		else if (b->over)
			decide_count_refused(d, b);
	}
}

void decide_candidates(struct decision *d)
{
	for (u32 i = 0; i < d->part_count; i++) {
		const struct part *part = &d->part[i];

		if (!part->candidates || (decide_refused_but(d, part->rule) && !d->request->report))
			continue;
		for (u32 k = 0; k < part->candidates; k++)
			if (is_first(d, part, k))
				charge(d, part, d->bucket[part->candidate[k]].limit);
	}
}

void decide_candidate_status(const struct decision *d, const struct part *part,
			     struct response_status *ret)
{
	ret->candidates = 0;
	for (u32 k = 0; k < part->candidates; k++) {
		const struct bucket *b = &d->bucket[part->candidate[k]];

		/* The first bucket is that of the value itself. */
		if (!is_first(d, part, k))
			continue;
		ret->candidate[ret->candidates++] = (struct response_candidate){
			.limit = b->limit,
			.q = decide_capacity(b),
			.r = b->left,
			.over = refuses(d, part, b->limit),
			.full = b->full,
		};
	}
}
