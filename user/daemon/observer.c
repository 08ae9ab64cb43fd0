// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * observer.c - see observer.h.
 *
 * What began is kept in a table of fixed size until its end is seen; without room the end is not
 * reported. A limit has released a source when its bucket is no longer in the table: unused and
 * swept, which may take a minute longer than the bucket needs to empty.
 */
#include "daemon/observer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "packet/host/heavy.h"
#include "packet/host/view.h"
#include "packet/observe/history.h"
#include "packet/observe/observe.h"

#define OPEN_MAX_ 4096

/*
 * Drops are counted exactly by limit, or without one by reason; events are a sample of them. So
 * that the minutes of the history add up to these counters, each second the events of a counter
 * stand for what it counted since: COUNTERS numbers, limit_ids first.
 */
#define COUNTERS (SL_LIMIT_IDS + SL_R_COUNT)
static struct {
	u64 noted[COUNTERS];   /* this second, as events */
	u64 counted[COUNTERS]; /* what the history has of it */
	u16 touched[COUNTERS]; /* those with events in this second */
	u16 before[COUNTERS];  /* and in the one before, if not all drops were events */
	size_t count, count_before;
	u64 missed;   /* above events.rate, or lost, at the last look */
	bool sampled; /* an event of this second stands for several */
	bool looked;
} drops;

/* What began. */
struct open_state {
	enum observed_kind kind; /* OBSERVED_OVER or OBSERVED_BAN; OBSERVED_DROP: none */
	struct sl_prefix source;
	char name[SL_NAME_MAX];
	u64 bucket_key; /* of OBSERVED_OVER */
};

static struct {
	struct open_state at[OPEN_MAX_];
	size_t count; /* places below it are in use */
} opened;

static void remember(enum observed_kind kind, const struct observed *event, u64 bucket_key)
{
	struct open_state *at = NULL;

	for (size_t i = 0; i < opened.count && !at; i++)
		if (opened.at[i].kind == kind && !strcmp(opened.at[i].name, event->name) &&
		    sl_prefix_equal(&opened.at[i].source, &event->source))
			at = &opened.at[i];
	if (!at && opened.count < OPEN_MAX_)
		at = &opened.at[opened.count++];
	if (!at)
		return;
	*at = (struct open_state){ .kind = kind,
				   .source = event->source,
				   .bucket_key = bucket_key };
	snprintf(at->name, sizeof(at->name), "%.*s", SL_NAME_MAX - 1, event->name);
}

/* ------------------------------------------------------------------ from the ring */

static struct sl_prefix address_of(struct sl_addr addr, u8 family)
{
	return (struct sl_prefix){ .addr = addr,
				   .family = family,
				   .len = family == SL_V6 ? 128 : 32 };
}

static void note_drop(const struct observed *event)
{
	if (!drops.noted[event->counter])
		drops.touched[drops.count++] = event->counter;
	drops.noted[event->counter] += event->packets;
	drops.sampled |= event->packets > 1;
}

static void on_event(void *arg, const struct sl_event *raw)
{
	static const enum observed_kind kind_of[] = {
		[SL_EVENT_DROP] = OBSERVED_DROP,
		[SL_EVENT_OVER] = OBSERVED_OVER,
		[SL_EVENT_BAN] = OBSERVED_BAN,
	};
	struct daemon *d = arg;
	struct dp *dp = d->packets.dp;
	struct observed event = { .has_source = true, .is_packet = true };

	if (raw->kind >= SL_EVENT_KINDS || raw->limit_id >= SL_LIMIT_IDS)
		return;
	event.kind = kind_of[raw->kind];
	event.utc_ns = raw->mono_ns + clock_utc_offset_ns();
	event.source = address_of(raw->source, raw->family);
	event.dst = address_of(raw->dst, raw->family);
	if (raw->len && raw->len <= event.source.len)
		event.source = (struct sl_prefix){ sl_addr_mask(raw->source, raw->len), raw->family,
						   raw->len };
	if (raw->limit_id)
		snprintf(event.name, sizeof(event.name), "%.*s", SL_NAME_MAX - 1,
			 dp->slots[raw->limit_id].name);
	event.reason = reason_name((enum sl_reason)raw->reason);
	event.verdict = action_name((enum sl_action)raw->action);
	event.packets = raw->weight;
	event.length = raw->length;
	event.proto = raw->proto;
	event.sport = raw->sport;
	event.dport = raw->dport;
	event.counter =
		raw->limit_id ? raw->limit_id : (u16)(SL_LIMIT_IDS + raw->reason % SL_R_COUNT);
	event.captured = raw->captured;
	event.link = raw->link;
	memcpy(event.frame, raw->frame, sizeof(event.frame));
	snprintf(event.interface, sizeof(event.interface), "%s",
		 d->packets.iface[raw->iface_slot % SL_IFACES_MAX].name);
	observe_note(d->running.observe, &event);
	if (event.kind == OBSERVED_DROP)
		note_drop(&event);
	else
		remember(event.kind, &event, raw->bucket_key);
}

