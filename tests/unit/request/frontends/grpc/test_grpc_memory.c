// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_grpc_memory.c - nghttp2's memory: no block overlaps another one, contents survive realloc(),
 * and what is kept is bounded.
 */
#include "lib/rng.h"
#include "lib/test.h"
#include "request/frontends/grpc/grpc_private.h"

#define BLOCKS 4000

static struct {
	u8 *at;
	size_t size;
	u8 fill;
} block[BLOCKS];

static nghttp2_mem mem;

static size_t random_size(void)
{
	static const size_t edges[] = { 0, 1, 64, 65, 128, 129, 256, 257 };

	return rng_below(2) ? edges[rng_below(8)] : rng_below(rng_below(8) ? 300 : 20000);
}

static void check(u32 i, size_t size)
{
	for (size_t k = 0; k < size; k++)
		assert_int_equal(block[i].at[k], block[i].fill);
}

/* As long as it has memory of its own, its bytes are its own. */
static void fill(u32 i, void *at, size_t size)
{
	assert_non_null(at);
	assert_int_equal((uintptr_t)at % 16, 0);
	block[i].at = at;
	block[i].size = size;
	block[i].fill = (u8)rng_below(256);
	memset(at, block[i].fill, size);
}

static void step(u32 i)
{
	size_t size = random_size(), before = block[i].size;
	void *at;

	check(i, before);
	if (block[i].at && rng_below(2)) {
		mem.free(block[i].at, mem.mem_user_data);
		memset(&block[i], 0, sizeof(block[i]));
	} else if (block[i].at || rng_below(2)) {
		at = mem.realloc(block[i].at, size, mem.mem_user_data);
		block[i].at = at;
		check(i, size < before ? size : before);
		fill(i, at, size);
	} else if (rng_below(2)) {
		at = mem.calloc(size, 3, mem.mem_user_data);
		block[i].at = at;
		block[i].fill = 0;
		check(i, 3 * size);
		fill(i, at, 3 * size);
	} else {
		fill(i, mem.malloc(size, mem.mem_user_data), size);
	}
}

static void free_all(void)
{
	for (u32 i = 0; i < BLOCKS; i++)
		mem.free(block[i].at, mem.mem_user_data);
	memset(block, 0, sizeof(block));
}

TEST(test_contents)
{
	struct grpc_memory memory = { 0 };

	rng_start("grpc_memory");
	mem = grpc_memory_of(&memory);
	for (u32 i = 0; i < 100000; i++)
		step((u32)rng_below(rng_below(2) ? 8 : BLOCKS));
	free_all();
	grpc_memory_end(&memory);
}

TEST(test_kept)
{
	struct grpc_memory memory = { 0 };
	void *at;

	mem = grpc_memory_of(&memory);
	for (u32 size = 0; size < GRPC_SIZES; size++)
		for (u32 i = 0; i < BLOCKS; i++)
			fill(i, mem.realloc(block[i].at, 64U << size, mem.mem_user_data),
			     64U << size);
	free_all();
	for (u32 size = 0; size < GRPC_SIZES; size++) {
		u32 count = 0;

		for (struct grpc_memory_block *kept = memory.kept[size]; kept;
		     kept = *(struct grpc_memory_block **)kept)
			count++;
		assert_int_equal(count, memory.count[size]);
		assert_in_range(count, GRPC_KEPT_MAX, GRPC_KEPT_MAX);
	}
	/* The block that was freed last is the next one. */
	if (GRPC_KEPT_MAX) {
		at = mem.malloc(100, mem.mem_user_data);
		mem.free(at, mem.mem_user_data);
		assert_ptr_equal(mem.malloc(65, mem.mem_user_data), at);
		mem.free(at, mem.mem_user_data);
	}
	grpc_memory_end(&memory);
}

TEST(test_too_much)
{
	struct grpc_memory memory = { 0 };
	void *at;

	mem = grpc_memory_of(&memory);
	assert_null(mem.calloc(SIZE_MAX / 2, 3, mem.mem_user_data));
	assert_null(mem.malloc(SIZE_MAX, mem.mem_user_data));
	assert_null(mem.malloc(SIZE_MAX - 8, mem.mem_user_data));
	at = mem.malloc(1000, mem.mem_user_data);
	assert_null(mem.realloc(at, SIZE_MAX - 8, mem.mem_user_data));
	mem.free(at, mem.mem_user_data);
	mem.free(NULL, mem.mem_user_data);
	grpc_memory_end(&memory);
}

TEST_MAIN
