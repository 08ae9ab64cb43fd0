// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* confine.c, each time in a process of its own: what the filter refuses, and what it must not. */
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/confine.h"
#include "lib/test.h"

/* A new process in a namespace of this kind: 0 if there is one, or the errno. */
static int clone_into(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

	if (!pid)
		_exit(0);
	if (pid < 0)
		return errno;
	waitpid((pid_t)pid, NULL, 0);
	return 0;
}

static void *nothing(void *arg)
{
	return arg;
}

#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition))                                                                  \
			_exit(__LINE__ % 250 + 1);                                                 \
	} while (0)

static void in_child(int (*confine)(struct sl_err *err))
{
	static const unsigned long flags[] = { CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
					       CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
					       CLONE_NEWNET };
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	struct sl_err err;
	pthread_t thread;

	REQUIRE(confine(&err) == 0);
	for (size_t i = 0; i < COUNT(flags); i++)
		REQUIRE(clone_into(flags[i]) == EPERM);
	REQUIRE(syscall(SYS_clone3, &args, sizeof(args)) < 0 && errno == ENOSYS);
	REQUIRE(unshare(CLONE_NEWUSER) < 0 && errno == EPERM);
	REQUIRE(execl("/bin/true", "true", NULL) < 0 && errno == EPERM);
	/* Threads are made later, too. */
	REQUIRE(pthread_create(&thread, NULL, nothing, NULL) == 0);
	REQUIRE(pthread_join(thread, NULL) == 0);
#ifndef __SANITIZE_ADDRESS__
	REQUIRE(prctl(PR_GET_DUMPABLE) == 0);
#endif
	_exit(0);
}

static void check(int (*confine)(struct sl_err *err))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		in_child(confine);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	/* Else 1 + the line of REQUIRE(), modulo 250. */
	assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(test_daemon)
{
	check(confine_daemon);
}

TEST(test_helper)
{
	check(confine_helper);
}

TEST_MAIN
