/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * callers.h - the callers with rights to check, report, push down and override: caller_rights() of
 * worker.h, and its data, published by the main thread.
 */
#ifndef SLUICE_HTTP_CALLERS_H
#define SLUICE_HTTP_CALLERS_H

#include <string.h>

#include "request/server/worker.h"

/*
 * Reads the token files of `def` and applies its callers. A file that is unreadable, or has no
 * token of 16 characters or more, is an error with its name; the previous callers stay.
 */
int callers_publish(struct http_tier *tier, const struct http_def *def, struct sl_err *err);
/* Whether a token file has changed since it was read; for a timer. */
bool callers_changed(const struct http_tier *tier);
void callers_free(struct callers *callers); /* NULL is fine */

/*
 * A number for per-caller bounds: 1 to COUNTERS_CALLERS - 1, from its token, else its
 * certificate, else its uid. Callers with the same number share the bounds.
 */
static inline u16 caller_number(const struct peer_info *peer, struct bytes token)
{
	size_t cn_len = strlen(peer->cert_cn);
	struct bytes by = token.len ? token
			  : cn_len  ? (struct bytes){ peer->cert_cn, cn_len }
				    : (struct bytes){ (const char *)&peer->uid, sizeof(peer->uid) };
	u64 hash = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < by.len; i++)
		hash = (hash ^ (unsigned char)by.at[i]) * 0x100000001b3ULL;
	return 1 + (hash ^ hash >> 32) % (COUNTERS_CALLERS - 1);
}

#endif
