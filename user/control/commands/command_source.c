// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * command_source.c - source show SRC: the data path's state of a source, now.
 *
 * The table holds hashes, no addresses: a bucket is found by computing its key. That takes every
 * field that the limit counts per, so a limit per source and port cannot be looked up by source
 * alone; the response states that. A source with an override is shown with its own bucket and
 * rates. With leases (accounting: percpu) up to 1% of the burst may be on CPUs and counts as used
 * here.
 */
#include <errno.h>
#include <string.h>

#include "control/replication/replication.h"
#include "packet/host/bans.h"
#include "lib/clock.h"
#include "control/commands/commands.h"
#include "control/mitigation/sources.h"
#include "packet/host/view.h"
#include "packet/dataplane/dp_bucket.h"

/* Assumed size of the next packet: below a full frame a bucket counts as empty. */
#define FULL_FRAME 1514
/* Overrides of any prefix length apply. */
#define LONGEST 128

struct query {
	struct sl_prefix source;
	const struct sl_pclass *class;	/* the lists and limits that contain the source */
	struct sl_now now;
};

static bool in_bitmap(const struct sl_bitmap *map, size_t bit)
{
	return map->w[bit / 64] >> (bit % 64) & 1;
}

static json_t *bucket_to_json(struct commands *ctx, const struct limit_view *view,
			      const struct query *query)
{
	u32 row = view->limit - ctx->running->image->rules->limits;
	u64 cost = view->limit->unit == SL_UNIT_BYTES ? FULL_FRAME : 1;
	const struct sl_params *params;
	struct dp_bucket bucket;
	struct sl_result step;
	u64 word, used;
	json_t *json;

	if (!dp_bucket_of(ctx->running->image, row, &query->source, LONGEST, &bucket))
		return json_pack("{s:s}", "state", "does not match");
	params = &bucket.params;
	word = dp_bucket_state(ctx->running->packets->dp, bucket.key);
	used = sl_used(word, params, query->now);
	if (cost > params->capacity)
		cost = params->capacity;
	step = sl_step(word, params, query->now, cost);
	if (used > params->capacity)
		used = params->capacity;
	json = json_pack("{s:s, s:o, s:o, s:b}", "state", step.verdict == SL_OVER ? "over" :
			 sl_expired(word, params, query->now) ? "idle" : "within", "used",
			 json_u64(used), "capacity", json_u64(params->capacity), "over",
			 step.verdict == SL_OVER);
	if (step.verdict == SL_OVER)
		json_object_set_new(json, "wait_ns", json_u64(step.wait_ns));
	return json;
}

static json_t *source_limit_to_json(struct commands *ctx, const struct limit_view *view,
				    size_t index, const struct query *query)
{
	static const char *const unit_name[] = { "packets", "bytes", "connections" };
	json_t *json;

	if (view->def && view->limit->mode == SL_MODE_OFF)
		json = json_pack("{s:s}", "state", "off");
	else if (view->def && !in_bitmap(&query->class->limits, index))
		json = json_pack("{s:s}", "state", "does not match");
	else if (view->limit->per & ~SL_PER_SOURCE)
		json = json_pack("{s:s}", "state", "counted per more than source");
	else
		json = bucket_to_json(ctx, view, query);
	json_object_set_new(json, "limit", json_string(view->name));
	json_object_set_new(json, "unit", json_string(unit_name[view->limit->unit % 3]));
	if (!view->limit->per)
		json_object_set_new(json, "shared", json_true());
	/* `used` is the sum over all nodes, as far as they have reported. */
	if (view->def && view->def->cluster)
		json_object_set_new(json, "scope", json_string("cluster"));
	return json;
}

/* A deadline in monotonic time as UTC: null where there is none, "always" for good. */
static json_t *deadline_to_json(const struct query *query, u64 until_ns)
{
	if (!until_ns || until_ns <= query->now.mono_ns)
		return json_null();
	if (until_ns == ~0ULL)
		return json_string("always");
	return json_utc(until_ns - query->now.mono_ns + query->now.utc_ns);
}

int arg_source(const struct command_request *request, struct sl_prefix *ret, struct sl_err *err)
{
	int r = arg_prefix(request, "source", ret, err);

	if (r < 0)
		return r;
	if (ret->len != (ret->family == SL_V4 ? 32 : 128))
		return sl_err_set(err, EINVAL, "'%.80s' is not a single address; for a limit that groups "
				  "sources by prefix, give any address of the group", arg_text(request, "source"));
	return 0;
}

int command_source_show(struct commands *ctx, const struct command_request *request, json_t **ret,
			struct sl_err *err)
{
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(ctx->running->policy, ctx->running->image, view);
	const struct dp_ban *ban;
	struct query query;
	json_t *limits, *users;
	u64 block_ns;
	u32 class;
	char text[SL_PREFIX_TEXT];
	int r = arg_source(request, &query.source, err);

	if (r < 0)
		return r;
	class = image_pclass(ctx->running->image, SL_PDIM_SRC, &query.source);
	query.class =
		&ctx->running->image->pclass[class < ctx->running->image->pclass_count ? class : 0];
	query.now = clock_now(
		ctx->running->packets->dp->ops->state(ctx->running->packets->dp)->utc_offset_ns);
	limits = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(limits, source_limit_to_json(ctx, &view[i], i, &query));
	block_ns = query.class->block_until;
	if (query.class->wide_block_until > block_ns)
		block_ns = query.class->wide_block_until;
	*ret = json_pack("{s:s, s:o, s:o, s:o}", "source",
			 sl_prefix_format(&query.source, text, sizeof(text)), "exempt_until",
			 deadline_to_json(&query, query.class->exempt_until), "blocked_until",
			 deadline_to_json(&query, block_ns), "limits", limits);
	ban = query.class->flags & SL_PC_NO_BAN ? NULL
						: bans_find(ctx->running->packets, &query.source);
	json_object_set_new(*ret, "banned_until",
			    deadline_to_json(&query, ban ? ban->state.until_ns : 0));
	if (ban) {
		struct sl_prefix prefix = bans_prefix(ban);

		json_object_set_new(
			*ret, "ban",
			bans_to_json(ctx->running->packets, ban,
				     replication_node(ctx->nodes, REPLICATION_BAN, &prefix)));
	}
	users = sources_show(ctx->sources, &query.source);
	if (users)
		json_object_set_new(*ret, "http", users);
	return 0;
}
