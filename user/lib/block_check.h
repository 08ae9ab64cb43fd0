/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * block_check.h - a CRC-32 for each block of 4 KiB of a mapped file that is written all the time.
 *
 * The check of a block is 64 bits in the same file: its CRC, a number of the owner's, and a state.
 * A writer marks the check of a block as dirty before it writes, which costs one load if it is
 * dirty already. Dirty blocks are checked again at intervals. So a closed file is covered as a
 * whole, and after a power failure all but the last writes are.
 *
 * The CRC of a block is computed while writers run: the block is marked as being checked, then the
 * owner waits for all writers that may have seen the old mark, then computes the CRC. It is valid
 * if the mark is unchanged.
 */
#ifndef SLUICE_BLOCK_CHECK_H
#define SLUICE_BLOCK_CHECK_H

#include <stdbool.h>

#include "sluice/types.h"

#define BLOCK_BYTES 4096U

enum block_state {
	BLOCK_CLEAN = 1, /* the CRC is that of the block; 0: never written */
	BLOCK_DIRTY,
	BLOCK_CHECKING,
};

struct block_checks {
	u64 *check_word;    /* one for each block: 63..32 CRC, 31..24 number, 23..20 state */
	const char *memory; /* the first block */
	u32 count;
};

/* Sets the checks of a new file, whose blocks are all zeros. */
void block_checks_init(struct block_checks *checks);
/*
 * Whether a block differs from its check; *ret_number is then the owner's number. A block that was
 * being written when last checked has none, and is good.
 */
bool block_is_bad(const struct block_checks *checks, u32 block, u32 *ret_number);

static inline enum block_state block_state(const struct block_checks *checks, u32 block)
{
	return __atomic_load_n(&checks->check_word[block], __ATOMIC_SEQ_CST) >> 20 & 15;
}

/* Call it before each write to the block. */
static inline void block_touch(struct block_checks *checks, u32 block)
{
	if (block_state(checks, block) != BLOCK_DIRTY)
		__atomic_store_n(&checks->check_word[block], (u64)BLOCK_DIRTY << 20,
				 __ATOMIC_SEQ_CST);
}

/*
 * Checks the dirty blocks. settle() returns when all writers active at its call have ended;
 * number() gives a block's number, below 256. One thread at a time.
 */
void block_checks_update(struct block_checks *checks, void (*settle)(void *arg),
			 u32 (*number)(void *arg, u32 block), void *arg);

#endif
