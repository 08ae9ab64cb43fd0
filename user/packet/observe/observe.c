// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* observe.c - see observe.h. */
#include "packet/observe/observe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/json.h"
#include "packet/observe/history.h"

#define REFUSED_SEEN 1024
#define REFUSED_AGAIN_NS (60 * SL_NS_PER_SEC)

/* Events kept of each kind, so that a flood of one leaves the others; those of a flood have
 * more. */
static const u32 room[OBSERVED_KINDS] = {
	[OBSERVED_DROP] = 1024,
	[OBSERVED_OVER... OBSERVED_RELEASED] = 256,
	[OBSERVED_BAN... OBSERVED_UNBLOCK] = 128,
	[OBSERVED_REFUSED] = 256,
	[OBSERVED_CHANGE] = 128,
};
SL_STATIC_ASSERT(1024 + 3 * 256 + 7 * 128 == OBSERVE_KEPT, "the sum of `room`");

/* The events of a kind: the n-th is at n modulo its room. */
struct kind_ring {
	struct observed *at;
	u64 count;	       /* so far */
	u64 gone_seq, gone_ns; /* of the last one that was overwritten; 0: none was */
};

struct observe {
	u64 last; /* seq of the last event; 0: none */
	struct history *history;
	struct {
		u64 hash, at_ns;
	} refused[REFUSED_SEEN];
	u64 refused_second, refused_count; /* the current one, and events in it */
	u64 began_ns;			   /* UTC: what happened before is not kept */
	struct kind_ring ring[OBSERVED_KINDS];
	struct observed kept[OBSERVE_KEPT];
};

int observe_open(const char *state_dir, u64 history_size, u64 history_age_ns, struct observe **ret,
		 struct sl_err *err)
{
	struct observe *o = malloc(sizeof(*o));
	u32 at = 0;

	if (!o)
		return sl_err_set(err, ENOMEM, "out of memory");
	/* Each page is written: a flood of events needs no memory that was not there before. */
	explicit_bzero(o, sizeof(*o));
	for (int kind = 0; kind < OBSERVED_KINDS; kind++) {
		o->ring[kind].at = &o->kept[at];
		at += room[kind];
	}
	o->began_ns = clock_utc_ns();
	history_open(state_dir, history_size, history_age_ns, clock_utc_ns(), &o->history);
	*ret = o;
	return 0;
}

void observe_close(struct observe *o)
{
	if (o)
		history_close(o->history, clock_utc_ns());
	free(o);
}

void observe_tick(struct observe *o)
{
	if (o)
		history_tick(o->history, clock_utc_ns());
}

void observe_step(struct observe *o, s64 step_ns)
{
	if (o)
		history_step(o->history, step_ns);
}

struct history *observe_history(struct observe *o)
{
	return o ? o->history : NULL;
}

void observe_note(struct observe *o, struct observed *event)
{
	struct kind_ring *ring;
	struct observed *at;

	if (!o || event->kind >= OBSERVED_KINDS || !room[event->kind])
		return;
	ring = &o->ring[event->kind];
	at = &ring->at[ring->count++ % room[event->kind]];
	if (at->seq) {
		ring->gone_seq = at->seq;
		ring->gone_ns = at->utc_ns;
	}
	event->seq = ++o->last;
	if (!event->utc_ns)
		event->utc_ns = clock_utc_ns();
	*at = *event;
	history_note(o->history, event);
	observed_to_journal(event);
}

void observe_tell(struct observe *o, enum observed_kind kind, const struct sl_prefix *source,
		  const char *name, const char *value, const char *detail)
{
	struct observed event = { .kind = kind, .has_source = source, .packets = 1 };

	if (source)
		event.source = *source;
	snprintf(event.name, sizeof(event.name), "%s", name ? name : "");
	snprintf(event.value, sizeof(event.value), "%s", value ? value : "");
	snprintf(event.detail, sizeof(event.detail), "%s", detail ? detail : "");
	observe_note(o, &event);
}

void observe_refused(struct observe *o, const char *rule, const char *value, bool plain)
{
	struct observed event = { .kind = OBSERVED_REFUSED, .packets = 1, .plain = plain };
	u64 now_ns = clock_mono_ns(), second = now_ns / SL_NS_PER_SEC, hash;
	size_t at;

	if (!o)
		return;
	hash = hash_bytes(hash_seed(), 0, rule, strlen(rule));
	hash = hash_bytes(hash_seed(), hash, value, strlen(value));
	at = hash % REFUSED_SEEN;
	if (o->refused[at].hash == hash && now_ns - o->refused[at].at_ns < REFUSED_AGAIN_NS)
		return;
	if (o->refused_second != second) {
		o->refused_second = second;
		o->refused_count = 0;
	}
	if (o->refused_count++ >= OBSERVE_REFUSED_A_SECOND) {
		observe_not_noted(o, OBSERVED_REFUSED, rule, 1);
		return;
	}
	o->refused[at].hash = hash;
	o->refused[at].at_ns = now_ns;
	snprintf(event.name, sizeof(event.name), "%s", rule);
	snprintf(event.value, sizeof(event.value), "%s", value);
	observe_note(o, &event);
}

