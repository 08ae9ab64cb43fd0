// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* history_answer.c - see history_answer.h. */
#include "packet/observe/history_answer.h"

#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/json.h"


void history_answer_begin(struct history_answer *a, const struct history_query *query, u64 begins_ns)
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
	if (event->utc_ns < a->query->from_ns)
		note_before(a, event);
	else
		json_array_append_new(a->events, observed_to_json(event, false));
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

/* Why something may be missing; "": nothing is. */
static void explain_missing(const struct history_answer *a, char *text, size_t size)
{
	u64 now_ns = clock_utc_ns(), to_ns = a->query->to_ns < now_ns ? a->query->to_ns : now_ns;
	u64 refusals = a->left_out[OBSERVED_OVER] + a->left_out[OBSERVED_REFUSED];
	char from[32], to[32];

	text[0] = '\0';
	if (!a->begins_ns || to_ns <= a->begins_ns)
		snprintf(text, size, "the history begins later, at %s",
			 clock_format_utc(a->begins_ns ? a->begins_ns : now_ns, from, sizeof(from)));
	else if (a->query->from_ns < a->begins_ns)
		snprintf(text, size, "the history begins at %s",
			 clock_format_utc(a->begins_ns, from, sizeof(from)));
	else if (a->gap_from_ns)
		snprintf(text, size, "sluiced did not run from %s to %s: limits were in force, nothing was recorded",
			 clock_format_utc(a->gap_from_ns, from, sizeof(from)),
			 clock_format_utc(a->gap_to_ns, to, sizeof(to)));
	else if (a->covered_ns < to_ns)
		snprintf(text, size, "sluiced did not run from %s on: limits were in force, nothing was recorded",
			 clock_format_utc(a->covered_ns, from, sizeof(from)));
	else if (refusals || a->left_out[OBSERVED_DROP])
		snprintf(text, size, "more was refused then than the history has room for: %llu first refusals and "
			 "the drops of %llu light sources of that time were left out", refusals,
			 a->left_out[OBSERVED_DROP]);
}

json_t *history_answer_end(struct history_answer *a)
{
	json_t *in_force = json_array(), *result;
	char missing[256];

	for (size_t i = 0; i < a->opens; i++)
		json_array_append_new(in_force, observed_to_json(&a->open[i], false));
	explain_missing(a, missing, sizeof(missing));
	result = json_pack("{s:o, s:o, s:o, s:o, s:o}", "from", json_utc(a->query->from_ns), "to",
			   json_utc(a->query->to_ns), "events", a->events, "in_force", in_force,
			   "history_begins", json_utc(a->begins_ns));
	if (missing[0])
		json_object_set_new(result, "not_recorded", json_string(missing));
	json_object_set_new(result, "nothing", json_boolean(!json_array_size(a->events) &&
							   !json_array_size(in_force)));
	return result;
}
