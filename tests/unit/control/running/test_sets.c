// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sets, live: every place that names one changes with it, and the list stays short. */
#include "lib/rng.h"
#include "txn_rig.h"

#define SETS                                                                                       \
	"sets: {bad: [192.0.2.1, 192.0.2.2], good: [192.0.2.3]}\nblock: ['@bad']\n"                \
	"exempt: ['@good']\nlimits: [{name: all, match: {src: ['@bad', 192.0.2.200]}, "            \
	"rate: 1 packets/s, burst: 1, accounting: exact}]\n"

static bool drops(struct rig *rig, u8 last)
{
	return rig_packet(rig, last, clock_mono_ns());
}

RIG_TEST(test_lists_change_with_their_set)
{
	rig_open(&rig, SETS);
	assert_true(drops(&rig, 1));
	assert_false(drops(&rig, 9));
	rig_do(&rig, "set add {'name':'bad','prefixes':['192.0.2.9', '192.0.2.9/32']}");
	assert_true(drops(&rig, 9));
	assert_false(drops(&rig, 8));
	rig_do(&rig, "set del {'name':'@bad','prefixes':['192.0.2.1']}");
	assert_false(drops(&rig, 1));
	assert_true(drops(&rig, 2));
	rig_restart(&rig);
	assert_false(drops(&rig, 1));
	assert_true(drops(&rig, 2));
	assert_true(drops(&rig, 9));
	assert_int_equal(json_array_size(rig.d->running.live), 2);
	rig_do(&rig, "set replace {'name':'bad','prefixes':['192.0.2.64/26']}");
	assert_int_equal(json_array_size(rig.d->running.live), 1);
	assert_false(drops(&rig, 2));
	assert_false(drops(&rig, 9));
	assert_true(drops(&rig, 127));
	assert_false(drops(&rig, 128));
	rig_do(&rig, "rollback");
	assert_true(drops(&rig, 9));
	assert_false(drops(&rig, 127));
	/* Back at what the file says, nothing is left to remember. */
	rig_do(&rig, "set replace {'name':'bad','prefixes':['192.0.2.2', '192.0.2.1']}");
	assert_int_equal(json_array_size(rig.d->running.live), 0);
	assert_true(drops(&rig, 1));
}

RIG_TEST(test_exemptions_and_matches)
{
	u64 now = clock_mono_ns();

	rig_open(&rig, SETS);
	rig_do(&rig, "block del {'prefix':'@bad'}");
	assert_int_equal(rig_passed(&rig, 1, 5, now), 1);
	assert_int_equal(rig_passed(&rig, 7, 5, now), 5);
	rig_do(&rig, "set add {'name':'bad','prefixes':['192.0.2.7']}");
	assert_int_equal(rig_passed(&rig, 7, 5, now), 1);
	rig_do(&rig, "set add {'name':'good','prefixes':['192.0.2.7']}");
	assert_int_equal(rig_passed(&rig, 7, 5, now), 5);
	/* A match on an empty set would be a match on everything. */
	rig_refused(&rig, &rig_root, "set replace {'name':'bad','prefixes':[]}", "would be empty");
}

RIG_TEST(test_new_sets_and_save)
{
	rig_open(&rig, SETS);
	rig_do(&rig, "set add {'name':'more','prefixes':['192.0.2.50']}");
	rig_do(&rig, "block add {'prefix':'@more'}");
	assert_true(drops(&rig, 50));
	rig_restart(&rig);
	assert_true(drops(&rig, 50));
	rig_do(&rig, "set del {'name':'more','prefixes':['192.0.2.50']}");
	rig_restart(&rig);
	assert_false(drops(&rig, 50));
	rig_do(&rig, "set add {'name':'more','prefixes':['192.0.2.51']}");
	rig_do(&rig, "save");
	assert_int_equal(json_array_size(rig.d->running.live), 0);
	rig_restart(&rig);
	assert_true(drops(&rig, 51));
	rig_do(&rig, "set del {'name':'more','prefixes':['192.0.2.51']}");
	assert_false(drops(&rig, 51));
}

