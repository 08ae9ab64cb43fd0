// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_ban.c - step 6 of the order: which source is banned, by which drop, for how long, and which
 * never is. No daemon: only the program and the clock.
 */
#include "ban_rig.h"

/* The entry of a source, or the test fails. */
static struct sl_ban_state ban_of_prefix(struct target *t, const char *prefix)
{
	struct sl_ban_state state = { 0 };
	struct sl_prefix p;
	const char *reason;

	assert_int_equal(sl_prefix_parse(prefix, &p, &reason), 0);
	assert_int_equal(
		target_dp(t)->ops->hash_get(
			target_dp(t), DP_BANS,
			&(struct sl_ban_key){ .addr = p.addr, .family = p.family, .len = p.len },
			&state),
		0);
	return state;
}

/* ------------------------------------------------------------------ which drop bans */

/*
 * A later fragment of a datagram whose first was not seen meets a limit on ACKs, but proves no
 * connection: it is dropped, and counts towards a ban only where spoofed traffic may.
 */
CASE_TEST(hidden_fragments)
{
	static const struct frame_spec ack = { BAD, .proto = 6, .dport = 80, .tcp_flags = 0x10 };
	static const struct frame_spec later = { BAD, .proto = 6, .frag_offset = 5, .frag_id = 77 };

	for (u32 spoofable = 0; spoofable < 2; spoofable++) {
		target_reset(t);
		case_policy(t,
			    "limits: [{name: acks, match: {proto: tcp, tcp_flags: ack}, "
			    "rate: 1 packets/h, ban: {after: 4 drops/10s, for: 60s%s}}]\n",
			    spoofable ? ", spoofable: yes" : "");
		assert_int_equal(case_send(t, &ack, 1), 1);
		assert_int_equal(case_send(t, &later, 20), 0);
		assert_int_equal(bans_there_are(t), spoofable);
	}
}

/* `after` drops do not ban, one more does; then everything of that source is dropped, and of no
 * other. */
CASE_TEST(one_drop_more_bans)
{
	static const char *const accounting[] = { "percpu", "exact" };
	static const struct packet_case banned[] = {
		{ "to the limit", { BAD, .dport = 80 }, BAN },
		{ "to another port", { BAD, .dport = 9 }, BAN },
		{ "TCP", { BAD, .proto = 6, .dport = 443 }, BAN },
		{ "first fragment", { BAD, .frag_more = true }, BAN },
		{ "later fragment", { BAD, .frag_offset = 5 }, BAN },
		{ "malformed", { BAD, .udp_length = 3 }, BAN },
		{ "truncated", { BAD, .total = 22 }, BAN },
		{ "frag-needed", { BAD, .proto = 1, .icmp_type = 3, .icmp_code = 4 }, BAN },
		{ "ARP", { BAD, .ethertype = 0x0806 }, SL_ACT_PASS, SL_R_ARP },
		{ "the address before", { .src = "192.0.2.65", .dport = 80 }, WITHIN },
		{ "the address behind", { .src = "192.0.2.67", .dport = 80 }, WITHIN },
		{ "as destination", { .dst = "192.0.2.66" }, OTHER },
		{ "IPv6 of the same bits", { .src = "c000:242::" }, OTHER },
		{ "IPv6 that stands for it", { .src = "::ffff:192.0.2.66" }, BAN },
		{ "and for its neighbor", { .src = "::ffff:192.0.2.67" }, OTHER },
	};

	for (u32 i = 0; i < COUNT(accounting); i++) {
		target_reset(t);
		case_policy(t, "limits: [{" LIMIT BANS ", accounting: %s}]\n", accounting[i]);
		assert_int_equal(case_send(t, &bad, 1), 1);
		assert_int_equal(case_send(t, &bad, 4), 0);
		assert_true(is_free_at(t, 0));
		assert_int_equal(bans_there_are(t), 0);
		assert_true(case_meets(t, 0, &bad, OVER));
		assert_int_equal(bans_there_are(t), 1);
		CASES_RUN(t, banned);
		assert_int_equal(case_counted(t, "web", SL_LV_DROP), 5);
		assert_int_equal(ban_of_prefix(t, "192.0.2.66").drops, 9);
	}
}

