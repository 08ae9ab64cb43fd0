// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* resets.c - see resets.h. The message: {"keys": ["16 hexadecimal digits", ...]}. */
#include "control/replication/resets.h"

#include "control/replication/user_bans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "request/engine/engine.h"
#include "cluster/bus/cluster.h"

#define KIND "resets"
#define KEYS_MAX 1024	/* of a message, which has room for three times as many */
#define AFTER_US 200000 /* a refund reaches the cluster store within 70 ms */
#define VALID_NS (30 * SL_NS_PER_SEC)
#define DIGITS 16

struct resets {
	struct event *timer;
	u32 count;
	u64 key[KEYS_MAX];
};

static void publish_all(struct nodes *nodes)
{
	struct resets *resets = nodes->resets;
	json_t *keys = json_array(), *body = json_pack("{s:o}", "keys", keys);

	for (u32 i = 0; i < resets->count; i++)
		json_array_append_new(keys, json_sprintf("%016llx", resets->key[i]));
	if (body)
		cluster_send(nodes->cluster, KIND, body, VALID_NS);
	resets->count = 0;
}

static void on_resets_timer(evutil_socket_t fd, short what, void *arg)
{
	publish_all(arg);
}

void resets_publish(struct nodes *nodes, const struct decide_reset *reset)
{
	const struct timeval soon = { .tv_usec = AFTER_US };
	struct resets *resets = nodes->resets;

	if (!resets || !reset->count)
		return;
	for (u32 i = 0; i < reset->count; i++)
		user_bans_forget(nodes, reset->key[i]);
	if (resets->count + reset->count > KEYS_MAX)
		publish_all(nodes);
	memcpy(&resets->key[resets->count], reset->key, reset->count * sizeof(*reset->key));
	resets->count += reset->count;
	event_add(resets->timer, &soon);
}

bool reset_key_read(const char *digits, u64 *ret)
{
	if (!digits || strlen(digits) != DIGITS || strspn(digits, "0123456789abcdef") != DIGITS)
		return false;
	*ret = strtoull(digits, NULL, 16);
	return true;
}

static void on_resets(void *arg, const struct cluster_message *message)
{
	const json_t *keys = json_object_get(message->body, "keys");
	size_t count = json_array_size(keys);
	struct nodes *nodes = arg;
	u64 key;

	for (size_t i = 0; i < count && i < KEYS_MAX; i++) {
		if (!reset_key_read(json_string_value(json_array_get(keys, i)), &key))
			continue;
		decide_forget(&nodes->running->requests.engine->ledger, key);
		user_bans_forget(nodes, key);
	}
}

int resets_start(struct nodes *nodes, struct sl_err *err)
{
	if (!nodes->running->requests.engine || !nodes->running->requests.engine->ledger.quotas)
		return 0;
	nodes->resets = calloc(1, sizeof(*nodes->resets));
	if (nodes->resets)
		nodes->resets->timer = evtimer_new(nodes->base, on_resets_timer, nodes);
	if (!nodes->resets || !nodes->resets->timer)
		return sl_err_set(err, ENOMEM, "out of memory");
	cluster_on(nodes->cluster, KIND, on_resets, nodes);
	return 0;
}

void resets_close(struct nodes *nodes)
{
	if (!nodes->resets)
		return;
	if (nodes->resets->timer)
		event_free(nodes->resets->timer);
	free(nodes->resets);
	nodes->resets = NULL;
}
