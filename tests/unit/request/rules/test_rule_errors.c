// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rule files that are refused: each with the place of the error, which is exact since editors
 * jump to it, and a part of its message. And broken ones at random: an error, never worse.
 */
#include "lib/rng.h"
#include "lib/rule_text.h"

#include "lib/refused.h"

/* A text that begins with a descriptor is one of the domain "a". */
static void refused(const struct bad *bad)
{
	struct ruleset *set = NULL;
	struct sl_err err = { .line = -1 };
	struct unmarked text;
	char yaml[1024];
	int rc;

	snprintf(yaml, sizeof(yaml), "%s%s", *bad->text == '-' ? "domain: a\ndescriptors:\n" : "",
		 bad->text);
	text = unmark(yaml, strlen(yaml));
	rc = ruleset_parse("r.yaml", text.text, text.size, &set, &err);
	assert_error(bad->text, text.line, text.column, bad->words, rc, &err);
	assert_null(set);
	assert_string_equal(err.file, "r.yaml");
}

static void refused_all(const struct bad *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		refused(&cases[i]);
}

/* A rule with one limit, and where the error is at that limit. */
#define ONE "- {key: a, limits: 1 requests/s, "
#define THIS_ONE "- {key: a, limits: ^1 requests/s, "
#define REFUSED(cases) refused_all(cases, sizeof(cases) / sizeof((cases)[0]))

/* Rules without a descriptor. */
TEST(test_placed)
{
	static const struct bad cases[] = {
		{ "domain: ^{limits: 5 requests/s}", "key \"name\" is missing" },
		{ "domain: ^{name: a}",
		  "found no limit; accepted: limits, rate_limit, or a priority" },
		{ "domain: {name: a, ^key: b, limits: 5 requests/s}",
		  "rule \"a/domain\": unknown key \"key\"" },
		{ "domain: {name: a, limits: 5 requests/s, ^ban: {after: 3 rejections/1m, for: 1m}}",
		  "unknown key \"ban\"" },
		{ "- {key: a, limits: 5 requests/s, ban: {after: ^3 drops/1m, for: 1m}}",
		  "NUMBER rejections/PERIOD" },
		{ "- {key: a, limits: 5 requests/s, ban: {after: 3 rejections/1m, for: 1h, ^max: 1m}}",
		  "max is shorter than for" },
		{ "- {key: a, limits: 5 requests/s, ban: {after: 3 rejections/1m, for: 1h, ^spoofable: true}}",
		  "spoofable is about packets" },
		{ "- {key: a, limits: 5 requests/s, on_limit: {wait: 1s}, ^ban: {after: 3 rejections/1m, for: 1h}}",
		  "accepted with it: on_limit: refuse" },
		{ "- {key: a, ^ban: {after: 3 rejections/1m, for: 1h}}",
		  "ban is given, but there is no limit" },
		{ "domain: {name: a, ^prefix: none, limits: 5 requests/s}",
		  "unknown key \"prefix\"" },
		{ "domain: {name: a, limits: ^5 req}",
		  "rule \"a/domain\": limits: found \"5 req\"" },
		{ "domain: a\ndefault: ^5 requests/s",
		  "accepted: a mapping, as {limits: 10 requests/m}" },
		{ "domain: a\ndefault: ^{}", "found no limit" },
		{ "domain: a\ndefault: {limits: 5 requests/s, ^overrides: []}",
		  "rule \"a/default\": unknown key \"overrides\"" },
		{ "domain: a\ndefault: {limits: 5 requests/s, ^name: b}", "unknown key \"name\"" },
	};

	REFUSED(cases);
}

