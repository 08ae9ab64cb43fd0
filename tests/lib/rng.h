/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rng.h - random numbers of randomized tests: the seed is printed, and read from
 * SLUICE_SEED to run the same again. (splitmix64.)
 */
#ifndef SLUICE_TESTS_RNG_H
#define SLUICE_TESTS_RNG_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sluice/types.h"

static u64 rng_state;

static inline void rng_start(const char *test)
{
	const char *seed = getenv("SLUICE_SEED");
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	rng_state = seed ? strtoull(seed, NULL, 0) : (u64)now.tv_sec << 30 ^ (u64)now.tv_nsec;
	fprintf(stderr, "# %s: SLUICE_SEED=%llu\n", test, rng_state);
}

static inline u64 rng(void)
{
	u64 x = rng_state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* 0..n-1 */
static inline u64 rng_below(u64 n)
{
	return rng() % n;
}

static inline const char *rng_text(const char *const *texts, u64 count)
{
	return texts[rng_below(count)];
}

/* One of the texts. */
#define RNG_ANY(...)                                                                               \
	rng_text((const char *const[]){ __VA_ARGS__ },                                             \
		 sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

/* 1..2^bits-1, all magnitudes alike. */
static inline u64 rng_magnitude(u32 bits)
{
	u32 n = 1 + rng_below(bits);

	return (rng() >> (64 - n)) | 1ULL << (n - 1);
}

#endif
