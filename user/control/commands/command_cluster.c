// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_cluster.c - cluster show: the cluster store, the other nodes, what they exchange. */
#include "control/commands/commands.h"
#include "control/replication/nodes.h"

int command_cluster_show(struct commands *ctx, const struct command_request *request, json_t **ret,
			 struct sl_err *err)
{
	return nodes_show(ctx->nodes, ret, err);
}
