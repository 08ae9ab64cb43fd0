// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* hash.c - see hash.h. */
#include "lib/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

u64 hash_bytes(struct sl_seed seed, u64 above, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	struct sl_sip sip;
	u64 word;

	sl_sip_start(&sip, seed);
	sl_sip_add(&sip, above);
	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		sl_sip_add(&sip, word);
	}
	sl_sip_add(&sip, (u64)len << 56 | hash_tail(p, len));
	return sl_sip_finish(&sip);
}

struct sl_seed hash_seed(void)
{
	static struct sl_seed seed;

	/* Runs in one thread, before any other reads it: the first rule set is built at start. */
	while (!seed.k0)
		if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
			seed.k0 = 0;
	return seed;
}

/* ---- numbers ---- */

#define SIZE_MIN 16

static void put(struct numbers *numbers, u64 hash, u32 number)
{
	u32 at = hash & (numbers->size - 1);

	while (numbers->hash[at])
		at = (at + 1) & (numbers->size - 1);
	numbers->hash[at] = hash;
	numbers->number[at] = number;
}

static int grow(struct numbers *numbers)
{
	struct numbers old = *numbers;

	numbers->size = old.size ? 2 * old.size : SIZE_MIN;
	numbers->hash = calloc(numbers->size, sizeof(*numbers->hash));
	numbers->number = calloc(numbers->size, sizeof(*numbers->number));
	if (!numbers->hash || !numbers->number) {
		numbers_free(numbers);
		*numbers = old;
		return -ENOMEM;
	}
	for (u32 i = 0; i < old.size; i++)
		if (old.hash[i])
			put(numbers, old.hash[i], old.number[i]);
	numbers_free(&old);
	return 0;
}

int numbers_add(struct numbers *numbers, u64 hash, u32 number)
{
	if (3 * ((u64)numbers->count + 1) > 2 * (u64)numbers->size && grow(numbers))
		return -ENOMEM;
	put(numbers, hash ? hash : 1, number);
	numbers->count++;
	return 0;
}

bool numbers_find(const struct numbers *numbers, u64 hash, u32 *ret)
{
	hash = hash ? hash : 1;
	for (u32 at = hash; numbers->size && numbers->hash[at & (numbers->size - 1)]; at++) {
		u32 place = at & (numbers->size - 1);

		if (numbers->hash[place] != hash)
			continue;
		*ret = numbers->number[place];
		return true;
	}
	return false;
}

int numbers_copy(const struct numbers *from, struct numbers *ret)
{
	*ret = (struct numbers){ .size = from->size, .count = from->count };
	if (!from->size)
		return 0;
	ret->hash = malloc(from->size * sizeof(*ret->hash));
	ret->number = malloc(from->size * sizeof(*ret->number));
	if (!ret->hash || !ret->number) {
		numbers_free(ret);
		*ret = (struct numbers){ .size = 0 };
		return -ENOMEM;
	}
	memcpy(ret->hash, from->hash, from->size * sizeof(*ret->hash));
	memcpy(ret->number, from->number, from->size * sizeof(*ret->number));
	return 0;
}

void numbers_free(struct numbers *numbers)
{
	free(numbers->hash);
	free(numbers->number);
}
