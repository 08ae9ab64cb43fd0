/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* http.h - metrics.listen: /metrics, a status page on /, /healthz and /readyz. */
#ifndef SLUICE_DAEMON_HTTP_H
#define SLUICE_DAEMON_HTTP_H

#include "daemon/daemon.h"

/*
 * Binds "ADDRESS:PORT" ("[::1]:9810"); requests are answered once the loop runs. `listen`
 * NULL: nothing to do. 0, or -errno and err.
 */
int http_start(struct daemon *d, const char *listen, struct sl_err *err);

#endif
