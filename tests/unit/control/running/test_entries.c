// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_entries.c - blocks and exemptions that change one by one, over the simulated data plane:
 * origins beside each other and beside the configuration; over restarts, reloads, rollbacks and
 * unconfirmed rules; a damaged file; and random changes against a naive list.
 */
#include "txn_rig.h"

#include "control/running/entries.h"
#include "lib/policy_text.h"
#include "lib/rng.h"

#define NONE "fragments: limit\n"
/* It drops nothing. */
#define SHADOW "limits: [{name: all, rate: 10 packets/s, burst: 10, mode: shadow}]\n"
#define ADD(list, host) list " add {'prefix':'192.0.2." host "'}"
#define DEL(list, host) list " del {'prefix':'192.0.2." host "'}"
#define RELOAD "reload"
#define ROLLBACK "rollback"
#define CONFIRM "confirm"

static bool blocked(u32 host)
{
	return rig_packet(&rig, host, clock_mono_ns());
}

static struct entry entry_for(const char *prefix, u64 until_utc_ns)
{
	struct entry entry = { .list = LIST_BLOCK,
			       .prefix = prefix_of(prefix),
			       .until_utc_ns = until_utc_ns,
			       .reason = "a reason" };

	return entry;
}

static struct entries_result add(const char *origin, const char *prefix, u64 until_utc_ns)
{
	struct entry entry = entry_for(prefix, until_utc_ns);
	struct entries_result result;
	struct sl_err err;

	if (entries_add(&rig.d->running, origin, &entry, 1, &result, &err) < 0)
		fail_msg("%s", err.message);
	return result;
}

static size_t withdraw(const char *origin)
{
	struct entries_result result;
	struct sl_err err;

	assert_int_equal(entries_withdraw(&rig.d->running, origin, &result, &err), 0);
	return result.removed;
}

/* ------------------------------------------------------------------ origins */

RIG_TEST(origins_are_beside_each_other)
{
	rig_open(&rig, NONE);
	assert_int_equal(add("crowdsec", "192.0.2.5", 0).added, 1);
	assert_int_equal(add("crowdsec", "192.0.2.5", 0).changed, 0);
	assert_int_equal(add("fail2ban", "192.0.2.0/29", 0).added, 1);
	rig_do(&rig, ADD("block", "6"));
	assert_true(blocked(5) && blocked(6) && blocked(7));
	assert_false(blocked(8));
	assert_int_equal(withdraw("fail2ban"), 1);
	assert_int_equal(withdraw("fail2ban"), 0);
	assert_true(blocked(5) && blocked(6));
	assert_false(blocked(7));
	add("crowdsec", "192.0.2.6", 0);
	assert_int_equal(withdraw("crowdsec"), 2);
	assert_false(blocked(5));
	assert_true(blocked(6));
	rig_do(&rig, DEL("block", "6"));
	assert_false(blocked(6));
}

/* The file's blocks are in the rule set: a feed's of the same prefix comes and goes. */
RIG_TEST(beside_the_file)
{
	rig_open(&rig, "block: [192.0.2.9]\n");
	add("crowdsec", "192.0.2.9", 0);
	withdraw("crowdsec");
	assert_true(blocked(9));
	rig_do(&rig, DEL("block", "9"));
	assert_false(blocked(9));
	rig_do(&rig, ADD("block", "9"));
	assert_true(blocked(9));
	rig_do(&rig, ADD("exempt", "9"));
	assert_false(blocked(9));
	rig_do(&rig, DEL("exempt", "9"));
	assert_true(blocked(9));
}

RIG_TEST(deadlines)
{
	u64 now_utc_ns = clock_utc_ns();

	rig_open(&rig, NONE);
	add("crowdsec", "192.0.2.5", now_utc_ns + 60 * SL_NS_PER_SEC);
	add("fail2ban", "192.0.2.5", now_utc_ns + 90 * SL_NS_PER_SEC);
	assert_true(rig_packet(&rig, 5, clock_mono_ns() + 80 * SL_NS_PER_SEC));
	assert_false(rig_packet(&rig, 5, clock_mono_ns() + 91 * SL_NS_PER_SEC));
	assert_int_equal(add("crowdsec", "192.0.2.6", now_utc_ns - 1).added, 0);
	assert_false(blocked(6));
}

