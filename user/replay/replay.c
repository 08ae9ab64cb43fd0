// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* replay.c - see replay.h. */
#include "replay/replay_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json.h"

/* A bucket is looked at after so many packets of its source; below, after 2, 4 and 8. */
#define USED_EVERY 16
/* The first bins of the timeline: logs have whole seconds. */
#define STEP_NS (SL_NS_PER_SEC / 100)
#define LOG_STEP_NS SL_NS_PER_SEC

u64 replay_time(struct replay *replay, u64 utc_ns)
{
	if (!replay->count)
		replay->first_utc_ns = utc_ns;
	if (utc_ns < replay->first_utc_ns + replay->last_ns)
		replay->disordered++;
	else
		replay->last_ns = utc_ns - replay->first_utc_ns;
	return replay->last_ns;
}

/* ------------------------------------------------------------------ packets */

static enum outcome outcome_of(enum sl_action action)
{
	return action == SL_ACT_DROP  ? OUTCOME_REFUSED
	       : action == SL_ACT_TAG ? OUTCOME_TAGGED
				      : OUTCOME_PASSED;
}

static void note_used(struct replay *replay, struct tally_entry *entry, u64 mono_ns)
{
	for (u32 i = 0; i < replay->sides; i++) {
		u32 limit = 0;
		float used = packet_judge_used(replay->packets[i], &entry->source, mono_ns, &limit);

		if (used > entry->side[i].used) {
			entry->side[i].used = used;
			entry->side[i].limit = limit;
		}
	}
}

static void take_packet(struct replay *replay, u8 *frame, u8 *copy, u32 length, u64 utc_ns)
{
	u64 ns = replay_time(replay, utc_ns), mono_ns = JUDGE_BEGIN_NS + ns;
	u64(*bin)[OUTCOME_COUNT] = timeline_at(&replay->line, ns);
	struct sim_verdict verdict[REPLAY_SIDES];
	struct tally_entry *entry;

	/* The first judge may tag the frame: the second one gets it as it was. */
	if (replay->sides > 1)
		memcpy(copy, frame, length < CAPTURE_COPY ? length : CAPTURE_COPY);
	for (u32 i = 0; i < replay->sides; i++) {
		enum outcome outcome;

		verdict[i] =
			packet_judge_frame(replay->packets[i], mono_ns, i ? copy : frame, length);
		outcome = outcome_of(verdict[i].action);
		replay->total[i][outcome]++;
		bin[i][outcome]++;
	}
	replay->count++;
	replay->bytes += length;
	if (!verdict[0].has_source) {
		replay->no_source++;
		return;
	}
	if (replay->suggest) {
		suggest_packets(replay->suggest, verdict[0].source, verdict[0].family, 1, 1,
				(replay->first_utc_ns + ns) / SL_NS_PER_SEC);
		return;
	}
	entry = tally_source(replay->tally, verdict[0].source, verdict[0].family, length,
			     ns / SL_NS_PER_SEC);
	for (u32 i = 0; i < replay->sides; i++)
		entry->side[i].count[outcome_of(verdict[i].action)]++;
	if (entry->count % USED_EVERY == 0 ||
	    (entry->count > 1 && !(entry->count & (entry->count - 1))))
		note_used(replay, entry, mono_ns);
}

static int open_packets(struct replay *replay, enum sl_link link, u64 utc_ns, struct sl_err *err)
{
	int r = 0;

	for (u32 i = 0; !r && i < replay->sides; i++)
		r = packet_judge_open(replay->policy[i], replay->plan->interface, link, utc_ns,
				      &replay->packets[i], err);
	return r;
}

static int run_capture(struct replay *replay, struct sl_err *err)
{
	u8 *memory = calloc(1, 2 + CAPTURE_FRAME), *frame;
	u8 *copy = calloc(1, 2 + CAPTURE_FRAME);
	struct capture *capture = NULL;
	u64 utc_ns = 0;
	u32 length, ahead;
	int r = memory && copy ? capture_open(replay->stream, replay->plan->filter, &capture, err)
			       : sl_err_set(err, ENOMEM, "out of memory");

	if (!r) {
		/* Of an Ethernet frame: see dp_sim_packet(). */
		ahead = capture_link(capture) == SL_LINK_ETHERNET ? 2 : 0;
		frame = memory + ahead;
		r = capture_next(capture, frame, &length, &utc_ns, &replay->damage);
		/* Also with an empty capture, the configurations are checked. */
		if (open_packets(replay, capture_link(capture), utc_ns, err))
			r = -EINVAL;
		else
			while (r == 1) {
				take_packet(replay, frame, copy + ahead, length, utc_ns);
				r = capture_next(capture, frame, &length, &utc_ns, &replay->damage);
			}
		replay->capture = *capture_counts(capture);
		capture_close(capture);
	}
	free(memory);
	free(copy);
	return r == -EIO ? 0 : r;
}

