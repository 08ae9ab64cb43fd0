// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_malformed.c - frames cut at every byte, sources that are blocked whatever they send,
 * and random frames, which the simulation and the BPF program must judge alike.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/case.h"

#define RULES "limits: [{name: port, match: {dport: 4242}, rate: 1M packets/s}]\n"
#define BLOCKS "block: [198.51.100.0/24, '2001:db8:bad::/48']\n"

/* Whole packets with many headers. `least` is the transport header's length. */
static const struct {
	const char *what;
	struct frame_spec f;
	u32 least;
} whole[] = {
	{ "UDP", { .src = "198.51.100.7", .dport = 4242, .payload = 3 }, 8 },
	{ "options, TCP, tags",
	  { .src = "198.51.100.7",
	    .dport = 4242,
	    .tags = 4,
	    .ad = 5,
	    .ihl = 9,
	    .proto = 6,
	    .doff = 8,
	    .payload = 3 },
	  20 },
	{ "SCTP", { .src = "198.51.100.7", .dport = 4242, .proto = 132 }, 8 },
	{ "UDP-Lite", { .src = "198.51.100.7", .dport = 4242, .proto = 136 }, 8 },
	{ "IPv6, TCP", { .src = "2001:db8:bad::7", .dport = 4242, .proto = 6, .payload = 3 }, 20 },
	{ "IPv6, options of each kind",
	  { .src = "2001:db8:bad::7",
	    .dport = 4242,
	    .tags = 1,
	    .payload = 3,
	    .ext = { EXT_HOPBYHOP, EXT_FRAGMENT, EXT_ROUTING, EXT_DSTOPTS },
	    .ext_units = { 1, 0, 2, 4 } },
	  8 },
	{ "IPv6, first fragment",
	  { .src = "2001:db8:bad::7", .dport = 4242, .ext = { EXT_FRAGMENT }, .frag_more = true },
	  8 },
};

/* The frame ends early: IP says that it is longer. */
CASE_TEST(cut_anywhere)
{
	static struct frame f;
	u32 i, cut, length, policy;
	int bad = 0;

	for (policy = 0; policy < 2; policy++) {
		case_policy(t, RULES "on_parse_error: %s\n", policy ? "drop" : "pass");
		for (i = 0; i < COUNT(whole); i++) {
			case_frame(&whole[i].f, &f);
			length = f.length;
			bad += case_check(t, whole[i].what, 0, &f, WITHIN);
			for (cut = 14; cut < length; cut++) {
				case_frame(&whole[i].f, &f);
				f.length = cut;
				bad += case_check(t, whole[i].what, 0, &f,
						  policy ? SL_ACT_DROP : TRUNCATED);
			}
		}
	}
	assert_int_equal(bad, 0);
}

/* The packet ends early: IP says so too, and the frame goes on with padding. */
CASE_TEST(short_packets)
{
	struct frame_spec spec;
	static struct frame f;
	u32 i, cut, headers;
	int bad = 0;

	case_policy(t, RULES "on_parse_error: drop\n");
	for (i = 0; i < COUNT(whole); i++) {
		case_frame(&whole[i].f, &f);
		/* Of IPv4 the header counts into the total. */
		headers = f.l4 - f.l3 - (strchr(whole[i].f.src, ':') ? 40 : 0);
		for (cut = 1; cut <= headers + whole[i].least; cut++) {
			bool enough = cut == headers + whole[i].least;
			bool header = !strchr(whole[i].f.src, ':') && cut < headers;

			spec = whole[i].f;
			spec.total = cut;
			spec.pad = 64;
			case_frame(&spec, &f);
			bad += case_check(t, whole[i].what, 0, &f,
					  enough ? SL_ACT_PASS : SL_ACT_DROP,
					  enough   ? SL_R_WITHIN
					  : header ? SL_R_MALFORMED
						   : SL_R_TRUNCATED);
		}
	}
	assert_int_equal(bad, 0);
}

