// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_ban.c - ban list, ban del; see bans.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/replication/replication.h"
#include "packet/host/bans.h"
#include "control/commands/commands.h"
#include "lib/log.h"

static json_t *ban_to_json(const struct commands *ctx, const struct dp_ban *ban)
{
	struct sl_prefix prefix = bans_prefix(ban);

	return bans_to_json(ctx->running->packets, ban,
			    replication_node(ctx->nodes, REPLICATION_BAN, &prefix));
}

int command_ban_list(struct commands *ctx, const struct command_request *request, json_t **ret,
		     struct sl_err *err)
{
	json_t *list = json_array();
	const struct bans *bans;

	ctx->running->packets->bans.read_at_ns = 0;
	bans = bans_look(ctx->running->packets);
	for (size_t i = 0; i < bans->count; i++)
		json_array_append_new(list, ban_to_json(ctx, &bans->ban[i]));
	*ret = json_pack("{s:o, s:o}", "bans", list, "active", json_u64(bans->active));
	return 0;
}

/* Removing a ban is not a live change: it equals the ban's own end. */
int command_ban_del(struct commands *ctx, const struct command_request *request, json_t **ret,
		    struct sl_err *err)
{
	const char *text = arg_text(request, "source");
	struct sl_prefix source;
	struct dp_ban *ban;
	json_t *lifted;
	size_t count;
	int r = arg_prefix(request, "source", &source, err);

	if (r < 0)
		return r;
	lifted = json_array();
	r = bans_lift(ctx->running->packets, &source, &ban, &count);
	for (size_t i = 0; i < count; i++) {
		struct sl_prefix prefix = bans_prefix(&ban[i]);

		json_array_append_new(lifted, ban_to_json(ctx, &ban[i]));
		replication_withdrawn(ctx->nodes, REPLICATION_BAN, &prefix);
	}
	free(ban);
	if (r < 0 || !count) {
		json_decref(lifted);
		return r ? sl_err_set(err, -r, "cannot remove the ban of %.80s: %s", text,
				      strerror(-r)) :
			   sl_err_set(err, ENOENT, "%.80s is not banned; sluicectl ban list shows all "
				      "bans", text);
	}
	log_info("ban del %s: %zu removed (uid %u, pid %d)", text, count, request->peer->uid,
		 request->peer->pid);
	*ret = json_pack("{s:o}", "lifted", lifted);
	return 0;
}
