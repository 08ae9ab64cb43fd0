/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tier.h - the HTTP tier as a whole: opened, run, drained and closed by the main thread.
 *
 *     tier_open() -> (privileges go) -> tier_run()
 *     tier_drain() ... tier_drained() -> tier_finish() -> tier_close()
 */
#ifndef SLUICE_HTTP_TIER_H
#define SLUICE_HTTP_TIER_H

#include "request/server/worker.h"

#define TIER_FINISH_MS 100

struct tier_plan {
	const struct http_def *def;		/* copied */
	u32 max_values;				/* metrics.max_values */
	const char *state_path;			/* of the counter table; NULL: in memory */
	const struct frontend *const *frontend; /* longer than the tier */
	size_t frontend_count;
	const int *fd; /* inherited listening sockets */
	size_t fd_count;
};

/* Performs all steps that can fail; starts no thread. Always takes ownership of the descriptors. */
int tier_open(const struct tier_plan *plan, struct http_tier **ret, struct sl_err *err);
int tier_run(struct http_tier *tier, struct sl_err *err);

/*
 * Ends idle and half-open connections, and responds soon to delayed requests. New connections are
 * accepted and served.
 */
void tier_drain(struct http_tier *tier);
/* Whether no connection is left that has to be waited for. */
bool tier_drained(const struct http_tier *tier);
/*
 * Stops accepting, ends all connections and the threads: from here on nobody responds. The last
 * step but what must follow it. Without tier_run(), and again, it does nothing.
 */
void tier_finish(struct http_tier *tier);
/* `kept`: another process holds the sockets. NULL is fine. Frees the rules, too. */
void tier_close(struct http_tier *tier, bool kept);

/*
 * Applies a copy of another `http:` section, except for keys that need a restart. The old one is
 * freed when no worker uses it any more.
 */
int tier_configure(struct http_tier *tier, const struct http_def *def, struct sl_err *err);

#endif
