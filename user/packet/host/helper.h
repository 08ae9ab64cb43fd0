/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * helper.h - the process that attaches and detaches, and finds login sessions.
 *
 * libxdp finds programs by id, which needs CAP_SYS_ADMIN; finding the owner of a socket needs
 * CAP_SYS_PTRACE. The daemon, which parses input of clients, must not have these capabilities. So
 * it runs itself as another process (/proc/self/exe, named HELPER_NAME) before it parses anything
 * but the configuration. The two share only the pins; the helper has four requests, over a socket
 * pair. By exec its stack canary and addresses are its own: what a client learns of the daemon's is
 * no use there.
 *
 * It finishes its request and exits when the daemon does (end of file on the socket). It cannot be
 * started again once privileges are dropped: if it dies, attach and detach are refused with a
 * message until sluiced is restarted; limits stay in force.
 */
#ifndef SLUICE_HOST_HELPER_H
#define SLUICE_HOST_HELPER_H

#include <sys/types.h>

#include "packet/host/sessions.h"
#include "packet/dataplane/dp_attach.h"

struct helper {
	int fd; /* -1: gone */
	pid_t pid;
	u32 sequence;
};

/* Drops capabilities that the helper does not need: 0, or -errno and err. */
typedef int (*helper_confine_fn)(struct sl_err *err);

#define HELPER_NAME "sluiced-attach" /* its argv[0]; argv[1] is pin_dir */

/*
 * Runs it. pin_dir as in dp_bpf_open(), which must have made the pins before the first request.
 */
int helper_start(struct helper *helper, const char *pin_dir, struct sl_err *err);
/*
 * Ends it, and waits for it (some seconds at most, then it is killed): a service manager may wait
 * for the last process of the service, and not see it exit after the daemon. Again, or without one:
 * nothing.
 */
void helper_stop(struct helper *helper);
/* The helper itself, as main() calls it: calls `confine`, then serves. Returns its exit code. */
int helper_main(const char *pin_dir, helper_confine_fn confine);

/* attach_stub(), detach_stub(), dp_purge(), run by the helper. */
int helper_attach(struct helper *helper, const char *ifname, enum attach_mode mode,
		  enum attach_how how, u32 slot, struct dp_attachment *ret, struct sl_err *err);
int helper_detach(struct helper *helper, const char *ifname, struct sl_err *err);
int helper_purge(struct helper *helper, struct sl_err *err);
/* sessions_find(), run by the helper. */
int helper_sessions(struct helper *helper, struct session_list *ret, struct sl_err *err);

#endif
