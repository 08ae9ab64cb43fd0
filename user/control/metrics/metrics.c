// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* metrics.c - see metrics.h. One function per family of metrics; names as in docs/metrics.md. */
#include "control/metrics/metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "control/elastic/elastic.h"
#include "lib/exposition.h"
#include "control/metrics/http_metrics.h"
#include "control/replication/nodes.h"
#include "control/mitigation/sources.h"
#include "packet/host/state.h"
#include "control/running/feeds.h"
#include "control/running/pending.h"
#include "control/running/persist.h"
#include "control/running/rules.h"
#include "control/running/running_text.h"
#include "request/engine/engine.h"
#include "packet/host/view.h"
#include "packet/observe/history.h"
#include "packet/observe/observe.h"
#include "version.h"

struct scrape {
	struct metrics *m;
	struct exposition e;
	struct limit_view limit[SL_METER_FURTHER];
	struct sl_limit_stats stats[SL_METER_FURTHER];
	size_t limit_count;
	struct sl_iface_stats iface[SL_IFACES_MAX]; /* 0 where not shown */
};

/* ------------------------------------------------------------------ interfaces */

/* The usual action of a reason: this series exists from the start, at 0. */
static enum sl_action usual_action(enum sl_reason reason)
{
	switch (reason) {
	case SL_R_OVER:
	case SL_R_ESSENTIAL_OVER:
	case SL_R_FAILSAFE_OVER:
	case SL_R_BLOCK:
	case SL_R_BAN:
	case SL_R_CONTENDED:
	case SL_R_PUSH_LIMIT:
	case SL_R_PUSH_NO_NEW:
	case SL_R_PUSH_DROP:
	case SL_R_PATH_MTU_OVER:
	case SL_R_MATCH:
		return SL_ACT_DROP;
	case SL_R_PUSH_TAG:
		return SL_ACT_TAG;
	default:
		return SL_ACT_PASS;
	}
}

static void write_interface_packets(struct scrape *s, u32 slot)
{
	for (u32 reason = 0; reason < SL_R_COUNT; reason++) {
		for (u32 action = 0; action < SL_ACT_COUNT; action++) {
			u64 packets = s->iface[slot].packets[reason][action];

			if (packets || action == usual_action(reason))
				metric_u64(&s->e, packets, "interface",
					   s->m->running->packets->iface[slot].name, "verdict",
					   action_name(action), "reason", reason_name(reason),
					   NULL);
		}
	}
}

static void write_interfaces(struct scrape *s)
{
	struct exposition *e = &s->e;
	struct iface *iface = s->m->running->packets->iface;
	u64 attached = 0;

	metric_begin(e, "sluice_packets", METRIC_COUNTER, "Packets by verdict and reason.");
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (view_iface_shown(&iface[slot]))
			write_interface_packets(s, slot);
	metric_begin(e, "sluice_bytes", METRIC_COUNTER,
		     "Bytes of frames, as XDP sees them, by verdict.");
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		for (u32 action = 0; view_iface_shown(&iface[slot]) && action < SL_ACT_COUNT;
		     action++)
			metric_u64(e, s->iface[slot].bytes[action], "interface", iface[slot].name,
				   "verdict", action_name(action), NULL);
	metric_begin(
		e, "sluice_interface", METRIC_INFO,
		"Configured interfaces; mode is native or generic, or why the interface is not limited.");
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (view_iface_shown(&iface[slot]))
			metric_u64(e, 1, "interface", iface[slot].name, "mode",
				   view_iface_state(&iface[slot]), NULL);
	metric_begin(
		e, "sluice_interface_program_lost", METRIC_COUNTER,
		"Times that another process detached or replaced the program, or detached the mark reader.");
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		if (!view_iface_shown(&iface[slot]))
			continue;
		metric_u64(e, iface[slot].losses[IFACE_REMOVED], "interface", iface[slot].name,
			   "cause", "removed", NULL);
		metric_u64(e, iface[slot].losses[IFACE_REPLACED], "interface", iface[slot].name,
			   "cause", "replaced", NULL);
		metric_u64(e, iface[slot].marks_losses, "interface", iface[slot].name, "cause",
			   "mark_reader", NULL);
	}
	metric_begin(e, "sluice_interface_marks_lost", METRIC_GAUGE,
		     "1 while limits mark packets and the program that sets the mark is missing.");
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (view_iface_shown(&iface[slot]))
			metric_u64(e, iface[slot].attached && iface[slot].marks == MARKS_LOST,
				   "interface", iface[slot].name, NULL);
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		attached += iface[slot].attached;
	metric_begin(e, "sluice_interfaces_attached", METRIC_GAUGE,
		     "Interfaces with the program: 0, no packet is limited.");
	metric_u64(e, attached, NULL);
	metric_begin(e, "sluice_pins_lost", METRIC_COUNTER,
		     "Times that another process removed the pins under pin_dir.");
	metric_u64(e, s->m->running->packets->pins_losses, NULL);
	metric_begin(
		e, "sluice_pins_present", METRIC_GAUGE,
		"0 if the pins are gone and cannot be created again: limits end with the daemon.");
	metric_u64(e, !s->m->running->packets->pins_lost, NULL);
}