/* ------------------------------------------------------------------ all */

static int load_policy(struct replay *replay, u32 side, const char *path, struct sl_err *err)
{
	static const char none[] = "limits: []\n";
	int r = path ? policy_load(path, &replay->policy[side], err)
		     : policy_parse("", none, sizeof(none) - 1, &replay->policy[side], err);

	for (size_t i = 0; !r && replay->plan->enforce && i < replay->policy[side]->limit_count;
	     i++)
		if (replay->policy[side]->limit[i].mode == SL_MODE_SHADOW)
			replay->policy[side]->limit[i].mode = SL_MODE_ENFORCE;
	return r;
}

static int run(struct replay *replay, struct sl_err *err)
{
	const struct replay_plan *plan = replay->plan;
	int r;

	r = stream_open(plan->input, &replay->stream, err);
	if (r)
		return r;
	replay->is_log = !capture_is(replay->stream->head, replay->stream->head_len);
	timeline_begin(&replay->line, replay->is_log ? LOG_STEP_NS : STEP_NS);
	replay->tally = tally_new(replay->is_log);
	if (!replay->tally)
		return sl_err_set(err, ENOMEM, "out of memory");
	if (!plan->config &&
	    suggest_open(replay->is_log ? SUGGEST_REQUESTS : SUGGEST_PACKETS, &replay->suggest))
		return sl_err_set(err, ENOMEM, "out of memory");
	replay->sides = plan->compare ? 2 : plan->config || !replay->is_log;
	if (replay->is_log)
		return replay_log(replay, err);
	r = load_policy(replay, 0, plan->config, err);
	if (!r && plan->compare)
		r = load_policy(replay, 1, plan->compare, err);
	return r ? r : run_capture(replay, err);
}

static void end(struct replay *replay)
{
	if (replay->stream && replay->stream->file)
		fclose(replay->stream->file);
	stream_free(replay->stream);
	for (u32 i = 0; i < REPLAY_SIDES; i++) {
		packet_judge_close(replay->packets[i]);
		request_judge_close(replay->requests[i]);
		policy_free(replay->policy[i]);
	}
	tally_free(replay->tally);
	suggest_close(replay->suggest);
	free(replay);
}

static int start(const struct replay_plan *plan, struct replay **ret, struct sl_err *err)
{
	struct replay *replay = calloc(1, sizeof(*replay));
	int r;

	if (!replay)
		return sl_err_set(err, ENOMEM, "out of memory");
	replay->plan = plan;
	r = run(replay, err);
	if (r)
		end(replay);
	else
		*ret = replay;
	return r;
}

int replay_run(const struct replay_plan *plan, json_t **ret, struct sl_err *err)
{
	struct replay *replay = NULL;
	int r = start(plan, &replay, err);

	if (r)
		return r;
	r = replay_report(replay, ret, err);
	end(replay);
	return r;
}

int suggest_run(const struct suggest_plan *plan, json_t **ret, struct sl_err *err)
{
	struct replay_plan whole = { .input = plan->input,
				     .filter = plan->filter,
				     .domain = plan->domain };
	char text[sizeof(struct sl_err)];
	struct replay *replay = NULL;
	json_t *report;
	int r = start(&whole, &replay, err);

	if (r)
		return r;
	report = suggest_report(replay->suggest, plan->permille);
	if (!report) {
		r = sl_err_set(err, ENOMEM, "out of memory");
	} else {
		json_object_set_new(report, "input", json_string(plan->input));
		json_object_set_new(report, "count", json_u64(replay->count));
		json_object_set_new(report, "span_ns", json_u64(replay->last_ns));
		if (replay->damage.message[0])
			json_object_set_new(
				report, "damage",
				json_string(sl_err_format(&replay->damage, text, sizeof(text))));
		*ret = report;
	}
	end(replay);
	return r;
}
