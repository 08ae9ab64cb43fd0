// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rate_samples.c - see rate_samples.h.
 *
 * A series is a ring of 120 samples. One that was not sampled a second ago begins again: its limit
 * id, slot or rule belonged to something else.
 */
#include "control/metrics/rate_samples.h"

#include <stdlib.h>

#include "packet/host/view.h"
#include "request/engine/observe.h"

#define SAMPLES 120
#define RULES 2048

struct series {
	float passed[SAMPLES], refused[SAMPLES]; /* of second t at t % SAMPLES */
	u64 since, last;			 /* the first and the last second */
};

struct rule_series {
	struct series rate;
	struct rule_totals totals;
	u64 rule_id;
};

struct rate_samples {
	u64 second; /* counts the samples; the first is 1 */
	struct series iface[SL_IFACES_MAX];
	struct series limit[SL_LIMIT_IDS];
	struct rule_series rule[RULES];
};

struct rate_samples *rate_samples_new(void)
{
	return calloc(1, sizeof(struct rate_samples));
}

void rate_samples_free(struct rate_samples *samples)
{
	free(samples);
}

static void add(struct series *series, u64 second, double passed, double refused)
{
	if (series->last + 1 != second || !series->last)
		series->since = second;
	series->last = second;
	series->passed[second % SAMPLES] = (float)passed;
	series->refused[second % SAMPLES] = (float)refused;
}

/* ------------------------------------------------------------------ packets */

static void take_packets(struct rate_samples *samples, const struct running *run)
{
	const struct packet_host *host = run->packets;
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(run->policy, run->image, view);

	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		const double *rate = host->iface_rate[slot].rate;

		if (view_iface_shown(&host->iface[slot]))
			add(&samples->iface[slot], samples->second,
			    rate[SL_ACT_PASS] + rate[SL_ACT_TAG], rate[SL_ACT_DROP]);
	}
	for (size_t i = 0; i < count; i++) {
		const double *rate = host->limit_rate[view[i].slot].rate;

		add(&samples->limit[view[i].slot], samples->second,
		    rate[SL_LV_PASS] + rate[SL_LV_SOFT] + rate[SL_LV_TAG] + rate[SL_LV_SHADOW],
		    rate[SL_LV_DROP]);
	}
}

/* ------------------------------------------------------------------ requests */

static void add_series(struct rule_totals *to, const struct observe_series *series)
{
	to->ok += series->verdict[DECISION_OK];
	to->over += series->verdict[DECISION_OVER_LIMIT];
	to->shadow += series->verdict[DECISION_SHADOW];
}

/* Adds what was counted by value. A rule set has few such rules: each value looks for its own. */
static void add_values(const struct engine *engine, const struct ruleset *rules, u32 count,
		       struct rule_totals *totals)
{
	struct observe_value *value = NULL;
	size_t values = observe_values(engine, &value);

	for (u32 i = 0; values && i < count; i++) {
		size_t from = 0, to = values;

		while (from < to) {
			size_t middle = from + (to - from) / 2;

			if (value[middle].metric < rules->rule[i]->metric)
				from = middle + 1;
			else
				to = middle;
		}
		for (; from < values && value[from].metric == rules->rule[i]->metric; from++)
			add_series(&totals[i], &value[from].series);
	}
	free(value);
}

static void take_rule(struct rate_samples *samples, u32 index, const struct rule *rule,
		      const struct rule_totals *now)
{
	struct rule_series *of = &samples->rule[index];
	const struct rule_totals *before = &of->totals;

	if (of->rule_id != rule->id || now->ok < before->ok || now->over < before->over ||
	    now->shadow < before->shadow) {
		of->rule_id = rule->id;
		of->rate.last = 0;
		of->totals = *now;
	}
	add(&of->rate, samples->second,
	    (double)(now->ok - before->ok + now->shadow - before->shadow),
	    (double)(now->over - before->over));
	of->totals = *now;
}

static void take_requests(struct rate_samples *samples, const struct running *run)
{
	const struct ruleset *rules = run->requests.rules;
	const struct engine *engine = run->requests.engine;
	u32 count = engine && rules ? rules->rule_count : 0;
	struct rule_totals *totals;

	if (count > RULES)
		count = RULES;
	totals = calloc((size_t)count + 1, sizeof(*totals));
	for (u32 i = 0; totals && i < count; i++) {
		struct observe_series series;

		observe_series(engine, rules->rule[i]->metric, &series);
		add_series(&totals[i], &series);
	}
	if (totals && count)
		add_values(engine, rules, count, totals);
	for (u32 i = 0; totals && i < count; i++)
		take_rule(samples, i, rules->rule[i], &totals[i]);
	free(totals);
}

void rate_samples_take(struct rate_samples *samples, const struct running *run)
{
	samples->second++;
	take_packets(samples, run);
	take_requests(samples, run);
}

/* ------------------------------------------------------------------ what the page shows */

static json_t *to_json(const struct rate_samples *samples, const struct series *series)
{
	json_t *passed = json_array(), *refused = json_array();
	u64 first = samples->second >= SAMPLES ? samples->second - SAMPLES + 1 : 1;

	if (first < series->since)
		first = series->since;
	for (u64 t = first; series->last == samples->second && t <= series->last; t++) {
		json_array_append_new(
			passed, json_integer((json_int_t)(series->passed[t % SAMPLES] + 0.5f)));
		json_array_append_new(
			refused, json_integer((json_int_t)(series->refused[t % SAMPLES] + 0.5f)));
	}
	return json_pack("{s:o, s:o}", "passed", passed, "refused", refused);
}

json_t *rate_samples_interface(const struct rate_samples *samples, u32 slot)
{
	return to_json(samples, &samples->iface[slot % SL_IFACES_MAX]);
}

json_t *rate_samples_limit(const struct rate_samples *samples, u32 limit_id)
{
	return to_json(samples, &samples->limit[limit_id % SL_LIMIT_IDS]);
}

json_t *rate_samples_rule(const struct rate_samples *samples, u32 index)
{
	return index < RULES ? to_json(samples, &samples->rule[index].rate) : NULL;
}

const struct rule_totals *rate_samples_totals(const struct rate_samples *samples, u32 index)
{
	return index < RULES ? &samples->rule[index].totals : NULL;
}
