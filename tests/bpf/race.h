/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * race.h - the BPF program on two CPUs at once: threads that send, each on a CPU of its own; the
 * test does other work beside them until race_over().
 */
#ifndef TESTS_BPF_RACE_H
#define TESTS_BPF_RACE_H

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "lib/rig.h"

#define RACERS 2

struct race {
	struct rig *rig;
	void (*send)(struct rig *rig, void *arg);
	struct racer {
		struct race *race;
		void *arg; /* the test's */
		pthread_t thread;
		u32 cpu;
		bool done;
	} racer[RACERS];
};

static inline void *race_run(void *arg)
{
	struct racer *racer = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(racer->cpu % sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof(set), &set);
	racer->race->send(racer->race->rig, racer->arg);
	__atomic_store_n(&racer->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static inline void race_begin(struct race *race)
{
	for (u32 i = 0; i < RACERS; i++) {
		struct racer *racer = &race->racer[i];

		racer->race = race;
		racer->cpu = i;
		assert_int_equal(pthread_create(&racer->thread, NULL, race_run, racer), 0);
	}
}

static inline bool race_over(const struct race *race)
{
	bool over = true;

	for (u32 i = 0; i < RACERS; i++)
		over &= __atomic_load_n(&race->racer[i].done, __ATOMIC_ACQUIRE);
	return over;
}

static inline void race_end(struct race *race)
{
	for (u32 i = 0; i < RACERS; i++)
		pthread_join(race->racer[i].thread, NULL);
}

#endif
