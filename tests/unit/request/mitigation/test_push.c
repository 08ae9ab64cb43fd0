// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The push-down policy in simulated time: begins, goes up, down, ends; sources that it never
 * affects. */
#include "lib/test.h"
#include "unit/request/mitigation/push_rig.h"

PUSH_TEST(test_up_and_down)
{
	/* Nineteen in ten seconds are not twenty, however long. */
	for (u32 i = 0; i < 19; i++)
		refuse(&w, 66, 1, true);
	run(&w, 66, 60, 1);
	assert_int_equal(w.puts, 0);
	run(&w, 66, 10, 5);
	assert_true(on(&w, SL_PUSH_LIMIT));
	assert_int_equal(w.on[BAD].rate.count, 50);
	run(&w, 66, 40, 5);
	assert_true(on(&w, SL_PUSH_LIMIT));
	/* Paced, it comes half as often; that is still abuse. */
	run(&w, 66, 30, 1);
	assert_true(on(&w, SL_PUSH_NO_NEW));
	run(&w, 66, 61, 1);
	assert_true(on(&w, SL_PUSH_DROP));
	/* Nothing arrives any more: packets dropped by XDP are no abuse. */
	run(&w, 66, 55, 0);
	assert_true(on(&w, SL_PUSH_DROP));
	run(&w, 66, 7, 0);
	assert_true(on(&w, SL_PUSH_NO_NEW));
	run(&w, 66, 60, 0);
	assert_true(on(&w, SL_PUSH_LIMIT));
	/* It goes on: up again, but not before the step's time. */
	run(&w, 66, 50, 3);
	assert_true(on(&w, SL_PUSH_LIMIT));
	run(&w, 66, 12, 3);
	assert_true(on(&w, SL_PUSH_NO_NEW));
	run(&w, 66, 125, 0);
	assert_false(w.is_on[BAD]);
	assert_int_equal(w.events[PUSH_BEGAN], 1);
	assert_int_equal(w.events[PUSH_WENT_UP], 3);
	assert_int_equal(w.events[PUSH_WENT_DOWN], 3);
	assert_int_equal(w.events[PUSH_ENDED], 1);
}

PUSH_TEST(test_max_and_lease)
{
	for (u32 s = 0; s < 3590; s++) {
		run(&w, 66, 1, 5);
		/* With no daemon it is over a minute later at most. */
		if (w.is_on[BAD])
			assert_in_range(w.on[BAD].until_ns - w.now, S, PUSH_LEASE_NS);
		assert_true(s < 10 || w.is_on[BAD]);
	}
	assert_true(on(&w, SL_PUSH_DROP));
	assert_int_equal(w.dels, 0);
	run(&w, 66, 16, 0);
	assert_int_equal(w.dels, 1);
	assert_false(w.is_on[BAD]);
	/* And begins again at the first step. */
	run(&w, 66, 8, 5);
	assert_true(on(&w, SL_PUSH_LIMIT));
}

/* Forty users at the office, one of them abusive. */
PUSH_TEST(test_well_behaved_users_are_spared)
{
	struct push_stats stats;

	w.profile.users = 40;
	w.profile.good = 39;
	w.need_pps = 460;
	run(&w, 66, 300, 20);
	assert_true(on(&w, SL_PUSH_LIMIT));
	assert_int_equal(w.on[BAD].rate.count, 460);
	/* More users: more for them, at once. */
	w.need_pps = 900;
	run(&w, 66, 1, 20);
	assert_int_equal(w.on[BAD].rate.count, 900);
	/* They have left. */
	w.profile.good = 0;
	run(&w, 66, 1, 20);
	assert_true(on(&w, SL_PUSH_NO_NEW));
	run(&w, 66, 61, 20);
	assert_true(on(&w, SL_PUSH_DROP));
	/* One is back. */
	w.profile.good = 1;
	run(&w, 66, 1, 20);
	assert_true(on(&w, SL_PUSH_LIMIT));
	assert_int_equal(w.on[BAD].rate.count, 900);
	push_clear(w.push, NULL, w.now);
	/* A rule without exceptions is not applied. */
	steps[0].kind = SL_PUSH_DROP;
	run(&w, 66, 20, 20);
	steps[0].kind = SL_PUSH_LIMIT;
	assert_false(w.is_on[BAD]);
	push_stats(w.push, &stats);
	assert_true(stats.refused[PUSH_USERS] >= 1);
}

