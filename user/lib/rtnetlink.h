/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rtnetlink.h - one request to the kernel about links, routes or filters, and its replies. */
#ifndef SLUICE_LIB_RTNETLINK_H
#define SLUICE_LIB_RTNETLINK_H

#include <linux/rtnetlink.h>

/* 0, or -errno: it ends the request. */
typedef int (*rtnetlink_each)(const struct nlmsghdr *message, void *arg);

/*
 * Sends the request in the current network namespace, and calls each() with every message of the
 * reply: all up to the end of a dump (NLM_F_DUMP), else one. 0 or -errno; -EAGAIN after 5 s
 * without a message.
 */
int rtnetlink_request(const struct nlmsghdr *request, rtnetlink_each each, void *arg);

#endif
