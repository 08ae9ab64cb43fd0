/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* veth_frames.h - frames through a veth, of a type without any receiver, and how many were seen. */
#ifndef TESTS_BPF_VETH_FRAMES_H
#define TESTS_BPF_VETH_FRAMES_H

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "packet/dataplane/dataplane.h"

/* `count` frames from `ifname`, of EtherType 0x88b5 behind `tags` VLAN tags. */
static inline void send_frames(const char *ifname, u32 count, u32 size, u32 tags)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_ALL),
				  .sll_ifindex = if_nametoindex(ifname) };
	u8 frame[9014] = { [0 ... 5] = 0xff, [6] = 2 };
	u8 *at = frame + 12;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	for (u32 i = 0; i < tags; i++) {
		memcpy(at, "\x81\x00\x00\x64", 4);
		at += 4;
	}
	memcpy(at, "\x88\xb5", 2);
	for (u32 i = 0; i < count; i++)
		while (send(fd, frame, size, 0) < 0)
			assert_int_equal(errno, ENOBUFS);
	close(fd);
}

static inline u64 frames_seen(struct dp *dp, u32 slot)
{
	struct sl_iface_stats stats;
	u64 sum = 0;

	assert_int_equal(dp->ops->iface_stats(dp, slot, &stats), 0);
	for (u32 reason = 0; reason < SL_R_COUNT; reason++)
		for (u32 action = 0; action < SL_ACT_COUNT; action++)
			sum += stats.packets[reason][action];
	return sum;
}

/* Waits until at least `count` frames were seen, then checks that exactly that many were. */
static inline void expect_frames(struct dp *dp, u32 slot, u64 count, int wait_ms)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < wait_ms && frames_seen(dp, slot) < count; i++)
		nanosleep(&pause, NULL);
	assert_int_equal(frames_seen(dp, slot), count);
}

#endif
