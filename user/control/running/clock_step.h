/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * clock_step.h - the clock was set: what ends by a duration (blocks and exemptions given live,
 * those of feeds and other nodes, live changes of rules, rules that wait for confirmation) ends as
 * far from now as before. The data path's deadlines are monotonic and stay; their UTC, for files,
 * people and a reboot, moves with the clock. So do the times of feeds, which show as ages, and the
 * live changes in the history.
 *
 * `until` in the administrator's file is a date: that follows the clock. Nothing shows how long a
 * clock was wrong that is set while no daemon runs: then UTC counts.
 */
#ifndef SLUICE_RUNNING_CLOCK_STEP_H
#define SLUICE_RUNNING_CLOCK_STEP_H

#include "control/running/running.h"

/* Each second, before anything that compares deadlines: clock_follow(), and what follows. True
 * after a step. */
bool clock_step_check(struct running *run);

#endif
