// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * command_source.c - source show SRC: the data path's state of a source, now; source list: who
 * sends, by network (lib/networks.h) and by source.
 *
 * The table holds hashes, no addresses: a bucket is found by computing its key. That takes every
 * field that the limit counts per, so a limit per source and port cannot be looked up by source
 * alone; the response states that. A source with an override is shown with its own bucket and
 * rates. With leases (accounting: percpu) up to 1% of the burst may be on CPUs and counts as used
 * here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/replication/replication.h"
#include "packet/dataplane/dp_list.h"
#include "packet/host/bans.h"
#include "lib/clock.h"
#include "control/commands/commands.h"
#include "control/mitigation/sources.h"
#include "packet/host/view.h"
#include "packet/host/heavy.h"
#include "packet/dataplane/dp_bucket.h"
#include "packet/observe/observe.h"

/* Assumed size of the next packet: below a full frame a bucket counts as empty. */
#define FULL_FRAME 1514
/* Overrides of any prefix length apply. */
#define LONGEST 128

struct query {
	struct sl_prefix source;
	const struct sl_pclass *class; /* the lists and limits that contain the source */
	struct sl_now now;
	u64 block_until, exempt_until; /* CLOCK_MONOTONIC; 0: not, ~0: no end */
	u64 refused_until; /* the later end of its block and its ban; 0: neither holds */
};

static bool in_bitmap(const struct sl_bitmap *map, size_t bit)
{
	return map->w[bit / 64] >> (bit % 64) & 1;
}

/* Before limits come blocks and bans: what a limit of the policy would pass has to wait for their
 * end. */
static void add_wait(json_t *json, const struct limit_view *view, const struct query *query,
		     u64 wait_ns)
{
	u64 until_ns = view->def ? query->refused_until : 0, now_ns = query->now.mono_ns;

	if (until_ns == ~0ULL || (until_ns > now_ns && until_ns - now_ns > wait_ns))
		wait_ns = until_ns == ~0ULL ? ~0ULL : until_ns - now_ns;
	if (wait_ns)
		json_object_set_new(json, "wait_ns", json_u64(wait_ns));
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
	json = json_pack("{s:s, s:o, s:o, s:b}", "state",
			 step.verdict == SL_OVER		? "over"
			 : sl_expired(word, params, query->now) ? "idle"
								: "within",
			 "used", json_u64(used), "capacity", json_u64(params->capacity), "over",
			 step.verdict == SL_OVER);
	add_wait(json, view, query, step.verdict == SL_OVER ? step.wait_ns : 0);
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
	else if (view->limit->by_match)
		json = json_pack("{s:s}", "state", "has no rate");
	else if (view->limit->per & ~SL_PER_SOURCE)
		json = json_pack("{s:s}", "state", "counted per more than source");
	else
		json = bucket_to_json(ctx, view, query);
	json_object_set_new(json, "limit", json_string(view->name));
	json_object_set_new(json, "unit", json_string(unit_name[view->limit->unit % 3]));
	if (!view->limit->per)
		json_object_set_new(json, "shared", json_true());
	/* `used` is the sum over all nodes, as far as they have reported. */
	if (view->def && view->def->terms.cluster)
		json_object_set_new(json, "scope", json_string("cluster"));
	return json;
}

/* ------------------------------------------------------------------ what it lost lately */

static void count_by(json_t *by, const char *member, const char *name, json_int_t packets)
{
	json_t *one;
	size_t i;

	json_array_foreach(by, i, one)
		if (!strcmp(json_string_value(json_object_get(one, member)) ?: "", name)) {
			packets += json_integer_value(json_object_get(one, "sampled"));
			break;
		}
	if (i == json_array_size(by))
		json_array_append_new(by, json_pack("{s:s}", member, name));
	json_object_set_new(json_array_get(by, i), "sampled", json_integer(packets));
	/* Sorts by the number of drops, most first. */
	for (; i &&
	       json_integer_value(json_object_get(json_array_get(by, i - 1), "sampled")) < packets;
	     i--) {
		one = json_incref(json_array_get(by, i));
		json_array_remove(by, i);
		json_array_insert_new(by, i - 1, one);
	}
}

/* Names the limits that dropped its packets, or the reasons where no limit did: by the events, else
 * by the last drop. */
