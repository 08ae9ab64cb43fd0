// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* report.c - a replay as JSON, which rows.h and page.c show. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "lib/json.h"
#include "replay/replay_private.h"

/* Members "passed", "refused"...: those that are not 0, and these two. */
static void set_outcomes(json_t *json, const u64 *count)
{
	for (u32 i = 0; i < OUTCOME_COUNT; i++)
		if (count[i] || i <= OUTCOME_REFUSED)
			json_object_set_new(json, outcome_name((enum outcome)i),
					    json_u64(count[i]));
}

static json_t *outcomes(const u64 *count)
{
	json_t *json = json_object();

	set_outcomes(json, count);
	return json;
}

/* ------------------------------------------------------------------ limits */

static json_t *limit_to_json(const struct judge_limit *limit)
{
	json_t *json = json_pack("{s:s, s:s, s:s}", "name", limit->name, "rate",
				 limit->rate ? limit->rate : "", "mode", limit->mode);

	set_outcomes(json, limit->count);
	json_object_set_new(json, "soft", json_u64(limit->soft));
	json_object_set_new(json, "bans", json_u64(limit->bans));
	return json;
}

/* The rules that a request met. */
static json_t *rules_to_json(const struct request_judge *judge)
{
	json_t *list = json_array();

	for (u32 i = 0; i < judge->rules->rule_count; i++) {
		const u64 *count = judge->limit[i].count;

		if (count[OUTCOME_PASSED] || count[OUTCOME_REFUSED] || count[OUTCOME_SHADOW] ||
		    count[OUTCOME_DELAYED])
			json_array_append_new(list, limit_to_json(&judge->limit[i]));
	}
	return list;
}

static json_t *limits_to_json(struct replay *replay, u32 side)
{
	struct judge_limit *limit;
	json_t *list;
	u32 count;

	if (replay->is_log)
		return rules_to_json(replay->requests[side]);
	list = json_array();
	if (packet_judge_limits(replay->packets[side], &limit, &count))
		return list;
	for (u32 i = 0; i < count; i++)
		json_array_append_new(list, limit_to_json(&limit[i]));
	judge_limits_free(limit, count);
	return list;
}

static json_t *reasons_to_json(struct replay *replay)
{
	struct packet_judge *judge = replay->packets[0];
	struct sl_iface_stats stats = { .bytes = { 0 } };
	json_t *list = json_array();

	judge->dp->ops->iface_stats(judge->dp, judge->iface_slot, &stats);
	for (u32 reason = 0; reason < SL_R_COUNT; reason++)
		for (u32 action = 0; action < SL_ACT_COUNT; action++)
			if (stats.packets[reason][action])
				json_array_append_new(
					list,
					json_pack("{s:s, s:s, s:o}", "verdict",
						  action_name((enum sl_action)action), "reason",
						  reason_name((enum sl_reason)reason), "packets",
						  json_u64(stats.packets[reason][action])));
	return list;
}

/* ------------------------------------------------------------------ sources */

static double by_count(const struct tally_entry *entry, const void *arg)
{
	return (double)entry->count;
}

static double by_refused(const struct tally_entry *entry, const void *arg)
{
	return (double)entry->side[0].count[OUTCOME_REFUSED];
}

/* Never refused, and nearest to it. */
static double by_used(const struct tally_entry *entry, const void *arg)
{
	return entry->side[0].count[OUTCOME_REFUSED] ? 0 : entry->side[0].used;
}

static double newly_refused(const struct tally_entry *entry, const void *arg)
{
	return (double)entry->side[1].count[OUTCOME_REFUSED] -
	       (double)entry->side[0].count[OUTCOME_REFUSED];
}

static double spared(const struct tally_entry *entry, const void *arg)
{
	return -newly_refused(entry, arg);
}

static const char *limit_name(struct replay *replay, u32 side, u32 limit)
{
	const struct policy *policy = replay->policy[side];

	if (replay->is_log)
		return replay->requests[side]->limit[limit].name;
	return limit < policy->limit_count ? policy->limit[limit].name : "";
}

static void set_side(struct replay *replay, json_t *json, const struct tally_entry *entry, u32 side)
{
	set_outcomes(json, entry->side[side].count);
	if (entry->side[side].used <= 0)
		return;
	json_object_set_new(json, "used", json_real(entry->side[side].used));
	json_object_set_new(json, "limit",
			    json_string(limit_name(replay, side, entry->side[side].limit)));
}

static json_t *entry_to_json(struct replay *replay, const struct tally_entry *entry)
{
	char text[SL_PREFIX_TEXT];
	const char *label = tally_label(replay->tally, entry);
	json_t *json =
		json_pack("{s:s, s:o, s:o, s:o}", "who",
			  label[0] ? label : sl_prefix_format(&entry->source, text, sizeof(text)),
			  "count", json_u64(entry->count), "missed", json_u64(entry->missed),
			  "peak_per_second", json_u64(entry->peak));

	if (entry->bytes)
		json_object_set_new(json, "bytes", json_u64(entry->bytes));
	set_side(replay, json, entry, 0);
	if (replay->sides > 1) {
		json_t *other = json_object();

		set_side(replay, other, entry, 1);
		json_object_set_new(json, "compare", other);
	}
	return json;
}

