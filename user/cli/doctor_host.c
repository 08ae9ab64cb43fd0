// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* doctor_host.c - see doctor.h: kernel, BPF, privileges, clocks. */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "lib/units.h"

#define KERNEL_LEAST 518 /* XDP with fragments */
#define BPFFS "/sys/fs/bpf"
#define BPFFS_MAGIC 0xcafe4a11UL
/* What the verifier may process (BPF_COMPLEXITY_LIMIT_INSNS), and when little is left. */
#define INSNS_MAX 1000000UL
#define INSNS_MANY 900000UL

/* Not libbpf's: the CLI runs without it, and needs four of its calls. */
static long bpf(int command, union bpf_attr *attr)
{
	return syscall(__NR_bpf, command, attr, sizeof(*attr));
}

static void kernel(struct doctor *d)
{
	struct utsname name;
	int major = 0, minor = 0;

	uname(&name);
	sscanf(name.release, "%d.%d", &major, &minor);
	doctor_found(d, major * 100 + minor >= KERNEL_LEAST ? LEVEL_OK : LEVEL_BAD,
		     "install a newer kernel: Debian 12 has 6.1", "%s", name.release);
}

static void btf(struct doctor *d)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		doctor_found(d, LEVEL_OK, NULL, "/sys/kernel/btf/vmlinux is there");
	else
		doctor_found(d, LEVEL_BAD,
			     "a kernel with CONFIG_DEBUG_INFO_BTF=y, as those of Debian",
			     "/sys/kernel/btf/vmlinux: %s", strerror(errno));
}

static void jit(struct doctor *d)
{
	char text[16];

	if (!doctor_read("/proc/sys/net/core/bpf_jit_enable", text, sizeof(text)))
		doctor_found(d, LEVEL_UNKNOWN, NULL,
			     "/proc/sys/net/core/bpf_jit_enable cannot be read: it is "
			     "not shown in a network namespace");
	else
		doctor_found(d, atoi(text) ? LEVEL_OK : LEVEL_BAD,
			     "sysctl -w net.core.bpf_jit_enable=1",
			     atoi(text) ? "on" : "off: BPF is interpreted");
}

static void bpffs(struct doctor *d)
{
	struct statfs fs;

	if (statfs(BPFFS, &fs) < 0)
		doctor_found(d, LEVEL_UNKNOWN, NULL, BPFFS ": %s", strerror(errno));
	else if ((unsigned long)fs.f_type == BPFFS_MAGIC)
		doctor_found(d, LEVEL_OK, NULL, "mounted on " BPFFS);
	else
		doctor_found(d, LEVEL_BAD, "mount -t bpf bpf " BPFFS,
			     "no bpf filesystem on " BPFFS);
}

/* The bounding set: a container without these cannot give them to the daemon. */
static void capabilities(struct doctor *d)
{
	static const struct {
		const char *name;
		int number;
	} need[] = {
		{ "CAP_BPF", CAP_BPF },
		{ "CAP_NET_ADMIN", CAP_NET_ADMIN },
		{ "CAP_PERFMON", CAP_PERFMON },
		{ "CAP_SYS_ADMIN", CAP_SYS_ADMIN },
		{ "CAP_SYS_PTRACE", CAP_SYS_PTRACE },
	};
	unsigned long long set = 0;
	char line[256], missing[128] = "";
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "CapBnd: %llx", &set);
	if (file)
		fclose(file);
	for (size_t i = 0; i < sizeof(need) / sizeof(need[0]); i++)
		if (!(set >> need[i].number & 1))
			snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing),
				 " %s", need[i].name);
	if (missing[0])
		doctor_found(d, LEVEL_BAD,
			     "start the container with --cap-add of these, or sluiced on the host",
			     "not to be had here:%s", missing);
	else
		doctor_found(d, LEVEL_OK, NULL, "all that sluiced needs can be had");
}

/* Whether bpf() works at all: seccomp, lockdown or an LSM may refuse it to root, too. */
static void bpf_call(struct doctor *d)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1
	};
	char lockdown[128] = "";
	int error;
	long fd;

	if (geteuid() != 0) {
		doctor_found(d, LEVEL_UNKNOWN, "sudo sluicectl doctor", "only root can try it");
		return;
	}
	fd = bpf(BPF_MAP_CREATE, &attr);
	error = errno;
	doctor_read("/sys/kernel/security/lockdown", lockdown, sizeof(lockdown));
	if (fd >= 0)
		close((int)fd);
	if (fd >= 0)
		doctor_found(d, LEVEL_OK, NULL, "works");
	else if (error == ENOSYS)
		doctor_found(
			d, LEVEL_BAD,
			"a kernel with CONFIG_BPF_SYSCALL=y, as those of Debian; in a container "
			"allow bpf() in its seccomp profile",
			"%s", strerror(error));
	else
		doctor_found(
			d, LEVEL_BAD,
			"allow bpf() in the seccomp profile of the container, and boot without "
			"lockdown=confidentiality",
			"%s%s%s", strerror(error), lockdown[0] ? "; lockdown: " : "", lockdown);
}

