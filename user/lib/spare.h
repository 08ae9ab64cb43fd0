/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * spare.h - a large block that is freed, and soon needed again in the same size, is kept: fresh
 * pages cost more than what is written into them. For one thread.
 */
#ifndef SLUICE_LIB_SPARE_H
#define SLUICE_LIB_SPARE_H

#include <stddef.h>
#include <stdlib.h>

struct spare {
	void *block;
	size_t size;
};

/* Of any content, aligned to a cache line; for spare_put(), or free(). NULL: no memory. */
static inline void *spare_take(struct spare *spare, size_t size)
{
	void *block = spare->block;

	if (!block || spare->size != size)
		return aligned_alloc(64, (size + 63) & ~(size_t)63);
	spare->block = NULL;
	return block;
}

/* Takes a block back, and frees the one that was kept. NULL is fine. */
static inline void spare_put(struct spare *spare, void *block, size_t size)
{
	if (!block)
		return;
	free(spare->block);
	*spare = (struct spare){ block, size };
}

#endif
