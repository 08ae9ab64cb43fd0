// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * http_elastic.c - see http_elastic.h.
 *
 * A limit is identified by its rule and its index in it, so a reload that leaves both keeps the
 * scale. The scale and its deadline are the only mutable fields of the rule set; workers read them
 * with the limit. The deadline is on the counter table's clock, two seconds ahead: without the main
 * thread the configured limit applies.
 */
#include "control/elastic/http_elastic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "control/elastic/elastic.h"
#include "control/elastic/load_signal.h"
#include "counters/counters.h"
#include "lib/array.h"
#include "request/engine/engine.h"
#include "request/rules/rule.h"

struct http_elastic_limit {
	u64 rule_id;
	u32 number;
	u32 tick; /* of the last step */
	struct elastic_control control;
};

struct http_elastic {
	struct http_elastic_limit *limit;
	size_t count;
	u32 tick;
	u64 looked_at; /* generation of the rules that `any` is for */
	bool any;
};

static bool grows(const struct rule_limit *limit)
{
	return limit->terms.throttle.kind == THROTTLE_ELASTIC;
}

static bool look_for_any(const struct ruleset *rules)
{
	for (u32 i = 0; i < rules->rule_count; i++)
		for (u32 k = 0; k < rules->rule[i]->limit_count; k++)
			if (grows(&rules->rule[i]->limit[k]))
				return true;
	return false;
}

bool http_elastic_any(const struct scales *scales)
{
	return scales->running->requests.rules && look_for_any(scales->running->requests.rules);
}

static struct http_elastic_limit *scale_find(const struct http_elastic *all, u64 rule_id,
					     u32 number)
{
	for (size_t i = 0; all && i < all->count; i++)
		if (all->limit[i].rule_id == rule_id && all->limit[i].number == number)
			return &all->limit[i];
	return NULL;
}

static struct http_elastic_limit *scale_find_or_add(struct http_elastic *all, u64 rule_id,
						    u32 number)
{
	struct http_elastic_limit *limit = scale_find(all, rule_id, number);

	if (limit)
		return limit;
	if (append(all->limit, all->count,
		   (struct http_elastic_limit){ .rule_id = rule_id, .number = number }))
		return NULL;
	return &all->limit[all->count - 1];
}

static void publish_scale(struct scales *scales, struct rule_limit *limit, double scale)
{
	/* Of the cluster: few different rates, each of which is a class of the counter table. */
	struct sl_elastic value =
		elastic_value(limit->terms.cluster ? exp2(floor(log2(scale) * 4) / 4) : scale, 0);

	__atomic_store_n(&limit->scale, value.scale, __ATOMIC_RELAXED);
	__atomic_store_n(&limit->scale_until_ns,
			 counters_now(scales->running->requests.engine->ledger.counters).mono_ns +
				 ELASTIC_VALID_NS,
			 __ATOMIC_RELEASE);
}

static void scale_step(struct scales *scales, const struct rule *rule, u32 number, u64 now_ns,
		       double seconds)
{
	struct http_elastic *all = scales->http;
	const struct throttle_def *throttle = &rule->limit[number].terms.throttle;
	struct http_elastic_limit *limit = scale_find_or_add(all, rule->id, number);
	struct elastic_input input;

	if (!limit)
		return;
	if (limit->tick + 1 != all->tick)
		limit->control = (struct elastic_control){ .scale = 0 };
	limit->tick = all->tick;
	elastic_look(scales, throttle, now_ns, &input);
	elastic_step(&limit->control, elastic_range_of(throttle), &input, seconds);
	publish_scale(scales, &rule->limit[number], limit->control.scale);
}

/* Removes limits whose rules are gone. */
static void forget_gone(struct http_elastic *all)
{
	size_t kept = 0;

	for (size_t i = 0; i < all->count; i++)
		if (all->limit[i].tick == all->tick)
			all->limit[kept++] = all->limit[i];
	all->count = kept;
}

void http_elastic_tick(struct scales *scales, u64 now_ns, double seconds)
{
	if (!scales->running->requests.rules)
		return;
	if (!scales->http)
		scales->http = calloc(1, sizeof(*scales->http));
	if (!scales->http)
		return;
	if (scales->http->looked_at != scales->running->requests.rules->generation) {
		scales->http->looked_at = scales->running->requests.rules->generation;
		scales->http->any = look_for_any(scales->running->requests.rules);
	}
	scales->http->tick++;
	for (u32 i = 0; scales->http->any && i < scales->running->requests.rules->rule_count; i++)
		for (u32 k = 0; k < scales->running->requests.rules->rule[i]->limit_count; k++)
			if (grows(&scales->running->requests.rules->rule[i]->limit[k]))
				scale_step(scales, scales->running->requests.rules->rule[i], k,
					   now_ns, seconds);
	forget_gone(scales->http);
}

bool http_elastic_uses(const struct scales *scales, const char *signal, json_t *names)
{
	bool used = false;

	for (u32 i = 0;
	     scales->running->requests.rules && i < scales->running->requests.rules->rule_count;
	     i++) {
		const struct rule *rule = scales->running->requests.rules->rule[i];
		bool by_rule = false;

		for (u32 k = 0; k < rule->limit_count; k++)
			by_rule |= grows(&rule->limit[k]) &&
				   !strcmp(rule->limit[k].terms.throttle.load_signal, signal);
		if (by_rule && names)
			json_array_append_new(names,
					      json_sprintf("%s/%s", rule->domain, rule->path));
		used |= by_rule;
	}
	return used;
}

void http_elastic_load_signals(const struct scales *scales, u64 now_ns, json_t *list)
{
	for (u32 i = 0;
	     scales->running->requests.rules && i < scales->running->requests.rules->rule_count;
	     i++) {
		const struct rule *rule = scales->running->requests.rules->rule[i];

		for (u32 k = 0; k < rule->limit_count; k++) {
			const char *name = rule->limit[k].terms.throttle.load_signal;

			if (grows(&rule->limit[k]) && name[0] && !load_signal_is_listed(list, name))
				json_array_append_new(list,
						      load_signal_to_json(scales, name, now_ns));
		}
	}
}

double http_elastic_scale(const struct scales *scales, const struct rule *rule, u32 limit)
{
	const struct http_elastic_limit *found = scale_find(scales->http, rule->id, limit);

	return found && found->control.scale > 0 ? found->control.scale : 1;
}

void http_elastic_free(struct scales *scales)
{
	if (scales->http)
		free(scales->http->limit);
	free(scales->http);
	scales->http = NULL;
}
