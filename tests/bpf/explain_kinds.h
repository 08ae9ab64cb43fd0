/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * explain_kinds.h - rules, and sources of every kind for explain, each in some
 * random state. Of test_explain.c and test_explain_stores.c.
 */
#ifndef TESTS_BPF_EXPLAIN_KINDS_H
#define TESTS_BPF_EXPLAIN_KINDS_H

#include <stdio.h>
#include <string.h>

#include "packet/explain/dp_explain.h"
#include "packet/dataplane/dp_push.h"
#include "lib/addr.h"
#include "lib/case.h"
#include "lib/rng.h"

static const char rules[] =
	"failsafe: [22/tcp, 53/udp]\n"
	"failsafe_rate: 3 connections/s\n"
	"block: [198.51.100.0/24, 96.0.0.0/7, '2001:db8:bad::/48']\n"
	"exempt: [10.0.0.0/8, '2001:db8:f::/48']\n"
	"limits:\n"
	"- {name: few, match: {src: [172.16.0.0/16, '2001:db8:1::/48']}, rate: 10 packets/h,\n"
	"   burst: 10}\n"
	"- {name: window, match: {src: [172.17.0.0/16, '2001:db8:2::/48']}, rate: 10 packets/m,\n"
	"   algorithm: fixed-window}\n"
	"- {name: leased, match: {src: 172.18.0.0/16}, rate: 1000 packets/s, burst: 2000}\n"
	"- {name: watch, match: {src: [172.19.0.0/16, '2001:db8:4::/48']}, rate: 5 packets/h,\n"
	"   burst: 5, mode: shadow}\n"
	"- {name: mark, match: {src: [172.20.0.0/16, '2001:db8:5::/48']}, rate: 5 packets/h,\n"
	"   burst: 5, action: tag, tag: {dscp: cs1, mark: 7}}\n"
	"- {name: wide, match: {src: [172.21.0.0/16, '2001:db8:6::/48']}, rate: 12 packets/h,\n"
	"   burst: 12}\n"
	"- {name: narrow, match: {src: [172.21.0.0/16, '2001:db8:6::/48'], dport: 80},\n"
	"   rate: 6 packets/h, burst: 6, per: [source, dport]}\n"
	"- {name: ports, match: {src: [172.22.0.0/16, '2001:db8:7::/48'], proto: udp,\n"
	"   dport: 100-200}, rate: 5 packets/h, burst: 5}\n"
	"- {name: bytes, match: {src: 172.23.0.0/16}, rate: 2000 bytes/s, accounting: exact}\n"
	"- {name: syn, match: {src: 172.24.0.0/16}, rate: 5 connections/h, burst: 5,\n"
	"   accounting: exact}\n"
	"- {name: bans, match: {src: [172.25.0.0/16, '2001:db8:8::/48']}, rate: 2 packets/h, burst: 2,\n"
	"   ban: {after: 3 drops/10s, for: 10m, spoofable: yes}}\n"
	"- {name: own, match: {src: [172.26.0.0/16, '2001:db8:9::/48']}, rate: 2 packets/h, burst: 2,\n"
	"   overrides: [{src: 172.26.0.0/16, rate: 9 packets/h, burst: 9},\n"
	"               {src: 172.26.64.0/18, rate: 6 packets/h, burst: 6},\n"
	"               {src: '2001:db8:9::/49', rate: 7 packets/h, burst: 7}]}\n"
	"- {name: several, match: {src: [172.27.0.0/16, '2001:db8:a::/48']},\n"
	"   rate: [10 packets/s, 15 packets/h], burst: [5, 15]}\n"
	"- {name: ladder, match: {src: [172.28.0.0/16, '2001:db8:b::/48']}, rate: 4 packets/h,\n"
	"   burst: 4, prefix: {ipv4: [32, 24], ipv6: [64, 56]},\n"
	"   prefix_scale: {ipv4: [1, 2], ipv6: [1, 2]}}\n"
	"- {name: soft, match: {src: 172.29.0.0/16}, rate: 10 packets/h, burst: 10,\n"
	"   throttle: {soft: 90%, for: 20m}}\n"
	"- {name: sliding, match: {src: 172.30.0.0/16}, rate: 13 packets/m,\n"
	"   algorithm: sliding-window}\n"
	"- {name: leaky, match: {src: 172.31.0.0/16}, rate: 7 packets/h, algorithm: leaky-bucket}\n"
	"- {name: gone, match: {src: [173.21.0.0/16, '2001:db8:c::/48'], dport: 9}, action: drop}\n"
	"- {name: free, match: {src: [173.22.0.0/16, '2001:db8:d::/48'], dport: 9}, action: pass}\n"
	"- {name: noted, match: {src: [173.22.0.0/15, '2001:db8:e::/48']}, action: tag,\n"
	"   tag: {dscp: ef}}\n"
	"- {name: unless-free, match: {src: 173.22.0.0/15}, rate: 3 packets/h, burst: 3}\n"
	"- {name: stretch, match: {src: 173.16.0.0/16}, rate: 4 packets/h, burst: 4,\n"
	"   throttle: {elastic: 300%, while: {cpu: 70%}}}\n"
	"- {name: interval, match: {src: 174.16.0.0/16}, rate: 5 packets/m, burst: 8,\n"
	"   algorithm: interval-bucket}\n"
	"- {name: counters, match: {src: 174.17.0.0/16}, rate: 8 packets/m, buckets: 4,\n"
	"   algorithm: window-counters}\n"
	"- {name: first, match: {src: 174.18.0.0/16}, rate: 6 packets/m, algorithm: fixed-window,\n"
	"   window: first-request}\n"
	"- {name: counted, match: {src: 174.19.0.0/16}, rate: 5 packets/h, burst: 5, count: all}\n"
	"- {name: swept, match: {src: 174.20.0.0/16}, rate: 30 packets/m, burst: 30, per: [dst],\n"
	"   dst_prefix: {ipv4: 24}}\n";

