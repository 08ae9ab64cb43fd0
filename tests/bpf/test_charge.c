// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_charge.c - charging: buckets, units, several limits at once, modes, tags.
 * The clock stands still unless a test sets it, so a bucket passes exactly its burst.
 */
#include <stdio.h>
#include <string.h>

#include "lib/case.h"

#define SPEC(...) (&(struct frame_spec){ __VA_ARGS__ })

/* ------------------------------------------------------------------ buckets */

/* Two packets that differ in one thing: the one bucket is used up, is the other one, too? */
static const struct {
	const char *per;
	struct frame_spec a, b;
	bool same;
} bucket_cases[] = {
	{ "source", { .src = "192.0.2.1" }, { .src = "192.0.2.2" }, false },
	{ "source", { .dport = 1 }, { .dport = 2 }, true },
	{ "source", { .dst = "10.0.0.1" }, { .dst = "10.0.0.2" }, true },
	{ "source", { .proto = 6 }, { .proto = 17 }, true },
	{ "source", { .iface = 0 }, { .iface = 1 }, true },
	{ "source", { .src = "2001:db8::1" }, { .src = "2001:db8::2" }, true },
	{ "source", { .src = "2001:db8::1" }, { .src = "2001:db8:0:1::1" }, false },
	/* The same 32 bits in the other family. */
	{ "source", { .src = "32.1.13.184" }, { .src = "2001:db8::" }, false },
	{ "dst", { .dst = "10.0.0.1" }, { .dst = "10.0.0.2" }, false },
	{ "dst", { .src = "::1", .dst = "::2" }, { .src = "::1", .dst = "::3" }, false },
	{ "dst", { .src = "192.0.2.1" }, { .src = "192.0.2.2" }, true },
	{ "proto", { .proto = 6 }, { .proto = 17 }, false },
	{ "proto", { .src = "192.0.2.1" }, { .src = "192.0.2.2" }, true },
	{ "dport", { .dport = 1 }, { .dport = 2 }, false },
	{ "dport", { .sport = 1 }, { .sport = 2 }, true },
	{ "vlan", { .tags = 1, .vlan = { 1 } }, { .tags = 1, .vlan = { 2 } }, false },
	{ "vlan", { .tags = 1, .vlan = { 1 } }, { .tags = 1, .vlan = { 0x2001 } }, true },
	{ "vlan", { .tags = 1 }, { 0 }, true },
	{ "vlan", { .tags = 1, .vlan = { 1 } }, { 0 }, false },
	{ "interface", { .iface = 0 }, { .iface = 1 }, false },
	{ "interface", { .dport = 1 }, { .dport = 2 }, true },
	{ "source, dport", { .dport = 1 }, { .dport = 2 }, false },
	{ "source, dport", { .src = "192.0.2.1" }, { .src = "192.0.2.2" }, false },
	{ "source, dport", { .sport = 1 }, { .sport = 2 }, true },
	{ "source, dst",
	  { .src = "192.0.2.1", .dst = "192.0.2.2" },
	  { .src = "192.0.2.2", .dst = "192.0.2.1" },
	  false },
	{ "", { .src = "192.0.2.1" }, { .src = "10.0.0.1", .proto = 6, .iface = 1 }, true },
	{ "", { .src = "192.0.2.1" }, { .src = "2001:db8::1" }, true },
};

CASE_TEST(buckets)
{
	u32 i, passed;
	int bad = 0;

	for (i = 0; i < COUNT(bucket_cases); i++) {
		case_policy(t, "limits: [{name: per-%u, per: [%s], rate: 7 packets/s}]\n", i,
			    bucket_cases[i].per);
		assert_int_equal(case_send(t, &bucket_cases[i].a, 9), 7);
		passed = case_send(t, &bucket_cases[i].b, 9);
		if (passed == (bucket_cases[i].same ? 0 : 7))
			continue;
		print_error("%s: row %u, per [%s]: %u passed\n", target_name(t), i,
			    bucket_cases[i].per, passed);
		bad++;
	}
	assert_int_equal(bad, 0);
}

