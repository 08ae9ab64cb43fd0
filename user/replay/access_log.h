/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * access_log.h - lines of access logs as requests.
 *
 *     {"domain": "api", "d": ...}	as docs/access-logs.md has them, also behind a syslog
 *header: request/frontends/syslog reads them
 *     nginx			"combined", and the common log format of others
 *     HAProxy			"option httplog", also behind a syslog header
 *     Envoy			its default format
 *
 * The last three name no domain and no descriptors. Such a line becomes {source}, {path}, and if it
 * has a user, {user} and {user, path} in the domain that the caller gives.
 */
#ifndef SLUICE_REPLAY_ACCESS_LOG_H
#define SLUICE_REPLAY_ACCESS_LOG_H

#include "request/rules/json_request.h"

#define ACCESS_LOG_LINE (128 * 1024) /* longer lines are no requests */

struct access_log {
	struct bytes domain;	/* of lines without one; len 0: these are refused */
	struct request request; /* of the last line, until the next one is read */
	u32 status;		/* 0: not known */
	/* Below: its memory. */
	struct json_request *json;
	struct request_descriptor descriptor[4];
	char source[SL_PREFIX_TEXT]; /* without its port */
	char text[ACCESS_LOG_LINE];
};

/*
 * Reads a line into log->request; at_utc_ns 0: it has no time. 0, or -EINVAL or -ENOMEM with a
 * message that repeats nothing of the line.
 */
int access_log_read(struct access_log *log, const char *line, size_t len, struct sl_err *err);
void access_log_clear(struct access_log *log);

#endif
