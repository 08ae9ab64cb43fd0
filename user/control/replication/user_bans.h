/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * user_bans.h - bans of values (`ban` of a rule with limits of scope cluster) on all nodes.
 *
 * A client may send its requests to any node, so each node publishes the refusals that it counted,
 * and adds those of the others: more than `after` of all nodes together begin a ban on each of
 * them, a sync interval apart. The bans are published, too, and again when a node joins: all nodes
 * have the latest end of them. Without the cluster store each node bans by its own refusals, and
 * what it has to publish is queued.
 *
 * nodes->user_bans is NULL without a cluster or without an HTTP tier; all of these then do nothing.
 */
#ifndef SLUICE_REPLICATION_USER_BANS_H
#define SLUICE_REPLICATION_USER_BANS_H

#include "control/replication/nodes.h"

int user_bans_start(struct nodes *nodes, struct sl_err *err);
void user_bans_close(struct nodes *nodes);
/* The ban of this key was ended by hand, here or on another node: it is not published again. */
void user_bans_forget(struct nodes *nodes, u64 key);

#endif
