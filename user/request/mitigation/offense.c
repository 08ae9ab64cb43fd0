// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* offense.c - see offense.h. */
#include "request/mitigation/offense.h"

#include <string.h>

u64 offense_hash(struct sl_seed seed, const struct sl_prefix *source, u64 a, u64 b)
{
	struct sl_sip sip;
	u64 hash;

	sl_sip_start(&sip, seed);
	sl_sip_add(&sip, source->addr.hi);
	sl_sip_add(&sip, source->addr.lo);
	sl_sip_add(&sip, (u64)source->family << 8 | source->len);
	sl_sip_add(&sip, a);
	sl_sip_add(&sip, b);
	hash = sl_sip_finish(&sip);
	return hash ? hash : 1;
}

u64 offense_window(u64 window, u64 current, u64 before, u64 within_ns, u64 now_ns)
{
	u64 now = now_ns / within_ns, left = within_ns - now_ns % within_ns;

	if (now == window)
		return current + (u64)((double)before * (double)left / (double)within_ns);
	return now == window + 1 ? (u64)((double)current * (double)left / (double)within_ns) : 0;
}

static u64 count(const struct offense *entry, u64 now_ns)
{
	if (!entry->key)
		return 0;
	return offense_window(entry->window, entry->current, entry->before, entry->within_ns,
			      now_ns);
}

static struct offense *find(struct offenses *offenses, u64 key)
{
	struct offense *set = offenses->way[key % OFFENSE_SETS];

	for (u32 way = 0; way < OFFENSE_WAYS; way++)
		if (set[way].key == key)
			return &set[way];
	return NULL;
}

static struct offense *make(struct offenses *offenses, u64 key, u64 now_ns)
{
	struct offense *set = offenses->way[key % OFFENSE_SETS], *least = set;

	for (u32 way = 1; way < OFFENSE_WAYS; way++)
		if (count(&set[way], now_ns) < count(least, now_ns))
			least = &set[way];
	memset(least, 0, sizeof(*least));
	least->key = key;
	return least;
}

u64 offense_add(struct offenses *offenses, u64 key, u64 group, u64 within_ns, u64 now_ns)
{
	struct offense *entry = find(offenses, key);
	u64 window = now_ns / within_ns;

	if (!entry)
		entry = make(offenses, key, now_ns);
	entry->group = group;
	/* The rule's period has changed: counts restart. */
	if (entry->within_ns != within_ns) {
		entry->within_ns = within_ns;
		entry->current = entry->before = 0;
	}
	if (entry->window != window) {
		entry->before = window == entry->window + 1 ? entry->current : 0;
		entry->current = 0;
		entry->window = window;
	}
	if (entry->current < ~0U)
		entry->current++;
	return count(entry, now_ns);
}

void offense_forget(struct offenses *offenses, u64 key)
{
	struct offense *entry = find(offenses, key);

	if (entry)
		memset(entry, 0, sizeof(*entry));
}

void offense_forget_group(struct offenses *offenses, u64 group)
{
	for (u32 set = 0; set < OFFENSE_SETS; set++)
		for (u32 way = 0; way < OFFENSE_WAYS; way++)
			if (offenses->way[set][way].group == group)
				memset(&offenses->way[set][way], 0, sizeof(struct offense));
}
