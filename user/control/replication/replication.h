/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * replication.h - blocks, bans and push-downs on all nodes of the cluster.
 *
 *     this node's own, scanned every sync interval -> "blocks", "bans", "pushes" -> other nodes
 *     received -> protected addresses are left out -> in force, with the name of the node
 *
 * Replicated are live blocks (not the file's, not sets, none so wide that it needs --force), bans
 * in force, and push-downs in force. New entries are published at once; all are published again
 * every ten seconds, and when a node joins. Exemptions are never replicated: exemptions, failsafe
 * ports, gateways, login sessions, never_push_down, max_sources and max_share are each node's own
 * and take precedence over other nodes' entries.
 *
 * Received entries are not forwarded. An entry ends at its deadline; a permanent block ends when no
 * node has published it for an hour. state_dir/replicated.json keeps them over a restart: blocks
 * are in force again before the first packet, and bans and push-downs, which the kernel keeps, get
 * their node's name back.
 *
 * nodes->replication is NULL without a cluster; all of these functions then do nothing.
 */
#ifndef SLUICE_REPLICATION_REPLICATION_H
#define SLUICE_REPLICATION_REPLICATION_H

#include "control/replication/nodes.h"
#include "control/replication/replication_table.h"

/* Before the first rules: restores the entries of state_dir. */
int replication_open(struct nodes *nodes, struct sl_err *err);
/* Starts publishing and receiving; nodes->cluster is set. */
int replication_start(struct nodes *nodes, struct sl_err *err);
void replication_close(struct nodes *nodes);
/* The clock was set: the saved deadlines, in UTC, are written again. */
void replication_outdated(struct nodes *nodes);

/* The node that an entry came from, or NULL: this node. */
const char *replication_node(const struct nodes *nodes, enum replication_kind kind,
			     const struct sl_prefix *prefix);

/* The numbers of this node's own entries and of received ones. */
void replication_count(const struct nodes *nodes, enum replication_kind kind, u32 *ret_ours,
		       u32 *ret_theirs);

/* Publishes that an operator removed the entry here; the other nodes remove it, too. */
void replication_withdrawn(struct nodes *nodes, enum replication_kind kind,
			   const struct sl_prefix *prefix);
/* `block del` of another node's block: false if there is none. */
bool replication_unblock(struct nodes *nodes, const struct sl_prefix *prefix);

#endif
