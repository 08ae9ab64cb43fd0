/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * budget.h - a source's packet budget, from the users behind it (source_budget).
 *
 *     budget = base + sum over its active users of (smallest rate of their limits in requests/s
 *              x packets_per_request), up to max
 *
 * budget_plan() computes the overrides of the packet tier's limit, and whether they differ enough
 * from the current ones: a change compiles the rule set.
 */
#ifndef SLUICE_HTTP_BUDGET_H
#define SLUICE_HTTP_BUDGET_H

#include "request/mitigation/users.h"
#include "config/http_def.h"

/* Minimum time between changes; and for changes that only lower budgets. */
#define BUDGET_RAISE_NS (1 * SL_NS_PER_SEC)
#define BUDGET_LOWER_NS (5 * SL_NS_PER_SEC)

/* Packets a second for users of so many millionths of a request a second. */
u64 budget_pps(const struct budget_def *def, u64 rate_urps);

/* Packets/s for the well-behaved users of a source, 0 without any. */
u64 budget_need_pps(const struct budget_def *def, const struct source_profile *profile);

struct source_budget {
	struct sl_prefix group;
	u64 pps;
	u32 users;
};

struct budgets {
	struct source_budget *source; /* in the order of their addresses */
	size_t count;
};

/* -ENOMEM. */
int budgets_add(struct budgets *budgets, const struct source_budget *source);
void budgets_sort(struct budgets *budgets);
const struct source_budget *budgets_find(const struct budgets *budgets,
					 const struct sl_prefix *group);
void budgets_clear(struct budgets *budgets);

/*
 * Whether the plan `wanted` should replace `now`, whose age is given. An increase is due at once,
 * other changes can wait.
 */
bool budgets_due(const struct budgets *now, const struct budgets *wanted, u64 since_ns);

#endif
