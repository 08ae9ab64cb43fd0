/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * block_check.h - a CRC-32 for each block of 4 KiB of a mapped file that is written all the time.
 *
 * A block's check is one word in the same file: its CRC, a number of the owner's, a state, and a
 * check of the word itself. Who writes to a block first marks its word as dirty, which costs a
 * load where it is already. From time to time dirty blocks are checked again. So a file that was
 * closed is covered as a whole, and one whose writer was killed but for what it wrote last.
 *
 * The CRC of a block is taken beside its writers: marked as being checked, then the owner waits for
 * all writers that may have seen the old mark, then the CRC is taken; it is valid if the mark is
 * still there.
 */
#ifndef SLUICE_BLOCK_CHECK_H
#define SLUICE_BLOCK_CHECK_H

#include <stdbool.h>

#include "sluice/types.h"

#define BLOCK_BYTES 4096U

enum block_state {
	BLOCK_CLEAN = 1,	/* the CRC is that of the block; 0: never written */
	BLOCK_DIRTY,
	BLOCK_CHECKING,
};

enum block_verdict {
	BLOCK_GOOD,
	BLOCK_OPEN,		/* written to when it was last seen: nothing is known */
	BLOCK_UNKNOWN,		/* its check is damaged */
	BLOCK_DAMAGED,
};

struct block_checks {
	u64 *check_word;		/* one for each block */
	const char *memory;	/* the first block */
	u32 count;
};

/* All blocks as they are now, which are full of zeros: of a file that is being made. */
void block_checks_init(struct block_checks *checks);
void block_mark_dirty(struct block_checks *checks, u32 block);
/* *ret_number: what the owner gave it, where that can be read; else 0. */
enum block_verdict block_verify(const struct block_checks *checks, u32 block, u32 *ret_number);

static inline enum block_state block_state(const struct block_checks *checks, u32 block)
{
	return __atomic_load_n(&checks->check_word[block], __ATOMIC_SEQ_CST) >> 20 & 15;
}

/* Before anything is written to the block. */
static inline void block_touch(struct block_checks *checks, u32 block)
{
	if (block_state(checks, block) != BLOCK_DIRTY)
		block_mark_dirty(checks, block);
}

/*
 * Checks what is dirty. settle() returns when all writers of the time of the call have ended;
 * number() gives a block's number, below 256. One thread at a time.
 */
void block_checks_update(struct block_checks *checks, void (*settle)(void *arg),
			 u32 (*number)(void *arg, u32 block), void *arg);

#endif
