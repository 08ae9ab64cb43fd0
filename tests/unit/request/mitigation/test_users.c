// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Users behind sources: which count, for how long, how much, and that none can displace others. */
#include "lib/test.h"
#include "request/mitigation/users.h"

#define S SL_NS_PER_SEC

static struct users *users; /* of the test that runs */

static void make(u64 pairs, u64 sources, u32 max_users)
{
	struct users_options options = { .pairs = pairs, .sources = sources, .seed = { 1, 2 } };

	users_free(users);
	assert_int_equal(users_new(&options, &users), 0);
	users_set_rules(users,
			&(struct users_rules){ .active_ns = 60 * S, .max_users = max_users });
}

static int set_up(void **state)
{
	make(4096, 64, 500);
	return 0;
}

static int tear_down(void **state)
{
	users_free(users);
	users = NULL;
	return 0;
}

#define USERS_TEST(test) TEST_WITH(test, set_up, tear_down)

static struct sl_prefix source(u32 n)
{
	return (struct sl_prefix){ .addr = { .hi = (u64)(0x0a000000 + n) << 32 },
				   .family = SL_V4,
				   .len = 32 };
}

/* Any bits, like a keyed hash. */
static u64 user(u64 n)
{
	n = (n + 1) * 0x9e3779b97f4a7c15ULL;
	n ^= n >> 29;
	n *= 0xbf58476d1ce4e5b9ULL;
	return n ^ n >> 32;
}

static void allow(u32 src, u64 who, u32 mrps, u64 now)
{
	struct sl_prefix group = source(src);

	users_note(users,
		   &(struct user_note){ .group = group,
					.address = group,
					.user = user(who),
					.rate_mrps = mrps,
					.allowed = true,
					.first = true },
		   now);
}

static void refuse(u32 src, u64 who, bool own, u64 now)
{
	struct sl_prefix group = source(src);

	users_note(users,
		   &(struct user_note){ .group = group,
					.address = group,
					.user = user(who),
					.own_refusal = own,
					.first = true },
		   now);
}

static struct source_profile profile(u32 src, u64 now)
{
	struct sl_prefix group = source(src);
	struct source_profile ret;

	while (!users_pass(users, 4, now))
		;
	users_profile(users, &group, now, &ret);
	return ret;
}

USERS_TEST(test_sum_and_activity)
{
	struct source_profile s;

	for (u32 i = 0; i < 40; i++)
		allow(1, i, 500, 100 * S);
	allow(2, 1000, 2000, 129 * S);
	s = profile(1, 130 * S);
	assert_int_equal(s.users, 40);
	assert_int_equal(s.good, 40);
	assert_int_equal(s.rate_urps, 40 * 500000);
	assert_int_equal(s.good_requests, 40);
	assert_int_equal(s.requests, 40);
	s = profile(2, 130 * S);
	assert_int_equal(s.users, 1);
	assert_int_equal(s.rate_urps, 2000000);
	/* A minute after their last request they are gone; the other source's user is not. */
	s = profile(1, 160 * S);
	assert_int_equal(s.users, 40);
	s = profile(1, 161 * S);
	assert_int_equal(s.users, 0);
	assert_int_equal(s.rate_urps, 0);
	assert_int_equal(profile(2, 161 * S).users, 1);
}

USERS_TEST(test_only_allowed_requests_count)
{
	struct source_profile s;

	for (u32 i = 0; i < 10000; i++)
		refuse(1, i, true, (10 + i / 1000) * S);
	s = profile(1, 20 * S);
	assert_int_equal(s.users, 0);
	assert_int_equal(s.rate_urps, 0);
	assert_int_equal(s.requests, 10000);
	/* Refused after being allowed: the user counts, but is not well-behaved; the neighbour
	 * is. */
	allow(1, 7, 1000, 20 * S);
	allow(1, 8, 1000, 20 * S);
	refuse(1, 7, true, 21 * S);
	refuse(1, 8, false, 21 * S);
	s = profile(1, 22 * S);
	assert_int_equal(s.users, 2);
	assert_int_equal(s.good, 1);
	assert_int_equal(s.rate_urps, 2000000);
	assert_int_equal(s.good_rate_urps, 1000000);
	assert_int_equal(s.good_requests, 1);
	/* It is forgotten after as long as a user is active. */
	allow(1, 7, 1000, 82 * S);
	assert_int_equal(profile(1, 82 * S).good, 1);
	assert_int_equal(profile(1, 82 * S).users, 1);
}

