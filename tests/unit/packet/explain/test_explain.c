// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_explain.c - the command: fields and their defaults, lines of the file, lists, bans, the changes
 * that a field left out would make. Correct verdicts are tested by tests/bpf/test_explain.c.
 */
#include "explain_rig.h"

#include "packet/dataplane/dp_push.h"

/* The change due to `matches` (NULL: to none), or NULL. */
static const json_t *change_of(const json_t *result, const char *matches)
{
	const json_t *change;
	size_t i;

	json_array_foreach(json_object_get(result, "would_change"), i, change) {
		const char *text = text_at(change, "matches");

		if (!text ? !matches : matches && !strcmp(text, matches))
			return change;
	}
	return NULL;
}

EXPLAIN_TEST(lists_by_their_line)
{
	json_t *r = explained(rig, "198.51.100.3", "");

	/* The longest of two. */
	assert_verdict(r, "drop", "block", 5);
	assert_string_equal(text_in(r, "block", "prefix"), "198.51.100.0/28");
	assert_int_equal(number_in(r, "block", "line"), LINE_BLOCK_28);
	assert_true(json_is_null(json_at(r, "verdict.passes_in_ns")));
	json_decref(r);
	r = explained(rig, "198.51.100.77", "");
	assert_string_equal(text_in(r, "block", "prefix"), "198.51.100.0/24");
	json_decref(r);
	r = explained(rig, "10.1.2.3", "");
	assert_verdict(r, "pass", "exempt", 3);
	assert_string_equal(text_in(r, "exempt", "prefix"), "10.0.0.0/8");
	assert_true(json_is_null(json_object_get(r, "block")));
	json_decref(r);
	/* A neighbour of both. */
	r = explained(rig, "198.51.101.3", "");
	assert_verdict(r, "pass", "no_match", 7);
	assert_true(json_is_null(json_object_get(r, "block")));
	assert_true(json_is_null(json_object_get(r, "exempt")));
	json_decref(r);
}

EXPLAIN_TEST(a_timed_block_has_its_deadline)
{
	json_t *r, *wait;

	rig_do(rig, "{\"command\":\"block add\",\"args\":{\"prefix\":\"192.0.2.9\",\"for\":\"10m\","
		    "\"reason\":\"scan\"}}");
	r = explained(rig, "192.0.2.9", "");
	assert_verdict(r, "drop", "block", 5);
	assert_string_equal(text_in(r, "block", "reason"), "scan");
	assert_true(true_at(r, "block.live"));
	wait = json_at(r, "verdict.passes_in_ns");
	assert_true(json_integer_value(wait) > 590 * 1000000000LL);
	assert_true(json_integer_value(wait) <= 600 * 1000000000LL);
	json_decref(r);
}

EXPLAIN_TEST(defaults_are_listed)
{
	json_t *r = explained(rig, "192.0.2.7", ",\"dport\":\"443\"");

	assert_string_equal(text_in(r, "packet", "dst"), "203.0.113.10");
	assert_string_equal(text_in(r, "packet", "proto"), "tcp");
	assert_string_equal(text_in(r, "packet", "tcp_flags"), "ack");
	assert_string_equal(text_in(r, "packet", "interface"), names);
	assert_int_equal(number_in(r, "packet", "length"), 64);
	assert_int_equal(number_in(r, "packet", "dport"), 443);
	assert_null(json_at(r, "assumed.dport"));
	assert_non_null(json_at(r, "assumed.proto"));
	json_decref(r);
}

/* ------------------------------------------------------------------ fields left out */

static void assert_change(const json_t *result, const char *matches, const char *field,
			  const char *text, const char *reason)
{
	const json_t *change = change_of(result, matches);
	const json_t *value = json_object_get(json_object_get(change, "fields"), field);
	char number[32];

	assert_non_null(change);
	snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
	assert_string_equal(json_is_string(value) ? json_string_value(value) : number, text);
	assert_string_equal(text_in(change, "verdict", "reason"), reason);
}

EXPLAIN_TEST(left_out_fields_are_named)
{
	json_t *r = explained(rig, "192.0.2.7", "");

	assert_verdict(r, "pass", "no_match", 7);
	assert_change(r, "web", "dport", "443", "within");
	assert_int_equal(json_object_size(json_object_get(change_of(r, "web"), "fields")), 1);
	assert_int_equal(int_at(change_of(r, "web"), "line"), LINE_WEB);
	assert_change(r, "@failsafe", "dport", "22", "failsafe");
	assert_change(r, "ping", "proto", "icmp", "within");
	assert_change(r, NULL, "fragment", "first", "fragment");
	/* Limits on other sources are not listed. */
	assert_null(change_of(r, "syn"));
	assert_null(change_of(r, "tagged"));
	json_decref(r);

	r = explained(rig, "192.0.3.7", "");
	assert_change(r, "syn", "tcp_flags", "syn", "within");
	json_decref(r);
	r = explained(rig, "192.0.4.7", "");
	assert_change(r, "tagged", "vlan", "100", "within");
	json_decref(r);
	r = explained(rig, "192.0.6.7", "");
	assert_change(r, "big", "length", "1000", "within");
	assert_change(r, "big", "sport", "53", "within");
	json_decref(r);
	r = explained(rig, "192.0.5.7", "");
	assert_verdict(r, "pass", "within", 7);
	assert_change(r, NULL, "fragment", "first", "fragment");
	json_decref(r);
}

