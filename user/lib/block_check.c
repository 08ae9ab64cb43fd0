// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* block_check.c - see block_check.h. */
#include <zlib.h>

#include "lib/block_check.h"

static u64 make(u32 crc, u32 number, enum block_state state)
{
	return (u64)crc << 32 | (u64)(number & 255) << 24 | (u64)state << 20;
}

static u32 crc_of(const struct block_checks *checks, u32 block)
{
	const char *at = checks->memory + (size_t)block * BLOCK_BYTES;

	return (u32)crc32(0, (const Bytef *)at, BLOCK_BYTES);
}

void block_checks_init(struct block_checks *checks)
{
	static const Bytef zeros[BLOCK_BYTES];
	u32 crc = (u32)crc32(0, zeros, BLOCK_BYTES);

	for (u32 i = 0; i < checks->count; i++)
		checks->check_word[i] = make(crc, 0, BLOCK_CLEAN);
}

bool block_is_bad(const struct block_checks *checks, u32 block, u32 *ret_number)
{
	*ret_number = checks->check_word[block] >> 24 & 255;
	return block_state(checks, block) == BLOCK_CLEAN &&
	       crc_of(checks, block) != checks->check_word[block] >> 32;
}

void block_checks_update(struct block_checks *checks, void (*settle)(void *arg),
			 u32 (*number)(void *arg, u32 block), void *arg)
{
	const u64 checking = make(0, 0, BLOCK_CHECKING);

	for (u32 i = 0; i < checks->count; i++)
		if (block_state(checks, i) != BLOCK_CLEAN)
			__atomic_store_n(&checks->check_word[i], checking, __ATOMIC_SEQ_CST);
	settle(arg);
	for (u32 i = 0; i < checks->count; i++) {
		u64 marked = checking, now;

		if (block_state(checks, i) != BLOCK_CHECKING)
			continue;
		now = make(crc_of(checks, i), number(arg, i), BLOCK_CLEAN);
		__atomic_compare_exchange_n(&checks->check_word[i], &marked, now, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
}
