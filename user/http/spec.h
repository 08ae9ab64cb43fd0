/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * spec.h - a limit, ready to be stepped: one rate, one algorithm, as it holds for one value.
 *
 * Four of the five algorithms are the packet tier's own step functions (include/sluice/algo.h)
 * over one 64-bit word; a window that begins with its first request (anchored.h) and the
 * sliding log (log.h) are the HTTP tier's alone. spec_step() picks one.
 */
#ifndef SLUICE_HTTP_SPEC_H
#define SLUICE_HTTP_SPEC_H

#include <stdbool.h>

#include "lib/err.h"
#include "lib/units.h"
#include "sluice/algo.h"

enum http_algo {
	HTTP_TOKEN_BUCKET,
	HTTP_LEAKY_BUCKET,
	HTTP_FIXED_WINDOW,
	HTTP_SLIDING_WINDOW,
	HTTP_SLIDING_LOG,
	HTTP_FIRST_REQUEST,	/* fixed-window with window: first-request */
	HTTP_ALGO_COUNT,
};

struct spec {
	struct sl_params params;	/* as params.c makes them; unused by the last two */
	u64 requests, period_ns;	/* the rate, for answers */
	u64 capacity;			/* burst of a bucket, requests of a window; scaled */
	u8 algo;			/* enum http_algo */
};

/*
 * Requests are the unit: a leaky bucket's capacity is one request, a token bucket's default
 * burst one second's worth, at least one. `scale` multiplies rate and burst (a ladder's level).
 * -ERANGE or -EINVAL with words where the algorithm cannot hold it (params.c's bounds).
 */
int spec_make(const struct rate *rate, u64 burst, enum http_algo algo, u32 scale,
	      struct spec *ret, struct sl_err *err);

const char *http_algo_name(enum http_algo algo);	/* "token-bucket"... */

#endif