/* From where the IP header is whole, cutting is no way around a block. */
CASE_TEST(blocked_cut_anywhere)
{
	static struct frame f;
	u32 i, cut, length, known;
	int bad = 0;

	case_policy(t, RULES BLOCKS "on_parse_error: pass\n");
	for (i = 0; i < COUNT(whole); i++) {
		case_frame(&whole[i].f, &f);
		length = f.length;
		known = f.l3 + (strchr(whole[i].f.src, ':') ? 40 : 20);
		for (cut = 14; cut <= length; cut++) {
			case_frame(&whole[i].f, &f);
			f.length = cut;
			bad += case_check(t, whole[i].what, 0, &f,
					  cut < known ? SL_ACT_PASS : SL_ACT_DROP,
					  cut < known ? SL_R_TRUNCATED : SL_R_BLOCK);
		}
	}
	assert_int_equal(bad, 0);
}

/* clang-format off */
#define BAD4 .src = "198.51.100.7"
#define BAD6 .src = "2001:db8:bad::7"
/* clang-format on */

static const struct packet_case blocked_cases[] = {
	{ "UDP", { BAD4 }, BLOCK },
	{ "UDP behind four tags", { BAD4, .tags = 4 }, BLOCK },
	{ "GRE", { BAD4, .proto = 47 }, BLOCK },
	{ "ESP", { BAD4, .proto = 50 }, BLOCK },
	{ "protocol 0", { BAD4, .proto_zero = true }, BLOCK },
	{ "protocol 255", { BAD4, .proto = 255 }, BLOCK },
	{ "first fragment", { BAD4, .frag_more = true }, BLOCK },
	{ "first fragment, cut", { BAD4, .frag_more = true, .total = 21 }, BLOCK },
	{ "later fragment", { BAD4, .frag_offset = 9, .payload = 9 }, BLOCK },
	{ "empty later fragment", { BAD4, .frag_offset = 0x1fff }, BLOCK },
	{ "doff 0", { BAD4, .proto = 6, .doff = FRAME_ZERO }, BLOCK },
	{ "UDP length 3", { BAD4, .udp_length = 3 }, BLOCK },
	{ "ihl 0", { BAD4, .ihl = FRAME_ZERO }, BLOCK },
	{ "ihl 15 in 20 bytes", { BAD4, .ihl = 15, .total = 20 }, BLOCK },
	{ "total length 0", { BAD4, .total = FRAME_ZERO }, BLOCK },
	{ "total length 0xffff", { BAD4, .total = 0xffff }, BLOCK },
	{ "IPv6 UDP", { BAD6 }, BLOCK },
	{ "IPv6, nine headers", { BAD6, .ext = { 60, 60, 60, 60, 60, 60, 60, 60, 60 } }, BLOCK },
	{ "IPv6, 4 KiB of options", { BAD6, .ext = { 60, 60 }, .ext_units = { 255, 255 } }, BLOCK },
	{ "IPv6, options cut", { BAD6, .ext = { 60 }, .ext_units = { 9 }, .total = 30 }, BLOCK },
	{ "IPv6, no next header", { BAD6, .proto = 59 }, BLOCK },
	{ "IPv6, protocol 253", { BAD6, .proto = 253 }, BLOCK },
	{ "IPv6, later fragment of who knows",
	  { BAD6, .proto = 60, .ext = { EXT_FRAGMENT }, .frag_offset = 9, .payload = 9 },
	  BLOCK },
	{ "IPv6, payload length 0", { BAD6, .total = FRAME_ZERO }, BLOCK },
	{ "IPv6, payload length 0xffff", { BAD6, .total = 0xffff }, BLOCK },
	{ "a jumbo frame", { BAD6, .payload = 8000 }, BLOCK },
	{ "a neighbour of the block", { .src = "198.51.101.7" }, OTHER },
	{ "a neighbour of the block, IPv6", { .src = "2001:db8:bae::7" }, OTHER },
	{ "IPv6 from an address that stands for it",
	  { .src = "::ffff:198.51.100.7", .dst = "2001:db8::1" },
	  BLOCK },
	{ "a fragment from one",
	  { .src = "::ffff:198.51.100.7",
	    .dst = "2001:db8::1",
	    .ext = { EXT_FRAGMENT },
	    .frag_offset = 9,
	    .payload = 9 },
	  BLOCK },
	{ "a neighbour of it", { .src = "::ffff:198.51.101.7", .dst = "2001:db8::1" }, OTHER },
	{ "of a prefix before it", { .src = "::fffe:198.51.100.7", .dst = "2001:db8::1" }, OTHER },
	{ "of a prefix behind it", { .src = "::1:0:198.51.100.7", .dst = "2001:db8::1" }, OTHER },
	{ "to one", { .src = "2001:db8::1", .dst = "::ffff:198.51.100.7" }, OTHER },
	{ "to the block", { .dst = "198.51.100.7" }, OTHER },
};

