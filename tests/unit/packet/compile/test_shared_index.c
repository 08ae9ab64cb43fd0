// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_shared_index.c - images with the same prefixes share one prefix index. */
#include "lib/test.h"
#include "policy_make.h"

/* Another rate shares the index of the image before, another prefix does not. */
TEST(test_shared_index)
{
	struct limit_def limit[1] = { make_limit("one") };
	struct policy policy = make_policy(limit, 1);
	struct list_entry block[] = { { .prefix = prefix(SL_V4, 10ULL << 56, 8), .pos.line = 1 },
				      { .prefix = prefix(SL_V4, 11ULL << 56, 8), .pos.line = 2 },
				      { .prefix = prefix(SL_V4, 12ULL << 56, 8) } };
	struct compile_env env = make_env();
	struct sl_image *image[4];

	policy.list[LIST_BLOCK] = (struct list_def){ .entry = block, .count = 2 };
	image[0] = compile(&policy, &env);
	env.before = image[0];
	limit[0].terms.rates.rate[0].count = 77;
	policy.list[LIST_BLOCK].count = 3; /* the third is live: no part of an image */
	image[1] = compile(&policy, &env);
	assert_ptr_equal(image[1]->prefixes, image[0]->prefixes);
	image_free(image[0]);
	env.before = image[1];
	block[1].until_utc_ns = env.mono_ns + env.utc_offset_ns + SEC;
	image[2] = compile(&policy, &env);
	assert_ptr_not_equal(image[2]->prefixes, image[1]->prefixes);
	env.before = image[2];
	policy.list[LIST_BLOCK].count = 1;
	image[3] = compile(&policy, &env);
	assert_ptr_not_equal(image[3]->prefixes, image[2]->prefixes);
	for (u32 i = 1; i < 4; i++)
		image_free(image[i]);
}

TEST_MAIN