/* A limit of one in two minutes: a user that is refused all the time is never well-behaved. */
USERS_TEST(test_refusals_outlive_the_last_allowed_request)
{
	struct users_stats stats;

	for (u32 s = 100; s <= 220; s++) {
		if (s % 120 == 100) {
			allow(1, 7, 8, s * S);
			allow(2, 8, 8, s * S);
			assert_int_equal(profile(1, s * S).good, s == 100);
			assert_int_equal(profile(2, s * S).good, 1);
		}
		refuse(1, 7, true, s * S);
		assert_int_equal(profile(1, s * S).good, 0);
		assert_int_equal(profile(1, s * S).users, s != 100 && (s - 100) % 120 <= 60);
	}
	profile(1, 281 * S);
	users_stats(users, &stats);
	assert_int_equal(stats.pairs, 0);
}

/* The profile's time is when the pass began, not when it ended. */
USERS_TEST(test_a_profile_is_as_of_its_pass)
{
	struct sl_prefix group = source(1);
	struct source_profile s;

	allow(1, 7, 1000, 100 * S);
	assert_false(users_pass(users, 2, 101 * S));
	assert_true(users_pass(users, 2, 102 * S));
	users_profile(users, &group, 102 * S, &s);
	assert_true(s.as_of_ns == 101 * S);
	assert_false(users_pass(users, 2, 103 * S));
	users_profile(users, &group, 103 * S, &s);
	assert_true(s.as_of_ns == 101 * S);
}

USERS_TEST(test_shared_between_sources)
{
	for (u32 src = 0; src < 3; src++)
		allow(src, 1, 3000, 10 * S);
	allow(0, 2, 1000, 10 * S);
	assert_int_equal(profile(0, 11 * S).rate_urps, 1000000 + 1000000);
	assert_int_equal(profile(1, 11 * S).rate_urps, 1000000);
	/* The user has left two of them. */
	allow(1, 1, 3000, 69 * S);
	assert_int_equal(profile(1, 75 * S).rate_urps, 3000000);
	assert_int_equal(profile(0, 75 * S).rate_urps, 0);
	/* At a hundred it is still no more than one user. */
	for (u32 src = 0; src < 60; src++)
		allow(src, 9, 8000, 200 * S);
	{
		u64 sum = 0;

		for (u32 src = 0; src < 60; src++)
			sum += profile(src, 201 * S).rate_urps;
		assert_true(sum == 8000000);
	}
}

/* A least: those that come back. A most: no others, once more came than may. */
USERS_TEST(test_invented_users)
{
	struct source_profile s;
	u64 n = 0;

	make(65536, 64, 500);
	for (u32 t = 1; t <= 30; t++) {
		for (u32 i = 0; i < 40; i++)
			allow(1, i, 1000, t * S);
		for (u32 i = 0; i < 333; i++)
			allow(1, 1000 + n++, 1000, t * S);
		allow(2, 1, 0, t * S);
		profile(1, t * S);
	}
	assert_true(n == 9990);
	s = profile(1, 30 * S);
	assert_int_equal(s.users, 40);
	assert_int_equal(s.good, 40);
	assert_int_equal(profile(2, 30 * S).users, 1);
	assert_int_equal(profile(3, 30 * S).users, 0);
	/* A source where none was before. */
	for (u32 i = 0; i < 10000; i++)
		allow(3, 20000 + i, 1000, 40 * S);
	assert_int_equal(profile(3, 40 * S).users, 0);
	assert_int_equal(profile(1, 40 * S).users, 40);
	/* A user that comes then and stays finds room, and counts. */
	for (u32 t = 40; t < 50; t++) {
		for (u32 i = 0; i < 3; i++)
			allow(3, 40000 + i, 1000, t * S);
		profile(3, t * S);
	}
	assert_int_equal(profile(3, 50 * S).users, 3);
	/* It is as before when the flood is over. */
	allow(3, 50000, 1000, 110 * S);
	assert_int_equal(profile(3, 110 * S).users, 0);
	assert_int_equal(profile(3, 110 * S).good, 1);
	assert_int_equal(profile(3, 111 * S).users, 1);
}

