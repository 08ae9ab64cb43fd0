// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dp_bans.c - the daemon's operations on bans, beside the program that makes them.
 *
 * The program puts a ban into the hash first and sets its filter bit after that. The filter is
 * built again by clearing the bits that no ban in the hash needs, and then reading the hash once
 * more: a ban whose bit was set before the clearing is in the hash by then.
 *
 * The program may renew a ban between the look that found it ended and its deletion. That ban is
 * then lost; the source's next drop sets it again, because the bucket state that counts its drops
 * is still over.
 */
#include <errno.h>
#include <stdlib.h>

#include "packet/dataplane/dataplane.h"

static void add_bit(struct sl_ban_filter *filter, const struct sl_ban_key *key)
{
	u32 bit = sl_ban_bit(key->addr, key->len);

	__atomic_fetch_or(&filter->w[bit / 64], 1ULL << (bit % 64), __ATOMIC_ACQ_REL);
}

static int add_bits(struct dp *dp, struct sl_ban_filter *filter)
{
	struct dp_ban *bans;
	size_t count;
	int rc = dp->ops->hash_all(dp, DP_BANS, &bans, &count);

	if (rc)
		return rc;
	for (size_t i = 0; i < count; i++)
		add_bit(filter, &bans[i].key);
	free(bans);
	return 0;
}

int dp_bans_refilter(struct dp *dp)
{
	struct sl_ban_filter *filter = dp->ban_filter;
	struct sl_ban_filter *wanted = calloc(1, sizeof(*wanted));
	int rc;

	if (!wanted)
		return -ENOMEM;
	rc = add_bits(dp, wanted);
	if (rc)
		goto out;
	for (u32 i = 0; i < SL_BAN_FILTER_WORDS; i++)
		__atomic_fetch_and(&filter->w[i], wanted->w[i], __ATOMIC_ACQ_REL);
	rc = add_bits(dp, filter);
out:
	free(wanted);
	return rc;
}

int dp_ban_insert(struct dp *dp, const struct dp_ban *ban)
{
	int rc = dp->ops->hash_put(dp, DP_BANS, ban, 1);

	if (rc)
		return rc;
	add_bit(dp->ban_filter, &ban->key);
	dp_epoch_raise(dp);
	return 0;
}

/* The bit stays until the filter is built again: others may share it. */
int dp_ban_delete(struct dp *dp, const struct sl_ban_key *key)
{
	int rc = dp->ops->hash_del(dp, DP_BANS, key, 1);

	dp_epoch_raise(dp);
	return rc;
}

/* When ban_next_level() of bpf/ban.h is 0 again. */
bool dp_ban_is_over(const struct sl_ban_state *ban, u64 mono_ns)
{
	u64 length = ban->until_ns - ban->since_ns;

	if (mono_ns < ban->until_ns)
		return false;
	return !length || (mono_ns - ban->until_ns) / length > ban->level;
}

int dp_bans_expire(struct dp *dp, u64 mono_ns)
{
	struct dp_ban *bans;
	size_t count;
	int gone = 0, rc = dp->ops->hash_all(dp, DP_BANS, &bans, &count);

	if (rc)
		return rc;
	for (size_t i = 0; i < count; i++)
		if (dp_ban_is_over(&bans[i].state, mono_ns) &&
		    !dp->ops->hash_del(dp, DP_BANS, &bans[i].key, 1))
			gone++;
	free(bans);
	rc = gone ? dp_bans_refilter(dp) : 0;
	return rc ? rc : gone;
}
