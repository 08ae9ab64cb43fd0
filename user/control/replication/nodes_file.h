/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nodes_file.h - state_dir/nodes.json: the number of nodes. A node that starts while the cluster
 * store is unavailable knows no other nodes, and would use all of each limit alone
 * (on_store_failure: local).
 *
 * nodes->nodes_file is NULL without a cluster, or if there is no quota to divide.
 */
#ifndef SLUICE_REPLICATION_NODES_FILE_H
#define SLUICE_REPLICATION_NODES_FILE_H

#include "control/replication/nodes.h"

/* Reads the file, and writes it at each change. nodes->cluster is set and does not run yet. */
int nodes_file_open(struct nodes *nodes, struct sl_err *err);
void nodes_file_close(struct nodes *nodes);

#endif
