// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_explain.c - the command: fields and their defaults, lines of the file, lists, bans, the
 * changes that a field left out would make. Correct verdicts are tested by
 * tests/bpf/test_explain.c.
 */
#include "explain_rig.h"

#include "packet/dataplane/dp_push.h"

EXPLAIN_TEST(lists_by_their_line)
{
	/* The longest of two. */
	expect(rig, "198.51.100.3", "",
	       "verdict=drop block 5, block.prefix=198.51.100.0/28, "
	       "block.line=5, verdict.passes_in_ns=none");
	expect(rig, "198.51.100.77", "", "block.prefix=198.51.100.0/24");
	expect(rig, "10.1.2.3", "", "verdict=pass exempt 3, exempt.prefix=10.0.0.0/8, block=none");
	/* A neighbour of both. */
	expect(rig, "198.51.101.3", "", "verdict=pass no_match 7, block=none, exempt=none");
}

EXPLAIN_TEST(a_timed_block_has_its_deadline)
{
	json_t *r;

	rig_do(rig, "block add {'prefix':'192.0.2.9','for':'10m','reason':'scan'}");
	r = explained(rig, "192.0.2.9", "");
	expect_in(r, "192.0.2.9", "verdict=drop block 5, block.reason=scan, block.live=true");
	assert_in_range(int_at(r, "verdict.passes_in_ns"), 590 * 1000000000LL, 600 * 1000000000LL);
	json_decref(r);
}

EXPLAIN_TEST(defaults_are_listed)
{
	expect(rig, "192.0.2.7", ",'dport':'443'",
	       "packet.dst=203.0.113.10, packet.proto=tcp, "
	       "packet.tcp_flags=ack, packet.interface=eth0, packet.length=64, packet.dport=443, "
	       "assumed.dport=none, assumed.proto=tcp");
}

/* ------------------------------------------------------------------ fields left out */

/* Limits on other sources are not listed. */
EXPLAIN_TEST(left_out_fields_are_named)
{
	json_t *r = explained(rig, "192.0.2.7", "");

	assert_int_equal(int_at(change_of(r, "web"), "line"), 9);
	json_decref(r);
	expect(rig, "192.0.2.7", "",
	       "verdict=pass no_match 7, change web=dport 443 within, "
	       "change @failsafe=dport 22 failsafe, change ping=proto icmp within, "
	       "change=fragment first fragment, change syn=none, change tagged=none");
	expect(rig, "192.0.3.7", "", "change syn=tcp_flags syn within");
	expect(rig, "192.0.4.7", "", "change tagged=vlan 100 within");
	expect(rig, "192.0.6.7", "", "change big=sport 53 length 1000 within");
	expect(rig, "192.0.5.7", "", "verdict=pass within 7, change=fragment first fragment");
}

/* Given fields are not varied. */
EXPLAIN_TEST(given_fields_stay)
{
	expect(rig, "192.0.2.7", ",'dport':'80','fragment':'none'",
	       "change web=none, "
	       "change @failsafe=none, change=none, change ping=proto icmp within");
	expect(rig, "192.0.2.7", ",'proto':'udp'", "change web=none, change ping=none");
	expect(rig, "192.0.2.7", ",'dst':'192.0.2.1'",
	       "change ping=none, change @failsafe=none, change web=dport 443 within");
	/* A blocked source is dropped, whatever it sends: no change at all. */
	expect(rig, "198.51.100.3", "", "would_change=0");
}

/* Too little room for a full frame; 14 bytes of it are Ethernet's. */
EXPLAIN_TEST(length_matters_to_bytes)
{
	expect(rig, "192.0.5.7", ",'fragment':'none','length':'986'", "verdict=pass within 7");
	expect(rig, "192.0.5.7", ",'fragment':'none','length':'987'",
	       "verdict=drop over 7, verdict.limit=bytes, verdict.passes_in_ns=none");
	expect(rig, "192.0.5.7", ",'fragment':'none'",
	       "verdict=pass within 7, change=length 1500 over");
}

EXPLAIN_TEST(a_bucket_of_more_than_the_source)
{
	expect(rig, "192.0.6.7", ",'length':'1000','sport':'53'",
	       "limits.0.limit=big, "
	       "limits.0.bucket_depends_on=1, limits.0.bucket_depends_on.0=dport");
}

/* ------------------------------------------------------------------ bans, sessions */

EXPLAIN_TEST(bans_are_listed)
{
	struct dp_ban ban = {
		.key = { .addr.hi = 0xc0000700ULL << 32, .family = SL_V4, .len = 24 },
		.state = { .level = 2, .slot = rig->d->running.image->rules->limits[0].slot },
	};
	const u64 now = clock_mono_ns();
	json_t *r;

	ban.state.since_ns = now;
	ban.state.until_ns = now + 60 * SL_NS_PER_SEC;
	assert_int_equal(dp_ban_insert(rig->dp, &ban), 0);
	rig->d->running.image->rules->ban_len[SL_V4][0] = 24;
	rig->d->running.image->rules->ban_len[SL_V4][1] = SL_PREFIX_NONE;
	rig->d->running.image->rules->dims |= SL_DIMS_BANS;
	r = explained(rig, "192.0.7.7", "");
	/* But failsafe ports escape. */
	expect_in(r, "192.0.7.7",
		  "verdict=drop ban 6, ban.prefix=192.0.7.0/24, ban.limit=web, "
		  "ban.level=2, ban.on=true, change @failsafe=dport 22 failsafe");
	assert_true(int_at(r, "verdict.passes_in_ns") > 50 * 1000000000LL);
	json_decref(r);
	expect(rig, "192.0.8.7", "", "verdict=pass no_match 7, ban=none");
}