static json_t *dropped_by(struct commands *ctx, const struct heavy_source *source, u64 span_ns)
{
	const struct observe_filter filter = { .count = SIZE_MAX,
					       .kind = OBSERVED_DROP,
					       .has_within = true,
					       .within = source->source };
	u64 from_ns = clock_utc_ns() - span_ns;
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(ctx->running->policy, ctx->running->image, view), i;
	json_t *events = observe_read(ctx->running->observe, &filter), *by = json_array(), *event;

	json_array_foreach(json_object_get(events, "events"), i, event) {
		const char *limit = json_string_value(json_object_get(event, "limit"));
		const char *reason = json_string_value(json_object_get(event, "reason"));
		json_int_t packets = json_integer_value(json_object_get(event, "packets"));

		if ((u64)json_integer_value(json_object_get(event, "at_ns")) >= from_ns &&
		    (limit || reason))
			count_by(by, limit ? "limit" : "reason", limit ? limit : reason,
				 packets ? packets : 1);
	}
	json_decref(events);
	for (i = 0; !json_array_size(by) && source->limit_id && i < count; i++)
		if (view[i].slot == source->limit_id)
			count_by(by, "limit", view[i].name, 0);
	if (!json_array_size(by))
		count_by(by, "reason", reason_name((enum sl_reason)source->reason), 0);
	return by;
}

/* Returns the share that was dropped, or a negative number if the entries leave more than a tenth
 * of it open. */
static double lost_share(const struct heavy_count *dropped, const struct heavy_count *passed)
{
	u64 sent = dropped->packets + passed->packets;

	return 10 * (dropped->missed + passed->missed) > sent
		       ? -1
		       : (double)dropped->packets / (double)sent;
}

/* A member is left out where the figure is not known: the entry of a light source may have been
 * replaced. */
json_t *source_lately(struct commands *ctx, const struct sl_prefix *source)
{
	struct heavy_source *all = NULL, none = { .source = *source }, *it = &none;
	u64 span_ns, dropped, passed;
	char text[SL_PREFIX_TEXT];
	size_t count;
	double lost;
	json_t *json;
	bool exact;

	if (heavy_read(ctx->running->packets->dp, clock_mono_ns(), &all, &count, &span_ns) < 0)
		return json_null();
	exact = heavy_is_exact(all, count);
	for (size_t i = 0; i < count; i++)
		if (sl_prefix_contains(&all[i].source, source))
			it = &all[i];
	dropped = it->of[SL_HEAVY_DROPPED].packets;
	passed = it->of[SL_HEAVY_PASSED].packets;
	json = json_pack("{s:o, s:b, s:o, s:o}", "span_ns", json_u64(span_ns), "estimate", !exact,
			 "dropped", dropped || exact ? json_u64(dropped) : json_null(), "passed",
			 passed || exact ? json_u64(passed) : json_null());
	if (it->source.len < source->len)
		json_object_set_new(json, "prefix",
				    json_string(sl_prefix_format(&it->source, text, sizeof(text))));
	lost = lost_share(&it->of[SL_HEAVY_DROPPED], &it->of[SL_HEAVY_PASSED]);
	if (dropped && (passed || exact) && lost >= 0)
		json_object_set_new(json, "lost", json_real(lost));
	if (dropped)
		json_object_set_new(json, "by", dropped_by(ctx, it, span_ns));
	free(all);
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
		return sl_err_set(err, EINVAL,
				  "'%.80s' is not a single address; for a limit that groups "
				  "sources by prefix, give any address of the group",
				  arg_text(request, "source"));
	return 0;
}

static void keep_later(u64 *until, u64 other)
{
	if (other > *until)
		*until = other;
}

static const struct dp_ban *ban_of(struct commands *ctx, const struct query *query)
{
	return query->class->flags & SL_PC_NO_BAN
		       ? NULL
		       : bans_find(ctx->running->packets, &query->source);
}

static void query_source(struct commands *ctx, const struct sl_prefix *source, struct query *ret)
{
	struct dp *dp = ctx->running->packets->dp;
	const struct dp_ban *ban;
	u32 class;

	ret->source = *source;
	class = image_pclass(ctx->running->image, SL_PDIM_SRC, source);
	ret->class =
		&ctx->running->image->pclass[class < ctx->running->image->pclass_count ? class : 0];
	ret->now = dp_now(dp);
	ret->refused_until = 0;
	dp_list_covering(dp, source, ret->now.mono_ns, &ret->block_until, &ret->exempt_until);
	keep_later(&ret->block_until, ret->class->block_until);
	keep_later(&ret->block_until, ret->class->wide_block_until);
	keep_later(&ret->exempt_until, ret->class->exempt_until);
	ban = ban_of(ctx, ret);
	if (ret->exempt_until <= ret->now.mono_ns)
		ret->refused_until = ret->block_until;
	if (ban && ret->exempt_until <= ret->now.mono_ns)
		keep_later(&ret->refused_until, ban->state.until_ns);
}

