// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_classify.c - which limits match, in pairs: this packet must match, the next one must
 * not. Charging (buckets, units, tags, several limits) is in test_charge.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/case.h"

#define YES SL_ACT_PASS, SL_R_WITHIN
#define NO SL_ACT_PASS, SL_R_NO_MATCH
#define MATCH(what) "limits: [{name: one, match: {" what "}, rate: 1M packets/s}]\n"
/* clang-format off */
#define SYN .proto = 6, .tcp_flags = FRAME_SYN
/* clang-format on */

/* Tables are run with their match as the only limit. */
static void run(void **state, const char *rules, const struct packet_case *cases, size_t count)
{
	struct target *t = case_target(state);

	case_policy(t, "%s", rules);
	cases_run(t, cases, count);
}
#define RUN(match, ...)                                                                            \
	do {                                                                                       \
		static const struct packet_case cases_[] = { __VA_ARGS__ };                        \
		run(state, MATCH(match), cases_, COUNT(cases_));                                   \
	} while (0)

TEST(src)
{
	RUN("src: 192.0.2.7", { "it", { .src = "192.0.2.7" }, YES },
	    { "below", { .src = "192.0.2.6" }, NO }, { "above", { .src = "192.0.2.8" }, NO },
	    { "as destination", { .src = "192.0.2.6", .dst = "192.0.2.7" }, NO },
	    { "IPv6", { .v6 = true }, NO });
	RUN("src: 0.0.0.0/0", { "v4", { .src = "255.255.255.255" }, YES },
	    { "v6", { .src = "::" }, NO });
	RUN("src: '::/0'", { "v6", { .src = "ffff::1" }, YES }, { "v4", { .src = "0.0.0.0" }, NO });
	RUN("src: ['2001:db8::/33', 10.0.0.0/9]", { "v6", { .src = "2001:db8:7fff::1" }, YES },
	    { "v6, above", { .src = "2001:db8:8000::1" }, NO },
	    { "v4", { .src = "10.127.255.255" }, YES },
	    { "v4, above", { .src = "10.128.0.0" }, NO });
	RUN("src: [10.0.0.0/8, 10.1.0.0/16, 10.1.2.0/24]", { "in all", { .src = "10.1.2.3" }, YES },
	    { "in one", { .src = "10.2.2.3" }, YES }, { "in none", { .src = "11.1.2.3" }, NO });
	RUN("src: '2001:db8::1'", { "it", { .src = "2001:db8::1" }, YES },
	    { "last bit", { .src = "2001:db8::" }, NO },
	    { "first bit", { .src = "a001:db8::1" }, NO });
}

TEST(dst)
{
	RUN("dst: 203.0.113.10", { "it", { 0 }, YES }, { "other", { .dst = "203.0.113.11" }, NO },
	    { "as source", { .src = "203.0.113.10", .dst = "192.0.2.1" }, NO });
	RUN("dst: '2001:db8:ffff::/64'", { "in", { .v6 = true }, YES },
	    { "out", { .src = "::1", .dst = "2001:db8:ffff:1::10" }, NO }, { "v4", { 0 }, NO });
	RUN("src: 192.0.2.0/24, dst: 203.0.113.0/24", { "both", { 0 }, YES },
	    { "src alone", { .dst = "203.0.114.1" }, NO },
	    { "dst alone", { .src = "192.0.3.1" }, NO });
}

/* Every length: the first and the last address of a prefix match, their neighbours do not. */
CASE_TEST(every_prefix_length)
{
	int bad = 0;
	u32 len;

	for (len = 1; len <= 32; len++) {
		u32 first = 0xac1f8e4aU & ~0U << (32 - len),
		    last = first | (len < 32 ? ~0U >> len : 0);
		u32 at[4] = { first - 1, first, last, last + 1 }, i;
		static struct frame f;
		char text[4][16];

		for (i = 0; i < 4; i++)
			snprintf(text[i], sizeof(text[i]), "%u.%u.%u.%u", at[i] >> 24,
				 at[i] >> 16 & 255, at[i] >> 8 & 255, at[i] & 255);
		case_policy(t, "limits: [{name: one, match: {src: %s/%u}, rate: 1M packets/s}]\n",
			    text[1], len);
		for (i = 0; i < 4; i++) {
			case_frame(&(struct frame_spec){ .src = text[i] }, &f);
			bad += case_check(t, text[i], 0, &f, SL_ACT_PASS,
					  i == 1 || i == 2 ? SL_R_WITHIN : SL_R_NO_MATCH);
		}
	}
	assert_int_equal(bad, 0);
}

