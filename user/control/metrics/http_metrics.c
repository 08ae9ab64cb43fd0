// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * http_metrics.c - see http_metrics.h.
 *
 * Labels come only from the rules in force, and from a bounded number of limits in requests. The
 * series ok and over_limit of a rule exist from the start, at 0; those of other verdicts appear
 * with the first one.
 */
#include "control/metrics/http_metrics.h"

#include <stdlib.h>
#include <string.h>

#include "control/elastic/http_elastic.h"
#include "request/engine/decision_log.h"
#include "request/engine/defer.h"
#include "request/engine/observe.h"
#include "request/engine/request_rules.h"
#include "request/engine/delay.h"
#include "request/engine/engine.h"
#include "counters/counters.h"
#include "lib/array.h"
#include "limiter/algorithm.h"

static const char *const verdict_name[DECISION_COUNT] = {
	[DECISION_OK] = "ok",		[DECISION_OVER_LIMIT] = "over_limit",
	[DECISION_SOFT] = "soft",	[DECISION_SHADOW] = "shadow",
	[DECISION_DELAYED] = "delayed", [DECISION_PEEK] = "peek",
	[DECISION_NO_RULE] = "no_rule", [DECISION_ERROR] = "error",
	[DECISION_BANNED] = "banned",
};

/* `value` NULL: the rule as a whole, whose usual verdicts exist from the start. */
static void write_verdicts(struct exposition *e, const struct rule *rule, const char *value,
			   const struct observe_series *series)
{
	for (u32 v = 0; v < DECISION_COUNT; v++) {
		bool usual = !value && (v == DECISION_OK || v == DECISION_OVER_LIMIT);

		if (series->verdict[v] || usual)
			metric_u64(e, series->verdict[v], "domain", rule->domain, "rule",
				   rule->path, "verdict", verdict_name[v], value ? "value" : NULL,
				   value, NULL);
	}
}

/* Per-value series of one scrape; sorted by rule. */
struct values {
	struct observe_value *value;
	size_t count;
};

/* The series of one rule. */
static struct values values_of(const struct values *all, u32 metric)
{
	size_t from = 0, to = all->count, end;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (all->value[middle].metric < metric)
			from = middle + 1;
		else
			to = middle;
	}
	for (end = from; end < all->count && all->value[end].metric == metric; end++)
		;
	return (struct values){ all->value + from, end - from };
}

/* A rule's total less its per-value series. */
static struct observe_series sum_of(const struct metrics *m, const struct values *all,
				    const struct rule *rule)
{
	struct values of = values_of(all, rule->metric);
	struct observe_series series;

	observe_series(m->running->requests.engine, rule->metric, &series);
	for (size_t i = 0; i < of.count; i++) {
		series.near += of.value[i].series.near;
		series.full += of.value[i].series.full;
		series.unavailable += of.value[i].series.unavailable;
		series.bans += of.value[i].series.bans;
	}
	return series;
}

/* Limits with mode: shadow, each beside the verdict of its rule. */
static void write_candidates(const struct metrics *m, struct exposition *e)
{
	const struct ruleset *rules = m->running->requests.rules;
	struct observe_series series;

	metric_begin(
		e, "sluice_candidate_decisions", METRIC_COUNTER,
		"What limits with mode: shadow would have decided in place of the enforced ones of their rule.");
	for (u32 i = 0; i < rules->rule_count; i++) {
		const struct rule *rule = rules->rule[i];

		for (u32 k = 0; k < rule->limit_count; k++) {
			if (rule->limit[k].mode != SL_MODE_SHADOW)
				continue;
			observe_series(m->running->requests.engine, rule->limit[k].metric, &series);
			metric_u64(e, series.verdict[DECISION_OK], "domain", rule->domain, "rule",
				   rule->path, "limit", rule->limit[k].name, "verdict",
				   verdict_name[DECISION_OK], NULL);
			metric_u64(e, series.verdict[DECISION_SHADOW], "domain", rule->domain,
				   "rule", rule->path, "limit", rule->limit[k].name, "verdict",
				   verdict_name[DECISION_OVER_LIMIT], NULL);
		}
	}
}

/* The rules in force, then those of limits in requests. */
static u32 count_rules(const struct metrics *m)
{
	return m->running->requests.rules->rule_count +
	       request_rules_count(m->running->requests.engine->ledger.request_rules);
}

