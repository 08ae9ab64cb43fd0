// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* needs.c - see needs.h. */
#include "daemon/needs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/capability.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BTF "/sys/kernel/btf/vmlinux"
/* The first kernel that loads the program; Debian 12 has 6.1. */
#define KERNEL_MAJOR 5
#define KERNEL_MINOR 18

static bool has(cap_t caps, cap_value_t cap)
{
	cap_flag_value_t value = CAP_CLEAR;

	return cap_get_flag(caps, cap, CAP_EFFECTIVE, &value) == 0 && value == CAP_SET;
}

static int check_capabilities(struct sl_err *err)
{
	static const struct {
		cap_value_t cap;
		bool admin_has; /* CAP_SYS_ADMIN includes it */
		const char *name, *use;
	} needed[] = {
		{ CAP_BPF, true, "CAP_BPF", "maps and programs" },
		{ CAP_PERFMON, true, "CAP_PERFMON", "programs that use pointers" },
		{ CAP_NET_ADMIN, false, "CAP_NET_ADMIN", "XDP programs, and attaching them" },
		{ CAP_SYS_ADMIN, false, "CAP_SYS_ADMIN",
		  "finding what is attached; dropped after the start" },
	};
	cap_t caps = cap_get_proc();
	int r = 0;

	for (size_t i = 0; caps && !r && i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!has(caps, needed[i].cap) && !(needed[i].admin_has && has(caps, CAP_SYS_ADMIN)))
			r = sl_err_set(
				err, EPERM,
				"this process lacks %s (for %s): start it as root without a smaller "
				"bounding set (systemd: CapabilityBoundingSet=, containers: --cap-add)",
				needed[i].name, needed[i].use);
	if (caps)
		cap_free(caps);
	return r;
}

static int check_kernel(struct sl_err *err)
{
	struct utsname name;
	int major, minor;

	if (uname(&name) < 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2)
		return 0;
	if (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR))
		return sl_err_set(
			err, ENOSYS,
			"kernel %.60s is too old for the packet tier: Linux %d.%d or newer is "
			"needed (Debian 12 has 6.1); limits of requests alone need none (interfaces: [])",
			name.release, KERNEL_MAJOR, KERNEL_MINOR);
	if (access(BTF, R_OK) < 0)
		return sl_err_set(
			err, ENOSYS,
			"there is no " BTF ": the packet tier needs a kernel with BTF "
			"(CONFIG_DEBUG_INFO_BTF, as distributions build it); in a container, /sys must "
			"be mounted");
	return 0;
}

int needs_check(struct sl_err *err)
{
	int r;

	if (geteuid() != 0)
		return sl_err_set(
			err, EPERM,
			"permission denied: loading the limiter into the kernel needs root "
			"(systemctl start sluiced, or sudo); limits of requests alone need none "
			"(interfaces: [])");
	r = check_capabilities(err);
	return r < 0 ? r : check_kernel(err);
}
