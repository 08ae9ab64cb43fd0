/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * request_scenario.h - tests/scenario/requests/NAME.scn: a rule file, "---", then steps:
 *
 *     nodes a b c                                       the default is one, a
 *     at 0s node a  user=bob x20  allow 5               20 requests at once; node: else the first
 *     at 1s  user=bob;path=/x hits 3  allow 0 retry 59s        or: retry never
 *     at 1s  user=bob x9  allow 3 deny 6                deny: over the limit, not undecided (503)
 *     at 1s  user=bob  left 3                           a look, without a charge
 *     at 2s  report user=bob hits -2                    a refund; hits 3 ago 10s: of that time
 *     stream 2s 10s every 100ms node any  user=al  allow 30..33       any: in turn
 *     cut b 2s..4s                                      its way to Redis
 *     redis lose 3s                                     Redis is empty from then on
 *     redis lose 3s..5s                                 again and again
 *     redis stop 3s..5s                                 it stands still
 *     redis kill 3s..5s                                 it is gone, and starts again empty
 *     redis slow 20ms 3s..5s                            each reply so late
 *     total user=bob allow 300..330 deny 5              of all nodes, since the beginning
 *     candidate LIMIT allow 9 deny 3                    the same, of a limit with mode: shadow
 *     repeat 7 every 8s        the lines up to "end", each turn 8 s later
 *     rules                    another rule file, to the next "---"
 *     real                     also played on daemons and a real Redis
 *     real every 6s            the same; time 0 is a round multiple of 6 s of UTC, as it is in
 *                              virtual time
 *     virtual at 5.999999s  user=bob  allow 0           a line of virtual time only
 *
 * A line with {a,b} is two lines, as in a shell. Streams on consecutive lines run together. Where
 * CONSISTENCY is in the rules, the file is played with each consistency that states no overshoot
 * (strict, lease).
 */
#ifndef SLUICE_TESTS_REQUEST_SCENARIO_H
#define SLUICE_TESTS_REQUEST_SCENARIO_H

#include <stdint.h>

#include "lib/scenario.h"

#define SCENARIO_NODES 12
#define SCENARIO_ANY SCENARIO_NODES /* in turn */
#define SCENARIO_NEVER INT64_MAX

/* The descriptor of such a total. */
#define SCENARIO_CANDIDATE "candidate:"

enum request_step_kind {
	STEP_AT,
	STEP_LEFT,
	STEP_REPORT,
	STEP_STREAM,
	STEP_CUT,
	STEP_LOSE,
	STEP_LOSING,
	STEP_STOP,
	STEP_KILL,
	STEP_SLOW,
	STEP_TOTAL,
	STEP_RULES,
};

struct request_step {
	enum request_step_kind kind;
	int line;
	u32 node;		     /* or SCENARIO_ANY */
	s64 at_ns, end_ns, every_ns; /* end: streams, faults */
	char descriptor[256];
	bool has_hits;
	s64 hits;
	u64 times;
	struct scenario_range expected; /* allowed, or left */
	struct scenario_range denied;
	s64 delay_ns; /* slow */
	s64 ago_ns;   /* reports */
	s64 retry_ns; /* -1: not stated */
	char *rules;
	bool is_virtual; /* not played on daemons */
};

struct request_scenario {
	char *rules;
	char domain[64]; /* of the requests: that of the rules */
	bool varies;	 /* CONSISTENCY is in the rules */
	bool is_real;
	s64 every_ns; /* real: time 0 is a multiple of it; 0: at any time */
	char node[SCENARIO_NODES][16];
	u32 nodes;
	struct request_step *step;
	size_t count;
};

/* false with "FILE:LINE: ..." in `error`. */
bool request_scenario_read(const char *path, const char *consistency, struct request_scenario *ret,
			   char *error, size_t size);
void request_scenario_clear(struct request_scenario *s);

static inline bool step_is_fault(const struct request_step *step)
{
	return step->kind >= STEP_CUT && step->kind <= STEP_SLOW;
}

/*
 * Of a `real` one, to standard output: the rules, "---", a line "VARIES EVERY_MS NODE...", and the
 * steps in order of time, "WHAT LINE AT_MS NODE DESCRIPTOR BODY TIMES MS RETRY_MS ALLOW DENY": BODY
 * is of /v1/check, MS the time that the step states beside (of `slow`, `ago`, a stream's `every`),
 * ALLOW and DENY are "LEAST MOST" or "- -"; of a fault and a stream also its end, end-WHAT. Returns
 * 0, 1 if it is not real, 2 with an error printed.
 */
int request_scenario_print(const char *path, const char *consistency);

#endif
