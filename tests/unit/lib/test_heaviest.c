// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The heaviest keys of random streams against exact counts: the bound, and whom a flood displaces.
 */
#include "lib/heaviest.h"
#include "lib/rng.h"
#include "lib/test.h"

#define ROOM 16
#define KEYS 400

struct table {
	u64 key[ROOM], weight[ROOM], missed[ROOM];
	u64 all;
};

static void add(struct table *table, u64 key, u64 weight)
{
	bool is_new;
	u32 place = heaviest_place(table->key, table->weight, ROOM, key, &is_new);

	if (is_new)
		table->missed[place] = table->weight[place];
	table->weight[place] += weight;
	table->all += weight;
}

static u32 place_of(const struct table *table, u64 key)
{
	u32 place = 0;

	while (place < ROOM && table->key[place] != key)
		place++;
	return place;
}

TEST(weights_are_exact_while_a_place_is_free)
{
	struct table table = { .all = 0 };

	for (u64 i = 0; i < 1000; i++)
		add(&table, 1 + i % ROOM, 1 + i % ROOM);
	for (u64 key = 1; key <= ROOM; key++) {
		u32 place = place_of(&table, key);

		assert_in_range(place, 0, ROOM - 1);
		assert_int_equal(table.missed[place], 0);
		assert_int_equal(table.weight[place], key * (1000 / ROOM + (key <= 1000 % ROOM)));
	}
}

/* Skewed streams of random weights: what heaviest.h promises, of every key. */
TEST(the_bound_holds_and_the_heavy_have_a_place)
{
	rng_start("heaviest");
	for (int stream = 0; stream < 40; stream++) {
		struct table table = { .all = 0 };
		u64 exact[KEYS + 1] = { 0 };

		for (int i = 0; i < 4000; i++) {
			u64 key = 1 + rng_below(1 + rng_below(KEYS)), weight = 1 + rng_below(50);

			exact[key] += weight;
			add(&table, key, weight);
		}
		for (u64 key = 1; key <= KEYS; key++) {
			u32 place = place_of(&table, key);

			if (place == ROOM) {
				assert_true(exact[key] <= table.all / ROOM);
				continue;
			}
			assert_true(exact[key] <= table.weight[place]);
			assert_true(exact[key] >= table.weight[place] - table.missed[place]);
			assert_true(table.missed[place] <= table.all / ROOM);
		}
	}
}

/* Keys that come once each do not displace one that has more than its part. */
TEST(a_flood_of_new_keys_leaves_the_heavy_one)
{
	struct table table = { .all = 0 };

	for (u64 i = 0; i < 100000; i++) {
		add(&table, 1000 + i, 1);
		if (i % (ROOM - 1) == 0)
			add(&table, 7, 1);
	}
	assert_in_range(place_of(&table, 7), 0, ROOM - 1);
	assert_true(table.weight[place_of(&table, 7)] >= 100000 / (ROOM - 1));
}

TEST_MAIN
