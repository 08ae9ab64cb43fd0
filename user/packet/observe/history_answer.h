/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * history_answer.h - the answer of a query to the history: the events of the time asked for, what
 * was in force then, and what may be missing.
 */
#ifndef SLUICE_OBSERVE_HISTORY_ANSWER_H
#define SLUICE_OBSERVE_HISTORY_ANSWER_H

#include "packet/observe/history.h"

#define HISTORY_OPEN_MAX 64
/* A daemon that runs records so each minute: a shorter gap is none. */
#define RUN_SLACK_NS (90 * SL_NS_PER_SEC)

struct history_answer {
	const struct history_query *query;
	u64 begins_ns; /* of the history; 0: it is empty */
	json_t *events;
	struct observed open[HISTORY_OPEN_MAX]; /* begun before the time asked for, and not ended */
	size_t opens;
	u64 left_out[OBSERVED_KINDS];
	bool refused;		    /* an event of the time asked for is a refusal, or a change */
	struct observed before;	    /* the last first refusal, within HISTORY_AGAIN_NS before it */
	u64 covered_ns;		    /* of the time asked for: up to here the daemon ran */
	u64 gap_from_ns, gap_to_ns; /* the first time at which it did not; 0: none */
};

void history_answer_begin(struct history_answer *a, const struct history_query *query,
			  u64 begins_ns);
/* In the order of their times; also of a while before the time asked for. */
void history_answer_event(struct history_answer *a, const struct observed *event);
void history_answer_left_out(struct history_answer *a, enum observed_kind kind, u64 count);
/* The daemon ran from, to; in their order. */
void history_answer_run(struct history_answer *a, u64 from_ns, u64 to_ns);
json_t *history_answer_end(struct history_answer *a);

#endif
