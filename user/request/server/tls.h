/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tls.h - TLS before a frontend: it gets a connection after the handshake. */
#ifndef SLUICE_HTTP_TLS_H
#define SLUICE_HTTP_TLS_H

#include "request/server/worker.h"

/*
 * Reads certificate, key and client CA of `def` and uses them for new connections; without them
 * there is no TLS. On errors err names the file, and the previous ones stay.
 */
int tls_publish(struct http_tier *tier, const struct http_def *def, struct sl_err *err);
/* Whether one of these files has changed since it was read; for a timer. */
bool tls_changed(const struct http_tier *tier);
void tls_free(struct tls *tls); /* NULL is fine */

/* ---- in the worker's thread ---- */

/* Performs the handshake on `fd`, which it owns, and passes the connection to `frontend`. */
void tls_accept(struct worker *worker, int fd, const struct peer_info *peer,
		const struct frontend *frontend);
/* Leaves handshakes that have begun half a second. */
void tls_worker_drain(struct worker *worker);
/* Ends unfinished handshakes. */
void tls_worker_stop(struct worker *worker);

#endif
