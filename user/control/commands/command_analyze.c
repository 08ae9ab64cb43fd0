// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * command_analyze.c - analyze [LIMIT]: is a limit effective? Its counters, its buckets, who was
 * refused lately and by how much, and a candidate in shadow mode beside it; with one sentence of
 * advice.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/match_keys.h"
#include "control/commands/advice.h"
#include "control/commands/commands.h"
#include "control/mitigation/sources.h"
#include "control/running/pending.h"
#include "lib/clock.h"
#include "limiter/algorithm.h"
#include "packet/host/heavy.h"
#include "packet/host/state.h"
#include "packet/host/view.h"
#include "request/engine/observe.h"
#include "request/engine/request_rules.h"

/* ------------------------------------------------------------------ the packet tier */

struct heavy {
	struct heavy_source *source;
	size_t count;
	u64 span_ns;
};

static void packets_of(struct commands *ctx, const struct limit_view *view,
		       struct sl_limit_stats *ret)
{
	if (state_limit_stats(ctx->running->packets, view->name, view->slot,
			      pending_is(ctx->running), ret) < 0)
		memset(ret, 0, sizeof(*ret));
}

/* The most that a source may send, in the limit's unit. */
static u64 heavy_units(const struct heavy_count *count, const struct sl_limit *limit)
{
	double scale = count->packets ? 1 + (double)count->missed / (double)count->packets : 1;

	if (limit->unit == SL_UNIT_PACKETS)
		return count->packets + count->missed;
	return (u64)((double)(limit->unit == SL_UNIT_BYTES ? count->bytes : count->opened) * scale);
}

/* Whether each source that heavy.h counts has one bucket of its own, of one rate; 0: not. Else
 * units a second. */
static double rate_of_source(const struct limit_view *view, const struct sl_prefix *source)
{
	const struct limit_def *def = view->def;
	const struct rate *rate = &def->terms.rates.rate[0];
	u8 len = source->family == SL_V4 ? 32 : SL_HEAVY_V6_LEN;

	if (def->per != SL_PER_SOURCE || def->terms.rates.count != 1 ||
	    def->prefix.count[source->family] > 1 || view->limit->prefix[source->family] != len ||
	    override_match(def, source))
		return 0;
	return (double)rate->count / (rate->unit == RATE_BITS ? 8 : 1) * 1e9 /
	       (double)rate->period_ns;
}

/* Compares the sources that the limit refused last. What they sent includes what passed by other
 * limits. */
static void add_heavy(struct limit_numbers *n, const struct heavy *heavy,
		      const struct limit_view *view)
{
	for (size_t i = 0; i < heavy->count; i++) {
		const struct heavy_source *source = &heavy->source[i];
		u64 dropped = heavy_units(&source->of[SL_HEAVY_DROPPED], view->limit);
		u64 sent = dropped + heavy_units(&source->of[SL_HEAVY_PASSED], view->limit);

		if (!view->def || source->limit_id != view->slot || !dropped)
			continue;
		limit_numbers_add(
			n, &(struct refused_one){
				   .period_ns = heavy->span_ns,
				   .given = rate_of_source(view, &source->source) *
					    (double)heavy->span_ns / 1e9,
				   .sent = (double)sent,
				   .sent_known = sent,
				   .refused_known = dropped,
				   .capacity = view->def->terms.throttle.kind == THROTTLE_HARD
						       ? view->limit->params.capacity
						       : 0,
				   .is_bucket = algorithm_is_bucket(view->def->terms.algorithm) });
		n->refusing++;
		n->all += dropped;
		if (dropped > n->heaviest)
			n->heaviest = dropped;
	}
	n->estimated = !heavy_is_exact(heavy->source, heavy->count);
	if (view->limit->unit == SL_UNIT_BYTES) {
		bool bits = view->def && view->def->terms.rates.rate[0].unit == RATE_BITS;

		n->burst_unit = bits ? " bits" : " bytes";
		n->burst *= bits ? 8 : 1;
	}
}

