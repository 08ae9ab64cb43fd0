// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* view.c - see view.h. */
#include "packet/host/view.h"

#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"

size_t view_limits(const struct policy *policy, const struct sl_image *image,
		   struct limit_view *ret)
{
	const struct sl_rules *rules = image->rules;
	size_t count = 0;

	/* The compiler keeps the policy's order. */
	for (u32 i = 0; i < rules->limits_count && i < policy->limit_count; i++)
		ret[count++] = (struct limit_view){
			.name = policy->limit[i].name,
			.def = &policy->limit[i],
			.limit = &rules->limits[i],
			.slot = rules->limits[i].slot,
		};
	for (u32 i = SL_LIMITS_MAX; i < SL_METER_FURTHER; i++)
		ret[count++] = (struct limit_view){
			.name = internal_limit_name(i),
			.limit = &rules->limits[i],
			.slot = rules->limits[i].slot,
		};
	return count;
}

const struct dp_table_stats *view_table(struct packet_host *host)
{
	u64 now_ns = clock_mono_ns();

	if (!host->table_at_ns || now_ns - host->table_at_ns > SL_NS_PER_SEC) {
		dp_table_stats(host->dp, dp_now(host->dp), &host->table);
		host->table_at_ns = now_ns;
	}
	return &host->table;
}

u64 view_shadow_sources(const struct packet_host *host, const struct limit_view *view)
{
	return dp_seen_estimate(&host->dp->shadow_seen[view->slot]);
}

const char *view_iface_state(const struct iface *iface)
{
	if (iface->attached && iface->lost)
		return iface->lost == IFACE_REPLACED ? "replaced" : "removed";
	if (iface->attached)
		return attach_mode_name(iface->at.mode);
	if (!iface->wanted)
		return "detached";
	if (iface->moved)
		return "moved";
	return iface->error[0] ? "failed" : "absent";
}

bool view_iface_shown(const struct iface *iface)
{
	return iface->name[0] && (iface->wanted || iface->attached);
}

static void sample(struct rate_sample *to, const u64 *packets, size_t count, u64 now_ns)
{
	double seconds = (double)(now_ns - to->at_ns) / SL_NS_PER_SEC;

	for (size_t i = 0; i < count; i++) {
		/* Cleared counters, or a first look. */
		bool fresh = !to->at_ns || packets[i] < to->packets[i] || seconds > 10;

		to->rate[i] = fresh ? 0 : (double)(packets[i] - to->packets[i]) / seconds;
		to->packets[i] = packets[i];
	}
	to->at_ns = now_ns;
}

#define FULL_LOG_NS (60 * SL_NS_PER_SEC)

/* At the first packet without room, and then at most once a minute. */
static void log_full(struct packet_host *host, const struct limit_view *view, u64 full, u64 now_ns)
{
	struct full_log *log = &host->full_log[view->slot];

	/* The first look, or counters were cleared. */
	if (!log->is_known || full < log->packets) {
		log->is_known = true;
		log->packets = full;
	}
	if (full == log->packets || (log->at_ns && now_ns < log->at_ns + FULL_LOG_NS))
		return;
	log_warn(
		"limit '%s': the table is full of refused sources; %llu packets of new sources %s: "
		"a larger table.buckets, or a shorter burst or window",
		view->name, full - log->packets,
		view->limit->on_full == SL_FULL_CLOSED	 ? "were dropped (on_full: closed)"
		: view->limit->on_full == SL_FULL_PREFIX ? "had no bucket (on_full: prefix)"
							 : "passed (on_full: open)");
	log->packets = full;
	log->at_ns = now_ns;
}

void view_sample(struct packet_host *host, const struct policy *policy,
		 const struct sl_image *image)
{
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(policy, image, view);
	struct sl_iface_stats iface;
	struct sl_limit_stats limit;
	u64 now_ns = clock_mono_ns();

	for (size_t i = 0; i < count; i++)
		if (host->dp->ops->limit_stats(host->dp, view[i].slot, &limit) == 0) {
			sample(&host->limit_rate[view[i].slot], limit.packets, SL_LV_COUNT, now_ns);
			log_full(host, &view[i], limit.full, now_ns);
		}
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		u64 packets[SL_ACT_COUNT] = { 0 };

		if (!host->iface[slot].attached ||
		    host->dp->ops->iface_stats(host->dp, slot, &iface) < 0)
			continue;
		for (u32 reason = 0; reason < SL_R_COUNT; reason++)
			for (u32 action = 0; action < SL_ACT_COUNT; action++)
				packets[action] += iface.packets[reason][action];
		sample(&host->iface_rate[slot], packets, SL_ACT_COUNT, now_ns);
	}
}
