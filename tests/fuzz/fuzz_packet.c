// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as frames, against a rule set that uses every dimension and list: each frame is
 * counted once, under what was done with it; nothing beyond its end is read (each ends where
 * its memory ends); nothing is changed but a tagged header, whose checksum stays right.
 *
 * The input is a sequence of frames: a byte that says interface, CPU and how far the clock
 * goes on; two bytes of length; the frame.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "packet/dataplane/dp_push.h"
#include "packet/dataplane/dp_sim.h"

#define CPUS 2

static const char rules[] =
	/* The default; with drop less of the way is walked. */
	"on_parse_error: pass\n"
	"block: [198.51.100.0/24, 96.0.0.0/7, '2001:db8:bad::/48', '2400::/15']\n"
	"exempt: [198.51.100.0/28, '2001:db8:bad:1::/64']\n"
	"failsafe: [22/tcp, 53/udp]\n"
	"failsafe_rate: 20 connections/s\n"
	"essential: {rate: 10 packets/s}\n"
	"limits:\n"
	"- {name: web, match: {proto: tcp, dport: [80, 4000-4300]}, rate: 30 packets/s}\n"
	"- {name: syn, match: {tcp_flags: 'syn,!ack'}, per: [], rate: 20 connections/s}\n"
	"- {name: tag4, match: {src: 0.0.0.0/0, vlan: 0-100}, per: [vlan, interface],\n"
	"   rate: 4 packets/s, action: tag, tag: {dscp: cs1, mark: 7}}\n"
	"- {name: tag6, match: {src: '::/0', sport: 0-1023}, rate: 1 packets/s, action: tag,\n"
	"   tag: {dscp: 63}}\n"
	"- {name: ping, match: {icmp_type: echo-request}, rate: 5 packets/s}\n"
	"- {name: long, match: {length: 120-9000}, per: [proto, dst], rate: 9000 bytes/s}\n"
	"- {name: watch, match: {src: [192.0.2.0/24, '2001:db8::/33'], interface: eth1},\n"
	"   mode: shadow, per: [source, dport], rate: 8 packets/s}\n"
	"- {name: leased, accounting: percpu, rate: 1000 packets/s}\n"
	"- {name: minute, match: {dst: [203.0.113.0/24, '2001:db8:ffff::/48']},\n"
	"   accounting: exact, algorithm: fixed-window, rate: 300 packets/m,\n"
	"   ban: {after: 20 drops/2s, for: 1s, max: 4s, spoofable: yes}}\n";

static struct dp *dp;

static void put_push(const char *src, enum sl_push_kind kind)
{
	struct dp_push push = { .kind = kind,
				.rate = { 9, SL_NS_PER_SEC, RATE_PACKETS },
				.until_ns = ~0ULL };
	const char *reason;

	assert(!sl_prefix_parse(src, &push.src, &reason));
	assert(!dp_push_put(dp, &push));
}

static void set_up(void)
{
	static const char iface[SL_IFACES_MAX][16] = { "eth0", "eth1" };
	struct sl_session session = { .sport = 40000, .dport = 4242, .used = 1 };
	struct sl_prefix local[2], remote;
	struct compile_env env = {
		.mono_ns = SL_NS_PER_SEC,
		.cpus = CPUS,
		.seed = { 1, 2 },
		.generation = 1,
		.iface = iface,
		.local = local,
		.local_count = 2,
		.session = &session,
		.session_count = 1,
		.no_ban = &remote,
		.no_ban_count = 1,
	};
	struct sl_image *image;
	struct policy *policy;
	struct sl_err err;
	const char *reason;

	assert(!sl_prefix_parse("203.0.113.10", &local[0], &reason));
	assert(!sl_prefix_parse("2001:db8:ffff::10", &local[1], &reason));
	assert(!sl_prefix_parse("192.0.2.2", &remote, &reason));
	session.src = remote.addr;
	session.dst = local[0].addr;
	if (policy_parse("rules", rules, strlen(rules), &policy, &err)) {
		fprintf(stderr, "%d: %s\n", err.line, err.message);
		abort();
	}
	assert(!dp_sim_open(1024, CPUS, 16, &dp));
	env.slots = dp->slots;
	assert(!image_compile(policy, &env, &image, &err));
	assert(!dp->ops->apply(dp, image, &err));
	image_free(image);
	policy_free(policy);
	put_push("192.0.2.0/26", SL_PUSH_TAG);
	put_push("192.0.2.64/26", SL_PUSH_NO_NEW);
	put_push("192.0.2.128/26", SL_PUSH_LIMIT);
	put_push("192.0.2.192/26", SL_PUSH_DROP);
	put_push("2001:db8::/34", SL_PUSH_TAG);
	put_push("2001:db8:4000::/34", SL_PUSH_NO_NEW);
	put_push("2001:db8:8000::/34", SL_PUSH_LIMIT);
	dp_push_watch(dp, true);
}