/* A limit in shadow mode for the same packets, counted in the same way. */
static bool is_candidate(const struct limit_view *view, const struct limit_view *other)
{
	return view->def && other->def && view != other && view->limit->mode == SL_MODE_ENFORCE &&
	       other->limit->mode == SL_MODE_SHADOW && view->def->per == other->def->per &&
	       match_equal(&view->def->match, &other->def->match);
}

static json_t *candidates_to_json(struct commands *ctx, const struct limit_view *view,
				  const struct limit_view *all, size_t count)
{
	json_t *list = json_array();
	struct sl_limit_stats stats;

	for (size_t i = 0; i < count; i++)
		if (is_candidate(view, &all[i])) {
			packets_of(ctx, &all[i], &stats);
			json_array_append_new(
				list, json_pack("{s:s, s:o, s:o}", "name", all[i].name, "refused",
						json_u64(stats.packets[SL_LV_SHADOW]), "passed",
						json_u64(stats.packets[SL_LV_PASS])));
		}
	return list;
}

static json_t *numbers_to_json(const char *name, const char *tier, const struct limit_numbers *n)
{
	double share = n->refused ? (double)n->refused / (double)(n->passed + n->refused) : 0.0;
	char text[256];
	json_t *json =
		json_pack("{s:s, s:s, s:b, s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:s}", "name", name,
			  "tier", tier, "shadow", n->shadow, "passed", json_u64(n->passed),
			  "refused", json_u64(n->tags ? 0 : n->refused), "refused_share",
			  n->tags ? 0.0 : share, "near", json_u64(n->near), "refused_lately",
			  json_u64(n->seen), "just_above", json_u64(n->just_above), "far_above",
			  json_u64(n->far_above), "advice", advice(n, text, sizeof(text)));

	if (n->tags) {
		json_object_set_new(json, "tagged", json_u64(n->refused));
		json_object_set_new(json, "tagged_share", json_real(share));
	}
	json_object_set_new(json, "within_rate", json_u64(n->within));
	if (n->within && !n->no_burst)
		json_object_set_new(json, "burst_for_none", json_u64(n->burst));
	if (!n->no_buckets) {
		json_object_set_new(json, "live", json_u64(n->live));
		json_object_set_new(json, "over", json_u64(n->over));
	}
	return json;
}

static json_t *limit_to_json(struct commands *ctx, const struct limit_view *all, size_t count,
			     size_t index, const struct heavy *heavy)
{
	const struct dp_table_stats *table = view_table(ctx->running->packets);
	const struct limit_view *view = &all[index];
	struct limit_numbers n = { .unit = "packets", .who = "sources" };
	struct sl_limit_stats stats;
	json_t *json;

	packets_of(ctx, view, &stats);
	n.shadow = view->limit->mode == SL_MODE_SHADOW;
	n.tags = !n.shadow && view->limit->action == SL_ACT_TAG;
	n.passed = stats.packets[SL_LV_PASS] + stats.packets[SL_LV_SOFT];
	n.refused =
		stats.packets[SL_LV_DROP] + stats.packets[SL_LV_TAG] + stats.packets[SL_LV_SHADOW];
	n.live = table->limit_live[view->slot];
	n.over = table->limit_over[view->slot];
	n.near = table->limit_near[view->slot];
	n.is_window = view->def && algorithm_kind(view->def->terms.algorithm) == STATE_WINDOW;
	n.common = view->def && !view->def->per && !view->limit->by_match;
	n.no_values = n.shadow || n.tags;
	add_heavy(&n, heavy, view);
	json = numbers_to_json(view->name, "packets", &n);
	json_object_set_new(json, "candidates", candidates_to_json(ctx, view, all, count));
	return json;
}