/*
 * The pass over the users is a second behind: it met the abusive user after the allowed requests
 * and before the refusals. A pass that began after the push-down ends it.
 */
PUSH_TEST(test_a_profile_from_before_ends_nothing)
{
	steps[0].kind = SL_PUSH_DROP;
	for (u32 i = 0; i < 20; i++)
		refuse(&w, 66, 1, true);
	assert_true(on(&w, SL_PUSH_DROP));
	w.profile.good = 1;
	w.profile.as_of_ns = w.now - 1;
	w.now += S;
	push_tick(w.push, w.now);
	assert_true(on(&w, SL_PUSH_DROP));
	w.profile.as_of_ns = w.now;
	push_tick(w.push, w.now);
	assert_false(w.is_on[BAD]);
	steps[0].kind = SL_PUSH_LIMIT;
}

/* Many users with a refusal now and then: no user's abuse. */
PUSH_TEST(test_a_rejection_counts_for_the_refused_user)
{
	for (u32 s = 0; s < 100; s++) {
		for (u32 user = 0; user < 40; user++)
			refuse(&w, 66, 100 + user, true);
		run(&w, 3, 1, 0);
	}
	assert_int_equal(w.puts, 0);
	/* Of many on the list only an active source stays on it. */
	run(&w, 3, 8, 5);
	run(&w, 66, 8, 5);
	assert_true(w.is_on[3] && w.is_on[BAD]);
	for (u32 s = 0; s < 75; s++) {
		for (u32 user = 0; user < 40; user++)
			refuse(&w, 3, 100 + user, true);
		run(&w, 66, 1, 5);
	}
	assert_false(w.is_on[3]);
	assert_true(on(&w, SL_PUSH_NO_NEW));
}

static void refused_for(enum push_refusal why, struct world *w)
{
	struct push_stats stats;

	run(w, 66, 30, 10);
	run(w, 7, 30, 10);
	assert_false(w->is_on[BAD]);
	assert_true(w->is_on[7]);
	push_stats(w->push, &stats);
	for (u32 i = 1; i < PUSH_REFUSAL_COUNT; i++)
		if (i == why)
			assert_in_range(stats.refused[i], 3, 15);
		else
			assert_int_equal(stats.refused[i], 0);
}

PUSH_TEST(test_unaffected_sources)
{
	struct push_stats stats;

	w.guard = PUSH_PROTECTED;
	refused_for(PUSH_PROTECTED, &w);
	begin(&w);
	w.guard = PUSH_UNSEEN;
	refused_for(PUSH_UNSEEN, &w);
	begin(&w);
	w.profile.requests = 19;
	refused_for(PUSH_FEW_REQUESTS, &w);
	/* A source with an eleventh of all requests is well-behaved. */
	begin(&w);
	w.profile.good_requests = 11;
	w.good_requests = 100;
	refused_for(PUSH_SHARE, &w);
	begin(&w);
	w.profile.good_requests = 10;
	w.good_requests = 100;
	run(&w, 66, 30, 10);
	assert_true(w.is_on[BAD]);
	/* A caller without the right, whatever it reports; and it does not count for callers with
	 * the right. */
	begin(&w);
	for (u32 i = 0; i < 2000; i++) {
		refuse(&w, 66, 66, false);
		w.now += S / 100;
	}
	refuse(&w, 66, 66, true);
	push_tick(w.push, w.now);
	assert_int_equal(w.puts, 0);
	push_stats(w.push, &stats);
	assert_int_equal(stats.refused[PUSH_NO_RIGHT], 100);
}

