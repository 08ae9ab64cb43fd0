/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prefix_hash.c - places the IPv6 keys of the prefix index in buckets of four, each in its first
 * bucket where there is room, else in its second, moving others where both are full (cuckoo
 * hashing).
 *
 * At half load one bucket in twenty overflows. A look-up goes on to the second bucket only
 * where the first says that one of its keys had to, so a miss touches 1.05 lines.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "policy/prefix_hash.h"

/* At half load a walk rarely exceeds ten moves. */
#define MOVES_MAX 500
#define TRIES_MAX 16

struct placing {
	const struct prefix_node *key;
	size_t count;
	struct sl_seed seed;
	u32 *owner;		/* of each way: its key's number + 1, 0 free */
	u32 buckets;
};

static struct sl_pfx_hash hash_key(const struct placing *p, u32 key)
{
	const struct prefix_node *node = &p->key[key];

	return sl_pfx_hash(node->addr, node->len, node->dim, p->seed, p->buckets);
}

/*
 * Finds a way for a key. One that finds both its buckets full takes another's place, and
 * that one looks for a way in turn.
 */
static bool place_key(const struct placing *p, u32 key)
{
	u64 random = key;

	for (int move = 0; move < MOVES_MAX; move++) {
		struct sl_pfx_hash h = hash_key(p, key);
		u32 *victim, moved;

		for (int n = 0; n < 2 * SL_PFX_WAYS; n++) {
			u32 *way = &p->owner[h.bucket[n / SL_PFX_WAYS] * SL_PFX_WAYS +
					     n % SL_PFX_WAYS];

			if (!*way) {
				*way = key + 1;
				return true;
			}
		}
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		victim = &p->owner[h.bucket[random >> 63] * SL_PFX_WAYS + (random >> 61 & 3)];
		moved = *victim - 1;
		*victim = key + 1;
		key = moved;
	}
	return false;
}

static bool place_all(const struct placing *p)
{
	for (size_t key = 0; key < p->count; key++) {
		if (!place_key(p, key))
			return false;
	}
	return true;
}

static void write_buckets(const struct placing *p, struct sl_pfx_bucket *bucket)
{
	memset(bucket, 0, p->buckets * sizeof(*bucket));
	for (u32 way = 0; way < p->buckets * SL_PFX_WAYS; way++) {
		u32 at = way / SL_PFX_WAYS;
		struct sl_pfx_entry *entry = &bucket[at].e[way % SL_PFX_WAYS];
		struct sl_pfx_hash h;

		if (!p->owner[way])
			continue;
		h = hash_key(p, p->owner[way] - 1);
		entry->tag = h.tag;
		entry->tag2 = h.tag2;
		entry->class |= p->key[p->owner[way] - 1].class; /* beside the flag */
		if (h.bucket[0] != at)
			bucket[h.bucket[0]].e[0].class |= SL_PFX_SPILLED;
	}
}

int prefix_hash_build(const struct prefix_node *key, size_t count, struct sl_seed seed,
		      struct sl_pfx_bucket **ret, u32 *ret_buckets)
{
	struct placing p = { .key = key, .count = count, .seed = seed };
	u64 buckets = count / 2 + 1;	/* half load */
	struct sl_pfx_bucket *bucket;

	for (int tries = 0; tries < TRIES_MAX; tries++, buckets += buckets / 4 + 1) {
		if (buckets > ~0U / SL_PFX_WAYS)
			return -E2BIG;
		p.buckets = buckets;
		p.owner = calloc(buckets, SL_PFX_WAYS * sizeof(*p.owner));
		if (!p.owner)
			return -ENOMEM;
		if (!place_all(&p)) {
			free(p.owner);
			continue;
		}
		bucket = aligned_alloc(sizeof(*bucket), buckets * sizeof(*bucket));
		if (bucket)
			write_buckets(&p, bucket);
		free(p.owner);
		if (!bucket)
			return -ENOMEM;
		*ret = bucket;
		*ret_buckets = buckets;
		return 0;
	}
	return -E2BIG;
}