static const struct rule *rule_at(const struct metrics *m, u32 i)
{
	const struct ruleset *rules = m->running->requests.rules;

	return i < rules->rule_count
		       ? rules->rule[i]
		       : request_rule_at(m->running->requests.engine->ledger.request_rules,
					 i - rules->rule_count);
}

static void write_decisions(const struct metrics *m, const struct values *all, struct exposition *e)
{
	u32 count = count_rules(m);
	struct observe_series series;

	metric_begin(e, "sluice_decisions", METRIC_COUNTER,
		     "Decisions of the HTTP tier by rule, one for each descriptor of a request.");
	for (u32 i = 0; i < count; i++) {
		const struct rule *rule = rule_at(m, i);
		struct values of;

		observe_series(m->running->requests.engine, rule->metric, &series);
		write_verdicts(e, rule, NULL, &series);
		of = values_of(all, rule->metric);
		for (size_t k = 0; k < of.count; k++)
			write_verdicts(e, rule, of.value[k].label, &of.value[k].series);
	}
	metric_u64(e, observe_no_rule(m->running->requests.engine), "domain", "", "rule", "",
		   "verdict", verdict_name[DECISION_NO_RULE], NULL);
	metric_u64(e, observe_beyond_calls(m->running->requests.engine), "domain", "", "rule", "",
		   "verdict", "beyond", NULL);
	write_candidates(m, e);
	metric_begin(e, "sluice_decisions_near_limit", METRIC_COUNTER,
		     "Allowed decisions that left 80% or more of the limit used.");
	for (u32 i = 0; i < count; i++) {
		const struct rule *rule = rule_at(m, i);

		series = sum_of(m, all, rule);
		metric_u64(e, series.near, "domain", rule->domain, "rule", rule->path, NULL);
	}
}

static void write_times(const struct metrics *m, struct exposition *e)
{
	double bound[HISTOGRAM_BUCKETS - 1];
	struct observe_times times;

	for (u32 b = 0; b + 1 < HISTOGRAM_BUCKETS; b++)
		bound[b] = (double)histogram_bound_ns(b) / 1e9;
	observe_times(m->running->requests.engine, &times);
	metric_begin(
		e, "sluice_decision_duration_seconds", METRIC_HISTOGRAM,
		"From the arrival of a request to its decision, without the time it was delayed.");
	metric_histogram(e, times.count, bound, HISTOGRAM_BUCKETS, (double)times.sum_ns / 1e9);
}

static void write_requests(const struct metrics *m, struct exposition *e)
{
	char text[16];
	int code;

	metric_begin(e, "sluice_http_requests", METRIC_COUNTER,
		     "Requests by frontend and the protocol's own status code.");
	for (u32 api = 0; api < API_COUNT; api++) {
		for (u32 number = 0; observe_code(number, &code); number++) {
			u64 count = observe_requests(m->running->requests.engine, api, code);

			snprintf(text, sizeof(text), "%d", code);
			if (count)
				metric_u64(e, count, "api", request_api_name(api), "code", text,
					   NULL);
		}
	}
}

/* Their proxies let them pass: each series exists from the start, so that the first is seen,
 * too. */
static void write_undecided(const struct metrics *m, struct exposition *e)
{
	struct undecided_seen seen;

	undecided_read(&m->running->requests.engine->undecided, &seen);
	metric_begin(e, "sluice_http_undecided", METRIC_COUNTER,
		     "Requests that got an error in place of a decision, by frontend and reason.");
	for (u32 api = 0; api < API_COUNT; api++)
		for (u32 reason = 0; reason < UNDECIDED_COUNT; reason++)
			if (api != API_V1_REPORT && api != API_SYSLOG)
				metric_u64(e, seen.count[api][reason], "api", request_api_name(api),
					   "reason", undecided_name(reason), NULL);
}

/* ------------------------------------------------------------------ delayed requests and state */

struct delayed_sums {
	const struct ruleset *rules;
	u64 *count; /* by rule index */
};

static void add_delayed(void *arg, u64 rule_id, u64 count)
{
	struct delayed_sums *sums = arg;

	for (u32 i = 0; i < sums->rules->rule_count; i++)
		if (sums->rules->rule[i]->id == rule_id)
			sums->count[i] += count;
}

