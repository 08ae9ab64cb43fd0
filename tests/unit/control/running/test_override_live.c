// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * override set, del and list through the daemon: what is stored, listed, saved and refused, and
 * that a source keeps the used share of its limit, whatever its rates become.
 */
#include <fcntl.h>

#include "lib/daemon_rig.h"

#define SET(src, pairs) "override set {'name': 'web', 'src': '" src "', 'pairs': [" pairs "]}"
#define DEL(src) "override del {'name': 'web', 'src': '" src "'}"

static int passed(struct rig *rig, u8 last, int count)
{
	return rig_passed(rig, last, count, clock_mono_ns());
}

#define LIST "override list {'name': 'web'}"

RIG_TEST(test_commands)
{
	rig_open(&rig, "limits:\n  - {name: web, rate: 10 packets/m, burst: 10,\n"
		       "     overrides: [{src: 192.0.2.1, rate: 20 packets/m, burst: 20}]}\n");
	rig_do(&rig, SET("192.0.2.7", "'rate=50 packets/m', 'burst=70'"));
	rig_expect(&rig, LIST,
		   "count=2, overrides.1.src=192.0.2.7, overrides.1.rate=50 packets/m, "
		   "overrides.1.burst=70, overrides.1.live=true, overrides.0.live=false, "
		   "overrides.0.line=5");
	assert_int_equal(passed(&rig, 7, 100), 70);
	assert_int_equal(passed(&rig, 8, 100), 10);
	assert_int_equal(passed(&rig, 1, 100), 20);

	rig_refused(&rig, &rig_root, SET("192.0.2.7", "'rate=5 bytes/s'"), "another unit");
	rig_refused(&rig, &rig_root, SET("192.0.2.7", "'speed=5'"),
		    "unknown key \"speed\"; accepted: rate, burst");
	rig_refused(&rig, &rig_root, SET("192.0.2.7", ""), "'pairs' must be");
	rig_refused(&rig, &rig_root, SET("192.0.2.300", "'rate=5 packets/s'"), "not an address");
	rig_refused(&rig, &rig_root, DEL("192.0.2.9"), "no override for 192.0.2.9");
	rig_refused(&rig, &rig_reader, DEL("192.0.2.7"), "permission denied");

	/* Over a restart; only the last change of each source is kept. */
	rig_do(&rig, SET("192.0.2.7", "'burst=80'"));
	assert_int_equal(json_array_size(rig.d->running.live), 1);
	rig_restart(&rig);
	rig_expect(&rig, LIST, "count=2");
	/* A change that neither the file nor another change contains needs no record. */
	rig_do(&rig, DEL("192.0.2.7"));
	assert_int_equal(json_array_size(rig.d->running.live), 0);
	rig_do(&rig, DEL("192.0.2.1"));
	assert_int_equal(json_array_size(rig.d->running.live), 1);
	rig_expect(&rig, LIST, "count=0");

	/* Saved into the file. */
	rig_do(&rig, SET("2001:db8::/48", "'rate=90 packets/m'"));
	rig_do(&rig, "save");
	assert_int_equal(json_array_size(rig.d->running.live), 0);
	rig_restart(&rig);
	rig_expect(&rig, LIST, "count=1, overrides.0.src=2001:db8::/48, overrides.0.live=false");
}

/* An override may only fit the rates that were set before it: their order is kept. */
RIG_TEST(test_order)
{
	rig_open(&rig, "limits: [{name: web, rate: 10 packets/m}]\n");
	rig_do(&rig, "limit set {'name': 'web', 'pairs': ['rate=10 bytes/m', 'burst=6000']}");
	rig_do(&rig, SET("192.0.2.7", "'rate=50 bytes/m', 'burst=600'"));
	rig_do(&rig, "limit set {'name': 'web', 'pairs': ['burst=1200']}");
	rig_restart(&rig);
	rig_expect(&rig, LIST, "count=1");
	/* Frames of 60 bytes. */
	assert_int_equal(passed(&rig, 7, 100), 10);
	assert_int_equal(passed(&rig, 8, 100), 20);
	rig_do(&rig, "limit del {'name': 'web'}");
	assert_int_equal(json_array_size(rig.d->running.live), 1);
}