TEST(blocked_whatever_it_sends)
{
	CASES_RUN_EVERYWHERE(case_target(state), RULES BLOCKS, blocked_cases);
}

/* Where fragments are not counted, a block is still one. */
TEST(blocked_where_fragments_pass)
{
	CASES_RUN_EVERYWHERE(case_target(state), RULES BLOCKS "fragments: pass\n", blocked_cases);
}

/* ------------------------------------------------------------------ limits */

/* clang-format off */
#define SYN .proto = 6, .tcp_flags = FRAME_SYN
/* clang-format on */
#define V6 .v6 = true
#define NINE                                                                                       \
	{                                                                                          \
		60, 60, 60, 60, 60, 60, 60, 60, 60                                                 \
	}
/* clang-format off */
#define OTHER6 .src = "2001:db8:1::1", .dst = "2001:db8:ffff::10"
/* clang-format on */

/* A packet that hides its ports meets the limits that it could belong to; nothing is charged
 * twice. */
CASE_TEST(unread_meets_limits)
{
	static const struct packet_case cases[] = {
		{ "uses it up", { SYN, .dport = 80 }, WITHIN },
		{ "another port", { SYN, .dport = 81 }, OTHER },
		{ "TCP without ports", { SYN, .total = 23 }, OVER },
		{ "TCP without flags", { SYN, .dport = 81, .total = 28 }, OVER },
		{ "doff 0", { SYN, .dport = 81, .doff = FRAME_ZERO }, OVER },
		{ "a first fragment without flags",
		  { SYN, .dport = 81, .frag_more = true, .total = 28 },
		  OVER },
		{ "UDP without ports: never TCP", { .total = 23 }, TRUNCATED },
		{ "another source", { SYN, .src = "192.0.2.2", .total = 23 }, TRUNCATED },
		{ "the same again", { SYN, .src = "192.0.2.2", .total = 23 }, OVER },
		{ "and whole", { SYN, .src = "192.0.2.2", .dport = 80 }, OVER },
		{ "IPv6, uses it up", { V6, SYN, .dport = 80 }, WITHIN },
		{ "nine headers", { V6, SYN, .dport = 81, .ext = NINE }, OVER },
		{ "nine headers before who knows", { V6, .proto = 99, .ext = NINE }, OVER },
		{ "headers beyond 4096 bytes",
		  { V6, SYN, .dport = 81, .ext = { 60, 60 }, .ext_units = { 255, 255 } },
		  OVER },
		{ "UDP beyond 4096 bytes: never TCP",
		  { V6, .ext = { 60, 60 }, .ext_units = { 255, 255 } },
		  TOO_DEEP },
		{ "options whose length lies",
		  { V6, .ext = { 60 }, .ext_units = { 9 }, .total = 30 },
		  OVER },
		{ "a first fragment of headers alone",
		  { V6, .ext = { EXT_FRAGMENT, 60 }, .ext_units = { 0, 9 }, .total = 16,
		    .frag_more = true },
		  OVER },
		{ "shim6: a protocol, which is not TCP", { V6, .ext = { EXT_SHIM6 } }, OTHER },
		{ "another source, nine headers", { OTHER6, .ext = NINE }, TOO_DEEP },
		{ "the same again", { OTHER6, .ext = NINE }, OVER },
	};

	case_policy(t, "limits:\n"
		       "- {name: web, match: {proto: tcp, dport: 80, tcp_flags: 'syn,!ack'},"
		       " rate: 1 connections/h}\n"
		       "- {name: far, match: {dst: [203.0.113.11, '2001:db8:ffff::11'], dport: 80},"
		       " rate: 1 packets/h}\n");
	CASES_RUN(t, cases);
	assert_int_equal(case_counted(t, "web", SL_LV_PASS), 4);
	assert_int_equal(case_counted(t, "far", SL_LV_PASS) + case_counted(t, "far", SL_LV_DROP),
			 0);
}

