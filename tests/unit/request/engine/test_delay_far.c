// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Delayed responses with a verdict of the cluster store: a request is sent to it, and sent
 * again when it is due; it keeps its position meanwhile. SLUICE_SEED repeats the random schedule.
 */
#include "delay_rig.h"

RIG_TEST(test_far)
{
	struct caller *passes, *delays, *refused, *neighbour;

	far = true;
	passes = ask_one(0);
	delays = ask_one(1);
	refused = ask_of(0, 0, 1, 0, false, false);
	neighbour = ask_of(0, 2, 1, 0, false, false);
	now_ns += 3 * MS;
	assert_false(passes->answered || delays->answered || refused->answered);
	for (int i = 0; i < 4; i++)
		far_answer();
	/* A request that was not delayed has not waited, though its reply took a while. */
	assert_true(passes->answered && passes->code == RESPONSE_OK && !passes->delayed_ns);
	assert_true(neighbour->answered && neighbour->code == RESPONSE_OK);
	assert_true(refused->answered && refused->code == RESPONSE_OVER_LIMIT);
	assert_int_equal(refused->retry_after_ns, 200 * MS);
	assert_false(delays->answered);
	assert_int_equal(delays_total(engine.delays), 1);
	/* It tries again when it is due, that is, sends a command again. */
	pass(now_ns + 199 * MS, 0);
	assert_int_equal(asked_first, asked_end);
	pass(now_ns + 10 * MS, 0);
	assert_int_equal(asked_end - asked_first, 1);
	/* Meanwhile no request passes it, and no other of its queue sends a command. */
	assert_false(ask_one(0)->answered);
	is_answered(ask_of(0, 0, 1, 0, false, false), RESPONSE_OVER_LIMIT, 0);
	pass(now_ns + 100 * MS, 0);
	assert_int_equal(asked_end - asked_first, 1);
	far_answer();
	is_answered(delays, RESPONSE_OK, 312 * MS);
	assert_int_equal(rule.charged, 3);
	/* The next of the queue is started, and sends a command. */
	pass(now_ns, 0);
	assert_int_equal(asked_end - asked_first, 1);
	far_answer();
	pass(now_ns + 200 * MS, 0);
	far_answer();
	assert_int_equal(delays_total(engine.delays), 0);
	assert_int_equal(rule.charged, 4);
}

/* Another node was faster: back to the same position, and again. */
RIG_TEST(test_far_refused)
{
	struct caller *first, *second;

	ask_one(0);
	first = ask_one(0);
	second = ask_one(1);
	far = true;
	pass(now_ns + 200 * MS, 0);
	rule.tat[0] = now_ns + 150 * MS;
	far_answer();
	assert_false(first->answered || second->answered);
	pass(now_ns + 149 * MS, 0);
	assert_int_equal(asked_first, asked_end);
	pass(now_ns + 1 * MS, 0);
	far_answer();
	is_answered(first, RESPONSE_OK, 350 * MS);
	pass(now_ns, 0);
	far_answer();
	pass(now_ns + 200 * MS, 0);
	far_answer();
	is_answered(second, RESPONSE_OK, 550 * MS);
}

RIG_TEST(test_far_cancel)
{
	struct caller *fresh, *first, *second;

	far = true;
	fresh = ask_one(0);
	cancel(fresh);
	assert_int_equal(cancelled_far, 1);
	far_answer();
	assert_int_equal(rule.charged, 0);
	far = false;
	ask_one(0);
	first = ask_one(0);
	second = ask_one(1);
	far = true;
	pass(now_ns + 200 * MS, 0);
	/* The first sends a command; its client disconnects, and the second is started at once. */
	cancel(first);
	assert_int_equal(cancelled_far, 2);
	pass(now_ns, 0);
	assert_int_equal(asked_end - asked_first, 2);
	far_answer();
	far_answer();
	is_answered(second, RESPONSE_OK, 200 * MS);
	assert_int_equal(rule.charged, 2);
	assert_int_equal(delays_total(engine.delays), 0);
}

/* A retry (rules changed, the tier drains) during its command happens afterwards. */
RIG_TEST(test_far_retry)
{
	struct caller *first, *second;

	ask_one(0);
	first = ask_one(0);
	second = ask_one(1);
	far = true;
	pass(now_ns + 200 * MS, 0);
	delays_recheck(engine.delays);
	pass(now_ns, 0);
	assert_int_equal(asked_end - asked_first, 1);
	rule.tat[0] = now_ns + 500 * MS;
	far_answer();
	pass(now_ns, 0);
	assert_int_equal(asked_end - asked_first, 1);
	delays_drain(engine.delays);
	pass(now_ns, 0);
	is_answered(second, RESPONSE_OVER_LIMIT, 200 * MS);
	assert_false(first->answered);
	far_answer();
	is_answered(first, RESPONSE_OVER_LIMIT, 200 * MS);
	assert_int_equal(delays_total(engine.delays), 0);
}

/* As test_random() of test_delay.c, but those in flight may be overtaken. */
RIG_TEST(test_far_random)
{
	u64 begin_ns, passed[KEYS] = { 0 };

	rng_start("test_delay");
	far = true;
	rule.queue = 20;
	begin_ns = now_ns;
	while (callers < MAX - 10) {
		u64 dice = rng_below(100);

		if (dice < 40)
			ask_of(rng_below(2), rng_below(KEYS - 1), 1,
			       dice < 10   ? 0
			       : dice < 30 ? 700 * MS
					   : NEVER,
			       false, false);
		else if (dice < 45 && callers > 10 && caller[callers - dice % 10 - 1].delayed)
			cancel(&caller[callers - dice % 10 - 1]);
		else if (dice < 46)
			delays_recheck(engine.delays);
		else if (dice < 80 && asked_first < asked_end)
			far_answer();
		else if (dice >= 90)
			pass(now_ns + rng_below(200) * MS, rng_below(20) * MS);
	}
	for (int i = 0; i < 1000; i++) {
		while (asked_first < asked_end)
			far_answer();
		pass(now_ns + 5 * MS, 0);
	}
	for (int i = 0; i < callers; i++) {
		struct caller *who = &caller[i];

		assert_int_equal(who->answered, !who->cancelled);
		if (who->answered && who->code == RESPONSE_OK)
			passed[who->request.at_utc_ns]++;
	}
	for (int key = 0; key < KEYS - 1; key++) {
		assert_true(passed[key] <= (now_ns - begin_ns) / (200 * MS) + 1);
		assert_true(passed[key] >= 50);
	}
	assert_int_equal(delays_total(engine.delays), 0);
}

TEST_MAIN
