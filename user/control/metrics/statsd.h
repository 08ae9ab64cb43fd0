/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * statsd.h - sends all metrics to a StatsD server at intervals, over UDP: for those who have no
 * Prometheus.
 *
 * What is sent is the text of /metrics, converted: counters as what was added since the last time
 * (|c), gauges and infos as they are (|g). Labels become tags, as Datadog's and Telegraf's servers read
 * them, or parts of the name for servers without tags. The number of series is that of /metrics: no
 * source and no user adds one.
 */
#ifndef SLUICE_METRICS_STATSD_H
#define SLUICE_METRICS_STATSD_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/err.h"

struct statsd;

/* `address`: "ADDRESS:PORT". `prefix` replaces "sluice" in names. 0, or -errno and err. */
int statsd_new(const char *address, const char *prefix, bool tags, struct statsd **ret, struct sl_err *err);
void statsd_free(struct statsd *statsd);	/* NULL is fine */

/*
 * Sends the metrics of one scrape. The first one is what later ones are compared with: of counters it
 * sends nothing. Never blocks; a datagram that cannot be sent is lost, as UDP loses any.
 */
void statsd_send(struct statsd *statsd, const char *scrape, size_t size);

#endif