static json_t *top_to_json(struct replay *replay, tally_rank rank)
{
	u32 max = replay->plan->count, count;
	struct tally_entry **entry = calloc(max + 1, sizeof(struct tally_entry *));
	json_t *list = json_array();

	if (!entry)
		return list;
	count = tally_top(replay->tally, rank, NULL, entry, max);
	for (u32 i = 0; i < count; i++)
		json_array_append_new(list, entry_to_json(replay, entry[i]));
	free(entry);
	return list;
}

/* ------------------------------------------------------------------ time */

static void set_bars(json_t *json, const char *key, const struct timeline *line, u32 side,
		     enum outcome outcome)
{
	char *text = timeline_bars(line, side, outcome);

	if (text)
		json_object_set_new(json, key, json_string(text));
	free(text);
}

static json_t *timeline_to_json(const struct replay *replay)
{
	const struct timeline *line = &replay->line;
	json_t *bins = json_array(), *json;

	for (u32 i = 0; i < line->bins; i++) {
		json_t *bin = outcomes(line->count[i][0]);

		if (replay->sides > 1)
			json_object_set_new(bin, "compare", outcomes(line->count[i][1]));
		json_array_append_new(bins, bin);
	}
	json = json_pack("{s:o, s:o}", "step_ns", json_u64(line->step_ns), "bins", bins);
	json_object_set_new(json, "bar_ns",
			    json_u64(line->step_ns * (line->bins > TIMELINE_BINS / 2 ? 2 : 1)));
	set_bars(json, "passed_bars", line, 0, OUTCOME_PASSED);
	set_bars(json, "refused_bars", line, 0, OUTCOME_REFUSED);
	if (replay->sides > 1)
		set_bars(json, "compare_bars", line, 1, OUTCOME_REFUSED);
	return json;
}

/* ------------------------------------------------------------------ notes */

static void add_note(void *notes, const char *text)
{
	json_array_append_new(notes, json_string(text));
}

static void add_count(json_t *notes, u64 count, const char *text)
{
	if (count)
		json_array_append_new(notes, json_sprintf("%llu %s", count, text));
}

static json_t *notes_to_json(struct replay *replay)
{
	json_t *notes = json_array();

	add_count(notes, replay->disordered,
		  "are older than one before them: judged at that one's time");
	add_count(notes, replay->no_source, "have no IP source and are in no list of sources");
	add_count(notes, replay->capture.outgoing,
		  "were sent by the capturing machine and are left out");
	add_count(notes, replay->capture.cut,
		  "were captured up to less than 128 bytes: what is missing of "
		  "their headers reads as zeros");
	add_count(notes, replay->capture.merged,
		  "are longer than 9018 bytes, as cards with segmentation "
		  "offload make them: on the wire each was several");
	add_count(notes, tally_replaced(replay->tally),
		  "times a source made room in the lists: counts may be "
		  "too low by `missed`");
	add_count(notes, replay->no_time, "have no time: judged at that of the one before");
	add_count(notes, replay->refused_then,
		  "were refused then (429), and are judged like the others");
	add_count(notes, replay->no_rule, "descriptors met no rule");
	add_count(notes, replay->bad_lines, "lines are no requests:");
	for (u32 i = 0; i < replay->bad_lines && i < ARRAY_SIZE(replay->bad_line); i++)
		add_note(notes, replay->bad_line[i]);
	for (u32 i = 0; i < replay->sides; i++) {
		if (replay->requests[i])
			request_judge_notes(replay->requests[i], add_note, notes);
		else
			packet_judge_notes(replay->packets[i], add_note, notes);
	}
	return notes;
}

/* ------------------------------------------------------------------ all */

static void set_comparison(struct replay *replay, json_t *json)
{
	json_object_set_new(json, "compare", json_string(replay->plan->compare));
	json_object_set_new(json, "compare_totals", outcomes(replay->total[1]));
	json_object_set_new(json, "compare_limits", limits_to_json(replay, 1));
	json_object_set_new(json, "hurt", top_to_json(replay, newly_refused));
	json_object_set_new(json, "spared", top_to_json(replay, spared));
}

int replay_report(struct replay *replay, json_t **ret, struct sl_err *err)
{
	char text[sizeof(struct sl_err)];
	json_t *json = json_pack(
		"{s:b, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "ok", 1, "input", replay->plan->input,
		"config", replay->plan->config, "unit", replay->is_log ? "requests" : "packets",
		"count", json_u64(replay->count), "from", json_utc(replay->first_utc_ns), "span_ns",
		json_u64(replay->last_ns), "subjects", json_u64(tally_subjects(replay->tally)));

	if (!json)
		return sl_err_set(err, EINVAL, "a file name is not UTF-8");
	if (replay->damage.message[0])
		json_object_set_new(
			json, "damage",
			json_string(sl_err_format(&replay->damage, text, sizeof(text))));
	json_object_set_new(json, "totals", outcomes(replay->total[0]));
	json_object_set_new(json, "limits", limits_to_json(replay, 0));
	if (!replay->is_log) {
		json_object_set_new(json, "bytes", json_u64(replay->bytes));
		json_object_set_new(json, "reasons", reasons_to_json(replay));
	}
	json_object_set_new(json, "heaviest", top_to_json(replay, by_count));
	json_object_set_new(json, "refused", top_to_json(replay, by_refused));
	json_object_set_new(json, "nearest", top_to_json(replay, by_used));
	json_object_set_new(json, "timeline", timeline_to_json(replay));
	json_object_set_new(json, "notes", notes_to_json(replay));
	if (replay->sides > 1)
		set_comparison(replay, json);
	*ret = json;
	return 0;
}
