/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nodes_file.h - state_dir/nodes.json: how many nodes there were. One that starts while the store is
 * away hears of nobody, and would take each limit for its own (on_store_failure: local).
 *
 * nodes->nodes_file is NULL where there is no cluster, or nothing to share; then there is nothing to do.
 */
#ifndef SLUICE_REPLICATION_NODES_FILE_H
#define SLUICE_REPLICATION_NODES_FILE_H

#include "control/replication/nodes.h"

/* There is nodes->cluster, which does not run yet. From now on it is written where it changes. */
int nodes_file_open(struct nodes *nodes, struct sl_err *err);
void nodes_file_close(struct nodes *nodes);

#endif
