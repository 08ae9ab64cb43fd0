// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The counter table's file: taken over after kill -9 and over a reboot, moved to another size, and
 * begun anew where it is not one of ours. And its locks, whose holder lost its CPU.
 */
#include <sys/wait.h>

#include "counters_rig.h"

TEST_WITH(test_killed, setup, teardown)
{
	pid_t child = fork();
	int status;

	if (!child) {
		open_file(USERS);
		use(7);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	open_file(USERS);
	assert_string_equal(counters_note(rig_store), "");
	check_left(3);
}

/* Killed at any instruction, again and again: users over the limit stay over, and nothing hangs. */
TEST_WITH(test_killed_anywhere, setup, teardown)
{
	open_file(USERS);
	use(10);
	close_file();
	for (u32 round = 0; round < 30; round++) {
		pid_t child = fork();
		int status;

		if (!child) {
			open_file(USERS);
			for (u32 i = 0;; i++)
				request_user(keys[i % KEYS], 1000 + i % 3000);
		}
		usleep(8000 + round * 300);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	open_file(USERS);
	for (u32 k = 0; k < KEYS; k++)
		for (u32 user = 0; user < 100; user++)
			assert_false(request_user(keys[k], user));
}

TEST_WITH(test_reboot, setup, teardown)
{
	u64 before;

	open_file(USERS);
	use(10);
	before = counters_now(rig_store).mono_ns;
	close_file();
	other_boot(0);
	open_file(USERS);
	assert_true(rig_now.mono_ns > before);
	assert_true(rig_now.mono_ns < before + 20 * SEC);
	check_left(0);
}

/* The machine was off for three days: all is there again. */
TEST_WITH(test_unavailable, setup, teardown)
{
	open_file(USERS);
	use(10);
	close_file();
	other_boot(3 * 86400 * SEC);
	open_file(USERS);
	check_left(10);
}

TEST_WITH(test_resized, setup, teardown)
{
	open_file(USERS);
	use(7);
	open_file(3 * USERS);
	assert_non_null(
		strstr(counters_note(rig_store), "500 entries moved, 0 dropped for lack of room"));
	open_file(USERS / 2);
	check_left(3);
}

/* Into a table without room for all: those at their limit are kept. */
TEST_WITH(test_too_small, setup, teardown)
{
	u32 over = 0;

	open_file(USERS);
	for (u32 user = 1000; user < 4000; user++)
		request_user("bucket", user);
	for (u32 user = 0; user < 100; user++)
		for (u32 i = 0; i < 10; i++)
			request_user("bucket", user);
	open_file(600);
	for (u32 user = 0; user < 100; user++)
		over += !request_user("bucket", user);
	assert_int_equal(over, 100);
}

static void check_anew(const char *why)
{
	char bad[128];

	open_file(USERS);
	assert_non_null(strstr(counters_note(rig_store), why));
	check_left(10);
	snprintf(bad, sizeof(bad), "%s.bad", path);
	assert_int_equal(access(bad, F_OK), 0);
	unlink(bad);
	close_file();
}

TEST_WITH(test_not_ours, setup, teardown)
{
	u32 sets = 12345;

	open_file(USERS);
	use(10);
	close_file();
	assert_int_equal(truncate(path, 1 << 20), 0);
	check_anew("was truncated or extended");
	assert_int_equal(truncate(path, 10), 0);
	check_anew("is too short");
	patch(0, "SQLite 3", 8);
	check_anew("is not a state file of sluice");
	patch(offsetof(struct counters_header, fixed.sets), &sets, sizeof(sets));
	check_anew("has a damaged header");
}

/* Pages of noise in a file with a good header: no crash, no hang, and it counts again. */
TEST_WITH(test_noise, setup, teardown)
{
	u64 state_word = 88172645463325252ULL;
	struct stat st;
	int fd;

	open_file(USERS);
	use(5);
	close_file();
	fd = open(path, O_RDWR);
	assert_int_equal(fstat(fd, &st), 0);
	for (off_t at = COUNTERS_PAGE; at + 8 <= st.st_size; at += 8 * 13) {
		state_word ^= state_word << 13;
		state_word ^= state_word >> 7;
		state_word ^= state_word << 17;
		assert_int_equal(pwrite(fd, &state_word, 8, at), 8);
	}
	close(fd);
	open_file(USERS);
	for (u32 user = 10000; user < 11000; user++)
		for (u32 k = 0; k < KEYS; k++)
			request_user(keys[k], user);
	for (u32 i = 0; i < 100; i++)
		counters_sweep(rig_store, counters_now(rig_store));
}

TEST_WITH(test_errors, setup, teardown)
{
	struct counters *counters;
	struct sl_err err;

	assert_int_equal(counters_open("/nowhere/http.state", USERS, 0, &counters, &err), -ENOENT);
	assert_non_null(strstr(err.message, "/nowhere/http.state"));
	assert_int_equal(counters_open(path, 0, 0, &counters, &err), -ERANGE);
	assert_int_equal(counters_open(directory, USERS, 0, &counters, &err), -EISDIR);
}

static void *lock_at_once(void *arg)
{
	const struct sched_param first = { .sched_priority = 1 };
	u64 *ret_ns = arg, began_ns;

	/* From here on no other process has this CPU. */
	if (sched_setscheduler(0, SCHED_FIFO, &first) < 0)
		return NULL;
	began_ns = counters_now(rig_store).mono_ns;
	counters_lock_set(rig_store, 0);
	*ret_ns = counters_now(rig_store).mono_ns - began_ns;
	counters_unlock_set(rig_store, 0);
	return NULL;
}

/* One of a real-time priority waits for one of none, on the only CPU that both may use. */
TEST_WITH(test_priority, setup, teardown)
{
	u64 took_ns = ~0ULL;
	cpu_set_t all, one;
	pthread_t thread;

	open_file(USERS);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	counters_lock_set(rig_store, 0);
	assert_int_equal(pthread_create(&thread, NULL, lock_at_once, &took_ns), 0);
	/* Until it is there, or may not be. */
	usleep(20000);
	counters_unlock_set(rig_store, 0);
	pthread_join(thread, NULL);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	if (took_ns == ~0ULL) {
		print_message("needs root (SCHED_FIFO)\n");
		skip();
	}
	/* The kernel would stop it after 950 ms. */
	assert_in_range(took_ns, 1, 500000000);
}

TEST_MAIN
