/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* metrics_listen.h - metrics.listen: /metrics, a status page on /, /healthz, /readyz, signals. */
#ifndef SLUICE_DAEMON_METRICS_LISTEN_H
#define SLUICE_DAEMON_METRICS_LISTEN_H

#include "daemon/daemon.h"

/*
 * Binds "ADDRESS:PORT" ("[::1]:9810"); requests are served once the loop runs. With `listen` NULL
 * it does nothing. 0, or -errno and err.
 */
int metrics_listen_start(struct daemon *d, const char *listen, struct sl_err *err);
/* Before the loop is freed. */
void metrics_listen_stop(void);

#endif
