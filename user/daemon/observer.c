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
#include "packet/observe/history.h"
#include "packet/observe/observe.h"

#define OPEN_MAX_ 4096
#define LOOK_WINDOWS 4

/* Drops: those that were read as events, and at the last look those that were above events.rate. */
static struct {
	u64 read, missed;
	bool looked;
} drops;

/* What began. */
struct open_state {
	enum observed_kind kind;	/* OBSERVED_OVER or OBSERVED_BAN; OBSERVED_DROP: none */
	struct sl_prefix source;
	char name[SL_NAME_MAX];
	u64 bucket_key;			/* of OBSERVED_OVER */
};

static struct {
	struct open_state at[OPEN_MAX_];
	size_t count;			/* places below it are in use */
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
	*at = (struct open_state){ .kind = kind, .source = event->source, .bucket_key = bucket_key };
	snprintf(at->name, sizeof(at->name), "%.*s", SL_NAME_MAX - 1, event->name);
}

/* ------------------------------------------------------------------ from the ring */

static struct sl_prefix address_of(struct sl_addr addr, u8 family)
{
	return (struct sl_prefix){ .addr = addr, .family = family,
				   .len = family == SL_V6 ? 128 : 32 };
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
			 dp->ops->slots(dp)[raw->limit_id].name);
	event.reason = reason_name((enum sl_reason)raw->reason);
	event.verdict = action_name((enum sl_action)raw->action);
	event.packets = raw->weight;
	event.length = raw->length;
	event.proto = raw->proto;
	event.sport = raw->sport;
	event.dport = raw->dport;
	event.captured = raw->captured;
	event.link = raw->link;
	memcpy(event.frame, raw->frame, sizeof(event.frame));
	snprintf(event.interface, sizeof(event.interface), "%s",
		 d->packets.iface[raw->iface_slot % SL_IFACES_MAX].name);
	observe_note(d->running.observe, &event);
	if (event.kind == OBSERVED_DROP)
		drops.read++;
	else
		remember(event.kind, &event, raw->bucket_key);
}

/* ------------------------------------------------------------------ what ended */

static bool has_ended(struct dp *dp, const struct open_state *state, u64 now_ns)
{
	const struct sl_ban_key key = { .addr = state->source.addr, .family = state->source.family,
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
			observe_not_noted(d->running.observe, kind == SL_EVENT_BAN ? OBSERVED_BAN : OBSERVED_OVER,
					  NULL, now - before[kind]);
		before[kind] = now;
	}
	known = true;
}

/*
 * So that a minute's rows stand for the drops that were above events.rate, too. The first look is before the
 * first event is read: what is read and what is missed are of the same time.
 */
static void scale_history(struct daemon *d)
{
	struct sl_event_stats stats;
	u64 missed;

	if (d->packets.dp->ops->event_stats(d->packets.dp, &stats) < 0)
		return;
	count_missed(d, &stats);
	missed = stats.limited[SL_EVENT_DROP] + stats.lost[SL_EVENT_DROP];
	if (drops.looked && missed >= drops.missed)
		history_scale(observe_history(d->running.observe), drops.read, missed - drops.missed);
	drops.looked = true;
	drops.missed = missed;
	drops.read = 0;
}

/*
 * Every fourth window of the heaviest sources (17 s), which takes 512 reads of maps, stands for the
 * three after it: who sent, also what passed.
 */
static void look_at_traffic(struct daemon *d)
{
	static u32 looked;	/* the window */
	struct history *history = observe_history(d->running.observe);
	u64 now_ns = clock_mono_ns(), span_ns;
	struct history_traffic *traffic;
	struct heavy_source *source;
	size_t count;

	if (!history || sl_heavy_window(now_ns) - looked < LOOK_WINDOWS)
		return;
	looked = sl_heavy_window(now_ns);
	if (heavy_read(d->packets.dp, now_ns, &source, &count, &span_ns) < 0)
		return;
	traffic = calloc(count ? count : 1, sizeof(*traffic));
	for (size_t i = 0; traffic && i < count; i++) {
		const struct heavy_count *of = source[i].of;
		double scale = (double)(LOOK_WINDOWS * SL_HEAVY_WINDOW_NS) / (double)span_ns;

		traffic[i] = (struct history_traffic){
			.source = source[i].source,
			.passed = (u64)((double)of[SL_HEAVY_PASSED].packets * scale),
			.dropped = (u64)((double)of[SL_HEAVY_DROPPED].packets * scale),
			.bytes = (u64)((double)(of[SL_HEAVY_PASSED].bytes + of[SL_HEAVY_DROPPED].bytes) * scale),
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

static u64 found_ns;	/* when the ring had an event, or was read first */

void observer_tick(struct daemon *d)
{
	if (!d->running.observe || d->packets.absent)
		return;
	if (!drops.looked)
		scale_history(d);
	if (d->packets.dp->ops->events(d->packets.dp, on_event, d) > 0 || !found_ns)
		found_ns = clock_mono_ns();
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

	if (d->running.observe && !d->packets.absent)
		dp->ops->event_switch(dp)->per_turn = per_turn(d->running.policy->events_rate);
}

void observer_second(struct daemon *d)
{
	/* Before a minute ends: it stands for what was missed in it. */
	observer_flush(d);
	observe_tick(d->running.observe);
	if (!d->running.observe || d->packets.absent)
		return;
	observer_set_rate(d);
	report_ends(d);
	look_at_traffic(d);
}
