// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_status.c - status: version, uptime, interfaces, limits, table. */
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "control/running/entries.h"
#include "control/commands/commands.h"
#include "control/running/live.h"
#include "control/replication/nodes.h"
#include "control/running/pending.h"
#include "control/running/persist.h"
#include "control/running/rules.h"
#include "control/running/running_text.h"
#include "packet/host/view.h"
#include "counters/counters.h"
#include "lib/visible.h"
#include "request/engine/observe.h"
#include "request/rules/rule.h"
#include "version.h"

static json_t *interface_to_json(struct commands *ctx, u32 slot)
{
	static const char *const marks[] = {
		[MARKS_UNUSED] = "unused",
		[MARKS_READ] = "attached",
		[MARKS_LOST] = "lost",
	};
	const struct iface *iface = &ctx->running->packets->iface[slot];
	struct sl_iface_stats stats;
	json_t *packets = json_object(), *rate = json_object();
	json_t *json = json_pack("{s:s, s:s, s:s, s:i, s:i, s:b, s:i, s:s, s:o, s:o}", "name",
				 iface->name, "state", view_iface_state(iface), "configured",
				 attach_mode_name(iface->mode), "slot", (int)slot, "ifindex",
				 iface->attached ? (int)iface->at.ifindex : 0, "dispatcher",
				 iface->attached && iface->at.dispatcher, "other_programs",
				 iface->attached ? (int)iface->at.others : 0, "mark_reader",
				 marks[iface->attached ? iface->marks : MARKS_UNUSED], "packets",
				 packets, "per_second", rate);

	if (iface->renamed[0])
		json_object_set_new(json, "renamed", json_string(iface->renamed));
	if (iface->error[0])
		json_object_set_new(json, "error", json_string(iface->error));
	if (ctx->running->packets->dp->ops->iface_stats(ctx->running->packets->dp, slot, &stats) <
	    0)
		memset(&stats, 0, sizeof(stats));
	for (u32 action = 0; action < SL_ACT_COUNT; action++) {
		u64 sum = 0;

		for (u32 reason = 0; reason < SL_R_COUNT; reason++)
			sum += stats.packets[reason][action];
		json_object_set_new(packets, action_name(action), json_u64(sum));
		json_object_set_new(
			rate, action_name(action),
			json_real(ctx->running->packets->iface_rate[slot].rate[action]));
	}
	return json;
}

static json_t *table_to_json(struct commands *ctx)
{
	const struct dp_table_stats *table = view_table(ctx->running->packets);

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "ways", json_u64(table->ways), "live",
			 json_u64(table->live), "expired", json_u64(table->expired), "empty",
			 json_u64(table->empty), "records", json_u64(table->records),
			 "fingerprints", json_u64(table->recorded));
}

/* Limits whose buckets forged sources can fill the table with at under 1M packets/s; the price. */
static json_t *prices_to_json(struct commands *ctx)
{
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(ctx->running->policy, ctx->running->image, view);
	json_t *prices = json_array();
	u32 sets;

	sets = ctx->running->packets->dp->table_sets;
	for (size_t i = 0; i < count; i++) {
		struct table_price price = table_price(sets, view[i].limit);

		if (view[i].def && price.packets && price.is_low)
			json_array_append_new(
				prices, json_pack("{s:s, s:o, s:o, s:o}", "limit", view[i].name,
						  "packets", json_u64(price.packets), "sources",
						  json_u64(price.sources), "within_ns",
						  json_u64(price.within_ns)));
	}
	return prices;
}

static json_t *reload_to_json(const struct reload_result *reload)
{
	json_t *json = json_pack("{s:b, s:o}", "ok", reload->ok, "at", json_utc(reload->at_utc_ns));
	char text[768];

	if (!reload->ok)
		json_object_set_new(json, "error",
				    json_string(sl_err_format(&reload->err, text, sizeof(text))));
	return json;
}

/* Requests that got an error in place of a decision, since the start, and the last of them. */
static json_t *undecided_to_json(struct engine *engine)
{
	struct undecided_seen seen;
	char text[4 * UNDECIDED_DETAIL + 8];
	struct out out;
	u64 count = 0;
	json_t *json;

	undecided_read(&engine->undecided, &seen);
	for (u32 api = 0; api < API_COUNT; api++)
		for (u32 reason = 0; reason < UNDECIDED_COUNT; reason++)
			count += seen.count[api][reason];
	json = json_pack("{s:o}", "requests", json_u64(count));
	if (!seen.at_ns)
		return json;
	out_begin(&out, text, sizeof(text));
	out_utf8(&out, seen.detail, strlen(seen.detail));
	json_object_set_new(json, "last",
			    json_pack("{s:o, s:o, s:s, s:s, s:s}", "at",
				      json_utc(seen.at_ns + clock_utc_offset_ns()), "ago_ns",
				      json_u64(clock_mono_ns() - seen.at_ns), "api",
				      request_api_name(seen.api), "reason",
				      undecided_name(seen.reason), "detail", out_end(&out)));
	return json;
}

