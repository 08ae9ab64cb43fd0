/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tls.h - TLS in front of a front: it gets a connection when the handshake is done. */
#ifndef SLUICE_HTTP_TLS_H
#define SLUICE_HTTP_TLS_H

#include "request/server/worker.h"

/*
 * Reads certificate, key and client CA of `def` and uses them for connections from now on; with
 * none of them there is no TLS. Where they are bad err names the file, and those before go on.
 */
int tls_publish(struct http_tier *tier, const struct http_def *def, struct sl_err *err);
/* Whether a file of them is not as it was read; from a timer. */
bool tls_changed(const struct http_tier *tier);
void tls_free(struct tls *tls);			/* NULL is fine */

/* ---- in the worker's thread ---- */

/* Shakes hands on `fd`, which is its own from here on, and gives the connection to `front`. */
void tls_accept(struct worker *worker, int fd, const struct peer_info *peer,
		const struct frontend *frontend);
/* Ends what has not shaken hands yet. */
void tls_worker_stop(struct worker *worker);

#endif
