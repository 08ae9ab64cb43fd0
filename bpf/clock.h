/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * clock.h - the time of a packet, read as late as can be.
 *
 * Reading the clock costs a fifth of a drop. Most packets of a flood are over their limit by
 * far, and for them a bound is enough: each CPU keeps its last reading with the tick (jiffy)
 * it was made in; while the tick is the same, now is at most two ticks later. What is over
 * even then is over now. In all other cases the clock is read: the bound never decides a pass.
 */
#ifndef SLUICE_BPF_CLOCK_H
#define SLUICE_BPF_CLOCK_H

#include "bpf/observe.h"

/*
 * Two ticks; of 100 Hz where the rate is another or cannot be read. CONFIG_HZ is a constant
 * to the verifier, which takes the other branches out; a division by it would stay.
 */
static __always_inline u64 clock_two_ticks_ns(void)
{
	u32 hz = env_hz();

	if (hz == 1000)
		return 2 * SL_NS_PER_SEC / 1000;
	if (hz == 250)
		return 2 * SL_NS_PER_SEC / 250;
	return 2 * SL_NS_PER_SEC / 100;
}

static __always_inline u64 clock_utc_offset_ns(void)
{
	const struct sl_state *st = map_state();

	if (st)
		return st->utc_offset_ns;
	count_map_error(SL_ME_STATE_LOOKUP);
	return 0;
}

static __always_inline struct sl_now clock_at(u64 mono_ns)
{
	return (struct sl_now){ .mono_ns = mono_ns, .utc_ns = mono_ns + clock_utc_offset_ns() };
}

/* Reads the clock, once per packet. */
static __always_inline void clock_read(struct packet *pkt)
{
	u64 mono_ns;

	if (pkt->now.mono_ns)
		return;
	mono_ns = env_mono_ns();
	pkt->now.mono_ns = mono_ns;
	pkt->now.utc_ns = mono_ns + clock_utc_offset_ns();
	pkt->clock.mono_ns = mono_ns;
	pkt->clock.jiffies = env_jiffies();
}

/*
 * A time (monotonic, ns) that is not before now, where one can be had without reading the clock;
 * else 0, and pkt->now was read.
 */
static __always_inline u64 clock_bound_ns(struct packet *pkt)
{
	if (!pkt->now.mono_ns && !env_fake_clock() && pkt->clock.jiffies == env_jiffies())
		return pkt->clock.mono_ns + clock_two_ticks_ns();
	clock_read(pkt);
	return 0;
}

#endif