/*
 * The largest of sluice's loaded programs, and whether one was not compiled. -EPERM without
 * CAP_SYS_ADMIN; -ENOENT without any.
 */
static int largest_program(u32 *ret_insns, bool *ret_jited)
{
	union bpf_attr next = { .start_id = 0 };
	int found = 0;

	*ret_insns = 0;
	*ret_jited = true;
	while (!bpf(BPF_PROG_GET_NEXT_ID, &next)) {
		union bpf_attr get = { .prog_id = next.next_id }, ask = {};
		struct bpf_prog_info info = {};
		long fd = bpf(BPF_PROG_GET_FD_BY_ID, &get);

		next.start_id = next.next_id;
		if (fd < 0)
			continue;
		ask.info.bpf_fd = (u32)fd;
		ask.info.info_len = sizeof(info);
		ask.info.info = (u64)(unsigned long)&info;
		if (!bpf(BPF_OBJ_GET_INFO_BY_FD, &ask) && !strncmp(info.name, "sluice", 6) &&
		    info.type == BPF_PROG_TYPE_XDP) {
			found++;
			if (info.verified_insns > *ret_insns)
				*ret_insns = info.verified_insns;
			if (!info.jited_prog_len)
				*ret_jited = false;
		}
		close((int)fd);
	}
	return found ? 0 : errno == ENOENT ? -ENOENT : -errno;
}

static void verifier(struct doctor *d)
{
	u32 insns;
	bool jited;
	int r = largest_program(&insns, &jited);

	if (r == -ENOENT)
		doctor_found(d, LEVEL_UNKNOWN, NULL, "no program of sluice is loaded");
	else if (r < 0)
		doctor_found(d, LEVEL_UNKNOWN, "sudo sluicectl doctor",
			     "loaded programs cannot be read: %s", strerror(-r));
	else if (!jited)
		doctor_found(d, LEVEL_BAD,
			     "sysctl -w net.core.bpf_jit_enable=1, then restart sluiced",
			     "a loaded program was not compiled by the JIT");
	else
		doctor_found(d, insns < INSNS_MANY ? LEVEL_OK : LEVEL_WARN,
			     "build with the clang of your "
			     "distribution's newest release",
			     "the largest program took the verifier %u of %lu "
			     "instructions, %lu%% are left",
			     insns, INSNS_MAX,
			     (INSNS_MAX - (insns < INSNS_MAX ? insns : INSNS_MAX)) * 100 /
				     INSNS_MAX);
}

static void clock_source(struct doctor *d)
{
	char name[64];

	if (!doctor_read("/sys/devices/system/clocksource/clocksource0/current_clocksource", name,
			 sizeof(name))) {
		doctor_found(d, LEVEL_UNKNOWN, NULL, "it cannot be read: %s", strerror(errno));
		return;
	}
	doctor_found(d,
		     !strcmp(name, "hpet") || !strcmp(name, "acpi_pm") ||
				     !strcmp(name, "jiffies") || !strcmp(name, "refined-jiffies")
			     ? LEVEL_WARN
			     : LEVEL_OK,
		     "boot with clocksource=tsc if the machine's TSC is stable", "%s", name);
}

static void ntp(struct doctor *d)
{
	struct timex clock = { .modes = 0 };
	int state = adjtimex(&clock);

	if (state < 0)
		doctor_found(d, LEVEL_UNKNOWN, NULL, "adjtimex: %s", strerror(errno));
	else if (state == TIME_ERROR || clock.status & STA_UNSYNC)
		doctor_found(d, LEVEL_WARN, "apt-get install chrony",
			     "the clock is not synchronized");
	else
		doctor_found(d, LEVEL_OK, NULL, "synchronized, within %.1f ms",
			     (double)clock.maxerror / 1e3);
}

const struct check doctor_host_checks[] = {
	{ "kernel", "The packet tier needs XDP with fragments, which is in 5.18 and newer.",
	  kernel },
	{ "BTF",
	  "libbpf reads the kernel's types from it; tools that show loaded programs do, too.",
	  btf },
	{ "JIT",
	  "An interpreted program costs several times the time of a compiled one for each packet.",
	  jit },
	{ "bpffs", "Limits hold while the daemon is stopped because its maps are pinned there.",
	  bpffs },
	{ "capabilities",
	  "sluiced loads programs, attaches them and finds login sessions with these.",
	  capabilities },
	{ "bpf()", "Without this system call no program can be loaded.", bpf_call },
	{ "verifier",
	  "The verifier refuses a program that takes more; which clang built it decides.",
	  verifier },
	{ "clock source", "Each packet reads the clock: a slow source costs a microsecond or more.",
	  clock_source },
	{ "NTP",
	  "Windows that align to UTC, deadlines and messages of other nodes follow this clock.",
	  ntp },
	{ 0 }
};
