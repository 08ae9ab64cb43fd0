/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * status_page.h - the status page of the metrics listener: an HTML page with a script that reads
 * /status.json every two seconds.
 *
 * Everything in the JSON is the result of a query that sluicectl has, too. It is built once a
 * second at most, whatever the number of requests, and each list in it is cut. The page sets text,
 * never HTML; its Content-Security-Policy allows only what this listener serves.
 */
#ifndef SLUICE_DAEMON_STATUS_PAGE_H
#define SLUICE_DAEMON_STATUS_PAGE_H

#include "daemon/daemon.h"
#include "request/frontends/http1/http1.h"

/* 0, or -ENOMEM. */
int status_page_start(void);
void status_page_stop(void);
/* Each second: a sample for the sparklines. */
void status_page_tick(struct daemon *d);

/* The page, its script and its style. */
void status_page_html(struct http1_request *request);
void status_page_script(struct http1_request *request);
void status_page_style(struct http1_request *request);
/* The values. */
void status_page_json(struct http1_request *request, struct daemon *d);

#endif
