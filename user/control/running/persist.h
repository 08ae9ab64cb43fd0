/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * persist.h - what a reboot, or a machine without power, would lose, written behind every ten
 * seconds by a thread that does nothing else.
 *
 *     state_dir/buckets      what sources have used of limits that take ten minutes or more to be
 * as unused (packet/dataplane/dp_state.h); read when the pins are made anew state_dir/http.state
 * the HTTP tier's mapped file: what changed in it goes to the disk
 *
 * So at most ten seconds are lost, and as long as writing takes; of words of which there are so
 * many that looking takes more than 1% of the time, a hundred times as long as that. At an
 * orderly end nothing is.
 */
#ifndef SLUICE_RUNNING_PERSIST_H
#define SLUICE_RUNNING_PERSIST_H

#include "control/running/running.h"

int persist_open(struct running *run, struct sl_err *err);
/* The pins are new: what was written of those before them is read, and its seed taken. */
void persist_restore(struct running *run);
/* Rules are in force; the first ones get the words that were recalled, before the first packet. */
void persist_rules(struct running *run);
/* The thread. */
int persist_run(struct running *run, struct sl_err *err);
/* Each second. */
void persist_tick(struct running *run);
/* Has `words` written again at the next second: it is gone. */
void persist_again(struct running *run);
/* Writes all there is, and ends the thread: before the HTTP tier is closed. NULL is fine. */
void persist_close(struct running *run);

#endif
