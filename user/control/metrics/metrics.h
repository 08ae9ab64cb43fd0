/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* metrics.h - everything there is to scrape, as Prometheus text or OpenMetrics; docs/metrics.md. */
#ifndef SLUICE_DAEMON_METRICS_H
#define SLUICE_DAEMON_METRICS_H

#include <event2/buffer.h>

#include "daemon/daemon.h"

/* Appends the whole exposition: text format 0.0.4, or OpenMetrics 1.0. */
void metrics_write(struct daemon *d, bool openmetrics, struct evbuffer *out);

#endif
