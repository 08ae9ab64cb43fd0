/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * heaviest.h - the heaviest of many keys, in bounded memory: Space-Saving (Metwally, Agrawal, El
 * Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005).
 *
 * A key without a place replaces the lightest one, and inherits its weight as what it may have had
 * before (`missed`). So with `room` places, and weights that sum up to `all`:
 *
 *     weight - missed <= what the key had <= weight, and missed <= all / room,
 *
 * and a key with more than all / room has a place, whatever the others have. As long as a place is
 * free every weight is exact.
 *
 * Keys are hashes, so that a scan reads few cache lines. A caller with many keys has many tables
 * and hashes keys into them; the bound holds in each. sluice/heavy.h is the same for BPF, where an
 * entry is found by its address and the verifier bounds the loop.
 */
#ifndef SLUICE_LIB_HEAVIEST_H
#define SLUICE_LIB_HEAVIEST_H

#include <stdbool.h>

#include "sluice/types.h"

/*
 * Returns the place of a key. *ret_new: it has it from now on, and weight[place] is what it
 * missed. The caller adds to weight[place]; a place of weight 0 is free. Keys are not 0.
 */
static inline u32 heaviest_place(u64 *key, const u64 *weight, u32 room, u64 who, bool *ret_new)
{
	u32 lightest = 0;

	*ret_new = false;
	for (u32 i = 0; i < room; i++)
		if (key[i] == who)
			return i;
	for (u32 i = 1; i < room; i++)
		if (weight[i] < weight[lightest])
			lightest = i;
	key[lightest] = who;
	*ret_new = true;
	return lightest;
}

#endif
