/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * http_tier.h - the daemon's part of the HTTP tier: reads and watches its rules, keeps its sockets
 * over a restart, drains it at exit.
 *
 * d->http is NULL if sluiced was started without a section `http`.
 */
#ifndef SLUICE_DAEMON_HTTP_TIER_H
#define SLUICE_DAEMON_HTTP_TIER_H

#include "daemon/daemon.h"

/* Joins the running configuration, before the first rules. */
void http_tier_join(struct daemon *d);

/* Opens all but the threads; needs privileges. */
int http_tier_open(struct daemon *d, struct sl_err *err);
/* In a cluster: limits of scope cluster use the cluster store. After nodes_open(). */
int http_tier_share(struct daemon *d, struct sl_err *err);
/* Starts the threads and the timers. */
int http_tier_run(struct daemon *d, struct sl_err *err);

/*
 * Reads the rules and puts them in force; on failure the previous ones stay, and err has the
 * reason. Called by a reload and when the directory has changed.
 */
int http_tier_reload(struct daemon *d, struct sl_err *err);
/*
 * Before another section `http` comes in force: reads callers, tokens and certificates. On failure
 * nothing has changed.
 */
int http_tier_configure(struct daemon *d, const struct http_def *def, struct sl_err *err);

/* Exits the loop when no client has to be waited for, after a few seconds at the latest. */
void http_tier_drain(struct daemon *d);
/* Ends the threads: as late as possible, since nobody responds from here on. */
void http_tier_finish(struct daemon *d);
void http_tier_close(struct daemon *d);

#endif