static void ipv6_text(const u8 *addr, char *ret, size_t size)
{
	size_t used = 0;
	u32 i;

	for (i = 0; i < 16; i += 2)
		used += snprintf(ret + used, size - used, "%s%x", i ? ":" : "",
				 addr[i] << 8 | addr[i + 1]);
}

/* The same for IPv6, by the bit that ends the prefix and the one behind it. */
CASE_TEST(every_prefix_length_ipv6)
{
	static const u8 base[16] = { 0x20, 1,	 0xd,  0xb8, 0xa5, 0x5a, 0x33, 0xcc,
				     0x99, 0x66, 0xf0, 0xf,  0x12, 0x34, 0x56, 0x78 };
	int bad = 0;
	u32 len, i;

	for (len = 1; len <= 128; len++) {
		u8 net[16] = { 0 }, last[16], out[16];
		char text[3][48];
		static struct frame f;

		for (i = 0; i < len; i++)
			net[i / 8] |= base[i / 8] & 0x80 >> i % 8;
		memcpy(last, net, 16);
		for (i = len; i < 128; i++)
			last[i / 8] |= 0x80 >> i % 8;
		memcpy(out, net, 16);
		out[(len - 1) / 8] ^= 0x80 >> (len - 1) % 8;
		ipv6_text(net, text[0], sizeof(text[0]));
		ipv6_text(last, text[1], sizeof(text[1]));
		ipv6_text(out, text[2], sizeof(text[2]));
		case_policy(t, "limits: [{name: one, match: {src: '%s/%u'}, rate: 1M packets/s}]\n",
			    text[0], len);
		for (i = 0; i < 3; i++) {
			case_frame(&(struct frame_spec){ .src = text[i] }, &f);
			bad += case_check(t, text[i], 0, &f, SL_ACT_PASS,
					  i < 2 ? SL_R_WITHIN : SL_R_NO_MATCH);
		}
	}
	assert_int_equal(bad, 0);
}

/* Whether dense_prefixes() lists an address of this third and fourth byte. */
static bool is_dense(u32 third, u32 last)
{
	return third == 9 || third == 255 ? last & 1 : third % 3 == 0 && last >= 64 && last < 128;
}

/*
 * One /16 with hundreds of prefixes, two of its /24s with 128: every kind of line that the
 * IPv4 index has. At the end of the address space and inside it, as source and destination.
 */
CASE_TEST(dense_prefixes)
{
	static const char *const nets[] = { "172.31", "255.255" };
	int bad = 0;
	u32 run, third, last;

	for (run = 0; run < 4; run++) {
		const char *net = nets[run / 2];
		char *text = NULL, addr[16];
		static struct frame f;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		assert_non_null(out);
		for (third = 0; third < 256; third++) {
			for (last = 0; last < 256; last++) {
				if (is_dense(third, last))
					fprintf(out, "%s.%u.%u, ", net, third, last);
			}
		}
		fclose(out);
		case_policy(t, "limits: [{name: one, match: {%s: [%s]}, rate: 1M packets/s}]\n",
			    run & 1 ? "dst" : "src", text);
		free(text);
		for (third = 0; third < 256; third++) {
			for (last = 0; last < 256; last += third == 9 || third == 255 ? 1 : 21) {
				struct frame_spec spec = { 0 };

				snprintf(addr, sizeof(addr), "%s.%u.%u", net, third, last);
				if (run & 1)
					spec.dst = addr;
				else
					spec.src = addr;
				case_frame(&spec, &f);
				bad += case_check(t, addr, 0, &f, SL_ACT_PASS,
						  is_dense(third, last) ? SL_R_WITHIN
									: SL_R_NO_MATCH);
			}
		}
	}
	assert_int_equal(bad, 0);
	assert_int_equal(target_errors(t), 0);
}

