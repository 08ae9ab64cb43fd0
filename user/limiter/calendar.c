// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* calendar.c - see calendar.h. */
#include "limiter/calendar.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_S 86400ULL
#define END_S UINT32_MAX /* February 2106 */

struct calendar_edges {
	u32 count; /* at least 2 */
	u32 at[];  /* when each window begins, seconds since 1970; before 1970: 0 */
};

/*
 * longest_s: no window of any zone since 1970 is as long (the longest day had 31 hours); mean_s:
 * for a first guess; rate_s: of a rate.
 */
static const struct {
	u64 longest_s, mean_s, rate_s;
} units[CALENDAR_UNIT_COUNT] = {
	[CALENDAR_DAY] = { 36 * 3600, DAY_S, DAY_S },
	[CALENDAR_WEEK] = { 8 * DAY_S, 7 * DAY_S, 7 * DAY_S },
	[CALENDAR_MONTH] = { 32 * DAY_S, 2629746, 30 * DAY_S },
	[CALENDAR_YEAR] = { 367 * DAY_S, 31556952, 365 * DAY_S },
};

/* Slots are filled in order and stay. Readers take no lock: a slot's id is written last. */
static struct calendar calendars[CALENDARS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum calendar_unit calendar_unit_of(u64 period_ns)
{
	for (int i = CALENDAR_DAY; i < CALENDAR_UNIT_COUNT; i++)
		if (period_ns == units[i].rate_s * SL_NS_PER_SEC)
			return (enum calendar_unit)i;
	return CALENDAR_NONE;
}

/* ------------------------------------------------------------------ the table */

/* Local midnight at a window's begin, as days since 1970. */
static s64 first_day(enum calendar_unit unit, s64 number)
{
	switch (unit) {
	case CALENDAR_DAY:
		return number - 1;
	case CALENDAR_WEEK: /* 1969-12-29 was a Monday */
		return 7 * (number - 1) - 3;
	case CALENDAR_MONTH:
		return zone_days(1970, number, 1);
	default:
		return zone_days(1969 + number, 1, 1);
	}
}

/*
 * The earliest second at which local time is local_s or later: after a gap in local time its end,
 * of two equal times the first. *span is where the search begins, for a later local_s.
 */
static s64 earliest(const struct zone *zone, s64 local_s, size_t *span)
{
	for (;; ++*span) {
		const struct zone_span *at = &zone->span[*span];
		s64 utc_s = local_s - at->offset_s;

		if (utc_s < at->from_s)
			utc_s = at->from_s;
		if (*span + 1 == zone->count || utc_s < at[1].from_s)
			return utc_s;
	}
}

static struct calendar_edges *edges_make(const struct zone *zone, enum calendar_unit unit)
{
	u32 most = (u32)(END_S / units[unit].mean_s + 8);
	struct calendar_edges *edges = malloc(sizeof(*edges) + most * sizeof(edges->at[0]));
	size_t span = 0;

	for (edges ? edges->count = 0 : 0; edges && edges->count < most; edges->count++) {
		s64 at = earliest(zone, first_day(unit, edges->count) * (s64)DAY_S, &span);

		if (at > END_S)
			break;
		edges->at[edges->count] = at < 0 ? 0 : (u32)at;
	}
	return edges;
}

static bool edges_differ(const struct calendar_edges *a, const struct calendar_edges *b)
{
	return !a || a->count != b->count || memcmp(a->at, b->at, a->count * sizeof(a->at[0]));
}

/* ------------------------------------------------------------------ all calendars */

/* FNV-1a; never 0. */
static u32 id_of(const char *zone, enum calendar_unit unit)
{
	u32 id = 2166136261U + unit;

	for (; *zone; zone++)
		id = (id ^ (unsigned char)*zone) * 16777619U;
	return id ? id : 1;
}

static struct calendar *slot_of(u32 id)
{
	for (u32 i = 0; i < CALENDARS_MAX; i++) {
		u32 there = __atomic_load_n(&calendars[i].id, __ATOMIC_ACQUIRE);

		if (there == id || !there)
			return &calendars[i];
	}
	return NULL;
}

/* Threads may still read an old table, so it is not freed: a zone's rules change once in years. */
static int fill(struct calendar *slot, u32 id, const char *name, const struct zone *zone,
		enum calendar_unit unit)
{
	struct calendar_edges *edges = edges_make(zone, unit);

	if (!edges)
		return -ENOMEM;
	if (edges_differ(slot->edges, edges))
		__atomic_store_n(&slot->edges, edges, __ATOMIC_RELEASE);
	else
		free(edges);
	if (!slot->zone[0]) /* `name` may be that of a slot */
		snprintf(slot->zone, sizeof(slot->zone), "%s", name);
	if (slot->id)
		return 0;
	slot->unit = unit;
	slot->window_ns = units[unit].longest_s * SL_NS_PER_SEC;
	__atomic_store_n(&slot->id, id, __ATOMIC_RELEASE);
	return 0;
}

/* A zone without a name does not replace one that has a name. */
static int fill_slot(const char *name, const struct zone *zone, enum calendar_unit unit, u32 id,
		     const struct calendar **ret, struct sl_err *err)
{
	struct calendar *slot;
	int rc = 0;

	pthread_mutex_lock(&lock);
	slot = slot_of(id);
	if (!slot || (slot->id && *name && slot->zone[0] && strcmp(slot->zone, name)))
		rc = sl_err_set(
			err, ENOSPC,
			"this is a zone more than there is room for; accepted: up to %d zones, counted for each of day, week, month and year",
			CALENDARS_MAX);
	else if ((*name || !slot->id) && fill(slot, id, name, zone, unit))
		rc = sl_err_set(err, ENOMEM, "out of memory");
	pthread_mutex_unlock(&lock);
	if (!rc)
		*ret = slot;
	return rc;
}

static bool is_there(u32 id)
{
	const struct calendar *slot = slot_of(id);

	return slot && __atomic_load_n(&slot->id, __ATOMIC_ACQUIRE) == id;
}

int calendar_open(const char *name, enum calendar_unit unit, const struct calendar **ret,
		  struct sl_err *err)
{
	const struct calendar *opened = NULL, *other;
	struct zone zone;
	int rc = zone_read(name, &zone, err);

	if (rc)
		return rc;
	for (int i = CALENDAR_DAY; i < CALENDAR_UNIT_COUNT && !rc; i++) {
		u32 id = id_of(name, (enum calendar_unit)i);

		if ((enum calendar_unit)i == unit || is_there(id))
			rc = fill_slot(name, &zone, (enum calendar_unit)i, id,
				       (enum calendar_unit)i == unit ? &opened : &other, err);
	}
	zone_free(&zone);
	if (!rc)
		*ret = opened;
	return rc;
}

int calendar_of_unit(const struct calendar *calendar, enum calendar_unit unit,
		     const struct calendar **ret, struct sl_err *err)
{
	const struct calendar *there = slot_of(id_of(calendar->zone, unit));

	if (!is_there(id_of(calendar->zone, unit)) || !there->zone[0])
		return calendar_open(calendar->zone, unit, ret, err);
	*ret = there;
	return 0;
}

const struct calendar *calendar_find(u32 id, u64 window_ns)
{
	const struct calendar *calendar = slot_of(id);
	struct zone zone;

	if (is_there(id))
		return calendar->window_ns == window_ns ? calendar : NULL;
	for (int unit = CALENDAR_DAY; unit < CALENDAR_UNIT_COUNT; unit++) {
		if (units[unit].longest_s * SL_NS_PER_SEC != window_ns ||
		    zone_fixed(-12 * 3600, &zone))
			continue;
		if (fill_slot("", &zone, (enum calendar_unit)unit, id, &calendar, NULL))
			calendar = NULL;
		zone_free(&zone);
		return calendar;
	}
	return NULL;
}

/* ------------------------------------------------------------------ time */

static const struct calendar_edges *edges_of(const struct calendar *calendar)
{
	return __atomic_load_n(&calendar->edges, __ATOMIC_ACQUIRE);
}

static u64 begin_of(const struct calendar_edges *edges, u64 number)
{
	return edges->at[number < edges->count ? number : edges->count - 1] * SL_NS_PER_SEC;
}

/* The last window that begins at utc_ns or before; after 2106 the last of the table. */
static u64 number_of(const struct calendar *calendar, const struct calendar_edges *edges,
		     u64 utc_ns)
{
	u64 utc_s = utc_ns / SL_NS_PER_SEC, i = utc_s / units[calendar->unit].mean_s + 1;

	if (i > edges->count - 2)
		i = edges->count - 2;
	while (i && edges->at[i] > utc_s)
		i--;
	while (i < edges->count - 2 && edges->at[i + 1] <= utc_s)
		i++;
	return i;
}

u64 calendar_window(const struct calendar *calendar, u64 utc_ns, u64 *ret_begin_ns, u64 *ret_end_ns)
{
	const struct calendar_edges *edges = edges_of(calendar);
	u64 number = number_of(calendar, edges, utc_ns);

	*ret_begin_ns = begin_of(edges, number);
	*ret_end_ns = begin_of(edges, number + 1);
	return number;
}

u64 calendar_begin_ns(const struct calendar *calendar, u64 number)
{
	return begin_of(edges_of(calendar), number);
}

struct sl_now calendar_now(const struct calendar *calendar, struct sl_now now)
{
	u64 number, begin, end, left;

	if (!calendar)
		return now;
	number = calendar_window(calendar, now.utc_ns, &begin, &end);
	left = end > now.utc_ns ? end - now.utc_ns : 1;
	if (left > calendar->window_ns)
		left = calendar->window_ns;
	now.utc_ns = (number + 1) * calendar->window_ns - left;
	return now;
}

u64 calendar_wait_ns(const struct calendar *calendar, u64 utc_ns, u64 wait_ns)
{
	const struct calendar_edges *edges;
	u64 then, left, begin, end;

	if (!calendar || !wait_ns || wait_ns == ~0ULL)
		return wait_ns;
	edges = edges_of(calendar);
	then = calendar_now(calendar, (struct sl_now){ .utc_ns = utc_ns }).utc_ns;
	if (__builtin_add_overflow(then, wait_ns, &then))
		return ~0ULL;
	begin = begin_of(edges, then / calendar->window_ns);
	end = begin_of(edges, then / calendar->window_ns + 1);
	left = calendar->window_ns - then % calendar->window_ns;
	if (end > begin && end - begin > left)
		begin = end - left;
	return begin > utc_ns ? begin - utc_ns : 1;
}
