/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * addresses.h - the addresses of the other nodes, which no ban holds for (packet/host/protect.h).
 *
 * A node has no connection to the others, so each publishes its own addresses, signed as all
 * messages are: every ten seconds, and when a node joins. They are kept for an hour after the last
 * message, so that a Redis that is unavailable changes nothing, and are bounded, since whoever has
 * the secret could publish any. They are exempt from bans and from nothing else.
 *
 * `addresses` is NULL where there is no cluster; all of these are then nothing to do.
 */
#ifndef SLUICE_REPLICATION_ADDRESSES_H
#define SLUICE_REPLICATION_ADDRESSES_H

#include <event2/event.h>
#include <jansson.h>

#include "lib/addr.h"
#include "lib/err.h"

struct addresses;
struct cluster;

/* Of one node; of all others NODE_ADDRESSES_MAX. What is beyond is left out, and logged. */
#define ADDRESSES_OF_A_NODE 32

/* The cluster does not run yet. Publishes and receives from now on, on this loop. */
int addresses_start(struct event_base *base, struct cluster *cluster, struct addresses **ret,
		    struct sl_err *err);
void addresses_close(struct addresses *addresses);

/* Whether they are not what they were when this was asked last. */
bool addresses_changed(struct addresses *addresses);
/* Those of the other nodes, each once: at most NODE_ADDRESSES_MAX. Valid until the next event. */
const struct sl_prefix *addresses_of_nodes(const struct addresses *addresses, size_t *ret_count);

/* What a node has published and is in force, for `cluster show`. */
json_t *addresses_to_json(const struct addresses *addresses, const char *node);

#endif
