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
	/* Not by libbpf, which the CLI runs without. */
	fd = syscall(__NR_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
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
	{ "clock source", "Each packet reads the clock: a slow source costs a microsecond or more.",
	  clock_source },
	{ "NTP",
	  "Windows that align to UTC, deadlines and messages of other nodes follow this clock.",
	  ntp },
	{ 0 }
};
