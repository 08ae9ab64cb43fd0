/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bind.h - "127.0.0.1:8180" or "unix:/run/sluice/http.sock" -> a listening socket. */
#ifndef SLUICE_HTTP_BIND_H
#define SLUICE_HTTP_BIND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "lib/err.h"
#include "config/http_def.h"

#define BIND_NAME_MAX 160

/*
 * The socket of a listener: the one of `fd` that is already bound there (its `taken` is set), or
 * a new one. `name`, of BIND_NAME_MAX, identifies it in characters that systemd accepts. A Unix
 * socket without a listener is replaced; any other file there is an error.
 */
int bind_listener(const struct listen_def *def, const int *fd, size_t count, bool *taken,
		  int *ret_fd, char *name, struct sl_err *err);
/* Closes it; unlinks a Unix socket unless another process holds it (`kept`). */
void bind_release(const struct listen_def *def, int fd, bool kept);

/* Whether a peer may connect: its address is in `clients`, or there are none; loopback always. */
bool bind_admits(const struct listen_def *def, const struct sockaddr *peer);
bool bind_is_loopback(const struct sockaddr *addr);

#endif
