// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bpf/table.h where two CPUs meet: the result for the second one, step by step. */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Waddress-of-packed-member"
#include "lib/test.h"
#include "lib/rig.h"
#include "lib/rng.h"
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
	sets = rig.dp->table_sets;
	sim = (struct dp_sim *)rig.dp;
	sim_cpu = &sim->cpu[0];
	key = sl_key(limit->slot, 0x123456);
	offender = sl_spent(&limit->params, rig.now, HOUR);
	one = sl_step(0, &limit->params, rig.now, 1).bucket_state;
	two = sl_step(0, &limit->params, rig.now, 2).bucket_state;
	for (i = 1; i < 2 * SL_WAYS; i++)
		sim->table[sl_table_set(key, i / SL_WAYS, sets)].way[i % SL_WAYS] =
			(struct sl_way){ sl_key(limit->slot, 100 + 2 * i) | SL_KEY_REFUSED,
					 offender };
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

enum way_kind {
	WAY_EMPTY,
	WAY_EXPIRED,
	WAY_LIVE,
	WAY_REFUSED,
	WAY_OF_ANOTHER_LIMIT, /* whose parameters this call does not know */
	/* From here on nothing is installed: */
	WAY_BUSY,
	WAY_RECORD,
	WAY_THE_KEY,
	WAY_KINDS,
};

static struct sl_way way_of(enum way_kind kind, const struct sl_limit *limit, u64 key, u32 n,
			    struct sl_now now)
{
	struct sl_now before = { now.mono_ns - 3 * HOUR, now.utc_ns - 3 * HOUR };
	u64 live = sl_step(0, &limit->params, now, 3).bucket_state;
	u64 expired = sl_step(0, &limit->params, before, 1).bucket_state;
	u64 other = sl_key(limit->slot, 1000 + 2 * n);

	switch (kind) {
	case WAY_EXPIRED:
		return (struct sl_way){ other, expired };
	case WAY_LIVE:
		return (struct sl_way){ other, live };
	case WAY_REFUSED:
		return (struct sl_way){ other | SL_KEY_REFUSED, live };
	case WAY_OF_ANOTHER_LIMIT:
		return (struct sl_way){ sl_key(limit->slot + 1, 1000), expired };
	case WAY_BUSY:
		return (struct sl_way){ other, SL_STATE_BUSY };
	case WAY_RECORD:
		return sl_record_add((struct sl_way){ 0 }, sl_print(other), 5, now.mono_ns);
	case WAY_THE_KEY:
		return (struct sl_way){ key, live };
	default:
		return (struct sl_way){ 0 };
	}
}

/* Two sets at random, and what table_newcomer() has to do with them. */
struct sets {
	struct sl_set *now[2], before[2];
	u32 free[2];
	bool left_alone;
};

static void make_sets(struct sets *sets, const struct sl_limit *limit, u64 key, struct sl_now now)
{
	u32 kinds = rng_below(4) ? WAY_BUSY : WAY_KINDS;

	sets->free[0] = sets->free[1] = 0;
	sets->left_alone = false;
	for (u32 n = 0; n < 2 * SL_WAYS; n++) {
		enum way_kind kind = rng_below(kinds);

		sets->now[n / SL_WAYS]->way[n % SL_WAYS] = way_of(kind, limit, key, n, now);
		sets->free[n / SL_WAYS] += kind <= WAY_EXPIRED;
		sets->left_alone |= kind >= WAY_BUSY;
	}
	sets->left_alone |= !(sets->free[0] + sets->free[1]);
	sets->before[0] = *sets->now[0];
	sets->before[1] = *sets->now[1];
}

/* The number of ways that changed: only a spent one of the set that has more, to the key and its
 * state. */
static u32 check_sets(const struct sets *sets, const struct sl_limit *limit,
		      struct sl_way installed, struct sl_now now)
{
	u32 changed = 0;

	for (u32 n = 0; n < 2 * SL_WAYS; n++) {
		const struct sl_way *was = &sets->before[n / SL_WAYS].way[n % SL_WAYS];
		const struct sl_way *is = &sets->now[n / SL_WAYS]->way[n % SL_WAYS];

		if (is->key == was->key && is->bucket_state == was->bucket_state)
			continue;
		changed++;
		assert_int_equal(is->key, installed.key);
		assert_int_equal(is->bucket_state, installed.bucket_state);
		if (was->key) {
			assert_int_equal(sl_key_limit_id(was->key), limit->slot);
			assert_true(sl_expired(was->bucket_state, &limit->params, now));
		}
		assert_int_equal(n / SL_WAYS, sets->free[0] < sets->free[1]);
	}
	return changed;
}

/* A new key is installed in one call where a way is spent; in doubt nothing is written. */
TEST(test_newcomer)
{
	struct limit_def def = rig_limit_def("new", (struct rate){ 10, HOUR, RATE_PACKETS }, 0,
					     SL_ALGO_FIXED_WINDOW);
	struct packet packet = { .family = SL_V4 };
	u32 count, rounds[2] = { 0, 0 };
	const struct sl_limit *limit;
	struct sets sets;
	struct rig rig;

	rng_start("newcomer");
	rig_open_sim(&rig, 1000, 1, 1);
	rig_apply(&rig, &def, 1);
	limit = rig_limit(&rig, 0);
	packet.now = rig.now;
	count = rig.dp->table_sets;
	sim = (struct dp_sim *)rig.dp;
	sim_cpu = &sim->cpu[0];
	for (u32 round = 0; round < 20000; round++) {
		struct sl_way new = { sl_key(limit->slot, 0x100000 + 2 * round),
				      sl_step(0, &limit->params, rig.now, 1).bucket_state };
		enum attempt attempt;

		sets.now[0] = &sim->table[sl_table_set(new.key, 0, count)];
		sets.now[1] = &sim->table[sl_table_set(new.key, 1, count)];
		if (sets.now[0] == sets.now[1])
			continue;
		make_sets(&sets, limit, new.key, rig.now);
		attempt = table_newcomer(&packet, limit, new.key, new.bucket_state);
		assert_int_equal(attempt, sets.left_alone ? ATTEMPT_AGAIN : ATTEMPT_PASS);
		assert_int_equal(check_sets(&sets, limit, new, rig.now), !sets.left_alone);
		rounds[sets.left_alone]++;
	}
	assert_true(rounds[0] > 1000 && rounds[1] > 1000);
	rig_close(&rig);
}

TEST_MAIN