void observe_not_noted(struct observe *o, enum observed_kind kind, const char *name, u64 count)
{
	if (o && count)
		history_left_out(o->history, kind, name, count);
}

static bool is_wanted(const struct observe_filter *filter, const struct observed *event)
{
	if (filter->kind >= 0 && event->kind != (enum observed_kind)filter->kind)
		return false;
	if (filter->name && strcmp(filter->name, event->name) != 0)
		return false;
	return !filter->has_within ||
	       (event->has_source && (sl_prefix_contains(&filter->within, &event->source) ||
				      sl_prefix_contains(&event->source, &filter->within)));
}

/* ------------------------------------------------------------------ reading */

/* For each kind the number of the next event; room[kind] or fewer behind ring.count. */
struct cursor {
	u64 next[OBSERVED_KINDS];
};

/* Before the last `most` events of each kind that are kept. */
static void cursor_begin(const struct observe *o, u64 most, struct cursor *ret)
{
	for (int kind = 0; kind < OBSERVED_KINDS; kind++) {
		u64 kept = room[kind] < most ? room[kind] : most;

		ret->next[kind] = o->ring[kind].count > kept ? o->ring[kind].count - kept : 0;
	}
}

/* The next event of all kinds by seq; NULL: the end. */
static const struct observed *cursor_next(const struct observe *o, struct cursor *cursor)
{
	const struct observed *first = NULL;

	for (int kind = 0; kind < OBSERVED_KINDS; kind++) {
		const struct observed *event =
			&o->ring[kind].at[room[kind] ? cursor->next[kind] % room[kind] : 0];

		if (cursor->next[kind] < o->ring[kind].count && (!first || event->seq < first->seq))
			first = event;
	}
	if (first)
		cursor->next[first->kind]++;
	return first;
}

/* From when on all events of the wanted kinds are kept; how many with a greater seq than `after`
 * are not, at most. */
static u64 kept_since(const struct observe *o, const struct observe_filter *filter, u64 after,
		      u64 *ret_missed)
{
	u64 since_ns = o->began_ns;

	*ret_missed = 0;
	for (int kind = 0; kind < OBSERVED_KINDS; kind++) {
		const struct kind_ring *ring = &o->ring[kind];
		u64 gone = ring->gone_seq ? ring->count - room[kind] : 0;

		if (filter->kind >= 0 && kind != filter->kind)
			continue;
		/* As times are shown to the second: the first one of which all are kept. */
		if (ring->gone_ns && ring->gone_ns + SL_NS_PER_SEC > since_ns)
			since_ns = ring->gone_ns + SL_NS_PER_SEC;
		if (ring->gone_seq > after)
			*ret_missed +=
				gone < ring->gone_seq - after ? gone : ring->gone_seq - after;
	}
	return since_ns;
}

json_t *observe_read(struct observe *o, const struct observe_filter *filter)
{
	const struct observed *found[OBSERVE_KEPT], *event;
	json_t *list = json_array();
	u64 after = filter->after, next, missed, since_ns;
	struct cursor cursor;
	size_t count = 0, from;

	if (!o)
		return json_pack("{s:o, s:i, s:i}", "events", list, "next", 0, "missed", 0);
	/* Of a daemon before this one: its events are gone, and those of this one are new. */
	if (after > o->last)
		after = 0;
	cursor_begin(o, OBSERVE_KEPT, &cursor);
	while ((event = cursor_next(o, &cursor)))
		if (event->seq > after && is_wanted(filter, event))
			found[count++] = event;
	from = !filter->after && count > filter->count ? count - filter->count : 0;
	next = o->last;
	for (size_t i = from; i < count; i++) {
		if (i - from == filter->count) {
			next = found[i - 1]->seq;
			break;
		}
		json_array_append_new(list, observed_to_json(found[i], filter->frames));
	}
	since_ns = kept_since(o, filter, after, &missed);
	return json_pack("{s:o, s:o, s:o, s:o}", "events", list, "next", json_u64(next), "missed",
			 json_u64(filter->after ? missed : 0), "kept_since", json_utc(since_ns));
}

json_t *observe_latest(const struct observe *o)
{
	const struct observed *found;
	char hash[VALUE_HASH_TEXT];
	struct observed event;
	struct cursor cursor;
	json_t *list;

	if (!o)
		return json_null();
	list = json_array();
	cursor_begin(o, OBSERVE_LATEST, &cursor);
	while ((found = cursor_next(o, &cursor))) {
		event = *found;
		snprintf(event.value, sizeof(event.value), "%s", observed_value(found, hash));
		json_array_append_new(list, observed_to_json(&event, false));
	}
	return list;
}

u64 observe_count(const struct observe *o, enum observed_kind kind)
{
	return o ? o->ring[kind].count : 0;
}