/*
 * The used share of a source goes along: to rates of its own, to others, and back. The
 * rates are slow, so that the time a test takes is worth a packet at most.
 */
RIG_TEST(test_share_is_kept)
{
	rig_open(&rig, "limits: [{name: web, rate: 1 packet/m, burst: 40, accounting: exact}]\n");
	assert_int_equal(passed(&rig, 7, 20), 20);
	assert_int_equal(passed(&rig, 8, 50), 40);
	assert_int_equal(passed(&rig, 9, 10), 10);

	/* Half of it. */
	rig_do(&rig, SET("192.0.2.7", "'rate=5 packets/m', 'burst=400'"));
	rig_do(&rig, SET("192.0.2.8", "'rate=5 packets/m', 'burst=400'"));
	assert_in_range(passed(&rig, 7, 100), 100, 100);
	assert_in_range(passed(&rig, 8, 1000), 0, 1);
	/* A quarter of 400 is left; with a burst of 100 that is 25 (and of another tau). */
	rig_do(&rig, SET("192.0.2.7", "'burst=100'"));
	assert_in_range(passed(&rig, 7, 100), 24, 26);
	rig_do(&rig, SET("192.0.2.7", "'burst=1000'"));
	assert_in_range(passed(&rig, 7, 100), 0, 11);
	/* A prefix over it does not change the rates of a longer one. */
	rig_do(&rig, SET("192.0.2.0/24", "'rate=5 packets/m', 'burst=80'"));
	assert_in_range(passed(&rig, 7, 100), 0, 1);
	/* Its groups are computed: 10 of 40 used is 20 of 80. */
	assert_in_range(passed(&rig, 9, 100), 59, 61);
	/* Back: empty is empty. */
	rig_do(&rig, DEL("192.0.2.0/24"));
	rig_do(&rig, DEL("192.0.2.7"));
	rig_do(&rig, DEL("192.0.2.8"));
	assert_in_range(passed(&rig, 7, 100), 0, 1);
	assert_in_range(passed(&rig, 8, 100), 0, 1);
	assert_in_range(passed(&rig, 9, 100), 0, 1);
	/* No other source is affected. */
	assert_int_equal(passed(&rig, 10, 100), 40);
}

/* An address out of a group: the group's used share counts as its own, and the group's stays. */
RIG_TEST(test_own_bucket)
{
	rig_open(&rig, "limits: [{name: web, rate: 1 packet/m, burst: 40, prefix: {ipv4: 24}}]\n");
	assert_int_equal(passed(&rig, 7, 10), 10);
	assert_int_equal(passed(&rig, 8, 10), 10);
	rig_do(&rig, SET("192.0.2.7", "'rate=1 packet/m', 'burst=100'"));
	assert_in_range(passed(&rig, 7, 200), 49, 51);
	assert_in_range(passed(&rig, 8, 200), 19, 21);
	rig_do(&rig, DEL("192.0.2.7"));
	assert_in_range(passed(&rig, 7, 200), 0, 1);
}

TEST(test_windows_keep_counts)
{
	static const char *const algorithms[] = { "fixed-window", "sliding-window" };

	for (size_t i = 0; i < COUNT(algorithms); i++) {
		struct rig rig;
		char text[200];

		snprintf(text, sizeof(text),
			 "limits: [{name: web, rate: 40 packets/365d, "
			 "algorithm: %s, accounting: exact}]\n",
			 algorithms[i]);
		rig_open(&rig, text);
		assert_int_equal(passed(&rig, 7, 30), 30);
		rig_do(&rig, SET("192.0.2.7", "'rate=100 packets/365d'"));
		assert_int_equal(passed(&rig, 7, 200), 70);
		rig_do(&rig, SET("192.0.2.7", "'rate=110 packets/365d'"));
		assert_int_equal(passed(&rig, 7, 200), 10);
		rig_do(&rig, DEL("192.0.2.7"));
		assert_int_equal(passed(&rig, 7, 200), 0);
		assert_int_equal(passed(&rig, 8, 200), 40);
		rig_close(&rig);
	}
}

