// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* dp_bpf_hashes.c - the hashes of lists, bans and push-downs, from user space. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "packet/dataplane/dp_bpf.h"
#include "bpf/sluice.skel.h"	/* uses types of ours */

/* The kernel gives whole buckets of its hash: a batch must hold the fullest of them. */
#define BATCH 4096

/* A hash whose entries are read as structs of a key and a value right behind it. */
struct hash {
	int fd;
	size_t key_size, value_size, max;
};

SL_STATIC_ASSERT(sizeof(struct dp_ban) == sizeof(struct sl_ban_key) + sizeof(struct sl_ban_state) &&
		 sizeof(struct dp_listed) == sizeof(struct sl_list_key) + sizeof(struct sl_listed) &&
		 sizeof(struct dp_push_entry) == sizeof(struct sl_push_key) + sizeof(struct sl_push),
		 "a key and a value right behind it");

/* The next batch behind *cursor (at first NULL, `next`'s afterwards) into keys and values. */
static int read_batch(int fd, u32 **cursor, u32 *next, void *keys, void *values, u32 *ret_count,
		      bool *ret_end)
{
	int rc;

	*ret_count = BATCH;
	rc = bpf_map_lookup_batch(fd, *cursor, next, keys, values, ret_count, NULL);
	*ret_end = rc < 0 && errno == ENOENT;
	*cursor = next;
	return rc < 0 && errno != ENOENT ? -errno : 0;
}

/* All entries, an array to be freed. */
static int read_hash(const struct hash *hash, void **ret, size_t *ret_count)
{
	size_t size = hash->key_size + hash->value_size, count = 0;
	char *all = malloc(hash->max * size), *keys = malloc(BATCH * hash->key_size);
	char *values = malloc(BATCH * hash->value_size);
	u32 next = 0, *cursor = NULL, got;
	bool end = false;
	int rc = all && keys && values ? 0 : -ENOMEM;

	while (!rc && !end) {
		rc = read_batch(hash->fd, &cursor, &next, keys, values, &got, &end);
		for (u32 i = 0; !rc && i < got && count < hash->max; i++, count++) {
			memcpy(all + count * size, keys + i * hash->key_size, hash->key_size);
			memcpy(all + count * size + hash->key_size, values + i * hash->value_size,
			       hash->value_size);
		}
	}
	free(keys);
	free(values);
	if (rc) {
		free(all);
		return rc;
	}
	*ret = all;
	*ret_count = count;
	return 0;
}

/* ------------------------------------------------------------------ lists */

static int listed_fd(struct dp *dp)
{
	return bpf_map__fd(((struct dp_bpf *)dp)->skel->maps.listed);
}

int dp_bpf_listed(struct dp *dp, struct dp_listed **ret, size_t *ret_count)
{
	const struct hash hash = { listed_fd(dp), sizeof(struct sl_list_key),
				   sizeof(struct sl_listed), SL_LISTED_MAX };

	return read_hash(&hash, (void **)ret, ret_count);
}

int dp_bpf_list_get(struct dp *dp, const struct sl_list_key *key, struct sl_listed *ret)
{
	return bpf_map_lookup_elem(listed_fd(dp), key, ret) < 0 ? -errno : 0;
}

/* A batch wants keys and values apart. */
static int list_put_batch(int fd, const struct dp_listed *listed, u32 count,
			  struct sl_list_key *key, struct sl_listed *value)
{
	for (u32 i = 0; i < count; i++) {
		key[i] = listed[i].key;
		value[i] = listed[i].listed;
	}
	return bpf_map_update_batch(fd, key, value, &count, NULL) < 0 ? -errno : 0;
}

