// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * block_check.c - see block_check.h. A check: 63..32 CRC, 31..24 number, 23..20 state, 19..0 its
 * own check.
 */
#include <zlib.h>

#include "lib/block_check.h"

#define CHECK_MASK 0xfffffULL

/* Covers the check and its position, so the check of another block, or all zeros, is invalid. */
static u64 check_of(u64 check_word, u32 block)
{
	u64 hash = (check_word >> 20) + 0x9e3779b97f4a7c15ULL * (block + 1ULL);

	hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93ULL;
	return (hash ^ hash >> 32) & CHECK_MASK;
}

static u64 make(u32 crc, u32 number, enum block_state state, u32 block)
{
	u64 check_word = (u64)crc << 32 | (u64)(number & 255) << 24 | (u64)state << 20;

	return check_word | check_of(check_word, block);
}

static u32 crc_of(const struct block_checks *checks, u32 block)
{
	const char *at = checks->memory + (size_t)block * BLOCK_BYTES;

	return (u32)crc32(0, (const Bytef *)at, BLOCK_BYTES);
}

static void set(struct block_checks *checks, u32 block, u64 check_word)
{
	__atomic_store_n(&checks->check_word[block], check_word, __ATOMIC_SEQ_CST);
}

void block_checks_init(struct block_checks *checks)
{
	static const Bytef zeros[BLOCK_BYTES];
	u32 crc = (u32)crc32(0, zeros, BLOCK_BYTES);

	for (u32 i = 0; i < checks->count; i++)
		set(checks, i, make(crc, 0, BLOCK_CLEAN, i));
}

void block_mark_dirty(struct block_checks *checks, u32 block)
{
	set(checks, block, make(0, 0, BLOCK_DIRTY, block));
}

enum block_verdict block_verify(const struct block_checks *checks, u32 block, u32 *ret_number)
{
	u64 check_word = checks->check_word[block];
	bool same;

	*ret_number = 0;
	if (check_of(check_word, block) == (check_word & CHECK_MASK) &&
	    (check_word >> 20 & 15) != BLOCK_CLEAN)
		return BLOCK_OPEN;
	same = crc_of(checks, block) == check_word >> 32;
	if (check_of(check_word, block) != (check_word & CHECK_MASK))
		return same ? BLOCK_GOOD : BLOCK_UNKNOWN;
	*ret_number = check_word >> 24 & 255;
	return same ? BLOCK_GOOD : BLOCK_DAMAGED;
}

void block_checks_update(struct block_checks *checks, void (*settle)(void *arg),
			 u32 (*number)(void *arg, u32 block), void *arg)
{
	for (u32 i = 0; i < checks->count; i++)
		if (block_state(checks, i) != BLOCK_CLEAN)
			set(checks, i, make(0, 0, BLOCK_CHECKING, i));
	settle(arg);
	for (u32 i = 0; i < checks->count; i++) {
		u64 marked = make(0, 0, BLOCK_CHECKING, i), now;

		if (block_state(checks, i) != BLOCK_CHECKING)
			continue;
		now = make(crc_of(checks, i), number(arg, i), BLOCK_CLEAN, i);
		__atomic_compare_exchange_n(&checks->check_word[i], &marked, now, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
}
