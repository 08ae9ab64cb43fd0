/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cpus.h - how many CPUs leases are divided among. */
#ifndef SLUICE_CPUS_H
#define SLUICE_CPUS_H

#include <stdio.h>
#include <unistd.h>

#include "sluice/types.h"

/*
 * All online CPUs have lower numbers: from the kernel's list, "0-3,6", the last one counts, gaps
 * included. One that comes online later, with a higher number, has no leases until the next rule
 * set.
 */
static inline u32 cpus_online(void)
{
	FILE *file = fopen("/sys/devices/system/cpu/online", "re");
	char text[256] = "";
	unsigned int first = 0, last;
	char *at = text;
	long configured;

	if (file) {
		if (!fgets(text, sizeof(text), file))
			text[0] = '\0';
		fclose(file);
	}
	for (char *c = text; *c; c++)
		if (*c == ',')
			at = c + 1;
	switch (sscanf(at, "%u-%u", &first, &last)) {
	case 2:
		return last + 1;
	case 1:
		return first + 1;
	}
	configured = sysconf(_SC_NPROCESSORS_ONLN);
	return configured > 0 ? (u32)configured : 1;
}

#endif
