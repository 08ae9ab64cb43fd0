/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* limit_ids follow a limit's name and kind; rate generations, leases, and errors that undo. */
#include "lib/test.h"
#include "policy_make.h"

static struct sl_limit compiled(const struct policy *policy, u32 index)
{
	struct compile_env env = make_env();
	struct sl_image *image = compile(policy, &env);
	struct sl_limit limit = image->rules->limits[index];

	assert_int_equal(image->rules->limit_of_id[0], SL_NO_LIMIT);
	assert_int_equal(image->rules->limit_of_id[limit.slot], index);
	assert_int_equal(slots[limit.slot].state, SL_LIMIT_ID_BOUND);
	image_free(image);
	return limit;
}

TEST(test_limit_ids_follow_names)
{
	struct limit_def limit[] = { make_limit("a"), make_limit("b"), make_limit("c") };
	struct policy policy = make_policy(limit, 3);
	struct limit_def swap;
	struct sl_limit a, b, c, other;

	memset(slots, 0, sizeof(slots));
	a = compiled(&policy, 0);
	b = compiled(&policy, 1);
	c = compiled(&policy, 2);
	assert_true(a.slot && a.slot != b.slot && b.slot != c.slot && a.slot != c.slot);

	/* Another order, one less: same limit_ids, and the removed one drains. */
	swap = limit[0];
	limit[0] = limit[1];
	limit[1] = swap;
	policy.limit_count = 2;
	assert_int_equal(compiled(&policy, 0).slot, b.slot);
	assert_int_equal(compiled(&policy, 1).slot, a.slot);
	assert_int_equal(slots[c.slot].state, SL_LIMIT_ID_DRAINING);
	/* It comes back unchanged: its buckets continue. */
	policy.limit_count = 3;
	assert_int_equal(compiled(&policy, 2).slot, c.slot);

	/* Another kind gets another limit_id, and back the old one. */
	limit[2].terms.algorithm = SL_ALGO_FIXED_WINDOW;
	limit[2].terms.rates.burst[0] = 0;
	other = compiled(&policy, 2);
	assert_int_not_equal(other.slot, c.slot);
	assert_int_equal(slots[c.slot].state, SL_LIMIT_ID_DRAINING);
	limit[2].terms.rates.rate[0].period_ns *= 2;
	assert_int_not_equal(compiled(&policy, 2).slot, other.slot);
	limit[2] = make_limit("c");
	assert_int_equal(compiled(&policy, 2).slot, c.slot);
	limit[2].prefix.len[SL_V4][0] = 24;
	assert_int_not_equal(compiled(&policy, 2).slot, c.slot);
	limit[2] = make_limit("c");
	limit[2].terms.rates.rate[0].unit = RATE_CONNECTIONS;
	assert_int_not_equal(compiled(&policy, 2).slot, c.slot);
	/* Keys that bucket states do not depend on keep the limit_id. */
	limit[2] = make_limit("c");
	limit[2].mode = SL_MODE_OFF;
	limit[2].action = SL_ACT_TAG;
	limit[2].terms.rates.rate[0].count = 5;
	limit[2].accounting = ACCOUNTING_EXACT;
	assert_int_equal(compiled(&policy, 2).slot, c.slot);
}

