// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* dp_bpf_hashes.c - the hashes of lists, bans and push-downs, from user space. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "packet/dataplane/dp_bpf.h"
#include "bpf/sluice.skel.h" /* uses types of ours */

/* The kernel gives whole buckets of its hash: a batch must hold the fullest of them. */
#define BATCH 4096

#define KEY_SIZE sizeof(struct sl_list_key)

/* Entries are structs of a key and a value right behind it. */
static const struct {
	size_t value_size, max;
} hashes[DP_HASH_COUNT] = {
	[DP_LISTED] = { sizeof(struct sl_listed), SL_LISTED_MAX },
	[DP_BANS] = { sizeof(struct sl_ban_state), SL_BANS_MAX },
	[DP_PUSHES] = { sizeof(struct sl_push), SL_PUSHES_MAX },
};

SL_STATIC_ASSERT(
	sizeof(struct sl_ban_key) == KEY_SIZE && sizeof(struct sl_push_key) == KEY_SIZE &&
		sizeof(struct dp_ban) == sizeof(struct sl_ban_key) + sizeof(struct sl_ban_state) &&
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

static int fd_of(struct dp *dp, enum dp_hash which)
{
	struct sluice_bpf *skel = ((struct dp_bpf *)dp)->skel;

	return bpf_map__fd(which == DP_LISTED ? skel->maps.listed
			   : which == DP_BANS ? skel->maps.bans
					      : skel->maps.pushes);
}

int dp_bpf_hash_all(struct dp *dp, enum dp_hash which, void *ret, size_t *ret_count)
{
	size_t value_size = hashes[which].value_size, size = KEY_SIZE + value_size, count = 0;
	char *all = malloc(hashes[which].max * size), *keys = malloc(BATCH * KEY_SIZE);
	char *values = malloc(BATCH * value_size);
	u32 next = 0, *cursor = NULL, got;
	bool end = false;
	int rc = all && keys && values ? 0 : -ENOMEM;

	while (!rc && !end) {
		rc = read_batch(fd_of(dp, which), &cursor, &next, keys, values, &got, &end);
		for (u32 i = 0; !rc && i < got && count < hashes[which].max; i++, count++) {
			memcpy(all + count * size, keys + i * KEY_SIZE, KEY_SIZE);
			memcpy(all + count * size + KEY_SIZE, values + i * value_size, value_size);
		}
	}
	free(keys);
	free(values);
	if (rc) {
		free(all);
		return rc;
	}
	memcpy(ret, &all, sizeof(all));
	*ret_count = count;
	return 0;
}

int dp_bpf_hash_get(struct dp *dp, enum dp_hash which, const void *key, void *ret)
{
	return bpf_map_lookup_elem(fd_of(dp, which), key, ret) < 0 ? -errno : 0;
}

/* A batch wants keys and values apart. */
static int put_batch(int fd, const char *entry, size_t value_size, u32 count, char *keys,
		     char *values)
{
	for (u32 i = 0; i < count; i++, entry += KEY_SIZE + value_size) {
		memcpy(keys + i * KEY_SIZE, entry, KEY_SIZE);
		memcpy(values + i * value_size, entry + KEY_SIZE, value_size);
	}
	return bpf_map_update_batch(fd, keys, values, &count, NULL) < 0 ? -errno : 0;
}

int dp_bpf_hash_put(struct dp *dp, enum dp_hash which, const void *entries, size_t count)
{
	size_t value_size = hashes[which].value_size;
	const char *entry = entries;
	int fd = fd_of(dp, which), rc = 0;
	char *keys, *values;

	if (count == 1)
		return bpf_map_update_elem(fd, entry, entry + KEY_SIZE, BPF_ANY) < 0 ? -errno : 0;
	keys = malloc(BATCH * KEY_SIZE);
	values = malloc(BATCH * value_size);
	if (!keys || !values)
		rc = -ENOMEM;
	for (size_t i = 0; !rc && i < count; i += BATCH)
		rc = put_batch(fd, entry + i * (KEY_SIZE + value_size), value_size,
			       count - i < BATCH ? count - i : BATCH, keys, values);
	free(keys);
	free(values);
	return rc;
}

int dp_bpf_hash_del(struct dp *dp, enum dp_hash which, const void *keys, size_t count)
{
	const struct sl_list_key *key = keys;
	int fd = fd_of(dp, which);

	if (count == 1)
		return bpf_map_delete_elem(fd, key) < 0 ? -errno : 0;
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
