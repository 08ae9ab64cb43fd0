// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The recipes of docs/examples/rules over hours of simulated time: a thousand sources guess one
 * account's password, which reaches the application at most 50 times in any hour, while the
 * owner logs in at any time; and the promise of each other recipe. tests/http/recipes.sh tests
 * them from outside, in the time that a test has.
 */
#include <stdlib.h>

#include "lib/decide_rig.h"
#include "lib/rng.h"

#define MINUTE (60 * SEC)
#define HOUR (60 * MINUTE)

/* docs/examples/rules/NAME.yaml; NAME is its domain, too, unless given. */
static void open_recipe(const char *name, const char *its_domain)
{
	static char text[16384];
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "docs/examples/rules/%s.yaml", name);
	file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = 0;
	fclose(file);
	rig_domain = its_domain ? its_domain : name;
	rig_open(text, 100000);
}

/* ------------------------------------------------------------------ login */

static bool attempt(const char *account, const char *kind, const char *source, bool right)
{
	char text[256];

	snprintf(text, sizeof(text), "source=%s;account=%s,source=%s;%s=%s", source, account,
		 source, kind, account);
	if (!allowed(text))
		return false;
	if (right)
		report(text, -1, 0);
	return true;
}

/* The most of `count` ordered times within any hour. */
static u32 most_in_an_hour(const u64 *at, u32 count)
{
	u32 most = 0;

	for (u32 first = 0, last = 0; last < count; last++) {
		while (at[last] - at[first] >= HOUR)
			first++;
		if (last - first + 1 > most)
			most = last - first + 1;
	}
	return most;
}

TEST(test_login_guessed)
{
	static u64 at[100000];
	u32 reached = 0, owner = 0, neighbour = 0;
	char source[32];

	rng_start("login");
	open_recipe("login", NULL);
	for (u32 second = 0; second < 3 * 3600; second++) {
		/* Two guesses a second, each time from another one of a thousand. */
		for (u32 i = 0; i < 2; i++) {
			u32 of = rng_below(1000);

			snprintf(source, sizeof(source), "198.51.%u.%u", of >> 8, of & 255);
			if (attempt("bob", "unknown", source, false))
				at[reached++] = rig_now.mono_ns;
		}
		if (second % 60 == 0) {
			owner += attempt("bob", "known", "192.0.2.7", true);
			neighbour += attempt("eve", "unknown", "192.0.2.8", true);
		}
		rig_pass(SEC);
	}
	assert_in_range(most_in_an_hour(at, reached), 45, 50);
	assert_in_range(reached, 120, 130);
	assert_int_equal(owner, 180);
	assert_int_equal(neighbour, 180);
	rig_end();
}

TEST(test_login_bounds)
{
	u32 passed = 0;
	char text[64];

	open_recipe("login", NULL);
	/* One source tries account after account: 20, and its /64 is one source. */
	for (u32 i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "user%u", i);
		passed += attempt(text, "unknown", i % 2 ? "2001:db8::1" : "2001:db8::2", false);
	}
	assert_int_equal(passed, 20);
	assert_true(attempt("user1", "unknown", "2001:db8:0:1::1", false));
	/* One account from one source: 5, with the right password too. */
	passed = 0;
	for (u32 i = 0; i < 30; i++)
		passed += attempt("al", "known", "192.0.2.9", false);
	assert_int_equal(passed, 5);
	assert_true(attempt("al", "known", "192.0.2.10", false));
	/* A user with the right password is never refused, however often they log in. */
	for (u32 i = 0; i < 1000; i++)
		assert_true(attempt("zoe", "known", "192.0.2.11", true));
	/* After a quarter and an hour all is as before. */
	rig_pass(2 * HOUR);
	assert_true(attempt("al", "known", "192.0.2.9", false));
	rig_end();
}

/* ------------------------------------------------------------------ the others */

TEST(test_failures)
{
	open_recipe("failures", NULL);
	assert_int_equal(allowed_of("user=bob", 50), 3);
	assert_int_equal(allowed_of("user=eve", 2), 2);
	for (u32 i = 0; i < 100; i++) {
		assert_true(allowed("user=good"));
		report("user=good", -1, 0);
	}
	assert_int_equal(allowed_of("user=good", 5), 3);
	rig_pass(15 * MINUTE);
	assert_int_equal(allowed_of("user=bob", 50), 3);
	/* Refunds without a charge have no effect. */
	report("user=cheat", -1000, 0);
	assert_int_equal(allowed_of("user=cheat", 50), 3);
	rig_end();
}

TEST(test_plans)
{
	u32 day = 0;

	open_recipe("plans", NULL);
	ALLOWED_ROWS({ "plan=free,user=bob", 50, 10 }, { "plan=free,user=eve", 50, 10 },
		     { "plan=pro,user=bob", 500, 200 }, { "plan=other,user=bob", 50, 10 },
		     { "plan=pro,user=acme", 5000, 1500 });
	for (u32 i = 0; i < 600; i++) {
		rig_pass(MINUTE);
		day += allowed_of("plan=free,user=zoe", 20);
	}
	assert_int_equal(day, 1000);
	rig_end();
}

TEST(test_shards)
{
	open_recipe("shards", NULL);
	ALLOWED_ROWS({ "api=x;api=x,shard=1", 600, 400 }, { "api=x;api=x,shard=2", 600, 400 },
		     { "api=x;api=x,shard=3", 600, 200 }, { "api=x;api=x,shard=4", 600, 0 },
		     { "api=y;api=y,shard=1", 600, 400 });
	rig_end();
}

TEST(test_endpoints)
{
	open_recipe("endpoints", NULL);
	ALLOWED_ROWS({ "user=bob,path=/export", 50, 2 }, { "user=bob,path=/search", 50, 5 },
		     { "user=bob,path=/static/a.css", 5000, 5000 }, { "user=bob,path=/a", 50, 20 },
		     { "user=bob,path=/b", 50, 20 }, { "user=eve,path=/export", 50, 2 });
	rig_end();
}

TEST(test_hybrid)
{
	u32 office = 0;
	char text[64];

	open_recipe("hybrid", NULL);
	assert_int_equal(allowed_of("source=192.0.2.1;user=bob", 50), 20);
	/* The same user elsewhere has no more; an office of ten has 100 in all. */
	assert_int_equal(allowed_of("source=192.0.2.2;user=bob", 50), 0);
	for (u32 i = 0; i < 10; i++) {
		snprintf(text, sizeof(text), "source=192.0.2.3;user=office%u", i);
		office += allowed_of(text, 15);
	}
	assert_int_equal(office, 100);
	/* Requests refused for the address cost the user nothing. */
	assert_int_equal(allowed_of("source=192.0.2.4;user=office9", 50), 20);
	rig_end();
}

TEST(test_priority)
{
	u64 payments = 0, analytics = 0, other = 0;

	open_recipe("priority", "database");
	for (u32 ms = 0; ms < 60000; ms++) {
		/* Analytics send ten times as many requests as there is room for. */
		analytics += allowed("database=main;job=analytics");
		other += ms % 20 == 0 && allowed("database=main;job=web");
		payments += ms % 50 == 0 && allowed("database=main;job=payments");
		rig_pass(MS);
	}
	assert_int_equal(payments, 1200);
	assert_in_range(other, 2900, 3000);
	/* All that the others leave, and no more. */
	assert_in_range(analytics, 1500, 1950);
	rig_end();
}

TEST_MAIN
