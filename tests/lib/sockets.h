/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sockets.h - sockets that the program under test finds when it asks the kernel: a list for
 * dp_sim, real ones with any addresses for BPF, in a network namespace where all are local.
 */
#ifndef TESTS_LIB_SOCKETS_H
#define TESTS_LIB_SOCKETS_H

#include "packet/dataplane/dp_sim.h"
#include "lib/target.h"

#define SOCKETS_MAX 8

struct socket_spec {
	enum socket_state state;
	bool udp;
	const char *local, *remote; /* SOCKET_BOUND has no remote one */
	u16 local_port, remote_port;
};

/* Moves the process to a namespace of its own, where it is root; before the first target. */
void sockets_prepare(void);
/* Those of `spec` and no others; the test fails where they cannot be had. */
void sockets_open(struct target *t, const struct socket_spec *spec, u32 count);
/* The next sequence number that the connected TCP socket of spec[index] expects. */
u32 sockets_next_seq(struct target *t, u32 index);
/* Before a test that uses sockets ends. */
void sockets_close(struct target *t);

#endif
