/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * differences.h - nodes whose limits and rules differ from this node's.
 *
 * A change by `limit` or `rule`, or a file that was not copied, holds on one node alone. Each node
 * publishes a digest of all its packet limits and request rules as they are in force (as `save`
 * writes them, so neither comments nor order nor file names matter; without what source_budget
 * derives), every ten seconds and after a change. While a node differs, the message also has the
 * name, digest and rate of each limit and rule, up to LIST_BYTES; the receiver compares and keeps
 * the first names that differ.
 *
 * Not compared: interfaces, sets, blocks, listeners, and the contents of overrides_file of rules.
 */
#ifndef SLUICE_REPLICATION_DIFFERENCES_H
#define SLUICE_REPLICATION_DIFFERENCES_H

#include "control/replication/nodes.h"

/* Starts publishing and receiving; needs nodes->cluster. */
int differences_start(struct nodes *nodes, struct sl_err *err);
void differences_close(struct nodes *nodes);
/*
 * How a node differs: null, or {"since": UTC, "count": how many limits and rules differ (0: not
 * known yet), "what": text}.
 */
json_t *differences_to_json(const struct nodes *nodes, const char *node);

#endif