static int analyze_packets(struct commands *ctx, const char *name, json_t *list, struct sl_err *err)
{
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(ctx->running->policy, ctx->running->image, view);
	struct heavy heavy;
	int r = heavy_read(ctx->running->packets->dp, clock_mono_ns(), &heavy.source, &heavy.count,
			   &heavy.span_ns);

	if (r < 0)
		return sl_err_set(err, -r, "cannot read the heaviest sources: %s", strerror(-r));
	for (size_t i = 0; i < count; i++)
		if (name ? !strcmp(view[i].name, name)
			 : view[i].def && view[i].limit->mode != SL_MODE_OFF)
			json_array_append_new(list, limit_to_json(ctx, view, count, i, &heavy));
	free(heavy.source);
	return 0;
}

/* ------------------------------------------------------------------ the request tier */

/* Users of the rule with recent refusals: which of them has most. */
static void add_refused(struct commands *ctx, const char *rule, struct limit_numbers *n)
{
	const struct active_user *user[ACTIVE_ROOM];
	u64 span_ns;
	u32 found = active_read(&ctx->sources->refused, user, &span_ns, clock_mono_ns());

	for (u32 i = 0; i < found; i++)
		if (!strcmp(user[i]->rule, rule)) {
			u64 refused = active_sum(user[i]).refused;

			n->refusing++;
			n->all += refused;
			if (refused > n->heaviest)
				n->heaviest = refused;
		}
}

static u64 series_passed(const struct observe_series *series)
{
	return series->verdict[DECISION_OK] + series->verdict[DECISION_SOFT] +
	       series->verdict[DECISION_DELAYED];
}

/* By the limit itself: a ban refuses however little is sent. */
static u64 series_over(const struct observe_series *series)
{
	return series->verdict[DECISION_OVER_LIMIT] + series->verdict[DECISION_SHADOW];
}

/* Adds a value's counts of two periods, and compares the fuller one with the rate. */
static void add_lately(struct limit_numbers *n, const struct rule *rule,
		       const struct observe_lately *lately)
{
	u64 passed = lately->passed[0] + lately->passed[1],
	    refused = lately->refused[0] + lately->refused[1];
	u64 now = lately->passed[0] + lately->refused[0],
	    before = lately->passed[1] + lately->refused[1];
	const struct rule_limit *limit = NULL;
	u32 enforced = 0;

	if (!refused)
		return;
	for (u32 i = 0; i < rule->limit_count; i++)
		if (rule->limit[i].mode == SL_MODE_ENFORCE && !enforced++)
			limit = &rule->limit[i];
	limit_numbers_add(
		n, &(struct refused_one){
			   .period_ns = lately->period_ns,
			   .given = !rule->detailed_metric || !lately->window_ns
					    ? 0
					    : (double)lately->requests * (double)lately->period_ns /
						      (double)lately->window_ns,
			   .sent = (double)(now > before ? now : before),
			   .sent_known = passed + refused,
			   .refused_known = refused,
			   .capacity = enforced == 1 && limit->terms.throttle.kind == THROTTLE_HARD
					       ? lately->capacity
					       : 0,
			   .is_bucket = limit && algorithm_is_bucket(limit->terms.algorithm) });
}

/*
 * The decisions counted by value: their sum, and those that were refused lately. Only
 * detailed_metric and value_to_metric count so, for metrics.max_values values; of others this is
 * not known.
 */
static void add_values(struct commands *ctx, const struct rule *rule, struct observe_series *sum,
		       struct limit_numbers *n)
{
	struct observe_value *value;
	size_t count = observe_values(ctx->running->requests.engine, &value);

	for (size_t i = 0; i < count; i++) {
		const struct observe_series *series = &value[i].series;

		if (value[i].metric != rule->metric)
			continue;
		for (int v = 0; v < DECISION_COUNT; v++)
			sum->verdict[v] += series->verdict[v];
		sum->near += series->near;
		add_lately(n, rule, &value[i].lately);
	}
	free(value);
}

