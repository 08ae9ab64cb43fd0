// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * grpc_memory.c - memory for nghttp2, from what it has freed before.
 *
 * A request takes a dozen small blocks. malloc() and free() took a fifth of all that this frontend
 * adds to nghttp2. A worker keeps freed blocks of a few sizes, at most GRPC_KEPT_MAX of each. Its
 * connections are its own, so this takes no lock. With a sanitizer nothing is kept, so that the use
 * of freed memory is found.
 */
#include <stdlib.h>
#include <string.h>

#include "request/frontends/grpc/grpc_private.h"

static const u32 bytes_of[GRPC_SIZES] = { 64, 128, 256 };

/* Before each block. */
struct grpc_memory_block {
	struct grpc_memory_block *next; /* while it is kept */
	u32 size;			/* of bytes_of[]; GRPC_SIZES: another one, never kept */
} __attribute__((aligned(16)));

static void *memory_alloc(size_t bytes, void *arg)
{
	struct grpc_memory *memory = arg;
	struct grpc_memory_block *block;
	u32 size = 0;

	while (size < GRPC_SIZES && bytes > bytes_of[size])
		size++;
	if (size < GRPC_SIZES && memory->kept[size]) {
		block = memory->kept[size];
		memory->kept[size] = block->next;
		memory->count[size]--;
		return block + 1;
	}
	if (size < GRPC_SIZES)
		bytes = bytes_of[size];
	block = bytes < PTRDIFF_MAX - sizeof(*block) ? malloc(sizeof(*block) + bytes) : NULL;
	if (!block)
		return NULL;
	block->size = size;
	return block + 1;
}

static void memory_free(void *at, void *arg)
{
	struct grpc_memory_block *block = at;
	struct grpc_memory *memory = arg;

	if (!at)
		return;
	block--;
	if (block->size == GRPC_SIZES || memory->count[block->size] >= GRPC_KEPT_MAX) {
		free(block);
		return;
	}
	block->next = memory->kept[block->size];
	memory->kept[block->size] = block;
	memory->count[block->size]++;
}

static void *memory_calloc(size_t count, size_t each, void *arg)
{
	size_t bytes;
	void *at;

	if (__builtin_mul_overflow(count, each, &bytes))
		return NULL;
	at = memory_alloc(bytes, arg);
	return at ? memset(at, 0, bytes) : NULL;
}

static void *memory_realloc(void *from, size_t bytes, void *arg)
{
	struct grpc_memory_block *block = from;
	void *at;

	if (from && block[-1].size == GRPC_SIZES && bytes > bytes_of[GRPC_SIZES - 1]) {
		block = bytes < PTRDIFF_MAX - sizeof(*block)
				? realloc(block - 1, sizeof(*block) + bytes)
				: NULL;
		return block ? block + 1 : NULL;
	}
	at = memory_alloc(bytes, arg);
	if (!at || !from)
		return at;
	/* One of them is small, so no more than that is copied. */
	if (block[-1].size < GRPC_SIZES && bytes > bytes_of[block[-1].size])
		bytes = bytes_of[block[-1].size];
	memcpy(at, from, bytes);
	memory_free(from, arg);
	return at;
}

nghttp2_mem grpc_memory_of(struct grpc_memory *memory)
{
	return (nghttp2_mem){
		.mem_user_data = memory,
		.malloc = memory_alloc,
		.free = memory_free,
		.calloc = memory_calloc,
		.realloc = memory_realloc,
	};
}

void grpc_memory_end(struct grpc_memory *memory)
{
	for (u32 size = 0; size < GRPC_SIZES; size++)
		for (struct grpc_memory_block *block; (block = memory->kept[size]);) {
			memory->kept[size] = block->next;
			free(block);
		}
}
