/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * load.h - how busy this machine is: the CPUs' busy share and each interface's, between two
 * looks.
 */
#ifndef SLUICE_HOST_LOAD_H
#define SLUICE_HOST_LOAD_H

#include <stdbool.h>

#include "sluice/abi.h"

struct packet_host;

#define LOAD_UNKNOWN (-1.0)

/* What a link is taken for that does not say its speed. */
#define LOAD_SPEED_UNKNOWN_BPS 10000000000ULL

/* Sums of /proc/stat's first line, in its own unit. */
struct cpu_times {
	u64 busy, total;
};

struct link_load {
	u32 ifindex;
	u64 bits;		/* received so far */
	u64 speed_bps;
	bool speed_known;
	u64 speed_at_ns;	/* when the speed was asked for; 0 never */
	double share;		/* of the speed, 0 and up; LOAD_UNKNOWN before the second look */
};

struct load {
	u64 at_ns;		/* of the last look; 0 none yet */
	struct cpu_times cpu;
	double cpu_share;	/* 0..1, or LOAD_UNKNOWN */
	struct link_load link[SL_IFACES_MAX];
};

/* The line "cpu  ..." of /proc/stat: all online CPUs. False where it is not one. */
bool cpu_times_parse(const char *line, struct cpu_times *ret);
/* 0..1, or `before_share` where no time has passed between them. */
double cpu_times_share(const struct cpu_times *from, const struct cpu_times *to,
		       double before_share);

/*
 * Looks at everything. Bytes received are the data path's own count, which is of the right
 * network namespace whatever /sys shows, and each frame is 24 bytes longer on the wire
 * (checksum, preamble, gap).
 */
void load_look(struct load *load, struct packet_host *host, u64 now_ns);

/* Bits a second an interface's link can do, or 0 where its driver does not say. */
u64 load_link_speed(const char *ifname);

#endif