/* Beside others of its length it changes in the running policy, with its use, history and all. */
RIG_TEST(test_in_place)
{
	const struct policy *policy;

	rig_open(&rig,
		 "limits:\n  - {name: web, rate: 10 packets/h, burst: 10, accounting: exact,\n"
		 "     overrides: [{src: 192.0.2.1, rate: 20 packets/h, burst: 20}]}\n");
	policy = rig.d->running.policy;
	assert_int_equal(passed(&rig, 7, 5), 5);
	rig_do(&rig, SET("192.0.2.7", "'rate=40 packets/h', 'burst=40'"));
	assert_ptr_equal(rig.d->running.policy, policy);
	/* Half of it was used. */
	assert_int_equal(passed(&rig, 7, 100), 20);
	assert_int_equal(passed(&rig, 1, 100), 20);
	assert_int_equal(passed(&rig, 8, 100), 10);
	rig_do(&rig, DEL("192.0.2.1"));
	rig_do(&rig, SET("192.0.2.9", "'rate=40 packets/h', 'burst=40'"));
	rig_do(&rig, DEL("192.0.2.9"));
	assert_ptr_equal(rig.d->running.policy, policy);
	rig_expect(&rig, LIST, "count=1");
	assert_int_equal(passed(&rig, 9, 5), 5);
	rig_do(&rig, "rollback");
	assert_int_equal(passed(&rig, 9, 100), 20);
	rig_restart(&rig);
	rig_expect(&rig, LIST, "count=2");
	policy = rig.d->running.policy;
	/* Another length, and the last one, take the whole way. */
	rig_do(&rig, SET("192.0.2.0/24", "'rate=40 packets/h', 'burst=60'"));
	assert_ptr_not_equal(rig.d->running.policy, policy);
	assert_int_equal(passed(&rig, 20, 100), 60);
}

/* The state before it cannot be written: list and verdicts are as before. */
RIG_TEST(test_not_stored)
{
	char *history, *away;

	rig_open(&rig,
		 "limits:\n  - {name: web, rate: 10 packets/h, burst: 10, accounting: exact,\n"
		 "     overrides: [{src: 192.0.2.1, rate: 20 packets/h, burst: 20}]}\n");
	history = file_join(rig.d->running.state_dir, "history");
	away = file_join(rig.d->running.state_dir, "away");
	assert_int_equal(rename(history, away), 0);
	close(open(history, O_CREAT | O_WRONLY, 0600));
	json_decref(rig_command(&rig, &rig_root, DEL("192.0.2.1")));
	json_decref(rig_command(&rig, &rig_root, SET("192.0.2.7", "'rate=40 packets/h'")));
	json_decref(rig_command(&rig, &rig_root, SET("192.0.2.1", "'burst=400'")));
	rig_expect(&rig, LIST, "count=1");
	assert_int_equal(json_array_size(rig.d->running.live), 0);
	assert_int_equal(passed(&rig, 8, 100), 10);
	assert_int_equal(passed(&rig, 1, 100), 20);
	assert_int_equal(passed(&rig, 7, 5), 5);
	unlink(history);
	assert_int_equal(rename(away, history), 0);
	rig_do(&rig, SET("192.0.2.7", "'rate=40 packets/h', 'burst=40'"));
	assert_int_equal(passed(&rig, 7, 100), 20);
	free(history);
	free(away);
}

TEST_MAIN