/* A limit on VID 0 is for priority tags: what is cached of one is not for frames without a tag. */
CASE_TEST(priority_tags)
{
	const struct frame_spec tagged = { .tags = 1 }, plain = { .tags = 0 };

	case_policy(t,
		    "limits: [{name: priority, match: {vlan: 0}, rate: 3 packets/h, burst: 3}]\n");
	assert_int_equal(case_send(t, &tagged, 9), 3);
	assert_int_equal(case_send(t, &plain, 9), 9);
	assert_int_equal(case_send(t, &tagged, 9), 0);
}

CASE_TEST(aggregation)
{
	static const struct {
		const char *prefix, *a, *same, *other;
	} meters[] = {
		{ "{ipv4: 24}", "192.0.2.1", "192.0.2.255", "192.0.3.1" },
		{ "{ipv4: 8}", "10.0.0.1", "10.255.0.1", "11.0.0.1" },
		{ "{ipv4: 31}", "192.0.2.2", "192.0.2.3", "192.0.2.4" },
		{ "{ipv4: 32}", "192.0.2.2", NULL, "192.0.2.3" },
		{ "{ipv4: 1}", "1.0.0.0", "127.0.0.0", "128.0.0.0" },
		{ "{ipv6: 56}", "2001:db8::1", "2001:db8:0:ff::1", "2001:db8:0:100::1" },
		{ "{ipv6: 48}", "2001:db8::1", "2001:db8:0:ffff::1", "2001:db8:1::1" },
		{ "{ipv6: 64}", "2001:db8::1", "2001:db8::ffff:0:0:1", "2001:db8:0:1::1" },
		{ "{ipv6: 65}", "2001:db8::1", "2001:db8::7fff:0:0:1", "2001:db8::8000:0:0:1" },
		{ "{ipv6: 128}", "2001:db8::1", NULL, "2001:db8::2" },
	};
	u32 i;

	for (i = 0; i < COUNT(meters); i++) {
		case_policy(t, "limits: [{name: agg-%u, prefix: %s, rate: 5 packets/s}]\n", i,
			    meters[i].prefix);
		assert_int_equal(case_send(t, SPEC(.src = meters[i].a), 6), 5);
		if (meters[i].same)
			assert_int_equal(case_send(t, SPEC(.src = meters[i].same), 6), 0);
		assert_int_equal(case_send(t, SPEC(.src = meters[i].other), 6), 5);
	}
}

/* ------------------------------------------------------------------ units */

CASE_TEST(bytes_and_bits)
{
	case_policy(t, "limits: [{name: one, rate: 10000 bytes/s, burst: 10000}]\n");
	/* 1000 bytes of frame, whatever IP says: ten of them, then 42 bytes do not fit. */
	assert_int_equal(case_send(t, SPEC(.payload = 958), 9), 9);
	assert_int_equal(case_send(t, SPEC(.payload = 959), 2), 0);
	assert_int_equal(case_send(t, SPEC(.pad = 958), 2), 1);
	assert_int_equal(case_send(t, SPEC(.payload = 0), 1), 0);
	target_set_time(t, SL_NS_PER_SEC / 10);
	assert_int_equal(case_send(t, SPEC(.payload = 958), 2), 1);

	case_policy(t, "limits: [{name: two, rate: 80000 bits/s, burst: 80000}]\n");
	assert_int_equal(case_send(t, SPEC(.payload = 958), 20), 10);
	target_set_time(t, SL_NS_PER_SEC);
	assert_int_equal(case_send(t, SPEC(.payload = 958), 20), 9);
}

/* TCP SYN without ACK, and nothing else, is a connection. */
CASE_TEST(connections)
{
	case_policy(t, "limits: [{name: conn, rate: 3 connections/s}]\n");
	assert_int_equal(case_send(t, SPEC(.proto = 6, .tcp_flags = FRAME_SYN), 9), 3);
	assert_int_equal(case_send(t, SPEC(.proto = 6, .tcp_flags = 0xc2), 2), 0);
	assert_int_equal(case_send(t, SPEC(.proto = 6, .tcp_flags = FRAME_SYN | FRAME_ACK), 9), 9);
	assert_int_equal(case_send(t, SPEC(.proto = 6), 9), 9);
	assert_int_equal(case_send(t, SPEC(.proto = 17), 9), 9);
	assert_int_equal(case_send(t, SPEC(.proto = 17, .frag_offset = 3, .payload = 20), 9), 9);
	assert_int_equal(case_counted(t, "conn", SL_LV_PASS), 3);
	assert_int_equal(case_counted(t, "conn", SL_LV_DROP), 8);
	assert_int_equal(target_count(t, 0, SL_R_NO_MATCH, SL_ACT_PASS), 36);
	/* Its first was not seen: it may contain a SYN. */
	assert_int_equal(case_send(t, SPEC(.proto = 6, .frag_offset = 3, .payload = 20), 9), 0);
}