/* Given fields are not varied. */
EXPLAIN_TEST(given_fields_stay)
{
	json_t *r = explained(rig, "192.0.2.7", ",\"dport\":\"80\",\"fragment\":\"none\"");

	assert_null(change_of(r, "web"));
	assert_null(change_of(r, "@failsafe"));
	assert_null(change_of(r, NULL));
	assert_non_null(change_of(r, "ping"));
	json_decref(r);
	r = explained(rig, "192.0.2.7", ",\"proto\":\"udp\"");
	assert_null(change_of(r, "web"));
	assert_null(change_of(r, "ping"));
	json_decref(r);
	r = explained(rig, "192.0.2.7", ",\"dst\":\"192.0.2.1\"");
	assert_null(change_of(r, "ping"));
	assert_null(change_of(r, "@failsafe"));
	assert_non_null(change_of(r, "web"));
	json_decref(r);
	/* A blocked source is dropped, whatever it sends: no change at all. */
	r = explained(rig, "198.51.100.3", "");
	assert_int_equal(count_at(r, "would_change"), 0);
	json_decref(r);
}

/* Too little room for a full frame; 14 bytes of it are Ethernet's. */
EXPLAIN_TEST(length_matters_to_bytes)
{
	json_t *r = explained(rig, "192.0.5.7", ",\"fragment\":\"none\",\"length\":\"986\"");

	assert_verdict(r, "pass", "within", 7);
	json_decref(r);
	r = explained(rig, "192.0.5.7", ",\"fragment\":\"none\",\"length\":\"987\"");
	assert_verdict(r, "drop", "over", 7);
	assert_string_equal(text_in(r, "verdict", "limit"), "bytes");
	assert_true(json_is_null(json_at(r, "verdict.passes_in_ns")));
	json_decref(r);
	r = explained(rig, "192.0.5.7", ",\"fragment\":\"none\"");
	assert_verdict(r, "pass", "within", 7);
	assert_change(r, NULL, "length", "1500", "over");
	json_decref(r);
}

EXPLAIN_TEST(a_bucket_of_more_than_the_source)
{
	json_t *r = explained(rig, "192.0.6.7", ",\"length\":\"1000\",\"sport\":\"53\"");
	const json_t *limit = json_at(r, "limits.0");
	const json_t *open = json_object_get(limit, "bucket_depends_on");

	assert_string_equal(text_at(limit, "limit"), "big");
	assert_int_equal(json_array_size(open), 1);
	assert_string_equal(text_at(open, "0"), "dport");
	json_decref(r);
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
	assert_verdict(r, "drop", "ban", 6);
	assert_string_equal(text_in(r, "ban", "prefix"), "192.0.7.0/24");
	assert_string_equal(text_in(r, "ban", "limit"), "web");
	assert_int_equal(number_in(r, "ban", "level"), 2);
	assert_true(true_at(r, "ban.on"));
	assert_true(int_at(r, "verdict.passes_in_ns") > 50 * 1000000000LL);
	/* But failsafe ports escape. */
	assert_change(r, "@failsafe", "dport", "22", "failsafe");
	json_decref(r);
	r = explained(rig, "192.0.8.7", "");
	assert_verdict(r, "pass", "no_match", 7);
	assert_true(json_is_null(json_object_get(r, "ban")));
	json_decref(r);
}

