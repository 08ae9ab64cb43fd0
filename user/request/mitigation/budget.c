// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* budget.c - see budget.h. */
#include "request/mitigation/budget.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"

static double per_second(const struct rate *rate)
{
	return rate->period_ns ? (double)rate->count * 1e9 / (double)rate->period_ns : 0;
}

u64 budget_pps(const struct budget_def *def, u64 rate_urps)
{
	double pps =
		per_second(&def->base) + (double)rate_urps * (double)def->packets_per_request / 1e6;
	double max = per_second(&def->max);

	if (max && pps > max)
		pps = max;
	/* Rounded up, so that no user gets less than the limit. */
	return (u64)pps + (pps > (double)(u64)pps);
}

u64 budget_need_pps(const struct budget_def *def, const struct source_profile *profile)
{
	return profile->good ? budget_pps(def, profile->good_rate_urps) : 0;
}

/* ------------------------------------------------------------------ plans */

int budgets_add(struct budgets *budgets, const struct source_budget *source)
{
	return append(budgets->source, budgets->count, *source);
}

static int compare(const void *left, const void *right)
{
	return sl_prefix_compare(&((const struct source_budget *)left)->group,
				 &((const struct source_budget *)right)->group);
}

void budgets_sort(struct budgets *budgets)
{
	if (budgets->count)
		qsort(budgets->source, budgets->count, sizeof(*budgets->source), compare);
}

const struct source_budget *budgets_find(const struct budgets *budgets,
					 const struct sl_prefix *group)
{
	struct source_budget key = { .group = *group };

	return budgets->count ? bsearch(&key, budgets->source, budgets->count, sizeof(key), compare)
			      : NULL;
}

void budgets_clear(struct budgets *budgets)
{
	free(budgets->source);
	memset(budgets, 0, sizeof(*budgets));
}

bool budgets_due(const struct budgets *now, const struct budgets *wanted, u64 since_ns)
{
	bool differs = now->count != wanted->count, more = false;

	for (size_t i = 0; i < wanted->count; i++) {
		const struct source_budget *before = budgets_find(now, &wanted->source[i].group);

		if (!before || before->pps != wanted->source[i].pps)
			differs = true;
		/* An increase of more than a tenth is applied at once. */
		if (!before || wanted->source[i].pps * 10 > before->pps * 11)
			more = true;
	}
	return (more && since_ns >= BUDGET_RAISE_NS) || (differs && since_ns >= BUDGET_LOWER_NS);
}
