// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* view.c - see view.h. */
#include "control/commands/view.h"

#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "control/running/live.h"

size_t view_limits(const struct daemon *d, struct limit_view *ret)
{
	const struct sl_rules *rules = d->image->rules;
	size_t count = 0;

	/* The compiler keeps the policy's order. */
	for (u32 i = 0; i < rules->limits_count && i < d->running->limit_count; i++)
		ret[count++] = (struct limit_view){
			.name = d->running->limit[i].name,
			.def = &d->running->limit[i],
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

const struct dp_table_stats *view_table(struct daemon *d)
{
	u64 now_ns = clock_mono_ns();

	if (!d->table_at_ns || now_ns - d->table_at_ns > SL_NS_PER_SEC) {
		dp_table_stats(d->dp, clock_now(d->dp->ops->state(d->dp)->utc_offset_ns),
			       &d->table);
		d->table_at_ns = now_ns;
	}
	return &d->table;
}

u64 view_shadow_sources(const struct daemon *d, const struct limit_view *view)
{
	return dp_seen_estimate(&d->dp->ops->shadow_seen(d->dp)[view->slot]);
}

const char *view_iface_state(const struct iface *iface)
{
	if (iface->attached && iface->lost)
		return iface->lost == IFACE_REPLACED ? "replaced" : "removed";
	if (iface->attached)
		return attach_mode_name(iface->at.mode);
	if (!iface->wanted)
		return "detached";
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

/* At the first packet that found no room, and once a minute while there are more. */
static void log_full(struct daemon *d, const struct limit_view *view, u64 full, u64 now_ns)
{
	struct full_log *log = &d->full_log[view->slot];

	/* The first look, or counters were cleared. */
	if (!log->is_known || full < log->packets) {
		log->is_known = true;
		log->packets = full;
	}
	if (full == log->packets || (log->at_ns && now_ns < log->at_ns + FULL_LOG_NS))
		return;
	log_warn("limit '%s': the table is full of refused sources; %llu packets of new sources %s: "
		 "a larger table.buckets, or a shorter burst or window", view->name,
		 full - log->packets,
		 view->limit->on_full == SL_FULL_CLOSED ? "were dropped (on_full: closed)" :
		 view->limit->on_full == SL_FULL_PREFIX ? "had no bucket (on_full: prefix)" :
							  "passed (on_full: open)");
	log->packets = full;
	log->at_ns = now_ns;
}

void view_sample(struct daemon *d)
{
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(d, view);
	struct sl_iface_stats iface;
	struct sl_limit_stats limit;
	u64 now_ns = clock_mono_ns();

	for (size_t i = 0; i < count; i++)
		if (d->dp->ops->limit_stats(d->dp, view[i].slot, &limit) == 0) {
			sample(&d->limit_rate[view[i].slot], limit.packets, SL_LV_COUNT, now_ns);
			log_full(d, &view[i], limit.full, now_ns);
		}
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		u64 packets[SL_ACT_COUNT] = { 0 };

		if (!d->iface[slot].attached || d->dp->ops->iface_stats(d->dp, slot, &iface) < 0)
			continue;
		for (u32 reason = 0; reason < SL_R_COUNT; reason++)
			for (u32 action = 0; action < SL_ACT_COUNT; action++)
				packets[action] += iface.packets[reason][action];
		sample(&d->iface_rate[slot], packets, SL_ACT_COUNT, now_ns);
	}
}
