/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The prefix index as a whole, both families. The dense cases of IPv4: test_prefix_v4.c. */
#include <errno.h>
#include <time.h>

#include "prefix_check.h"

/* dense: few leading bits, so that prefixes nest deeply; else as they come. */
static struct prefix_entry random_entry(const struct prefix_list *list, bool dense)
{
	struct prefix_entry entry = {
		.family = rng_below(SL_FAMILY_COUNT),
		.dim = rng_below(SL_PDIM_COUNT),
		.fact = rng_below(PREFIX_LOCAL + 1),
		.limit = rng_below(8) * 31,
		.until = 1 + rng_below(5),
	};
	u32 bits = address_bits(entry.family);

	entry.addr = random_addr(entry.family);
	entry.len = rng_below(bits + 1);
	if (dense)
		entry.addr.hi &= 0xf000000fULL << 32;
	if (list->count && rng_below(3) == 0) {
		const struct prefix_entry *other = &list->entry[rng_below(list->count)];

		entry.family = other->family;
		entry.dim = other->dim;
		entry.addr = near_addr(other);
		entry.len = rng_below(2) ? other->len : rng_below(address_bits(entry.family) + 1);
	}
	return entry;
}

TEST(test_random_sets)
{
	rng_start("random_sets");
	for (int run = 0; run < 400; run++) {
		struct sl_bitmap base[SL_PDIM_COUNT] = { 0 };
		struct prefix_list list = { 0 };
		u32 count = rng_below(run < 200 ? 12 : 400);
		bool dense = rng_below(2);

		random_base(base);
		for (u32 i = 0; i < count; i++) {
			struct prefix_entry entry = random_entry(&list, dense);

			assert_int_equal(prefix_list_add(&list, &entry), 0);
		}
		check_list(&list, base, 400);
		prefix_list_free(&list);
	}
}

/*
 * All 129 lengths of one address, and its neighbours: a hash that only added length and
 * address took (x-1)/128 for x/127.
 */
TEST(test_nested_chain)
{
	struct sl_bitmap base[SL_PDIM_COUNT] = { 0 };

	rng_start("nested_chain");
	for (u32 family = 0; family < SL_FAMILY_COUNT; family++) {
		struct sl_addr a = random_addr(family);
		struct prefix_list list = { 0 };

		for (u32 len = 0; len <= address_bits(family); len++) {
			struct prefix_entry entry = {
				.addr = a,
				.family = family,
				.len = len,
				.fact = PREFIX_LIMIT,
				.limit = len,
			};

			assert_int_equal(prefix_list_add(&list, &entry), 0);
		}
		check_list(&list, base, 2000);
		prefix_list_free(&list);
	}
}

TEST(test_empty)
{
	struct sl_bitmap base[SL_PDIM_COUNT] = { { { 5 } }, { { 5 } } };
	struct prefix_list list = { 0 };
	struct prefix_index index;
	struct prefix_view view;

	assert_int_equal(prefix_index_build(&list, base, seed, &index, NULL), 0);
	assert_int_equal(index.pclass_count, 1);
	assert_in_range(index.buckets, 1, 4);
	view = prefix_index_view(&index, SL_PDIM_SRC, SL_V6);
	assert_int_equal(prefix_index_lookup(&view, (struct sl_addr){ ~0ULL, 1 }), 0);
	assert_true(index.pclass[0].limits.w[0] == 5);
	prefix_index_free(&index);
}

TEST(test_too_many_classes)
{
	struct sl_bitmap base[SL_PDIM_COUNT] = { 0 };
	struct prefix_list list = { 0 };
	struct prefix_index index;
	struct sl_err err;

	/* Class 0, and one for each deadline: SL_PCLASS_MAX in all fit. */
	for (u32 i = 0; i < SL_PCLASS_MAX; i++) {
		struct prefix_entry entry = {
			.addr.hi = (u64)i << 32,
			.len = 32,
			.fact = PREFIX_BLOCK,
			.until = 1 + i,
		};

		if (i == SL_PCLASS_MAX - 1) {
			assert_int_equal(prefix_index_build(&list, base, seed, &index, &err), 0);
			assert_int_equal(index.pclass_count, SL_PCLASS_MAX);
			prefix_index_free(&index);
		}
		assert_int_equal(prefix_list_add(&list, &entry), 0);
	}
	assert_int_equal(prefix_index_build(&list, base, seed, &index, &err), -E2BIG);
	assert_non_null(strstr(err.message, "32767"));
	prefix_list_free(&list);
}