/* The HTTP tier, or null if not configured. */
static json_t *http_to_json(const struct commands *ctx)
{
	json_t *listen = json_array();

	if (!ctx->running->requests.def) {
		json_decref(listen);
		return json_null();
	}
	for (size_t i = 0; i < ctx->running->requests.started->listen_count; i++)
		json_array_append_new(
			listen, json_string(ctx->running->requests.started->listen[i].address));
	return json_pack("{s:o, s:I, s:I, s:o, s:o}", "listen", listen, "rules",
			 (json_int_t)ctx->running->requests.rules->rule_count, "workers",
			 (json_int_t)ctx->running->requests.workers, "reload",
			 reload_to_json(&ctx->running->requests.reload), "undecided",
			 undecided_to_json(ctx->running->requests.engine));
}

/* The applied file that replaces the configured one, or null. */
static json_t *applied_to_json(const struct commands *ctx)
{
	return ctx->running->source.applied
		       ? json_pack("{s:s, s:o, s:I}", "file", ctx->running->source.path, "at",
				   json_utc(ctx->running->source.at_utc_ns), "uid",
				   (json_int_t)ctx->running->source.uid)
		       : json_null();
}

static json_t *pending_json(const struct commands *ctx)
{
	u64 now_ns = clock_mono_ns();

	if (!pending_is(ctx->running))
		return json_null();
	return json_pack("{s:o, s:o}", "until", json_utc(ctx->running->pending.deadline_utc_ns),
			 "left_ns",
			 json_u64(ctx->running->pending.deadline_ns > now_ns
					  ? ctx->running->pending.deadline_ns - now_ns
					  : 0));
}

static u64 overrides_count(const struct policy *policy)
{
	u64 count = 0;

	for (size_t i = 0; i < policy->limit_count; i++)
		count += override_count(&policy->limit[i]);
	return count;
}

static u64 listed_count(const struct commands *ctx, enum list_kind list)
{
	return ctx->running->policy->list[list].count + entries_count(ctx->running, list);
}

int command_status(struct commands *ctx, const struct command_request *request, json_t **ret,
		   struct sl_err *err)
{
	json_t *interfaces = json_array();

	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (view_iface_shown(&ctx->running->packets->iface[slot]))
			json_array_append_new(interfaces, interface_to_json(ctx, slot));
	*ret = json_pack("{s:s, s:i, s:o, s:s, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:b}",
			 "version", SLUICE_VERSION, "pid", (int)getpid(), "uptime_ns",
			 json_u64(clock_mono_ns() - ctx->started_mono_ns), "config",
			 ctx->running->config_path, "reload", reload_to_json(&ctx->running->reload),
			 "generation", json_u64(ctx->running->generation), "limits",
			 json_u64(ctx->running->policy->limit_count), "live_changes",
			 (int)json_array_size(ctx->running->live), "block",
			 json_u64(listed_count(ctx, LIST_BLOCK)), "exempt",
			 json_u64(listed_count(ctx, LIST_EXEMPT)), "interfaces", interfaces,
			 "table", table_to_json(ctx), "can_attach",
			 ctx->running->packets->helper.fd >= 0);
	json_object_set_new(*ret, "table_prices", prices_to_json(ctx));
	json_object_set_new(*ret, "exact",
			    exact_limits(ctx->running->policy, ctx->running->image->rules));
	json_object_set_new(*ret, "bans", json_u64(bans_look(ctx->running->packets)->active));
	json_object_set_new(*ret, "sessions", json_u64(ctx->running->image->sessions));
	json_object_set_new(*ret, "overrides", json_u64(overrides_count(ctx->running->policy)));
	json_object_set_new(*ret, "applied", applied_to_json(ctx));
	json_object_set_new(*ret, "pending", pending_json(ctx));
	json_object_set_new(*ret, "differing", config_text_differing(ctx->running));
	json_object_set_new(*ret, "packet_tier", json_boolean(!ctx->running->packets->absent));
	json_object_set_new(*ret, "pins", json_boolean(!ctx->running->packets->pins_lost));
	if (rules_unsaved_why(ctx->running))
		json_object_set_new(*ret, "unsaved", json_string(rules_unsaved_why(ctx->running)));
	if (persist_not_kept(ctx->running))
		json_object_set_new(*ret, "not_kept", json_string(persist_not_kept(ctx->running)));
	json_object_set_new(*ret, "http", http_to_json(ctx));
	json_object_set_new(*ret, "failing_feeds", feeds_failing(ctx));
	json_object_set_new(*ret, "cluster", nodes_to_json(ctx->nodes));
	return 0;
}
