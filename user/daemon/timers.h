/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* timers.h - periodic work: each second, each minute, for the watchdog. */
#ifndef SLUICE_DAEMON_TIMERS_H
#define SLUICE_DAEMON_TIMERS_H

#include "daemon/daemon.h"

int timers_start(struct daemon *d, struct sl_err *err);

#endif
