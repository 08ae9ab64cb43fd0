/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * replication.h - blocks, bans and push-downs on all nodes of the cluster.
 *
 *     this node's own, looked for every sync interval -> "blocks", "bans", "pushes" -> the others
 *     heard -> what this node never cuts off is left out -> in force here, marked with who said it
 *
 * Spread are live blocks (not the file's, not sets, none too wide to be added without --force),
 * bans that are on, and push-downs that are carried out. What is new goes out at once; all of it
 * is said again every ten seconds, and when a node comes. Exemptions are never spread: they, failsafe
 * ports, gateways, login sessions, never_push_down, max_sources and max_share are each node's own,
 * and hold against what others say.
 *
 * What was heard is not sent on. It ends with its time; a block for good when nobody has said it for
 * an hour. state_dir/replicated.json keeps it over a restart: blocks are in force again before the
 * first packet, and of bans and push-downs, which the kernel keeps, it is known whose they are.
 *
 * nodes->spread is NULL where the file has no `cluster:`; all of these are then nothing to do.
 */
#ifndef SLUICE_REPLICATION_REPLICATION_H
#define SLUICE_REPLICATION_REPLICATION_H

#include "control/replication/nodes.h"
#include "control/replication/replication_table.h"

/* Before the first rules: what was in force before. */
int replication_open(struct nodes *nodes, struct sl_err *err);
/* There is nodes->cluster: says and hears from now on. */
int replication_start(struct nodes *nodes, struct sl_err *err);
void replication_close(struct nodes *nodes);

/* Whose it is, or NULL: this node's own. */
const char *replication_node(const struct nodes *nodes, enum replication_kind kind,
			     const struct sl_prefix *prefix);

/* How many of them this node said and heard. */
void replication_count(const struct nodes *nodes, enum replication_kind kind, u32 *ret_ours,
		       u32 *ret_theirs);

/* Somebody took it back here: everybody does. */
void replication_withdrawn(struct nodes *nodes, enum replication_kind kind,
			   const struct sl_prefix *prefix);
/* `block del` of one that another node said: false where there is none. */
bool replication_unblock(struct nodes *nodes, const struct sl_prefix *prefix);

#endif
