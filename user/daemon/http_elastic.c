// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * http_elastic.c - see http_elastic.h.
 *
 * A limit is known by its rule and its number in it, so a reload that leaves both goes on at the
 * scale there was. The scale and its deadline are words in the rule set, the only ones of it that
 * change: workers read them with the rest. The deadline is on the store's clock, two seconds
 * ahead: without the main thread the plain limit holds.
 */
#include "daemon/http_elastic.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/elastic.h"
#include "daemon/load_signal.h"
#include "request/server/worker.h"

struct http_elastic_limit {
	u64 rule_id;
	u32 number;
	u32 tick;		/* when it was stepped last */
	struct elastic_control control;
};

struct http_elastic {
	struct http_elastic_limit *limit;
	size_t count;
	u32 tick;
	u64 looked_at;		/* generation of the rules whose answer `any` is */
	bool any;
};

static bool grows(const struct rule_limit *limit)
{
	return limit->throttle.kind == THROTTLE_ELASTIC;
}

static bool look_for_any(const struct ruleset *rules)
{
	for (u32 i = 0; i < rules->rule_count; i++)
		for (u32 k = 0; k < rules->rule[i]->limit_count; k++)
			if (grows(&rules->rule[i]->limit[k]))
				return true;
	return false;
}

bool http_elastic_any(const struct daemon *d)
{
	return d->http_rules && look_for_any(d->http_rules);
}

static struct http_elastic_limit *scale_find(const struct http_elastic *all, u64 rule_id, u32 number)
{
	for (size_t i = 0; all && i < all->count; i++)
		if (all->limit[i].rule_id == rule_id && all->limit[i].number == number)
			return &all->limit[i];
	return NULL;
}

static struct http_elastic_limit *scale_find_or_add(struct http_elastic *all, u64 rule_id, u32 number)
{
	struct http_elastic_limit *limit = scale_find(all, rule_id, number);

	if (limit)
		return limit;
	limit = reallocarray(all->limit, all->count + 1, sizeof(*limit));
	if (!limit)
		return NULL;
	all->limit = limit;
	limit += all->count++;
	*limit = (struct http_elastic_limit){ .rule_id = rule_id, .number = number };
	return limit;
}

static void publish_scale(struct daemon *d, struct rule_limit *limit, double scale)
{
	struct sl_elastic value = elastic_value(scale, 0);

	__atomic_store_n(&limit->scale, value.scale, __ATOMIC_RELAXED);
	__atomic_store_n(&limit->scale_until_ns,
			 counters_now(d->http->counters).mono_ns + ELASTIC_VALID_NS,
			 __ATOMIC_RELEASE);
}

static void scale_step(struct daemon *d, const struct rule *rule, u32 number, u64 now_ns, double seconds)
{
	struct http_elastic *all = d->http_elastic;
	const struct throttle_def *throttle = &rule->limit[number].throttle;
	struct http_elastic_limit *limit = scale_find_or_add(all, rule->id, number);
	struct elastic_input input;

	if (!limit)
		return;
	if (limit->tick + 1 != all->tick)
		limit->control = (struct elastic_control){ .scale = 0 };
	limit->tick = all->tick;
	elastic_look(d, throttle, now_ns, &input);
	elastic_step(&limit->control, throttle->ceiling_percent / 100.0, &input, seconds);
	publish_scale(d, &rule->limit[number], limit->control.scale);
}

/* Those of rules that are gone. */
static void forget_gone(struct http_elastic *all)
{
	size_t kept = 0;

	for (size_t i = 0; i < all->count; i++)
		if (all->limit[i].tick == all->tick)
			all->limit[kept++] = all->limit[i];
	all->count = kept;
}

void http_elastic_tick(struct daemon *d, u64 now_ns, double seconds)
{
	if (!d->http_rules)
		return;
	if (!d->http_elastic)
		d->http_elastic = calloc(1, sizeof(*d->http_elastic));
	if (!d->http_elastic)
		return;
	if (d->http_elastic->looked_at != d->http_rules->generation) {
		d->http_elastic->looked_at = d->http_rules->generation;
		d->http_elastic->any = look_for_any(d->http_rules);
	}
	d->http_elastic->tick++;
	for (u32 i = 0; d->http_elastic->any && i < d->http_rules->rule_count; i++)
		for (u32 k = 0; k < d->http_rules->rule[i]->limit_count; k++)
			if (grows(&d->http_rules->rule[i]->limit[k]))
				scale_step(d, d->http_rules->rule[i], k, now_ns, seconds);
	forget_gone(d->http_elastic);
}

bool http_elastic_uses(const struct daemon *d, const char *signal, json_t *names)
{
	bool used = false;

	for (u32 i = 0; d->http_rules && i < d->http_rules->rule_count; i++) {
		const struct rule *rule = d->http_rules->rule[i];
		bool by_rule = false;

		for (u32 k = 0; k < rule->limit_count; k++)
			by_rule |= grows(&rule->limit[k]) &&
				   !strcmp(rule->limit[k].throttle.signal, signal);
		if (by_rule && names)
			json_array_append_new(names, json_sprintf("%s/%s", rule->domain, rule->path));
		used |= by_rule;
	}
	return used;
}

static bool load_signal_is_listed(const json_t *list, const char *name)
{
	const json_t *item;
	size_t i;

	json_array_foreach((json_t *)list, i, item)
		if (!strcmp(json_string_value(json_object_get(item, "name")), name))
			return true;
	return false;
}

void http_elastic_load_signals(const struct daemon *d, u64 now_ns, json_t *list)
{
	for (u32 i = 0; d->http_rules && i < d->http_rules->rule_count; i++) {
		const struct rule *rule = d->http_rules->rule[i];

		for (u32 k = 0; k < rule->limit_count; k++) {
			const char *name = rule->limit[k].throttle.signal;

			if (grows(&rule->limit[k]) && name[0] && !load_signal_is_listed(list, name))
				json_array_append_new(list, load_signal_to_json(d, name, now_ns));
		}
	}
}

double http_elastic_scale(const struct daemon *d, const struct rule *rule, u32 limit)
{
	const struct http_elastic_limit *found = scale_find(d->http_elastic, rule->id, limit);

	return found && found->control.scale > 1 ? found->control.scale : 1;
}

void http_elastic_free(struct daemon *d)
{
	if (d->http_elastic)
		free(d->http_elastic->limit);
	free(d->http_elastic);
	d->http_elastic = NULL;
}
