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

enum class { CLASS_PACKET, CLASS_SOURCE, CLASS_CHANGE, CLASSES };

struct observe {
	u64 last;				/* seq of the last event; 0: none */
	u64 counts[OBSERVED_KINDS];
	struct history *history;
	struct {
		u64 hash, at_ns;
	} refused[REFUSED_SEEN];
	u64 refused_second, refused_count;	/* the current one, and events in it */
	struct observed kept[OBSERVE_KEPT];	/* an event is at its seq, modulo the size */
	u64 classed[CLASSES];			/* events of it so far */
	struct observed latest[CLASSES][OBSERVE_LATEST];
};

static enum class class_of(enum observed_kind kind)
{
	if (kind == OBSERVED_DROP)
		return CLASS_PACKET;
	return kind == OBSERVED_OVER || kind == OBSERVED_RELEASED || kind == OBSERVED_REFUSED ?
		       CLASS_SOURCE : CLASS_CHANGE;
}

int observe_open(const char *state_dir, u64 history_size, u64 history_age_ns, struct observe **ret,
		 struct sl_err *err)
{
	struct observe *o = malloc(sizeof(*o));

	if (!o)
		return sl_err_set(err, ENOMEM, "out of memory");
	/* Each page is written: a flood of events needs no memory that was not there before. */
	explicit_bzero(o, sizeof(*o));
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
	enum class class = class_of(event->kind);

	if (!o || event->kind >= OBSERVED_KINDS)
		return;
	event->seq = ++o->last;
	if (!event->utc_ns)
		event->utc_ns = clock_utc_ns();
	o->counts[event->kind]++;
	o->kept[event->seq % OBSERVE_KEPT] = *event;
	o->latest[class][o->classed[class]++ % OBSERVE_LATEST] = *event;
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

static u64 hash_text(u64 hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (u8)*text) * 0x100000001b3ULL;
	return (hash ^ 0xff) * 0x9e3779b97f4a7c15ULL;
}

void observe_refused(struct observe *o, const char *rule, const char *value, bool plain)
{
	struct observed event = { .kind = OBSERVED_REFUSED, .packets = 1, .plain = plain };
	u64 now_ns = clock_mono_ns(), second = now_ns / SL_NS_PER_SEC, hash;
	size_t at;

	if (!o)
		return;
	hash = hash_text(hash_text(0, rule), value);
	hash ^= hash >> 32;
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

static u64 oldest(const struct observe *o)
{
	return o->last > OBSERVE_KEPT ? o->last - OBSERVE_KEPT + 1 : 1;
}

/* From which seq on `count` of the events up to the last one are wanted. */
static u64 begin_of_latest(const struct observe *o, const struct observe_filter *filter)
{
	size_t found = 0;
	u64 seq = o->last + 1;

	while (seq > oldest(o) && found < filter->count) {
		seq--;
		found += is_wanted(filter, &o->kept[seq % OBSERVE_KEPT]);
	}
	return seq;
}

json_t *observe_read(struct observe *o, const struct observe_filter *filter)
{
	json_t *list = json_array();
	u64 seq, next, missed = 0;

	if (!o)
		return json_pack("{s:o, s:i, s:i}", "events", list, "next", 0, "missed", 0);
	seq = filter->after ? filter->after + 1 : begin_of_latest(o, filter);
	/* Of a daemon before this one: its events are gone, and those of this one are new. */
	if (seq > o->last + 1)
		seq = 1;
	if (seq < oldest(o)) {
		missed = oldest(o) - seq;
		seq = oldest(o);
	}
	next = seq - 1;
	for (; seq <= o->last && json_array_size(list) < filter->count; seq++) {
		const struct observed *event = &o->kept[seq % OBSERVE_KEPT];

		next = seq;
		if (is_wanted(filter, event))
			json_array_append_new(list, observed_to_json(event, filter->frames));
	}
	return json_pack("{s:o, s:o, s:o}", "events", list, "next", json_u64(next), "missed",
			 json_u64(missed));
}

json_t *observe_latest(const struct observe *o)
{
	char hash[VALUE_HASH_TEXT];
	struct observed event;
	u64 at[CLASSES];
	json_t *list;

	if (!o)
		return json_null();
	list = json_array();
	for (u32 class = 0; class < CLASSES; class++)
		at[class] = o->classed[class] > OBSERVE_LATEST ? o->classed[class] - OBSERVE_LATEST : 0;
	for (;;) {
		const struct observed *first = NULL;
		u32 of = 0;

		for (u32 class = 0; class < CLASSES; class++) {
			const struct observed *event = &o->latest[class][at[class] % OBSERVE_LATEST];

			if (at[class] < o->classed[class] && (!first || event->seq < first->seq)) {
				first = event;
				of = class;
			}
		}
		if (!first)
			return list;
		at[of]++;
		event = *first;
		snprintf(event.value, sizeof(event.value), "%s", observed_value(first, hash));
		json_array_append_new(list, observed_to_json(&event, false));
	}
}

u64 observe_count(const struct observe *o, enum observed_kind kind)
{
	return o ? o->counts[kind] : 0;
}
