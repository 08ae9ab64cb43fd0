/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * addresses.h - the addresses of the other nodes, which no ban holds for (packet/host/protect.h).
 *
 * A node has no connection to the others, so each publishes its own addresses, signed as all
 * messages are: every ten seconds, and when a node joins. They are kept for an hour after the last
 * message, so that an unavailable Redis changes nothing. Their number is bounded, since any holder
 * of the secret could publish any address. They are exempt from bans and from nothing else.
 *
 * `addresses` is NULL without a cluster; all of these functions then do nothing.
 */
#ifndef SLUICE_REPLICATION_ADDRESSES_H
#define SLUICE_REPLICATION_ADDRESSES_H

#include <event2/event.h>
#include <jansson.h>

#include "lib/addr.h"
#include "lib/err.h"

struct addresses;
struct cluster;

/* Per node; all others together NODE_ADDRESSES_MAX. More are ignored and logged. */
#define ADDRESSES_OF_A_NODE 32

/* Starts publishing and receiving on this loop. The cluster must not run yet. */
int addresses_start(struct event_base *base, struct cluster *cluster, struct addresses **ret,
		    struct sl_err *err);
void addresses_close(struct addresses *addresses);

/* True if they changed since the last call. */
bool addresses_changed(struct addresses *addresses);
/* The other nodes' addresses, each once: at most NODE_ADDRESSES_MAX. Valid until the next event. */
const struct sl_prefix *addresses_of_nodes(const struct addresses *addresses, size_t *ret_count);

/* The addresses of one node that are in force, for `cluster show`. */
json_t *addresses_to_json(const struct addresses *addresses, const char *node);

#endif
