// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * request_submit() and delayed responses: how long a request waits, in which order and behind
 * which, and how it ends. SLUICE_SEED repeats the random schedule. Decisions of the cluster store:
 * test_delay_far.c.
 */
#include "delay_rig.h"

RIG_TEST(test_at_once)
{
	is_answered(ask_one(0), RESPONSE_OK, 0);
	assert_int_equal(observed, 1);
	assert_int_equal(delays_total(engine.delays), 0);
	/* A rule without waiting. */
	rule.wait_ns = 0;
	is_answered(ask_one(0), RESPONSE_OVER_LIMIT, 0);
	/* Without delays in the tier no request is delayed either. */
	rule.wait_ns = 2000 * MS;
	delays_free(engine.delays);
	engine.delays = NULL;
	is_answered(ask_one(0), RESPONSE_OVER_LIMIT, 0);
}

static void rule_waiting(void *arg, u64 rule_id, u64 count)
{
	assert_int_equal(rule_id, 7);
	*(u64 *)arg += count;
}

/* A request that cannot be decided meets no rule: refused at once, however long it may wait, and
 * counted. */
RIG_TEST(test_beyond)
{
	struct caller *who = &caller[callers++];

	*who = (struct caller){ .request = { .beyond = "too many", .max_wait_ns = NEVER } };
	assert_null(request_submit(&workers[0], &who->request, answered, who));
	assert_true(who->answered);
	assert_int_equal(who->code, RESPONSE_OVER_LIMIT);
	assert_true(who->retry_after_ns == ~0ULL);
	assert_int_equal(beyond, 1);
	assert_int_equal(observed, 0);
	assert_int_equal(in_rules, 0);
}

/* Of eleven at once the k-th gets its response after k x 200 ms; one more is beyond the queue. */
RIG_TEST(test_in_order)
{
	struct caller *one[12], *neighbour;
	u64 delayed = 0;

	for (int i = 0; i < 12; i++)
		one[i] = ask_one(i % 2);
	assert_int_equal(delays_total(engine.delays), 10);
	delays_each(engine.delays, rule_waiting, &delayed);
	assert_int_equal(delayed, 10);
	is_answered(one[0], RESPONSE_OK, 0);
	is_answered(one[11], RESPONSE_OVER_LIMIT, 0);
	assert_int_equal(one[11]->retry_after_ns, 11 * 200 * MS);
	neighbour = ask_of(1, 2, 1, NEVER, false, false);
	is_answered(neighbour, RESPONSE_OK, 0);
	pass(now_ns + 3000 * MS, 0);
	for (int i = 1; i < 11; i++)
		is_answered(one[i], RESPONSE_OK, i * 200 * MS);
	assert_int_equal(rule.charged, 12);
	assert_int_equal(delays_total(engine.delays), 0);
	assert_int_equal(observed, 13);
}

/* Timers that come 15 ms late move no one after them. */
RIG_TEST(test_late_timers)
{
	struct caller *one[11];

	for (int i = 0; i < 11; i++)
		one[i] = ask_one(i % 2);
	pass(now_ns + 2200 * MS, 15 * MS);
	for (int i = 1; i < 10; i++)
		is_answered(one[i], RESPONSE_OK, i * 200 * MS + 15 * MS);
	/* The last one's time was up at 2 s; it was due by then, and late is not its fault. */
	is_answered(one[10], RESPONSE_OK, 2015 * MS);
}

RIG_TEST(test_cancel_moves_up)
{
	struct caller *one[11];
	int place = 1;

	for (int i = 0; i < 11; i++)
		one[i] = ask_one(i % 2);
	/* In the middle, the last, and the first of them while its timer runs. */
	cancel(one[5]);
	cancel(one[10]);
	pass(now_ns + 100 * MS, 0);
	cancel(one[1]);
	assert_int_equal(delays_total(engine.delays), 7);
	pass(now_ns + 3000 * MS, 0);
	for (int i = 2; i < 10; i++)
		if (i != 5)
			is_answered(one[i], RESPONSE_OK, place++ * 200 * MS);
	assert_int_equal(rule.charged, 8);
	/* Its place in the queue is free at once. */
	one[0] = ask_one(0);
	one[1] = ask_one(1);
	cancel(one[1]);
	assert_int_equal(delays_total(engine.delays), 0);
}

/* No request passes the queue, whether it would wait or not, also when the bucket has room
 * again. */