int command_source_show(struct commands *ctx, const struct command_request *request, json_t **ret,
			struct sl_err *err)
{
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(ctx->running->policy, ctx->running->image, view);
	const struct dp_ban *ban;
	struct query query;
	json_t *limits, *users;
	struct sl_prefix source;
	char text[SL_PREFIX_TEXT];
	int r = arg_source(request, &source, err);

	if (r < 0)
		return r;
	/* A ban may have begun since the bans were read. */
	ctx->running->packets->bans.read_at_ns = 0;
	query_source(ctx, &source, &query);
	limits = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(limits, source_limit_to_json(ctx, &view[i], i, &query));
	*ret = json_pack("{s:s, s:o, s:o, s:o}", "source",
			 sl_prefix_format(&query.source, text, sizeof(text)), "exempt_until",
			 deadline_to_json(&query, query.exempt_until), "blocked_until",
			 deadline_to_json(&query, query.block_until), "limits", limits);
	ban = ban_of(ctx, &query);
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
	json_object_set_new(*ret, "lately", source_lately(ctx, &query.source));
	return 0;
}

/* ------------------------------------------------------------------ who sends */

#define LIST_COUNT 20
#define LIST_COUNT_MAX 10000
/* Fewer sources are listed one by one alone, not as a network; of more, those below 1% of it are
 * not listed. */
#define NETWORK_SOURCES 8
#define LIGHT_PARTS 100
/* A limit that is proposed for a network: a tenth of its packets. */
#define LIMIT_PARTS 10

struct listing {
	enum { BY_DROPS, BY_PASSES, BY_BITS, BY_CONNECTIONS, BY_COUNT } by;
	bool all;
	struct sl_prefix within; /* not `all`: only sources of it */
	bool light;		 /* also the light sources of networks: `within`, too */
	int limit_id;		 /* -1: any */
	int iface_slot;		 /* -1: any */
	size_t count;
};

static const char *const by_name[BY_COUNT] = {
	[BY_DROPS] = "drops",
	[BY_PASSES] = "passes",
	[BY_BITS] = "bits",
	[BY_CONNECTIONS] = "connections",
};

static u64 both(const struct heavy_source *source, size_t offset)
{
	u64 sum = 0;

	for (int list = 0; list < SL_HEAVY_LISTS; list++)
		sum += *(const u64 *)((const char *)&source->of[list] + offset);
	return sum;
}

/* What a source is listed by. Sources that are equal in it are listed by all their packets. */
static u64 rank(const struct heavy_source *source, int by)
{
	switch (by) {
	case BY_DROPS:
		return source->of[SL_HEAVY_DROPPED].packets;
	case BY_PASSES:
		return source->of[SL_HEAVY_PASSED].packets;
	case BY_BITS:
		return both(source, offsetof(struct heavy_count, bytes));
	}
	return both(source, offsetof(struct heavy_count, opened));
}

static int by_rank(const void *pa, const void *pb, void *by)
{
	const struct heavy_source *a = pa, *b = pb;
	u64 x = rank(a, *(int *)by), y = rank(b, *(int *)by);

	if (x == y) {
		x = both(a, offsetof(struct heavy_count, packets));
		y = both(b, offsetof(struct heavy_count, packets));
	}
	return (x < y) - (x > y);
}

static int arg_by(const struct command_request *request, struct listing *ret, struct sl_err *err)
{
	const char *text = arg_text(request, "by");
	int by;

	for (by = 0; text && by < BY_COUNT; by++)
		if (!strcmp(text, by_name[by]))
			break;
	if (by == BY_COUNT)
		return sl_err_set(err, EINVAL,
				  "'by' must be drops, passes, bits or connections, not '%.80s'",
				  text);
	ret->by = by;
	return 0;
}

static int arg_limit_id(struct commands *ctx, const struct command_request *request,
			struct listing *ret, struct sl_err *err)
{
	const char *name = arg_text(request, "limit");
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(ctx->running->policy, ctx->running->image, view);

