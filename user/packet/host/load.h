/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* load.h - the load of the CPUs and of each interface, between two readings. */
#ifndef SLUICE_HOST_LOAD_H
#define SLUICE_HOST_LOAD_H

#include <stdbool.h>

#include "sluice/abi.h"

struct packet_host;

#define LOAD_UNKNOWN (-1.0)

/* The assumed speed of a link whose driver does not report one. */
#define LOAD_SPEED_UNKNOWN_BPS 10000000000ULL

/* Sums of /proc/stat's first line, in its own unit. */
struct cpu_times {
	u64 busy, total;
};

struct link_load {
	u32 ifindex;
	u64 bits; /* received so far */
	u64 speed_bps;
	bool speed_known;
	u64 speed_at_ns; /* when the speed was read; 0 never */
	double share;	 /* of the speed, 0 and up; LOAD_UNKNOWN before the second reading */
};

struct load {
	u64 at_ns; /* of the last reading; 0 none yet */
	struct cpu_times cpu;
	double cpu_share; /* 0..1, or LOAD_UNKNOWN */
	struct link_load link[SL_IFACES_MAX];
};

/* Parses the line "cpu ..." of /proc/stat: all online CPUs. False if it is another line. */
bool cpu_times_parse(const char *line, struct cpu_times *ret);
/* 0..1, or `before_share` if no time has passed between them. */
double cpu_times_share(const struct cpu_times *from, const struct cpu_times *to,
		       double before_share);

/*
 * Takes all readings. Bytes received are the data path's own count, which is of the right network
 * namespace whatever /sys shows; each frame has 24 more bytes on the wire (checksum, preamble,
 * gap).
 */
void load_look(struct load *load, struct packet_host *host, u64 now_ns);

/* Bits/s of an interface's link, or 0 if its driver does not report them. */
u64 load_link_speed(const char *ifname);

#endif
