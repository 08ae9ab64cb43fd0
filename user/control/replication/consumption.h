/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * consumption.h - the packet tier's limits of scope cluster: every sync interval the other nodes
 * are told what sources used of them here, and what they tell is charged here
 * (packet/dataplane/dp_consumption.h).
 *
 * nodes->usage is NULL where the file that sluiced was started with has no `cluster:`; all of these
 * are then nothing to do. Where no limit is of scope cluster there is no message and no scan.
 */
#ifndef SLUICE_REPLICATION_CONSUMPTION_H
#define SLUICE_REPLICATION_CONSUMPTION_H

#include "control/replication/nodes.h"

struct cluster;

/*
 * Before the first rules: keys of buckets are from now on made under the cluster's seed, the same on
 * all nodes. Where they were not, sources begin anew, once.
 */
int consumption_open(struct nodes *nodes, struct sl_err *err);
/* Tells and hears from now on, as long as there is `cluster`. */
int consumption_start(struct nodes *nodes, struct cluster *cluster, struct sl_err *err);
void consumption_close(struct nodes *nodes);

/* What was told and heard; null without a cluster. */
json_t *consumption_show(const struct nodes *nodes);

#endif
