// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * share_old.c - answers that come in another order than the store worked on them: each worker has a
 * connection of its own, and so has the cluster's thread.
 *
 * An old one is without what a newer one had. Where the local word alone says what may pass
 * (write_back), taking it for how the bucket stands would let that much through again.
 */
#include "cluster/share_private.h"

/* A store that is so much behind is another one: share_learn.c. */
#define CLOCK_BACK_US 1000000ULL

bool share_is_old(const struct shares *shares, u64 key, u64 now_us)
{
	struct share_entry *e;
	struct share_set *set;
	bool old;

	e = share_find(shares, key, &set);
	if (!e)
		return false;
	old = now_us < e->heard_us && now_us + CLOCK_BACK_US >= e->heard_us;
	share_unlock(&set->lock);
	return old;
}