/* ------------------------------------------------------------------ several limits */

/* Sixteen at once; the last refuses, and the others stay as they were. */
CASE_TEST(sixteen_limits)
{
	char yaml[2048] = "limits:\n", name[16];
	size_t used = strlen(yaml);
	u32 i;

	for (i = 0; i < 16; i++)
		used += snprintf(yaml + used, sizeof(yaml) - used,
				 "- {name: l%u, per: [], rate: %u packets/s, burst: %u}\n", i,
				 i == 15 ? 5 : 100, i == 15 ? 5 : 100);
	case_policy(t, "%s", yaml);
	assert_int_equal(case_send(t, SPEC(0), 50), 5);
	for (i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "l%u", i);
		assert_int_equal(case_counted(t, name, SL_LV_PASS), 5);
		assert_int_equal(case_counted(t, name, SL_LV_DROP), i == 15 ? 45 : 0);
	}
	/* Had one of the 45 been charged anywhere, less than 95 would be left. */
	yaml[used - strlen(strrchr(yaml, '-'))] = 0;
	case_policy(t, "%s", yaml);
	assert_int_equal(case_send(t, SPEC(0), 200), 95);
}

static u64 leases_taken(struct target *t)
{
	struct sl_global_stats stats;

	assert_int_equal(target_dp(t)->ops->global_stats(target_dp(t), &stats), 0);
	return stats.leases;
}

/*
 * A source takes leases at any fill of its limit, from its sixth packet within 10 ms on a CPU; one
 * in the crowd that sends less takes none: a spoofed flood must not fill the lease cache.
 */
CASE_TEST(leases_of_the_busy)
{
	u64 before = leases_taken(t);
	struct frame_spec one = { 0 };
	char src[20];
	u32 i;

	case_policy(t, "limits: [{name: leased, rate: 40000 packets/s}]\n");
	assert_int_equal(case_send(t, SPEC(0), 5), 5);
	assert_int_equal(leases_taken(t) - before, 0);
	assert_int_equal(case_send(t, SPEC(0), 1), 1);
	assert_int_equal(leases_taken(t) - before, 1);
	for (i = 0; i < 5000; i++) {
		snprintf(src, sizeof(src), "10.0.%u.%u", i >> 8, i & 255);
		one.src = src;
		assert_int_equal(case_send(t, &one, 1 + i % 3), 1 + i % 3);
	}
	assert_int_equal(leases_taken(t) - before, 1);
	assert_int_equal(case_send(t, SPEC(0), 50000), 40000 - 6);
	/* Each lease takes 100 units, 0.5 % for each of two CPUs; only the first ones are
	 * smaller. */
	assert_in_range(leases_taken(t) - before, 2, 40000 / 100 + 4 * 5);
}

/* ------------------------------------------------------------------ modes */

CASE_TEST(shadow_and_off)
{
	struct packet_case shadow[] = {
		{ "shadow, within", { 0 }, WITHIN },
		{ "shadow, over", { 0 }, WITHIN },
	};

	case_policy(t, "limits:\n- {name: watch, mode: shadow, rate: 1 packets/s}\n"
		       "- {name: none, mode: off, rate: 1 packets/s}\n");
	CASES_RUN(t, shadow);
	assert_int_equal(case_counted(t, "watch", SL_LV_PASS), 1);
	assert_int_equal(case_counted(t, "watch", SL_LV_SHADOW), 1);
	assert_int_equal(case_counted(t, "none", SL_LV_PASS), 0);

	/* A packet refused by a dropping limit is not charged to a limit in shadow. */
	case_policy(t, "limits:\n- {name: see, mode: shadow, rate: 100 packets/s}\n"
		       "- {name: cut, rate: 4 packets/s}\n");
	assert_int_equal(case_send(t, SPEC(0), 10), 4);
	assert_int_equal(case_counted(t, "see", SL_LV_PASS), 4);
	assert_int_equal(case_counted(t, "see", SL_LV_SHADOW), 0);
	assert_int_equal(case_counted(t, "cut", SL_LV_DROP), 6);
}