RIG_TEST(replace_keeps_what_is_in_both)
{
	struct entry entry[] = { entry_for("192.0.2.5", 0), entry_for("192.0.2.6", 0) };
	struct entries_result result;
	struct sl_err err;

	rig_open(&rig, NONE);
	add("fetch:a", "192.0.2.4", 0);
	add("fetch:a", "192.0.2.5", 0);
	assert_int_equal(
		entries_replace(&rig.d->running, "fetch:a", LIST_BLOCK, entry, 2, &result, &err),
		0);
	assert_int_equal(result.added, 1);
	assert_int_equal(result.changed, 0);
	assert_int_equal(result.removed, 1);
	assert_false(blocked(4));
	assert_true(blocked(5) && blocked(6));
	assert_int_equal(entries_del(&rig.d->running, "fetch:a", entry, 1, &result, &err), 0);
	assert_int_equal(result.removed, 1);
	assert_false(blocked(5));
}

RIG_TEST(bad_input_changes_nothing)
{
	struct entry entry[] = { entry_for("192.0.2.5", 0), entry_for("192.0.2.6", 0) };
	struct sl_err err;

	rig_open(&rig, NONE);
	strcpy(entry[1].reason, "two\nlines");
	assert_int_equal(entries_add(&rig.d->running, "a", entry, 2, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.message, "192.0.2.6"));
	assert_int_equal(entries_add(&rig.d->running, "A b", entry, 1, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.message, "A b"));
	assert_false(blocked(5));
	assert_int_equal(entries_count(&rig.d->running, LIST_BLOCK), 0);
}

/* ------------------------------------------------------------------ what survives */

RIG_TEST(a_killed_daemon_loses_nothing)
{
	rig_open(&rig, NONE);
	add("crowdsec", "192.0.2.5", 0);
	add("crowdsec", "192.0.2.6", 0);
	add("fail2ban", "192.0.2.6", 0);
	rig_do(&rig, ADD("block", "7"));
	assert_int_equal(withdraw("fail2ban"), 1);
	rig_restart(&rig);
	assert_true(blocked(5) && blocked(6) && blocked(7));
	assert_false(blocked(8));
	assert_int_equal(withdraw("crowdsec"), 2);
	rig_restart(&rig);
	assert_false(blocked(5) || blocked(6));
	assert_true(blocked(7));
}

/*
 * A line without an end was never acknowledged; a damaged one is skipped, and of a file that has
 * hardly anything else nothing is taken: it is put aside.
 */
RIG_TEST(damaged_files)
{
	char path[128];

	rig_open(&rig, NONE);
	add("crowdsec", "192.0.2.5", 0);
	rig_put(&rig, "entries", "a", "block 192.0.2.6 0 crow");
	rig_restart(&rig);
	assert_true(blocked(5));
	assert_false(blocked(6));
	add("crowdsec", "192.0.2.7", 0);
	rig_restart(&rig);
	assert_true(blocked(5) && blocked(7));
	rig_put(&rig, "entries", "a", "garbage\n");
	rig_restart(&rig);
	assert_true(blocked(5) && blocked(7));
	rig_put(&rig, "entries", "a", "block 192.0.2.8 crowdsec\nblock 192.0.2.300 0 crowdsec\n");
	rig_restart(&rig);
	assert_false(blocked(5) || blocked(7));
	snprintf(path, sizeof(path), "%s/entries.bad", rig.dir);
	assert_int_equal(access(path, F_OK), 0);
}

/* Feeds are beside the configuration; live blocks are part of it. */
RIG_TEST(reload_and_rollback)
{
	rig_open(&rig, SHADOW);
	add("crowdsec", "192.0.2.5", 0);
	rig_do(&rig, ADD("block", "6"));
	rig_do(&rig, ADD("block", "7"));
	rig_do(&rig, RELOAD);
	assert_true(blocked(5) && blocked(6) && blocked(7));
	rig_do(&rig, ROLLBACK);
	assert_false(blocked(7));
	assert_true(blocked(5) && blocked(6));
	rig_do(&rig, SET("20"));
	assert_true(blocked(5) && blocked(6));
	rig_do(&rig, ROLLBACK);
	rig_do(&rig, ROLLBACK);
	assert_false(blocked(6));
	assert_true(blocked(5));
}

/* Unconfirmed rules without a live block: it is back at the deadline, without a daemon. */
RIG_TEST(unconfirmed)
{
	u64 later_ns;

	rig_open(&rig, SHADOW);
	rig_do(&rig, ADD("block", "6"));
	rig_do(&rig, apply_line(&rig, SHADOW "fragments: pass\n", "60s", true));
	assert_false(blocked(6));
	later_ns = clock_mono_ns() + 61 * SL_NS_PER_SEC;
	assert_true(rig_packet(&rig, 6, later_ns));
	rig_restart(&rig);
	assert_false(blocked(6));
	assert_true(rig_packet(&rig, 6, later_ns));
	rig_refused(&rig, &rig_root, ADD("block", "8"), "confirm");
	add("crowdsec", "192.0.2.5", 0);
	assert_true(blocked(5));
	let_time_pass(&rig);
	assert_true(blocked(5) && blocked(6));
	rig_do(&rig, apply_line(&rig, SHADOW "fragments: pass\n", "60s", true));
	rig_do(&rig, CONFIRM);
	assert_false(rig_packet(&rig, 6, later_ns));
}