TEST(proto)
{
	RUN("proto: tcp", { "tcp", { .proto = 6 }, YES }, { "udp", { .proto = 17 }, NO },
	    { "tcp, IPv6", { .proto = 6, .v6 = true }, YES },
	    { "tcp, later fragment", { .proto = 6, .frag_offset = 1 }, YES },
	    { "udp, later fragment", { .proto = 17, .frag_offset = 1 }, NO });
	RUN("proto: [udp, sctp, 47]", { "udp", { 0 }, YES }, { "sctp", { .proto = 132 }, YES },
	    { "gre", { .proto = 47 }, YES }, { "46", { .proto = 46 }, NO },
	    { "icmp", { .proto = 1 }, NO });
	RUN("proto: udplite, dport: 53", { "UDP-Lite", { .proto = 136, .dport = 53 }, YES },
	    { "UDP-Lite, another port", { .proto = 136, .dport = 54 }, NO },
	    { "UDP", { .proto = 17, .dport = 53 }, NO });
	RUN("dport: 53", { "UDP-Lite", { .proto = 136, .dport = 53 }, YES },
	    { "GRE", { .proto = 47, .dport = 53 }, NO });
	RUN("proto: icmp", { "icmp", { .proto = 1 }, YES },
	    { "icmpv6", { .proto = 58, .v6 = true }, NO });
	RUN("proto: 0", { "0", { .proto_zero = true }, YES }, { "1", { .proto = 1 }, NO },
	    { "hop-by-hop", { .v6 = true, .ext = { EXT_HOPBYHOP } }, YES },
	    { "options", { .v6 = true, .ext = { EXT_DSTOPTS } }, NO });
	/* In IPv6 these are headers that a packet has on its way to its protocol. */
	RUN("proto: [43, 60]", { "routing", { .v6 = true, .ext = { EXT_ROUTING } }, YES },
	    { "options", { .v6 = true, .ext = { EXT_HOPBYHOP, EXT_DSTOPTS } }, YES },
	    { "a fragment header", { .v6 = true, .ext = { EXT_FRAGMENT } }, NO },
	    { "none", { .v6 = true }, NO }, { "60 in IPv4", { .proto = 60 }, YES });
	RUN("proto: [44, tcp]", { "atomic", { .v6 = true, .ext = { EXT_FRAGMENT } }, YES },
	    { "tcp", { .v6 = true, .proto = 6, .ext = { EXT_DSTOPTS } }, YES },
	    { "udp", { .v6 = true, .ext = { EXT_DSTOPTS } }, NO });
	/* These are protocols, whatever comes behind them. */
	RUN("proto: [51, 135, 139, 140]", { "AH", { .v6 = true, .ext = { EXT_AH } }, YES },
	    { "mobility", { .v6 = true, .ext = { EXT_MOBILITY } }, YES },
	    { "HIP", { .v6 = true, .ext = { EXT_HIP } }, YES },
	    { "shim6 behind options", { .v6 = true, .ext = { EXT_DSTOPTS, EXT_SHIM6 } }, YES },
	    { "AH in IPv4", { .proto = 51 }, YES },
	    { "options", { .v6 = true, .ext = { EXT_DSTOPTS } }, NO });
}

TEST(ports)
{
	RUN("dport: 443", { "it", { .dport = 443 }, YES }, { "below", { .dport = 442 }, NO },
	    { "above", { .dport = 444 }, NO }, { "from", { .sport = 443 }, NO },
	    { "tcp", { .dport = 443, .proto = 6 }, YES },
	    { "no ports", { .dport = 443, .proto = 47, .payload = 8 }, NO });
	RUN("dport: [443, 8000-8010]", { "first", { .dport = 8000 }, YES },
	    { "last", { .dport = 8010 }, YES }, { "below", { .dport = 7999 }, NO },
	    { "above", { .dport = 8011 }, NO }, { "single", { .dport = 443 }, YES });
	RUN("dport: 0-65535", { "any", { .dport = 77 }, YES }, { "icmp", { .proto = 1 }, NO });
	RUN("dport: 0", { "0", { .port_zero = true }, YES }, { "1", { .dport = 1 }, NO });
	RUN("dport: 65535", { "it", { .dport = 65535 }, YES }, { "below", { .dport = 65534 }, NO });
	RUN("sport: 53", { "it", { .sport = 53 }, YES }, { "other", { .sport = 54 }, NO },
	    { "to", { .dport = 53 }, NO });
	RUN("sport: 1000-1999, dport: 53", { "both", { .sport = 1999, .dport = 53 }, YES },
	    { "sport off", { .sport = 2000, .dport = 53 }, NO },
	    { "dport off", { .sport = 1999, .dport = 54 }, NO });
}

TEST(vlan)
{
	RUN("vlan: 100", { "it", { .tags = 1, .vlan = { 100 } }, YES },
	    { "with priority", { .tags = 1, .vlan = { 0xe064 } }, YES },
	    { "other", { .tags = 1, .vlan = { 101 } }, NO }, { "none", { 0 }, NO },
	    { "outermost", { .tags = 2, .vlan = { 100, 7 } }, YES },
	    { "inner", { .tags = 2, .vlan = { 7, 100 } }, NO });
	RUN("vlan: [0, 4000-4095]", { "0", { .tags = 1 }, YES }, { "none", { 0 }, NO },
	    { "4095", { .tags = 1, .vlan = { 4095 } }, YES },
	    { "3999", { .tags = 1, .vlan = { 3999 } }, NO });
}

