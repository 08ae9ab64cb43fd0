/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* replay_private.h - a replay on its way: what replay.c fills in and report.c reads. */
#ifndef SLUICE_REPLAY_PRIVATE_H
#define SLUICE_REPLAY_PRIVATE_H

#include "replay/access_log.h"
#include "replay/capture.h"
#include "replay/judge.h"
#include "replay/replay.h"
#include "replay/request_judge.h"
#include "replay/suggest.h"
#include "replay/timeline.h"

struct replay {
	const struct replay_plan *plan;
	struct stream *stream;
	struct policy *policy[REPLAY_SIDES];
	struct packet_judge *packets[REPLAY_SIDES];
	struct request_judge *requests[REPLAY_SIDES]; /* of a log, instead */
	u32 sides; /* 1, or 2 with a comparison; 0: a log without rules */
	struct tally *tally;
	struct suggest *suggest; /* its report instead of another; NULL: none */
	bool is_log;
	struct timeline line;
	u64 first_utc_ns, last_ns; /* of the first; the newest since then */
	u64 count, bytes;
	u64 disordered; /* older than one before: judged at that one's time */
	u64 no_source;	/* packets in no list: neither IP nor ARP */
	u64 total[REPLAY_SIDES][OUTCOME_COUNT];
	struct capture_counts capture;
	/* Of a log: requests without a time, those that were refused then, descriptors without a
	 * rule. */
	u64 no_time, refused_then, no_rule;
	u64 bad_lines;
	char bad_line[3][160]; /* the first ones, and why */
	struct sl_err damage;  /* message "": none */
};

/* The time of a packet or request since the first one, which never goes back. */
u64 replay_time(struct replay *replay, u64 utc_ns);
/* Reads the whole log; 0, or -errno and err. */
int replay_log(struct replay *replay, struct sl_err *err);
int replay_report(struct replay *replay, json_t **ret, struct sl_err *err);

#endif