static void write_delayed(const struct metrics *m, struct exposition *e)
{
	struct delayed_sums sums = { .rules = m->running->requests.rules };

	metric_begin(e, "sluice_http_delayed", METRIC_GAUGE,
		     "Requests that are delayed until they fit (on_limit: wait).");
	sums.count =
		calloc((size_t)m->running->requests.rules->rule_count + 1, sizeof(*sums.count));
	if (!sums.count)
		return;
	delays_each(m->running->requests.engine->delays, add_delayed, &sums);
	for (u32 i = 0; i < m->running->requests.rules->rule_count; i++)
		if (m->running->requests.rules->rule[i]->wait_ns)
			metric_u64(e, sums.count[i], "domain",
				   m->running->requests.rules->rule[i]->domain, "rule",
				   m->running->requests.rules->rule[i]->path, NULL);
	free(sums.count);
}

static void write_deferred(const struct metrics *m, struct exposition *e)
{
	static const struct {
		enum defer_number number;
		const char *label;
	} now[] = {
		{ DEFER_NOW_WAITING, "waiting" }, { DEFER_NOW_RELEASED, "released" }, { DEFER_NOW_DEAD, "dead" },
	}, sum[] = {
		{ DEFER_SUM_DEFERRED, "deferred" }, { DEFER_SUM_FULL, "full" },
		{ DEFER_SUM_CANCELLED, "cancelled" }, { DEFER_SUM_RELEASED, "released" },
		{ DEFER_SUM_DONE, "done" }, { DEFER_SUM_DEAD, "dead" },
	};
	const struct ruleset *rules = m->running->requests.rules;
	struct defer_shown shown;

	for (int pass = 0; pass < 3; pass++) {
		if (!pass)
			metric_begin(
				e, "sluice_http_deferred", METRIC_GAUGE,
				"Requests for later (on_limit: defer), of all nodes, at the last poll of Redis.");
		else if (pass == 1)
			metric_begin(
				e, "sluice_http_deferrals", METRIC_COUNTER,
				"What became of requests for later: of all nodes, but failed: not taken by Redis in time.");
		else
			metric_begin(
				e, "sluice_http_defer_durable", METRIC_GAUGE,
				"1 if Redis has an append-only file, 0 if requests for later are lost when it stops.");
		for (u32 i = 0; i < rules->rule_count; i++) {
			const struct rule *rule = rules->rule[i];

			if (!rule->defer.max ||
			    !defers_show(m->running->requests.engine->defers, rule->id, &shown))
				continue;
			for (size_t k = 0; !pass && k < ARRAY_SIZE(now); k++)
				metric_u64(e, shown.number[now[k].number], "domain", rule->domain,
					   "rule", rule->path, "state", now[k].label, NULL);
			for (size_t k = 0; pass == 1 && k < ARRAY_SIZE(sum); k++)
				metric_u64(e, shown.number[sum[k].number], "domain", rule->domain,
					   "rule", rule->path, "outcome", sum[k].label, NULL);
			if (pass == 1)
				metric_u64(e, shown.failed, "domain", rule->domain, "rule",
					   rule->path, "outcome", "failed", NULL);
			if (pass == 2 && shown.number[DEFER_AOF] != ~0ULL)
				metric_u64(e, shown.number[DEFER_AOF], "domain", rule->domain,
					   "rule", rule->path, NULL);
		}
	}
}

/* Decisions without a counter, or without the cluster store. */
static void write_odd_ones(const struct metrics *m, const struct values *all, struct exposition *e)
{
	metric_begin(
		e, "sluice_http_state_full", METRIC_COUNTER,
		"Decisions without a counter, because the counter table was full: on_full decided.");
	for (u32 i = 0, count = count_rules(m); i < count; i++) {
		const struct rule *rule = rule_at(m, i);

		metric_u64(e, sum_of(m, all, rule).full, "domain", rule->domain, "rule", rule->path,
			   NULL);
	}
	metric_begin(
		e, "sluice_decisions_store_unavailable", METRIC_COUNTER,
		"Decisions without the cluster store, which was unavailable: on_store_failure decided.");
	for (u32 i = 0; i < m->running->requests.rules->rule_count; i++) {
		const struct rule *rule = m->running->requests.rules->rule[i];

		metric_u64(e, sum_of(m, all, rule).unavailable, "domain", rule->domain, "rule",
			   rule->path, NULL);
	}
	metric_begin(e, "sluice_http_bans", METRIC_COUNTER,
		     "Bans of values that began on this node; rules with a ban.");
	for (u32 i = 0; i < m->running->requests.rules->rule_count; i++) {
		const struct rule *rule = m->running->requests.rules->rule[i];

		if (rule->ban.after)
			metric_u64(e, sum_of(m, all, rule).bans, "domain", rule->domain, "rule",
				   rule->path, NULL);
	}
}

