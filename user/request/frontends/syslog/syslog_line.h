/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * syslog_line.h - a line of an access log as a report.
 *
 * Text before the JSON object (RFC 3164's or RFC 5424's head, tags of nginx and HAProxy) is
 * skipped. These members of the object are read, others are ignored:
 *
 *     "domain": "api"
 *     "d": {"user": "bob", "path": "/x"}     one descriptor, entries in this order;
 *     "d": [{"user": "bob"}, {"source": "192.0.2.7"}]                      or several
 *     "descriptors": [{"entries": [{"key", "value"}], "hits"}]             or as /v1/report's
 *     "source": "192.0.2.7"
 *     "hits": 5                              what each costs; below 0 a refund
 *     "status": 200                          429: was refused, charges nothing
 *     "at": 1763741000.123                   seconds since 1970, or RFC 3339 text
 *
 * Numbers may be quoted, and "", "-" and null mean absent: so proxies write it. An absent value
 * of "d" removes its descriptor; "path" is normalized (request_text.h).
 */
#ifndef SLUICE_HTTP_SYSLOG_LINE_H
#define SLUICE_HTTP_SYSLOG_LINE_H

#include "request/rules/json_request.h"

/*
 * 0 with a report for json_request_free(), which may have no descriptors left; -EINVAL or -ENOMEM
 * with a message that repeats nothing of the line.
 */
int syslog_line_read(const char *line, size_t len, struct json_request **ret, struct sl_err *err);

#endif
