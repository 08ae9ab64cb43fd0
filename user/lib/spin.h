/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * spin.h - waits for a lock of one byte, which its holder releases within a few hundred
 * nanoseconds.
 *
 *     while (!take(lock))
 *             spin_wait(&turns);		u32 turns = 0
 *
 * If the holder lost its CPU, yielding lets it run, unless its priority is lower than the waiter's:
 * a thread with a real-time priority would spin until the kernel throttles it, for 950 ms. So after
 * about 50 us the waiter sleeps between its attempts.
 */
#ifndef SLUICE_SPIN_H
#define SLUICE_SPIN_H

#include <sched.h>
#include <time.h>
#include <urcu/arch.h>

#include "sluice/types.h"

#define SPIN_YIELD 64 /* turns between two yields */
#define SPIN_SLEEP (16 * SPIN_YIELD)
#define SPIN_SLEEP_NS 20000

static inline void spin_wait(u32 *turns)
{
	static const struct timespec pause = { .tv_nsec = SPIN_SLEEP_NS };

	if (++*turns % SPIN_YIELD)
		caa_cpu_relax();
	else if (*turns < SPIN_SLEEP)
		sched_yield();
	else
		nanosleep(&pause, NULL);
}

#endif