TEST(test_generations)
{
	struct limit_def limit[] = { make_limit("a") };
	struct policy policy = make_policy(limit, 1);
	struct sl_limit first, now;
	const struct sl_limit_id_info *slot;

	memset(slots, 0, sizeof(slots));
	first = compiled(&policy, 0);
	slot = &slots[first.slot];
	assert_int_equal(first.params.gen, 0);
	assert_true(slot->tau[0] == first.params.tau && !slot->tau[1]);

	/* Applied again, nothing changes. */
	assert_int_equal(compiled(&policy, 0).params.gen, 0);
	for (u32 change = 1; change < 6; change++) {
		limit[0].terms.rates.rate[0].count += 10;
		now = compiled(&policy, 0);
		assert_int_equal(now.slot, first.slot);
		assert_int_equal(now.params.gen, change & 3);
		assert_int_equal(slot->gen, change & 3);
		assert_true(slot->tau[change & 3] == now.params.tau);
	}
	/* Rate and burst in step: the debt is the same share, no generation needed. */
	limit[0].terms.rates.rate[0].count = 1000;
	limit[0].terms.rates.burst[0] = 0;
	first = compiled(&policy, 0);
	limit[0].terms.rates.rate[0].count = 10;
	now = compiled(&policy, 0);
	assert_true(now.params.tau == first.params.tau);
	assert_int_equal(now.params.gen, first.params.gen);
}

TEST(test_limit_ids_unchanged_on_error)
{
	struct limit_def limit[] = { make_limit("a"), make_limit("bad-rate") };
	struct policy policy = make_policy(limit, 2);
	static struct sl_limit_id_info before[SL_LIMIT_IDS];
	struct compile_env env = make_env();
	struct sl_image *image = NULL;
	struct sl_err err;

	/* Free are those of the order's own limits and one more: one is short. */
	memset(slots, 0, sizeof(slots));
	for (u32 slot = 1; slot < SL_LIMIT_ID_KEPT - (SL_METER_FURTHER - SL_LIMITS_MAX) - 1;
	     slot++) {
		slots[slot].state = slot & 1 ? SL_LIMIT_ID_DRAINING : SL_LIMIT_ID_BOUND;
		snprintf(slots[slot].name, SL_NAME_MAX, "old%u", slot);
	}
	memcpy(before, slots, sizeof(slots));
	assert_int_equal(image_compile(&policy, &env, &image, &err), -ENOSPC);
	assert_memory_equal(before, slots, sizeof(slots));
	assert_null(image);
	policy.limit_count = 1;
	image_free(compile(&policy, &env));
	assert_int_equal(slots[2].state, SL_LIMIT_ID_DRAINING);

	policy.limit_count = 2;
	policy.path = "test.yaml";
	limit[1].pos = (struct config_pos){ 12, 5 };
	limit[1].terms.rates.rate[0].count = 2000000000;
	memcpy(before, slots, sizeof(slots));
	assert_int_equal(image_compile(&policy, &env, &image, &err), -ERANGE);
	assert_memory_equal(before, slots, sizeof(slots));
	assert_int_equal(err.line, 12);
	assert_non_null(strstr(err.message, "bad-rate"));
}

TEST(test_leases)
{
	static const struct {
		struct rate rate;
		u64 burst;
		enum accounting accounting;
		u32 lease; /* with 4 CPUs */
	} table[] = {
		{ { 1000, SEC, RATE_PACKETS }, 100000, ACCOUNTING_PERCPU, 100000 / 16 },
		{ { 1000, SEC, RATE_PACKETS }, 2000, ACCOUNTING_PERCPU, 125 },
		{ { 1000, SEC, RATE_PACKETS }, 100000, ACCOUNTING_EXACT, 0 },
		{ { 1000, SEC, RATE_PACKETS }, 700, ACCOUNTING_PERCPU, 0 },
		{ { 242239, SEC, RATE_BYTES }, 0, ACCOUNTING_PERCPU, 0 },
		{ { 242240, SEC, RATE_BYTES }, 0, ACCOUNTING_PERCPU, 242240 / 16 },
	};

	memset(slots, 0, sizeof(slots));
	for (size_t i = 0; i < COUNT(table); i++) {
		struct limit_def limit[] = { make_limit("a") };
		struct policy policy = make_policy(limit, 1);

		limit[0].terms.rates.rate[0] = table[i].rate;
		limit[0].terms.rates.burst[0] = table[i].burst;
		limit[0].accounting = table[i].accounting;
		assert_int_equal(compiled(&policy, 0).lease, table[i].lease);
	}
}

TEST_MAIN
