// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_list.c - blocks and exemptions that change one by one: where they stand in the order, what
 * each covers, until when; and random ones against a naive look at all of them. No daemon: only
 * the program, the clock, and dp_list.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/dataplane/dp_list.h"
#include "lib/case.h"
#include "lib/policy_text.h"
#include "lib/rng.h"

#define SECOND SL_NS_PER_SEC
#define NO_END (~0ULL)

static u64 begin_ns(struct target *t)
{
	return target_mono(t) - target_time(t);
}

/* `until`: ns since the reset. */
static struct dp_listed listed_of(struct target *t, const char *src, bool block, u64 until)
{
	struct sl_prefix prefix = prefix_of(src);
	struct dp_listed listed = { .key = dp_list_key(&prefix) };
	struct sl_list_term *term = block ? &listed.listed.block : &listed.listed.exempt;

	term->until_ns = until == NO_END ? until : begin_ns(t) + until;
	return listed;
}

static void put(struct target *t, const char *src, bool block, u64 until)
{
	const struct dp_listed listed = listed_of(t, src, block, until);

	assert_int_equal(dp_list_put(target_dp(t), &listed, 1), 0);
}

static void block(struct target *t, const char *src)
{
	put(t, src, true, NO_END);
}

static void exempt(struct target *t, const char *src)
{
	put(t, src, false, NO_END);
}

static void unlist(struct target *t, const char *src)
{
	struct sl_prefix prefix = prefix_of(src);
	struct sl_list_key key = dp_list_key(&prefix);

	assert_int_equal(dp_list_del(target_dp(t), &key, 1), 0);
}

/* As the daemon builds it, of what is listed. */
static void refilter(struct target *t)
{
	struct sl_list_filter *wanted = calloc(1, sizeof(*wanted));
	struct dp_listed *listed;
	size_t count;

	assert_non_null(wanted);
	assert_int_equal(target_dp(t)->ops->hash_all(target_dp(t), DP_LISTED, &listed, &count), 0);
	for (size_t i = 0; i < count; i++)
		dp_list_filter_add(wanted, &listed[i].key);
	dp_list_refilter(target_dp(t), wanted);
	free(listed);
	free(wanted);
}