static u64 counted(u32 iface, u32 action)
{
	struct sl_iface_stats stats;
	u64 sum = 0;
	u32 reason;

	assert(!dp->ops->iface_stats(dp, iface, &stats));
	for (reason = 0; reason < SL_R_COUNT; reason++)
		sum += stats.packets[reason][action];
	return sum;
}

static u16 checksum(const u8 *bytes, u32 length)
{
	u32 sum = 0, i;

	for (i = 0; i < length; i++)
		sum += i & 1 ? bytes[i] : (u32)bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* A DSCP changes bytes 0 and 1 of an IP header and, of IPv4, the checksum, which stays right. */
static void check_change(const u8 *was, const u8 *is, u32 length)
{
	u32 i, first = length, last = 0, header;

	for (i = 0; i < length; i++) {
		if (was[i] == is[i])
			continue;
		if (first == length)
			first = i;
		last = i;
	}
	if (first == length)
		return;
	assert(last - first <= 11);
	/* The IP header begins at `first`, or just before where only its second byte changed. */
	for (i = first; i + 1 >= first && i > 13; i--) {
		if (was[i] >> 4 == 4 && last <= i + 11 && was[i] == is[i]) {
			header = (was[i] & 15) * 4;
			if (i + header <= length && !checksum(was + i, header))
				assert(!checksum(is + i, header));
		}
	}
}

static void one_frame(u8 control, const u8 *data, u32 length)
{
	static u64 now = SL_NS_PER_SEC;
	u32 iface = control & 1, action, i;
	u64 before[SL_ACT_COUNT], more = 0;
	struct sl_global_stats global;
	struct sim_verdict v;
	/* As a driver lays it out: the IP header is at a multiple of four. */
	u8 *memory = malloc(2 + length), *frame = memory + 2;

	assert(memory);
	if (length)
		memcpy(frame, data, length);
	for (i = 0; i < SL_ACT_COUNT; i++)
		before[i] = counted(iface, i);
	now += (u64)(control >> 4) * (control >> 4) * 1000000;
	dp_sim_set_time(dp, now);
	v = dp_sim_packet(dp, control >> 1 & 1, iface, frame, length);
	for (i = 0, action = SL_ACT_COUNT; i < SL_ACT_COUNT; i++) {
		if (counted(iface, i) == before[i])
			continue;
		action = i;
		more += counted(iface, i) - before[i];
	}
	assert(more == 1 && v.drop == (action == SL_ACT_DROP));
	assert(!v.marked || (action == SL_ACT_TAG && (v.mark == 7 || v.mark == SL_PUSH_MARK)));
	if (action == SL_ACT_TAG)
		check_change(data, frame, length);
	else
		assert(!length || !memcmp(data, frame, length));
	assert(!dp->ops->global_stats(dp, &global));
	for (i = 0; i < SL_ME_COUNT; i++)
		assert(!global.errors[i]);
	free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!dp)
		set_up();
	while (size >= 3) {
		u32 length = (data[1] << 8 | data[2]) % 9217;

		if (length > size - 3)
			length = size - 3;
		one_frame(data[0], data + 3, length);
		data += 3 + length;
		size -= 3 + length;
	}
	return 0;
}
