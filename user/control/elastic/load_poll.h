/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * load_poll.h - load signals that the daemon polls, from Prometheus or a JSON document.
 *
 * In the main thread's loop, by libevent's HTTP client: nothing waits, and no decision is made in
 * this thread. A poll is a new connection, with a deadline for all of it and bounds of head and
 * body; redirections are not followed. Whatever the response is, its result is one number from 0
 * up, or a failure, which is counted, shown and logged once until the next success. The last value
 * is used for three intervals; then the signal is not set.
 */
#ifndef SLUICE_ELASTIC_LOAD_POLL_H
#define SLUICE_ELASTIC_LOAD_POLL_H

#include "config/load_def.h"
#include "control/elastic/scales.h"

struct load_poll;

struct load_poll_stats {
	u64 polls, failures;
	const char *error; /* of the last poll; NULL: it succeeded, or none has ended */
};

/* Starts and stops polls as the configuration in force has them. One that stays continues. */
void load_polls_watch(struct scales *scales);
void load_polls_free(struct scales *scales);

/* NULL: not polled. */
const struct load_poll_stats *load_poll_stats(const struct scales *scales, const char *name);

/* The value in a response's body. 0, or -EINVAL with the reason in `err`. Pure. */
int load_poll_value(const struct load_signal_def *def, const char *body, size_t size, double *ret,
		    struct sl_err *err);

#endif