TEST(test_concurrency)
{
	static const struct bad cases[] = {
		{ "- {key: a, concurrency: ^x}",
		  "accepted: NUMBER, or NUMBER for PERIOD of 2s to 1d" },
		{ "- {key: a, concurrency: ^0}", "a concurrency of 0" },
		{ "- {key: a, concurrency: ^20 for 1s}", "2s to 1d" },
		{ "- {key: a, limits: ^concurrency 20 for 2d}", "2s to 1d" },
		{ "- {key: a, rate_limit: {unlimited: true}, ^concurrency: 5}",
		  "this is unlimited" },
		{ "- {key: a, limits: [1 requests/s, 1 requests/m, 1 requests/h, 1 requests/d], ^concurrency: 5}",
		  "one limit more than 4" },
		{ "- {key: a, limits: [^{rate: concurrency 5, burst: 3}]}",
		  "burst is given, but this is a concurrency" },
		{ "- {key: a, limits: [^{rate: concurrency 5, scope: cluster}]}",
		  "requests in flight are counted on each node" },
		{ "- {key: a, scope: cluster, limits: 5 requests/s, concurrency: ^5}",
		  "requests in flight are counted on each node" },
		{ "- {key: a, concurrency: ^5, on_limit: {wait: 1s}}",
		  "accepted with a concurrency: on_limit: refuse" },
		{ "- {key: a, limits: concurrency 5, overrides: [{value: b, limits: [^5 requests/s]}]}",
		  "the rule's limit in its place is a concurrency" },
	};

	REFUSED(cases);
}

/* Refused by envoyproxy/ratelimit, too. */
/* over 70 lines: a table */
TEST(test_envoy)
{
	static const struct bad cases[] = {
		{ "^", "nothing but blank lines" },
		{ "^descriptors: []", "key \"domain\" is missing" },
		{ "domain: ^''", "accepted: the name of a domain" },
		{ "domain: a\n^domian: b",
		  "unknown key \"domian\" (did you mean \"domain\"?); accepted: domain, default, descriptors" },
		{ "domain: a\ndescriptors: ^x", "a list of descriptors" },
		{ "- ^a", "a mapping with a key" },
		{ "- ^value: x", "key \"key\" is missing" },
		{ "- key: ^''", "the name of an entry" },
		{ "- key: ^[a]", "found a list" },
		{ "- key: a\n  ^limit: 1", "rule \"a/a\": unknown key \"limit\"" },
		{ "- key: a\n- key: ^a", "\"a\" again, first in line 3" },
		{ "- {key: a, value: b}\n- {key: a, value: ^b}", "\"b\" again" },
		/* as it joins them: a_b */
		{ "- {key: a, value: b}\n- {key: ^a_b}", "\"a_b\" again, first in line 3" },
		{ "- key: x\n  descriptors:\n  - key: a\n  - key: ^a",
		  "rule \"a/x/a\": found the key \"a\" again, first in line 5" },
		{ "- {key: a, rate_limit: {^unit: minute, unlimited: true}}",
		  "found a unit, but it is unlimited" },
		{ "- {key: a, rate_limit: ^{requests_per_unit: 1}}", "\"unit\" is missing" },
		{ "- {key: a, rate_limit: {unit: ^fortnight, requests_per_unit: 1}}",
		  "accepted: second, minute, hour, day, week, month, year" },
		{ "- {key: a, rate_limit: {unit: day, requests_per_unit: ^-1}}",
		  "0 to 4294967295" },
		{ "- {key: a, rate_limit: {unit: day, requests_per_unit: ^4294967296}}",
		  "0 to 4294967295" },
		{ "- {key: a, rate_limit: {unit: day, ^requests: 1}}", "unknown key" },
		{ "- {key: a, rate_limit: {unit: day, name: x, replaces: [{name: ^x}]}}",
		  "its own name" },
		{ "- {key: a, rate_limit: {unit: day, replaces: [{name: ^''}]}}",
		  "the name of another" },
		{ "- {key: a, rate_limit: {unit: day, replaces: [^{}]}}", "\"name\" is missing" },
		{ "- {key: a, rate_limit: {unit: day, replaces: ^x}}", "a list of names" },
		{ "- {key: a, shadow_mode: ^maybe}", "true or false" },
		{ "- {key: a, value: b, share_threshold: ^true}", "a value with a '*'" },
		{ "- {key: a, share_threshold: ^true}", "a value with a '*'" },
		{ "- {key: a, metadata: ^3}", "a mapping" },
	};

	REFUSED(cases);
}

