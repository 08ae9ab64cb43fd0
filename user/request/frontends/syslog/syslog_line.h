/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * syslog_line.h - a line of an access log as a report.
 *
 * What stands before the JSON object (RFC 3164's or RFC 5424's head, nginx's and HAProxy's tags)
 * is skipped. Of the object's members these are read, others may be there for others:
 *
 *     "domain": "api"
 *     "d": {"user": "bob", "path": "/x"}     one descriptor, entries in this order;
 *     "d": [{"user": "bob"}, {"source": "192.0.2.7"}]                      or several
 *     "descriptors": [{"entries": [{"key", "value"}], "hits"}]             or as /v1/report's
 *     "source": "192.0.2.7"
 *     "hits": 5                              what each costs; below 0 a refund
 *     "status": 200                          429 was refused and charges nothing
 *     "at": 1763741000.123                   seconds since 1970, or RFC 3339 text
 *
 * Numbers may stand in quotes, and "", "-" and null are what is not there: so proxies write it.
 * A value of "d" that is not there leaves its descriptor out; "path" is brought into one form
 * (request_text.h).
 */
#ifndef SLUICE_HTTP_SYSLOG_LINE_H
#define SLUICE_HTTP_SYSLOG_LINE_H

#include "request/rules/json_request.h"

/*
 * 0 with a report for json_request_free(), which may have no descriptors left; -EINVAL or -ENOMEM
 * with words that hold nothing of the line.
 */
int syslog_line_read(const char *line, size_t len, struct json_request **ret, struct sl_err *err);

#endif
