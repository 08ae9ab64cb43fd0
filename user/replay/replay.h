/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * replay.h - what a configuration would have done with the packets of a capture, or with the
 * requests of an access log, and what another one would have done otherwise.
 *
 *     stream -> capture or log -> judge, once or twice -> tally, timeline -> a report as JSON
 *
 * It knows the input and the two tiers, and joins them as control does; it evaluates nothing itself
 * (judge.h). Memory is fixed, whatever the input holds. It may use packet/compile,
 * packet/dataplane, request/rules, request/engine, request/frontends/syslog (lines of logs),
 * counters, config and limiter; of the programs only sluicectl links it.
 */
#ifndef SLUICE_REPLAY_REPLAY_H
#define SLUICE_REPLAY_REPLAY_H

#include <jansson.h>
#include <stdbool.h>

#include "lib/err.h"
#include "sluice/types.h"

struct replay_plan {
	const char *input;	      /* "-": standard input */
	const char *config, *compare; /* NULL: none */
	const char *filter;	      /* of packets: pcap-filter(7); NULL: all */
	const char *domain;    /* of lines of logs that name none; NULL: the rules' only one */
	const char *interface; /* where they come in; NULL: the first of the configuration */
	bool enforce;	       /* limits in shadow mode, too */
	u32 count;	       /* entries of each list */
};

/*
 * 0 with *ret, or -errno and err: a file that cannot be read, a bad configuration. An input that is
 * damaged is replayed up to there, and the report has a member `damage` with the place.
 */
int replay_run(const struct replay_plan *plan, json_t **ret, struct sl_err *err);

#endif
