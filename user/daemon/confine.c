// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * confine.c - capabilities and the system call filter.
 *
 * The daemon keeps uid 0 without its powers: it can access files that root owns (the
 * configuration, state_dir, the pins), but no files of other users. Filling maps needs CAP_BPF,
 * CAP_NET_ADMIN and CAP_PERFMON. Looking up programs by id, as libxdp does, needs CAP_SYS_ADMIN,
 * so a helper process attaches (helper.c). The helper also looks for login sessions: finding the
 * owner of a socket needs CAP_SYS_PTRACE.
 *
 * The filter is a deny list (EPERM), not an allow list: libbpf, libevent and libc may change
 * their system calls with any update, and SIGSYS in production would stop the limiter. Denied are
 * the calls that turn a hijacked daemon into something else: running programs, loading modules,
 * mounting, changing or making namespaces, reading other processes, setting the clock, and
 * io_uring, whose operations a filter cannot see.
 */
#include "daemon/confine.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "sluice/types.h"

#ifdef __s390x__
#define CLONE_FLAGS_ARGUMENT 1
#else
#define CLONE_FLAGS_ARGUMENT 0
#endif
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const refused_calls[] = {
	"execve",
	"execveat",
	"fork",
	"vfork",
#ifndef __SANITIZE_ADDRESS__ /* LeakSanitizer stops its process's threads with it */
	"ptrace",
#endif
	"process_vm_readv",
	"process_vm_writev",
	"kcmp",
	"pidfd_getfd",
	"mount",
	"umount",
	"umount2",
	"pivot_root",
	"chroot",
	"move_mount",
	"open_tree",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"mount_setattr",
	"unshare",
	"setns",
	"init_module",
	"finit_module",
	"delete_module",
	"kexec_load",
	"kexec_file_load",
	"reboot",
	"swapon",
	"swapoff",
	"acct",
	"quotactl",
	"quotactl_fd",
	"keyctl",
	"add_key",
	"request_key",
	"settimeofday",
	"clock_settime",
	"clock_adjtime",
	"adjtimex",
	"stime",
	"sethostname",
	"setdomainname",
	"iopl",
	"ioperm",
	"personality",
	"open_by_handle_at",
	"userfaultfd",
	"vhangup",
	"lookup_dcookie",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
};

static int drop_capabilities(const cap_value_t *keep, int count, struct sl_err *err)
{
	cap_t caps = cap_init(), have = cap_get_proc();
	cap_flag_value_t flag = CAP_CLEAR;
	cap_value_t cap;
	int r = 0;

	/* The bounding set first: emptying it needs CAP_SETPCAP. */
	for (cap = 0; CAP_IS_SUPPORTED(cap); cap++) {
		bool kept = false;

		for (int i = 0; i < count; i++)
			kept |= keep[i] == cap;
		if (!kept && cap_get_bound(cap) == 1 && cap_drop_bound(cap) < 0)
			r = -errno;
	}
	/* In a container some may be missing: the code that needs one returns the error. */
	for (int i = 0; !r && caps && have && i < count; i++)
		if (cap_get_flag(have, keep[i], CAP_PERMITTED, &flag) < 0 ||
		    cap_set_flag(caps, CAP_PERMITTED, 1, &keep[i], flag) < 0 ||
		    cap_set_flag(caps, CAP_EFFECTIVE, 1, &keep[i], flag) < 0)
			r = -errno;
	if (r < 0 || !caps || !have || cap_set_proc(caps) < 0)
		r = sl_err_set(err, errno, "cannot drop capabilities: %s", strerror(errno));
	if (caps)
		cap_free(caps);
	if (have)
		cap_free(have);
	return r;
}

/*
 * clone() with one of these flags. The flags of clone3() are out of a filter's reach: without it,
 * libc makes threads by clone().
 */
static int refuse_namespaces(scmp_filter_ctx filter)
{
	static const scmp_datum_t flags[] = { CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
					      CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
					      CLONE_NEWNET };
	int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

	for (size_t i = 0; !r && i < COUNT(flags); i++)
		r = seccomp_rule_add(
			filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
			SCMP_CMP(CLONE_FLAGS_ARGUMENT, SCMP_CMP_MASKED_EQ, flags[i], flags[i]));
	return r;
}

static int filter_calls(struct sl_err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int r = filter ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < COUNT(refused_calls); i++) {
		int call = seccomp_syscall_resolve_name(refused_calls[i]);

		/* This libseccomp does not have the name. */
		if (call == __NR_SCMP_ERROR)
			continue;
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 0);
		/* Not a system call of this architecture: nothing to deny. */
		if (r == -EDOM || r == -EFAULT)
			r = 0;
	}
	if (!r)
		r = refuse_namespaces(filter);
	if (!r)
		r = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	return r ? sl_err_set(err, -r, "cannot install the system call filter: %s", strerror(-r))
		 : 0;
}

static int confine(const cap_value_t *keep, int count, struct sl_err *err)
{
	int r = 0;

	/* Only root has capabilities to drop. */
	if (geteuid() == 0)
		r = drop_capabilities(keep, count, err);
	if (r < 0)
		return r;
#ifndef __SANITIZE_ADDRESS__ /* see ptrace above */
	/* No core dump, and no debugger of the same user: keys and tokens are in memory. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return sl_err_set(err, errno, "cannot switch core dumps off: %s", strerror(errno));
#endif
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return sl_err_set(err, errno, "cannot set no_new_privs: %s", strerror(errno));
	return filter_calls(err);
}

int confine_daemon(struct sl_err *err)
{
	static const cap_value_t keep[] = { CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON };

	return confine(keep, COUNT(keep), err);
}

int confine_helper(struct sl_err *err)
{
	static const cap_value_t keep[] = { CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON, CAP_SYS_ADMIN,
					    CAP_SYS_PTRACE };

	return confine(keep, COUNT(keep), err);
}
