/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nodes.h - the daemon's part of the cluster: the way to the other nodes and to the store, from
 * start to end, and what there is to show of it.
 *
 * d->cluster is NULL where the file that sluiced was started with has no `cluster:`. A store that
 * is away is no failure, at start or later: rules say what becomes of their calls then.
 */
#ifndef SLUICE_DAEMON_NODES_H
#define SLUICE_DAEMON_NODES_H

#include "daemon/daemon.h"

struct exposition;

/* After the HTTP tier was opened, before it runs, while there are privileges. */
int nodes_open(struct daemon *d, struct sl_err *err);
/* The thread, and what is said and heard. */
int nodes_run(struct daemon *d, struct sl_err *err);
/* The thread says goodbye and ends: before the HTTP tier is closed. Then the rest. */
void nodes_stop(struct daemon *d);
void nodes_close(struct daemon *d);

/* Another `cluster:` section is about to be in force: what takes a restart is told in `notes`. */
void nodes_configure(struct daemon *d, const struct cluster_def *def, json_t *notes);

/* ---- nodes_show.c ---- */

/* For `status`: null without a cluster. */
json_t *nodes_to_json(struct daemon *d);
/* For `cluster show`: -ENOENT and err without a cluster. */
int nodes_show(struct daemon *d, json_t **ret, struct sl_err *err);
void nodes_metrics(struct daemon *d, struct exposition *e);

#endif
