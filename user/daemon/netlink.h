/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* netlink.h - watches links, addresses and default routes of this host. */
#ifndef SLUICE_DAEMON_NETLINK_H
#define SLUICE_DAEMON_NETLINK_H

#include "daemon/daemon.h"

/* Starts watching: see ifaces_rescan(). 0, or -errno and err. */
int netlink_start(struct daemon *d, struct sl_err *err);

/* Scans interfaces and addresses now, and recompiles the rules if they depend on a change. */
void netlink_rescan(struct daemon *d);

#endif
