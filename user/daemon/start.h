/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* start.h - start of the daemon in order, and its exit. */
#ifndef SLUICE_DAEMON_START_H
#define SLUICE_DAEMON_START_H

#include "daemon/daemon.h"

/* Starts all but the loop. config_path is set, d->socket_path may be. 0, or -errno and err. */
int start_all(struct daemon *d, struct sl_err *err);
/* Runs the loop until a signal or `detach --all`; returns main's exit code. */
int start_loop(struct daemon *d);
/* Makes the loop end when no client has to be waited for; again: now. */
void start_end(struct daemon *d);
/* Detaches all interfaces and removes all pins, while no daemon runs. */
int start_purge(struct daemon *d, struct sl_err *err);
/* After a start that failed: removes programs and pins if this start made them. */
void start_undo(struct daemon *d);
/* Closes and frees everything. Attachments and pins stay. */
void start_revert(struct daemon *d);

#endif
