// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sim_hash.c - see sim_hash.h. A place never used ends a search; a deleted one does not. */
#include "packet/dataplane/sim_hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum place { PLACE_FREE, PLACE_USED, PLACE_DELETED };

#define KEY_SIZE sizeof(struct sl_list_key)

struct sim_hash {
	char *entry; /* `places` of them */
	u8 *place;   /* enum place, of each */
	size_t size, places, count;
};

struct sim_hash *sim_hash_new(size_t size, size_t most)
{
	struct sim_hash *hash = calloc(1, sizeof(*hash));

	if (!hash)
		return NULL;
	*hash = (struct sim_hash){ .size = size, .places = 2 * most };
	hash->entry = calloc(hash->places, size);
	hash->place = calloc(hash->places, 1);
	if (hash->entry && hash->place)
		return hash;
	sim_hash_free(hash);
	return NULL;
}

void sim_hash_free(struct sim_hash *hash)
{
	if (!hash)
		return;
	free(hash->entry);
	free(hash->place);
	free(hash);
}

/* Where the key is, or `places`. *ret_free: a place for it, or `places`. */
static size_t find(const struct sim_hash *hash, const struct sl_list_key *key, size_t *ret_free)
{
	u64 at =
		(key->addr.hi ^ sl_rotl(key->addr.lo, 17) ^ key->len) * 0x9e3779b97f4a7c15ULL >> 32;

	*ret_free = hash->places;
	for (size_t i = 0; i < hash->places; i++) {
		size_t here = (at + i) % hash->places;

		if (hash->place[here] == PLACE_USED &&
		    !memcmp(hash->entry + here * hash->size, key, KEY_SIZE))
			return here;
		if (hash->place[here] != PLACE_USED && *ret_free == hash->places)
			*ret_free = here;
		if (hash->place[here] == PLACE_FREE)
			break;
	}
	return hash->places;
}

void *sim_hash_get(const struct sim_hash *hash, const void *key)
{
	size_t free, at = find(hash, key, &free);

	return at < hash->places ? hash->entry + at * hash->size + KEY_SIZE : NULL;
}

int sim_hash_put(struct sim_hash *hash, const void *key, const void *value)
{
	size_t free, at = find(hash, key, &free);

	if (at == hash->places && (free == hash->places || hash->count == hash->places / 2))
		return -E2BIG;
	hash->count += at == hash->places;
	at = at < hash->places ? at : free;
	memcpy(hash->entry + at * hash->size, key, KEY_SIZE);
	memcpy(hash->entry + at * hash->size + KEY_SIZE, value, hash->size - KEY_SIZE);
	hash->place[at] = PLACE_USED;
	return 0;
}

int sim_hash_del(struct sim_hash *hash, const void *key)
{
	size_t free, at = find(hash, key, &free);

	if (at == hash->places)
		return -ENOENT;
	hash->place[at] = PLACE_DELETED;
	hash->count--;
	return 0;
}

int sim_hash_all(const struct sim_hash *hash, void *ret, size_t *ret_count)
{
	char *all = calloc(hash->count + 1, hash->size);
	size_t count = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; count < hash->count; i++)
		if (hash->place[i] == PLACE_USED)
			memcpy(all + count++ * hash->size, hash->entry + i * hash->size,
			       hash->size);
	memcpy(ret, &all, sizeof(all));
	*ret_count = count;
	return 0;
}
