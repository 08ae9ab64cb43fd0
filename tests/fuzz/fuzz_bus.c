// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a batch of another node, as they come and rightly signed: refused, or a head and
 * messages within their bounds, which are the same when they are written and read again.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "user/cluster/bus/bus_batch.c"

static const struct cluster_keys keys = { .signature = "secret" };

static void add(struct evbuffer *out, bool first, const json_t *message)
{
	const json_t *body;
	const char *kind;
	char *text;
	u64 until_us;

	if (!bus_message_read(message, &kind, &until_us, &body))
		return;
	text = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);
	assert(text);
	bus_batch_add(out, first, "kind", until_us, text);
	free(text);
}

static void again(const struct bus_head *head, const json_t *messages)
{
	struct evbuffer *out = evbuffer_new();
	struct bus_head back;
	json_t *list = NULL;
	u8 signature[BUS_SIGNATURE];
	size_t len;

	/* What another wrote may have any version; ours has none that ends a string. */
	back = *head;
	strcpy(back.version, "1");
	bus_batch_begin(out, &back);
	if (json_array_size(messages))
		add(out, true, json_array_get(messages, 0));
	bus_batch_end(out);
	len = evbuffer_get_length(out);
	assert(!bus_sign(&keys, "p:", evbuffer_pullup(out, -1), len, signature));
	assert(bus_batch_open(&keys, "p:", (char *)evbuffer_pullup(out, -1), len, signature,
			      sizeof(signature), &back, &list) == BUS_GOOD);
	assert(back.number == head->number && back.boot_us == head->boot_us);
	assert(!strcmp(back.node, head->node));
	json_decref(list);
	evbuffer_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u8 signature[BUS_SIGNATURE] = { 0 };
	json_t *messages = NULL;
	struct bus_head head;

	assert(bus_batch_open(&keys, "p:", (const char *)data, size, signature, sizeof(signature),
			      &head, &messages) == BUS_FORGED);
	assert(!bus_sign(&keys, "p:", data, size, signature));
	if (bus_batch_open(&keys, "p:", (const char *)data, size, signature, sizeof(signature),
			   &head, &messages) != BUS_GOOD)
		return 0;
	assert(*head.node && strlen(head.node) <= CLUSTER_NODE_MAX);
	assert(json_array_size(messages) <= BUS_MESSAGES_MAX);
	again(&head, messages);
	json_decref(messages);
	return 0;
}