/* over 70 lines: a table */
TEST(test_ours)
{
	static const struct bad cases[] = {
		{ "- {key: a, limits: ^[]}", "a list of limits" },
		{ "- {key: a, limits: ^10}", "NUMBER[K|M|G] requests/PERIOD" },
		{ "- {key: a, limits: [^'10 packets/s']}", "accepted here: requests" },
		{ "- {key: a, limits: [^'0 requests/s']}", "would pass nothing" },
		{ "- {key: a, limits: [{rate: 1 requests/s, ^rounding: up}]}",
		  "rounding is given, but algorithm is fixed-window; accepted with it: algorithm: sliding-window" },
		{ "- {key: a, limits: [{rate: 1 requests/s, algorithm: sliding-window, rounding: ^half}]}",
		  "accepted: down, up" },
		{ "- {key: a, limits: [^'1 requests/ms']}", "10ms or more" },
		{ "- {key: a, limits: [^'1 requests/fortnight']}",
		  "accepted: s, m, h, d, week, month, year" },
		{ "- {key: a, calendar: ^Europe/Berlim, limits: [1 requests/d]}",
		  "accepted: UTC, or a name of the tz database, as Europe/Berlin" },
		{ "- {key: a, ^calendar: UTC, limits: [1 requests/h, 1 requests/8d]}",
		  "no limit is a fixed window of requests/day, week, month or year" },
		{ "- {key: a, ^calendar: UTC, algorithm: sliding-window, limits: [1 requests/d]}",
		  "calendar is given, but no limit is a fixed window" },
		{ "- {key: a, limits: [{rate: 1 requests/h, ^calendar: UTC}]}",
		  "the rate has another period; accepted with it: requests/day, week, month or year" },
		{ "- {key: a, limits: [{rate: 1 requests/d, algorithm: sliding-window, ^calendar: UTC}]}",
		  "algorithm is sliding-window; accepted with it: algorithm: fixed-window" },
		{ "- {key: a, limits: [{rate: 1 requests/d, window: first-request, ^calendar: UTC}]}",
		  "window is first-request; accepted with it: window: aligned" },
		{ "- {key: a, limits: [^{rate: concurrency 5, calendar: UTC}]}",
		  "calendar is given, but this is a concurrency" },
		{ "- {key: a, calendar: UTC, scope: cluster, on_limit: {defer: {max: 9}}, limits: [^'1 requests/d']}",
		  "calendar is given, but on_limit defers requests" },
		{ "- {key: a, limits: ['1 requests/s', '1 requests/m', '1 requests/h', '1 requests/d', ^'2 requests/d']}",
		  "one limit more than 4" },
		{ THIS_ONE "rate_limit: {unit: day}}", "limits beside rate_limit" },
		{ "- {key: a, limits: [^{name: x}]}", "key \"rate\" is missing" },
		{ "- {key: a, limits: [{rate: 1 requests/s, ^burst: 2}]}",
		  "accepted with it: algorithm: token-bucket" },
		{ "- {key: a, limits: [{rate: 1 requests/s, ^window: aligned, algorithm: sliding-log}]}",
		  "accepted with it: algorithm: fixed-window" },
		{ "- {key: a, limits: [{rate: 1 requests/s, name: ^'a\"b'}]}", "without quotes" },
		{ "- {key: a, limits: [^{rate: 1 requests/s, name: x}, {rate: 1 requests/m, name: x}]}",
		  "the name \"x\" again" },
		{ ONE "algorithm: ^round-robin}",
		  "token-bucket, leaky-bucket, fixed-window, sliding-window, interval-bucket, window-counters, sliding-log" },
		{ ONE "^burst: 5}", "algorithm is fixed-window" },
		{ ONE "algorithm: leaky-bucket, ^window: aligned}", "algorithm is leaky-bucket" },
		{ "- {key: a, ^burst: 5}", "there is no limit" },
		{ "- {key: a, ^push_down: {after: 1 rejections/s, steps: drop}}",
		  "there is no limit" },
		{ "- {key: a, rate_limit: {unlimited: true}, ^on_limit: {wait: 1s}}",
		  "this is unlimited" },
		{ ONE "prefix: ^all}", "none, or {ipv4: 32" },
		{ ONE "prefix: {ipv4: [24, ^32]}}", "each shorter than the one before" },
		{ ONE "prefix_scale: {ipv4: ^[1, 2]}}", "2 multipliers for 1 prefix length" },
		{ ONE "throttle: {soft: ^0%}}", "0.1% to 100%" },
		{ ONE "priority: ^vip}", "critical, normal, low" },
		{ ONE "reserve: {^low: 10%}}", "unknown key" },
		{ ONE "reserve: ^{critical: 60%, normal: 40%}}", "low would never pass" },
		{ ONE "on_limit: ^wait}",
		  "refuse, {wait: 2s, queue: 100}, or {defer: {max: 10000, ttl: 1h}}" },
		{ ONE "on_limit: ^{queue: 3}}",
		  "refuse, {wait: 2s, queue: 100}, or {defer: {max: 10000, ttl: 1h}}" },
		{ ONE "scope: cluster, on_limit: ^{wait: 1s, defer: {max: 3}}}",
		  "refuse, {wait: 2s, queue: 100}, or {defer: {max: 10000, ttl: 1h}}" },
		{ ONE "scope: cluster, on_limit: {defer: {max: ^0}}}", "1 to 1M" },
		{ ONE "scope: cluster, on_limit: {defer: {ttl: ^8d}}}", "1s to 7d" },
		{ ONE "scope: cluster, on_limit: {defer: {^size: 3}}}", "unknown key" },
		{ THIS_ONE "on_limit: {defer: {max: 3}}}", "scope: cluster" },
		{ THIS_ONE "consistency: {lease: 100ms}, on_limit: {defer: {max: 3}}}",
		  "consistency: strict" },
		{ THIS_ONE "scope: cluster, algorithm: token-bucket, count: all, "
			   "on_limit: {defer: {max: 3}}}",
		  "count: admitted" },
		{ THIS_ONE "scope: cluster, throttle: {soft: 10%}, on_limit: {defer: {max: 3}}}",
		  "throttle: hard" },
		{ "- {key: a, limits: 5 requests/s, scope: cluster, on_limit: {defer: {max: 3}}, "
		  "^ban: {after: 3 rejections/1m, for: 1h}}",
		  "accepted with it: on_limit: refuse" },
		{ ONE "on_limit: {wait: ^2h}}", "1ms to 1h" },
		{ ONE "push_down: ^{steps: drop}}", "\"after\" is missing" },
		{ ONE "push_down: {after: ^20 drops/10s, steps: drop}}",
		  "NUMBER rejections/PERIOD" },
		{ ONE "push_down: {after: 2 rejections/s, steps: [^limit 5 bytes/s]}}",
		  "a rate in packets" },
		{ ONE "push_down: {after: 2 rejections/s, steps: [^limit]}}",
		  "limit RATE, tag, no-new or drop" },
	};

	REFUSED(cases);
}

