// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_push.c - pushdowns list, pushdowns clear; see sources.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "control/commands/listing.h"
#include "control/mitigation/sources.h"
#include "control/replication/replication.h"
#include "packet/dataplane/dp_push.h"
#include "lib/log.h"

static int push_needs_tier(const struct commands *ctx, struct sl_err *err)
{
	if (ctx->sources && ctx->sources->def)
		return 0;
	return sl_err_set(err, ENOENT,
			  "the HTTP tier is not configured: sluice.yaml has no section 'http'");
}

/* On a node without an HTTP tier: push-downs of other nodes. */
static json_t *other_to_json(const struct commands *ctx, const struct dp_push *push, u64 now_ns)
{
	char source[SL_PREFIX_TEXT], rate[96] = "";

	if (push->kind == SL_PUSH_LIMIT)
		rate_format(&push->rate, rate, sizeof(rate));
	return json_pack("{s:s, s:s, s:s, s:s?, s:o, s:o, s:o, s:o}", "source",
			 sl_prefix_format(&push->src, source, sizeof(source)), "step",
			 push_kind_name(push->kind), "rate", rate, "node",
			 replication_node(ctx->nodes, REPLICATION_PUSH, &push->src), "until",
			 json_utc(push->until_ns + clock_utc_offset_ns()), "left_ns",
			 json_u64(push->until_ns - now_ns), "packets", json_u64(push->packets),
			 "refused", json_u64(push->refused));
}

static int list_others(struct commands *ctx, struct listing *listing, json_t **ret,
		       struct sl_err *err)
{
	u64 now_ns = clock_mono_ns(), active = 0;
	struct dp_push *push = NULL;
	size_t count = 0;

	if (dp_pushes(ctx->running->packets->dp, &push, &count) < 0)
		count = 0;
	for (size_t i = 0; i < count; i++)
		active += push[i].until_ns > now_ns;
	while (listing_pass(listing))
		for (size_t i = 0; i < count; i++)
			if (push[i].until_ns > now_ns && listing_wants(listing, &push[i].src))
				listing_add(listing, other_to_json(ctx, &push[i], now_ns));
	free(push);
	*ret = json_pack("{s:o, s:{}}", "active", json_u64(active), "refused");
	return listing_end(listing, *ret, "pushdowns", err);
}

int command_pushdowns_list(struct commands *ctx, const struct command_request *request,
			   json_t **ret, struct sl_err *err)
{
	const struct push_entry *entry;
	struct push_stats stats;
	struct listing listing;
	json_t *refused;
	u64 active = 0;
	int r = listing_begin(request, &listing, err);

	if (r < 0)
		return r;
	if (ctx->nodes->cluster && !ctx->sources)
		return list_others(ctx, &listing, ret, err);
	r = push_needs_tier(ctx, err);
	if (r < 0)
		return r;
	sources_drain(ctx->sources);
	while (listing_pass(&listing))
		for (u32 i = 0; (entry = push_at(ctx->sources->push, i)) != NULL; i++)
			if (entry->used && listing_wants(&listing, &entry->group))
				listing_add(&listing, sources_push_to_json(ctx->sources, entry));
	push_stats(ctx->sources->push, &stats);
	refused = json_object();
	for (u32 reason = 1; reason < PUSH_REFUSAL_COUNT; reason++)
		json_object_set_new(refused, push_refusal_name(reason),
				    json_u64(stats.refused[reason]));
	for (u32 kind = 0; kind < SL_PUSH_COUNT; kind++)
		active += stats.active[kind];
	*ret = json_pack("{s:o, s:o}", "active", json_u64(active), "refused", refused);
	return listing_end(&listing, *ret, "pushdowns", err);
}

/* Publishes the removal: other nodes remove their own push-downs of the source, and ours. */
static void publish_cleared(struct commands *ctx, const struct sl_prefix *source)
{
	const struct push_entry *entry;

	for (u32 i = 0; (entry = push_at(ctx->sources->push, i)) != NULL; i++)
		if (entry->used && !entry->shadow &&
		    (!source || sl_prefix_contains(&entry->group, source) ||
		     sl_prefix_contains(source, &entry->group)))
			replication_withdrawn(ctx->nodes, REPLICATION_PUSH, &entry->group);
}

/* As with bans, removing a push-down is not a live change. */
int command_pushdowns_clear(struct commands *ctx, const struct command_request *request,
			    json_t **ret, struct sl_err *err)
{
	const char *text = arg_text(request, "source");
	struct sl_prefix source;
	u32 count;
	int r = push_needs_tier(ctx, err);

	if (!r && text)
		r = arg_prefix(request, "source", &source, err);
	if (r < 0)
		return r;
	sources_drain(ctx->sources);
	publish_cleared(ctx, text ? &source : NULL);
	count = push_clear(ctx->sources->push, text ? &source : NULL, clock_mono_ns());
	if (text && !count)
		return sl_err_set(err, ENOENT,
				  "%.80s is not pushed down; sluicectl pushdowns list "
				  "shows all push-downs",
				  text);
	log_info("pushdowns clear%s%s: %u removed (uid %u, pid %d)", text ? " " : "",
		 text ? text : "", count, request->peer->uid, request->peer->pid);
	*ret = json_pack("{s:i}", "cleared", (int)count);
	return 0;
}
