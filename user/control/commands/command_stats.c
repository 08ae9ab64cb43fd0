// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_stats.c - stats [LIMIT]: counters of limits, reasons by interface, errors. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "control/commands/commands.h"
#include "packet/host/state.h"
#include "control/running/pending.h"
#include "packet/host/view.h"

static json_t *limit_stats_to_json(struct commands *ctx, const struct limit_view *view)
{
	const struct dp_table_stats *table = view_table(ctx->running->packets);
	json_t *packets = json_object(), *bytes = json_object(), *rate = json_object();
	struct sl_limit_stats stats;
	struct rate own;
	char text[RATES_MAX * 96] = "";

	if (state_limit_stats(ctx->running->packets, view->name, view->slot,
			      pending_is(ctx->running), &stats) < 0)
		memset(&stats, 0, sizeof(stats));
	for (u32 verdict = 0; verdict < SL_LV_COUNT; verdict++) {
		const char *name = limit_verdict_name(verdict);

		json_object_set_new(packets, name, json_u64(stats.packets[verdict]));
		json_object_set_new(bytes, name, json_u64(stats.bytes[verdict]));
		json_object_set_new(
			rate, name,
			json_real(ctx->running->packets->limit_rate[view->slot].rate[verdict]));
	}
	if (view->def) {
		rates_format(&view->def->terms.rates, text, sizeof(text));
	} else {
		own = internal_limit_rate(ctx->running->policy,
					  (u32)(view->limit - ctx->running->image->rules->limits));
		rate_format(&own, text, sizeof(text));
	}
	return json_pack(
		"{s:s, s:s, s:s?, s:o, s:o, s:o, s:{s:o, s:o, s:o}, s:o, s:o, s:o, s:o, s:o}",
		"name", view->name, "mode", limit_mode_name(view->limit->mode), "rate",
		text[0] ? text : NULL, "packets", packets, "bytes", bytes, "per_second", rate,
		"sources", "live", json_u64(table->limit_live[view->slot]), "over",
		json_u64(table->limit_over[view->slot]), "shadow",
		json_u64(view_shadow_sources(ctx->running->packets, view)), "full",
		json_u64(stats.full), "evicted", json_u64(stats.evicted), "evicted_units",
		json_u64(stats.evicted_units), "recorded", json_u64(stats.recorded), "refund_lost",
		json_u64(stats.refund_lost));
}

/* A built-in limit that met no packet says nothing. */
static bool is_idle(const struct commands *ctx, const struct limit_view *view)
{
	struct sl_limit_stats stats;
	u64 seen = 0;

	if (view->def || state_limit_stats(ctx->running->packets, view->name, view->slot,
					   pending_is(ctx->running), &stats) < 0)
		return false;
	for (u32 verdict = 0; verdict < SL_LV_COUNT; verdict++)
		seen += stats.packets[verdict];
	return !seen && !stats.full && !stats.evicted;
}

/* Reasons with a nonzero counter. */
static json_t *reasons_to_json(struct commands *ctx, u32 slot)
{
	json_t *reasons = json_array();
	struct sl_iface_stats stats;

	if (ctx->running->packets->dp->ops->iface_stats(ctx->running->packets->dp, slot, &stats) <
	    0)
		return reasons;
	for (u32 reason = 0; reason < SL_R_COUNT; reason++)
		for (u32 action = 0; action < SL_ACT_COUNT; action++)
			if (stats.packets[reason][action])
				json_array_append_new(
					reasons,
					json_pack("{s:s, s:s, s:o}", "reason", reason_name(reason),
						  "verdict", action_name(action), "packets",
						  json_u64(stats.packets[reason][action])));
	return reasons;
}

static json_t *errors_to_json(struct commands *ctx)
{
	json_t *errors = json_array();
	struct sl_global_stats stats;
	const char *map, *op;

	if (ctx->running->packets->dp->ops->global_stats(ctx->running->packets->dp, &stats) < 0)
		return errors;
	for (u32 error = 0; error < SL_ME_COUNT; error++) {
		if (!stats.errors[error])
			continue;
		map_error_name(error, &map, &op);
		json_array_append_new(errors, json_pack("{s:s, s:s, s:o}", "map", map, "op", op,
							"count", json_u64(stats.errors[error])));
	}
	return errors;
}

int command_stats(struct commands *ctx, const struct command_request *request, json_t **ret,
		  struct sl_err *err)
{
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(ctx->running->policy, ctx->running->image, view);
	json_t *limits = json_array(), *interfaces = json_array();
	const char *name = arg_text(request, "limit");
	int r = 0;

	for (size_t i = 0; !r && i < count; i++)
		if (name ? !strcmp(view[i].name, name)
			 : arg_flag(request, "all") || !is_idle(ctx, &view[i]))
			json_array_append_new(limits, limit_stats_to_json(ctx, &view[i]));
	if (!r && name && !json_array_size(limits))
		r = limit_unknown(ctx, name, err);
	for (u32 slot = 0; !r && !name && slot < SL_IFACES_MAX; slot++)
		if (view_iface_shown(&ctx->running->packets->iface[slot]))
			json_array_append_new(interfaces,
					      json_pack("{s:s, s:o}", "name",
							ctx->running->packets->iface[slot].name,
							"reasons", reasons_to_json(ctx, slot)));
	if (r < 0) {
		json_decref(limits);
		json_decref(interfaces);
		return r;
	}
	*ret = json_pack("{s:o}", "limits", limits);
	if (name) {
		json_decref(interfaces);
		return 0;
	}
	json_object_set_new(*ret, "interfaces", interfaces);
	json_object_set_new(*ret, "map_errors", errors_to_json(ctx));
	return 0;
}
