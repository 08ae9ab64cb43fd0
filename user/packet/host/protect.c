// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* protect.c - see protect.h. */
#include "packet/host/protect.h"

#include <string.h>

#include "packet/host/host.h"
#include "lib/log.h"

static const char *const resolv_conf[] = {
	"/etc/resolv.conf",
	"/run/systemd/resolve/resolv.conf", /* behind systemd-resolved's 127.0.0.53 */
};

/* Adds it, once. */
static void add_no_ban(struct protect *protect, const struct sl_prefix *prefix)
{
	for (size_t i = 0; i < protect->no_ban_count; i++)
		if (sl_prefix_equal(&protect->no_ban[i], prefix))
			return;
	protect->no_ban[protect->no_ban_count++] = *prefix;
}

/* The gateways, the servers, the other nodes and the sessions' peers. */
static void fill_no_ban(struct protect *protect)
{
	protect->no_ban_count = 0;
	for (u32 i = 0; i < protect->node_count; i++)
		add_no_ban(protect, &protect->node[i]);
	for (u32 i = 0; i < protect->gateways.count; i++)
		add_no_ban(protect, &protect->gateways.gateway[i]);
	for (u32 i = 0; i < protect->servers.count; i++)
		add_no_ban(protect, &protect->servers.server[i]);
	for (u32 i = 0; i < protect->sessions.count; i++) {
		struct sl_prefix peer = session_peer(&protect->sessions.session[i]);

		add_no_ban(protect, &peer);
	}
}

/* Whether both have the same sessions, in any order. */
static bool same_sessions(const struct session_list *a, const struct session_list *b)
{
	u32 same = 0;

	for (u32 i = 0; i < a->count; i++)
		for (u32 k = 0; k < b->count; k++)
			same += !memcmp(&a->session[i], &b->session[k], sizeof(a->session[i]));
	return a->count == b->count && same == a->count;
}

bool protect_find_sessions(struct packet_host *host)
{
	struct protect *protect = &host->protect;
	struct session_list before_list = protect->sessions;
	u32 before = protect->sessions.found;
	struct sl_err err;

	/* Without a helper; that was logged when it died. */
	if (host->helper.fd < 0)
		return false;
	if (helper_sessions(&host->helper, &protect->sessions, &err) < 0) {
		if (!protect->sessions_failed)
			log_error("cannot find login sessions, those of before stay: %s",
				  err.message);
		protect->sessions_failed = true;
		return false;
	}
	protect->sessions_failed = false;
	if (protect->sessions.found > SL_SESSIONS_MAX && protect->sessions.found != before)
		log_warn("%u login sessions; the first %u of them are failsafe",
			 protect->sessions.found, SL_SESSIONS_MAX);
	fill_no_ban(protect);
	return !same_sessions(&before_list, &protect->sessions);
}

bool protect_find_gateways(struct packet_host *host)
{
	struct gateway_list list;
	int r = gateways_read(&list);

	if (r < 0) {
		log_error("cannot read default routes, the gateways of before stay: %s",
			  strerror(-r));
		return false;
	}
	if (list.count == host->protect.gateways.count &&
	    !memcmp(list.gateway, host->protect.gateways.gateway,
		    list.count * sizeof(list.gateway[0])))
		return false;
	host->protect.gateways = list;
	fill_no_ban(&host->protect);
	return true;
}

bool protect_find_servers(struct packet_host *host)
{
	struct server_list *before = &host->protect.servers, list;

	servers_noted(&list);
	for (size_t i = 0; i < sizeof(resolv_conf) / sizeof(resolv_conf[0]); i++)
		servers_add_resolvers(&list, resolv_conf[i]);
	if (servers_equal(&list, before))
		return false;
	*before = list;
	fill_no_ban(&host->protect);
	return true;
}

void protect_set_nodes(struct packet_host *host, const struct sl_prefix *node, size_t count)
{
	struct protect *protect = &host->protect;

	protect->node_count = count < NODE_ADDRESSES_MAX ? (u32)count : NODE_ADDRESSES_MAX;
	for (u32 i = 0; i < protect->node_count; i++)
		protect->node[i] = node[i];
	fill_no_ban(protect);
}

/* ------------------------------------------------------------------ queries */

static bool prefixes_meet(const struct sl_prefix *a, const struct sl_prefix *b)
{
	return sl_prefix_contains(a, b) || sl_prefix_contains(b, a);
}

bool protect_meets(const struct sl_prefix *list, size_t count, const struct sl_prefix *prefix)
{
	for (size_t i = 0; i < count; i++)
		if (prefixes_meet(&list[i], prefix))
			return true;
	return false;
}

/* This machine's own addresses, whatever its interfaces are. */
static bool is_loopback(const struct sl_prefix *prefix)
{
	if (prefix->family == SL_V4)
		return prefix->addr.hi >> 56 == 127 || prefix->addr.hi >> 56 == 0;
	return !prefix->addr.hi && prefix->addr.lo <= 1;
}

bool protect_has(const struct packet_host *host, const struct sl_prefix *prefix)
{
	return is_loopback(prefix) || protect_meets(host->local, host->local_count, prefix) ||
	       protect_meets(host->protect.no_ban, host->protect.no_ban_count, prefix);
}

bool protect_is_exempt(const struct policy *policy, const struct sl_prefix *prefix)
{
	const struct list_def *exempt = &policy->list[LIST_EXEMPT];

	for (size_t i = 0; i < exempt->count; i++)
		if (prefixes_meet(&exempt->entry[i].prefix, prefix))
			return true;
	return false;
}
