/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listen.h - the HTTP tier's listening sockets: made once, heard by every worker, handed over
 * to the next daemon.
 *
 * Whoever holds the sockets while no daemon runs (systemd's FD store, a socket unit) passes them
 * on start; each is known by the address it is bound to, whatever it is called.
 */
#ifndef SLUICE_HTTP_LISTEN_H
#define SLUICE_HTTP_LISTEN_H

#include "request/server/worker.h"

/*
 * Binds what tier->def says, or takes it from `fd` (`count` inherited descriptors; those that fit
 * nowhere are closed). Makes tier->listeners. Needs the privileges that low ports take.
 */
int listen_open(struct http_tier *tier, const int *fd, size_t count, struct sl_err *err);
/* Closes the descriptors; Unix sockets that nobody else holds are unlinked. NULL is fine. */
void listen_close(struct listeners *listeners, bool kept);

/* Each open socket once, with the name to keep it under (at most 255 characters, no ':'). */
size_t listen_count(const struct listeners *listeners);
int listen_fd(const struct listeners *listeners, size_t index, const char **ret_name);

/* What one is, and its connections. */
const struct listen_def *listen_stats(const struct listeners *listeners, size_t index,
				      struct connection_stats *ret);

/* ---- in the worker's thread ---- */

int listen_worker_start(struct worker *worker);
void listen_worker_stop(struct worker *worker);
/* Accepts no more, and asks the fronts to end what they serve. */
void listen_worker_drain(struct worker *worker);

#endif