/* ------------------------------------------------------------------ limits and the table */

static void write_limits(struct scrape *s)
{
	const struct dp_table_stats *table = view_table(s->m->running->packets);
	struct exposition *e = &s->e;

	metric_begin(e, "sluice_limit_packets", METRIC_COUNTER,
		     "Packets that met a limit; a drop counts for the limit that refused.");
	for (size_t i = 0; i < s->limit_count; i++)
		for (u32 v = 0; v < SL_LV_COUNT; v++)
			metric_u64(e, s->stats[i].packets[v], "limit", s->limit[i].name, "verdict",
				   limit_verdict_name(v), NULL);
	metric_begin(e, "sluice_limit_bytes", METRIC_COUNTER, "Bytes of those packets.");
	for (size_t i = 0; i < s->limit_count; i++)
		for (u32 v = 0; v < SL_LV_COUNT; v++)
			metric_u64(e, s->stats[i].bytes[v], "limit", s->limit[i].name, "verdict",
				   limit_verdict_name(v), NULL);
	metric_begin(
		e, "sluice_limit_sources", METRIC_GAUGE,
		"Buckets of a limit that are in use (live) and, of these, at the limit (over); in "
		"shadow mode also sources that it would have refused (shadow).");
	for (size_t i = 0; i < s->limit_count; i++) {
		metric_u64(e, table->limit_live[s->limit[i].slot], "limit", s->limit[i].name,
			   "state", "live", NULL);
		metric_u64(e, table->limit_over[s->limit[i].slot], "limit", s->limit[i].name,
			   "state", "over", NULL);
		if (s->limit[i].limit->mode == SL_MODE_SHADOW)
			metric_u64(e, view_shadow_sources(s->m->running->packets, &s->limit[i]),
				   "limit", s->limit[i].name, "state", "shadow", NULL);
	}
	metric_begin(e, "sluice_elastic_scale_ratio", METRIC_GAUGE,
		     "Present factor of an elastic limit's rate, from its floor to its ceiling.");
	for (size_t i = 0; i < s->limit_count; i++)
		if (s->limit[i].def && s->limit[i].def->terms.throttle.kind == THROTTLE_ELASTIC)
			metric_double(e, elastic_scale(s->m->scales, s->limit[i].slot), "limit",
				      s->limit[i].name, NULL);
}

static void write_table(struct scrape *s)
{
	const struct dp_table_stats *table = view_table(s->m->running->packets);
	struct sl_global_stats global = { .inserted = 0 };
	struct exposition *e = &s->e;
	const char *map, *op;

	metric_begin(e, "sluice_table_buckets", METRIC_GAUGE,
		     "Ways of the table: in use (live), expired, empty, and records of evicted "
		     "offenders.");
	metric_u64(e, table->live, "state", "live", NULL);
	metric_u64(e, table->expired, "state", "expired", NULL);
	metric_u64(e, table->empty, "state", "empty", NULL);
	metric_u64(e, table->records, "state", "record", NULL);
	metric_begin(e, "sluice_table_fingerprints", METRIC_GAUGE,
		     "Fingerprints of evicted offenders.");
	metric_u64(e, table->recorded, NULL);
	metric_begin(e, "sluice_table_evicted", METRIC_COUNTER,
		     "Sources evicted to make room for others: never refused (unrecorded), or "
		     "offenders that leave a fingerprint (recorded).");
	for (size_t i = 0; i < s->limit_count; i++) {
		metric_u64(e, s->stats[i].evicted, "limit", s->limit[i].name, "kind", "unrecorded",
			   NULL);
		metric_u64(e, s->stats[i].recorded, "limit", s->limit[i].name, "kind", "recorded",
			   NULL);
	}
	metric_begin(e, "sluice_table_full", METRIC_COUNTER,
		     "Packets without a bucket, because the table was full: on_full decided.");
	for (size_t i = 0; i < s->limit_count; i++)
		metric_u64(e, s->stats[i].full, "limit", s->limit[i].name, NULL);
	metric_begin(e, "sluice_table_evicted_units", METRIC_COUNTER,
		     "Units (packets, bytes, connections) of sources that were evicted.");
	for (size_t i = 0; i < s->limit_count; i++)
		metric_u64(e, s->stats[i].evicted_units, "limit", s->limit[i].name, NULL);

	s->m->running->packets->dp->ops->global_stats(s->m->running->packets->dp, &global);
	metric_begin(e, "sluice_map_errors", METRIC_COUNTER,
		     "Map operations of the program that failed; such packets pass.");
	for (u32 error = 0; error < SL_ME_COUNT; error++) {
		map_error_name(error, &map, &op);
		metric_u64(e, global.errors[error], "map", map, "op", op, NULL);
	}
}