#define BEHIND(...) .v6 = true, .ext = { __VA_ARGS__, EXT_FRAGMENT }
/* clang-format off */
#define HIDDEN6(what, ...)                                                              \
	{ what " behind options", { BEHIND(60), __VA_ARGS__ }, OVER },                  \
	{ what " behind routing", { BEHIND(EXT_ROUTING), __VA_ARGS__ }, OVER },         \
	{ what " behind both", { BEHIND(EXT_HOPBYHOP, 60), __VA_ARGS__ }, OVER },       \
	{ what " behind AH", { BEHIND(EXT_AH), __VA_ARGS__ }, OVER },                   \
	{ what " behind AH, first", { BEHIND(EXT_AH), __VA_ARGS__, .frag_more = true }, OVER }
/* clang-format on */

/* Contents behind a misplaced fragment header are hidden: no pass applies to them. */
CASE_TEST(hidden_passes_nothing)
{
	const struct sl_session session =
		target_session("2001:db8::1", 40000, TARGET_LOCAL_V6, 4242);
	static const struct packet_case cases[] = {
		{ "uses it up", { V6 }, WITHIN },
		{ "the pass", { V6, .dport = 53 }, SL_ACT_PASS, SL_R_MATCH },
		HIDDEN6("the pass", .dport = 53),
		{ "failsafe", { V6, SYN, .dport = 22 }, FAILSAFE },
		HIDDEN6("failsafe", SYN, .dport = 22),
		{ "a session", { V6, .proto = 6, .dport = 4242 }, SL_ACT_PASS, SL_R_SESSION },
		HIDDEN6("a session", .proto = 6, .dport = 4242),
		{ "neighbor discovery", { V6, .proto = 58, .icmp_type = 135, .hop_limit = 255 }, SL_ACT_PASS,
		  SL_R_ND },
		HIDDEN6("neighbor discovery", .proto = 58, .icmp_type = 135, .hop_limit = 255),
		{ "path MTU", { V6, .proto = 58, .icmp_type = 2, .payload = 48 }, SL_ACT_PASS, SL_R_PATH_MTU },
		HIDDEN6("path MTU", .proto = 58, .icmp_type = 2, .payload = 48),
		{ "another source", { OTHER6, .ext = { 60, EXT_FRAGMENT } }, TOO_DEEP },
	}, wide[] = {
		{ "failsafe", { V6, SYN, .dport = 22 }, FAILSAFE },
		{ "hidden", { BEHIND(60), SYN, .dport = 22 }, BLOCK },
	};

	target_sessions(t, &session, 1);
	case_policy(t, "failsafe: [22/tcp]\n"
		       "limits:\n"
		       "- {name: open, match: {proto: udp, dport: 53}, action: pass}\n"
		       "- {name: each, rate: 1 packets/h}\n");
	CASES_RUN(t, cases);
	case_policy(t, "failsafe: [22/tcp]\nblock: ['::/0']\n");
	CASES_RUN(t, wide);
}

/* A payload length of 0: Linux goes by the frame, the key by neither. */
CASE_TEST(length_is_not_known)
{
#define ZERO_LENGTH V6, .ext = { EXT_HOPBYHOP }, .total = FRAME_ZERO
	static const struct packet_case cases[] = {
		{ "the pass", { V6 }, SL_ACT_PASS, SL_R_MATCH },
		{ "uses it up", { V6, .payload = 100 }, WITHIN },
		{ "with a trailer", { ZERO_LENGTH, .payload = 100, .pad = 300 }, OVER },
		{ "as short as the pass", { ZERO_LENGTH }, OVER },
		{ "longer, and said so", { V6, .payload = 300 }, OTHER },
	};

	case_policy(t, "limits:\n"
		       "- {name: tiny, match: {length: 0-64}, action: pass}\n"
		       "- {name: short, match: {length: 65-200}, rate: 1 packets/h}\n");
	CASES_RUN(t, cases);
}

