// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* redis_points.c - see redis_points.h. */
#include "cluster/redis/redis_points.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sluice/key.h"

/* Not a keyed hash: it only has to be even, as clients cannot choose tags (cluster_store.h). */
static u64 hash(const char *text, size_t len, u64 number)
{
	struct sl_sip sip;
	u64 word;

	sl_sip_start(&sip, (struct sl_seed){ number, 0 });
	for (size_t at = 0; at < len; at += sizeof(word)) {
		word = 0;
		for (size_t i = 0; i < sizeof(word) && at + i < len; i++)
			word |= (u64)(u8)text[at + i] << (8 * i);
		sl_sip_add(&sip, word);
	}
	sl_sip_add(&sip, len);
	return sl_sip_finish(&sip);
}

static int by_place(const void *left, const void *right)
{
	const struct ring_point *a = left, *b = right;

	return (a->at > b->at) - (a->at < b->at);
}

int ring_new(const char *const *name, u32 servers, struct ring **ret)
{
	struct ring *ring;

	if (!servers || servers > RING_SERVERS_MAX)
		return -EINVAL;
	for (u32 i = 0; i < servers; i++)
		for (u32 k = 0; k < i; k++)
			if (!strcmp(name[i], name[k]))
				return -EEXIST;
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	ring->out = calloc(servers, sizeof(*ring->out));
	ring->point = calloc(servers, RING_POINTS * sizeof(*ring->point));
	if (!ring->out || !ring->point) {
		ring_free(ring);
		return -ENOMEM;
	}
	ring->servers = servers;
	for (u32 i = 0; i < servers; i++)
		/* From 1: 0 is for keys. */
		for (u32 k = 1; k <= RING_POINTS; k++)
			ring->point[ring->points++] =
				(struct ring_point){ hash(name[i], strlen(name[i]), k), i };
	qsort(ring->point, ring->points, sizeof(*ring->point), by_place);
	*ret = ring;
	return 0;
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	free(ring->out);
	free(ring->point);
	free(ring);
}

u32 ring_find(const struct ring *ring, const char *tag, size_t len)
{
	u64 at = hash(tag, len, 0);
	u32 low = 0, high = ring->points, point;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (ring->point[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	for (u32 i = 0; i < ring->points; i++) {
		point = (low + i) % ring->points;
		if (!ring->out[ring->point[point].server])
			return ring->point[point].server;
	}
	return ring->point[low % ring->points].server;
}
