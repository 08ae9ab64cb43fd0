/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nodes.h - the daemon's part of the cluster: the way to the other nodes and to the store, from
 * start to end, and what there is to show of it.
 *
 *     spread*.c   blocks, bans and push-downs on all nodes    usage*.c  what sources used
 *     addresses.c the nodes' own addresses                    resets.c  `user reset`
 *
 * Knows: the cluster's thread, the running configuration, the packet tier of this host. Does not
 * know: commands, metrics, workers; of the request tier it has the push-downs and the refusal cache.
 * May use: every room below control but request/server and the frontends, and control/running.
 *
 * nodes->cluster is NULL where the file that sluiced was started with has no `cluster:`. A store that
 * is away is no failure, at start or later: rules say what becomes of their calls then.
 */
#ifndef SLUICE_REPLICATION_NODES_H
#define SLUICE_REPLICATION_NODES_H

#include <event2/event.h>

#include "cluster/bus/cluster.h"
#include "cluster/quota/quota.h"
#include "control/running/running.h"
#include "lib/exposition.h"
#include "request/mitigation/push.h"

/* All but the first two NULL where the file that sluiced was started with has no `cluster:`. */
struct nodes {
	struct running *running;
	struct event_base *base;
	struct running_part part;
	struct cluster *cluster;
	struct quotas *quotas;		/* NULL also where it has no `http:` */
	struct replication *replication;
	struct resets *resets;
	struct addresses *addresses;
	struct nodes_file *nodes_file;
	struct consumption *consumption;		/* NULL also where it has no packet tier */
	struct push *push;		/* of the request tier, filled in by who opens it; NULL: there is none */
};

/* After the HTTP tier was opened, before it runs, while there are privileges. */
int nodes_open(struct nodes *nodes, struct sl_err *err);
/* The thread, and what is said and heard. */
int nodes_run(struct nodes *nodes, struct sl_err *err);
/* The thread says goodbye and ends: before the HTTP tier is closed. Then the rest. */
void nodes_stop(struct nodes *nodes);
void nodes_close(struct nodes *nodes);

/* Goes by the running configuration from now on. */
void nodes_join(struct nodes *nodes);

/* ---- nodes_show.c ---- */

/* For `status`: null without a cluster. */
json_t *nodes_to_json(struct nodes *nodes);
/* For `cluster show`: -ENOENT and err without a cluster. */
int nodes_show(struct nodes *nodes, json_t **ret, struct sl_err *err);
void nodes_metrics(struct nodes *nodes, struct exposition *e);

#endif
