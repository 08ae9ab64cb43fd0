// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * prefix_hash.c - places the keys of a prefix hash in buckets of one cache line: each key in its
 * first bucket, or if that is full in its second; if both are full other keys are moved (cuckoo
 * hashing).
 *
 * At half load one bucket of four ways in twenty overflows (of two ways, one in twelve). A lookup
 * reads the second bucket only if a flag in the first shows that a key overflowed from it, so a
 * miss touches 1.05 lines (1.08).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "packet/compile/prefix_hash.h"

#define DEPTH_MAX 129 /* nested prefixes: lengths 0..128 */

/* ------------------------------------------------------------------ keys */

int prefix_nodes_add(struct prefix_nodes *nodes, const struct prefix_node *node)
{
	return append(nodes->node, nodes->count, *node);
}

static bool addr_equal(struct sl_addr a, struct sl_addr b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

bool prefix_node_covers(const struct prefix_node *outer, const struct prefix_node *inner)
{
	return outer->len <= inner->len &&
	       addr_equal(outer->addr, sl_addr_mask(inner->addr, outer->len));
}

void prefix_lengths(const struct prefix_node *node, size_t count, struct sl_lengths *ret)
{
	bool used[SL_LENGTHS_MAX] = { false };

	for (size_t i = 0; i < count; i++)
		used[node[i].len] = true;
	for (u32 len = 0; len < SL_LENGTHS_MAX; len++) {
		if (used[len])
			ret->len[ret->count++] = len;
	}
}

/*
 * Masked to one length, sorted addresses stay sorted, so a marker that exists already is the
 * last one of its length.
 */
int prefix_keys_add(const struct sl_lengths *lengths, const struct prefix_node *node, size_t count,
		    struct prefix_nodes *keys)
{
	const struct prefix_node *stack[DEPTH_MAX + 1];
	struct sl_addr last[SL_LENGTHS_MAX];
	bool any[SL_LENGTHS_MAX] = { false };
	u32 depth = 0;

	for (size_t i = 0; i < count; i++) {
		u32 lo = 0, hi = lengths->count;

		while (depth && !prefix_node_covers(stack[depth - 1], &node[i]))
			depth--;
		stack[depth++] = &node[i];
		while (lo < hi) {
			u32 mid = (lo + hi) / 2;
			struct prefix_node key = node[i];
			u32 best = depth;

			if (lengths->len[mid] > node[i].len) {
				hi = mid;
				continue;
			}
			lo = mid + 1;
			key.len = lengths->len[mid];
			key.addr = sl_addr_mask(key.addr, key.len);
			if (any[mid] && addr_equal(last[mid], key.addr))
				continue;
			while (best && stack[best - 1]->len > key.len)
				best--;
			key.class = best ? stack[best - 1]->class : 0;
			if (prefix_nodes_add(keys, &key))
				return -ENOMEM;
			any[mid] = true;
			last[mid] = key.addr;
		}
	}
	return 0;
}

/* ------------------------------------------------------------------ placing */

/* At half load a chain of moves is rarely longer than ten. */
#define MOVES_MAX 500
#define TRIES_MAX 16

/*
 * Finds a way for a key. If both its buckets are full, it replaces another key, which is then
 * placed in turn.
 */
static bool place_key(const struct prefix_placing *p, u32 key)
{
	u64 random = key;

	for (int move = 0; move < MOVES_MAX; move++) {
		struct sl_pfx_hash h = p->hash(p, key);
		u32 *victim, moved;

		for (u32 n = 0; n < 2 * p->ways; n++) {
			u32 *way = &p->owner[h.bucket[n / p->ways] * p->ways + n % p->ways];

			if (!*way) {
				*way = key + 1;
				return true;
			}
		}
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		victim = &p->owner[h.bucket[random >> 63] * p->ways +
				   (random >> 61 & (p->ways - 1))];
		moved = *victim - 1;
		*victim = key + 1;
		key = moved;
	}
	return false;
}

static bool place_all(const struct prefix_placing *p)
{
	for (size_t key = 0; key < p->count; key++) {
		if (!place_key(p, key))
			return false;
	}
	return true;
}

int prefix_hash_place(struct prefix_placing *p)
{
	u64 buckets = p->count * 2 / p->ways + 1; /* half load */

	for (int tries = 0; tries < TRIES_MAX; tries++, buckets += buckets / 4 + 1) {
		if (buckets > ~0U / p->ways)
			return -E2BIG;
		p->buckets = buckets;
		p->owner = calloc(buckets, p->ways * sizeof(*p->owner));
		if (!p->owner)
			return -ENOMEM;
		if (place_all(p))
			return 0;
		free(p->owner);
	}
	return -E2BIG;
}

/* ------------------------------------------------------------------ the prefix index's */

struct pfx_placing {
	struct prefix_placing placing;
	const struct prefix_node *key;
	struct sl_seed seed;
};

static struct sl_pfx_hash hash_key(const struct prefix_placing *placing, u32 key)
{
	const struct pfx_placing *p = (const struct pfx_placing *)placing;
	const struct prefix_node *node = &p->key[key];

	return sl_pfx_hash(node->addr, node->len, node->dim, p->seed, placing->buckets);
}

static void write_buckets(const struct pfx_placing *p, struct sl_pfx_bucket *bucket)
{
	const u32 *owner = p->placing.owner;

	memset(bucket, 0, p->placing.buckets * sizeof(*bucket));
	for (u32 way = 0; way < p->placing.buckets * SL_PFX_WAYS; way++) {
		u32 at = way / SL_PFX_WAYS;
		struct sl_pfx_entry *entry = &bucket[at].e[way % SL_PFX_WAYS];
		struct sl_pfx_hash h;

		if (!owner[way])
			continue;
		h = hash_key(&p->placing, owner[way] - 1);
		entry->tag = h.tag;
		entry->tag2 = h.tag2;
		entry->class |= p->key[owner[way] - 1].class; /* in addition to the flag */
		if (h.bucket[0] != at)
			bucket[h.bucket[0]].e[0].class |= SL_PFX_SPILLED;
	}
}

int prefix_hash_build(const struct prefix_node *key, size_t count, struct sl_seed seed,
		      struct sl_pfx_bucket **ret, u32 *ret_buckets)
{
	struct pfx_placing p = {
		.placing = { .count = count, .ways = SL_PFX_WAYS, .hash = hash_key },
		.key = key,
		.seed = seed,
	};
	struct sl_pfx_bucket *bucket;
	int err = prefix_hash_place(&p.placing);

	if (err)
		return err;
	bucket = aligned_alloc(sizeof(*bucket), p.placing.buckets * sizeof(*bucket));
	if (bucket)
		write_buckets(&p, bucket);
	free(p.placing.owner);
	if (!bucket)
		return -ENOMEM;
	*ret = bucket;
	*ret_buckets = p.placing.buckets;
	return 0;
}
