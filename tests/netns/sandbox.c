// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sandbox.c - runs a program under the restrictions of the unit file, without systemd.
 *
 *     sandbox CALLS COMMAND [ARG...]
 *
 * CALLS is a file with the names of the allowed system calls, one a line. Besides:
 * MemoryDenyWriteExecute=, RestrictAddressFamilies= (Unix, IP, netlink), RestrictNamespaces=,
 * RestrictRealtime= and NoNewPrivileges=, each as systemd's own filters are made.
 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define REFUSED SCMP_ACT_ERRNO(EPERM)

static void load(scmp_filter_ctx filter)
{
	int r = filter ? seccomp_load(filter) : -ENOMEM;

	if (r < 0) {
		fprintf(stderr, "sandbox: %s\n", strerror(-r));
		exit(1);
	}
	seccomp_release(filter);
}

static void allow_calls(const char *path)
{
	scmp_filter_ctx filter = seccomp_init(REFUSED);
	FILE *in = fopen(path, "re");
	char line[128];

	while (in && fgets(line, sizeof(line), in)) {
		int request;

		line[strcspn(line, "\n")] = '\0';
		request = seccomp_syscall_resolve_name(line);
		if (request != __NR_SCMP_ERROR)
			seccomp_rule_add(filter, SCMP_ACT_ALLOW, request, 0);
	}
	if (in)
		fclose(in);
	load(filter);
}

static void refuse_arguments(void)
{
	static const int family[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };
	static const unsigned long space[] = { CLONE_NEWNS,    CLONE_NEWUTS, CLONE_NEWIPC,
					       CLONE_NEWUSER,  CLONE_NEWPID, CLONE_NEWNET,
					       CLONE_NEWCGROUP };
	static const int policy[] = { SCHED_FIFO, SCHED_RR };
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	const unsigned long wx = PROT_WRITE | PROT_EXEC;

	seccomp_rule_add(filter, REFUSED, SCMP_SYS(mmap), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, wx, wx));
	seccomp_rule_add(filter, REFUSED, SCMP_SYS(mprotect), 1,
			 SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
	for (int f = 0; f < 64; f++) {
		bool allowed = false;

		for (size_t i = 0; i < COUNT(family); i++)
			allowed |= family[i] == f;
		if (!allowed)
			seccomp_rule_add(filter, REFUSED, SCMP_SYS(socket), 1,
					 SCMP_A0(SCMP_CMP_EQ, f, 0));
	}
	for (size_t i = 0; i < COUNT(space); i++)
		seccomp_rule_add(filter, REFUSED, SCMP_SYS(clone), 1,
				 SCMP_A0(SCMP_CMP_MASKED_EQ, space[i], space[i]));
	for (size_t i = 0; i < COUNT(policy); i++)
		seccomp_rule_add(filter, REFUSED, SCMP_SYS(sched_setscheduler), 1,
				 SCMP_A1(SCMP_CMP_EQ, policy[i], 0));
	load(filter);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: sandbox CALLS COMMAND [ARG...]\n");
		return 2;
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	refuse_arguments();
	allow_calls(argv[1]);
	execv(argv[2], argv + 2);
	perror(argv[2]);
	return 1;
}