/* ------------------------------------------------------------------ tags */

/* Sends one that is over a tagging limit; returns the frame after the program. */
static void tagged(struct target *t, const struct frame_spec *spec, struct frame *f,
		   struct target_verdict *v)
{
	case_send(t, spec, 1);
	case_frame(spec, f);
	assert_int_equal(target_run(t, 0, 0, f, v), 0);
	assert_int_equal(v->action, SL_ACT_TAG);
	assert_int_equal(v->reason, SL_R_OVER);
	assert_false(v->drop);
}

CASE_TEST(tag_ipv4)
{
	static const u8 tos[] = { 0, 0x03, 0x20, 0xb8, 0xfc, 0xff, 0x01 };
	static struct frame f, was;
	struct target_verdict v;
	u32 i, j;

	for (i = 0; i < COUNT(tos); i++) {
		for (j = 0; j < 4; j++) {
			struct frame_spec spec = {
				.tos = tos[i], .tags = j, .ihl = 5 + j, .payload = 11 * i
			};

			target_reset(t);
			case_policy(t,
				    "limits: [{name: tag, rate: 1 packets/s, action: tag, "
				    "tag: {dscp: %u}}]\n",
				    j * 21);
			case_frame(&spec, &was);
			tagged(t, &spec, &f, &v);
			assert_false(v.marked);
			assert_int_equal(f.data[f.l3 + 1], j * 21 << 2 | (tos[i] & 3));
			assert_int_equal(frame_checksum(f.data + f.l3, spec.ihl * 4), 0);
			/* Nothing else is touched. */
			f.data[f.l3 + 1] = was.data[f.l3 + 1];
			f.data[f.l3 + 10] = was.data[f.l3 + 10];
			f.data[f.l3 + 11] = was.data[f.l3 + 11];
			assert_memory_equal(f.data, was.data, f.length);
		}
	}
	assert_int_equal(case_counted(t, "tag", SL_LV_TAG), 1);
	assert_int_equal(case_counted(t, "tag", SL_LV_PASS), 1);
}

/* The update never turns a right checksum wrong, for any addresses (0xffff and 0 included). */
CASE_TEST(tag_any_checksum)
{
	struct target_verdict v;
	static struct frame f;
	char src[20];
	u32 i;

	case_policy(t, "limits: [{name: tag, per: [], rate: 1 packets/s, action: tag, "
		       "tag: {dscp: cs1}}]\n");
	case_send(t, SPEC(0), 1);
	for (i = 0; i < 65536; i += 17) {
		snprintf(src, sizeof(src), "10.0.%u.%u", i >> 8, i & 255);
		case_frame(SPEC(.src = src, .tos = i), &f);
		assert_int_equal(target_run(t, 0, 0, &f, &v), 0);
		assert_int_equal(v.action, SL_ACT_TAG);
		assert_int_equal(frame_checksum(f.data + 14, 20), 0);
	}
}

CASE_TEST(tag_ipv6)
{
	static const u8 class[] = { 0, 0x03, 0x2e, 0xff, 0xfd };
	static struct frame f, was;
	struct target_verdict v;
	u32 i;

	for (i = 0; i < COUNT(class); i++) {
		struct frame_spec spec = { .v6 = true, .tos = class[i], .tags = i % 3 };

		target_reset(t);
		case_policy(t,
			    "limits: [{name: tag, rate: 1 packets/s, action: tag, "
			    "tag: {dscp: %u}}]\n",
			    13 * i);
		case_frame(&spec, &was);
		tagged(t, &spec, &f, &v);
		assert_int_equal((f.data[f.l3] & 15) << 4 | f.data[f.l3 + 1] >> 4,
				 13 * i << 2 | (class[i] & 3));
		assert_int_equal(f.data[f.l3] >> 4, 6);
		assert_int_equal(f.data[f.l3 + 1] & 15, was.data[f.l3 + 1] & 15);
		memcpy(f.data + f.l3, was.data + f.l3, 2);
		assert_memory_equal(f.data, was.data, f.length);
	}
}