/* The drops are counted one by one, on whatever CPUs they are. */
CASE_TEST(drops_on_two_cpus)
{
	struct target_verdict verdict;
	struct frame frame;

	case_policy(t, "limits: [{name: web, match: {dport: 80}, rate: 100 packets/s, burst: 400, "
		       "ban: {after: 300 drops/5s, for: 60s, spoofable: yes}}]\n");
	for (u32 ms = 0; ms < 2000 && !bans_there_are(t); ms++) {
		target_set_time(t, 7 * SECOND + ms * SECOND / 1000);
		frame_build(&bad, &frame);
		assert_int_equal(target_run(t, ms / 20 % target_cpus(t), 0, &frame, &verdict), 0);
	}
	assert_int_equal(case_counted(t, "web", SL_LV_DROP), 301);
}

/* Drops that are slower than after/within never ban. */
CASE_TEST(slow_drops)
{
	case_policy(t, RULES);
	for (u32 i = 0; i < 200; i++)
		assert_true(case_meets(t, i * 3 * SECOND, &bad, i ? SL_ACT_DROP : SL_ACT_PASS,
				       i ? SL_R_OVER : SL_R_WITHIN));
	assert_int_equal(bans_there_are(t), 0);
	/* Twice as fast they do, within two windows. */
	for (u32 i = 0; i < 14; i++) {
		target_set_time(t, 600 * SECOND + i * 3 * SECOND / 2);
		assert_int_equal(case_send(t, &bad, 1), 0);
	}
	assert_int_equal(bans_there_are(t), 1);
}

/* A limit in shadow drops nothing; one that tags does not either. */
CASE_TEST(only_drops_ban)
{
	case_policy(t, "limits: [{" LIMIT BANS ", mode: shadow}]\n");
	assert_int_equal(case_send(t, &bad, 50), 50);
	assert_int_equal(bans_there_are(t), 0);
	assert_true(is_free_at(t, 0));
}

/* Of several limits that match, the drops of the one with the ban count, and only those. */
CASE_TEST(of_several_limits)
{
	case_policy(t, "limits:\n- {name: first, match: {dport: 80}, rate: 1 packets/h, burst: 3}\n"
		       "- {" LIMIT "burst: 5, " BANS "}\n");
	assert_int_equal(case_send(t, &bad, 100), 3);
	assert_int_equal(bans_there_are(t), 0);
	target_reset(t);
	case_policy(t, "limits:\n- {name: first, match: {dport: 80}, rate: 1 packets/h, burst: 9}\n"
		       "- {" LIMIT "burst: 5, " BANS "}\n");
	assert_int_equal(case_send(t, &bad, 100), 5);
	assert_int_equal(bans_there_are(t), 1);
	assert_int_equal(case_counted(t, "web", SL_LV_DROP), 5);
}

/* ------------------------------------------------------------------ how long */

/* 60, 120, then 200 s, if the source goes on at once; each to the nanosecond. */
CASE_TEST(doubles_up_to_max)
{
	static const u64 seconds[] = { 60, 120, 200, 200, 200 };
	u64 at = 5 * SECOND;

	case_policy(t, RULES);
	for (u32 i = 0; i < COUNT(seconds); i++) {
		get_banned(t, at);
		at += seconds[i] * SECOND;
		assert_true(is_banned_at(t, at - 1));
		assert_true(is_free_at(t, at));
	}
	assert_int_equal(bans_there_are(t), 1);
	assert_int_equal(target_errors(t), 0);
}

/* One step down for each length of the last ban, counted from its end. */
CASE_TEST(decays)
{
	static const struct {
		u64 behaved, length; /* seconds since the last one's end; of the next */
	} steps[] = {
		{ 0, 60 },    { 59, 120 },     { 119, 200 },
		{ 199, 200 }, { 200, 200 }, /* two up, one down, at most max: level 2 again */
		{ 400, 120 }, { 120, 120 },    { 240, 60 },
		{ 60, 60 },   { 1000000, 60 },
	};
	u64 at = 5 * SECOND;

	case_policy(t, RULES);
	for (u32 i = 0; i < COUNT(steps); i++) {
		at += steps[i].behaved * SECOND;
		get_banned(t, at);
		at += steps[i].length * SECOND;
		if (!is_banned_at(t, at - 1) || !is_free_at(t, at))
			fail_msg("%s: step %u", target_name(t), i);
	}
}