EXPLAIN_TEST(push_downs_are_listed)
{
	struct dp_push push = {
		.src = { { 0xc000070700000000ULL, 0 }, SL_V4, 32 }, .kind = SL_PUSH_LIMIT,
		.rate = { 50, SL_NS_PER_SEC, RATE_PACKETS },
		.until_ns = clock_mono_ns() + 60 * SL_NS_PER_SEC,
	};
	const json_t *one;
	json_t *r;

	assert_int_equal(dp_push_put(rig->dp, &push), 0);
	r = explained(rig, "192.0.7.7", "");
	assert_verdict(r, "pass", "no_match", 7);
	one = json_at(r, "pushdowns.0");
	assert_string_equal(text_in(one, NULL, "prefix"), "192.0.7.7");
	assert_string_equal(text_in(one, NULL, "kind"), "limit");
	assert_string_equal(text_in(one, NULL, "rate"), "50 packets/s");
	json_decref(r);
	push.kind = SL_PUSH_NO_NEW;
	assert_int_equal(dp_push_put(rig->dp, &push), 0);
	r = explained(rig, "192.0.7.7", "");
	assert_verdict(r, "pass", "no_match", 7);
	assert_change(r, "@push-down", "tcp_flags", "syn", "push_no_new");
	json_decref(r);
	push.src.addr.hi &= ~0xffffffffffULL;
	push.src.len = 24;
	push.kind = SL_PUSH_DROP;
	assert_int_equal(dp_push_put(rig->dp, &push), 0);
	r = explained(rig, "192.0.7.7", "");
	assert_verdict(r, "drop", "push_drop", 6);
	assert_string_equal(text_in(r, "verdict", "step_name"), "push-downs");
	assert_int_equal(count_at(r, "pushdowns"), 2);
	assert_true(int_at(r, "verdict.passes_in_ns") > 50 * 1000000000LL);
	assert_change(r, "@failsafe", "dport", "22", "failsafe");
	json_decref(r);
	/* Neither a neighbour, nor a source that was pushed down before. */
	r = explained(rig, "192.0.8.7", "");
	assert_verdict(r, "pass", "no_match", 7);
	assert_int_equal(count_at(r, "pushdowns"), 0);
	json_decref(r);
	push.until_ns = clock_mono_ns();
	assert_int_equal(dp_push_put(rig->dp, &push), 0);
	r = explained(rig, "192.0.7.9", "");
	assert_verdict(r, "pass", "no_match", 7);
	assert_int_equal(count_at(r, "pushdowns"), 0);
	json_decref(r);
}

EXPLAIN_TEST(sessions_are_listed)
{
	struct sl_rules *rules = rig->d->running.image->rules;
	const struct sl_session session = {
		.src.hi = 0xc6336403ULL << 32, .dst.hi = 0xcb00710bULL << 32, .sport = 50000,
		.dport = 2222, .used = 1 + SL_V4,
	};
	json_t *r;

	rules->session[sl_session_at(session.src, session.sport) % SL_SESSION_TABLE] = session;
	rules->session_source[sl_session_source(session.src) / 64] |=
		1ULL << sl_session_source(session.src) % 64;
	rules->dims |= SL_DIMS_SESSIONS;
	r = explained(rig, "198.51.100.3", "");
	assert_verdict(r, "drop", "block", 5);
	assert_change(r, "@session", "dst", "203.0.113.11", "session");
	assert_change(r, "@session", "sport", "50000", "session");
	json_decref(r);
	r = explained(rig, "198.51.100.3",
		 ",\"dst\":\"203.0.113.11\",\"sport\":\"50000\",\"dport\":\"2222\"");
	assert_verdict(r, "pass", "session", 2);
	json_decref(r);
	r = explained(rig, "198.51.100.4", "");
	assert_verdict(r, "drop", "block", 5);
	assert_null(change_of(r, "@session"));
	json_decref(r);
}

EXPLAIN_TEST(errors_have_a_message)
{
	static const struct {
		const char *fields, *words;
	} cases[] = {
		{ ",\"source\":\"192.0.2.0/24\"", "not a single address" },
		{ ",\"source\":\"192.0.2.1\",\"dport\":\"65536\"", "a port, 0 to 65535" },
		{ ",\"source\":\"192.0.2.1\",\"dport\":\"-1\"", "a port, 0 to 65535" },
		{ ",\"source\":\"192.0.2.1\",\"dport\":80", "'dport' must be a string" },
		{ ",\"source\":\"192.0.2.1\",\"dst\":\"2001:db8::1\"", "of the source's family" },
		{ ",\"source\":\"192.0.2.1\",\"proto\":\"256\"", "a number up to 255" },
		{ ",\"source\":\"192.0.2.1\",\"proto\":\"47\",\"dport\":\"1\"", "does not have this field" },
		{ ",\"source\":\"192.0.2.1\",\"tcp_flags\":\"syn,xyz\"", "flags such as syn,ack" },
		{ ",\"source\":\"192.0.2.1\",\"icmp_type\":\"nope\"", "such as echo-request" },
		{ ",\"source\":\"192.0.2.1\",\"vlan\":\"4096\"", "a VLAN id, 0 to 4095" },
		{ ",\"source\":\"192.0.2.1\",\"length\":\"39\"", "at least 40 bytes" },
		{ ",\"source\":\"192.0.2.1\",\"length\":\"65536\"", "up to 65535" },
		{ ",\"source\":\"192.0.2.1\",\"interface\":\"eth9\"", "a configured or attached" },
		{ ",\"source\":\"192.0.2.1\",\"fragment\":\"last\"", "first, later or none" },
		{ ",\"source\":\"192.0.2.1\",\"fragment\":\"later\",\"dport\":\"1\"",
		  "a later fragment does not have this field" },
		{ "", "'source' is required" },
	};
	char line[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(line, sizeof(line), "{\"command\":\"explain\",\"args\":{%s}}",
			 cases[i].fields + !!cases[i].fields[0]);
		rig_refused(rig, &rig_reader, line, cases[i].words);
	}
}

TEST_MAIN