/* ------------------------------------------------------------------ the daemon */

static void write_daemon(struct scrape *s)
{
	struct exposition *e = &s->e;
	const struct metrics *m = s->m;
	json_t *differing = config_text_differing(m->running);

	metric_begin(e, "sluice_rules_generation", METRIC_GAUGE,
		     "Generation of the rule set in force; each change increments it.");
	metric_u64(e, m->running->generation, NULL);
	metric_begin(e, "sluice_live_changes", METRIC_GAUGE,
		     "Live changes that are not saved to the file.");
	metric_u64(e, json_array_size(m->running->live), NULL);
	metric_begin(e, "sluice_bans_active", METRIC_GAUGE, "Sources under a ban.");
	metric_u64(e, bans_look(s->m->running->packets)->active, NULL);
	metric_begin(e, "sluice_login_sessions", METRIC_GAUGE,
		     "Connections of logged-in users, which are never dropped.");
	metric_u64(e, m->running->image->sessions, NULL);
	metric_begin(e, "sluice_config_last_reload_success", METRIC_GAUGE,
		     "1 if the last reload of the file and of http.rules succeeded.");
	metric_u64(e,
		   m->running->reload.ok &&
			   (!m->running->requests.engine || m->running->requests.reload.ok),
		   NULL);
	metric_begin(e, "sluice_config_last_reload_success_timestamp_seconds", METRIC_GAUGE,
		     "Time of the last successful reload.");
	metric_double(e, (double)(m->running->reload.ok_utc_ns / 1000000) / 1e3, NULL);
	metric_begin(
		e, "sluice_files_differing", METRIC_GAUGE,
		"Files on disk that differ from what is in force, and settings that wait for a restart.");
	metric_u64(e, json_array_size(differing), NULL);
	json_decref(differing);
	metric_begin(
		e, "sluice_state_unsaved", METRIC_GAUGE,
		"1 while a restart would lose what state_dir has no room for, or files deleted there.");
	metric_u64(e, rules_unsaved_why(m->running) || persist_not_kept(m->running), NULL);
	metric_begin(e, "sluice_build", METRIC_INFO, "Version of sluiced.");
	metric_u64(e, 1, "version", SLUICE_VERSION, NULL);
}

/* Of sets and origins of blocks: at most FEEDS_MAX. */
static void write_feeds(struct scrape *s)
{
	const struct running *run = s->m->running;
	struct exposition *e = &s->e;

	metric_begin(e, "sluice_feed_prefixes", METRIC_GAUGE,
		     "Prefixes of a set or an origin of blocks.");
	for (size_t i = 0; i < feeds_count(run); i++)
		metric_u64(e, feed_prefixes(run, feeds_at(run, i)), "feed", feeds_at(run, i)->name,
			   "kind", feed_kind_name(feeds_at(run, i)->kind), NULL);
	metric_begin(e, "sluice_feed_last_change_timestamp_seconds", METRIC_GAUGE,
		     "Time of the last change of its prefixes; 0: unknown.");
	for (size_t i = 0; i < feeds_count(run); i++)
		metric_u64(e, feeds_at(run, i)->changed_utc_ns / SL_NS_PER_SEC, "feed",
			   feeds_at(run, i)->name, "kind", feed_kind_name(feeds_at(run, i)->kind),
			   NULL);
	metric_begin(
		e, "sluice_feed_last_success_timestamp_seconds", METRIC_GAUGE,
		"Time at which the program that fetches it last succeeded; 0: never reported.");
	for (size_t i = 0; i < feeds_count(run); i++)
		metric_u64(e, feeds_at(run, i)->checked_utc_ns / SL_NS_PER_SEC, "feed",
			   feeds_at(run, i)->name, "kind", feed_kind_name(feeds_at(run, i)->kind),
			   NULL);
	metric_begin(e, "sluice_feed_failed", METRIC_GAUGE, "1 if that program failed last.");
	for (size_t i = 0; i < feeds_count(run); i++)
		metric_u64(e, feeds_at(run, i)->error[0] != 0, "feed", feeds_at(run, i)->name,
			   "kind", feed_kind_name(feeds_at(run, i)->kind), NULL);
}