/* A ban is not made longer by the packets that it drops. */
CASE_TEST(drops_of_a_ban_do_not_count)
{
	case_policy(t, RULES);
	get_banned(t, 0);
	target_set_time(t, 59 * SECOND);
	assert_int_equal(case_send(t, &bad, 100), 0);
	assert_true(is_free_at(t, 60 * SECOND));
	assert_int_equal(case_counted(t, "web", SL_LV_DROP), 5);
	/* Four drops were allowed again. */
	assert_int_equal(case_send(t, &bad, 4), 0);
	assert_true(is_free_at(t, 60 * SECOND));
}

/* ------------------------------------------------------------------ whom */

CASE_TEST(ipv6_by_64)
{
	const struct frame_spec one = { .src = "2001:db8:0:1::1", .dport = 80 };
	static const struct packet_case cases[] = {
		{ "itself", { .src = "2001:db8:0:1::1" }, BAN },
		{ "of its /64", { .src = "2001:db8:0:1:ffff::9", .dport = 80 }, BAN },
		{ "the /64 before", { .src = "2001:db8:0:0:ffff::9", .dport = 80 }, WITHIN },
		{ "the /64 behind", { .src = "2001:db8:0:2::1", .dport = 80 }, WITHIN },
	};

	case_policy(t, RULES);
	case_send(t, &one, TO_BAN);
	CASES_RUN(t, cases);
}

/* One packet to port 80 (or the one asked for) from each of `count` /64s of 2001:db8:SITE::/48. */
static u32 rotate(struct target *t, u32 site, u32 from, u32 count, u16 dport)
{
	struct frame_spec s = { .dport = dport };
	char src[64];
	u32 passed = 0;

	s.src = src;
	for (u32 i = 0; i < count; i++) {
		snprintf(src, sizeof(src), "2001:db8:%x:%x::1", site, from + i);
		passed += case_send(t, &s, 1);
	}
	return passed;
}

/*
 * A prefix hierarchy of /64 and /48, of 1 and 4 packets: rotating inside a /48 gets the /48 banned,
 * flooding from one /64 only the /64; drops at one step are not added to those at the other.
 */
CASE_TEST(prefix_hierarchy)
{
	const struct frame_spec one = { .src = "2001:db8:3:1::1", .dport = 80 };

	case_policy(t, "limits: [{" LIMIT
		       "prefix: {ipv6: [64, 48]}, prefix_scale: {ipv6: [1, 4]}, " BANS "}]\n");
	assert_int_equal(rotate(t, 1, 1, 8, 80), 4);
	assert_int_equal(rotate(t, 1, 1, 50, 9), 50);
	assert_int_equal(rotate(t, 1, 9, 1, 80), 0);
	assert_int_equal(rotate(t, 1, 1, 50, 9), 0);
	assert_int_equal(rotate(t, 2, 1, 50, 9), 50);
	assert_int_equal(rotate(t, 0, 1, 50, 9), 50);
	assert_int_equal(ban_of_prefix(t, "2001:db8:1::/48").drops, 50);
	assert_int_equal(bans_there_are(t), 1);

	assert_int_equal(case_send(t, &one, TO_BAN), 1);
	assert_int_equal(rotate(t, 3, 1, 1, 9), 0);
	assert_int_equal(rotate(t, 3, 2, 50, 9), 50);
	assert_int_equal(rotate(t, 3, 2, 3, 80), 3);
	assert_int_equal(ban_of_prefix(t, "2001:db8:3:1::/64").level, 0);

	/* Three drops of a /64, four of its /48: nothing is banned. */
	assert_int_equal(rotate(t, 4, 1, 1, 80), 1);
	assert_int_equal(rotate(t, 4, 1, 1, 80) + rotate(t, 4, 1, 1, 80) + rotate(t, 4, 1, 1, 80),
			 0);
	assert_int_equal(rotate(t, 4, 2, 7, 80), 3);
	assert_int_equal(rotate(t, 4, 1, 50, 9), 50);
	assert_int_equal(bans_there_are(t), 2);
}

