/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * offense.h - refusals counted over a sliding period, for many keys in a table of a fixed size.
 * The key with the fewest refusals is evicted: many keys with one refusal do not displace keys
 * that are refused continuously.
 */
#ifndef SLUICE_HTTP_OFFENSE_H
#define SLUICE_HTTP_OFFENSE_H

#include "lib/addr.h"
#include "sluice/key.h"

#define OFFENSE_SETS 4096
#define OFFENSE_WAYS 4

/* A sliding window: the count of this period and that of the last. */
struct offense {
	u64 key;    /* 0: none */
	u64 group;  /* the source with which it is cleared */
	u64 window; /* number of the period */
	u64 within_ns;
	u32 current, before;
};

struct offenses {
	struct offense way[OFFENSE_SETS][OFFENSE_WAYS];
};

/* Never 0. */
u64 offense_hash(struct sl_seed seed, const struct sl_prefix *source, u64 a, u64 b);

/* The count within the last period; `current` is of period `window`. */
u64 offense_window(u64 window, u64 current, u64 before, u64 within_ns, u64 now_ns);

/* Adds one; returns the new count. */
u64 offense_add(struct offenses *offenses, u64 key, u64 group, u64 within_ns, u64 now_ns);
void offense_forget(struct offenses *offenses, u64 key);
void offense_forget_group(struct offenses *offenses, u64 group);

#endif
