/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * epoch.h - a number that changes after every write to what verdicts are read from.
 *
 * The data path repeats a refusal (bpf/refused.h) only while the epoch is what it was when the
 * packet of that refusal began. So:
 *
 *   - Who writes a map that verdicts are read from raises the epoch afterwards, once for all writes
 *     of one change: user space by dp_epoch_raise(), the program by map_epoch_raise(). Written but
 *     not raised: in force for sources that are being refused after up to 100 ms.
 *   - Nothing to raise for: charges and whatever else only makes a refusal last longer; what ends
 *     by a deadline that was stored (block, ban, push-down, elastic scale, unconfirmed apply).
 *   - While rules are put in force it is odd (SL_EPOCH_CHANGING), and nothing is repeated: the
 * kernel swaps them some ms before the update returns, and they hold from the swap. One that a
 * daemon left odd when it was killed costs speed alone, until the next change.
 *   - A raise costs each busy refused source one packet by the long way: thousands in a second
 *     are fine.
 */
#ifndef SLUICE_EPOCH_H
#define SLUICE_EPOCH_H

#include "types.h"

#define SL_EPOCH_CHANGING 1U
#define SL_EPOCH_STEP 2

/* The value of `epoch`: one, on a cache line of its own, mapped by the daemon. */
struct sl_epoch {
	u64 count;
};

#endif
