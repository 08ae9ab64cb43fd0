/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Meters that count for the other nodes: which limits have them, how many, under which names. */
#include "lib/test.h"
#include "config/cluster_def.h"
#include "policy_make.h"

static struct cluster_def cluster;

static struct sl_image *make(const struct policy *policy)
{
	struct compile_env env = make_env();

	memset(slots, 0, sizeof(slots));
	return compile(policy, &env);
}

/* Packets and bytes over a hierarchy of two: three meters by three meters, two counters for each
 * step. */
TEST(test_each_unit_and_step)
{
	struct limit_def limit[] = { make_limit("web"), make_limit("next") };
	struct policy policy = make_policy(limit, 2);
	static const char *const name[] = { "web#1c", "web#3c" };
	const struct sl_limit *meter;
	struct sl_image *image;
	u32 counters = 0;

	limit[0].terms.cluster = true;
	limit[0].terms.rates = (struct rates){
		.rate = { { 10, SEC, RATE_PACKETS },
			  { 500, 3600 * SEC, RATE_PACKETS },
			  { 8000, SEC, RATE_BITS } },
		.burst = { 20, 30, 80000 },
		.count = 3,
	};
	policy.cluster = &cluster;
	image = make(&policy);
	meter = &image->rules->limits[0];
	for (u32 i = 0; i < 3; i++, meter = &image->rules->limits[meter->next])
		assert_int_equal(meter->counter, 0);
	for (; counters < 2; counters++) {
		assert_int_equal(meter->counter, 1);
		assert_int_equal(meter->unit, counters ? SL_UNIT_BYTES : SL_UNIT_PACKETS);
		assert_int_equal(meter->params.algo, SL_ALGO_FIXED_WINDOW);
		assert_string_equal(slots[meter->slot].name, name[counters]);
		if (meter->next == SL_NO_METER)
			break;
		meter = &image->rules->limits[meter->next];
	}
	assert_int_equal(counters, 1);
	assert_int_equal(image->rules->limits[1].next, SL_NO_METER);
	assert_int_equal(image->rules->limits[1].single_meter, 1);
	image_free(image);

	limit[0].prefix.len[SL_V4][1] = 24;
	limit[0].prefix.count[SL_V4] = 2;
	image = make(&policy);
	counters = 0;
	for (u32 i = 0; i != SL_NO_METER; i = image->rules->limits[i].next)
		counters += image->rules->limits[i].counter;
	assert_int_equal(counters, 4);
	image_free(image);
}

/* Nothing to install, nothing to count for. */
TEST(test_none_without_cluster)
{
	struct limit_def limit[] = { make_limit("web") };
	struct policy policy = make_policy(limit, 1);
	struct sl_image *image;

	limit[0].terms.cluster = true;
	image = make(&policy);
	assert_int_equal(image->rules->limits[0].next, SL_NO_METER);
	assert_int_equal(image->rules->limits[0].single_meter, 1);
	image_free(image);
}

/* Those with rates of their own are counted apart, under the hash that their bucket has. */
TEST(test_overridden)
{
	struct override_def override = { .src = prefix(SL_V4, 0xc0000207ULL << 32, 32) };
	struct rates rates = { .rate = { { 5000, SEC, RATE_PACKETS } },
			       .burst = { 9000 },
			       .count = 1 };
	struct limit_def limit[] = { make_limit("web") };
	struct policy policy = make_policy(limit, 1);
	const struct sl_limit *meter, *counter;
	struct sl_image *image;

	limit[0].terms.cluster = true;
	limit[0].override = &override;
	limit[0].override_count = 1;
	limit[0].override_rates = &rates;
	limit[0].override_rates_count = 1;
	policy.cluster = &cluster;
	image = make(&policy);
	meter = &image->rules->limits[0];
	assert_true(meter->next < SL_METERS_MAX);
	counter = &image->rules->limits[meter->next];
	assert_int_equal(counter->counter, 1);
	assert_true(counter->overridden < SL_METERS_MAX);
	meter = &image->rules->limits[counter->overridden];
	assert_int_equal(meter->counter, 1);
	assert_int_equal(meter->of_overrides, 1);
	assert_string_equal(slots[meter->slot].name, "web#1co");
	image_free(image);
}

TEST_MAIN
