/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * algo.h - the algorithms, as pure steps over one 64-bit word of state.
 *
 *     sl_step(word, params, now, cost)  ->  the new word, a verdict, how long to wait
 *     sl_weight(word, params, now)      ->  0..255, the share of its limit a word has used
 *
 * No clock, map, helper or libc call inside: time and parameters come in as arguments, so the
 * packet tier, the daemon and the tests run the very same code. One algorithm, one file
 * (algo_gcra.h, algo_window.h); this page only names them and picks one.
 *
 * To add an algorithm: an enum value, a header with its step and weight, one line in each
 * switch below, and its parameters in sl_params_*() of user/policy/params.c.
 *
 * A word of 0 is a key that was never seen: every algorithm takes it as unused.
 */
#ifndef SLUICE_ALGO_H
#define SLUICE_ALGO_H

#include "types.h"

enum sl_algo {
	SL_ALGO_TOKEN_BUCKET,	/* GCRA, algo_gcra.h */
	SL_ALGO_FIXED_WINDOW,	/* algo_window.h */
	SL_ALGO_COUNT,
};

enum sl_verdict {
	SL_PASS,	/* fits; the new word is to be stored */
	SL_OVER,	/* does not fit; nothing is to be stored */
};

/* The largest cost of one step, in units. A frame is at most 64 KiB; leases take more. */
#define SL_COST_MAX (1ULL << 24)

/*
 * What a limit's step needs, computed once when a rule is compiled (user/policy/params.c),
 * which also checks every bound given here.
 */
struct sl_params {
	u64 capacity;		/* units: the burst, or the limit of a window; 1..2^46-1 */
	u64 mult;		/* GCRA: a unit's interval = mult / 2^shift ticks */
	u64 tau;		/* GCRA: capacity x interval, in ticks of 1/16 ns; < 2^60 */
	u64 window_ns;		/* windows: their length, >= 1 s */
	u32 rescale_mult[4];	/* GCRA: see "A live rate change" in algo_gcra.h */
	signed char rescale_exp[4];
	signed char tau_exp;	/* GCRA: 2^31 <= tau / 2^tau_exp < 2^32 */
	u8 algo;		/* enum sl_algo */
	u8 gen;			/* GCRA: 0..3, the limit's rate generation */
	u8 shift;		/* GCRA: 0..40 */
	u64 pad;
};
SL_STATIC_ASSERT(sizeof(struct sl_params) == 64, "one cache line");

/*
 * The time of a step. mono_ns is CLOCK_MONOTONIC. utc_ns is mono_ns + the offset that the
 * daemon publishes: only windows read it, to be aligned to UTC.
 */
struct sl_now {
	u64 mono_ns;
	u64 utc_ns;
};

struct sl_result {
	u64 word;	/* the new word; the old one where the verdict is SL_OVER */
	u64 wait_ns;	/* SL_OVER: after this long the same cost fits; ~0 where it never does */
	u32 verdict;	/* enum sl_verdict */
	u32 quarter;	/* 1: a quarter of the limit or more was used before this step */
};

#include "algo_gcra.h"
#include "algo_window.h"

/*
 * Charges `cost` units to `word`. cost is 0..SL_COST_MAX; a cost of 0 always passes and
 * changes nothing that matters.
 */
static __always_inline struct sl_result sl_step(u64 word, const struct sl_params *p,
						struct sl_now now, u64 cost)
{
	if (p->algo == SL_ALGO_FIXED_WINDOW)
		return sl_window_step(word, p, now.utc_ns, cost);
	return sl_gcra_step(word, p, now.mono_ns, cost);
}

/*
 * The share of its limit that a word has used: 0 exactly where the word is dead, that is, no
 * different from no word at all; 1..127 below half of the limit; 128..255 from half up.
 */
static __always_inline u32 sl_weight(u64 word, const struct sl_params *p, struct sl_now now)
{
	if (p->algo == SL_ALGO_FIXED_WINDOW)
		return sl_window_weight(word, p, now.utc_ns);
	return sl_gcra_weight(word, p, now.mono_ns);
}

/* Whether a word is dead: sl_weight() == 0, without its division. */
static __always_inline int sl_dead(u64 word, const struct sl_params *p, struct sl_now now)
{
	u64 number;

	if (p->algo == SL_ALGO_FIXED_WINDOW)
		return sl_window_count(word, p, now.utc_ns, &number) == 0;
	return word >> SL_GCRA_GEN_BITS <= now.mono_ns * SL_TICKS_PER_NS;
}

/*
 * Takes back `cost` units that a step charged before. Returns the word to store; a word that
 * no longer holds that charge (another window, another rate generation, drained) is returned
 * as it is.
 */
static __always_inline u64 sl_refund(u64 word, const struct sl_params *p, struct sl_now now,
				     u64 cost)
{
	if (p->algo == SL_ALGO_FIXED_WINDOW)
		return sl_window_refund(word, p, now.utc_ns, cost);
	return sl_gcra_refund(word, p, now.mono_ns, cost);
}

/* Units a word has used now: exact for windows, rounded up for buckets; 0 where it is dead. */
static __always_inline u64 sl_used(u64 word, const struct sl_params *p, struct sl_now now)
{
	u64 number;

	if (p->algo == SL_ALGO_FIXED_WINDOW)
		return sl_window_count(word, p, now.utc_ns, &number);
	return sl_gcra_used(word, p, now.mono_ns);
}

#endif
