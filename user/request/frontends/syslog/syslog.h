/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * syslog.h - the syslog frontend: log lines that are reports. It contains lines and
 * datagrams, does not depend on other frontends, and may use request/server, request/engine and
 * request/rules.
 */
#ifndef SLUICE_SYSLOG_H
#define SLUICE_SYSLOG_H

#include "request/server/worker.h"

extern const struct frontend frontend_syslog;

#endif
