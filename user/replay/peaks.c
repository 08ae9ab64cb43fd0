// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* peaks.c - see peaks.h. */
#include "replay/peaks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define PLACES (2 * PEAKS_ROOM)

int peaks_open(struct peaks *peaks)
{
	*peaks = (struct peaks){ .entry = calloc(PLACES, sizeof(*peaks->entry)) };
	return peaks->entry ? 0 : -ENOMEM;
}

void peaks_close(struct peaks *peaks)
{
	free(peaks->entry);
	peaks->entry = NULL;
}

/* The threshold uses a hash's high bits, the place its low ones. */
static bool is_sampled(const struct peaks *peaks, u64 hash)
{
	return !peaks->halvings || !(hash >> (64 - peaks->halvings));
}

static struct peaks_entry *place(const struct peaks *peaks, u64 hash)
{
	u32 at = (u32)hash & (PLACES - 1);

	while (peaks->entry[at].hash && peaks->entry[at].hash != hash)
		at = (at + 1) & (PLACES - 1);
	return &peaks->entry[at];
}

/* Halves the threshold until there is room; entries move to their places again. */
static bool make_room(struct peaks *peaks)
{
	struct peaks old = *peaks;

	peaks->entry = calloc(PLACES, sizeof(*peaks->entry));
	if (!peaks->entry) {
		peaks->entry = old.entry;
		return false;
	}
	while (peaks->halvings < 63 && (old.count >= PEAKS_ROOM)) {
		peaks->halvings++;
		old.count = 0;
		for (u32 i = 0; i < PLACES; i++)
			old.count += old.entry[i].hash && is_sampled(peaks, old.entry[i].hash);
	}
	peaks->count = old.count;
	for (u32 i = 0; i < PLACES; i++)
		if (old.entry[i].hash && is_sampled(peaks, old.entry[i].hash))
			*place(peaks, old.entry[i].hash) = old.entry[i];
	free(old.entry);
	return true;
}

struct peaks_entry *peaks_note(struct peaks *peaks, u64 hash, u64 units, u64 period)
{
	struct peaks_entry *entry;

	hash += !hash;
	if (!is_sampled(peaks, hash))
		return NULL;
	entry = place(peaks, hash);
	if (!entry->hash) {
		if (peaks->count >= PEAKS_ROOM) {
			if (!make_room(peaks) || !is_sampled(peaks, hash))
				return NULL;
			entry = place(peaks, hash);
		}
		peaks->count++;
		entry->hash = hash;
		entry->period = period;
	}
	if (entry->period != period)
		entry->in_period = 0;
	entry->period = period;
	entry->in_period += units;
	if (entry->in_period > entry->peak)
		entry->peak = entry->in_period;
	return entry;
}

struct peaks_entry *peaks_next(const struct peaks *peaks, struct peaks_entry *entry)
{
	for (entry = entry ? entry + 1 : peaks->entry; entry < peaks->entry + PLACES; entry++)
		if (entry->hash)
			return entry;
	return NULL;
}

static int by_value(const void *pa, const void *pb)
{
	u64 a = *(const u64 *)pa, b = *(const u64 *)pb;

	return (a > b) - (a < b);
}

int peaks_quantiles(const struct peaks *peaks, bool all, struct peaks_quantiles *ret)
{
	u64 *peak = calloc(peaks->count ? peaks->count : 1, sizeof(*peak));
	u32 count = 0;

	if (!peak)
		return -ENOMEM;
	for (struct peaks_entry *entry = NULL; (entry = peaks_next(peaks, entry));)
		if (all || !entry->apart)
			peak[count++] = entry->peak;
	qsort(peak, count, sizeof(*peak), by_value);
	*ret = (struct peaks_quantiles){
		.sampled = count,
		.subjects = (u64)count << peaks->halvings,
		.peak = peak,
		.error = peaks->halvings && count ? sqrt(log(2 / 0.05) / (2.0 * count)) : 0,
	};
	return 0;
}

u64 peaks_at(const struct peaks_quantiles *quantiles, double part_above)
{
	u32 above = (u32)(part_above * quantiles->sampled);

	if (!quantiles->sampled)
		return 0;
	if (above >= quantiles->sampled)
		above = quantiles->sampled - 1;
	return quantiles->peak[quantiles->sampled - 1 - above];
}

double peaks_above(const struct peaks_quantiles *quantiles, u64 rate)
{
	u32 at = quantiles->sampled;

	while (at && quantiles->peak[at - 1] > rate)
		at--;
	return quantiles->sampled ? (double)(quantiles->sampled - at) / quantiles->sampled : 0;
}