/* Protected during a push-down: it ends. Seen or not does not matter any more: it is dropped. */
PUSH_TEST(test_protected_later)
{
	run(&w, 66, 20, 10);
	w.guard = PUSH_UNSEEN;
	run(&w, 66, 20, 10);
	assert_true(w.is_on[BAD]);
	w.guard = PUSH_PROTECTED;
	run(&w, 66, 1, 0);
	assert_false(w.is_on[BAD]);
}

PUSH_TEST(test_bounds)
{
	struct push_stats stats;
	u32 count = 0;

	for (u32 n = 10; n < 30; n++)
		for (u32 i = 0; i < 20; i++)
			refuse(&w, n, n, true);
	for (u32 n = 0; n < 64; n++)
		count += w.is_on[n];
	assert_int_equal(count, 10);
	push_stats(w.push, &stats);
	assert_int_equal(stats.active[SL_PUSH_LIMIT], 10);
	assert_int_equal(stats.refused[PUSH_MAX_SOURCES], 10);
	assert_int_equal(
		push_clear(w.push, &(struct sl_prefix){ source(12).addr, SL_V4, 32 }, w.now), 1);
	assert_false(w.is_on[12]);
	assert_true(w.is_on[13]);
	assert_int_equal(push_clear(w.push, NULL, w.now), 9);
	/* A million names, each refused once, displace no counted source. */
	for (u32 i = 0; i < 19; i++)
		refuse(&w, 66, 66, true);
	for (u64 i = 0; i < 1000000; i++)
		refuse(&w, 40, 1000 + i, true);
	refuse(&w, 66, 66, true);
	assert_true(w.is_on[BAD]);
	assert_false(w.is_on[40]);
	/* The data path is full. */
	push_clear(w.push, NULL, w.now);
	w.put_result = -7;
	run(&w, 66, 5, 10);
	push_stats(w.push, &stats);
	assert_int_equal(stats.active[SL_PUSH_LIMIT], 0);
	assert_true(stats.refused[PUSH_FAILED] >= 1);
}

PUSH_TEST(test_shadow_refuses_nothing)
{
	struct push_limits_def l = limits(PUSH_MODE_SHADOW);

	push_set_limits(w.push, &l, w.now);
	run(&w, 66, 70, 10);
	assert_int_equal(w.puts, 0);
	assert_int_equal(w.events[PUSH_BEGAN], 1);
	assert_int_equal(w.events[PUSH_WENT_UP], 1);
	l = limits(PUSH_MODE_ENFORCE);
	push_set_limits(w.push, &l, w.now);
	assert_int_equal(w.dels, 0);
	run(&w, 66, 5, 10);
	assert_true(on(&w, SL_PUSH_LIMIT));
	l = limits(PUSH_MODE_OFF);
	push_set_limits(w.push, &l, w.now);
	run(&w, 66, 5, 10);
	assert_false(w.is_on[BAD]);
}

PUSH_TEST(test_adopted)
{
	struct push_entry entry = {
		.group = source(66), .rule = "api/user", .who = 66, .def = rule.push, .step = 2
	};

	memcpy(entry.steps, steps, sizeof(steps));
	entry.began_ns = entry.changed_ns = w.now - 10 * S;
	entry.until_ns = w.now + 20 * S;
	w.is_on[BAD] = true;
	assert_int_equal(push_adopt(w.push, &entry), 0);
	assert_int_equal(push_adopt(w.push, &entry), -17);
	run(&w, 66, 1, 0);
	assert_true(on(&w, SL_PUSH_DROP));
	run(&w, 66, 50, 0);
	assert_true(on(&w, SL_PUSH_NO_NEW));
	run(&w, 66, 125, 0);
	assert_false(w.is_on[BAD]);
}

TEST_MAIN
