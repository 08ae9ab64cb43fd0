/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hash.h - keyed hashes of bytes, and a table of numbers by such a hash. Two keys that differ have
 * one hash with probability 2^-64, and without the seed none can be searched for: the hash stands
 * for the key.
 */
#ifndef SLUICE_LIB_HASH_H
#define SLUICE_LIB_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "sluice/key.h"

/*
 * The last bytes of a message, fewer than 8, as a word with zeros above: as memcpy() to a word of
 * 0, but without a call. Bytes in the middle are read twice.
 */
static inline u64 hash_tail(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	u32 first, last;

	if (len >= sizeof(first)) {
		memcpy(&first, p, sizeof(first));
		memcpy(&last, p + len - sizeof(last), sizeof(last));
		return first | (u64)last << 8 * (len - sizeof(last));
	}
	if (!len) /* an empty range may have no address */
		return 0;
	return p[0] | (u64)p[len / 2] << 8 * (len / 2) | (u64)p[len - 1] << 8 * (len - 1);
}

/* SipHash-1-3 of bytes with a number (a parent, a kind). */
u64 hash_bytes(struct sl_seed seed, u64 above, const void *bytes, size_t len);
/* This process's seed, so that clients cannot aim at its tables. */
struct sl_seed hash_seed(void);

/*
 * Open addressing, at most two thirds full: a miss looks at three places on average. Two arrays
 * avoid padding: 12 bytes and the free entries. Zeroed memory is an empty table.
 */
struct numbers {
	u64 *hash; /* 0: free; a hash of 0 counts as 1 */
	u32 *number;
	u32 size, count;
};

bool numbers_find(const struct numbers *numbers, u64 hash, u32 *ret);
/* Adds a new one. 0 or -ENOMEM. */
int numbers_add(struct numbers *numbers, u64 hash, u32 number);
/* 0 with *ret to be freed, or -ENOMEM and *ret empty. */
int numbers_copy(const struct numbers *from, struct numbers *ret);
void numbers_free(struct numbers *numbers);

#endif
