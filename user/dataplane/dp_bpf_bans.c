// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dp_bpf_bans.c - the hash of bans, from outside of the program.
 */
#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "dataplane/dp_bpf.h"
#include "bpf/sluice.skel.h"	/* uses types of ours */

/* The kernel gives whole buckets of its hash: a batch must hold the fullest of them. */
#define BATCH 4096

static int bans_fd(struct dp *dp)
{
	return bpf_map__fd(((struct dp_bpf *)dp)->skel->maps.bans);
}

/* The next batch behind *cursor (at first NULL, `next`'s afterwards) into key and state. */
static int read_batch(int fd, u32 **cursor, u32 *next, struct sl_ban_key *key,
		      struct sl_ban_state *state, u32 *ret_count, bool *ret_end)
{
	int rc;

	*ret_count = BATCH;
	rc = bpf_map_lookup_batch(fd, *cursor, next, key, state, ret_count, NULL);
	*ret_end = rc < 0 && errno == ENOENT;
	*cursor = next;
	return rc < 0 && errno != ENOENT ? -errno : 0;
}

int dp_bpf_bans(struct dp *dp, struct dp_ban **ret, size_t *ret_count)
{
	struct dp_ban *bans = malloc(SL_BANS_MAX * sizeof(*bans));
	struct sl_ban_key *key = malloc(BATCH * sizeof(*key));
	struct sl_ban_state *state = malloc(BATCH * sizeof(*state));
	u32 next = 0, *cursor = NULL, got;
	bool end = false;
	size_t count = 0;
	int rc = bans && key && state ? 0 : -ENOMEM;

	while (!rc && !end) {
		rc = read_batch(bans_fd(dp), &cursor, &next, key, state, &got, &end);
		for (u32 i = 0; !rc && i < got && count < SL_BANS_MAX; i++)
			bans[count++] = (struct dp_ban){ key[i], state[i] };
	}
	free(key);
	free(state);
	if (rc) {
		free(bans);
		return rc;
	}
	*ret = bans;
	*ret_count = count;
	return 0;
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
