/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tier.h - the HTTP tier as a whole: made, run, drained and taken down by the main thread.
 *
 *     tier_open() -> (privileges go) -> tier_run() -> tier_drain() ... tier_drained() -> tier_close()
 */
#ifndef SLUICE_HTTP_TIER_H
#define SLUICE_HTTP_TIER_H

#include "request/server/worker.h"

struct tier_plan {
	const struct http_def *def;	/* copied */
	u32 max_values;			/* metrics.max_values */
	const char *state_path;		/* of the store; NULL: in memory */
	const struct frontend *const *frontend;	/* longer than the tier */
	size_t frontend_count;
	const int *fd;			/* listening sockets that were handed over */
	size_t fd_count;
};

/* Everything that can fail, no thread yet. Takes the inherited descriptors in any case. */
int tier_open(const struct tier_plan *plan, struct http_tier **ret, struct sl_err *err);
int tier_run(struct http_tier *tier, struct sl_err *err);

/* No more connections; what is being answered is, and what is held soon. */
void tier_drain(struct http_tier *tier);
/* Whether nobody is connected any more. */
bool tier_drained(const struct http_tier *tier);
/* `kept`: somebody else holds the sockets. NULL is fine. The rules go, too. */
void tier_close(struct http_tier *tier, bool kept);

/*
 * Another `http:` section, for what does not only count at start; copied. The old one is freed
 * when no worker can have it any more.
 */
int tier_configure(struct http_tier *tier, const struct http_def *def, struct sl_err *err);
/* What of `http:` is not as it was at start and needs a restart; NULL: nothing. */
const char *tier_needs_restart(const struct http_tier *tier, const struct http_def *def);

#endif
