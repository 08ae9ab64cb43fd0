/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * persist.h - state that a reboot or a power loss would lose, written every ten seconds by a
 * thread of its own.
 *
 *     state_dir/buckets      bucket states of limits that need ten minutes or more to empty
 *                            (packet/dataplane/dp_state.h); read when the pins are created
 *     state_dir/http.state   the HTTP tier's mapped file: dirty pages are synced
 *
 * So at most ten seconds plus the time of writing are lost; if scanning the table takes more than
 * 1% of that, a hundred times the time of a scan. An orderly exit loses nothing.
 */
#ifndef SLUICE_RUNNING_PERSIST_H
#define SLUICE_RUNNING_PERSIST_H

#include "control/running/running.h"

int persist_open(struct running *run, struct sl_err *err);
/* The pins are new: reads the saved bucket states, and uses their seed. */
void persist_restore(struct running *run);
/* After rules are in force: the first ones get the restored states, before the first packet. */
void persist_rules(struct running *run);
/* Starts the thread. */
int persist_run(struct running *run, struct sl_err *err);
/* Each second. */
void persist_tick(struct running *run);
/* state_dir/buckets is gone: it is written again within a second. */
void persist_again(struct running *run);
/* Writes everything and ends the thread; before the HTTP tier is closed. */
void persist_close(struct running *run);

#endif