EXPLAIN_TEST(push_downs_are_listed)
{
	struct dp_push push = {
		.src = { { 0xc000070700000000ULL, 0 }, SL_V4, 32 },
		.kind = SL_PUSH_LIMIT,
		.rate = { 50, SL_NS_PER_SEC, RATE_PACKETS },
		.until_ns = clock_mono_ns() + 60 * SL_NS_PER_SEC,
	};
	json_t *r;

	assert_int_equal(dp_push_put(rig->dp, &push), 0);
	expect(rig, "192.0.7.7", "",
	       "verdict=pass no_match 7, pushdowns.0.prefix=192.0.7.7, "
	       "pushdowns.0.kind=limit, pushdowns.0.rate=50 packets/s");
	push.kind = SL_PUSH_NO_NEW;
	assert_int_equal(dp_push_put(rig->dp, &push), 0);
	expect(rig, "192.0.7.7", "",
	       "verdict=pass no_match 7, change @push-down=tcp_flags syn push_no_new");
	push.src.addr.hi &= ~0xffffffffffULL;
	push.src.len = 24;
	push.kind = SL_PUSH_DROP;
	assert_int_equal(dp_push_put(rig->dp, &push), 0);
	r = explained(rig, "192.0.7.7", "");
	expect_in(r, "192.0.7.7",
		  "verdict=drop push_drop 6, verdict.step_name=push-downs, "
		  "pushdowns=2, change @failsafe=dport 22 failsafe");
	assert_true(int_at(r, "verdict.passes_in_ns") > 50 * 1000000000LL);
	json_decref(r);
	/* Neither a neighbour, nor a source that was pushed down before. */
	expect(rig, "192.0.8.7", "", "verdict=pass no_match 7, pushdowns=0");
	push.until_ns = clock_mono_ns();
	assert_int_equal(dp_push_put(rig->dp, &push), 0);
	expect(rig, "192.0.7.9", "", "verdict=pass no_match 7, pushdowns=0");
}

EXPLAIN_TEST(sessions_are_listed)
{
	struct sl_rules *rules = rig->d->running.image->rules;
	const struct sl_session session = {
		.src.hi = 0xc6336403ULL << 32,
		.dst.hi = 0xcb00710bULL << 32,
		.sport = 50000,
		.dport = 2222,
		.used = 1 + SL_V4,
	};

	rules->session[sl_session_at(session.src, session.sport) % SL_SESSION_TABLE] = session;
	rules->session_source[sl_session_source(session.src) / 64] |=
		1ULL << sl_session_source(session.src) % 64;
	rules->dims |= SL_DIMS_SESSIONS;
	expect(rig, "198.51.100.3", "",
	       "verdict=drop block 5, "
	       "change @session=dst 203.0.113.11 sport 50000 dport 2222 session");
	expect(rig, "198.51.100.3", ",'dst':'203.0.113.11','sport':'50000','dport':'2222'",
	       "verdict=pass session 2");
	expect(rig, "198.51.100.4", "", "verdict=drop block 5, change @session=none");
}

EXPLAIN_TEST(errors_have_a_message)
{
	static const struct {
		const char *fields, *words;
	} cases[] = {
		{ ",'source':'192.0.2.0/24'", "not a single address" },
		{ ",'source':'192.0.2.1','dport':'65536'", "a port, 0 to 65535" },
		{ ",'source':'192.0.2.1','dport':'-1'", "a port, 0 to 65535" },
		{ ",'source':'192.0.2.1','dport':80", "'dport' must be a string" },
		{ ",'source':'192.0.2.1','dst':'2001:db8::1'", "of the source's family" },
		{ ",'source':'192.0.2.1','proto':'256'", "a number up to 255" },
		{ ",'source':'192.0.2.1','proto':'47','dport':'1'", "does not have this field" },
		{ ",'source':'192.0.2.1','tcp_flags':'syn,xyz'", "flags such as syn,ack" },
		{ ",'source':'192.0.2.1','icmp_type':'nope'", "such as echo-request" },
		{ ",'source':'192.0.2.1','vlan':'4096'", "a VLAN id, 0 to 4095" },
		{ ",'source':'192.0.2.1','length':'39'", "at least 40 bytes" },
		{ ",'source':'192.0.2.1','length':'65536'", "up to 65535" },
		{ ",'source':'192.0.2.1','interface':'eth9'", "a configured or attached" },
		{ ",'source':'192.0.2.1','fragment':'last'", "first, later or none" },
		{ ",'source':'192.0.2.1','fragment':'later','dport':'1'",
		  "a later fragment does not have this field" },
		{ "", "'source' is required" },
	};
	char line[256];

	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(line, sizeof(line), "explain {%s}",
			 cases[i].fields + !!cases[i].fields[0]);
		rig_refused(rig, &rig_reader, line, cases[i].words);
	}
}

TEST_MAIN
