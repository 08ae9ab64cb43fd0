// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls that ask the store of all nodes while it is away, late or refuses: what each
 * on_store_failure does, and what is owed to it afterwards.
 */
#include "remote_far.h"

/* Over by what is known here, and the store away when it is asked again: over, open or not. */
static void test_recall_away(void **state)
{
	static const char *const who[] = { "user=bob", "open=bob", "closed=bob", "error=bob" };
	struct shared_ask *ask;

	for (u32 i = 0; i < sizeof(who) / sizeof(who[0]); i++) {
		assert_int_equal(done(who[i]), CALL_OK);
		all_used(3);
		assert_int_equal(done(who[i]), CALL_OVER_LIMIT);
		later(1001 * MS);
		go(0, who[i]);
		assert_int_equal(caller[0].answered, 0);
		far_late(0, &ask);
		is(&caller[0], CALL_OVER_LIMIT);
		assert_true(caller[0].answer.retry_after_ns > 30 * SEC);
		ask->late(ask, SHARED_DOWN);
		is(go(0, who[i]), CALL_OVER_LIMIT);
	}
}

static void test_contracts(void **state)
{
	static const struct { const char *text; enum call_code code; } of[] = {
		{ "user=bob", CALL_OK }, { "open=bob", CALL_OK }, { "closed=bob", CALL_CLOSED },
		{ "error=bob", CALL_ERROR }, { "closed=bob;user=al", CALL_CLOSED },
		{ "error=bob;closed=al", CALL_ERROR }, { "open=al;error=bob", CALL_ERROR },
	};
	struct shared_ask *ask;

	for (int down = 0; down < 2; down++) {
		far.down[0] = down;
		for (u32 i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
			go(0, of[i].text);
			assert_int_equal(caller[0].answered, down);
			if (!down) {
				far_late(0, &ask);
				is(&caller[0], of[i].code);
				ask->late(ask, SHARED_DOWN);
			}
			is(&caller[0], of[i].code);
			assert_true(caller[0].answer.status[0].away);
			if (of[i].code != CALL_OK)
				assert_int_equal(caller[0].answer.retry_after_ns, SEC);
		}
	}
	/* It cannot be asked although it is up. */
	far.down[0] = false;
	far.refuses[0] = true;
	is(go(0, "closed=eve"), CALL_CLOSED);
	assert_int_equal(far_sum(), 0);
}

/* A refusal wins over what the others' rules say. */
static void test_refusal_wins(void **state)
{
	struct shared_ask *ask;

	far.places = 2;
	go(0, "user=bob;error=bob");
	assert_int_equal(far.end, 2);
	*far_used(far.asked[0]->bucket[0].key) = 3;
	far_late(1, &ask);
	far_answer(0);
	is(&caller[0], CALL_OVER_LIMIT);
	/* It was charged after all: given back. */
	far_charge(ask);
	assert_int_equal(far_sum(), 4);
	ask->late(ask, SHARED_DONE);
	assert_int_equal(far.backs, 1);
	far_answer_all();
	assert_int_equal(far_sum(), 3);
	assert_int_equal(told(), 0);
}

/* This node's share, while nobody else can say; the bucket of the whole is not closed by it. */
static void test_local_share(void **state)
{
	u32 passed = 0;

	rig_load("domain: api\ndescriptors:\n"
		 "  - {key: user, limits: ['300 requests/m'], scope: cluster}\n");
	shares_set_nodes(node.shared.shares, 3);
	far.down[0] = true;
	for (int i = 0; i < 300; i++) {
		go(0, "user=bob");
		assert_true(caller[0].answered);
		passed += caller[0].answer.code == CALL_OK;
	}
	assert_in_range(passed, 90, 100);
	is(&caller[0], CALL_OVER_LIMIT);
	assert_int_equal(caller[0].answer.retry_after_ns, 59 * SEC);
	assert_int_equal(go(0, "user=al")->answer.code, CALL_OK);
	/* It comes back, and is told of them; then the whole counts. */
	far.down[0] = false;
	assert_int_equal(told(), passed + 1);
	assert_int_equal(far_sum(), passed + 1);
	assert_int_equal(done("user=bob"), CALL_OK);
	assert_int_equal(caller[0].answer.status[0].remaining, 300 - passed - 1);
}

/* The door is open: what went through it does not close it, and all of it is owed. */
static void test_open(void **state)
{
	far.down[0] = true;
	for (int i = 0; i < 20; i++)
		is(go(0, "open=bob"), CALL_OK);
	far.down[0] = false;
	assert_int_equal(told(), 20);
	assert_int_equal(done("open=bob"), CALL_OVER_LIMIT);
}

/* Late answers of what was let through: owed where it was not charged, and only there. */
static void test_late(void **state)
{
	struct shared_ask *ask;

	go(0, "open=bob");
	far_late(0, &ask);
	is(&caller[0], CALL_OK);
	far_charge(ask);
	ask->late(ask, SHARED_DONE);
	assert_int_equal(far.end, 0);
	assert_int_equal(told(), 0);
	assert_int_equal(remaining("open=bob"), 2);

	/* Refused too late. */
	go(0, "open=bob");
	all_used(3);
	far_late(0, &ask);
	is(&caller[0], CALL_OK);
	far_charge(ask);
	assert_false(ask->passed);
	ask->late(ask, SHARED_DONE);
	assert_int_equal(told(), 1);
	assert_int_equal(far_sum(), 4);

	/* Nobody will ever know. */
	go(0, "open=al");
	far_late(0, &ask);
	ask->late(ask, SHARED_DOWN);
	assert_int_equal(told(), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_recall_away), TEST(test_contracts), TEST(test_refusal_wins),
		TEST(test_local_share), TEST(test_open), TEST(test_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