static void write_events(struct scrape *s)
{
	static const char *const kind[] = { "drop", "over", "ban" };
	struct dp *dp = s->m->running->packets->dp;
	struct exposition *e = &s->e;
	struct sl_event_stats stats;

	if (dp->ops->event_stats(dp, &stats) < 0)
		memset(&stats, 0, sizeof(stats));
	metric_begin(e, "sluice_events", METRIC_COUNTER, "Events that were observed, by kind.");
	for (int i = 0; i < OBSERVED_TRAFFIC; i++)
		metric_u64(e, observe_count(s->m->running->observe, (enum observed_kind)i), "kind",
			   observed_kind_name((enum observed_kind)i), NULL);
	metric_begin(
		e, "sluice_events_not_reported", METRIC_COUNTER,
		"Events of the data path that were not reported: above events.rate (limited), or as "
		"the ring was full (lost).");
	for (int i = 0; i < SL_EVENT_KINDS; i++) {
		metric_u64(e, stats.limited[i], "kind", kind[i], "cause", "limited", NULL);
		metric_u64(e, stats.lost[i], "kind", kind[i], "cause", "lost", NULL);
	}
}

static void write_history(struct scrape *s)
{
	struct exposition *e = &s->e;
	struct history_stats stats;

	history_stats(observe_history(s->m->running->observe), &stats);
	metric_begin(e, "sluice_history_rows", METRIC_COUNTER,
		     "Rows of the history of events: written, left out for its budget, failed.");
	metric_u64(e, stats.rows, "result", "written", NULL);
	metric_u64(e, stats.left_out, "result", "left_out", NULL);
	metric_u64(e, stats.errors, "result", "failed", NULL);
	metric_begin(e, "sluice_history_bytes", METRIC_GAUGE, "Size of the history of events.");
	metric_u64(e, stats.bytes, NULL);
}

static u64 resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long size, resident = 0;

	if (file) {
		if (fscanf(file, "%llu %llu", &size, &resident) != 2)
			resident = 0;
		fclose(file);
	}
	return resident * (u64)sysconf(_SC_PAGESIZE);
}

static u64 open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	u64 count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	/* Without ".", ".." and the directory's own descriptor. */
	return count > 3 ? count - 3 : 0;
}

static void write_process(struct scrape *s)
{
	struct exposition *e = &s->e;
	struct rusage consumption;

	getrusage(RUSAGE_SELF, &consumption);
	metric_begin(
		e, "process_cpu_seconds", METRIC_COUNTER,
		"User and system CPU time of sluiced, without the kernel's packet processing.");
	metric_double(
		e,
		(double)(consumption.ru_utime.tv_sec + consumption.ru_stime.tv_sec) +
			(double)(consumption.ru_utime.tv_usec + consumption.ru_stime.tv_usec) / 1e6,
		NULL);
	metric_begin(
		e, "process_resident_memory_bytes", METRIC_GAUGE,
		"Resident memory of sluiced; including the parts of the table that it has read.");
	metric_u64(e, resident_bytes(), NULL);
	metric_begin(e, "process_open_fds", METRIC_GAUGE, "Open file descriptors of sluiced.");
	metric_u64(e, open_fds(), NULL);
}

void metrics_write(struct metrics *m, struct evbuffer *out)
{
	struct scrape *s = calloc(1, sizeof(*s));

	if (!s)
		return;
	s->m = m;
	s->e = (struct exposition){ .out = out };
	s->limit_count = view_limits(m->running->policy, m->running->image, s->limit);
	for (size_t i = 0; i < s->limit_count; i++)
		state_limit_stats(m->running->packets, s->limit[i].name, s->limit[i].slot,
				  pending_is(m->running), &s->stats[i]);
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (view_iface_shown(&m->running->packets->iface[slot]))
			m->running->packets->dp->ops->iface_stats(m->running->packets->dp, slot,
								  &s->iface[slot]);
	write_interfaces(s);
	write_limits(s);
	write_table(s);
	sources_metrics(m->sources, &s->e);
	write_daemon(s);
	write_feeds(s);
	write_events(s);
	write_history(s);
	http_metrics_write(m, &s->e);
	nodes_metrics(m->nodes, &s->e);
	write_process(s);
	free(s);
}