	ret->limit_id = -1;
	for (size_t i = 0; name && i < count; i++)
		if (!strcmp(view[i].name, name))
			ret->limit_id = (int)view[i].slot;
	if (name && ret->limit_id < 0)
		return limit_unknown(ctx, name, err);
	return 0;
}

static int arg_iface(struct commands *ctx, const struct command_request *request,
		     struct listing *ret, struct sl_err *err)
{
	const char *name = arg_text(request, "interface");

	ret->iface_slot = -1;
	for (int slot = 0; name && slot < SL_IFACES_MAX; slot++)
		if (!strcmp(ctx->running->packets->iface[slot].name, name))
			ret->iface_slot = slot;
	if (name && ret->iface_slot < 0)
		return sl_err_set(
			err, ENOENT,
			"no interface '%.80s' is configured; sluicectl status shows those that are",
			name);
	return 0;
}

static int arg_listing(struct commands *ctx, const struct command_request *request,
		       struct listing *ret, struct sl_err *err)
{
	const json_t *count = json_object_get(request->args, "count");
	int r;

	memset(ret, 0, sizeof(*ret));
	ret->all = !arg_text(request, "within");
	r = ret->all ? 0 : arg_prefix(request, "within", &ret->within, err);
	if (!r)
		r = arg_by(request, ret, err);
	if (!r)
		r = arg_limit_id(ctx, request, ret, err);
	if (!r)
		r = arg_iface(ctx, request, ret, err);
	if (r)
		return r;
	if (count && (json_integer_value(count) < 1 || json_integer_value(count) > LIST_COUNT_MAX))
		return sl_err_set(err, EINVAL, "'count' must be a number from 1 to %d",
				  LIST_COUNT_MAX);
	ret->count = count ? (size_t)json_integer_value(count) : LIST_COUNT;
	ret->light = !ret->all || json_is_true(json_object_get(request->args, "all"));
	return 0;
}

/* Whether one of the two prefixes contains the other: a /64 is listed within a /96 of it, too. */
static bool overlap(const struct sl_prefix *a, const struct sl_prefix *b)
{
	u32 len = a->len < b->len ? a->len : b->len;
	struct sl_addr x = sl_addr_mask(a->addr, len), y = sl_addr_mask(b->addr, len);

	return a->family == b->family && x.hi == y.hi && x.lo == y.lo;
}

static bool is_listed(const struct listing *listing, const struct heavy_source *source)
{
	return (listing->all || overlap(&listing->within, &source->source)) &&
	       (listing->limit_id < 0 || source->limit_id == listing->limit_id) &&
	       (listing->iface_slot < 0 || source->iface_slot == listing->iface_slot);
}

static json_t *verdict_to_json(const struct heavy_count *count, double seconds)
{
	return json_pack("{s:o, s:o, s:f}", "packets", json_u64(count->packets), "missed",
			 json_u64(count->missed), "per_second", (double)count->packets / seconds);
}

/* What is done about a source apart from limits; NULL: nothing. */
static const char *state_of(struct commands *ctx, const struct query *query, const json_t *users)
{
	if (query->exempt_until > query->now.mono_ns)
		return "exempt";
	if (query->block_until > query->now.mono_ns)
		return "blocked";
	if (ban_of(ctx, query))
		return "banned";
	if (json_is_object(json_object_get(users, "push_down")))
		return "pushed";
	return NULL;
}

/* The name of the limit and the state of the source's bucket in it. */
static void add_limit(struct commands *ctx, json_t *json, const struct query *query, u32 limit_id)
{
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(ctx->running->policy, ctx->running->image, view), i;
	json_t *bucket;

	for (i = 0; i < count; i++)
		if (view[i].slot == limit_id)
			break;
	if (i == count)
		return;
	bucket = source_limit_to_json(ctx, &view[i], i, query);
	json_object_set_new(json, "limit", json_string(view[i].name));
	if (json_object_get(bucket, "capacity")) {
		json_object_set(json, "used", json_object_get(bucket, "used"));
		json_object_set(json, "capacity", json_object_get(bucket, "capacity"));
	}
	json_decref(bucket);
}

