// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * request_judge.c - the request tier of judge.h: the decision core over a counter table in memory.
 *
 * As a machine alone: limits of scope cluster count here, and no queue holds a request back. One
 * that would wait (on_limit) counts as delayed, and is charged nothing. A concurrency refuses none:
 * what is replayed has no ends of requests.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/request_judge.h"

#define SWEEP_NS (60 * SL_NS_PER_SEC)
#define USERS_DEFAULT 1000000
#define LOG_BYTES_DEFAULT (64ULL << 20)

static char *rates_text(const struct rule *rule)
{
	char text[256], rate[64];
	size_t used = 0;

	if (rule->unlimited)
		return strdup("unlimited");
	text[0] = '\0';
	for (u32 i = 0; i < rule->limit_count && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s%s", i ? ", " : "",
					 rule->limit[i].none
						 ? "0 requests"
						 : rate_format(&rule->limit[i].terms.rates.rate[0],
							       rate, sizeof(rate)),
					 rule->limit[i].mode == SL_MODE_SHADOW ? " (shadow)" : "");
	return strdup(text);
}

static int name_limits(struct request_judge *judge)
{
	const struct ruleset *rules = judge->rules;

	judge->limit = calloc(rules->rule_count ? rules->rule_count : 1, sizeof(*judge->limit));
	judge->name = calloc(rules->rule_count ? rules->rule_count : 1, sizeof(*judge->name));
	if (!judge->limit || !judge->name)
		return -ENOMEM;
	for (u32 i = 0; i < rules->rule_count; i++) {
		const struct rule *rule = rules->rule[i];

		if (asprintf(&judge->name[i], "%s/%s", rule->domain, rule->path) < 0) {
			judge->name[i] = NULL;
			return -ENOMEM;
		}
		judge->limit[i] =
			(struct judge_limit){ .name = judge->name[i],
					      .rate = rates_text(rule),
					      .mode = rule->shadow ? "shadow" : "enforce" };
	}
	return 0;
}

int request_judge_open(const char *path, bool enforce, struct request_judge **ret,
		       struct sl_err *err)
{
	struct request_judge *judge = calloc(1, sizeof(*judge));
	const struct http_def *http;
	int r;

	if (!judge)
		return sl_err_set(err, ENOMEM, "out of memory");
	r = ruleset_load_path(path, &judge->rules, &judge->policy, err);
	http = judge->policy ? judge->policy->http : NULL;
	for (u32 i = 0; !r && enforce && i < judge->rules->rule_count; i++)
		judge->rules->rule[i]->shadow = false;
	if (!r && name_limits(judge))
		r = sl_err_set(err, ENOMEM, "out of memory");
	if (!r)
		r = counters_open(NULL, http ? http->users : USERS_DEFAULT,
				  http ? http->log_bytes : LOG_BYTES_DEFAULT,
				  &judge->ledger.counters, err);
	if (r) {
		request_judge_close(judge);
		return r;
	}
	counters_on_full(judge->ledger.counters, http && http->on_full == FULL_CLOSED);
	*ret = judge;
	return 0;
}

void request_judge_close(struct request_judge *judge)
{
	if (!judge)
		return;
	for (u32 i = 0; judge->rules && i < judge->rules->rule_count; i++) {
		if (judge->limit)
			free(judge->limit[i].rate);
		if (judge->name)
			free(judge->name[i]);
	}
	free(judge->limit);
	free(judge->name);
	counters_close(judge->ledger.counters);
	ruleset_free(judge->rules);
	policy_free(judge->policy);
	free(judge);
}

/* ------------------------------------------------------------------ one request */

static enum outcome status_outcome(const struct response_status *status, enum outcome all)
{
	if (status->shadow)
		return OUTCOME_SHADOW;
	if (status->over)
		return all == OUTCOME_DELAYED ? OUTCOME_DELAYED : OUTCOME_REFUSED;
	return all == OUTCOME_PASSED ? OUTCOME_PASSED : OUTCOME_COUNT;
}

static float status_used(const struct response_status *status)
{
	u64 capacity = status->requests;

	if (!status->limit || status->unlimited)
		return 0;
	if (status->limit->terms.rates.burst[0] > capacity)
		capacity = status->limit->terms.rates.burst[0];
	if (status->over || !capacity)
		return 1;
	return status->remaining < capacity ? 1 - (float)status->remaining / (float)capacity : 0;
}

enum outcome request_judge_decide(struct request_judge *judge, const struct request *request,
				  struct sl_now now,
				  struct request_part part[REQUEST_DESCRIPTORS_MAX])
{
	struct decide_delay delay = { .key = 0 };
	struct request once = *request;
	struct response response;
	enum outcome all;

	once.ends_unknown = true;

	if (now.mono_ns - judge->swept_ns >= SWEEP_NS) {
		judge->swept_ns = now.mono_ns;
		counters_sweep_all(judge->ledger.counters, now);
	}
	decide(&judge->ledger, judge->rules, &once, now, &response, &delay);
	all = response.code == RESPONSE_OK ? OUTCOME_PASSED
	      : response.code == RESPONSE_OVER_LIMIT && delay.key && delay.wait_ns <= delay.limit_ns
		      ? OUTCOME_DELAYED
		      : OUTCOME_REFUSED;
	for (u32 i = 0; i < response.count; i++) {
		const struct response_status *status = &response.status[i];
		enum outcome outcome = status_outcome(status, all);

		part[i] = (struct request_part){ .outcome = outcome, .used = status_used(status) };
		if (!status->rule)
			continue;
		part[i].rule = status->rule->index;
		part[i].has_rule = true;
		if (outcome < OUTCOME_COUNT)
			judge->limit[status->rule->index].count[outcome]++;
		judge->limit[status->rule->index].soft += status->soft && outcome == OUTCOME_PASSED;
	}
	return all;
}

void request_judge_notes(const struct request_judge *judge,
			 void (*add)(void *arg, const char *text), void *arg)
{
	char text[512];

	for (u32 i = 0; i < judge->rules->rule_count; i++) {
		bool cluster = false, elastic = false;

		for (u32 k = 0; k < judge->rules->rule[i]->limit_count; k++) {
			const struct rule_limit *limit = &judge->rules->rule[i]->limit[k];

			cluster |= limit->terms.cluster;
			elastic |= limit->terms.throttle.kind == THROTTLE_ELASTIC;
		}
		if (!cluster && !elastic)
			continue;
		snprintf(text, sizeof(text), "rule %s %s", judge->name[i],
			 cluster ? "has scope cluster: requests to other nodes are not in the input"
				 : "is elastic: judged at its own rate");
		add(arg, text);
	}
}
