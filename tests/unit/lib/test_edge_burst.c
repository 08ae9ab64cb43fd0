// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What passed within one window's length, against a list of all that passed: never more than that,
 * and no less than what passed within fifteen sixteenths of it.
 */
#include <stdbool.h>

#include "lib/test.h"
#include "lib/rng.h"
#include "lib/edge_burst.h"

#define SEC 1000000000ULL
#define EVENTS 3000

TEST(bounds)
{
	struct edge_bursts *bursts = edge_bursts_new();
	static u64 at[EVENTS], cost[EVENTS];
	u64 now = 100 * SEC, window = 10 * SEC;

	rng_start("edge_burst");
	assert_non_null(bursts);
	for (u32 i = 0; i < EVENTS; i++) {
		u64 whole = 0, most = 0, found;

		now += rng_below(100) ? rng_below(SEC / 2) : rng_below(30 * SEC);
		at[i] = now;
		cost[i] = 1 + rng_below(9);
		for (u32 k = 0; k <= i; k++) {
			most += at[k] > now - window ? cost[k] : 0;
			whole += at[k] > now - window / 16 * 15 ? cost[k] : 0;
		}
		found = edge_burst_note(bursts, 42, window, now, cost[i]);
		if (found > most || found < whole)
			fail_msg("event %u: %llu, expected %llu to %llu", i, found, whole, most);
	}
	edge_bursts_free(bursts);
}

/* A value keeps its place while something of it passes; another one at the place is not
 * measured. */
TEST(places)
{
	struct edge_bursts *bursts = edge_bursts_new();
	u64 other = 5 + EDGE_SAMPLE;

	assert_int_equal(edge_burst_note(bursts, 5, SEC, SEC, 3), 3);
	assert_int_equal(edge_burst_note(bursts, other, SEC, SEC + 1, 9), 0);
	assert_int_equal(edge_burst_note(bursts, 6, SEC, SEC + 1, 2), 2);
	assert_int_equal(edge_burst_note(bursts, 5, SEC, SEC + 2, 1), 4);
	assert_int_equal(edge_burst_note(bursts, other, SEC, 2 * SEC + 2, 9), 9);
	/* A faster thread's later time, and another window. */
	assert_int_equal(edge_burst_note(bursts, other, SEC, 2 * SEC - SEC / 10, 1), 10);
	assert_int_equal(edge_burst_note(bursts, other, 2 * SEC, 2 * SEC + 3, 1), 1);
	edge_bursts_free(bursts);
}

/*
 * Aligned windows whose count others charge, too: read at random, now and then with a unit of one's
 * own. Never more than what passed within a window; and all of it that came between two readings of
 * one window which are both within fourteen sixteenths.
 */
TEST(readings)
{
	struct edge_bursts *bursts = edge_bursts_new();
	static u64 at[EVENTS];
	u64 now = 100 * SEC, window = 10 * SEC, most_found = 0;
	u64 read_at[EVENTS], reads = 0;

	rng_start("edge_readings");
	for (u32 i = 0; i < EVENTS; i++) {
		struct edge_reading reading = { .window_ns = window };
		u64 whole = 0, most = 0, found;
		bool own = rng_below(4) == 0;

		now += rng_below(100) ? rng_below(SEC / 2) : rng_below(30 * SEC);
		at[i] = now;
		if (!own && rng_below(3))
			continue;
		reading.elapsed_ns = now % window;
		reading.cost = own;
		for (u32 k = 0; k <= i; k++) {
			reading.count += at[k] / window == now / window;
			most += at[k] > now - window;
		}
		/* Of the intervals between readings, those that lie within one window. */
		for (u64 r = 1; r < reads; r++)
			for (u32 k = 0; k <= i; k++)
				whole += read_at[r - 1] > now - window / 16 * 14 &&
					 at[k] > read_at[r - 1] && at[k] <= read_at[r] &&
					 read_at[r - 1] / window == read_at[r] / window;
		read_at[reads++] = now;
		found = edge_burst_read(bursts, 42, &reading, now);
		if (found > most || found < whole)
			fail_msg("event %u: %llu, expected %llu to %llu", i, found, whole, most);
		most_found = found > most_found ? found : most_found;
	}
	assert_true(most_found > 20);
	edge_bursts_free(bursts);
}

/* A count that others brought since the last reading is as old as that; one's own is new. */
TEST(reading_ages)
{
	struct edge_bursts *bursts = edge_bursts_new();
	struct edge_reading r = {
		.window_ns = 16 * SEC, .elapsed_ns = 8 * SEC, .count = 5, .cost = 2
	};

	/* Three of others since the window began, 8 s ago. */
	assert_int_equal(edge_burst_read(bursts, 9, &r, 1000 * SEC), 5);
	r = (struct edge_reading){ .window_ns = 16 * SEC, .elapsed_ns = 14 * SEC, .count = 9 };
	assert_int_equal(edge_burst_read(bursts, 9, &r, 1006 * SEC), 9);
	/* The next window: its two began with it, 1 s ago; the three of the beginning are over. */
	r = (struct edge_reading){ .window_ns = 16 * SEC, .elapsed_ns = 1 * SEC, .count = 2 };
	assert_int_equal(edge_burst_read(bursts, 9, &r, 1009 * SEC), 8);
	/* Nothing new, after a refund: what passed has passed. */
	r = (struct edge_reading){ .window_ns = 16 * SEC, .elapsed_ns = 2 * SEC, .count = 1 };
	assert_int_equal(edge_burst_read(bursts, 9, &r, 1010 * SEC), 8);
	/* The first six are as old as the first reading. */
	r = (struct edge_reading){ .window_ns = 16 * SEC, .elapsed_ns = 7 * SEC, .count = 1 };
	assert_int_equal(edge_burst_read(bursts, 9, &r, 1015 * SEC), 8);
	r.elapsed_ns = 8 * SEC;
	assert_int_equal(edge_burst_read(bursts, 9, &r, 1016 * SEC), 2);
	edge_bursts_free(bursts);
}

/* Of a limit that changes the largest one of a window or up to two, and not of another value. */
TEST(capacities)
{
	struct edge_bursts *bursts = edge_bursts_new();

	assert_int_equal(edge_burst_capacity(bursts, 5, 10 * SEC, 100 * SEC, 20), 0);
	edge_burst_note(bursts, 5, 10 * SEC, 100 * SEC, 1);
	assert_int_equal(edge_burst_capacity(bursts, 5, 10 * SEC, 100 * SEC, 20), 20);
	assert_int_equal(edge_burst_capacity(bursts, 5, 10 * SEC, 109 * SEC, 10), 20);
	assert_int_equal(edge_burst_capacity(bursts, 5, 10 * SEC, 119 * SEC, 10), 20);
	assert_int_equal(edge_burst_capacity(bursts, 5, 10 * SEC, 120 * SEC, 10), 10);
	assert_int_equal(edge_burst_capacity(bursts, 5, 10 * SEC, 121 * SEC, 15), 15);
	assert_int_equal(edge_burst_capacity(bursts, 5, 10 * SEC, 141 * SEC, 5), 5);
	assert_int_equal(edge_burst_capacity(bursts, 5 + EDGE_SAMPLE, 10 * SEC, 141 * SEC, 9), 0);
	edge_bursts_free(bursts);
}

TEST_MAIN
