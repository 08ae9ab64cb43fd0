/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * refusal_cache.h - which keys the store of all nodes refused, and when: so that one who is over
 * his limit costs no round trip, and is asked for again all the same.
 *
 * What this node knows of a bucket may be too much: another node gave something back, or an
 * operator reset it. So of each key that is refused here one call a second goes to the store, of
 * all keys a thousand. Of a sliding log this node cannot know what others have used; for it the
 * store's own answer is kept, as long as it holds.
 *
 * A table of a fixed size without locks, where a newer key takes an older one's place: whoever is
 * not found is asked for. The words of a place are checked against each other, so one that two
 * threads write at once is of nobody.
 */
#ifndef SLUICE_HTTP_REFUSAL_CACHE_H
#define SLUICE_HTTP_REFUSAL_CACHE_H

#include <stdbool.h>

#include "sluice/types.h"

struct refusal_cache;

struct refusal_cache *refusal_cache_new(void);	/* NULL: no memory */
void refusal_cache_free(struct refusal_cache *refusal_cache);	/* NULL is fine */

/* `cost` was refused at now_ns, and so will it be for wait_ns. */
void refusal_cache_note(struct refusal_cache *refusal_cache, u64 key, u64 cost, u64 wait_ns,
			u64 now_ns);
/* How long `cost` is refused yet, as far as is known; 0: not. */
u64 refusal_cache_wait(const struct refusal_cache *refusal_cache, u64 key, u64 cost, u64 now_ns);
/* Whether one that is refused here is to be asked for now; true once a second, of all keys 1000 times. */
bool refusal_cache_due(struct refusal_cache *refusal_cache, u64 key, u64 now_ns);
/* Nothing is known of the key any more. */
void refusal_cache_forget(struct refusal_cache *refusal_cache, u64 key);

#endif
