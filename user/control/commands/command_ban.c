// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_ban.c - ban list, ban del: of sources (bans.h), and users that are banned by rules. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/mitigation/sources.h"
#include "control/replication/replication.h"
#include "packet/host/bans.h"
#include "control/commands/listing.h"
#include "lib/clock.h"
#include "lib/log.h"
#include "request/engine/decide.h"

static json_t *ban_to_json(const struct commands *ctx, const struct dp_ban *ban)
{
	struct sl_prefix prefix = bans_prefix(ban);

	return bans_to_json(ctx->running->packets, ban,
			    replication_node(ctx->nodes, REPLICATION_BAN, &prefix));
}

/* ---- users */

static void add_user(struct commands *ctx, const struct active_user *user, struct response *show,
		     json_t *list)
{
	const struct ruleset *rules = ctx->running->requests.rules;
	const struct ledger *ledger = &ctx->running->requests.engine->ledger;
	const struct rule *rule = ruleset_find(rules, user->rule);

	if (!rule || !rule->ban.after || user->cut ||
	    decide_show(ledger, rules, rule, (struct bytes){ user->value, user->value_len }, NULL,
			0, counters_now(ledger->counters), show) ||
	    !show->status[0].ban_left_ns)
		return;
	json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:i}", "rule", user->rule, "value",
					      sources_text(user->value, user->value_len, false),
					      "left_ns", json_u64(show->status[0].ban_left_ns),
					      "level", show->status[0].ban_level));
}

/*
 * Bans of values are hashes in the counter table. Those whose requests were refused lately have a
 * name (`user top`); of the others only the number is known, at the last sweep.
 */
static void users_to_json(struct commands *ctx, json_t *ret)
{
	const struct active_user *top[ACTIVE_ROOM];
	struct response *show = calloc(1, sizeof(*show));
	struct counters_stats stats;
	json_t *list = json_array();
	u64 span_ns;
	u32 found;

	sources_drain(ctx->sources);
	found = active_read(&ctx->sources->refused, top, &span_ns, clock_mono_ns());
	for (u32 i = 0; show && i < found; i++)
		add_user(ctx, top[i], show, list);
	free(show);
	counters_stats(ctx->running->requests.engine->ledger.counters, &stats);
	json_object_set_new(ret, "users", list);
	json_object_set_new(ret, "user_states", json_u64(stats.entries[SL_ALGO_BAN]));
}

int command_ban_list(struct commands *ctx, const struct command_request *request, json_t **ret,
		     struct sl_err *err)
{
	struct listing listing;
	const struct bans *bans;
	int r = listing_begin(request, &listing, err);

	if (r < 0)
		return r;
	ctx->running->packets->bans.read_at_ns = 0;
	bans = bans_look(ctx->running->packets);
	while (listing_pass(&listing))
		for (size_t i = 0; i < bans->count; i++) {
			struct sl_prefix prefix = bans_prefix(&bans->ban[i]);

			if (listing_wants(&listing, &prefix))
				listing_add(&listing, ban_to_json(ctx, &bans->ban[i]));
		}
	*ret = json_pack("{s:o}", "active", json_u64(bans->active));
	if (!listing.has_after && ctx->sources && ctx->sources->def && ctx->running->requests.rules)
		users_to_json(ctx, *ret);
	return listing_end(&listing, *ret, "bans", err);
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
				      strerror(-r))
			 : sl_err_set(err, ENOENT,
				      "%.80s is not banned; sluicectl ban list shows all "
				      "bans",
				      text);
	}
	log_info("ban del %s: %zu removed (uid %u, pid %d)", text, count, request->peer->uid,
		 request->peer->pid);
	*ret = json_pack("{s:o}", "lifted", lifted);
	return 0;
}
