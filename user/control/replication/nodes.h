/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nodes.h - the daemon's part of the cluster: the connection to the cluster store and the other
 * nodes, from start to exit, and its status.
 *
 *     replication*.c  blocks, bans and push-downs on all nodes
 *     consumption*.c  what sources used of packet limits of scope cluster
 *     addresses.c     the nodes' own addresses
 *     resets.c        `user reset`, `user unban`
 *     differences.c   nodes whose limits and rules differ
 *     user_bans.c     refusals and bans of values, of rules with `ban`
 *
 * Knows: the cluster's thread, the running configuration, the packet tier of this host. Does not
 * know: commands, metrics, workers; of the request tier it has the push-downs and the refusal
 * cache. May use: every room below control but request/server and the frontends, and
 * control/running.
 *
 * nodes->cluster is NULL if sluiced was started without a section `cluster`. An unavailable cluster
 * store is no failure, at start or later: on_store_failure of each rule decides.
 */
#ifndef SLUICE_REPLICATION_NODES_H
#define SLUICE_REPLICATION_NODES_H

#include <event2/event.h>

#include "cluster/bus/cluster.h"
#include "cluster/quota/quota.h"
#include "control/running/running.h"
#include "lib/exposition.h"
#include "request/mitigation/push.h"

/* All but the first two are NULL if sluiced was started without a section `cluster`. */
struct nodes {
	struct running *running;
	struct event_base *base;
	struct cluster *cluster;
	struct quotas *quotas; /* NULL also without an HTTP tier */
	struct replication *replication;
	struct resets *resets;
	struct user_bans *user_bans;
	struct differences *differences;
	struct addresses *addresses;
	struct nodes_file *nodes_file;
	struct consumption *consumption; /* NULL also without a packet tier */
	struct push *push; /* of the request tier, which sets it; NULL: there is none */
};

/* After the HTTP tier was opened, before it runs; needs privileges. */
int nodes_open(struct nodes *nodes, struct sl_err *err);
/* Starts the thread, publishing and receiving. */
int nodes_run(struct nodes *nodes, struct sl_err *err);
/* Leaves the cluster, ends the thread, frees the rest; before the HTTP tier is closed. */
void nodes_stop(struct nodes *nodes);
void nodes_close(struct nodes *nodes);

/* ---- nodes_show.c ---- */

/* For `status`: null without a cluster. */
json_t *nodes_to_json(struct nodes *nodes);
/* For `cluster show`: -ENOENT and err without a cluster. */
int nodes_show(struct nodes *nodes, json_t **ret, struct sl_err *err);
void nodes_metrics(struct nodes *nodes, struct exposition *e);

#endif
