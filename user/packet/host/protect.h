/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * protect.h - traffic that no rule may cut off: connections of login sessions (step 2 of the
 * order), and addresses that are never banned: the peers of these connections, default gateways,
 * resolvers, Redis servers and the other nodes of the cluster. The file's `never_ban` is part of
 * the rules instead.
 *
 * Sessions are looked for whenever rules are put in force: who is in at that moment stays in.
 * Gateways are looked for at start and when a default route changes.
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
	bool sessions_failed;		/* said so already */
	struct gateway_list gateways;
	struct server_list servers;
	struct sl_prefix node[NODE_ADDRESSES_MAX];	/* of the other nodes, each once */
	u32 node_count;
	struct sl_prefix no_ban[SL_SESSIONS_MAX + GATEWAYS_MAX + SERVERS_KEPT +
				NODE_ADDRESSES_MAX];
	size_t no_ban_count;
};

/* Asks the helper; where that fails those of before stay, and it is logged once. */
void protect_find_sessions(struct packet_host *host);

/* True where they are not what they were. */
bool protect_find_gateways(struct packet_host *host);
/* The same of resolvers and Redis servers. Each second. */
bool protect_find_servers(struct packet_host *host);
/* The other nodes of the cluster have these addresses now. */
void protect_set_nodes(struct packet_host *host, const struct sl_prefix *node, size_t count);

/*
 * Whether a prefix has an address that is never cut off, or is within one that has: this host's,
 * of a gateway, a resolver, a Redis server or another node, of who is logged in, loopback.
 */
bool protect_has(const struct packet_host *host, const struct sl_prefix *prefix);
/* The same of what is exempt. */
bool protect_is_exempt(const struct policy *policy, const struct sl_prefix *prefix);
bool protect_meets(const struct sl_prefix *list, size_t count, const struct sl_prefix *prefix);

#endif
