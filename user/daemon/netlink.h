/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* netlink.h - hears of links, addresses and default routes that come and go. */
#ifndef SLUICE_DAEMON_NETLINK_H
#define SLUICE_DAEMON_NETLINK_H

#include "daemon/daemon.h"

/* From now on: see ifaces_rescan(). 0, or -errno and err. */
int netlink_start(struct daemon *d, struct sl_err *err);

/* Looks at interfaces and addresses now, and compiles anew where that matters. */
void netlink_rescan(struct daemon *d);

#endif
