// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requests while the cluster store is unavailable, late or refuses: the effect of each
 * on_store_failure, and the units flushed afterwards. How many pass:
 * tests/scenario/requests/redis-*.scn.
 */
#include "remote_far.h"

/* Over by local knowledge, and the store is unavailable when it is tried again: over, open or
 * not. */
RIG_TEST(test_refusal_cache_without_store)
{
	static const char *const who[] = { "user=bob", "open=bob", "closed=bob", "error=bob" };
	struct cluster_store_request *cluster_request;

	for (u32 i = 0; i < COUNT(who); i++) {
		assert_int_equal(done(who[i]), RESPONSE_OK);
		all_used(3);
		assert_int_equal(done(who[i]), RESPONSE_OVER_LIMIT);
		later(1001 * MS);
		go(0, who[i]);
		assert_int_equal(caller[0].answered, 0);
		far_late(0, &cluster_request);
		is(&caller[0], RESPONSE_OVER_LIMIT);
		assert_true(caller[0].response.retry_after_ns > 30 * SEC);
		cluster_request->late(cluster_request, CLUSTER_STORE_DOWN);
		is(go(0, who[i]), RESPONSE_OVER_LIMIT);
	}
}

RIG_TEST(test_contracts)
{
	static const struct {
		const char *text;
		enum response_code code;
	} of[] = {
		{ "user=bob", RESPONSE_OK },
		{ "open=bob", RESPONSE_OK },
		{ "closed=bob", RESPONSE_CLOSED },
		{ "error=bob", RESPONSE_ERROR },
		{ "closed=bob;user=al", RESPONSE_CLOSED },
		{ "error=bob;closed=al", RESPONSE_ERROR },
		{ "open=al;error=bob", RESPONSE_ERROR },
	};
	struct cluster_store_request *cluster_request;

	for (int down = 0; down < 2; down++) {
		far.down[0] = down;
		for (u32 i = 0; i < COUNT(of); i++) {
			go(0, of[i].text);
			assert_int_equal(caller[0].answered, down);
			if (!down) {
				far_late(0, &cluster_request);
				is(&caller[0], of[i].code);
				cluster_request->late(cluster_request, CLUSTER_STORE_DOWN);
			}
			is(&caller[0], of[i].code);
			assert_true(caller[0].response.status[0].unavailable);
			if (of[i].code != RESPONSE_OK)
				assert_int_equal(caller[0].response.retry_after_ns, SEC);
		}
	}
	/* It cannot be used although it is up. */
	far.down[0] = false;
	far.refuses[0] = true;
	is(go(0, "closed=eve"), RESPONSE_CLOSED);
	assert_int_equal(far_sum(), 0);
}

/* A refusal goes before the on_store_failure of other rules. */
RIG_TEST(test_refusal_wins)
{
	struct cluster_store_request *cluster_request;

	far.servers = 2;
	go(0, "user=bob;error=bob");
	assert_int_equal(far.end, 2);
	*far_used(far.in_flight[0]->bucket[0].key) = 3;
	far_late(1, &cluster_request);
	far_answer(0);
	is(&caller[0], RESPONSE_OVER_LIMIT);
	/* It was charged after all: refunded. */
	far_charge(cluster_request);
	assert_int_equal(far_sum(), 4);
	cluster_request->late(cluster_request, CLUSTER_STORE_DONE);
	assert_int_equal(far.refunds, 1);
	far_answer_all();
	assert_int_equal(far_sum(), 3);
	assert_int_equal(flushed(), 0);
}

/* Of a refusal by this node's share: the end of the window. */
RIG_TEST(test_share_retry)
{
	far.down[0] = true;
	for (int i = 0; i < 3; i++)
		is(go(0, "user=bob"), RESPONSE_OK);
	is(go(0, "user=bob"), RESPONSE_OVER_LIMIT);
	assert_int_equal(caller[0].response.retry_after_ns, 59 * SEC);
}

/* Late replies for admitted requests: flushed where they were not charged, and only there. */
RIG_TEST(test_late)
{
	struct cluster_store_request *cluster_request;

	go(0, "open=bob");
	far_late(0, &cluster_request);
	is(&caller[0], RESPONSE_OK);
	far_charge(cluster_request);
	cluster_request->late(cluster_request, CLUSTER_STORE_DONE);
	assert_int_equal(far.end, 0);
	assert_int_equal(flushed(), 0);
	assert_int_equal(remaining("open=bob"), 2);

	/* Refused too late. */
	go(0, "open=bob");
	all_used(3);
	far_late(0, &cluster_request);
	is(&caller[0], RESPONSE_OK);
	far_charge(cluster_request);
	assert_false(cluster_request->passed);
	cluster_request->late(cluster_request, CLUSTER_STORE_DONE);
	assert_int_equal(flushed(), 1);
	assert_int_equal(far_sum(), 4);

	/* Admitted without a reply: it counts, so a retry that Redis admits does not fit any
	 * more. */
	for (int i = 0; i < 2; i++) {
		go(0, "open=eve");
		far_answer_all();
	}
	go(0, "open=eve");
	assert_false(go(1, "open=eve")->answered);
	far_late(0, &cluster_request);
	is(&caller[0], RESPONSE_OK);
	far_answer(0);
	is(&caller[1], RESPONSE_OVER_LIMIT);
	far_answer_all();
	cluster_request->late(cluster_request, CLUSTER_STORE_DOWN);
	assert_int_equal(flushed(), 1);

	/* The outcome stays unknown. */
	go(0, "open=al");
	far_late(0, &cluster_request);
	cluster_request->late(cluster_request, CLUSTER_STORE_DOWN);
	assert_int_equal(flushed(), 1);
}

TEST_MAIN