/* At most 16 limits are charged: a packet that could belong to more is dropped. */
CASE_TEST(unread_meets_many_limits)
{
	static const struct packet_case cases[] = {
		{ "one of them", { .dport = 100 }, WITHIN },
		{ "all of them", { .total = 23 }, SL_ACT_DROP, SL_R_TOO_MANY_LIMITS },
		{ "a fragment of which the first was not seen",
		  { .frag_offset = 9, .payload = 9 },
		  SL_ACT_DROP,
		  SL_R_TOO_MANY_LIMITS },
		{ "TCP: none of them", { .proto = 6, .total = 23 }, TRUNCATED },
	};
	char rules[4096] = "limits:\n";
	size_t used = strlen(rules);
	u32 i;

	for (i = 0; i < 17; i++)
		used += (size_t)snprintf(rules + used, sizeof(rules) - used,
					 "- {name: l%u, match: "
					 "{proto: udp, dport: %u}, rate: 9 packets/s}\n",
					 i, 100 + i);
	case_policy(t, "%s", rules);
	CASES_RUN(t, cases);
}

/* ------------------------------------------------------------------ random frames */

#define RANDOM_FRAMES 20000

/* Rates low enough that a few thousand frames meet every verdict; a table that never fills. */
static const char random_rules[] =
	"on_parse_error: drop\n"
	"block: [198.51.100.0/25, '2001:db8:bad::/48']\n"
	"exempt: [198.51.100.0/28]\n"
	"failsafe: [22/tcp, 53/udp]\n"
	"failsafe_rate: 2 connections/s\n"
	"essential: {rate: 2 packets/s}\n"
	"limits:\n"
	"- {name: web, match: {proto: tcp, dport: [80, 4000-4300]}, rate: 30 packets/s}\n"
	"- {name: syn, match: {tcp_flags: 'syn,!ack'}, per: [], rate: 20 connections/s}\n"
	"- {name: softly, match: {proto: sctp}, rate: 5 packets/s, throttle: {soft: 50%}}\n"
	"- {name: tagged, match: {vlan: 0-100}, per: [vlan], rate: 40 packets/s, action: tag,\n"
	"   tag: {dscp: cs1, mark: 7}}\n"
	"- {name: ping, match: {icmp_type: echo-request}, rate: 5 packets/s, throttle: {soft: 50%}}\n"
	"- {name: long, match: {length: 120-9000}, per: [proto], rate: 9000 bytes/s}\n"
	"- {name: watch, match: {src: [192.0.2.0/24, '2001:db8::/40']}, mode: shadow,\n"
	"   per: [source, dport], rate: 8 packets/s}\n"
	"- {name: minute, match: {dst: 203.0.113.0/24}, accounting: exact, algorithm: fixed-window, rate: 300 packets/m,\n"
	"   ban: {after: 200 drops/2s, for: 1s, max: 2s, spoofable: yes}}\n";

static u64 next_random(u64 *x)
{
	*x += 0x9e3779b97f4a7c15ULL;
	return (*x ^ *x >> 29) * 0xbf58476d1ce4e5b9ULL >> 16;
}