static json_t *heavy_to_json(struct commands *ctx, const struct heavy_source *source,
			     double seconds)
{
	const struct iface *iface = ctx->running->packets->iface;
	const char *state;
	char text[SL_PREFIX_TEXT];
	struct query query;
	json_t *json, *users;

	query_source(ctx, &source->source, &query);
	users = sources_show(ctx->sources, &source->source);
	state = state_of(ctx, &query, users);
	json = json_pack("{s:s, s:o, s:o, s:f, s:f, s:s, s:s}", "source",
			 sl_prefix_format(&source->source, text, sizeof(text)), "dropped",
			 verdict_to_json(&source->of[SL_HEAVY_DROPPED], seconds), "passed",
			 verdict_to_json(&source->of[SL_HEAVY_PASSED], seconds), "bits_per_second",
			 8.0 * (double)both(source, offsetof(struct heavy_count, bytes)) / seconds,
			 "opened_per_second",
			 (double)both(source, offsetof(struct heavy_count, opened)) / seconds,
			 "reason", reason_name((enum sl_reason)source->reason), "interface",
			 iface[source->iface_slot % SL_IFACES_MAX].name);
	if (state)
		json_object_set_new(json, "state", json_string(state));
	if (source->limit_id)
		add_limit(ctx, json, &query, source->limit_id);
	if (users)
		json_object_set_new(json, "users", users);
	return json;
}

/* ------------------------------------------------------------------ the networks among them */

/* The networks of a list, and of each row of it which one it is in. */
struct networks {
	struct network at[NETWORKS_MAX];
	struct networks_row *row;
	size_t count;
	bool estimated;
};

static u64 network_rank(const struct network *network, int by)
{
	static const enum heavy_measure measure[BY_COUNT] = {
		[BY_DROPS] = HEAVY_DROPPED,
		[BY_PASSES] = HEAVY_PASSED,
		[BY_BITS] = HEAVY_BYTES,
		[BY_CONNECTIONS] = HEAVY_OPENED,
	};

	return network->amount[measure[by]];
}

static u64 network_packets(const struct network *network)
{
	return network->amount[HEAVY_DROPPED] + network->amount[HEAVY_PASSED];
}

static int by_network_rank(const void *pa, const void *pb, void *by)
{
	const struct network *a = pa, *b = pb;
	u64 x = network_rank(a, *(int *)by), y = network_rank(b, *(int *)by);

	if (x == y) {
		x = network_packets(a);
		y = network_packets(b);
	}
	return (x < y) - (x > y);
}

/* Blocked or exempt as a whole; NULL: neither. `blocks` of its sources met a block last. */
static const char *network_state(struct commands *ctx, const struct network *network, u32 blocks)
{
	u64 now_ns = clock_mono_ns(), block_until, exempt_until;

	dp_list_covering(ctx->running->packets->dp, &network->prefix, now_ns, &block_until,
			 &exempt_until);
	if (exempt_until > now_ns)
		return "exempt";
	return block_until > now_ns || blocks == network->sources ? "blocked" : NULL;
}

/* The commands that block it, and that limit all of it together to a tenth. */
static void add_remedies(json_t *json, const char *prefix, double per_second)
{
	char name[SL_PREFIX_TEXT];
	size_t i;

	for (i = 0; prefix[i]; i++)
		name[i] = strchr("./:", prefix[i]) ? '-' : prefix[i];
	name[i] = '\0';
	json_object_set_new(json, "block",
			    json_sprintf("sluicectl block add %s --for 10m", prefix));
	json_object_set_new(
		json, "limit",
		json_sprintf(
			"echo '{name: net-%s, match: {src: \"%s\"}, per: [], rate: %.0f packets/s}' | sluicectl limit add -",
			name, prefix, per_second < 2 * LIMIT_PARTS ? 1 : per_second / LIMIT_PARTS));
}

static json_t *network_to_json(struct commands *ctx, const struct networks *networks,
			       const struct network *network, u32 blocks, double seconds)
{
	char text[SL_PREFIX_TEXT];
	const char *state = network_state(ctx, network, blocks);
	json_t *json;

	sl_prefix_format(&network->prefix, text, sizeof(text));
	json = json_pack("{s:s, s:i, s:b, s:{s:o, s:f}, s:{s:o, s:f}, s:f, s:f}", "source", text,
			 "sources", (int)network->sources, "estimated", networks->estimated,
			 "dropped", "packets", json_u64(network->amount[HEAVY_DROPPED]),
			 "per_second", (double)network->amount[HEAVY_DROPPED] / seconds, "passed",
			 "packets", json_u64(network->amount[HEAVY_PASSED]), "per_second",
			 (double)network->amount[HEAVY_PASSED] / seconds, "bits_per_second",
			 8.0 * (double)network->amount[HEAVY_BYTES] / seconds, "opened_per_second",
			 (double)network->amount[HEAVY_OPENED] / seconds);
	if (state)
		json_object_set_new(json, "state", json_string(state));
	else
		add_remedies(json, text, (double)network_packets(network) / seconds);
	return json;
}

