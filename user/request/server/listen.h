/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listen.h - the HTTP tier's listening sockets: made once, polled by every worker, handed over to
 * the next daemon.
 *
 * While no daemon runs, systemd (its FD store, or a socket unit) holds the sockets and passes
 * them on start; each is identified by the address it is bound to, whatever its name.
 */
#ifndef SLUICE_HTTP_LISTEN_H
#define SLUICE_HTTP_LISTEN_H

#include "request/server/worker.h"

/*
 * Binds the listeners of tier->def, or uses inherited ones from `fd` (`count` descriptors; those
 * that match none are closed). Makes tier->listeners. Needs the privileges for low ports.
 */
int listen_open(struct http_tier *tier, const int *fd, size_t count, struct sl_err *err);
/* Closes the descriptors; unlinks Unix sockets that no other process holds. NULL is fine. */
void listen_close(struct listeners *listeners, bool kept);

/* Each open socket once, with its name in systemd's FD store (at most 255 characters, no ':'). */
size_t listen_count(const struct listeners *listeners);
int listen_fd(const struct listeners *listeners, size_t index, const char **ret_name);

/* A listener's definition and its connections. */
const struct listen_def *listen_stats(const struct listeners *listeners, size_t index,
				      struct connection_stats *ret);

/* ---- in the worker's thread ---- */

int listen_worker_start(struct worker *worker);
void listen_worker_stop(struct worker *worker);
/* Drains the frontends' connections; goes on accepting. */
void listen_worker_drain(struct worker *worker);
/* Stops accepting, and ends all connections. */
void listen_worker_finish(struct worker *worker);

#endif