RIG_TEST(test_no_overtaking)
{
	struct caller *delays, *hasty, *looks, *behind;

	ask_one(0);
	delays = ask_one(0);
	now_ns += 250 * MS; /* due, but its timer was not served yet */
	hasty = ask_of(1, 0, 1, 0, false, false);
	is_answered(hasty, RESPONSE_OVER_LIMIT, 0);
	assert_int_equal(hasty->retry_after_ns, 200 * MS);
	looks = ask_of(1, 0, 1, NEVER, false, true);
	is_answered(looks, RESPONSE_OVER_LIMIT, 0);
	behind = ask_one(1);
	assert_false(behind->answered);
	pass(now_ns, 0);
	is_answered(delays, RESPONSE_OK, 250 * MS);
	assert_false(behind->answered);
	pass(now_ns + 1000 * MS, 0);
	is_answered(behind, RESPONSE_OK, 180 * MS); /* as of 20 ms back at most */
}

RIG_TEST(test_bounds)
{
	struct caller *one;

	/* The client's own max_wait: 500 ms are enough for two in the queue. */
	ask_one(0);
	for (int i = 0; i < 2; i++)
		assert_false(ask_of(0, 0, 1, 500 * MS, false, false)->answered);
	one = ask_of(0, 0, 1, 500 * MS, false, false);
	is_answered(one, RESPONSE_OVER_LIMIT, 0);
	assert_int_equal(one->retry_after_ns, 600 * MS);
	/* The rule's: ten may queue, but the wait is over before. */
	rule.wait_ns = 700 * MS;
	assert_false(ask_one(0)->answered);
	is_answered(ask_one(0), RESPONSE_OVER_LIMIT, 0);
	pass(now_ns + 3000 * MS, 0);
	assert_int_equal(rule.charged, 4);

	/* All delayed requests of the tier. */
	end(state);
	begin_with(3);
	for (u64 key = 0; key < 3; key++)
		for (int i = 0; i < 2; i++)
			ask_of(key & 1, key, 1, NEVER, false, false);
	assert_int_equal(delays_total(engine.delays), 3);
	is_answered(ask_one(0), RESPONSE_OVER_LIMIT, 0);
	pass(now_ns + 200 * MS, 0);
	assert_int_equal(delays_total(engine.delays), 0);
	assert_false(ask_one(0)->answered);
	pass(now_ns + 200 * MS, 0);
}

/* A request that is never delayed (a report) takes the units waited for: time runs out. */
RIG_TEST(test_time_is_up)
{
	struct caller *one, *two;

	ask_one(0);
	one = ask_of(0, 0, 1, 250 * MS, false, false);
	two = ask_of(1, 0, 1, 450 * MS, false, false);
	rule.tat[0] += 100 * MS;
	pass(now_ns + 1000 * MS, 0);
	/* Known when it was due: it would not fit in time. */
	is_answered(one, RESPONSE_OVER_LIMIT, 200 * MS);
	assert_int_equal(one->retry_after_ns, 100 * MS);
	is_answered(two, RESPONSE_OK, 300 * MS);
	/* One that is not the first of its queue. */
	ask_one(0);
	one = ask_one(0);
	two = ask_of(1, 0, 1, 450 * MS, false, false);
	rule.tat[0] += 400 * MS;
	pass(now_ns + 3000 * MS, 0);
	is_answered(one, RESPONSE_OK, 600 * MS);
	is_answered(two, RESPONSE_OVER_LIMIT, 450 * MS);
}