TEST(test_cluster)
{
	static const struct bad cases[] = {
		{ "- {key: a, limits: [{rate: 1 requests/s, scope: ^world}]}",
		  "accepted: node, cluster" },
		{ ONE "on_store_failure: ^fail}", "accepted: local, open, closed, error" },
		{ ONE "consistency: ^lease}",
		  "accepted: strict, {lease: 100ms} or {write_back: 1s}" },
		{ ONE "consistency: ^{}}", "found a mapping of 0 keys" },
		{ ONE "consistency: ^{lease: 1s, write_back: 1s}}", "found a mapping of 2 keys" },
		{ ONE "consistency: {^strict: 1s}}", "unknown key \"strict\"" },
		{ ONE "consistency: {lease: ^9ms}}", "10ms to 10s" },
		{ ONE "consistency: {write_back: ^2h}}", "20ms to 1h" },
		{ "- {key: a, limits: [^1 requests/s], consistency: {lease: 2s}}",
		  "lease is 2s, longer than the limit's own period of 1s" },
		{ "- {key: a, limits: [1 requests/m, ^1 requests/s], consistency: {write_back: 1m}}",
		  "write_back is 1m, longer" },
		{ ONE "scope: node, ^consistency: strict}",
		  "consistency is given, but scope is node" },
		{ "- {key: a, limits: [{rate: 1 requests/s, scope: node}], ^on_store_failure: open}",
		  "on_store_failure is given, but scope is node" },
		{ "- {key: a, limits: [{rate: 1 requests/s, mode: ^off}]}",
		  "accepted: enforce, shadow" },
		{ "- ^{key: a, limits: [{rate: 1 requests/s, mode: shadow}]}",
		  "every limit has mode: shadow" },
		{ "- {key: a, on_limit: {wait: 1s, queue: 1}, limits: [1 requests/s, ^{rate: 2 requests/s, "
		  "mode: shadow}]}",
		  "mode is shadow, but on_limit decides a request that waits" },
		{ "- {key: a, limits: [1 requests/s, ^{rate: 2 requests/s, mode: shadow, scope: cluster, "
		  "algorithm: sliding-log}]}",
		  "only Redis has the sliding-log of all nodes" },
		{ "- {key: a, limits: [1 requests/s], overrides: [{value: b, limits: [^{rate: 2 requests/s, "
		  "mode: shadow}]}]}",
		  "mode: shadow in an override" },
		{ "- {key: a, ^consistency: strict}", "there is no limit" },
		{ "- {key: a, rate_limit: {unlimited: true}, ^scope: cluster}",
		  "this is unlimited" },
		{ THIS_ONE "algorithm: sliding-log, consistency: {lease: 1s}}",
		  "consistency is lease, but algorithm is sliding-log" },
		{ ONE
		  "consistency: {write_back: 1s}, overrides: [{value: x, limits: [^{rate: 2 requests/s, algorithm: sliding-log}]}]}",
		  "consistency is write_back, but algorithm is sliding-log" },
	};

	REFUSED(cases);
}

