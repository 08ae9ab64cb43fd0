// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of numbers: each is found, others are not, also a hash of 0; it stays half empty. */
#include "lib/hash.h"
#include "lib/test.h"

#define KEYS 10000

static u64 hash_of(u64 i)
{
	return i ? hash_bytes((struct sl_seed){ 1, 2 }, 0, &i, sizeof(i)) : 0;
}

/* As memcpy() to a word of 0; what is behind the bytes does not count. */
TEST(test_tail)
{
	const unsigned char bytes[] = { 0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8, 0xff };

	for (size_t len = 0; len < sizeof(u64); len++) {
		u64 word = 0;

		memcpy(&word, bytes + 1, len);
		assert_int_equal(hash_tail(bytes + 1, len), word);
	}
	assert_int_equal(hash_tail(NULL, 0), 0);
}

TEST(test_numbers)
{
	struct numbers numbers = { .count = 0 };
	u32 number = 7;

	assert_false(numbers_find(&numbers, 0, &number));
	for (u32 i = 0; i < KEYS; i++)
		assert_int_equal(numbers_add(&numbers, hash_of(i), i), 0);
	for (u32 i = 0; i < KEYS; i++) {
		assert_true(numbers_find(&numbers, hash_of(i), &number));
		assert_int_equal(number, i);
		number = 7;
		assert_false(numbers_find(&numbers, hash_of(KEYS + i), &number));
		assert_int_equal(number, 7);
	}
	assert_int_equal(numbers.count, KEYS);
	assert_in_range(numbers.size, 3 * KEYS / 2, 3 * KEYS);
	numbers_free(&numbers);
}

/* Bytes of any length, and the number above them: a prefix has another hash. */
TEST(test_bytes)
{
	struct sl_seed seed = { 3, 4 };

	for (size_t len = 0; len < 23; len++) {
		static const char text[24] = { 0 };

		assert_int_equal(hash_bytes(seed, 1, text, len), hash_bytes(seed, 1, text, len));
		assert_int_not_equal(hash_bytes(seed, 1, text, len),
				     hash_bytes(seed, 1, text, len + 1));
		assert_int_not_equal(hash_bytes(seed, 1, text, len),
				     hash_bytes(seed, 2, text, len));
	}
	assert_int_equal(hash_seed().k0, hash_seed().k0);
}

int main(void)
{
	return test_run(NULL, NULL);
}
