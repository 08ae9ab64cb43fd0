// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * meters_counter.c - counters of the packets that this node admitted, for limits of scope cluster.
 *
 * A bucket state does not give this number: a bucket that has drained completely no longer shows
 * how much was charged. So the meters of one prefix and unit have one more meter that is charged
 * with them, all or none, and never refuses: a fixed window of the largest count. Its key has the
 * hash of theirs and a limit_id of its own; sources with overrides are counted apart, as in those
 * meters.
 *
 * The window is a minute: charges between the last reading and its end are not reported to the
 * other nodes, which is at most the interval of readings in each minute. Longer windows would
 * occupy the table for sources that are no longer active.
 *
 * With `count: all` each meter has one more, of the same kind, which is charged where that meter
 * refuses: the two are counted apart, for what is admitted may be a debt beyond the
 * limit, and what is refused fills a bucket up to it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "packet/compile/meters.h"

#define COUNTER_WINDOW_NS (60 * SL_NS_PER_SEC)

static const struct sl_params counter_params = {
	.algo = SL_ALGO_FIXED_WINDOW,
	.capacity = SL_WINDOW_COUNT_MASK,
	.window_ns = COUNTER_WINDOW_NS,
};

static u32 take_meter(struct meters *meters)
{
	if (meters->next < SL_METERS_MAX)
		return meters->next++;
	snprintf(
		meters->reason, sizeof(meters->reason),
		"scope: cluster needs a meter for each unit and prefix length, but all %d meters are in use",
		SL_METERS_MAX - SL_METER_FURTHER);
	return 0;
}

/* "web" -> "web#1c", "web#2" -> "web#2c". */
static void name_meter(struct meters *meters, u32 index, u32 of, const char *role)
{
	const char *name = meters->name[of], *number = strchr(name, '#');
	size_t length = number ? (size_t)(number - name) : strlen(name), room;
	char tag[24];

	snprintf(tag, sizeof(tag), "%.16s%s", number ? number : "#1", role);
	room = SL_NAME_MAX - 1 - strlen(tag);
	length = length < room ? length : room;
	memcpy(meters->name[index], name, length);
	strcpy(meters->name[index] + length, tag);
}

static void fill_meter(struct meters *meters, u32 index, u32 of)
{
	struct sl_limit *meter = &meters->meter[index];

	*meter = meters->meter[of];
	meter->params = counter_params;
	meter->counter = 1;
	meter->percpu = 0;
	meter->lease = 0;
	meter->single_meter = 0;
	meter->elastic = 0;
	meter->refusals = 0;
	meter->next = meter->soft = meter->full = meter->overridden = meter->ban = SL_NO_METER;
}

static const struct override_meter *overrides_of(const struct meters *meters, u32 meter)
{
	for (size_t i = 0; i < meters->overrides.count; i++)
		if (meters->overrides.meter[i].meter == meter)
			return &meters->overrides.meter[i];
	return NULL;
}

/* The counting meter for the sources with overrides of meter `of`. */
static int add_overridden(struct meters *meters, const struct limit_def *def, u32 counter, u32 of,
			  const char *role)
{
	const struct override_meter *from;
	struct override_meter *to;
	u32 index;

	if (meters->meter[of].overridden == SL_NO_METER)
		return 0;
	index = take_meter(meters);
	if (!index)
		return -E2BIG;
	name_meter(meters, index, of, role);
	fill_meter(meters, index, of);
	meters->meter[index].of_overrides = 1;
	meters->meter[counter].overridden = index;
	if (meters->before && !meters->changed)
		return 0;
	to = override_meters_add(&meters->overrides, def, counter);
	from = overrides_of(meters, of);
	if (!to || !from) {
		snprintf(meters->reason, sizeof(meters->reason), "no memory for its overrides");
		return -ENOMEM;
	}
	memcpy(to->prefix, from->prefix, sizeof(to->prefix));
	memcpy(to->finest, from->finest, sizeof(to->finest));
	for (size_t i = 0; i < def->override_rates_count; i++)
		to->params[i] = counter_params;
	return 0;
}

/* The counter of what meter `of` refuses: not charged with the limit, but where `of` refuses. */
static int add_refusals(struct meters *meters, const struct limit_def *def, u32 of)
{
	u32 index = take_meter(meters);

	if (!index)
		return -E2BIG;
	name_meter(meters, index, of, "r");
	fill_meter(meters, index, of);
	meters->meter[of].refusals = index;
	return add_overridden(meters, def, index, of, "ro");
}

static bool counts_for(const struct sl_limit *counter, const struct sl_limit *meter)
{
	return counter->counter && counter->unit == meter->unit &&
	       !memcmp(counter->prefix, meter->prefix, sizeof(meter->prefix));
}

int meters_add_counters(struct meters *meters, const struct limit_def *def, u32 head)
{
	u32 last = head;

	while (meters->meter[last].next != SL_NO_METER)
		last = meters->meter[last].next;
	for (u32 of = head; of != SL_NO_METER && !meters->meter[of].counter;
	     of = meters->meter[of].next) {
		u32 have = head, index;
		int err = def->terms.count == COUNT_ALL ? add_refusals(meters, def, of) : 0;

		if (err)
			return err;
		while (have != SL_NO_METER && !counts_for(&meters->meter[have], &meters->meter[of]))
			have = meters->meter[have].next;
		if (have != SL_NO_METER)
			continue;
		index = take_meter(meters);
		if (!index)
			return -E2BIG;
		name_meter(meters, index, of, "c");
		fill_meter(meters, index, of);
		meters->meter[last].next = index;
		last = index;
		err = add_overridden(meters, def, index, of, "co");
		if (err)
			return err;
	}
	return 0;
}

/* Packets, connections, and bytes for bytes and bits. */