/* Returns whether it is damaged. */
static bool random_frame(u64 *x, struct frame *ret)
{
	static const char *const sources[] = {
		"192.0.2.1",	  "192.0.2.2",	 "198.51.100.3",    "198.51.100.99",
		"198.51.100.200", "2001:db8::1", "2001:db8:bad::1", "2001:db8:0:1::1",
	};
	static const u16 kinds[] = { EXT_HOPBYHOP, EXT_ROUTING, EXT_FRAGMENT,
				     EXT_AH,	   EXT_DSTOPTS, EXT_MOBILITY };
	static const u16 ports[] = { 80, 22, 53, 4242 };
	static const u8 protos[] = { 6, 6, 17, 1, 58, 132, 47 };
	struct frame_spec s = {
		.src = sources[next_random(x) % COUNT(sources)],
		.proto = protos[next_random(x) % COUNT(protos)],
		.dport = ports[next_random(x) % COUNT(ports)],
		.tcp_flags = next_random(x),
		.icmp_type = 128 + next_random(x) % 10,
		.hop_limit = next_random(x) % 2 ? 255 : 64,
		.payload = next_random(x) % 200,
		.tags = next_random(x) % 8 ? 0 : next_random(x) % 6,
		.ethertype = next_random(x) % 32 ? 0 : 0x0806,
		.tos = next_random(x),
		.ihl = 5 + (next_random(x) % 4 ? 0 : next_random(x) % 11),
	};
	u32 i, n = next_random(x) % 4 ? 0 : next_random(x) % 10;
	bool damaged;

	for (i = 0; i < n; i++)
		s.ext[i] = kinds[next_random(x) % COUNT(kinds)];
	if (next_random(x) % 8 == 0)
		s.frag_offset = next_random(x) % 4;
	s.frag_more = next_random(x) % 16 == 0;
	case_frame(&s, ret);
	/* Half of them are then damaged: bits of the headers, or the end. */
	damaged = next_random(x) % 2;
	for (n = damaged ? next_random(x) % 4 : 0; n; n--)
		ret->data[12 + next_random(x) % 72] ^= 1 << next_random(x) % 8;
	if (damaged && next_random(x) % 4 == 0)
		ret->length = 14 + next_random(x) % (ret->length - 13);
	return damaged;
}

/* The same frames at the same times; needs both, so it runs once, with the BPF program. */
TEST(random_frames_agree)
{
	struct target *t = case_target(state), *sim = NULL;
	const struct sl_session session = target_session("192.0.2.2", 40000, TARGET_LOCAL_V4, 4242);
	static struct frame f, same;
	u64 x, seen[SL_R_COUNT] = { 0 };
	struct target_verdict a, b;
	struct sl_err err;
	bool damaged;
	u32 i;

	if (!strcmp(target_name(t), "sim"))
		return;
	x = case_seed();
	assert_int_equal(target_open(TARGET_SIM, &sim, &err), 0);
	target_sessions(t, &session, 1);
	target_sessions(sim, &session, 1);
	case_policy(t, "%s", random_rules);
	case_policy(sim, "%s", random_rules);
	for (i = 0; i < RANDOM_FRAMES; i++) {
		damaged = random_frame(&x, &f);
		same = f;
		target_set_time(t, i * 500000ULL);
		target_set_time(sim, i * 500000ULL);
		target_set_linear(t,
				  damaged || next_random(&x) % 2 ? 0 : 14 + next_random(&x) % 80);
		assert_int_equal(target_run(sim, 0, 0, &same, &a), 0);
		if (target_run(t, 0, 0, &f, &b) == -EOPNOTSUPP) {
			target_set_linear(t, 0);
			assert_int_equal(target_run(t, 0, 0, &f, &b), 0);
		}
		if (memcmp(&a, &b, sizeof(a)) || memcmp(f.data, same.data, f.length))
			fail_msg("frame %u: sim says %s %s, bpf %s %s", i, action_name(a.action),
				 reason_name(a.reason), action_name(b.action),
				 reason_name(b.reason));
		seen[a.reason]++;
	}
	target_close(sim);
	/* Frames of a single kind would prove little. */
	for (i = SL_R_NO_MATCH; i <= SL_R_BAN; i++)
		if (!seen[i])
			fail_msg("no frame met %s", reason_name(i));
	assert_true(seen[SL_R_OVER] > 1000 && seen[SL_R_WITHIN] > 1000 && seen[SL_R_BLOCK] > 500 &&
		    seen[SL_R_TRUNCATED] > 500 && seen[SL_R_MALFORMED] > 50 && seen[SL_R_ND]);
}

int main(void)
{
	return case_main("malformed");
}
