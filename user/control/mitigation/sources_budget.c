// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sources_budget.c - budgets of sources as overrides of a limit of the packet tier.
 *
 * Budgets are added to a copy of the running policy and compiled like a change, but are not live
 * changes: not in live.json, not in the history, not in `diff` and `save`. Installing takes a few
 * milliseconds, with 100000 overrides a few hundred; at most a tenth of the time goes into it.
 */
#include <stdlib.h>

#include "packet/dataplane/dp_push.h"
#include "lib/clock.h"
#include "control/running/pending.h"
#include "control/running/rules.h"
#include "control/mitigation/sources.h"
#include "lib/log.h"

struct wanting {
	struct sources *sources;
	struct budgets budgets;
	u64 now_ns;
	bool failed;
};

/* True if the packet tier has seen the source lately; one with a budget in force counts as seen. */
static bool budget_is_seen(const struct wanting *w, const struct source_profile *profile)
{
	if (budgets_find(&w->sources->budgets, &profile->group))
		return true;
	return dp_push_seen(w->sources->running->packets->dp, &profile->address, w->now_ns,
			    10 * SL_NS_PER_SEC);
}

static void budget_want(const struct source_profile *profile, void *arg)
{
	struct wanting *w = arg;
	struct source_budget budget = {
		.group = profile->group,
		.pps = budget_pps(&w->sources->def->budget, profile->rate_urps),
		.users = profile->users,
	};

	if (budget_is_seen(w, profile) && budgets_add(&w->budgets, &budget) < 0)
		w->failed = true;
}

static int budget_derive(const struct budgets *budgets, const char *limit, struct policy *policy,
			 struct sl_err *err)
{
	struct override_derived *derived = calloc(budgets->count + 1, sizeof(*derived));
	int r;

	if (!derived)
		return sl_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < budgets->count; i++)
		derived[i] = (struct override_derived){ budgets->source[i].group,
							budgets->source[i].pps };
	r = policy_override_derive(policy, limit, derived, budgets->count, err);
	free(derived);
	return r;
}

static int budget_install(struct sources *sources, const struct budgets *wanted, struct sl_err *err)
{
	struct running *run = sources->running;
	struct policy *policy = NULL;
	int r = policy_clone(run->policy, &policy);

	if (r < 0)
		return sl_err_set(err, -r, "out of memory");
	r = budget_derive(wanted, sources->def->budget.limit, policy, err);
	if (r < 0) {
		policy_free(policy);
		return r;
	}
	return rules_replace(run, policy, 0, err);
}

/* False if no override would differ: then the rules need no change. */
static bool budget_has_effect(const struct sources *sources, const struct budgets *wanted)
{
	const struct limit_def *limit =
		policy_find_limit(sources->running->policy, sources->def->budget.limit);
	struct rate rate = limit ? limit->terms.rates.rate[0] : (struct rate){ .period_ns = 1 };
	double least = (double)rate.count * 1e9 / (double)rate.period_ns;

	for (u32 i = 1; limit && i < limit->terms.rates.count; i++) {
		double pps = (double)limit->terms.rates.rate[i].count * 1e9 /
			     (double)limit->terms.rates.rate[i].period_ns;

		if (pps < least)
			least = pps;
	}
	for (size_t i = 0; limit && i < limit->override_count; i++)
		if (limit->override[i].derived)
			return true;
	for (size_t i = 0; limit && i < wanted->count; i++)
		if ((double)wanted->source[i].pps > least)
			return true;
	return false;
}

void sources_budget(struct sources *sources, u64 now_ns)
{
	struct running *run = sources->running;
	u64 since_ns = now_ns - sources->budgets_ns;
	struct wanting w = { .sources = sources, .now_ns = now_ns };
	struct sl_err err;
	int r = 0;

	if (!run->packets->dp || pending_is(run) || since_ns < 10 * sources->install_ns)
		return;
	if (sources->def->budget.limit[0])
		users_sources(sources->users, now_ns, budget_want, &w);
	budgets_sort(&w.budgets);
	if (w.failed || !budgets_due(&sources->budgets, &w.budgets, since_ns)) {
		budgets_clear(&w.budgets);
		return;
	}
	if (budget_has_effect(sources, &w.budgets)) {
		u64 begun_ns = clock_mono_ns();

		r = budget_install(sources, &w.budgets, &err);
		sources->install_ns = clock_mono_ns() - begun_ns;
	}
	if (r < 0 && !sources->budgets_failed)
		log_error(
			"source_budget: cannot apply the new budgets, keeping the previous ones: %s",
			err.message);
	sources->budgets_failed = r < 0;
	sources->budgets_ns = now_ns;
	if (r < 0) {
		budgets_clear(&w.budgets);
		return;
	}
	budgets_clear(&sources->budgets);
	sources->budgets = w.budgets;
}

void sources_derive(struct running_part *part, struct policy *policy)
{
	const struct sources *sources = (const struct sources *)part;
	struct sl_err err;

	if (!sources->def || !sources->def->budget.limit[0])
		return;
	/* A limit that is gone, or counts by other keys, has no budgets: sources_budget() logs
	 * that. */
	if (budget_derive(&sources->budgets, sources->def->budget.limit, policy, &err) < 0)
		policy_override_underive(policy);
}
