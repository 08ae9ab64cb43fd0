/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * redis_points.h - consistent hashing: maps keys to servers. Pure.
 *
 * Each server has RING_POINTS points on a circle of 2^64, by the hash of its name; a key is at the
 * server of the first point at or after its own hash. Points of a server that is out are skipped,
 * so only its keys move, to the servers of the following points. These are in random order, so the
 * keys spread over all servers. With 512 points a server's part deviates from the mean by a
 * standard deviation of 1 / sqrt(512) = 4.4 %.
 *
 * It depends on the names, not on their order. The names must be spelled the same on all nodes.
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
	bool *out;		  /* per server */
	struct ring_point *point; /* sorted */
};

/* 0, -EINVAL (none, too many), -EEXIST (a name twice), -ENOMEM. */
int ring_new(const char *const *name, u32 servers, struct ring **ret);
void ring_free(struct ring *ring); /* NULL is fine */
/* The server for a key's tag (redis_tag()). If all servers are out, none is skipped. */
u32 ring_find(const struct ring *ring, const char *tag, size_t len);

#endif
