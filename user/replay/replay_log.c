// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* replay_log.c - an access log, line by line, through the rules. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/out.h"
#include "replay/replay_private.h"

#define LABEL_BYTES 1024 /* of a value: two that differ behind it are one */
#define BAD_LINES_SHOWN 3

/* A line without its end into `to`; false at the end of the log. A longer one is cut at `size`. */
static bool read_line(FILE *file, char *to, size_t size, size_t *ret_len)
{
	size_t len = 0;
	int c;

	while ((c = getc_unlocked(file)) != EOF && c != '\n')
		if (len < size)
			to[len++] = (char)c;
	if (c == EOF && !len)
		return false;
	while (len && to[len - 1] == '\r')
		len--;
	*ret_len = len;
	return true;
}

static void note_bad(struct replay *replay, u64 line, const struct sl_err *err)
{
	if (replay->bad_lines++ < BAD_LINES_SHOWN)
		snprintf(replay->bad_line[replay->bad_lines - 1], sizeof(replay->bad_line[0]),
			 "line %llu: %.120s", line, err->message);
}

/* "api user=bob,path=/x" */
static struct bytes label_of(const struct request *request, u32 i, char *buf)
{
	const struct request_descriptor *descriptor = &request->descriptor[i];
	struct out out;

	out_begin(&out, buf, LABEL_BYTES);
	out_bytes(&out, request->domain.at, request->domain.len);
	for (u32 k = 0; k < descriptor->count; k++) {
		out_char(&out, k ? ',' : ' ');
		out_bytes(&out, descriptor->entry[k].key.at, descriptor->entry[k].key.len);
		out_char(&out, '=');
		out_bytes(&out, descriptor->entry[k].value.at, descriptor->entry[k].value.len);
	}
	return (struct bytes){ buf, out.len < LABEL_BYTES ? out.len : LABEL_BYTES };
}

static void note_value(struct replay *replay, const struct request *request, u32 i,
		       struct request_part (*part)[REQUEST_DESCRIPTORS_MAX], u64 ns)
{
	struct tally_entry *entry;
	char label[LABEL_BYTES];

	if (replay->suggest)
		return;
	if (!part[0][i].has_rule && !(replay->sides > 1 && part[1][i].has_rule)) {
		replay->no_rule++;
		return;
	}
	entry = tally_value(replay->tally, label_of(request, i, label), ns / SL_NS_PER_SEC);
	for (u32 side = 0; side < replay->sides; side++) {
		const struct request_part *of = &part[side][i];

		if (of->outcome < OUTCOME_COUNT)
			entry->side[side].count[of->outcome]++;
		if (of->has_rule && of->used > entry->side[side].used) {
			entry->side[side].used = of->used;
			entry->side[side].limit = of->rule;
		}
	}
}

static void take_request(struct replay *replay, struct request *request)
{
	u64 utc_ns =
		request->at_utc_ns ? request->at_utc_ns : replay->first_utc_ns + replay->last_ns;
	u64 ns = replay_time(replay, utc_ns);
	struct sl_now now = { JUDGE_BEGIN_NS + ns, replay->first_utc_ns + ns };
	u64(*bin)[OUTCOME_COUNT] = timeline_at(&replay->line, ns);
	struct request_part part[REPLAY_SIDES][REQUEST_DESCRIPTORS_MAX];

	replay->no_time += !request->at_utc_ns;
	request->at_utc_ns = 0;
	request->rights = MAY_CHECK;
	for (u32 side = 0; side < replay->sides; side++) {
		enum outcome outcome =
			request_judge_decide(replay->requests[side], request, now, part[side]);

		replay->total[side][outcome]++;
		bin[side][outcome]++;
	}
	replay->count++;
	if (replay->suggest)
		suggest_request(replay->suggest, request, now.utc_ns);
	for (u32 i = 0; i < request->count; i++)
		note_value(replay, request, i, part, ns);
}

static int open_judges(struct replay *replay, struct sl_err *err)
{
	const char *path[REPLAY_SIDES] = { replay->plan->config, replay->plan->compare };
	int r = 0;

	for (u32 i = 0; !r && i < replay->sides; i++)
		r = request_judge_open(path[i], replay->plan->enforce, &replay->requests[i], err);
	return r;
}

/* The domain of lines that name none. */
static struct bytes default_domain(const struct replay *replay)
{
	const struct request_judge *judge = replay->requests[0];
	const char *name = replay->plan->domain;

	if (!name && judge && judge->rules->domain_count == 1)
		name = judge->rules->domain[0];
	/* A suggestion needs a name alone. */
	if (!name && replay->suggest)
		name = "api";
	return (struct bytes){ name ? name : "", name ? strlen(name) : 0 };
}

static void run_lines(struct replay *replay, struct access_log *log, char *line)
{
	FILE *file = replay->stream->file;
	u64 number = 0;
	size_t len;

	while (read_line(file, line, ACCESS_LOG_LINE, &len)) {
		struct sl_err err = { .message = "" };

		number++;
		if (!len)
			continue;
		if (access_log_read(log, line, len, &err)) {
			note_bad(replay, number, &err);
			continue;
		}
		replay->refused_then += log->status == 429;
		if (log->request.count)
			take_request(replay, &log->request);
	}
	access_log_clear(log);
	if (replay->stream->error[0])
		sl_err_set(&replay->damage, EIO, "%s: damaged behind line %llu: %s",
			   replay->stream->path, number, replay->stream->error);
}

int replay_log(struct replay *replay, struct sl_err *err)
{
	struct access_log *log = calloc(1, sizeof(*log));
	char *line = malloc(ACCESS_LOG_LINE);
	int r = log && line ? open_judges(replay, err) : sl_err_set(err, ENOMEM, "out of memory");

	if (!r) {
		log->domain = default_domain(replay);
		run_lines(replay, log, line);
	}
	if (!r && !replay->count && replay->bad_lines)
		r = sl_err_set(err, EINVAL,
			       "%s: neither a capture (pcap, pcapng) nor an access log: %s",
			       replay->plan->input, replay->bad_line[0]);
	free(log);
	free(line);
	return r;
}
