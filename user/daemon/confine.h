/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* confine.h - the daemon drops its privileges before it accepts clients. */
#ifndef SLUICE_DAEMON_CONFINE_H
#define SLUICE_DAEMON_CONFINE_H

#include "lib/err.h"

/*
 * Keeps CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON; drops all others, also from the bounding set;
 * sets no_new_privs; allows no core dumps; installs the system call filter. 0, or -errno and err.
 */
int confine_daemon(struct sl_err *err);

/* The same for the attach helper, which keeps CAP_SYS_ADMIN too. */
int confine_helper(struct sl_err *err);

#endif
