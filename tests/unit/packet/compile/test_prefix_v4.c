/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * IPv4's part of the prefix index: lists that are just full, dense /16s and /24s, the ends of
 * the address space; against brute force.
 */
#include "prefix_check.h"

/* Every look-up of IPv4 addresses at and around the ends of all prefixes, and of the space. */
static void check_edges(struct prefix_list *list, const struct sl_bitmap *base)
{
	struct prefix_list copy;
	struct prefix_index index;

	build_and_copy(list, base, &index, &copy);
	for (size_t i = 0; i < copy.count; i++) {
		u32 first = copy.entry[i].addr.hi >> 32;
		u32 last = first | (u32)(0xffffffffULL >> copy.entry[i].len);
		u32 at[] = { first - 1,	       first, last, last + 1, first | 0xffff,
			     first & ~0xffffU, 0,     ~0U };

		for (size_t n = 0; n < COUNT(at); n++)
			assert_class(&index, &copy, base, copy.entry[i].dim, SL_V4,
				     (struct sl_addr){ .hi = (u64)at[n] << 32 });
	}
	prefix_index_free(&index);
	prefix_list_free(&copy);
}

static void add_v4(struct prefix_list *list, u32 addr, u32 len, u32 until)
{
	struct prefix_entry entry = {
		.addr.hi = (u64)addr << 32,
		.len = len,
		.fact = PREFIX_BLOCK,
		.until = until,
	};

	assert_int_equal(prefix_list_add(list, &entry), 0);
}

/*
 * A /16 and a /24 with just as many ranges as a list holds, one less and one more; at the
 * beginning and the end of the space, so that ranges end where it ends.
 */
TEST(test_list_sizes)
{
	static const u32 at[] = { 0, 0x0a000000, 0xffff0000, 0xffffff00 };

	for (u32 count = 1; count < 40; count++) {
		for (u32 which = 0; which < 4; which++) {
			struct sl_bitmap base[SL_PDIM_COUNT] = { 0 };
			struct prefix_list list = { 0 };
			u32 step = at[which] & 0xff00 ? 4 : 0x600;

			/* From the middle on, and backwards from the end. */
			for (u32 i = 0; i < count; i++) {
				add_v4(&list, at[which] + 64 + i * step, 32, 1 + i);
				add_v4(&list, (at[which] | 0xff) - i * 2, 32, 1 + i % 3);
			}
			if (count & 1)
				add_v4(&list, 0, 0, 9);
			check_edges(&list, base);
			prefix_list_free(&list);
		}
	}
}

/* Thousands of prefixes in one /16, hundreds in one /24, some wide ones over and under them. */
static void fill_dense(struct prefix_list *list, u32 count)
{
	u32 net = rng_below(3) ? rng() : rng_below(2) ? 0 : ~0U;

	for (u32 i = 0; i < count; i++) {
		u32 kind = rng_below(8);
		struct prefix_entry entry = {
			.addr.hi = (u64)(u32)rng() << 32,
			.dim = rng_below(8) == 0,
			.fact = rng_below(PREFIX_LOCAL + 1),
			.limit = rng_below(3),
			.until = 1 + rng_below(3),
			.len = rng_below(33),
		};

		if (kind < 7) {
			u32 bits = kind < 4 ? 16 : 24;

			entry.addr.hi = (u64)((net & ~0U << (32 - bits)) |
					      (entry.addr.hi >> 32 & ~0U >> bits))
					<< 32;
			entry.len = bits + rng_below(33 - bits);
		}
		assert_int_equal(prefix_list_add(list, &entry), 0);
	}
}

TEST(test_dense)
{
	rng_start("dense");
	for (int run = 0; run < 60; run++) {
		struct sl_bitmap base[SL_PDIM_COUNT] = { 0 };
		struct prefix_list list = { 0 };

		random_base(base);
		fill_dense(&list, 1U << (4 + run % 8));
		check_edges(&list, base);
		check_list(&list, base, 1000);
		prefix_list_free(&list);
	}
}

/* Prefixes of all lengths over all of IPv4, in both dimensions, half of them in one /12. */
TEST(test_replication)
{
	rng_start("spread");
	for (int run = 0; run < 4; run++) {
		struct sl_bitmap base[SL_PDIM_COUNT] = { 0 };
		struct prefix_list list = { 0 };

		random_base(base);
		for (u32 i = 0; i < 20000; i++) {
			struct prefix_entry entry = {
				.addr = random_addr(SL_V4),
				.dim = i % SL_PDIM_COUNT,
				.len = rng_below(4) ? 14 + rng_below(19) : rng_below(33),
				.fact = rng_below(PREFIX_LOCAL + 1),
				.limit = rng_below(3),
				.until = 1 + rng_below(3),
			};

			if (entry.len > 12 && rng_below(2))
				entry.addr.hi = (entry.addr.hi & ~(0xfffULL << 52)) | 0x0a1ULL
											      << 52;
			assert_int_equal(prefix_list_add(&list, &entry), 0);
		}
		check_list(&list, base, 600);
		prefix_list_free(&list);
	}
}

/* The memory of one prefix, one /16, one /24: lists are packed, dense ones cost the documented
 * amount. */
TEST(test_sizes)
{
	struct sl_bitmap base[SL_PDIM_COUNT] = { 0 };
	struct prefix_list list = { 0 };
	struct prefix_index index;
	struct prefix_view view;

	add_v4(&list, 0x0a000000, 8, 1);
	assert_int_equal(prefix_index_build(&list, base, seed, &index, NULL), 0);
	assert_int_equal(index.v4.count, 1);
	prefix_index_free(&index);

	for (u32 i = 0; i < 5; i++)
		add_v4(&list, 0xc0000201 + (i << 16), 32, 1);
	assert_int_equal(prefix_index_build(&list, base, seed, &index, NULL), 0);
	assert_int_equal(index.v4.count, 2);
	prefix_index_free(&index);

	for (u32 i = 0; i < 256; i += 2)
		add_v4(&list, 0xc6336400 + i, 32, 2);
	assert_int_equal(prefix_index_build(&list, base, seed, &index, NULL), 0);
	assert_int_equal(index.v4.count, 2 + 16 + 8);
	view = prefix_index_view(&index, SL_PDIM_SRC, SL_V4);
	assert_int_equal(view.v4_top->entry[0xc633] & SL_V4_KIND, SL_V4_BLOCK);
	prefix_index_free(&index);
	prefix_list_free(&list);
}

TEST_MAIN