RIG_TEST(test_set_refusals)
{
	rig_open(&rig, SETS);
	rig_refused(&rig, &rig_root, "set add {'name':'bad','prefixes':['192.0.2.1/24']}",
		    "host bits");
	rig_refused(&rig, &rig_root, "set add {'name':'bad','prefixes':[7]}", "a string");
	rig_refused(&rig, &rig_root, "set add {'name':'bad','prefixes':7}", "an array");
	rig_refused(&rig, &rig_root, "set add {'name':'Bad!','prefixes':['192.0.2.1']}", "a-z");
	rig_refused(&rig, &rig_root, "set del {'name':'bad','prefixes':['192.0.2.77']}",
		    "192.0.2.77 is not in");
	rig_refused(&rig, &rig_root, "set del {'name':'none','prefixes':['192.0.2.77']}", "not in");
	/* It is blocked: as `block add`. */
	rig_refused(&rig, &rig_root, "set add {'name':'bad','prefixes':['0.0.0.0/0']}", "--force");
	rig_do(&rig, "set add {'name':'good','prefixes':['0.0.0.0/0']}");
	rig_refused(&rig, &rig_root, "set list {'name':'none'}", "no set");
}

RIG_TEST(test_set_list)
{
	rig_open(&rig, SETS);
	rig_do(&rig, "set add {'name':'good','prefixes':['2001:db8::/32']}");
	rig_expect(&rig, "set list",
		   "sets=2, sets.0.name=bad, sets.0.used_by=2, "
		   "sets.0.live=false, sets.1.live=true");
	rig_expect(&rig, "set list {'name':'good'}", "prefixes.1=2001:db8::/32");
}

/* A reload reads a set's file anew, and live changes are on top. */
RIG_TEST(test_reload_reads_a_sets_file)
{
	char text[512];

	rig_open(&rig, ALL);
	rig_put(&rig, "bad.txt", "w", "192.0.2.1 # one\n");
	snprintf(text, sizeof(text), "sets: {bad: {file: %s/bad.txt}}\nblock: ['@bad']\n", rig.dir);
	rig_write(&rig, text);
	rig_do(&rig, "reload");
	rig_do(&rig, "set add {'name':'bad','prefixes':['192.0.2.9']}");
	rig_put(&rig, "bad.txt", "w", "192.0.2.2\n");
	rig_do(&rig, "reload");
	assert_false(drops(&rig, 1));
	assert_true(drops(&rig, 2));
	assert_true(drops(&rig, 9));
}

/* Addresses no longer in the file need not be removed from it; the others still are. */
RIG_TEST(test_replay_on_another_file)
{
	rig_open(&rig, SETS);
	rig_do(&rig, "set add {'name':'bad','prefixes':['192.0.2.9']}");
	rig_do(&rig, "set del {'name':'bad','prefixes':['192.0.2.1', '192.0.2.2']}");
	apply(&rig, "sets: {bad: [192.0.2.2, 192.0.2.5]}\nblock: ['@bad']\n", NULL);
	assert_false(drops(&rig, 2));
	assert_true(drops(&rig, 5));
	assert_true(drops(&rig, 9));
	apply(&rig, "sets: {bad: [192.0.2.5]}\nblock: ['@bad']\n", NULL);
	assert_int_equal(json_array_size(rig.d->running.live), 1);
	assert_true(drops(&rig, 9));
}

/* Whatever is done to sets: the next daemon has the same ones, from at most two operations. */
RIG_TEST(test_random_changes_survive)
{
	static const char *const commands[] = { "set add", "set add", "set del", "set replace" };
	static const char *const names[] = { "bad", "live" };

	rng_start("random sets");
	rig_open(&rig, "sets: {bad: [10.0.0.1, 10.0.0.2, 10.0.0.3]}\nblock: ['@bad']\n");
	for (int i = 0; i < 300; i++) {
		const char *name = names[rng_below(2)];
		const char *command = commands[rng_below(40) ? rng_below(3) : 3];
		json_t *prefixes = json_array(), *before[2], *after[2];

		for (u64 n = 1 + rng_below(3); n; n--)
			json_array_append_new(prefixes,
					      json_sprintf("10.0.0.%d", (int)rng_below(8)));
		json_decref(rig_command(&rig, &rig_root,
					request(command, json_pack("{s:s, s:o}", "name", name,
								   "prefixes", prefixes))));
		if (i % 5)
			continue;
		for (int k = 0; k < 2; k++)
			before[k] =
				live_set_members(policy_find_set(rig.d->running.policy, names[k]));
		rig_restart(&rig);
		for (int k = 0; k < 2; k++) {
			after[k] =
				live_set_members(policy_find_set(rig.d->running.policy, names[k]));
			if (!json_equal(before[k], after[k]))
				fail_msg("%s: %s became %s", names[k], json_dumps(before[k], 0),
					 json_dumps(after[k], 0));
			json_decref(before[k]);
			json_decref(after[k]);
		}
		assert_true(json_array_size(rig.d->running.live) <= 4);
	}
}

TEST_MAIN
