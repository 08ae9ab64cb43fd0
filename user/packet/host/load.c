// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* load.c - see load.h. */
#include "packet/host/load.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet/host/host.h"

/* Checksum, preamble and gap: on the wire, but not in the frame that XDP gets. */
#define WIRE_BYTES 24

/* Links seldom renegotiate: the speed is read again after this time. */
#define SPEED_FOR_NS (10 * SL_NS_PER_SEC)

/* ------------------------------------------------------------------ CPUs */

bool cpu_times_parse(const char *line, struct cpu_times *ret)
{
	/* user nice system idle iowait irq softirq steal; guests are counted in user and nice. */
	unsigned long long field[8] = { 0 };
	int count =
		sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &field[0], &field[1],
		       &field[2], &field[3], &field[4], &field[5], &field[6], &field[7]);

	if (count < 4)
		return false;
	ret->total = 0;
	for (int i = 0; i < count; i++)
		ret->total += field[i];
	ret->busy = ret->total - field[3] - field[4];
	return true;
}

double cpu_times_share(const struct cpu_times *from, const struct cpu_times *to,
		       double before_share)
{
	/*
	 * The times of a CPU that goes offline are gone from the sums, and iowait may decrease: no
	 * reading.
	 */
	if (to->total <= from->total || to->busy < from->busy)
		return before_share;
	if (to->busy - from->busy >= to->total - from->total)
		return 1;
	return (double)(to->busy - from->busy) / (double)(to->total - from->total);
}

static void look_at_cpus(struct load *load)
{
	struct cpu_times now;
	char line[256] = "";
	FILE *file = fopen("/proc/stat", "re");
	bool good = file && fgets(line, sizeof(line), file) && cpu_times_parse(line, &now);

	if (file)
		fclose(file);
	if (!good) {
		load->cpu_share = LOAD_UNKNOWN;
		return;
	}
	load->cpu_share =
		load->cpu.total ? cpu_times_share(&load->cpu, &now, load->cpu_share) : LOAD_UNKNOWN;
	load->cpu = now;
}

/* ------------------------------------------------------------------ links */

u64 load_link_speed(const char *ifname)
{
	/* The older request: its reply has a fixed size, and kernels fill it from the newer one. */
	struct ethtool_cmd command = { .cmd = ETHTOOL_GSET };
	struct ifreq request = { .ifr_data = (void *)&command };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	u32 mbps = 0;

	if (fd < 0)
		return 0;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
	if (ioctl(fd, SIOCETHTOOL, &request) == 0)
		mbps = ethtool_cmd_speed(&command);
	close(fd);
	return mbps == (u32)SPEED_UNKNOWN || mbps == 0xffff ? 0 : mbps * 1000000ULL;
}

static void ask_speed(struct link_load *link, const char *ifname, u64 now_ns)
{
	if (link->speed_at_ns && now_ns - link->speed_at_ns < SPEED_FOR_NS)
		return;
	link->speed_bps = load_link_speed(ifname);
	link->speed_known = link->speed_bps != 0;
	if (!link->speed_known)
		link->speed_bps = LOAD_SPEED_UNKNOWN_BPS;
	link->speed_at_ns = now_ns;
}

static void look_at_link(struct load *load, struct packet_host *host, u32 slot, u64 now_ns)
{
	struct link_load *link = &load->link[slot];
	struct sl_iface_stats stats;
	u64 bits = 0;

	if (!host->iface[slot].attached || host->dp->ops->iface_stats(host->dp, slot, &stats) < 0) {
		memset(link, 0, sizeof(*link));
		return;
	}
	for (u32 action = 0; action < SL_ACT_COUNT; action++) {
		bits += stats.bytes[action] * 8;
		for (u32 reason = 0; reason < SL_R_COUNT; reason++)
			bits += stats.packets[reason][action] * WIRE_BYTES * 8;
	}
	if (link->ifindex != host->iface[slot].at.ifindex || bits < link->bits || !load->at_ns ||
	    now_ns <= load->at_ns) {
		link->share = LOAD_UNKNOWN;
		link->speed_at_ns = 0;
		link->ifindex = host->iface[slot].at.ifindex;
		ask_speed(link, iface_name_now(&host->iface[slot]), now_ns);
	} else {
		ask_speed(link, iface_name_now(&host->iface[slot]), now_ns);
		link->share = (double)(bits - link->bits) * (double)SL_NS_PER_SEC /
			      (double)(now_ns - load->at_ns) / (double)link->speed_bps;
	}
	link->bits = bits;
}

void load_look(struct load *load, struct packet_host *host, u64 now_ns)
{
	look_at_cpus(load);
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		look_at_link(load, host, slot, now_ns);
	load->at_ns = now_ns;
}
