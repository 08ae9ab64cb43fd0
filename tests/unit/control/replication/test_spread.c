// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_spread.c - whose a block, ban or push-down is, and what was taken back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "control/replication/spread_table.c"

static struct sl_prefix prefix(u32 n)
{
	return (struct sl_prefix){ .addr = { .hi = (u64)n << 32 }, .family = SL_V4, .len = 32 };
}

static enum spread_news hear(struct spread_table *t, u32 n, const char *node, u64 at_us)
{
	struct sl_prefix p = prefix(n);
	struct spread_item *item;

	return spread_hear(t, SPREAD_BLOCK, &p, node, at_us, &item);
}

static void test_the_last_one_holds(void **state)
{
	struct spread_table *t = calloc(1, sizeof(*t));
	struct sl_prefix p = prefix(1);

	assert_int_equal(hear(t, 1, "b", 100), SPREAD_NEW);
	assert_int_equal(hear(t, 1, "b", 100), SPREAD_KNOWN);
	assert_int_equal(hear(t, 1, "c", 50), SPREAD_IGNORED);
	assert_int_equal(hear(t, 1, "a", 100), SPREAD_IGNORED);
	assert_string_equal(spread_find(t, SPREAD_BLOCK, &p)->node, "b");
	/* At the same moment: by name, the same on all nodes whichever came first. */
	assert_int_equal(hear(t, 1, "c", 100), SPREAD_NEW);
	assert_int_equal(hear(t, 1, "a", 101), SPREAD_NEW);
	assert_string_equal(spread_find(t, SPREAD_BLOCK, &p)->node, "a");
	assert_int_equal(t->theirs[SPREAD_BLOCK], 1);
	/* Another kind is another thing. */
	assert_null(spread_find(t, SPREAD_BAN, &p));
	spread_table_clear(t);
	free(t);
}

static void look_only(struct spread_item *item, void *arg)
{
}

static void test_taken_back(void **state)
{
	struct spread_table *t = calloc(1, sizeof(*t));
	struct sl_prefix p = prefix(1);
	struct spread_item *item;
	bool new;

	hear(t, 1, "b", 100);
	item = spread_take_back(t, SPREAD_BLOCK, &p, 200, 1);
	spread_theirs_end(t, item);
	assert_int_equal(hear(t, 1, "b", 100), SPREAD_GONE);
	assert_int_equal(hear(t, 1, "z", 200), SPREAD_GONE);
	/* What was taken back earlier changes nothing of that. */
	spread_take_back(t, SPREAD_BLOCK, &p, 150, 1);
	assert_int_equal(hear(t, 1, "b", 180), SPREAD_GONE);
	assert_int_equal(hear(t, 1, "b", 201), SPREAD_NEW);
	/* A day later nobody knows. */
	spread_theirs_end(t, spread_find(t, SPREAD_BLOCK, &p));
	spread_each(t, look_only, NULL, SPREAD_GONE_NS);
	assert_int_equal(hear(t, 1, "b", 100), SPREAD_GONE);
	spread_each(t, look_only, NULL, SPREAD_GONE_NS + 2);
	assert_null(spread_find(t, SPREAD_BLOCK, &p));
	assert_int_equal(t->gone[SPREAD_BLOCK], 0);
	assert_int_equal(hear(t, 1, "b", 100), SPREAD_NEW);
	/* Ours, and nobody else's word. */
	item = spread_ours(t, SPREAD_BLOCK, &p, 300, &new);
	assert_true(new);
	assert_false(item->theirs);
	assert_int_equal(hear(t, 1, "b", 400), SPREAD_IGNORED);
	assert_ptr_equal(spread_ours(t, SPREAD_BLOCK, &p, 500, &new), item);
	assert_false(new);
	assert_int_equal(item->at_us, 300);
	spread_table_clear(t);
	free(t);
}

static void test_bounded(void **state)
{
	struct spread_table *t = calloc(1, sizeof(*t));
	struct sl_prefix p = prefix(SPREAD_MAX + 10);
	bool new;

	for (u32 n = 0; n < SPREAD_MAX + 5; n++)
		assert_int_equal(hear(t, n, "b", 100), n < SPREAD_MAX ? SPREAD_NEW : SPREAD_IGNORED);
	assert_int_equal(t->refused, 5);
	assert_int_equal(hear(t, 5, "b", 101), SPREAD_NEW);
	/* Of others: what this node does itself has its own room. */
	assert_non_null(spread_ours(t, SPREAD_BLOCK, &p, 100, &new));
	p = prefix(7);
	spread_theirs_end(t, spread_find(t, SPREAD_BLOCK, &p));
	assert_int_equal(hear(t, SPREAD_MAX, "b", 100), SPREAD_NEW);
	spread_table_clear(t);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_last_one_holds),
		cmocka_unit_test(test_taken_back),
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