int dp_bpf_list_put(struct dp *dp, const struct dp_listed *listed, size_t count)
{
	struct sl_list_key *key;
	struct sl_listed *value;
	int fd = listed_fd(dp), rc = 0;

	if (count == 1)
		return bpf_map_update_elem(fd, &listed->key, &listed->listed, BPF_ANY) < 0 ?
			       -errno : 0;
	key = malloc(BATCH * sizeof(*key));
	value = malloc(BATCH * sizeof(*value));
	if (!key || !value)
		rc = -ENOMEM;
	for (size_t i = 0; !rc && i < count; i += BATCH)
		rc = list_put_batch(fd, listed + i, count - i < BATCH ? count - i : BATCH, key,
				    value);
	free(key);
	free(value);
	return rc;
}

int dp_bpf_list_del(struct dp *dp, const struct sl_list_key *key, size_t count)
{
	int fd = listed_fd(dp);

	while (count) {
		u32 done = count < BATCH ? count : BATCH;
		int rc = bpf_map_delete_batch(fd, key, &done, NULL) < 0 ? -errno : 0;

		/* The batch ended at one that was not there. */
		if (rc == -ENOENT)
			done++;
		else if (rc)
			return rc;
		key += done;
		count -= done;
	}
	return 0;
}

struct sl_list_filter *dp_bpf_list_filter(struct dp *dp)
{
	return ((struct dp_bpf *)dp)->list_filter;
}

/* ------------------------------------------------------------------ bans */

static int bans_fd(struct dp *dp)
{
	return bpf_map__fd(((struct dp_bpf *)dp)->skel->maps.bans);
}

int dp_bpf_bans(struct dp *dp, struct dp_ban **ret, size_t *ret_count)
{
	const struct hash hash = { bans_fd(dp), sizeof(struct sl_ban_key),
				   sizeof(struct sl_ban_state), SL_BANS_MAX };

	return read_hash(&hash, (void **)ret, ret_count);
}

int dp_bpf_ban_get(struct dp *dp, const struct sl_ban_key *key, struct sl_ban_state *ret)
{
	return bpf_map_lookup_elem(bans_fd(dp), key, ret) < 0 ? -errno : 0;
}

int dp_bpf_ban_put(struct dp *dp, const struct dp_ban *ban)
{
	return bpf_map_update_elem(bans_fd(dp), &ban->key, &ban->state, BPF_ANY) < 0 ? -errno : 0;
}

int dp_bpf_ban_del(struct dp *dp, const struct sl_ban_key *key)
{
	return bpf_map_delete_elem(bans_fd(dp), key) < 0 ? -errno : 0;
}

struct sl_ban_filter *dp_bpf_ban_filter(struct dp *dp)
{
	return ((struct dp_bpf *)dp)->ban_filter;
}

/* ------------------------------------------------------------------ push-downs */

static int pushes_fd(struct dp *dp)
{
	return bpf_map__fd(((struct dp_bpf *)dp)->skel->maps.pushes);
}

int dp_bpf_pushes(struct dp *dp, struct dp_push_entry **ret, size_t *ret_count)
{
	const struct hash hash = { pushes_fd(dp), sizeof(struct sl_push_key),
				   sizeof(struct sl_push), SL_PUSHES_MAX };

	return read_hash(&hash, (void **)ret, ret_count);
}

int dp_bpf_push_get(struct dp *dp, const struct sl_push_key *key, struct sl_push *ret)
{
	return bpf_map_lookup_elem(pushes_fd(dp), key, ret) < 0 ? -errno : 0;
}

int dp_bpf_push_put(struct dp *dp, const struct dp_push_entry *entry)
{
	return bpf_map_update_elem(pushes_fd(dp), &entry->key, &entry->push, BPF_ANY) < 0 ?
		       -errno : 0;
}

int dp_bpf_push_del(struct dp *dp, const struct sl_push_key *key)
{
	return bpf_map_delete_elem(pushes_fd(dp), key) < 0 ? -errno : 0;
}

struct sl_push_now *dp_bpf_push_now(struct dp *dp)
{
	return ((struct dp_bpf *)dp)->push_now;
}

struct sl_established *dp_bpf_established(struct dp *dp)
{
	return ((struct dp_bpf *)dp)->established;
}