RIG_TEST(test_reload)
{
	struct caller *one[6];
	u64 begin_ns = now_ns;

	/* Faster: from then on each 50 ms. */
	for (int i = 0; i < 5; i++)
		one[i] = ask_one(i % 2);
	pass(now_ns + 100 * MS, 0);
	rule.interval_ns = 50 * MS;
	rule.tat[0] = begin_ns + 100 * MS;
	delays_recheck(engine.delays);
	pass(now_ns + 1000 * MS, 0);
	for (int i = 1; i < 5; i++)
		is_answered(one[i], RESPONSE_OK, (100 + (i - 1) * 50) * MS);

	/* Other buckets: the queue moves over, in its order. */
	rule.interval_ns = 200 * MS;
	for (int i = 0; i < 5; i++)
		one[i] = ask_one(i % 2);
	rule.salt = 100;
	delays_recheck(engine.delays);
	one[5] = ask_one(0);
	pass(now_ns + 2000 * MS, 0);
	for (int i = 1; i < 5; i++) {
		is_answered(one[i], RESPONSE_OK, i * 200 * MS);
	}
	assert_true(one[5]->answered);

	/* Waiting is switched off: refused at once; the rule is gone: passed at once. */
	for (int i = 0; i < 3; i++)
		one[i] = ask_one(i % 2);
	rule.wait_ns = 0;
	delays_recheck(engine.delays);
	pass(now_ns, 0);
	is_answered(one[1], RESPONSE_OVER_LIMIT, 0);
	is_answered(one[2], RESPONSE_OVER_LIMIT, 0);
	rule.wait_ns = 2000 * MS;
	for (int i = 0; i < 3; i++)
		one[i] = ask_one(i % 2);
	rule.interval_ns = rule.tat[0] = 0;
	delays_recheck(engine.delays);
	pass(now_ns, 0);
	is_answered(one[1], RESPONSE_OK, 0);
	is_answered(one[2], RESPONSE_OK, 0);
}

RIG_TEST(test_drain)
{
	struct caller *one[5];

	for (int i = 0; i < 5; i++)
		one[i] = ask_one(i % 2);
	delays_drain(engine.delays);
	pass(now_ns, 0);
	for (int i = 1; i < 5; i++)
		is_answered(one[i], RESPONSE_OVER_LIMIT, 0);
	is_answered(ask_one(1), RESPONSE_OVER_LIMIT, 0);
	assert_int_equal(delays_total(engine.delays), 0);
}

/* Two buckets of one call: it waits for the later one, and comes back to its place. */
RIG_TEST(test_two_buckets)
{
	struct caller *both, *upper, *lower;

	ask_of(0, 0, 1, NEVER, false, false);
	ask_of(0, 1, 3, NEVER, false, false); /* the upper one: 600 ms */
	both = ask_of(0, 0, 1, NEVER, true, false);
	lower = ask_of(1, 0, 1, NEVER, false, false);
	upper = ask_of(1, 1, 1, NEVER, false, false);
	pass(now_ns + 3000 * MS, 0);
	is_answered(lower, RESPONSE_OK, 200 * MS);
	is_answered(both, RESPONSE_OK, 600 * MS);
	is_answered(upper, RESPONSE_OK, 800 * MS);
}

/*
 * A random schedule: order of arrival per key holds among those of one key, what passes is what
 * the rate lets pass, every request ends within its time, and nothing is left over.
 */
RIG_TEST(test_random)
{
	u64 begin_ns, passed[KEYS] = { 0 };
	int last[KEYS];

	rng_start("test_delay");
	rule.queue = 20;
	begin_ns = now_ns;
	while (callers < MAX - 10) {
		u64 dice = rng_below(100);

		if (dice < 70)
			ask_of(rng_below(2), rng_below(KEYS - 1), 1,
			       dice < 10   ? 0
			       : dice < 30 ? 700 * MS
					   : NEVER,
			       false, dice == 50);
		else if (dice < 80 && callers > 10 && caller[callers - dice % 10 - 1].delayed)
			cancel(&caller[callers - dice % 10 - 1]);
		else if (dice < 82)
			delays_recheck(engine.delays);
		else
			pass(now_ns + rng_below(400) * MS, rng_below(20) * MS);
	}
	pass(now_ns + 5000 * MS, 0);
	for (int key = 0; key < KEYS; key++)
		last[key] = -1;
	for (int i = 0; i < callers; i++) {
		struct caller *who = &caller[i];
		u64 key = who->request.at_utc_ns;

		assert_int_equal(who->answered, !who->cancelled);
		if (!who->answered || who->request.peek)
			continue;
		assert_true(who->delayed_ns <= 2021 * MS);
		assert_true(who->delayed_ns <= who->request.max_wait_ns + 21 * MS ||
			    who->request.max_wait_ns == NEVER);
		if (who->code != RESPONSE_OK)
			continue;
		assert_true(who->order > last[key]);
		last[key] = who->order;
		passed[key]++;
	}
	for (int key = 0; key < KEYS - 1; key++) {
		assert_true(passed[key] <= (now_ns - begin_ns) / (200 * MS) + 1);
		assert_true(passed[key] >= 100);
	}
	assert_int_equal(delays_total(engine.delays), 0);
}

TEST_MAIN
