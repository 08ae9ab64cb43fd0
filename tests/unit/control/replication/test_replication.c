// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_replication.c - the owner of a block, ban or push-down, and withdrawals. */
#include "lib/test.h"
#include "control/replication/replication_table.c"

static struct sl_prefix prefix(u32 n)
{
	return (struct sl_prefix){ .addr = { .hi = (u64)n << 32 }, .family = SL_V4, .len = 32 };
}

static enum replication_news receive(struct replication_table *t, u32 n, const char *node,
				     u64 at_us)
{
	struct sl_prefix p = prefix(n);
	struct replication_item *item;

	return replication_receive(t, REPLICATION_BLOCK, &p, node, at_us, &item);
}

TEST(test_the_last_one_holds)
{
	struct replication_table *t = calloc(1, sizeof(*t));
	struct sl_prefix p = prefix(1);

	assert_int_equal(receive(t, 1, "b", 100), REPLICATION_NEW);
	assert_int_equal(receive(t, 1, "b", 100), REPLICATION_KNOWN);
	assert_int_equal(receive(t, 1, "c", 50), REPLICATION_IGNORED);
	assert_int_equal(receive(t, 1, "a", 100), REPLICATION_IGNORED);
	assert_string_equal(replication_find(t, REPLICATION_BLOCK, &p)->node, "b");
	/* At the same moment: by name, the same on all nodes in any order of arrival. */
	assert_int_equal(receive(t, 1, "c", 100), REPLICATION_NEW);
	assert_int_equal(receive(t, 1, "a", 101), REPLICATION_NEW);
	assert_string_equal(replication_find(t, REPLICATION_BLOCK, &p)->node, "a");
	assert_int_equal(t->theirs[REPLICATION_BLOCK], 1);
	/* Another kind is another entry. */
	assert_null(replication_find(t, REPLICATION_BAN, &p));
	replication_table_clear(t);
	free(t);
}

static void look_only(struct replication_item *item, void *arg)
{
}

TEST(test_withdrawn)
{
	struct replication_table *t = calloc(1, sizeof(*t));
	struct sl_prefix p = prefix(1);
	struct replication_item *item;
	bool new;

	receive(t, 1, "b", 100);
	item = replication_withdraw(t, REPLICATION_BLOCK, &p, 200, 1);
	replication_end_theirs(t, item);
	assert_int_equal(receive(t, 1, "b", 100), REPLICATION_GONE);
	assert_int_equal(receive(t, 1, "z", 200), REPLICATION_GONE);
	/* An earlier withdrawal changes nothing of that. */
	replication_withdraw(t, REPLICATION_BLOCK, &p, 150, 1);
	assert_int_equal(receive(t, 1, "b", 180), REPLICATION_GONE);
	assert_int_equal(receive(t, 1, "b", 201), REPLICATION_NEW);
	/* A day later it is forgotten. */
	replication_end_theirs(t, replication_find(t, REPLICATION_BLOCK, &p));
	replication_each(t, look_only, NULL, REPLICATION_GONE_NS);
	assert_int_equal(receive(t, 1, "b", 100), REPLICATION_GONE);
	replication_each(t, look_only, NULL, REPLICATION_GONE_NS + 2);
	assert_null(replication_find(t, REPLICATION_BLOCK, &p));
	assert_int_equal(t->gone[REPLICATION_BLOCK], 0);
	assert_int_equal(receive(t, 1, "b", 100), REPLICATION_NEW);
	/* This node's own, whatever others send. */
	item = replication_ours(t, REPLICATION_BLOCK, &p, 300, &new);
	assert_true(new);
	assert_false(item->theirs);
	assert_int_equal(receive(t, 1, "b", 400), REPLICATION_IGNORED);
	assert_ptr_equal(replication_ours(t, REPLICATION_BLOCK, &p, 500, &new), item);
	assert_false(new);
	assert_int_equal(item->at_us, 300);
	replication_table_clear(t);
	free(t);
}

TEST(test_bounded)
{
	struct replication_table *t = calloc(1, sizeof(*t));
	struct sl_prefix p = prefix(REPLICATION_MAX + 10);
	bool new;

	for (u32 n = 0; n < REPLICATION_MAX + 5; n++)
		assert_int_equal(receive(t, n, "b", 100),
				 n < REPLICATION_MAX ? REPLICATION_NEW : REPLICATION_IGNORED);
	assert_int_equal(t->refused, 5);
	assert_int_equal(receive(t, 5, "b", 101), REPLICATION_NEW);
	/* Entries of others: this node's own have their own room. */
	assert_non_null(replication_ours(t, REPLICATION_BLOCK, &p, 100, &new));
	p = prefix(7);
	replication_end_theirs(t, replication_find(t, REPLICATION_BLOCK, &p));
	assert_int_equal(receive(t, REPLICATION_MAX, "b", 100), REPLICATION_NEW);
	replication_table_clear(t);
	free(t);
}

TEST_MAIN
