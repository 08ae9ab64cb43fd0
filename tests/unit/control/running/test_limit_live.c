// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_limit_live.c - limit set of a limit's own values through the daemon: it is made to the
 * running policy, holds from the next packet with the used share kept, is in the history, and is
 * undone as a whole where it cannot be stored.
 */
#include <fcntl.h>

#include "lib/daemon_rig.h"

#define SET(pairs) "limit set {'name': 'web', 'pairs': [" pairs "]}"
#define LIMITS "limits:\n  - {name: web, rate: 10 packets/h, burst: 20, accounting: exact}\n"

static int passed(struct rig *rig, u8 last, int count)
{
	return rig_passed(rig, last, count, clock_mono_ns());
}

/* The image in force is what the running policy compiles to. */
static void check_image(struct rig *rig)
{
	struct running *run = &rig->d->running;
	struct sl_rules *was = malloc(sizeof(*was));
	struct sl_err err;

	memcpy(was, run->image->rules, sizeof(*was));
	assert_int_equal(rules_install(run, run->policy, 0, &err), 0);
	was->generation = run->image->rules->generation;
	assert_memory_equal(was, run->image->rules, sizeof(*was));
	free(was);
}

RIG_TEST(test_in_place)
{
	const struct policy *policy;

	rig_open(&rig, LIMITS);
	policy = rig.d->running.policy;
	assert_int_equal(passed(&rig, 1, 10), 10);
	rig_do(&rig, SET("'burst=40'"));
	assert_ptr_equal(rig.d->running.policy, policy);
	/* Half of it was used. */
	assert_int_equal(passed(&rig, 1, 100), 20);
	assert_int_equal(passed(&rig, 2, 100), 40);
	check_image(&rig);
	rig_do(&rig, SET("'mode=shadow'"));
	assert_ptr_equal(rig.d->running.policy, policy);
	assert_int_equal(passed(&rig, 2, 5), 5);
	rig_do(&rig, SET("'mode=enforce', 'burst=8'"));
	assert_int_equal(passed(&rig, 3, 100), 8);
	assert_int_equal(json_array_size(rig.d->running.live), 1);
	check_image(&rig);
	/* Each is a step of the history. */
	rig_do(&rig, "rollback");
	assert_int_equal(passed(&rig, 4, 100), 100);
	rig_do(&rig, "rollback");
	assert_int_equal(passed(&rig, 5, 100), 40);
	rig_restart(&rig);
	assert_int_equal(passed(&rig, 6, 100), 40);
	/* What the file has needs no record. */
	rig_do(&rig, SET("'burst=20'"));
	assert_int_equal(json_array_size(rig.d->running.live), 0);
	assert_int_equal(passed(&rig, 7, 100), 20);
}

RIG_TEST(test_refused)
{
	const struct policy *policy;

	rig_open(&rig, LIMITS);
	policy = rig.d->running.policy;
	rig_refused(&rig, &rig_root, SET("'rate=0 packets/s'"), "rate: found");
	rig_refused(&rig, &rig_root, SET("'burst=1,2'"), "for 1 rate");
	rig_refused(&rig, &rig_root, SET("'burst=9', 'speed=1'"), "unknown key");
	rig_refused(&rig, &rig_root, SET("'action=tag'"), "neither dscp nor mark");
	rig_refused(&rig, &rig_reader, SET("'burst=9'"), "permission denied");
	assert_ptr_equal(rig.d->running.policy, policy);
	assert_int_equal(passed(&rig, 1, 100), 20);
	/* More than values: the whole policy is compiled. */
	rig_do(&rig, SET("'per=dst', 'burst=30'"));
	assert_ptr_not_equal(rig.d->running.policy, policy);
	assert_int_equal(passed(&rig, 2, 100), 30);
}

/* The state before it cannot be written: verdicts, policy and list are as before. */
RIG_TEST(test_not_stored)
{
	char *history, *away;
	json_t *answer;

	rig_open(&rig, LIMITS);
	assert_int_equal(passed(&rig, 1, 10), 10);
	history = file_join(rig.d->running.state_dir, "history");
	away = file_join(rig.d->running.state_dir, "away");
	assert_int_equal(rename(history, away), 0);
	close(open(history, O_CREAT | O_WRONLY, 0600));
	answer = rig_command(&rig, &rig_root, SET("'burst=400'"));
	assert_false(true_at(answer, "ok"));
	json_decref(answer);
	assert_int_equal(rig.d->running.policy->limit[0].terms.rates.burst[0], 20);
	assert_int_equal(json_array_size(rig.d->running.live), 0);
	assert_int_equal(passed(&rig, 1, 100), 10);
	assert_int_equal(passed(&rig, 2, 100), 20);
	unlink(history);
	assert_int_equal(rename(away, history), 0);
	rig_do(&rig, SET("'burst=400'"));
	assert_int_equal(passed(&rig, 3, 500), 400);
	free(history);
	free(away);
}

TEST_MAIN
