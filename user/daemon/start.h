/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* start.h - from a file's name to a serving daemon, in order; and back. */
#ifndef SLUICE_DAEMON_START_H
#define SLUICE_DAEMON_START_H

#include "daemon/daemon.h"

/* All up to the loop; d->running.config_path is set, d->socket_path may be. 0, or -errno and err. */
int start_all(struct daemon *d, struct sl_err *err);
/* Runs until a signal or `detach --all` ends it; returns main's exit code. */
int start_loop(struct daemon *d);
/* Takes everything of this host off, while no daemon runs. */
int start_purge(struct daemon *d, struct sl_err *err);
/* Closes and frees what there is. Attachments and pins stay. */
void start_revert(struct daemon *d);

#endif
