// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* addresses.c - see addresses.h. The message: {"addresses": ["192.0.2.7", "2001:db8::7"]}. */
#include "control/replication/addresses.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/bus/cluster.h"
#include "lib/clock.h"
#include "lib/log.h"
#include "lib/servers.h"

#define KIND "addresses"
#define EVERY_S 10
#define VALID_NS (3 * EVERY_S * SL_NS_PER_SEC)
#define KEPT_NS (3600 * SL_NS_PER_SEC) /* after the last message of a node */
#define YAML_TEXT 64		       /* a node's name: at most 63 (docs/cluster.md) */

struct entry {
	char node[YAML_TEXT];
	struct sl_prefix address;
	u64 received_ns;
};

struct addresses {
	struct cluster *cluster;
	struct event *timer;
	struct entry entry[NODE_ADDRESSES_MAX];
	u32 count;
	bool changed, crowded, many;		   /* the last two: already logged */
	struct sl_prefix list[NODE_ADDRESSES_MAX]; /* of them, each once */
	u32 listed;
};

/* An address that other hosts can send from: not loopback, link-local, multicast or 0. */
static bool is_of_a_host(const struct sl_prefix *p)
{
	u64 hi = p->addr.hi;

	if (p->family == SL_V4)
		return p->len == 32 && hi >> 56 && hi >> 56 != 127 && hi >> 56 < 224 &&
		       hi >> 48 != 0xa9fe;
	return p->len == 128 && hi >> 56 != 0xff && hi >> 54 != 0xfe80 >> 6 &&
	       (hi || p->addr.lo >> 32);
}

/* ------------------------------------------------------------------ publishing */

/* An interface's address, where it is one that others may see. */
static bool read_own(const struct sockaddr *from, struct sl_prefix *ret)
{
	char text[NI_MAXHOST];
	const char *reason;

	return from && (from->sa_family == AF_INET || from->sa_family == AF_INET6) &&
	       !getnameinfo(from,
			    from->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						       : sizeof(struct sockaddr_in6),
			    text, sizeof(text), NULL, 0, NI_NUMERICHOST) &&
	       !sl_prefix_parse(text, ret, &reason) && is_of_a_host(ret);
}

static void publish(struct addresses *a)
{
	json_t *list = json_array(), *body = json_pack("{s:o}", "addresses", list);
	struct ifaddrs *all = NULL;
	struct sl_prefix own;
	char text[64];
	u32 count = 0;

	if (getifaddrs(&all) < 0)
		log_warn("cluster: cannot read this host's addresses: %s", strerror(errno));
	for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
		if (!read_own(at->ifa_addr, &own))
			continue;
		if (count++ < ADDRESSES_OF_A_NODE)
			json_array_append_new(
				list, json_string(sl_prefix_format(&own, text, sizeof(text))));
	}
	if (all)
		freeifaddrs(all);
	if (count > ADDRESSES_OF_A_NODE && !a->many)
		log_warn(
			"cluster: this host has %u addresses, only the first %u are published: add "
			"the others to never_ban of the other nodes",
			count, ADDRESSES_OF_A_NODE);
	a->many = count > ADDRESSES_OF_A_NODE;
	if (body)
		cluster_send(a->cluster, KIND, body, VALID_NS);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	publish(arg);
}

static void on_join(void *arg, const char *node)
{
	publish(arg);
}

/* ------------------------------------------------------------------ receiving */

static void drop_entry(struct addresses *a, u32 i)
{
	a->entry[i] = a->entry[--a->count];
	a->changed = true;
}

static struct entry *find_entry(struct addresses *a, const char *node, const struct sl_prefix *p)
{
	for (u32 i = 0; i < a->count; i++)
		if (!strcmp(a->entry[i].node, node) && sl_prefix_equal(&a->entry[i].address, p))
			return &a->entry[i];
	return NULL;
}

