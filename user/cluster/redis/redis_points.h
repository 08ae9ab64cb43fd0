/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * redis_points.h - consistent hashing: which of several servers has a key. Pure.
 *
 * Each server has RING_POINTS points on a circle of 2^64, by the hash of its name; a key is at the
 * server of the first point at or after its own hash. A server that is out is passed over, so its
 * keys, and no others, go to the servers of the points behind its own: to all of them, as these
 * stand in no order. With 512 points a server's share is off the mean by a standard deviation of
 * 1 / sqrt(512) = 4.4 %.
 *
 * It depends on names, not on the order they are written in. All nodes have to write them alike.
 */
#ifndef SLUICE_REDIS_POINTS_H
#define SLUICE_REDIS_POINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "sluice/types.h"

#define RING_POINTS 512
#define RING_SERVERS_MAX 256

struct ring_point {
	u64 at;
	u32 server;
};

struct ring {
	u32 servers, points;
	bool *out;			/* of each server */
	struct ring_point *point;	/* in order */
};

/* 0, -EINVAL (none, too many), -EEXIST (a name twice), -ENOMEM. */
int ring_new(const char *const *name, u32 servers, struct ring **ret);
void ring_free(struct ring *ring);		/* NULL is fine */
/* The server of what of a key decides (redis_tag()). Where all are out: whose it would be were none. */
u32 ring_find(const struct ring *ring, const char *tag, size_t len);

#endif
