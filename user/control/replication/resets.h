/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * resets.h - `user reset` on all nodes: the bucket states that other nodes must drop from their
 * counter tables.
 *
 * A node's copy of a limit of scope cluster would refuse until its next request to the store, and
 * its unflushed counts (write_back) would be charged after the reset. So the bucket keys are
 * published a moment after the store has the reset: a node that received them earlier would read
 * the old state.
 *
 * nodes->resets is NULL without a cluster or without an HTTP tier; all of these then do nothing.
 */
#ifndef SLUICE_REPLICATION_RESETS_H
#define SLUICE_REPLICATION_RESETS_H

#include "control/replication/nodes.h"
#include "request/engine/decide.h"

/* Starts publishing and receiving; needs nodes->cluster and the HTTP tier. */
int resets_start(struct nodes *nodes, struct sl_err *err);
void resets_close(struct nodes *nodes);
void resets_publish(struct nodes *nodes, const struct decide_reset *reset);
/* A key of a message: 16 hexadecimal digits. */
bool reset_key_read(const char *digits, u64 *ret);

#endif
