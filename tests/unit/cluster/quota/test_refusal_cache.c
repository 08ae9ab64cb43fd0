// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Refusals by the store are remembered, with the time of the next command: refusal_cache.h. */
#include "lib/test.h"
#include "cluster/quota/refusal_cache.h"
#include "sluice/algo.h"

#define MS 1000000ULL
#define BEGIN (1000 * SL_NS_PER_SEC)
#define KEYS 200000

static u64 key_of(u32 n)
{
	return (n + 1) * 0x9e3779b97f4a7c15ULL;
}

TEST(test_one)
{
	struct refusal_cache *refusal_cache = refusal_cache_new();
	u32 asked = 0;

	assert_non_null(refusal_cache);
	assert_int_equal(refusal_cache_wait(refusal_cache, key_of(1), 1, BEGIN), 0);
	for (u32 ms = 0; ms < 10000; ms++)
		asked += refusal_cache_due(refusal_cache, key_of(1), REFUSAL_CACHE_AGAIN_NS,
					   BEGIN + ms * MS);
	assert_int_equal(asked, 10);
	refusal_cache_note(refusal_cache, key_of(1), 3, 5000 * MS, BEGIN);
	assert_int_equal(refusal_cache_wait(refusal_cache, key_of(1), 3, BEGIN + 1000 * MS),
			 4000 * MS);
	/* Fewer may fit; and another is not this one. */
	assert_int_equal(refusal_cache_wait(refusal_cache, key_of(1), 2, BEGIN + 1000 * MS), 0);
	assert_int_equal(refusal_cache_wait(refusal_cache, key_of(2), 3, BEGIN + 1000 * MS), 0);
	assert_false(refusal_cache_due(refusal_cache, key_of(1), REFUSAL_CACHE_AGAIN_NS,
				       BEGIN + 999 * MS));
	refusal_cache_forget(refusal_cache, key_of(1));
	assert_int_equal(refusal_cache_wait(refusal_cache, key_of(1), 3, BEGIN + 1000 * MS), 0);
	assert_true(refusal_cache_due(refusal_cache, key_of(1), REFUSAL_CACHE_AGAIN_NS,
				      BEGIN + 999 * MS));
	refusal_cache_free(refusal_cache);
}

/* More offenders than there are places: a thousand commands a second, of ever other keys. */
TEST(test_many)
{
	struct refusal_cache *refusal_cache = refusal_cache_new();
	u32 from = 0, other = 0;

	for (u32 second = 0; second < 3; second++) {
		u32 asked = 0;

		for (u32 i = 0; i < KEYS; i++) {
			u32 n = (from + i) % KEYS;

			if (!refusal_cache_due(refusal_cache, key_of(n), REFUSAL_CACHE_AGAIN_NS,
					       BEGIN + second * SL_NS_PER_SEC))
				continue;
			asked++;
			other = n;
		}
		assert_int_equal(asked, 1000);
		from = other + 1;
	}
	refusal_cache_free(refusal_cache);
}

TEST_MAIN
