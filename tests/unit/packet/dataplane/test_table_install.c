// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bpf/table.h where two CPUs meet: the result for the second one, step by step. */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Waddress-of-packed-member"
#include "lib/test.h"
#include "lib/rig.h"
#include "packet/dataplane/sim_stages.h"

#define HOUR (3600 * SL_NS_PER_SEC)

/*
 * A key whose sets hold only offenders beside it. Another CPU that did not find it installs it
 * as well, and it is the lightest: its own bucket, which must not be evicted by itself.
 */
TEST(test_same_key)
{
	struct limit_def def = rig_limit_def("same", (struct rate){ 10, HOUR, RATE_PACKETS }, 0,
					     SL_ALGO_FIXED_WINDOW);
	const struct sl_rules *rules;
	struct packet packet = { .family = SL_V4 };
	const struct sl_limit *limit;
	struct sl_limit_stats stats;
	u64 key, offender, one, two;
	struct rig rig;
	u32 i, sets, at;

	rig_open_sim(&rig, 100, 1, 1);
	rig_apply(&rig, &def, 1);
	rules = rig.dp->ops->rules(rig.dp);
	limit = rig_limit(&rig, 0);
	packet.now = rig.now;
	rig.dp->ops->table(rig.dp, &sets);
	sim = (struct dp_sim *)rig.dp;
	sim_cpu = &sim->cpu[0];
	key = sl_key(limit->slot, 0x123456);
	offender = sl_spent(&limit->params, rig.now, HOUR);
	one = sl_step(0, &limit->params, rig.now, 1).bucket_state;
	two = sl_step(0, &limit->params, rig.now, 2).bucket_state;
	for (i = 1; i < 2 * SL_WAYS; i++)
		sim->table[sl_table_set(key, i / SL_WAYS, sets)].way[i % SL_WAYS] =
			(struct sl_way){ sl_key(limit->slot, 100 + 2 * i) | SL_KEY_REFUSED, offender };
	at = table_victim(rules, &packet, limit, key);
	assert_int_equal(table_install(rules, &packet, at, key, one), ATTEMPT_PASS);
	assert_int_equal(table_victim(rules, &packet, limit, key), at);
	assert_int_equal(table_install(rules, &packet, at, key, two), ATTEMPT_AGAIN);
	assert_int_equal(dp_bucket_state(rig.dp, key), one);
	stats = rig_limit_stats(&rig, 0);
	assert_int_equal(stats.evicted, 0);
	rig_close(&rig);
}

/* Six fingerprints go into a record, each is found, and it ends when the last one does. */
TEST(test_record)
{
	struct sl_way way = { 0 };
	const u64 now = 123456 * SL_NS_PER_SEC, unit = SL_BIT(SL_RECORD_SHIFT);

	for (u64 n = 1; n <= SL_PRINTS; n++) {
		assert_true(sl_record_has(way, 0));
		way = sl_record_add(way, n * 1000, n, now);
		assert_true(sl_key_is_record(way.key));
		assert_int_equal(sl_record_left(way.key, way.bucket_state, now), n);
		assert_int_not_equal(way.bucket_state, SL_STATE_BUSY);
	}
	assert_false(sl_record_has(way, 0));
	for (u64 n = 1; n <= SL_PRINTS; n++)
		assert_true(sl_record_has(way, n * 1000));
	assert_false(sl_record_has(way, 1001));
	/* It ends once, and is not taken for a future one when the units wrap around. */
	assert_int_equal(sl_record_left(way.key, way.bucket_state, now + SL_PRINTS * unit), 0);
	assert_int_equal(sl_record_left(way.key, way.bucket_state, now + 900 * unit), 0);
	assert_int_equal(sl_record_units(1, now), 1);
	for (u64 key = 2; key < 2000000; key += 2)
		assert_in_range(sl_print(sl_key(7, key)), 1, SL_PRINT_MAX);
}

TEST_MAIN