/* Every way of the table taken by offenders of the limit and records of others, but for one in each
 * set of `key`. */
static void fill_table(struct target *t, const struct sl_limit *limit, const u64 *key, u32 keys)
{
	struct sl_way record = { 0 };
	u64 now_ns = target_mono(t), bucket_state = 0;
	u32 sets = target_dp(t)->table_sets, i, which;
	struct sl_set *table = target_dp(t)->table;

	for (i = 0; i < SL_PRINTS; i++)
		record = sl_record_add(record, SL_PRINT_MAX - i, 100, now_ns);
	bucket_state =
		sl_step(0, &limit->params, (struct sl_now){ now_ns, now_ns }, 1).bucket_state;
	for (i = 0; i < sets * SL_WAYS; i++)
		table[i / SL_WAYS].way[i % SL_WAYS] =
			i % SL_WAYS == SL_WAYS - 1
				? (struct sl_way){ sl_key(limit->slot, 2 * i) | SL_KEY_REFUSED,
						   bucket_state }
				: record;
	for (i = 0; i < keys; i++)
		for (which = 0; which < 2; which++)
			table[sl_table_set(key[i], which, sets)].way[0] = (struct sl_way){ 0 };
}

/* Whether a key has no way of its own where the table was filled but for those of `other`. */
static bool lives_apart(u64 key, const u64 *other, u32 others, u32 sets)
{
	for (u32 i = 0; i < others * 4; i++)
		if (sl_table_set(key, i & 1, sets) == sl_table_set(other[i / 4], i >> 1 & 1, sets))
			return false;
	return true;
}

/*
 * on_full: prefix: a source without a bucket of its own is charged with its /24. Drops of the /24
 * are not counted as the source's: it may have sent its first packet.
 */
CASE_TEST(on_full_prefix)
{
	struct sl_prefix src = { .family = SL_V4, .len = 32 };
	const struct sl_limit *head, *trigger;
	const struct sl_rules *rules;
	struct frame_spec s = { .dport = 80 };
	char text[32];
	u64 key, room[2];
	u32 sets, i = 0;

	case_policy(t, "limits: [{" LIMIT "on_full: prefix, " BANS "}]\n");
	rules = target_dp(t)->ops->rules(target_dp(t));
	head = &rules->limits[0];
	trigger = &rules->limits[rules->ban[head->ban].trigger];
	sets = target_dp(t)->table_sets;
	do {
		src.addr.hi = (0xc0000200ULL + ++i) << 32;
		key = dp_source_key(rules, head, &src);
		room[0] = dp_source_key(rules, &rules->limits[head->full], &src);
		room[1] = sl_ban_trigger_key(rules, trigger, src.addr, SL_V4, 32);
	} while (!lives_apart(key, room, 2, sets));
	fill_table(t, head, room, 2);
	snprintf(text, sizeof(text), "192.0.2.%u", i);
	s.src = text;
	assert_int_equal(case_send(t, &s, 20), 1);
	assert_int_equal(case_counted(t, "web", SL_LV_DROP), 19);
	assert_int_equal(bans_there_are(t), 0);
	assert_int_equal(dp_bucket_state(target_dp(t), room[1]), 0);
	/* With a bucket of its own they are counted. */
	fill_table(t, head, (u64[]){ key, room[1] }, 2);
	case_send(t, &s, TO_BAN);
	assert_int_equal(bans_there_are(t), 1);
}

/* A soft limit bans for packets that it drops, not for those in its soft part. */
CASE_TEST(soft)
{
	case_policy(t, "limits: [{" LIMIT "burst: 10, throttle: {soft: 50%%}, " BANS "}]\n");
	assert_int_equal(case_send(t, &bad, 15 + 4), 15);
	assert_int_equal(case_counted(t, "web", SL_LV_SOFT), 5);
	assert_true(is_free_at(t, 0));
	assert_int_equal(case_send(t, &bad, 1), 0);
	assert_true(is_banned_at(t, 0));
}