/* The digest is the same for any order of the same statements, and only then. */
TEST(test_digest)
{
	struct sl_bitmap base[SL_PDIM_COUNT] = { 0 };
	struct prefix_list list = { 0 }, turned = { 0 };
	struct prefix_index index;
	u64 digest;

	rng_start("digest");
	for (u32 i = 0; i < 200; i++) {
		struct prefix_entry entry = random_entry(&list, true);

		assert_int_equal(prefix_list_add(&list, &entry), 0);
	}
	for (u32 i = 200; i-- > 0;)
		assert_int_equal(prefix_list_add(&turned, &list.entry[i]), 0);
	assert_int_equal(prefix_index_build(&list, base, seed, &index, NULL), 0);
	digest = index.digest;
	prefix_index_free(&index);
	assert_int_equal(prefix_index_build(&turned, base, seed, &index, NULL), 0);
	assert_true(index.digest == digest);
	prefix_index_free(&index);

	base[SL_PDIM_SRC].w[0] = base[SL_PDIM_DST].w[0] = 1ULL << 60;
	assert_int_equal(prefix_index_build(&turned, base, seed, &index, NULL), 0);
	assert_true(index.digest != digest);
	prefix_index_free(&index);
	memset(base, 0, sizeof(base));
	turned.entry[0].limit = 255;
	turned.entry[0].fact = PREFIX_LIMIT;
	assert_int_equal(prefix_index_build(&turned, base, seed, &index, NULL), 0);
	assert_true(index.digest != digest);
	prefix_index_free(&index);
	prefix_list_free(&list);
	prefix_list_free(&turned);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* Buckets that a miss goes on from, in the whole table: the price of half load. */
static double spilled_share(const struct prefix_index *index)
{
	u32 spilled = 0;

	for (u32 i = 0; i < index->buckets; i++)
		spilled += index->bucket[i].e[0].class >> 31;
	return (double)spilled / index->buckets;
}

TEST(test_100k)
{
	struct sl_bitmap base[SL_PDIM_COUNT] = { 0 };

	rng_start("100k");
	for (u32 family = 0; family < SL_FAMILY_COUNT; family++) {
		struct prefix_list list = { 0 };
		struct prefix_index index;
		double start, took;

		for (u32 i = 0; i < 100000; i++) {
			struct prefix_entry entry = {
				.addr = random_addr(family),
				.family = family,
				.len = family == SL_V4 ? 17 + rng_below(16) : 16 + rng_below(113),
				.fact = PREFIX_BLOCK,
				.until = 1 + rng_below(256),
			};

			assert_int_equal(prefix_list_add(&list, &entry), 0);
		}
		start = now_ms();
		assert_int_equal(prefix_index_build(&list, base, seed, &index, NULL), 0);
		took = now_ms() - start;
		fprintf(stderr,
			"# 100k IPv%u prefixes: %.0f ms, %zu lines, %u buckets, %.1f %% spilled\n",
			family == SL_V4 ? 4 : 6, took, index.v4.count, index.buckets,
			spilled_share(&index) * 100);
		/* Measured 20 to 150 ms; the bound leaves room for sanitizers. */
		assert_true(took < 2000);
		assert_true(spilled_share(&index) < 0.08);
		for (u32 i = 0; i < 50; i++) {
			u32 nth = rng_below(list.count);

			assert_class(&index, &list, base, SL_PDIM_SRC, family,
				     near_addr(&list.entry[nth]));
		}
		prefix_index_free(&index);
		prefix_list_free(&list);
	}
}

TEST_MAIN