TEST(test_overrides)
{
	static const struct bad cases[] = {
		{ "- {key: a, ^overrides: [{value: x, limits: 1 requests/s}]}",
		  "there is no limit" },
		{ ONE "overrides: [^{limits: 1 requests/s}]}", "\"value\" is missing" },
		{ ONE "overrides: [^{value: x}]}", "one of limits, rate, block: true" },
		{ ONE "overrides: [^{value: x, block: true, limits: 1 requests/s}]}",
		  "one of limits" },
		{ ONE "overrides: [{value: x, block: true}, {value: ^x, block: true}]}",
		  "\"x\" again, first in line 3" },
		/* two spellings of one address, and two addresses of one /64 */
		{ ONE
		  "overrides: [{value: '2001:DB8::1', block: true}, {value: ^'2001:db8::2', block: true}]}",
		  "again" },
		{ ONE "overrides: [{value: ^10.0.0.1/8, block: true}]}", "host bits are set" },
		{ ONE "overrides: [{value: ^'2001:db8::/96', block: true}]}",
		  "narrower than the rule's first prefix" },
		{ THIS_ONE "count: debt, throttle: {soft: 10%}}",
		  "count is debt, but throttle is soft" },
		{ THIS_ONE "count: debt, on_limit: {wait: 1s}}",
		  "count is debt, but on_limit delays" },
		{ THIS_ONE "count: debt, consistency: {lease: 100ms}}",
		  "consistency: strict, not lease" },
		/* values that could never match */
		{ "- {key: a, value: ^10.0.0.1/8, limits: 1 requests/s}", "host bits are set" },
		{ "- {key: a, value: ^10.0.0.0/33, limits: 1 requests/s}", "bad prefix length" },
		{ "- {key: a, value: 10.0.0.1, limits: 1 requests/s}\n- ^{key: a, value: '::ffff:10.0.0.1', limits: 1 requests/s}",
		  "another spelling of a value" },
		{ "- {key: a, value: /x/, ignore: [case, trailing-slash], limits: 1 requests/s}\n"
		  "- ^{key: a, value: /X, ignore: [trailing-slash, case], limits: 1 requests/s}",
		  "another spelling of a value that is here already: /X" },
		{ ONE "ignore: ^cases}", "accepted: case, trailing-slash, params" },
		{ "domain: a\ndefault: {limits: 1 requests/s, ^ignore: case}", "ignore" },
		{ "- {key: a, ignore: case, limits: 1 requests/s, overrides: [{value: x, block: true}, {value: ^X, block: true}]}",
		  "again, first in line 3" },
	};

	REFUSED(cases);
}

