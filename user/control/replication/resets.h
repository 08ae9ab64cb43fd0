/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * resets.h - `user reset` on all nodes: which words of their local stores the others are to forget.
 *
 * What a node knows of a shared limit would refuse until it asks again, and what it has not told
 * the store yet (write_back) would count after all. So the keys of the words are told, a moment after
 * the store: who heard of them sooner would ask, and be told what was there before.
 *
 * nodes->resets is NULL where there is no cluster, or no HTTP tier; all of these are then nothing to do.
 */
#ifndef SLUICE_REPLICATION_RESETS_H
#define SLUICE_REPLICATION_RESETS_H

#include "control/replication/nodes.h"
#include "request/engine/decide.h"

/* There are nodes->cluster and nodes->http: says and hears from now on. */
int resets_start(struct nodes *nodes, struct sl_err *err);
void resets_close(struct nodes *nodes);
void resets_publish(struct nodes *nodes, const struct decide_reset *reset);

#endif