/* ------------------------------------------------------------------ what ended */

static bool has_ended(struct dp *dp, const struct open_state *state, u64 now_ns)
{
	const struct sl_ban_key key = { .addr = state->source.addr,
					.family = state->source.family,
					.len = state->source.len };
	struct sl_ban_state ban;

	if (state->kind == OBSERVED_OVER)
		return !dp_bucket_state(dp, state->bucket_key);
	return dp->ops->hash_get(dp, DP_BANS, &key, &ban) < 0 || ban.until_ns <= now_ns;
}

static void report_ends(struct daemon *d)
{
	u64 now_ns = clock_mono_ns();

	for (size_t i = 0; i < opened.count; i++) {
		struct open_state *state = &opened.at[i];

		if (!has_ended(d->packets.dp, state, now_ns))
			continue;
		observe_tell(d->running.observe,
			     state->kind == OBSERVED_OVER ? OBSERVED_RELEASED : OBSERVED_UNBAN,
			     &state->source, state->name, NULL, NULL);
		*state = opened.at[--opened.count];
		i--;
	}
}

/* First refusals and bans above events.rate: the history counts what it lacks. */
static void count_missed(struct daemon *d, const struct sl_event_stats *stats)
{
	static u64 before[SL_EVENT_KINDS];
	static bool known;

	for (int kind = SL_EVENT_OVER; kind <= SL_EVENT_BAN; kind++) {
		u64 now = stats->limited[kind] + stats->lost[kind];

		if (known && now > before[kind])
			observe_not_noted(d->running.observe,
					  kind == SL_EVENT_BAN ? OBSERVED_BAN : OBSERVED_OVER, NULL,
					  now - before[kind]);
		before[kind] = now;
	}
	known = true;
}

static u64 limit_drops(struct dp *dp, u32 slot)
{
	struct sl_limit_stats stats;

	return dp->ops->limit_stats(dp, slot, &stats) < 0 ? 0 : stats.packets[SL_LV_DROP];
}

/* Of all interfaces. Each second: a reason may also drop packets that have no source, and so no
 * events. */
static void reason_drops(const struct packet_host *host, u64 *ret)
{
	struct sl_iface_stats stats;

	memset(ret, 0, SL_R_COUNT * sizeof(*ret));
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		if (!view_iface_shown(&host->iface[slot]) ||
		    host->dp->ops->iface_stats(host->dp, slot, &stats) < 0)
			continue;
		for (u32 reason = 0; reason < SL_R_COUNT; reason++)
			ret[reason] += stats.packets[reason][SL_ACT_DROP];
	}
}

/* The events to come do not stand for what was dropped before. */
static void begin_counting(const struct packet_host *host)
{
	struct sl_event_stats stats;
	struct dp *dp = host->dp;

	for (u32 slot = 0; slot < SL_LIMIT_IDS; slot++)
		drops.counted[slot] = dp->slots[slot].name[0] ? limit_drops(dp, slot) : 0;
	reason_drops(host, &drops.counted[SL_LIMIT_IDS]);
	if (dp->ops->event_stats(dp, &stats) == 0)
		drops.missed = stats.limited[SL_EVENT_DROP] + stats.lost[SL_EVENT_DROP];
	for (size_t i = 0; i < drops.count; i++)
		drops.noted[drops.touched[i]] = 0;
	drops.count = drops.count_before = 0;
	drops.sampled = false;
	drops.looked = true;
}

static u64 counter_now(struct dp *dp, u16 counter, const u64 *of_reason)
{
	return counter >= SL_LIMIT_IDS ? of_reason[counter - SL_LIMIT_IDS]
				       : limit_drops(dp, counter);
}

/* The end of a flood: after the last event that events.rate admitted. */
static void add_ends(struct daemon *d, const u64 *of_reason)
{
	for (size_t i = 0; i < drops.count_before; i++) {
		u16 at = drops.before[i];
		u64 now = drops.noted[at] ? 0 : counter_now(d->packets.dp, at, of_reason);

		if (now > drops.counted[at]) {
			history_add(observe_history(d->running.observe), at,
				    now - drops.counted[at]);
			drops.counted[at] = now;
		}
	}
}

/* Without a drop that is not an event, events are what they are: to the packet, whatever came in
 * between. */
