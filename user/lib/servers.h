/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * servers.h - hosts that this one depends on: its resolvers, and the Redis servers that it is
 * connected to, also by name or found by a cluster. Packets with their forged addresses must not
 * cause a ban.
 */
#ifndef SLUICE_LIB_SERVERS_H
#define SLUICE_LIB_SERVERS_H

#include <sys/socket.h>

#include "lib/addr.h"

#define SERVERS_KEPT 64
/* Of all other nodes of a cluster together (control/replication/addresses.h). */
#define NODE_ADDRESSES_MAX 1024

struct server_list {
	struct sl_prefix
		server[SERVERS_KEPT]; /* each once; beyond SERVERS_KEPT they are left out */
	u32 count;
};

/* Adds a server after connecting to it; with 64 the oldest is replaced. Any thread. */
void servers_note(const struct sockaddr *addr);
/* The servers added. Any thread. */
void servers_noted(struct server_list *list);
/* Adds the `nameserver` lines of a resolv.conf; none if it cannot be read. */
void servers_add_resolvers(struct server_list *list, const char *path);
bool servers_equal(const struct server_list *a, const struct server_list *b);

#endif
