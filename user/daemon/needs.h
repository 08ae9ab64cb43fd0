/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * needs.h - what the packet tier needs of this process and kernel, checked before anything is made:
 * the kernel's own refusals are numbers (EPERM, EINVAL, ESRCH) that name no cause.
 */
#ifndef SLUICE_DAEMON_NEEDS_H
#define SLUICE_DAEMON_NEEDS_H

#include "lib/err.h"

/* Root, capabilities, kernel version, BTF. 0; -EPERM or -ENOSYS, with what mends it. */
int needs_check(struct sl_err *err);

#endif
