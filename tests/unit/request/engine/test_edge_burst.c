// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What passed within one window's length, against a list of all that passed: never more than that, and
 * no less than what passed within fifteen sixteenths of it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/rng.h"
#include "request/engine/edge_burst.h"

#define SEC 1000000000ULL
#define EVENTS 3000

static void bounds(void **state)
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

/* A value keeps its place while something of it passes; another one at the place is not measured. */
static void places(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds),
		cmocka_unit_test(places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
