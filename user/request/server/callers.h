/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * callers.h - who may ask, report, push down and override: caller_rights() of worker.h, and what
 * it goes by, published by the main thread.
 */
#ifndef SLUICE_HTTP_CALLERS_H
#define SLUICE_HTTP_CALLERS_H

#include <string.h>

#include "request/server/worker.h"

/*
 * Reads the token files of `def` and puts its callers in force. A file that cannot be read, or
 * has no token of 16 characters or more, is an error with its name; the callers before go on.
 */
int callers_publish(struct http_tier *tier, const struct http_def *def, struct sl_err *err);
/* Whether a token file is not as it was read; from a timer. */
bool callers_changed(const struct http_tier *tier);
void callers_free(struct callers *callers);	/* NULL is fine */

/*
 * A number for what a caller may have so many of: 1 to COUNTERS_CALLERS - 1, by its token, else its
 * certificate, else its uid. Callers whose numbers are alike share what they may have.
 */
static inline u16 caller_number(const struct peer_info *peer, struct bytes token)
{
	size_t cn_len = strlen(peer->cert_cn);
	struct bytes by = token.len ? token : cn_len ? (struct bytes){ peer->cert_cn, cn_len } :
			  (struct bytes){ (const char *)&peer->uid, sizeof(peer->uid) };
	u64 hash = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < by.len; i++)
		hash = (hash ^ (unsigned char)by.at[i]) * 0x100000001b3ULL;
	return 1 + (hash ^ hash >> 32) % (COUNTERS_CALLERS - 1);
}

#endif
