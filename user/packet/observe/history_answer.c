// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* history_answer.c - see history_answer.h. */
#include "packet/observe/history_answer.h"

#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/json.h"

void history_answer_begin(struct history_answer *a, const struct history_query *query,
			  u64 begins_ns)
{
	memset(a, 0, sizeof(*a));
	a->query = query;
	a->begins_ns = begins_ns;
	a->events = json_array();
	a->covered_ns = query->from_ns;
}

/* What an event begins, or ends; OBSERVED_KINDS: neither. */
static enum observed_kind begun_by(enum observed_kind kind, bool *ret_ends)
{
	*ret_ends = true;
	switch (kind) {
	case OBSERVED_RELEASED:
		return OBSERVED_OVER;
	case OBSERVED_UNBAN:
		return OBSERVED_BAN;
	case OBSERVED_PUSHDOWN_END:
		return OBSERVED_PUSHDOWN;
	case OBSERVED_UNBLOCK:
		return OBSERVED_BLOCK;
	case OBSERVED_OVER:
	case OBSERVED_BAN:
	case OBSERVED_PUSHDOWN:
	case OBSERVED_BLOCK:
		*ret_ends = false;
		return kind;
	default:
		return OBSERVED_KINDS;
	}
}

static void note_before(struct history_answer *a, const struct observed *event)
{
	bool ends;
	enum observed_kind kind = begun_by(event->kind, &ends);

	if (kind == OBSERVED_KINDS)
		return;
	for (size_t i = 0; i < a->opens; i++) {
		if (a->open[i].kind != kind || strcmp(a->open[i].name, event->name) ||
		    !sl_prefix_equal(&a->open[i].source, &event->source))
			continue;
		a->open[i] = a->open[--a->opens];
		break;
	}
	if (ends || a->opens == HISTORY_OPEN_MAX)
		return;
	a->open[a->opens] = *event;
	a->open[a->opens].reason = a->open[a->opens].verdict = NULL;
	a->opens++;
}

void history_answer_event(struct history_answer *a, const struct observed *event)
{
	bool is_first = event->kind == OBSERVED_OVER || event->kind == OBSERVED_REFUSED;

	if (event->utc_ns >= a->query->from_ns) {
		json_array_append_new(a->events, observed_to_json(event, false));
		a->refused |= event->kind != OBSERVED_TRAFFIC;
		return;
	}
	note_before(a, event);
	if (is_first && event->utc_ns + HISTORY_AGAIN_NS > a->query->from_ns) {
		a->before = *event;
		a->before.reason = a->before.verdict = NULL;
	}
}

void history_answer_left_out(struct history_answer *a, enum observed_kind kind, u64 count)
{
	if (kind < OBSERVED_KINDS)
		a->left_out[kind] += count;
}

void history_answer_run(struct history_answer *a, u64 from_ns, u64 to_ns)
{
	if (from_ns > a->covered_ns && !a->gap_from_ns && a->covered_ns < a->query->to_ns) {
		a->gap_from_ns = a->covered_ns;
		a->gap_to_ns = from_ns < a->query->to_ns ? from_ns : a->query->to_ns;
	}
	if (to_ns + RUN_SLACK_NS > a->covered_ns)
		a->covered_ns = to_ns + RUN_SLACK_NS;
}

/* Times that the history does not have. */
static void explain_times(const struct history_answer *a, FILE *out)
{
	u64 now_ns = clock_utc_ns(), to_ns = a->query->to_ns < now_ns ? a->query->to_ns : now_ns;
	char from[32], to[32];

	if (!a->begins_ns || to_ns <= a->begins_ns)
		fprintf(out, "the history begins later, at %s; ",
			clock_format_utc(a->begins_ns ? a->begins_ns : now_ns, from, sizeof(from)));
	else if (a->query->from_ns < a->begins_ns)
		fprintf(out, "the history begins at %s; ",
			clock_format_utc(a->begins_ns, from, sizeof(from)));
	else if (a->gap_from_ns)
		fprintf(out,
			"sluiced did not run from %s to %s: limits were in force, nothing was recorded; ",
			clock_format_utc(a->gap_from_ns, from, sizeof(from)),
			clock_format_utc(a->gap_to_ns, to, sizeof(to)));
	else if (a->covered_ns < to_ns)
		fprintf(out,
			"sluiced did not run from %s on: limits were in force, nothing was recorded; ",
			clock_format_utc(a->covered_ns, from, sizeof(from)));
}

/* What was refused and has no row. */
static void explain_left_out(const struct history_answer *a, FILE *out)
{
	u64 refusals = a->left_out[OBSERVED_REFUSED], over = a->left_out[OBSERVED_OVER];
	u64 drops = a->left_out[OBSERVED_DROP];

	if (a->query->value && refusals)
		fprintf(out,
			"at most %d values a second are, and %llu refusals by this rule were lost in that time; ",
			OBSERVE_REFUSED_A_SECOND, refusals);
	else if (!a->query->value && over + drops)
		fprintf(out,
			"more was refused then than events.rate and history.size have room for: %llu first "
			"refusals and the drops of %llu light sources were lost in that time; ",
			over, drops);
}

/* The same again, within ten minutes, is no row. */
static void explain_before(const struct history_answer *a, FILE *out)
{
	char at[32];

	if (!a->before.utc_ns)
		return;
	for (size_t i = 0; i < a->opens; i++)
		if (a->open[i].kind == a->before.kind && !strcmp(a->open[i].name, a->before.name))
			return; /* it says so: in force */
	fprintf(out,
		"refused by %s %.64s at %s: if that went on, or happened again within 10 minutes, it is not "
		"recorded again; ",
		a->before.kind == OBSERVED_REFUSED ? "rule" : "limit", a->before.name,
		clock_format_utc(a->before.utc_ns, at, sizeof(at)));
}

/* Why something may be missing; "": nothing is. */
static void explain_missing(const struct history_answer *a, char *text, size_t size)
{
	FILE *out = fmemopen(text, size, "w");
	size_t length;

	text[0] = '\0';
	if (!out)
		return;
	explain_times(a, out);
	explain_before(a, out);
	explain_left_out(a, out);
	fclose(out);
	length = strlen(text);
	if (length >= 2)
		text[length - 2] = '\0'; /* the last "; " */
}

json_t *history_answer_end(struct history_answer *a)
{
	json_t *in_force = json_array(), *result;
	char missing[768];

	for (size_t i = 0; i < a->opens; i++)
		json_array_append_new(in_force, observed_to_json(&a->open[i], false));
	explain_missing(a, missing, sizeof(missing));
	result = json_pack("{s:o, s:o, s:o, s:o}", "from", json_utc(a->query->from_ns), "to",
			   json_utc(a->query->to_ns), "events", a->events, "in_force", in_force);
	if (missing[0])
		json_object_set_new(result, "not_recorded", json_string(missing));
	json_object_set_new(result, "nothing",
			    json_boolean(!a->refused && !json_array_size(in_force)));
	return result;
}
