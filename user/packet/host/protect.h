/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * protect.h - traffic that no rule may cut off: connections of login sessions (step 2 of the
 * order), and addresses that are never banned: the peers of these connections, default gateways,
 * resolvers, Redis servers and the other nodes of the cluster. The file's `never_ban` is part of
 * the rules instead.
 *
 * Sessions are read whenever rules are put in force: those open at that moment stay open. Gateways
 * are read at start and when a default route changes.
 */
#ifndef SLUICE_HOST_PROTECT_H
#define SLUICE_HOST_PROTECT_H

#include "config/policy.h"
#include "packet/host/gateways.h"
#include "packet/host/sessions.h"
#include "lib/servers.h"

struct packet_host;

struct protect {
	struct session_list sessions;
	bool sessions_failed; /* logged already */
	struct gateway_list gateways;
	struct server_list servers;
	struct sl_prefix node[NODE_ADDRESSES_MAX]; /* of the other nodes, each once */
	u32 node_count;
	struct sl_prefix no_ban[SL_SESSIONS_MAX + GATEWAYS_MAX + SERVERS_KEPT + NODE_ADDRESSES_MAX];
	size_t no_ban_count;
};

/*
 * Requests them from the helper; if that fails the previous ones stay, and it is logged once. True
 * if there are others than before. It takes milliseconds: every process is looked at.
 */
bool protect_find_sessions(struct packet_host *host);

/* True if they have changed. */
bool protect_find_gateways(struct packet_host *host);
/* The same for resolvers and Redis servers. Called each second. */
bool protect_find_servers(struct packet_host *host);
/* The other nodes of the cluster have these addresses now. */
void protect_set_nodes(struct packet_host *host, const struct sl_prefix *node, size_t count);

/*
 * Whether a prefix contains, or is within, an address or prefix that is never cut off: of this
 * host, loopback, gateways, resolvers, Redis servers, other nodes and peers of login sessions.
 */
bool protect_has(const struct packet_host *host, const struct sl_prefix *prefix);
/* The same for exempt prefixes. */
bool protect_is_exempt(const struct policy *policy, const struct sl_prefix *prefix);
bool protect_meets(const struct sl_prefix *list, size_t count, const struct sl_prefix *prefix);

#endif