/* A kind of source, and how many packets it has sent before: at most `most`. */
struct kind {
	const char *v4, *v6; /* formats for two random bytes */
	u32 most;
	u8 proto;
	u16 dport;
	bool fragments;
	bool many_cpus;
	bool pushed; /* some push-down is on, or just was */
};

static const struct kind kinds[] = {
	{ "198.51.100.%u", "2001:db8:bad::%x", 1, 17, .dport = 9 },
	{ "97.1.%u.%u", NULL, 1, 17, .dport = 9 },
	{ "10.1.%u.%u", "2001:db8:f::%x:%x", 1, 17, .dport = 9 },
	{ "97.2.%u.%u", NULL, 4, 6, .dport = 22 },
	{ "172.16.%u.%u", "2001:db8:1:%x%02x::1", 11, 17, .dport = 9 },
	{ "172.17.%u.%u", "2001:db8:2:%x%02x::1", 11, 17, .dport = 9 },
	{ "172.18.%u.%u", NULL, 2050, 17, .dport = 9, .many_cpus = true },
	{ "172.19.%u.%u", "2001:db8:4:%x%02x::1", 14, 17, .dport = 9 },
	{ "172.20.%u.%u", "2001:db8:5:%x%02x::1", 14, 17, .dport = 9 },
	{ "172.21.%u.%u", "2001:db8:6:%x%02x::1", 16, 17, .dport = 80 },
	{ "172.22.%u.%u", "2001:db8:7:%x%02x::1", 7, 17, .dport = 150, .fragments = true },
	{ "172.22.%u.%u", "2001:db8:7:%x%02x::1", 7, 17, .dport = 150, .fragments = true },
	{ "172.23.%u.%u", NULL, 40, 17, .dport = 9 },
	{ "172.24.%u.%u", NULL, 7, 6, .dport = 9 },
	{ "172.26.%u.%u", "2001:db8:9:%x%02x::1", 10, 17, .dport = 9 },
	{ "172.27.%u.%u", "2001:db8:a:%x%02x::1", 18, 17, .dport = 9 },
	{ "172.28.%u.%u", "2001:db8:b:%x%02x::1", 8, 17, .dport = 9 },
	{ "172.29.%u.%u", NULL, 21, 17, .dport = 9 },
	{ "172.29.%u.%u", NULL, 21, 17, .dport = 9 },
	{ "172.30.%u.%u", NULL, 17, 17, .dport = 9 },
	{ "173.16.%u.%u", NULL, 10, 17, .dport = 9 },
	{ "172.31.%u.%u", NULL, 3, 17, .dport = 9 },
	{ "174.16.%u.%u", NULL, 10, 17, .dport = 9 },
	{ "174.17.%u.%u", NULL, 10, 17, .dport = 9 },
	{ "174.18.%u.%u", NULL, 8, 17, .dport = 9 },
	{ "174.19.%u.%u", NULL, 7, 17, .dport = 9 },
	{ "174.20.%u.%u", NULL, 1, 17, .dport = 9 },
	{ "173.21.%u.%u", "2001:db8:c:%x%02x::1", 3, 17, .dport = 9, .fragments = true },
	{ "173.22.%u.%u", "2001:db8:d:%x%02x::1", 5, 17, .dport = 9, .fragments = true },
	{ "173.23.%u.%u", "2001:db8:e:%x%02x::1", 5, 17, .dport = 9 },
	{ "172.25.%u.%u", "2001:db8:8:%x%02x::1", 20, 17, .dport = 9 },
	{ "173.17.%u.%u", "2001:db8:11:%x%02x::1", 8, 6, .dport = 9, .pushed = true },
	{ "173.18.%u.%u", "2001:db8:12:%x%02x::1", 8, 6, .dport = 9, .pushed = true },
	{ "173.19.%u.%u", "2001:db8:13:%x%02x::1", 8, 6, .dport = 9, .fragments = true,
	  .pushed = true },
	{ "173.20.%u.%u", NULL, 8, 17, .dport = 9, .fragments = true, .pushed = true },
	{ "172.16.%u.%u", "2001:db8:1:%x%02x::1", 11, 6, .dport = 9, .pushed = true },
};