TEST(tcp_flags)
{
	RUN("tcp_flags: 'syn,!ack'", { "syn", { SYN }, YES },
	    { "syn ack", { .proto = 6, .tcp_flags = FRAME_SYN | FRAME_ACK }, NO },
	    { "ack", { .proto = 6 }, NO },
	    { "syn and others", { .proto = 6, .tcp_flags = FRAME_SYN | 0xc0 }, YES },
	    { "udp", { 0 }, NO }, { "that byte in udp", { .payload = 60 }, NO });
	RUN("tcp_flags: '!syn,!ack,!rst,!fin'", { "null", { .proto = 6, .null_flags = true }, YES },
	    { "rst", { .proto = 6, .tcp_flags = FRAME_RST }, NO }, { "udp", { 0 }, NO });
	RUN("tcp_flags: ['fin,psh,urg', rst]",
	    { "xmas", { .proto = 6, .tcp_flags = 1 | FRAME_PSH | FRAME_URG }, YES },
	    { "not all", { .proto = 6, .tcp_flags = FRAME_PSH | FRAME_URG }, NO },
	    { "rst", { .proto = 6, .tcp_flags = FRAME_RST | FRAME_ACK }, YES });
}

/* clang-format off */
#define ICMP(t) .proto = 1, .icmp_type = t
/* clang-format on */
#define ICMP6(t) .v6 = true, .proto = 58, .icmp_type = t

TEST(icmp_type)
{
	RUN("icmp_type: echo-request", { "v4", { ICMP(8) }, YES }, { "v6", { ICMP6(128) }, YES },
	    { "v4 reply", { ICMP(0) }, NO }, { "v6 reply", { ICMP6(129) }, NO },
	    { "the v6 number in v4", { ICMP(128) }, NO },
	    { "the v4 number in v6", { ICMP6(8) }, NO }, { "udp", { 0 }, NO });
	RUN("icmp_type: 8", { "v4", { ICMP(8) }, YES }, { "v6", { ICMP6(8) }, YES },
	    { "another", { ICMP(9) }, NO });
	RUN("icmp_type: echo-request, proto: icmp", { "v4", { ICMP(8) }, YES },
	    { "v6", { ICMP6(128) }, NO });
	RUN("icmp_type: [packet-too-big, 13]", { "too big", { ICMP6(2) }, YES },
	    { "v4 with that number", { ICMP(2) }, NO }, { "timestamp", { ICMP(13) }, YES });
}

/* An IPv6 source that stands for an IPv4 address meets limits on either. */
TEST(mapped)
{
/* clang-format off */
#define MAPPED(a) .src = "::ffff:" a, .dst = "2001:db8::1"
	/* clang-format on */
	RUN("src: 192.0.2.0/24", { "in it", { MAPPED("192.0.2.9") }, YES },
	    { "IPv4", { .src = "192.0.2.9" }, YES }, { "beside it", { MAPPED("192.0.3.9") }, NO },
	    { "other IPv6", { .src = "::fffe:192.0.2.9", .dst = "2001:db8::1" }, NO });
	RUN("src: '::/0'", { "it", { MAPPED("192.0.2.9") }, YES },
	    { "IPv4", { .src = "192.0.2.9" }, NO });
	RUN("src: ['::ffff:192.0.2.0/120', 2001:db8::/32]", { "it", { MAPPED("192.0.2.9") }, YES },
	    { "IPv4", { .src = "192.0.2.9" }, NO }, { "beside it", { MAPPED("192.0.3.9") }, NO });
	RUN("dst: 192.0.2.0/24",
	    { "as destination", { .src = "2001:db8::1", .dst = "::ffff:192.0.2.9" }, NO });
}

TEST(length)
{
	RUN("length: 0-128", { "128", { .payload = 100 }, YES }, { "129", { .payload = 101 }, NO },
	    { "28", { 0 }, YES }, { "128 and a trailer", { .payload = 100, .pad = 200 }, YES },
	    { "129 and a trailer", { .payload = 101, .pad = 200 }, NO },
	    { "128, IPv6", { .v6 = true, .payload = 80, .pad = 9 }, YES },
	    { "129, IPv6", { .v6 = true, .payload = 81 }, NO },
	    { "tags are not in it", { .tags = 3, .payload = 100 }, YES });
	RUN("length: [100, 1500-9000]", { "100", { .payload = 72 }, YES },
	    { "101", { .payload = 73 }, NO }, { "1499", { .payload = 1471 }, NO },
	    { "1500", { .payload = 1472 }, YES }, { "9000", { .payload = 8972 }, YES },
	    { "9001", { .payload = 8973 }, NO });
}