static json_t *networks_to_json(struct commands *ctx, const struct networks *networks,
				const struct listing *listing, const struct heavy_source *source,
				size_t count, double seconds)
{
	struct network sorted[NETWORKS_MAX];
	json_t *list = json_array();
	int by = (int)listing->by;

	memcpy(sorted, networks->at, networks->count * sizeof(*sorted));
	qsort_r(sorted, networks->count, sizeof(*sorted), by_network_rank, &by);
	for (size_t i = 0; i < networks->count && json_array_size(list) < listing->count; i++) {
		u32 blocks = 0;

		if (sorted[i].sources < NETWORK_SOURCES ||
		    (by != BY_DROPS && !network_rank(&sorted[i], by)))
			continue;
		for (size_t k = 0; k < count; k++)
			blocks +=
				source[k].reason == SL_R_BLOCK && networks->row[k].network &&
				sl_prefix_equal(&networks->at[networks->row[k].network - 1].prefix,
						&sorted[i].prefix);
		json_array_append_new(list,
				      network_to_json(ctx, networks, &sorted[i], blocks, seconds));
	}
	return list;
}

/* Whether the list shows a network in place of the source in row `k`. */
static bool is_light(const struct networks *networks, size_t k)
{
	const struct networks_row *row = &networks->row[k];
	const struct network *network = row->network ? &networks->at[row->network - 1] : NULL;

	return network && network->sources >= NETWORK_SOURCES &&
	       (row->amount[HEAVY_DROPPED] + row->amount[HEAVY_PASSED]) * LIGHT_PARTS <
		       network_packets(network);
}

/* The networks among the sources of the listing, and these in their order. 0 or -ENOMEM. */
static int list_sources(struct commands *ctx, const struct listing *listing,
			struct heavy_source *source, size_t count, double seconds, json_t *result)
{
	struct networks networks = { .estimated = !heavy_is_exact(source, count) };
	size_t rows = 0, light = 0;
	json_t *list = json_array(), *found;
	int by = (int)listing->by, r;

	for (size_t i = 0; i < count; i++)
		if (is_listed(listing, &source[i]))
			source[rows++] = source[i];
	count = rows;
	r = heavy_networks(source, count, networks.at, &networks.row);
	if (r < 0) {
		json_decref(list);
		return r;
	}
	networks.count = (size_t)r;
	found = networks_to_json(ctx, &networks, listing, source, count, seconds);
	if (json_array_size(found))
		json_object_set(result, "networks", found);
	json_decref(found);
	rows = 0;
	for (size_t i = 0; i < count; i++) {
		if (by != BY_DROPS && !rank(&source[i], by))
			continue;
		if (!listing->light && is_light(&networks, i))
			light++;
		else
			source[rows++] = source[i];
	}
	free(networks.row);
	qsort_r(source, rows, sizeof(*source), by_rank, &by);
	for (size_t i = 0; i < rows && i < listing->count; i++)
		json_array_append_new(list, heavy_to_json(ctx, &source[i], seconds));
	json_object_set_new(result, "sources", list);
	if (rows > listing->count)
		json_object_set_new(result, "more", json_u64(rows - listing->count));
	if (light)
		json_object_set_new(result, "light", json_u64(light));
	return 0;
}

int command_source_list(struct commands *ctx, const struct command_request *request, json_t **ret,
			struct sl_err *err)
{
	struct heavy_source *source;
	struct listing listing;
	json_t *result;
	size_t count;
	u64 span_ns;
	int r = arg_listing(ctx, request, &listing, err);

	if (r < 0)
		return r;
	r = heavy_read(ctx->running->packets->dp, clock_mono_ns(), &source, &count, &span_ns);
	if (r < 0)
		return sl_err_set(err, -r, "cannot read the heaviest sources: %s", strerror(-r));
	result = json_pack("{s:o}", "span_ns", json_u64(span_ns));
	r = list_sources(ctx, &listing, source, count, (double)span_ns / 1e9, result);
	free(source);
	if (r < 0) {
		json_decref(result);
		return sl_err_no_memory(err);
	}
	*ret = result;
	return 0;
}