struct sent {
	char src[64];
	struct frame_spec spec;
	struct explain_packet packet; /* the same, as explain's arguments */
	u32 before;		      /* packets that the source sent before */
};

static struct sl_addr addr_of(const char *text)
{
	struct sl_prefix prefix;
	const char *reason;

	if (sl_prefix_parse(text, &prefix, &reason) < 0)
		fail_msg("%s: %s", text, reason);
	return prefix.addr;
}

/* The same packet for the tests' frame builder and for explain. */
static void make_packet(const struct kind *kind, struct sent *s)
{
	u32 a = rng_below(256), b = rng_below(256);
	bool v6 = kind->v6 && rng_below(2);
	struct frame frame;

	memset(s, 0, sizeof(*s));
	snprintf(s->src, sizeof(s->src), v6 ? kind->v6 : kind->v4, a, b);
	s->spec = (struct frame_spec){
		.src = s->src,
		.dst = v6 ? TARGET_LOCAL_V6 : TARGET_LOCAL_V4,
		.proto = kind->proto,
		.dport = kind->dport,
		.tcp_flags = FRAME_SYN,
		.payload = rng_below(3) ? 30 : rng_below(1000),
		.tags = !rng_below(4),
		.vlan = { 100 },
		.iface = rng_below(TARGET_IFACES),
	};
	if (s->spec.iface == TARGET_TUN)
		s->spec.tags = 0;
	if (kind->fragments && rng_below(3)) {
		bool later = rng_below(3);

		s->spec.frag_offset = later ? 100 : 0;
		s->spec.frag_more = !later;
		s->spec.ext[0] = v6 ? EXT_FRAGMENT : EXT_END;
		s->packet.fragment = later ? EXPLAIN_LATER : EXPLAIN_FIRST;
	}
	if (s->spec.payload < 8)
		s->spec.payload = 8;
	case_frame(&s->spec, &frame);
	s->packet = (struct explain_packet){
		.src = addr_of(s->src),
		.dst = addr_of(s->spec.dst),
		.length = frame.length - frame.l3,
		.interface = s->spec.iface,
		.sport = 40000,
		.dport = kind->dport,
		.vlan = s->spec.tags ? 100 : SL_VLAN_NONE,
		.family = v6 ? SL_V6 : SL_V4,
		.proto = kind->proto,
		.tcp_flags = FRAME_SYN,
		.fragment = s->packet.fragment,
	};
}

/* Of any kind, on the address or its /24 or /64, for half a minute at most. */
static void put_push(struct target *t, const struct sent *s)
{
	u32 family = s->packet.family, shorter = family == SL_V4 ? 24 : 64;
	u32 len = rng_below(2) ? shorter : family == SL_V4 ? 32 : 128;
	struct dp_push push = {
		.src = { sl_addr_mask(s->packet.src, len), family, len },
		.kind = rng_below(SL_PUSH_COUNT),
		.rate = { 1 + rng_below(5), 3600 * SL_NS_PER_SEC, RATE_PACKETS },
		.until_ns = target_mono(t) + rng_below(30) * SL_NS_PER_SEC,
	};

	assert_int_equal(dp_push_put(target_dp(t), &push), 0);
}

/* Some state for the source: packets like it, whole ones, at this instant. */
static void send_before(struct target *t, const struct kind *kind, struct sent *s)
{
	struct frame_spec spec = s->spec;
	struct frame frame;
	u32 left = rng_below(kind->most + 1);

	spec.frag_offset = 0;
	spec.frag_more = false;
	spec.ext[0] = 0;
	case_frame(&spec, &frame);
	if (kind->pushed)
		put_push(t, s);
	s->before = left;
	while (left) {
		u32 cpu = kind->many_cpus ? rng_below(target_cpus(t)) : 0;
		u32 now = kind->many_cpus ? 1 + rng_below(left) : left;

		if (target_flood(t, cpu, spec.iface, &frame, now) < 0)
			fail_msg("not run");
		left -= now;
	}
}

static struct explain *open_explain(struct target *t)
{
	struct sl_err err = { .message = "" };
	struct explain *e;

	if (explain_new(target_dp(t), target_image(t), target_mono(t), &e, &err) < 0)
		fail_msg("%s", err.message);
	explain_set_link(e, TARGET_TUN, SL_LINK_IP);
	return e;
}

struct predicted {
	struct explain_result answer;
	struct explain_limit limit[SL_MATCHES_MAX];
	int limits;
	u64 wait_ns;
};

static void predict(struct target *t, const struct explain_packet *packet, u32 cpu,
		    struct predicted *ret)
{
	struct explain *e = open_explain(t);
	struct sl_err err = { .message = "" };
	int rc = explain_run(e, packet, cpu, &ret->answer, &err);

	if (!rc)
		rc = ret->limits = explain_limits(e, packet, cpu, ret->limit, SL_MATCHES_MAX, &err);
	if (rc >= 0)
		rc = explain_wait(e, packet, cpu, &ret->wait_ns, &err);
	explain_free(e);
	if (rc < 0)
		fail_msg("%s", err.message);
}

#endif
