/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * refusal_cache.h - keys that Redis refused, and when: a key over its limit costs no round trip, and
 * is retried now and then.
 *
 * The state of a bucket here may be too high: another node refunded something, or an operator reset
 * the bucket. So one request a second for each refused key goes to Redis, at most a thousand a second
 * for all keys. Of a sliding log this node does not have what other nodes used; the refusal of Redis
 * is kept for as long as it holds.
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

struct refusal_cache *refusal_cache_new(void);	/* NULL: no memory */
void refusal_cache_free(struct refusal_cache *refusal_cache);	/* NULL is fine */

/* `cost` was refused at now_ns, and is refused for wait_ns from then on. */
void refusal_cache_note(struct refusal_cache *refusal_cache, u64 key, u64 cost, u64 wait_ns,
			u64 now_ns);
/* How long `cost` is still refused; 0: not, or unknown. */
u64 refusal_cache_wait(const struct refusal_cache *refusal_cache, u64 key, u64 cost, u64 now_ns);
/* Whether a refused key is to be retried now: true once a second for a key, 1000 times for all. */
bool refusal_cache_due(struct refusal_cache *refusal_cache, u64 key, u64 now_ns);
/* Removes the key. */
void refusal_cache_forget(struct refusal_cache *refusal_cache, u64 key);

#endif
