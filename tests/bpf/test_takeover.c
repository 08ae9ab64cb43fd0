// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_takeover.c - state that outlives a process: pins, and how the next daemon uses them, whether
 * of its own version or not.
 */
#include "attach_rig.h"

#include "packet/dataplane/dp_push.h"

TEST_WITH(test_survives_kill, setup, teardown)
{
	struct fixture *f = begin(state);
	struct sl_seed seed;
	int ready[2], status;
	char byte;
	pid_t pid;

	make_veth(1500);
	f->dp->ops->close(f->dp);
	f->dp = NULL;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct small_image *small = small_image(7, 0);

		if (dp_bpf_open(f->pin_dir, BUCKETS, &f->dp, NULL, NULL) == 0 &&
		    f->dp->ops->apply(f->dp, &small->image, NULL) == 0 &&
		    dp_attach(f->dp, "s0", MODE_AUTO, SLOT, &f->at, NULL) == 0 &&
		    write(ready[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);

	send_frames("p0", 100, 64, 0); /* no process holds any descriptor now */
	assert_int_equal(dp_bpf_open(f->pin_dir, BUCKETS, &f->dp, NULL, &f->err), 0);
	expect_seen(f, 100);
	assert_non_null(f->dp->ops->rules(f->dp));
	assert_int_equal(f->dp->ops->rules(f->dp)->generation, 7);
	seed = f->dp->state->seed;
	assert_true(seed.k0 && seed.k1);
	attach(f, "s0", MODE_AUTO);
	send_frames("p0", 100, 64, 0);
	expect_seen(f, 200);
	assert_int_equal(f->dp->state->seed.k0, seed.k0);
}

/* The prefix maps in force are never those that an apply writes, over a restart as well. */
ATTACH_TEST(test_rule_sets_alternate_prefix_slots)
{
	u32 slot;

	assert_null(f->dp->ops->rules(f->dp));
	apply(f, 1, 100);
	slot = f->dp->ops->rules(f->dp)->pfx_slot;
	apply(f, 2, 100); /* the same prefixes: kept */
	assert_int_equal(f->dp->ops->rules(f->dp)->pfx_slot, slot);
	apply(f, 3, 101);
	assert_int_equal(f->dp->ops->rules(f->dp)->pfx_slot, !slot);
	reopen(f);
	assert_int_equal(f->dp->ops->rules(f->dp)->generation, 3);
	assert_int_equal(f->dp->ops->rules(f->dp)->pfx_slot, !slot);
	apply(f, 4, 101);
	assert_int_equal(f->dp->ops->rules(f->dp)->pfx_slot, slot);
}

/* An apply cut short between the swap and the renaming of its pin. */
ATTACH_TEST(test_rules_found_by_id)
{
	char now[128], next[128];

	snprintf(now, sizeof(now), "%s/rules_now", f->pin_dir);
	snprintf(next, sizeof(next), "%s/rules_next", f->pin_dir);
	apply(f, 1, 0);
	assert_int_equal(rename(now, next), 0);
	reopen(f);
	assert_non_null(f->dp->ops->rules(f->dp));
	assert_int_equal(f->dp->ops->rules(f->dp)->generation, 1);
	apply(f, 2, 0);
	reopen(f);
	assert_int_equal(f->dp->ops->rules(f->dp)->generation, 2);
}

/* The next daemon knows unconfirmed rules; confirmed, nothing is left of the others. */
ATTACH_TEST(test_fallback_found_again)
{
	struct small_image *small = small_image(2, 200);
	char path[128];

	apply(f, 1, 100);
	assert_int_equal(f->dp->ops->apply_until(f->dp, &small->image, 12345, &f->err), 0);
	free(small);
	reopen(f);
	assert_int_equal(f->dp->ops->rules(f->dp)->generation, 2);
	assert_int_equal(f->dp->ops->rules(f->dp)->revert_at_ns, 12345);
	assert_non_null(f->dp->ops->fallback(f->dp));
	assert_int_equal(f->dp->ops->fallback(f->dp)->generation, 1);
	assert_int_equal(dp_rules_at(f->dp, 12344)->generation, 2);
	assert_int_equal(dp_rules_at(f->dp, 12345)->generation, 1);
	apply(f, 3, 300);
	assert_null(f->dp->ops->fallback(f->dp));
	reopen(f);
	assert_null(f->dp->ops->fallback(f->dp));
	assert_int_equal(f->dp->ops->rules(f->dp)->revert_at_ns, 0);
	snprintf(path, sizeof(path), "%s/rules_back", f->pin_dir);
	assert_int_not_equal(access(path, F_OK), 0);
}

TEST_WITH(test_table_keeps_its_size, setup, teardown)
{
	struct fixture *f = begin(state);

	assert_int_equal(f->dp->table_sets, SL_TABLE_SETS(BUCKETS));
	reopen(f); /* with twice as many */
	assert_int_equal(f->dp->table_sets, SL_TABLE_SETS(BUCKETS));
	assert_int_equal(f->dp->state->table_sets, SL_TABLE_SETS(BUCKETS));
}

/*
 * Another version's maps are made again, and its program limits by the old ones until it is
 * replaced: at no time do packets pass uncounted.
 */
static void expect_replaced(struct fixture *f)
{
	const u32 id = program_behind(f);

	assert_int_equal(open_again(f), DP_PINS_REPLACED);
	assert_null(f->dp->ops->rules(f->dp));
	assert_int_equal(program_behind(f), id);
	expect_seen(f, 0);
	apply(f, 2, 0);
	attach(f, "s0", MODE_AUTO);
	assert_int_not_equal(program_behind(f), id);
	send_frames("p0", 10, 64, 0);
	expect_seen(f, 10);
	reopen(f);
	assert_int_equal(f->dp->ops->rules(f->dp)->generation, 2);
}

ATTACH_TEST(test_other_version_is_replaced)
{
	make_veth(1500);
	apply(f, 1, 0);
	attach(f, "s0", MODE_AUTO);
	f->dp->state->abi_version = SL_ABI_VERSION + 1;
	expect_replaced(f);
}

/* Counters of another layout begin anew; with bans of another layout all does. */
ATTACH_TEST(test_older_counters_are_let_go)
{
	char path[128];
	int fd;

	make_veth(1500);
	apply(f, 1, 0);
	attach(f, "s0", MODE_AUTO);
	send_frames("p0", 10, 64, 0);
	expect_seen(f, 10);
	snprintf(path, sizeof(path), "%s/iface_stats", f->pin_dir);
	assert_int_equal(unlink(path), 0);
	fd = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "iface_stats", sizeof(u32), 576,
			    SL_IFACES_MAX, NULL);
	assert_true(fd >= 0);
	assert_int_equal(bpf_obj_pin(fd, path), 0);
	close(fd);
	reopen(f);
	assert_int_equal(f->dp->ops->rules(f->dp)->generation, 1);
	expect_seen(f, 0);
	attach(f, "s0", MODE_AUTO);
	send_frames("p0", 10, 64, 0);
	expect_seen(f, 10);

	snprintf(path, sizeof(path), "%s/bans", f->pin_dir);
	assert_int_equal(unlink(path), 0);
	fd = bpf_map_create(BPF_MAP_TYPE_HASH, "bans", sizeof(struct sl_ban_key), 8, 10, NULL);
	assert_true(fd >= 0);
	assert_int_equal(bpf_obj_pin(fd, path), 0);
	close(fd);
	expect_replaced(f);
}

/* The next daemon has push-downs and established sources. */
ATTACH_TEST(test_push_downs_are_found_again)
{
	struct dp_push push = {
		.src = { { 0xc000020900000000ULL, 0 }, SL_V4, 32 }, .kind = SL_PUSH_LIMIT,
		.rate = { 50, SL_NS_PER_SEC, RATE_PACKETS }, .until_ns = 12345, .note = 3,
	}, *found;
	size_t count;

	assert_int_equal(dp_push_put(f->dp, &push), 0);
	assert_int_equal(dp_push_watch(f->dp, true), 0);
	f->dp->established[7].way[3] = 99;
	reopen(f);
	assert_int_equal(dp_push_watch(f->dp, true), 0);
	assert_int_equal(f->dp->established[7].way[3], 99);
	assert_int_equal(dp_pushes(f->dp, &found, &count), 0);
	assert_int_equal(count, 1);
	assert_memory_equal(found, &push, sizeof(push));
	free(found);
	assert_int_equal(dp_pushes_expire(f->dp, 12345), 1);
}

/* An argument is a pattern of test names: loading takes its time in a virtual machine. */
int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return test_run(NULL, NULL);
}