static double factor_of(u16 counter, u64 now)
{
	u64 noted = drops.noted[counter], counted = drops.counted[counter];

	drops.counted[counter] = drops.sampled ? now : counted + noted;
	/* Where the counter was cleared, or events are from before it, each counts as one. */
	return drops.sampled && now > counted && now - counted > noted / 2
		       ? (double)(now - counted) / (double)noted
		       : 1;
}

static void scale_history(struct daemon *d)
{
	static double factor[COUNTERS];
	struct dp *dp = d->packets.dp;
	struct sl_event_stats stats;
	u64 of_reason[SL_R_COUNT], missed;

	if (dp->ops->event_stats(dp, &stats) < 0)
		return;
	count_missed(d, &stats);
	if (!observe_history(d->running.observe))
		return;
	missed = stats.limited[SL_EVENT_DROP] + stats.lost[SL_EVENT_DROP];
	drops.sampled |= missed != drops.missed;
	drops.missed = missed;
	reason_drops(&d->packets, of_reason);
	add_ends(d, of_reason);
	for (size_t i = 0; i < drops.count; i++) {
		u16 at = drops.touched[i];

		factor[at] = factor_of(at, drops.sampled ? counter_now(dp, at, of_reason) : 0);
		drops.noted[at] = 0;
	}
	drops.count_before = drops.sampled ? drops.count : 0;
	memcpy(drops.before, drops.touched, drops.count_before * sizeof(drops.before[0]));
	history_scale(observe_history(d->running.observe), factor, drops.sampled);
	memcpy(&drops.counted[SL_LIMIT_IDS], of_reason, sizeof(of_reason));
	drops.count = 0;
	drops.sampled = false;
}

/*
 * Who sent, also what passed: each window of the heaviest sources (4.3 s) once it is over, 512
 * reads of maps. The window in which the daemon starts is the first.
 */
static void look_at_traffic(struct daemon *d)
{
	static u32 looked; /* up to this window */
	struct history *history = observe_history(d->running.observe);
	u64 now_ns = clock_mono_ns();
	struct history_traffic *traffic;
	struct heavy_source *source;
	size_t count;

	if (!looked)
		looked = sl_heavy_window(now_ns) - 1;
	if (!history || sl_heavy_window(now_ns) - 1 == looked)
		return;
	looked = sl_heavy_window(now_ns) - 1;
	if (heavy_read_window(d->packets.dp, now_ns, &source, &count) < 0)
		return;
	traffic = calloc(count ? count : 1, sizeof(*traffic));
	for (size_t i = 0; traffic && i < count; i++) {
		const struct heavy_count *of = source[i].of;

		traffic[i] = (struct history_traffic){
			.source = source[i].source,
			.passed = of[SL_HEAVY_PASSED].packets,
			.dropped = of[SL_HEAVY_DROPPED].packets,
			.bytes = of[SL_HEAVY_PASSED].bytes + of[SL_HEAVY_DROPPED].bytes,
		};
	}
	if (traffic)
		history_look(history, traffic, count);
	free(traffic);
	free(source);
}

/* The configured rate as events of a CPU and a turn; at least one, unless events are off. */
static u32 per_turn(u64 rate)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	u64 turn = (rate << SL_RING_TURN_BITS) / SL_NS_PER_SEC / (u64)(cpus > 0 ? cpus : 1);

	return rate && !turn ? 1 : (u32)turn;
}

static u64 found_ns; /* when the ring had an event, or was read first */

void observer_tick(struct daemon *d)
{
	if (!d->running.observe || d->packets.absent)
		return;
	if (d->packets.dp->ops->events(d->packets.dp, on_event, d) > 0 || !found_ns)
		found_ns = clock_mono_ns();
	/* Counts that no daemon read stand for themselves: nothing else is known of that time. */
	if (!drops.looked)
		begin_counting(&d->packets);
}

u64 observer_calm_ns(void)
{
	return clock_mono_ns() - found_ns;
}

void observer_flush(struct daemon *d)
{
	observer_tick(d);
	if (d->running.observe && !d->packets.absent)
		scale_history(d);
}

void observer_set_rate(struct daemon *d)
{
	struct dp *dp = d->packets.dp;
	struct sl_event_switch *to;

	if (!d->running.observe || d->packets.absent)
		return;
	to = dp->event_switch;
	if (!to->per_turn && d->running.policy->events_rate && drops.looked)
		begin_counting(&d->packets);
	to->per_turn = per_turn(d->running.policy->events_rate);
}

void observer_second(struct daemon *d)
{
	/* Before a minute ends: it stands for what was missed in it. */
	observer_flush(d);
	if (d->running.observe && !d->packets.absent)
		look_at_traffic(d);
	observe_tick(d->running.observe);
	if (!d->running.observe || d->packets.absent)
		return;
	observer_set_rate(d);
	report_ends(d);
}
