/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * offense.h - refusals counted over a sliding period, for very many keys in a table of a fixed
 * size. The key with the fewest gives its place: many that are refused once push out nobody who
 * is refused all the time.
 */
#ifndef SLUICE_HTTP_OFFENSE_H
#define SLUICE_HTTP_OFFENSE_H

#include "lib/addr.h"
#include "sluice/key.h"

#define OFFENSE_SETS 4096
#define OFFENSE_WAYS 4

/* As a sliding window counts: this period's, and what overlaps of the last. */
struct offense {
	u64 key;		/* 0: none */
	u64 group;		/* what it is forgotten with */
	u64 window;		/* number of the period */
	u64 within_ns;
	u32 current, before;
};

struct strikes {
	struct offense way[OFFENSE_SETS][OFFENSE_WAYS];
};

/* Never 0. */
u64 offense_hash(struct sl_seed seed, const struct sl_prefix *source, u64 a, u64 b);

/* How many there were within the last period, where `current` are of period `window`. */
u64 offense_window(u64 window, u64 current, u64 before, u64 within_ns, u64 now_ns);

/* One more; returns how many there are with it. */
u64 offense_add(struct strikes *strikes, u64 key, u64 group, u64 within_ns, u64 now_ns);
void offense_forget(struct strikes *strikes, u64 key);
void offense_forget_group(struct strikes *strikes, u64 group);

#endif