static void write_listeners(const struct metrics *m, struct exposition *e)
{
	static const struct {
		const char *name, *help, *reason;
		size_t offset;
	} count[] = {
		{ "evicted", "Connections closed to make room: idle ones first.", NULL,
		  offsetof(struct metrics_listener, evicted) },
		{ "refused", "Connections refused, because all others were busy.", "listener",
		  offsetof(struct metrics_listener, refused) },
		{ "refused", NULL, "address", offsetof(struct metrics_listener, refused_address) },
	};
	char name[64];

	for (size_t i = 0; i < sizeof(count) / sizeof(count[0]); i++) {
		snprintf(name, sizeof(name), "sluice_http_connections_%s", count[i].name);
		if (count[i].help)
			metric_begin(e, name, METRIC_COUNTER, count[i].help);
		for (size_t k = 0; k < m->listener_count; k++) {
			const struct metrics_listener *at = &m->listener[k];

			metric_u64(e, *(const u64 *)((const char *)at + count[i].offset),
				   "listener", at->address, count[i].reason ? "reason" : NULL,
				   count[i].reason, NULL);
		}
	}
}

static const char *const units_name[UNITS_COUNT] = {
	[UNITS_TAKEN] = "taken",
	[UNITS_RELEASED] = "released",
	[UNITS_UNKNOWN] = "unknown",
};

static void write_state(const struct metrics *m, const struct values *all, struct exposition *e)
{
	struct counters_stats stats;

	counters_stats(m->running->requests.engine->ledger.counters, &stats);
	metric_begin(e, "sluice_http_state_entries", METRIC_GAUGE,
		     "Users in the counter table, by algorithm of their limits.");
	for (u32 algo = 0; algo < SL_ALGO_COUNT; algo++)
		metric_u64(e, stats.entries[algo], "algorithm", algorithm_name(algo), NULL);
	metric_begin(
		e, "sluice_concurrency_units", METRIC_COUNTER,
		"Units of concurrency: taken, released by a reported end, or unknown when it was reported.");
	for (u32 what = 0; what < UNITS_COUNT; what++)
		metric_u64(e, observe_units(m->running->requests.engine, what), "event",
			   units_name[what], NULL);
	metric_begin(e, "sluice_http_state_room", METRIC_GAUGE,
		     "Users that the counter table has room for.");
	metric_u64(e, stats.room, NULL);
	metric_begin(e, "sluice_http_state_evicted", METRIC_COUNTER,
		     "Users below half of their limits that were evicted to make room for others.");
	metric_u64(e, stats.evicted, NULL);
	metric_begin(e, "sluice_http_state_evicted_units", METRIC_COUNTER,
		     "Requests that evicted users had used.");
	metric_u64(e, stats.evicted_units, NULL);
	metric_begin(e, "sluice_http_connections", METRIC_GAUGE,
		     "Open connections of the HTTP tier.");
	metric_u64(e, m->connections, NULL);
	write_listeners(m, e);
	write_odd_ones(m, all, e);
	metric_begin(e, "sluice_http_elastic_scale_ratio", METRIC_GAUGE,
		     "Present factor of an elastic limit's rate.");
	for (u32 i = 0; i < m->running->requests.rules->rule_count; i++) {
		const struct rule *rule = m->running->requests.rules->rule[i];

		for (u32 k = 0; k < rule->limit_count; k++)
			if (rule->limit[k].terms.throttle.kind == THROTTLE_ELASTIC)
				metric_double(e, http_elastic_scale(m->scales, rule, k), "domain",
					      rule->domain, "rule", rule->path, "limit",
					      rule->limit[k].name, NULL);
	}
	metric_begin(
		e, "sluice_http_decision_log_lost", METRIC_COUNTER,
		"Lines lost because the decision log's buffer was full or its file could not be written.");
	metric_u64(e, decision_log_lost(m->running->requests.engine->log), NULL);
	metric_begin(e, "sluice_http_rules_last_reload_success", METRIC_GAUGE,
		     "1 if the last reload of the rules succeeded.");
	metric_u64(e, m->running->requests.reload.ok, NULL);
}

void http_metrics_write(struct metrics *m, struct exposition *e)
{
	struct values all;

	if (!m->running->requests.engine || !m->running->requests.rules)
		return;
	all.count = observe_values(m->running->requests.engine, &all.value);
	write_decisions(m, &all, e);
	write_times(m, e);
	write_requests(m, e);
	write_undecided(m, e);
	write_delayed(m, e);
	write_deferred(m, e);
	write_state(m, &all, e);
	free(all.value);
}
