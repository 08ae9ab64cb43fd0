// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sources_show.c - the state of sources, for commands and metrics; see sources.h. */
#include <stdio.h>
#include <string.h>

#include "packet/dataplane/dp_push.h"
#include "lib/clock.h"
#include "lib/json.h"
#include "lib/exposition.h"
#include "lib/visible.h"
#include "control/mitigation/sources.h"

/* The group of addresses that a source's push-downs and users belong to. */
static struct sl_prefix sources_group(const struct sources *s, const struct sl_prefix *source)
{
	return aggregate_group(source, s->def->push_down.prefix);
}

json_t *sources_text(const char *bytes, size_t len, bool cut)
{
	char text[4 * AGGREGATE_VALUE_MAX + 8];
	struct out out;

	out_begin(&out, text, sizeof(text));
	out_utf8(&out, bytes, len < AGGREGATE_VALUE_MAX ? len : AGGREGATE_VALUE_MAX);
	if (cut)
		out_text(&out, "...");
	return json_string(out_end(&out));
}

/* A monotonic time as UTC. */
static json_t *push_utc(u64 mono_ns)
{
	return json_utc(mono_ns + clock_utc_offset_ns());
}

json_t *sources_push_to_json(struct sources *s, const struct push_entry *entry)
{
	const struct push_step *step = &entry->steps[entry->step];
	char source[SL_PREFIX_TEXT], rate[96];
	u64 now_ns = clock_mono_ns();
	struct dp_push push = { .packets = 0 };
	json_t *json;

	if (s->running->packets->dp && !entry->shadow)
		dp_push_get(s->running->packets->dp, &entry->group, &push);
	json = json_pack("{s:s, s:s, s:i, s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "source",
			 sl_prefix_format(&entry->group, source, sizeof(source)), "step",
			 push_kind_name(step->kind), "steps", (int)entry->def.step_count, "rule",
			 entry->rule, "value",
			 sources_text(entry->value, strlen(entry->value), false), "shadow",
			 entry->shadow, "since", push_utc(entry->began_ns), "until",
			 push_utc(entry->until_ns), "left_ns",
			 json_u64(entry->until_ns > now_ns ? entry->until_ns - now_ns : 0),
			 "packets", json_u64(push.packets), "refused", json_u64(push.refused));
	if (entry->node[0])
		json_object_set_new(json, "node", json_string(entry->node));
	if (step->kind == SL_PUSH_LIMIT)
		json_object_set_new(json, "rate",
				    json_string(rate_format(&entry->rate, rate, sizeof(rate))));
	return json;
}

json_t *sources_show(struct sources *s, const struct sl_prefix *source)
{
	const struct source_budget *budget;
	const struct push_entry *entry;
	struct source_profile profile;
	struct sl_prefix group;
	char text[SL_PREFIX_TEXT];
	json_t *json;

	if (!s || !s->def)
		return NULL;
	sources_drain(s);
	group = sources_group(s, source);
	users_profile(s->users, &group, clock_mono_ns(), &profile);
	budget = budgets_find(&s->budgets, &group);
	entry = push_find(s->push, &group);
	json = json_pack("{s:s, s:o, s:o, s:o}", "source",
			 sl_prefix_format(&group, text, sizeof(text)), "users",
			 json_u64(profile.users), "well_behaved", json_u64(profile.good),
			 "requests", json_u64(profile.requests));
	if (s->def->budget.limit[0]) {
		json_object_set_new(json, "limit", json_string(s->def->budget.limit));
		json_object_set_new(
			json, "budget_pps",
			json_u64(budget ? budget->pps : budget_pps(&s->def->budget, 0)));
	}
	json_object_set_new(json, "push_down",
			    entry ? sources_push_to_json(s, entry) : json_null());
	return json;
}

void sources_metrics(struct sources *s, struct exposition *e)
{
	struct users_stats users;
	struct push_stats push;

	if (!s || !s->def)
		return;
	push_stats(s->push, &push);
	users_stats(s->users, &users);
	metric_begin(e, "sluice_pushdowns_active", METRIC_GAUGE, "Active push-downs, by action.");
	for (u32 kind = 0; kind < SL_PUSH_COUNT; kind++)
		metric_u64(e, push.active[kind], "step", push_kind_name(kind), NULL);
	metric_begin(
		e, "sluice_pushdowns_refused", METRIC_COUNTER,
		"Times a source met the conditions of push_down and was not pushed down, by reason.");
	for (u32 reason = 1; reason < PUSH_REFUSAL_COUNT; reason++)
		metric_u64(e, push.refused[reason], "reason", push_refusal_name(reason), NULL);
	metric_begin(e, "sluice_source_users", METRIC_GAUGE,
		     "Tracked pairs of a user and a source, and the room for them.");
	metric_u64(e, users.pairs, NULL);
	metric_begin(
		e, "sluice_source_users_crowded", METRIC_COUNTER,
		"Users that were not counted at a source because of max_users or lack of room.");
	metric_u64(e, users.crowded, NULL);
	metric_begin(e, "sluice_source_budgets", METRIC_GAUGE,
		     "Sources with active users and therefore a budget of their own.");
	metric_u64(e, s->budgets.count, NULL);
	metric_begin(
		e, "sluice_source_notes_lost", METRIC_COUNTER,
		"Decisions not counted for users and sources, because the main thread was late.");
	metric_u64(e, aggregate_lost(s->aggregate), NULL);
}
