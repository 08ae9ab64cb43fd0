/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * refusal_cache.h - keys that Redis refused, with the time: a key over its limit costs no round
 * trip and is retried once a second.
 *
 * The state of a bucket here may be too high after a refund by another node or a reset by an
 * operator. So one request a second for each refused key goes to Redis, at most a thousand a second
 * for all keys. A sliding log here lacks the requests of other nodes; a refusal of Redis is kept
 * until the request may fit. One that counts refusals is retried more often (decide.c).
 *
 * A table of fixed size without locks. A newer key replaces an older one; a key that is not found
 * goes to Redis. The fields of a slot contain a check, so a slot that two threads write at the same
 * time matches no key.
 */
#ifndef SLUICE_HTTP_REFUSAL_CACHE_H
#define SLUICE_HTTP_REFUSAL_CACHE_H

#include <stdbool.h>

#include "sluice/types.h"

struct refusal_cache;

struct refusal_cache *refusal_cache_new(void);		      /* NULL: out of memory */
void refusal_cache_free(struct refusal_cache *refusal_cache); /* NULL is fine */

/*
 * Stores that `cost` was refused at now_ns, for wait_ns from then on. Both here and below the cost
 * includes what is kept from the request for higher priorities: these are not refused with it.
 */
void refusal_cache_note(struct refusal_cache *refusal_cache, u64 key, u64 cost, u64 wait_ns,
			u64 now_ns);
/* The time for which `cost` is still refused; 0: not refused, or unknown. */
u64 refusal_cache_wait(const struct refusal_cache *refusal_cache, u64 key, u64 cost, u64 now_ns);
#define REFUSAL_CACHE_AGAIN_NS 1000000000ULL
/* Whether to retry a refused key now: true once in again_ns for a key, 1000 times a second for
 * all. */
bool refusal_cache_due(struct refusal_cache *refusal_cache, u64 key, u64 again_ns, u64 now_ns);
/* Removes the key. */
void refusal_cache_forget(struct refusal_cache *refusal_cache, u64 key);

#endif