/* Judged as if each stood alone in the rule: not only what the enforced limits passed. */
static json_t *rule_candidates_to_json(struct commands *ctx, const struct rule *rule)
{
	json_t *list = json_array();
	struct observe_series series;

	for (u32 i = 0; i < rule->limit_count; i++) {
		if (rule->limit[i].mode != SL_MODE_SHADOW)
			continue;
		observe_series(ctx->running->requests.engine, rule->limit[i].metric, &series);
		json_array_append_new(list,
				      json_pack("{s:s, s:o, s:o, s:b}", "name", rule->limit[i].name,
						"refused", json_u64(series_over(&series)), "passed",
						json_u64(series_passed(&series)), "alone", true));
	}
	return list;
}

/* The rule's entries do not distinguish values. */
static bool is_common(const struct rule *rule)
{
	bool fixed =
		rule->place == RULE_OF_DOMAIN || (rule->place == RULE_OF_DESCRIPTOR && rule->depth);

	for (u32 i = 0; i < rule->depth && fixed; i++)
		fixed = rule->entry[i].fixed;
	return fixed;
}

static json_t *rule_numbers_to_json(struct commands *ctx, const struct rule *rule, const char *name)
{
	struct limit_numbers n = { .unit = "requests", .who = "users", .no_buckets = true };
	struct observe_series sum;
	json_t *json;

	observe_series(ctx->running->requests.engine, rule->metric, &sum);
	n.common = is_common(rule);
	add_values(ctx, rule, &sum, &n);
	n.shadow = rule->shadow;
	n.no_values = !rule->detailed_metric && !rule->value_to_metric;
	n.passed = series_passed(&sum);
	n.refused = series_over(&sum) + sum.verdict[DECISION_BANNED];
	n.near = sum.near;
	for (u32 i = 0; i < rule->limit_count; i++)
		n.is_window |= rule->limit[i].mode == SL_MODE_ENFORCE &&
			       algorithm_kind(rule->limit[i].terms.algorithm) == STATE_WINDOW;
	add_refused(ctx, name, &n);
	json = numbers_to_json(name, "requests", &n);
	json_object_set_new(json, "candidates", rule_candidates_to_json(ctx, rule));
	return json;
}

static void analyze_requests(struct commands *ctx, const char *wanted, json_t *list)
{
	const struct request_rules *in_requests =
		ctx->running->requests.engine->ledger.request_rules;
	const struct ruleset *rules = ctx->running->requests.rules;
	u32 count = rules->rule_count + request_rules_count(in_requests);
	char name[1024];

	sources_drain(ctx->sources);
	for (u32 i = 0; i < count; i++) {
		const struct rule *rule =
			i < rules->rule_count ? rules->rule[i]
					      : request_rule_at(in_requests, i - rules->rule_count);

		snprintf(name, sizeof(name), "%s/%s", rule->domain, rule->path);
		if (rule->limit_count && (!wanted || !strcmp(wanted, name)) &&
		    json_array_size(list) < 1000)
			json_array_append_new(list, rule_numbers_to_json(ctx, rule, name));
	}
}

int command_analyze(struct commands *ctx, const struct command_request *request, json_t **ret,
		    struct sl_err *err)
{
	const char *name = arg_text(request, "limit");
	json_t *list = json_array();
	int r = analyze_packets(ctx, name, list, err);

	if (!r && ctx->sources && ctx->sources->def && ctx->running->requests.rules)
		analyze_requests(ctx, name, list);
	if (!r && name && !json_array_size(list))
		r = sl_err_set(
			err, ENOENT,
			"there is no limit or rule '%.120s'; sluicectl limit list and rule list "
			"show them",
			name);
	if (r < 0) {
		json_decref(list);
		return r;
	}
	*ret = json_pack("{s:o}", "limits", list);
	return 0;
}
