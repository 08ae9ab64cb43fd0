/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prefix_check.h - the prefix index against brute force: walk all statements, gather those
 * whose prefix holds the address. Addresses are taken inside, just before and just after
 * prefixes.
 */
#ifndef SLUICE_TESTS_PREFIX_CHECK_H
#define SLUICE_TESTS_PREFIX_CHECK_H
#include "lib/test.h"
#include "packet/compile/prefix_index.h"
#include "lib/rng.h"

static const struct sl_seed seed = { 0x0123456789abcdefULL, 0xfedcba9876543210ULL };

static inline u32 address_bits(u32 family)
{
	return family == SL_V4 ? 32 : 128;
}

/* Bit by bit, unlike sl_addr_mask(). */
static inline bool addr_bit(struct sl_addr a, u32 n)
{
	return (n < 64 ? a.hi >> (63 - n) : a.lo >> (127 - n)) & 1;
}

static inline bool is_in(const struct prefix_entry *entry, struct sl_addr a)
{
	for (u32 n = 0; n < entry->len; n++) {
		if (addr_bit(entry->addr, n) != addr_bit(a, n))
			return false;
	}
	return true;
}

static inline void brute_force(const struct prefix_list *list, const struct sl_bitmap *base,
			       u32 dim, u32 family, struct sl_addr a, struct sl_pclass *ret)
{
	*ret = (struct sl_pclass){ .limits = base[dim] };
	for (size_t i = 0; i < list->count; i++) {
		const struct prefix_entry *entry = &list->entry[i];
		u64 *until = entry->fact == PREFIX_BLOCK	? &ret->block_until
			     : entry->fact == PREFIX_WIDE_BLOCK ? &ret->wide_block_until
			     : entry->fact == PREFIX_EXEMPT	? &ret->exempt_until
								: NULL;

		if (entry->dim != dim || entry->family != family || !is_in(entry, a))
			continue;
		if (entry->fact == PREFIX_LIMIT)
			ret->limits.w[entry->limit >> 6] |= 1ULL << (entry->limit & 63);
		if (entry->fact == PREFIX_LOCAL)
			ret->flags |= SL_PC_LOCAL;
		if (entry->fact == PREFIX_NO_BAN)
			ret->flags |= SL_PC_NO_BAN;
		if (until && *until < entry->until)
			*until = entry->until;
	}
}

static inline struct sl_addr random_addr(u32 family)
{
	struct sl_addr a = { rng(), rng() };

	return family == SL_V4 ? sl_addr_mask(a, 32) : a;
}

/* An address near a prefix: inside it, or off by one in its last bits. */
static inline struct sl_addr near_addr(const struct prefix_entry *entry)
{
	u32 bits = address_bits(entry->family);
	struct sl_addr a = entry->addr, host = random_addr(entry->family);
	u32 flip = rng_below(bits);

	if (entry->len < 64) {
		a.hi |= host.hi & (~0ULL >> entry->len);
		a.lo = host.lo;
	} else if (entry->len < 128) {
		a.lo |= host.lo & (~0ULL >> (entry->len - 64));
	}
	if (rng_below(2))
		return a;
	if (flip < 64)
		a.hi ^= SL_BIT(63 - flip);
	else
		a.lo ^= SL_BIT(127 - flip);
	return a;
}

static inline void assert_class(const struct prefix_index *index, const struct prefix_list *list,
				const struct sl_bitmap *base, u32 dim, u32 family, struct sl_addr a)
{
	struct prefix_view view = prefix_index_view(index, dim, family);
	u32 class = prefix_index_lookup(&view, a);
	struct sl_pclass want;

	brute_force(list, base, dim, family, a, &want);
	assert_in_range(class, 0, index->pclass_count - 1);
	if (memcmp(&index->pclass[class], &want, sizeof(want)))
		fail_msg("dim %u family %u addr %016llx%016llx: class %u", dim, family, a.hi, a.lo,
			 class);
}

/*
 * Before the index is built its list is in the given order; building may add to it, so the
 * brute force runs over a copy.
 */
static inline void build_and_copy(struct prefix_list *list, const struct sl_bitmap *base,
				  struct prefix_index *ret, struct prefix_list *ret_copy)
{
	struct sl_err err;

	*ret_copy = (struct prefix_list){ 0 };
	for (size_t i = 0; i < list->count; i++)
		assert_int_equal(prefix_list_add(ret_copy, &list->entry[i]), 0);
	assert_int_equal(prefix_index_build(list, base, seed, ret, &err), 0);
}

static inline void check_list(struct prefix_list *list, const struct sl_bitmap *base, u32 lookups)
{
	struct prefix_list copy;
	struct prefix_index index;

	build_and_copy(list, base, &index, &copy);
	for (u32 i = 0; i < lookups; i++) {
		u32 dim = rng_below(SL_PDIM_COUNT), family = rng_below(SL_FAMILY_COUNT);
		struct sl_addr a = random_addr(family);

		/* A dimension in no statement is not looked up; class 0 has `src`'s base. */
		if (copy.count && rng_below(8)) {
			const struct prefix_entry *entry = &copy.entry[rng_below(copy.count)];

			dim = entry->dim;
			family = entry->family;
			a = near_addr(entry);
		}
		assert_class(&index, &copy, base, dim, family, a);
	}
	prefix_index_free(&index);
	prefix_list_free(&copy);
}

static inline void random_base(struct sl_bitmap *base)
{
	for (u32 dim = 0; dim < SL_PDIM_COUNT; dim++)
		base[dim].w[1] = SL_BIT(rng_below(4));
}

#endif
