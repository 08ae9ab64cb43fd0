/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * schedule.h - one random schedule of packets, clock steps and rate changes, through any
 * number of data planes and the exact model (model.h) at once: all must give the same verdicts.
 */
#ifndef TESTS_LIB_SCHEDULE_H
#define TESTS_LIB_SCHEDULE_H

#include "lib/rig.h"

/* Fails `test` at the first verdict that differs, with what led to it. */
void schedule_run(const char *test, struct rig *const *rig, u32 rigs, u64 steps);

#endif