TEST(interface)
{
	RUN("interface: eth1", { "it", { .iface = 1 }, YES }, { "other", { .iface = 0 }, NO });
	RUN("interface: [eth0, eth1]", { "one", { .iface = 1 }, YES },
	    { "other", { .iface = 0 }, YES });
	RUN("interface: eth9", { "not there", { .iface = 0 }, NO });
}

/* All but one condition met: the last initialiser of a field counts. */
#pragma GCC diagnostic ignored "-Woverride-init"
TEST(combined)
{
/* clang-format off */
#define ALL .src = "192.0.2.9", .proto = 6, .dport = 443, .sport = 2000, .tags = 1, \
	.vlan = { 100 }, .tcp_flags = FRAME_SYN, .iface = 1
	/* clang-format on */
	RUN("src: 192.0.2.0/24, dst: 203.0.113.10, proto: tcp, dport: 443, sport: 1024-65535, "
	    "vlan: 100, tcp_flags: syn, length: 30-52, interface: eth1",
	    { "all", { ALL }, YES }, { "but src", { ALL, .src = "192.0.3.9" }, NO },
	    { "but dst", { ALL, .dst = "203.0.113.11" }, NO },
	    { "but proto", { ALL, .proto = 132 }, NO }, { "but dport", { ALL, .dport = 444 }, NO },
	    { "but sport", { ALL, .sport = 1023 }, NO },
	    { "but vlan", { ALL, .vlan = { 101 } }, NO },
	    { "but flags", { ALL, .tcp_flags = FRAME_ACK }, NO },
	    { "but length", { ALL, .payload = 13 }, NO },
	    { "but interface", { ALL, .iface = 0 }, NO });
}

/* A later fragment matches the limits that it could meet, and no others. */
TEST(later_fragments)
{
/* clang-format off */
#define LATER(p) .proto = p, .frag_offset = 9, .payload = 9
	/* clang-format on */
	RUN("dport: 443, proto: tcp", { "tcp", { LATER(6) }, YES }, { "udp", { LATER(17) }, NO },
	    { "first, other port", { .proto = 6, .dport = 80, .frag_more = true }, NO });
	RUN("tcp_flags: syn", { "tcp", { LATER(6) }, YES }, { "udp", { LATER(17) }, NO });
	RUN("icmp_type: echo-request", { "icmp", { LATER(1) }, YES }, { "udp", { LATER(17) }, NO });
	RUN("dport: 443, src: 192.0.2.1", { "src", { LATER(17) }, YES },
	    { "another src", { LATER(17), .src = "192.0.2.2" }, NO });
	RUN("proto: tcp, dport: 443",
	    { "unknown: could be tcp", { LATER(60), .v6 = true, .ext = { EXT_FRAGMENT } }, YES },
	    { "says it is udp: could be tcp",
	      { LATER(17), .v6 = true, .ext = { EXT_FRAGMENT } },
	      YES });
}

/* The largest number of limits, each on a port of its own. */
CASE_TEST(limits_256)
{
	char *yaml, name[32];
	size_t size;
	FILE *out = open_memstream(&yaml, &size);
	u32 i;

	fprintf(out, "limits:\n");
	for (i = 0; i < SL_LIMITS_MAX; i++)
		fprintf(out, "- {name: port-%u, match: {dport: %u}, rate: 3 packets/s}\n", i,
			1000 + i * 7);
	fclose(out);
	case_policy(t, "%s", yaml);
	free(yaml);
	for (i = 0; i < SL_LIMITS_MAX; i++)
		assert_int_equal(case_send(t, &(struct frame_spec){ .dport = 1000 + i * 7 }, 4), 3);
	for (i = 0; i < SL_LIMITS_MAX; i++) {
		snprintf(name, sizeof(name), "port-%u", i);
		assert_int_equal(case_counted(t, name, SL_LV_PASS), 3);
		assert_int_equal(case_counted(t, name, SL_LV_DROP), 1);
		assert_int_equal(case_send(t, &(struct frame_spec){ .dport = 1001 + i * 7 }, 9), 9);
	}
	assert_int_equal(target_count(t, 0, SL_R_NO_MATCH, SL_ACT_PASS), SL_LIMITS_MAX * 9);
	assert_int_equal(target_errors(t), 0);
}

int main(void)
{
	return case_main("classify");
}