static void unlist_all(struct target *t)
{
	struct dp_listed *listed;
	size_t count;

	assert_int_equal(target_dp(t)->ops->hash_all(target_dp(t), DP_LISTED, &listed, &count), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(dp_list_del(target_dp(t), &listed[i].key, 1), 0);
	free(listed);
	refilter(t);
}

/* ------------------------------------------------------------------ what is covered */

CASE_TEST(in_and_just_outside)
{
	static const struct packet_case cases[] = {
		{ "an address", { .src = "192.0.2.66" }, BLOCK },
		{ "the one before", { .src = "192.0.2.65" }, OTHER },
		{ "the one behind", { .src = "192.0.2.67" }, OTHER },
		{ "as destination", { .dst = "192.0.2.66" }, OTHER },
		{ "the first of a /20", { .src = "198.51.96.0" }, BLOCK },
		{ "the last of it", { .src = "198.51.111.255" }, BLOCK },
		{ "before it", { .src = "198.51.95.255" }, OTHER },
		{ "behind it", { .src = "198.51.112.0" }, OTHER },
		{ "the first of a /9", { .src = "100.0.0.0" }, BLOCK },
		{ "the last of it", { .src = "100.127.255.255" }, BLOCK },
		{ "behind it", { .src = "100.128.0.0" }, OTHER },
		{ "before it", { .src = "99.255.255.255" }, OTHER },
		{ "an IPv6 address", { .src = "2001:db8::66" }, BLOCK },
		{ "the one behind", { .src = "2001:db8::67" }, OTHER },
		{ "the last of a /64", { .src = "2001:db8:1:2:ffff:ffff:ffff:ffff" }, BLOCK },
		{ "behind it", { .src = "2001:db8:1:3::" }, OTHER },
		{ "the last of a /97", { .src = "2001:db8:2::7fff:ffff" }, BLOCK },
		{ "behind it", { .src = "2001:db8:2::8000:0" }, OTHER },
		{ "the last of a /29", { .src = "2a00:7:ffff::1" }, BLOCK },
		{ "behind it", { .src = "2a00:8::1" }, OTHER },
		{ "mapped", { .src = "::ffff:192.0.2.66" }, BLOCK },
		{ "mapped, the one behind", { .src = "::ffff:192.0.2.67" }, OTHER },
		{ "malformed", { .src = "192.0.2.66", .udp_length = 3 }, BLOCK },
		{ "later fragment", { .src = "192.0.2.66", .frag_offset = 5 }, BLOCK },
	};
	static const char *const listed[] = {
		"192.0.2.66",	     "198.51.96.0/20",	"100.0.0.0/9", "2001:db8::66",
		"2001:db8:1:2::/64", "2001:db8:2::/97", "2a00::/29",
	};

	case_policy(t, "{}\n");
	for (size_t i = 0; i < COUNT(listed); i++)
		block(t, listed[i]);
	CASES_RUN(t, cases);
	refilter(t);
	CASES_RUN(t, cases);
	unlist_all(t);
}

/* The order: exempt, failsafe unless narrowly blocked, block; with the rule set's own alike. */
CASE_TEST(order)
{
	static const struct packet_case cases[] = {
		{ "exempt in a block", { .src = "192.0.2.66" }, EXEMPT },
		{ "its neighbor", { .src = "192.0.2.67" }, BLOCK },
		{ "exempt in a block of the file", { .src = "198.51.100.1" }, EXEMPT },
		{ "its neighbor", { .src = "198.51.100.2" }, BLOCK },
		{ "blocked, exempt by the file", { .src = "203.0.113.1" }, EXEMPT },
		{ "failsafe, blocked by a /8",
		  { .src = "12.1.1.1", .proto = 6, .dport = 22, .tcp_flags = FRAME_SYN },
		  BLOCK },
		{ "failsafe, blocked by a /7",
		  { .src = "97.1.1.1", .proto = 6, .dport = 22, .tcp_flags = FRAME_SYN },
		  FAILSAFE },
		{ "the same, another port",
		  { .src = "97.1.1.1", .proto = 6, .dport = 23, .tcp_flags = FRAME_SYN },
		  BLOCK },
		{ "failsafe, a /15 of IPv6",
		  { .src = "2400::1",
		    .dst = TARGET_LOCAL_V6,
		    .proto = 6,
		    .dport = 22,
		    .tcp_flags = FRAME_SYN },
		  FAILSAFE },
		{ "failsafe, a /16 of IPv6",
		  { .src = "2600::1",
		    .dst = TARGET_LOCAL_V6,
		    .proto = 6,
		    .dport = 22,
		    .tcp_flags = FRAME_SYN },
		  BLOCK },
		{ "mapped, exempt as IPv4", { .src = "::ffff:192.0.2.66" }, BLOCK },
	};

	case_policy(t, "failsafe: [22/tcp]\nblock: [198.51.100.0/24]\nexempt: [203.0.113.0/24]\n");
	block(t, "192.0.2.0/24");
	exempt(t, "192.0.2.66");
	exempt(t, "198.51.100.1");
	block(t, "203.0.113.1");
	block(t, "12.0.0.0/8");
	block(t, "96.0.0.0/7");
	block(t, "2400::/15");
	block(t, "2600::/16");
	CASES_RUN(t, cases);
	unlist_all(t);
}

/* Another rule set changes nothing; removing an entry leaves the wider one that covers it. */
CASE_TEST(beside_rule_sets)
{
	const struct frame_spec one = { .src = "192.0.2.66" }, other = { .src = "192.0.3.66" };

	case_policy(t, "{}\n");
	block(t, "192.0.2.66");
	block(t, "192.0.2.0/24");
	assert_true(case_meets(t, 0, &one, BLOCK));
	case_policy(t, "limits: [{name: all, rate: 9 packets/s}]\n");
	assert_true(case_meets(t, 0, &one, BLOCK));
	unlist(t, "192.0.2.66");
	assert_true(case_meets(t, 0, &one, BLOCK));
	unlist(t, "192.0.2.0/24");
	unlist(t, "192.0.2.0/24");
	assert_true(case_meets(t, 0, &one, WITHIN));
	assert_true(case_meets(t, 0, &other, WITHIN));
	unlist_all(t);
}

/* ------------------------------------------------------------------ until when */

CASE_TEST(deadlines)
{
	const struct frame_spec one = { .src = "192.0.2.66" }, two = { .src = "192.0.2.67" };
	struct dp_listed later;

	case_policy(t, "{}\n");
	put(t, "192.0.2.66", true, 10 * SECOND);
	put(t, "192.0.2.0/24", false, 3 * SECOND);
	later = listed_of(t, "192.0.2.67", true, 20 * SECOND);
	later.listed.block.from_ns = begin_ns(t) + 12 * SECOND;
	assert_int_equal(dp_list_put(target_dp(t), &later, 1), 0);
	assert_true(case_meets(t, 0, &one, EXEMPT));
	assert_true(case_meets(t, 3 * SECOND - 1, &one, EXEMPT));
	assert_true(case_meets(t, 3 * SECOND, &one, BLOCK));
	assert_true(case_meets(t, 3 * SECOND, &two, OTHER));
	assert_true(case_meets(t, 10 * SECOND - 1, &one, BLOCK));
	assert_true(case_meets(t, 10 * SECOND, &one, OTHER));
	assert_true(case_meets(t, 12 * SECOND - 1, &two, OTHER));
	assert_true(case_meets(t, 12 * SECOND, &two, BLOCK));
	assert_true(case_meets(t, 20 * SECOND, &two, OTHER));
	unlist_all(t);
}

/* ------------------------------------------------------------------ random ones */

#define RANDOM_MAX 200

struct naive {
	struct dp_listed listed[RANDOM_MAX];
	size_t count;
};

static bool covers(const struct sl_list_key *key, u32 family, const u8 *addr)
{
	u64 have[2] = { key->addr.hi, key->addr.lo };

	if (key->family != family)
		return false;
	for (u32 bit = 0; bit < key->len; bit++)
		if ((addr[bit / 8] >> (7 - bit % 8) & 1) != (have[bit / 64] >> (63 - bit % 64) & 1))
			return false;
	return true;
}

static bool naive_has(const struct naive *n, u32 family, const u8 *addr, bool block, u64 now_ns)
{
	for (size_t i = 0; i < n->count; i++) {
		const struct sl_listed *l = &n->listed[i].listed;
		const struct sl_list_term *term = block ? &l->block : &l->exempt;

		if (covers(&n->listed[i].key, family, addr) && now_ns < term->until_ns)
			return true;
	}
	return false;
}

/* Near each other, so that they nest: few values in each group of bits. */
static void random_addr(u32 family, u8 addr[16])
{
	memset(addr, 0, 16);
	addr[0] = family == SL_V4 ? 100 : 0x2a;
	for (u32 i = 1; i < (family == SL_V4 ? 4 : 16); i++)
		addr[i] = rng_below(2) << 7 | rng_below(2);
}

static struct sl_addr left_aligned(const u8 addr[16])
{
	struct sl_addr a = { 0, 0 };

	for (u32 i = 0; i < 8; i++) {
		a.hi = a.hi << 8 | addr[i];
		a.lo = a.lo << 8 | addr[8 + i];
	}
	return a;
}

static void change(struct target *t, struct naive *n)
{
	struct dp_listed listed = { .key.family = rng_below(2) };
	u32 longest = listed.key.family == SL_V4 ? 32 : 128;
	u8 addr[16];
	size_t i;

	if (n->count && (n->count == RANDOM_MAX || rng_below(3) == 0)) {
		i = rng_below(n->count);
		assert_int_equal(dp_list_del(target_dp(t), &n->listed[i].key, 1), 0);
		n->listed[i] = n->listed[--n->count];
		return;
	}
	random_addr(listed.key.family, addr);
	listed.key.len = 6 + rng_below(longest - 5);
	listed.key.addr = sl_addr_mask(left_aligned(addr), listed.key.len);
	if (rng_below(4))
		listed.listed.block.until_ns = begin_ns(t) + rng_below(60 * SECOND);
	else
		listed.listed.exempt.until_ns = NO_END;
	assert_int_equal(dp_list_put(target_dp(t), &listed, 1), 0);
	for (i = 0; i < n->count; i++)
		if (!memcmp(&n->listed[i].key, &listed.key, sizeof(listed.key)))
			break;
	n->listed[i] = listed;
	n->count += i == n->count;
}

CASE_TEST(as_a_naive_look)
{
	struct naive n = { .count = 0 };

	rng_start("list");
	case_policy(t, "{}\n");
	for (u32 round = 0; round < 3000; round++) {
		u32 family = rng_below(2);
		char text[INET6_ADDRSTRLEN];
		struct frame_spec spec = { .src = text };
		u64 at_ns = round * (SECOND / 50), now_ns = begin_ns(t) + at_ns;
		bool blocked, passes;
		u8 addr[16];

		if (round % 2)
			change(t, &n);
		if (round % 500 == 0)
			refilter(t);
		random_addr(family, addr);
		inet_ntop(family == SL_V4 ? AF_INET : AF_INET6, addr, text, sizeof(text));
		passes = naive_has(&n, family, addr, false, now_ns);
		blocked = naive_has(&n, family, addr, true, now_ns);
		if (!case_meets(t, at_ns, &spec, blocked && !passes ? SL_ACT_DROP : SL_ACT_PASS,
				passes	  ? SL_R_EXEMPT
				: blocked ? SL_R_BLOCK
					  : SL_R_NO_MATCH))
			fail_msg("round %u: %s", round, text);
	}
	unlist_all(t);
}

int main(void)
{
	return case_main("list");
}