/* Exempt sources, by the order; failsafe ports of a banned one, by the order. */
CASE_TEST(exempt_and_failsafe)
{
	const struct frame_spec exempt = { .src = "10.1.2.3", .dport = 80 };
	static const struct packet_case cases[] = {
		{ "banned", { BAD }, BAN },
		{ "its ssh", { BAD, .proto = 6, .dport = 22 }, FAILSAFE },
		{ "ssh to another host",
		  { BAD, .proto = 6, .dport = 22, .dst = "203.0.113.9" },
		  BAN },
	};

	case_policy(t, "failsafe: [22/tcp]\nexempt: [10.0.0.0/8]\n" RULES);
	assert_int_equal(case_send(t, &exempt, 100), 100);
	assert_int_equal(bans_there_are(t), 0);
	get_banned(t, 0);
	CASES_RUN(t, cases);
}

/* A session's packets pass, those beside it of the same address do not. */
CASE_TEST(session)
{
	const struct sl_session admin = target_session("192.0.2.66", 50000, TARGET_LOCAL_V4, 22);
	static const struct packet_case cases[] = {
		{ "session",
		  { BAD, .proto = 6, .sport = 50000, .dport = 22 },
		  SL_ACT_PASS,
		  SL_R_SESSION },
		{ "beside it", { BAD, .proto = 6, .sport = 50001, .dport = 22 }, BAN },
	};

	target_sessions(t, &admin, 1);
	case_policy(t, RULES);
	get_banned(t, 0);
	CASES_RUN(t, cases);
}

/* A gateway is limited and never banned: by itself, or with its neighbours. */
CASE_TEST(never_banned)
{
	const struct frame_spec gateway = { .src = "192.0.2.1", .dport = 80 };
	const struct frame_spec gateway_other = { .src = "192.0.2.1" };
	const struct frame_spec router6 = { .src = "2001:db8::1", .dport = 80 };
	struct sl_prefix no_ban[2];
	const char *reason;

	assert_int_equal(sl_prefix_parse("192.0.2.1", &no_ban[0], &reason), 0);
	assert_int_equal(sl_prefix_parse("2001:db8::1", &no_ban[1], &reason), 0);
	target_no_ban(t, no_ban, 2);
	case_policy(t, RULES);
	assert_int_equal(case_send(t, &gateway, 100), 1);
	assert_int_equal(case_send(t, &router6, 100), 1);
	assert_int_equal(bans_there_are(t), 0);
	assert_true(case_meets(t, 0, &gateway_other, OTHER));

	case_policy(t, "limits: [{" LIMIT "prefix: {ipv4: 24}, " BANS "}]\n");
	assert_int_equal(case_send(t, &gateway, 100), 1);
	assert_int_equal(bans_there_are(t), 0);
	assert_int_equal(case_send(t, &bad, 5), 0);
	assert_true(case_meets(t, 0, &bad_other, BAN));
	assert_true(case_meets(t, 0, &neighbour, BAN));
	assert_true(case_meets(t, 0, &gateway_other, OTHER));
	assert_true(case_meets(t, 0, &gateway, OVER));
}

/* The same of the file's own list, also where a ban is on already: of another node, say. */
CASE_TEST(never_ban_list)
{
	const struct frame_spec listed6 = { .src = "2001:db8:7:1::1", .dport = 80 };
	const struct frame_spec beside6 = { .src = "2001:db8:8:1::1", .dport = 80 };

	case_policy(t, RULES);
	get_banned(t, 0);
	case_policy(t,
		    "sets: {ours: ['2001:db8:7::/48']}\nnever_ban: [192.0.2.66, '@ours']\n" RULES);
	assert_true(is_free_at(t, 0));
	assert_true(case_meets(t, 0, &bad, OVER));
	assert_int_equal(case_send(t, &listed6, 100), 1);
	assert_int_equal(bans_there_are(t), 1);
	assert_int_equal(case_send(t, &beside6, 100), 1);
	assert_int_equal(bans_there_are(t), 2);
}

int main(void)
{
	return case_main("bans");
}
