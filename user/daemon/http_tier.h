/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * http_tier.h - the daemon's part of the HTTP tier: its rules, read and watched; its sockets,
 * taken from and left with whoever holds them between two daemons; its end.
 *
 * d->http is NULL where the file that sluiced was started with has no `http:`.
 */
#ifndef SLUICE_DAEMON_HTTP_TIER_H
#define SLUICE_DAEMON_HTTP_TIER_H

#include "daemon/daemon.h"

/* Goes by the running configuration from now on: before nodes_join(), and before the first rules. */
void http_tier_join(struct daemon *d);

/* Everything but the threads, while there still are privileges. */
int http_tier_open(struct daemon *d, struct sl_err *err);
/* Where there are other nodes, its limits of scope cluster hold on all; after nodes_open(). */
int http_tier_share(struct daemon *d, struct sl_err *err);
/* The threads, and the timers. */
int http_tier_run(struct daemon *d, struct sl_err *err);

/*
 * Reads the rules again and puts them in force; where they are bad the old ones go on, and err
 * says why. From a reload, and where the directory has changed.
 */
int http_tier_reload(struct daemon *d, struct sl_err *err);
/*
 * Another `http:` section is about to be in force: callers, tokens and certificates are read; what
 * counts only at start is told in `notes` (NULL: not wanted). On failure all is as it was.
 */
int http_tier_configure(struct daemon *d, const struct http_def *def, json_t *notes,
			struct sl_err *err);

/* Ends the loop when nobody is connected any more, or after a few seconds. */
void http_tier_drain(struct daemon *d);
void http_tier_close(struct daemon *d);

#endif
