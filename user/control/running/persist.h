/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * persist.h - a thread that writes the HTTP tier's counts (state_dir/http.state, a mapped file) to
 * disk every ten seconds. A killed daemon loses none of them without it, a power failure at most
 * those since the last write.
 */
#ifndef SLUICE_RUNNING_PERSIST_H
#define SLUICE_RUNNING_PERSIST_H

#include "control/running/running.h"

/* Starts the thread, if there is an HTTP tier. */
int persist_run(struct running *run, struct sl_err *err);
/*
 * Each second: notices files of state_dir that another process deleted. They are not repaired: the
 * next change writes them; but for http.state, which the next start makes anew.
 */
void persist_watch(struct running *run);
/* What a restart would lose, of that or of counts that found no room for a file; NULL: nothing. */
const char *persist_not_kept(const struct running *run);
/* Writes once more, and ends the thread; before the HTTP tier is closed. NULL is fine. */
void persist_close(struct running *run);

#endif
