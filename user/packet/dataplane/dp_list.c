// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dp_list.c - see dp_list.h. A filter bit without an entry costs a packet a
 * look-up; so bits of removed entries stay until dp_list_refilter().
 */
#include "packet/dataplane/dp_list.h"

#include <errno.h>

#define WIDE_V4 16 /* an entry for a shorter prefix is around several /16s */

static void add_bit(u64 *word, u32 bit)
{
	__atomic_fetch_or(word, 1ULL << bit, __ATOMIC_ACQ_REL);
}

void dp_list_filter_add(struct sl_list_filter *filter, const struct sl_list_key *key)
{
	u32 at = key->addr.hi >> 48, words = key->len < WIDE_V4 ? 1U << (WIDE_V4 - key->len) : 1;

	if (key->family == SL_V4) {
		for (u32 i = 0; i < words; i++)
			add_bit(&filter->v4[(at + i) & (SL_LIST_V4_WORDS - 1)], key->len);
	} else if (key->len < SL_LIST_V6_FIRST) {
		add_bit(&filter->wide_v6, key->len);
	} else {
		u32 bit = key->len - SL_LIST_V6_FIRST;

		add_bit(&filter->v6[sl_list_set(key->addr)][bit / 64], bit % 64);
	}
	__atomic_fetch_add(&filter->count, 1, __ATOMIC_RELEASE);
}

int dp_list_put(struct dp *dp, const struct dp_listed *listed, size_t count)
{
	struct sl_list_filter *filter = dp->list_filter;
	int rc = dp->ops->hash_put(dp, DP_LISTED, listed, count);

	for (size_t i = 0; i < count; i++)
		dp_list_filter_add(filter, &listed[i].key);
	dp_epoch_raise(dp);
	return rc;
}

int dp_list_del(struct dp *dp, const struct sl_list_key *key, size_t count)
{
	int rc = dp->ops->hash_del(dp, DP_LISTED, key, count);

	dp_epoch_raise(dp);
	return rc == -ENOENT ? 0 : rc;
}

/* Word by word: packets read meanwhile, and no bit that is needed goes. */
void dp_list_refilter(struct dp *dp, const struct sl_list_filter *wanted)
{
	struct sl_list_filter *filter = dp->list_filter;
	const u64 *from = (const u64 *)wanted;
	u64 *to = (u64 *)filter;

	for (size_t i = 0; i < sizeof(*filter) / sizeof(u64); i++)
		if (to[i] != from[i])
			__atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
}

static void take_term(const struct sl_list_term *term, u64 now_ns, u64 *latest)
{
	if (term->from_ns <= now_ns && term->until_ns > now_ns && term->until_ns > *latest)
		*latest = term->until_ns;
}

void dp_list_covering(struct dp *dp, const struct sl_prefix *source, u64 now_ns, u64 *ret_block,
		      u64 *ret_exempt)
{
	*ret_block = *ret_exempt = 0;
	for (u32 len = 0; dp->list_filter->count && len <= source->len; len++) {
		struct sl_list_key key = { sl_addr_mask(source->addr, len), source->family, len };
		struct sl_listed listed;

		if (dp->ops->hash_get(dp, DP_LISTED, &key, &listed))
			continue;
		take_term(&listed.block, now_ns, ret_block);
		take_term(&listed.exempt, now_ns, ret_exempt);
	}
}