/* ------------------------------------------------------------------ random ones */

#define RANDOM_ORIGINS 3
#define RANDOM_HOSTS 8
#define RANDOM_FOR_NS (50 * SL_NS_PER_SEC)

/* The end of each origin's block of each host and of the /30 of each four; 0: none, ~0: no end. */
struct naive {
	u64 host[RANDOM_ORIGINS][RANDOM_HOSTS];
	u64 four[RANDOM_ORIGINS][RANDOM_HOSTS / 4];
};

static void one_random(struct naive *n)
{
	static const char *const names[RANDOM_ORIGINS] = { "a", "b", "live" };
	u32 origin = rng_below(RANDOM_ORIGINS), host = rng_below(RANDOM_HOSTS);
	bool wide = rng_below(3) == 0;
	u64 *at = wide ? &n->four[origin][host / 4] : &n->host[origin][host];
	u64 until = rng_below(2) ? 0 : clock_utc_ns() + RANDOM_FOR_NS;
	struct entry entry;
	struct sl_err err;
	char prefix[32], line[160];

	snprintf(prefix, sizeof(prefix), wide ? "192.0.2.%u/30" : "192.0.2.%u",
		 wide ? host & ~3U : host);
	entry = entry_for(prefix, until);
	if (origin < 2 && rng_below(12) == 0) {
		withdraw(names[origin]);
		memset(n->host[origin], 0, sizeof(n->host[origin]));
		memset(n->four[origin], 0, sizeof(n->four[origin]));
	} else if (rng_below(3) == 0) {
		if (origin < 2)
			entries_del(&rig.d->running, names[origin], &entry, 1, NULL, &err);
		snprintf(line, sizeof(line), "block del {'prefix':'%s'}", prefix);
		if (origin == 2 && *at)
			rig_do(&rig, line);
		*at = 0;
	} else {
		if (origin < 2)
			add(names[origin], prefix, until);
		snprintf(line, sizeof(line), "block add {'prefix':'%s'%s}", prefix,
			 until ? ",'for':'50s'" : "");
		if (origin == 2)
			rig_do(&rig, line);
		*at = until ? clock_mono_ns() + RANDOM_FOR_NS : ~0ULL;
	}
}

static bool naive_blocked(const struct naive *n, u32 host, u64 mono_ns)
{
	for (u32 origin = 0; origin < RANDOM_ORIGINS; origin++)
		if (mono_ns < n->host[origin][host] || mono_ns < n->four[origin][host / 4])
			return true;
	return false;
}

/* The live change that was just made, if it was one. */
static void roll_back(struct naive *n, const struct naive *before, u32 top)
{
	if (rig.d->running.history_top == top)
		return;
	rig_do(&rig, ROLLBACK);
	memcpy(n->host[2], before->host[2], sizeof(n->host[2]));
	memcpy(n->four[2], before->four[2], sizeof(n->four[2]));
}

/* Rules without a live block, which are not confirmed. */
static void revert(void)
{
	rig_do(&rig, apply_line(&rig, SHADOW "fragments: pass\n", "60s", true));
	let_time_pass(&rig);
}

RIG_TEST(as_a_naive_list)
{
	/* The file's are as if live. */
	struct naive n = { .host = { [2] = { [1] = ~0ULL, [6] = ~0ULL } },
			   .four = { [2] = { [1] = ~0ULL } } };

	rng_start("entries");
	rig_open(&rig, SHADOW "block: [192.0.2.1, 192.0.2.4/30, 192.0.2.6, 192.0.2.1]\n");
	for (u32 round = 0; round < 300; round++) {
		u32 what = rng_below(30), top = rig.d->running.history_top;
		struct naive before = n;

		one_random(&n);
		if (what < 6)
			roll_back(&n, &before, top);
		else if (what == 6)
			revert();
		else if (what == 7)
			rig_restart(&rig);
		else if (what == 8)
			rig_do(&rig, RELOAD);
		else if (what == 9)
			rig_do(&rig, round % 2 ? SET("20") : SET("10"));
		for (u32 host = 0; host < RANDOM_HOSTS; host++) {
			u64 now_ns = clock_mono_ns();

			if (rig_packet(&rig, host, now_ns) != naive_blocked(&n, host, now_ns))
				fail_msg("round %u: host %u", round, host);
			now_ns += 10 * RANDOM_FOR_NS;
			if (rig_packet(&rig, host, now_ns) != naive_blocked(&n, host, now_ns))
				fail_msg("round %u: host %u later", round, host);
		}
	}
}

TEST_MAIN