USERS_TEST(test_at_most_max_users)
{
	make(65536, 64, 100);
	for (u32 t = 1; t < 20; t++) {
		for (u32 i = 0; i < 300; i++)
			allow(1, i, 1000, t * S);
		profile(1, t * S);
	}
	assert_int_equal(profile(1, 20 * S).users, 100);
	assert_int_equal(profile(1, 20 * S).rate_urps, 100000000);
}

/* From a thousand sources at once, into a table that is too small for them. */
USERS_TEST(test_flood_from_everywhere)
{
	struct users_stats before, after;

	make(4096, 2048, 500);
	for (u32 t = 1; t < 4; t++)
		for (u32 i = 0; i < 40; i++)
			allow(5000, i, 1000, t * S);
	users_stats(users, &before);
	for (u32 i = 0; i < 200000; i++)
		allow(i % 1000, 1000 + i, 1000, (4 + i / 20000) * S);
	users_stats(users, &after);
	assert_int_equal(profile(5000, 15 * S).users, 40);
	assert_true(after.bytes == before.bytes);
	assert_true(after.pairs <= after.room);
	assert_true(after.evicted > 100000);
	/* More sources than there is room for: those with users stay. */
	for (u32 i = 0; i < 100000; i++)
		refuse(10000 + i, 1, true, 16 * S);
	assert_int_equal(profile(5000, 17 * S).users, 40);
	users_stats(users, &after);
	assert_true(after.sources <= 2048);
}

USERS_TEST(test_recent_requests)
{
	struct source_profile s;

	for (u32 t = 0; t < 300; t++)
		allow(1, 1, 1000, t * S);
	s = profile(1, 300 * S);
	assert_in_range(s.requests, 30, 60);
	assert_in_range(s.good_requests, 30, 60);
	assert_true(users_good_requests(users) == s.good_requests);
	s = profile(1, 340 * S);
	assert_in_range(s.requests, 0, 30);
	assert_int_equal(profile(1, 400 * S).requests, 0);
}

/* Requests without a user: good, unless their source is refused. */
USERS_TEST(test_requests_without_a_user)
{
	struct user_note note = { .allowed = true, .first = true };

	for (u32 i = 0; i < 30; i++) {
		note.group = note.address = source(i % 3);
		users_note(users, &note, 100 * S);
	}
	assert_int_equal(profile(1, 101 * S).good_requests, 10);
	assert_int_equal(profile(1, 101 * S).users, 0);
	assert_true(users_good_requests(users) == 30);
	note.allowed = false;
	note.own_refusal = true;
	note.group = note.address = source(1);
	users_note(users, &note, 102 * S);
	assert_int_equal(profile(1, 103 * S).good_requests, 0);
	assert_int_equal(profile(2, 103 * S).good_requests, 10);
	note.allowed = true;
	note.own_refusal = false;
	users_note(users, &note, 104 * S);
	assert_true(users_good_requests(users) == 30);
}

static void count_one(const struct source_profile *profile, void *arg)
{
	*(u32 *)arg += profile->users;
}

USERS_TEST(test_room_and_bytes)
{
	struct users_stats stats;
	u32 count = 0;

	make(1000000, 4096, 500);
	for (u32 i = 0; i < 760000; i++)
		allow(i % 2000, i, 1000, 10 * S);
	users_stats(users, &stats);
	while (!users_pass(users, 1, 11 * S))
		;
	users_sources(users, 11 * S, count_one, &count);
	assert_int_equal(count, stats.pairs);
	assert_true(stats.pairs > 720000);
	print_message("%llu pairs in %llu bytes: %.1f bytes each\n", stats.pairs, stats.bytes,
		      (double)stats.bytes / (double)stats.pairs);
	assert_true((double)stats.bytes / (double)stats.pairs <= 40);
}

TEST_MAIN