CASE_TEST(tag_mark)
{
	static struct frame f, was;
	struct target_verdict v;

	case_policy(t, "limits: [{name: tag, rate: 1 packets/s, action: tag, "
		       "tag: {mark: 0xfedcba98}}]\n");
	case_frame(SPEC(.tos = 7), &was);
	tagged(t, SPEC(.tos = 7), &f, &v);
	assert_true(v.marked);
	assert_int_equal(v.mark, 0xfedcba98);
	assert_memory_equal(f.data, was.data, f.length);
	/* A neighbour within the limit is not tagged. */
	case_frame(SPEC(.src = "192.0.2.99"), &f);
	assert_int_equal(case_check(t, "neighbour", 0, &f, WITHIN), 0);
}

/* Two tagging limits: the first in file order sets each tag; a drop goes before tags. */
CASE_TEST(tags_of_two)
{
	static struct frame f;
	struct target_verdict v;

	case_policy(t, "limits:\n"
		       "- {name: a, rate: 1 packets/s, action: tag, tag: {dscp: 10}}\n"
		       "- {name: b, rate: 1 packets/s, action: tag, tag: {dscp: 20, mark: 5}}\n"
		       "- {name: c, rate: 3 packets/s}\n");
	tagged(t, SPEC(0), &f, &v);
	assert_int_equal(f.data[15], 10 << 2);
	assert_true(v.marked && v.mark == 5);
	assert_int_equal(case_send(t, SPEC(0), 5), 1);
	case_frame(SPEC(0), &f);
	assert_int_equal(case_check(t, "over c", 0, &f, OVER), 0);
	assert_int_equal(case_counted(t, "b", SL_LV_TAG), 2);
	assert_int_equal(case_counted(t, "c", SL_LV_DROP), 5);
}

/*
 * Neighbors of a link share a /64: each has what a source has, and all together ten times that,
 * whatever addresses they forge. Others of a /64 share it as ever.
 */
CASE_TEST(link_local)
{
	static const char *const limits[] = {
		"rate: 10 packets/h, burst: 10",
		"rate: 10 packets/h, burst: 10, accounting: exact",
		"rate: [10 packets/h, 100 packets/d], burst: [10, 100]",
		"rate: 10 packets/h, algorithm: sliding-window",
		"rate: 10 packets/h, burst: 10, prefix: {ipv6: 56}",
		"rate: 10 packets/h, burst: 10, overrides: [{src: '2001:db8:7::/48', rate: 5 packets/h}]",
	};
	u32 i, k, passed;

	for (i = 0; i < COUNT(limits); i++) {
		target_reset(t);
		case_policy(t, "limits: [{name: each, %s}]\n", limits[i]);
		assert_int_equal(case_send(t, SPEC(.src = "fe80::bad"), 300), 10);
		assert_int_equal(case_send(t, SPEC(.src = "fe80::2"), 20), 10);
		assert_int_equal(case_send(t, SPEC(.src = "2001:db8::2"), 20), 10);
		assert_int_equal(case_send(t, SPEC(.src = "2001:db8::3"), 20), 0);
		for (k = passed = 0; k < 300; k++) {
			char text[32];

			snprintf(text, sizeof(text), "fe80::%x:1", k + 1);
			passed += case_send(t, SPEC(.src = text), 1);
		}
		/* The interval of the sum is rounded up. */
		assert_in_range(passed, 79, 80);
		assert_int_equal(case_counted(t, "each", SL_LV_PASS), 30 + passed);
	}
	/* As the file has it: a length for each address, or a whole hierarchy. */
	target_reset(t);
	case_policy(t,
		    "limits: [{name: own, rate: 10 packets/h, burst: 10, prefix: {ipv6: 128}}]\n");
	assert_int_equal(case_send(t, SPEC(.src = "fe80::2"), 20), 10);
	assert_int_equal(case_send(t, SPEC(.src = "fe80::3"), 20), 10);
	target_reset(t);
	case_policy(
		t,
		"limits: [{name: own, rate: 10 packets/h, burst: 10, prefix: {ipv6: [64, 56]}}]\n");
	assert_int_equal(case_send(t, SPEC(.src = "fe80::2"), 20), 10);
	assert_int_equal(case_send(t, SPEC(.src = "fe80::3"), 20), 0);
}

int main(void)
{
	return case_main("charge");
}
