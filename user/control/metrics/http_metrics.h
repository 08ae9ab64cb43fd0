/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* http_metrics.h - the HTTP tier's part of /metrics. */
#ifndef SLUICE_METRICS_HTTP_METRICS_H
#define SLUICE_METRICS_HTTP_METRICS_H

#include "control/metrics/metrics.h"
#include "lib/exposition.h"

/* Writes nothing where there is no HTTP tier. No worker waits for it. */
void http_metrics_write(struct metrics *m, struct exposition *e);

#endif