static void add_entry(struct addresses *a, const char *node, const struct sl_prefix *p, u64 now_ns)
{
	struct entry *entry = find_entry(a, node, p);

	if (!entry && a->count == NODE_ADDRESSES_MAX) {
		if (!a->crowded)
			log_warn(
				"cluster: the other nodes have more than %u addresses: add the rest to "
				"never_ban of this node",
				NODE_ADDRESSES_MAX);
		a->crowded = true;
		return;
	}
	if (!entry) {
		entry = &a->entry[a->count++];
		*entry = (struct entry){ .address = *p };
		strcpy(entry->node, node);
		a->changed = true;
	}
	entry->received_ns = now_ns;
}

/* A node's list replaces its previous one. Invalid addresses are ignored. */
static void on_message(void *arg, const struct cluster_message *message)
{
	const json_t *list = json_object_get(message->body, "addresses");
	struct addresses *a = arg;
	u64 now_ns = clock_mono_ns();
	size_t count = json_array_size(list);

	if (!json_is_array(list) || strlen(message->node) >= YAML_TEXT)
		return;
	for (size_t i = 0; i < count && i < ADDRESSES_OF_A_NODE; i++) {
		const char *text = json_string_value(json_array_get(list, i)), *reason;
		struct sl_prefix p;

		if (text && !sl_prefix_parse(text, &p, &reason) && is_of_a_host(&p))
			add_entry(a, message->node, &p, now_ns);
	}
	for (u32 i = 0; i < a->count;) {
		const struct entry *entry = &a->entry[i];

		if (entry->received_ns != now_ns && !strcmp(entry->node, message->node))
			drop_entry(a, i);
		else
			i++;
	}
}

/* ------------------------------------------------------------------ lookups */

static bool is_listed(const struct addresses *a, const struct sl_prefix *p)
{
	for (u32 i = 0; i < a->listed; i++)
		if (sl_prefix_equal(&a->list[i], p))
			return true;
	return false;
}

bool addresses_changed(struct addresses *a)
{
	u64 now_ns = clock_mono_ns();

	if (!a)
		return false;
	for (u32 i = 0; i < a->count;) {
		if (now_ns - a->entry[i].received_ns >= KEPT_NS)
			drop_entry(a, i);
		else
			i++;
	}
	if (!a->changed)
		return false;
	a->changed = false;
	a->crowded &= a->count == NODE_ADDRESSES_MAX;
	a->listed = 0;
	for (u32 i = 0; i < a->count; i++)
		if (!is_listed(a, &a->entry[i].address))
			a->list[a->listed++] = a->entry[i].address;
	return true;
}

const struct sl_prefix *addresses_of_nodes(const struct addresses *a, size_t *ret_count)
{
	*ret_count = a ? a->listed : 0;
	return a ? a->list : NULL;
}

json_t *addresses_to_json(const struct addresses *a, const char *node)
{
	json_t *list = json_array();
	char text[64];

	for (u32 i = 0; a && i < a->count; i++) {
		const struct entry *entry = &a->entry[i];

		if (!strcmp(entry->node, node) && is_listed(a, &entry->address))
			json_array_append_new(list, json_string(sl_prefix_format(
							    &entry->address, text, sizeof(text))));
	}
	return list;
}

/* ------------------------------------------------------------------ start and end */

int addresses_start(struct event_base *base, struct cluster *cluster, struct addresses **ret,
		    struct sl_err *err)
{
	const struct timeval period = { .tv_sec = EVERY_S };
	struct addresses *a = *ret = calloc(1, sizeof(*a));

	if (a)
		a->timer = event_new(base, -1, EV_PERSIST, on_timer, a);
	if (!a || !a->timer || event_add(a->timer, &period) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	a->cluster = cluster;
	cluster_on(cluster, KIND, on_message, a);
	cluster_on_join(cluster, on_join, a);
	publish(a);
	return 0;
}

void addresses_close(struct addresses *a)
{
	if (!a)
		return;
	if (a->timer)
		event_free(a->timer);
	free(a);
}