static const char sample[] =
	"domain: api\n"
	"descriptors:\n"
	"  - key: user\n"
	"    limits: ['10 requests/m', {name: hourly, rate: 500 requests/h, algorithm: sliding-window}]\n"
	"    prefix: {ipv4: [32, 24], ipv6: [64, 48]}\n"
	"    prefix_scale: {ipv4: [1, 16], ipv6: [1, 4]}\n"
	"    overrides: [{value: acme, limits: ['1000 requests/m']}, {value: eve, block: true}]\n"
	"    throttle: {soft: 10%}\n"
	"    priority: low\n"
	"    reserve: {critical: 20%, normal: 30%}\n"
	"    on_limit: {wait: 2s, queue: 100}\n"
	"    push_down: {after: 20 rejections/10s, steps: [limit 50 packets/s, no-new, drop]}\n"
	"    descriptors:\n"
	"      - {key: path, value: '/a*', share_threshold: true, rate_limit: {unit: day, requests_per_unit: 5}}\n"
	"  - {key: plan, value: free, metadata: {a: [1, {b: true}]}, rate_limit: {unlimited: true, name: x}}\n";

/* Bytes changed, removed, doubled: it loads, or is refused with a message. */
TEST(test_mutations)
{
	static const char bytes[] = "{}[]:,-'\"#* \n&!|>%/09azAZ\t\xc3\xff";
	char text[sizeof(sample) * 2];
	u32 loaded = 0;

	rng_start("mutations");
	for (int round = 0; round < 20000; round++) {
		size_t len = sizeof(sample) - 1;
		struct ruleset *set;
		struct sl_err err = { .message = "" };

		memcpy(text, sample, len);
		for (u32 changes = 1 + rng() % 4; changes; changes--) {
			size_t at = rng() % len, size = rng() % 20 % (len - at);

			switch (rng() % 3) {
			case 0:
				text[at] = bytes[rng() % (sizeof(bytes) - 1)];
				break;
			case 1:
				memmove(text + at, text + at + size, len - at - size);
				len -= size;
				break;
			default:
				memmove(text + at + size, text + at, len - at);
				len += size;
			}
		}
		if (!ruleset_parse("r.yaml", text, len, &set, &err)) {
			ruleset_free(set);
			loaded++;
		} else {
			assert_true(err.message[0]);
		}
	}
	assert_in_range(loaded, 100, 15000);
}

TEST_MAIN
