// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Errors: each case is a configuration, the place of the error and a part of its
 * message. The place is exact, since editors jump to it.
 */
#include <time.h>
#include <unistd.h>

#include "lib/test.h"
#include "lib/policy_text.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The same inside of a limit: the case's text stands after this, in line 4, column 5. */
#define LIMIT "limits:\n  - name: web\n    rate: 1000 packets/s\n    "

TEST(test_text)
{
	static const struct bad cases[] = {
		{ "", 1, 1, "nothing but blank lines" },
		{ "# only this\n\n", 1, 1, "nothing but blank lines" },
		{ "~", 1, 1, "nothing but blank lines" },
		{ "table:\n\tbuckets: 1", 2, 1, "found a tab; accepted: spaces" },
		{ "block: [10.0.0.0/8\n", 2, 1, "from line 1, column 8" },
		{ "state_dir: \"/x\n", 2, 1, "while scanning a quoted scalar" },
		{ "a: b: c", 1, 5, "mapping values are not allowed" },
		{ "exempt: [@partners]", 1, 10, "found '@'" },
		{ "never_ban: [{prefix: 10.0.0.1, until: '2030-01-31T12:00:00Z'}]", 1, 12,
		  "without until" },
		{ LIMIT "match: {tcp_flags: !ack}", 4, 24, "quote a value that begins with '!'" },
		{ "block: !!set [1.2.3.4]", 1, 8, "found the tag" },
		{ "block: *all", 1, 8,
		  "found the alias \"*all\", but no anchor \"&all\" before it" },
		{ "table: {buckets: 1}\n---\ntable: {buckets: 2}", 2, 1, "second document" },
		{ "{[a]: b}", 1, 2, "found a list as a key" },
		{ "? {a: b}\n: c", 1, 3, "found a mapping as a key" },
		{ "state_dir: \"/a\\tb\"", 1, 12, "control characters" },
		{ "state_dir: |\n  /a\n  /b\n", 1, 12, "line breaks" },
		{ "block:\n  [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]", 2, 18, "nested too deep" },
		{ "state_dir: /\xff", 1, 13, "byte 0xff, which is not UTF-8" },
		{ "# \xc3\xa4\nstate_dir: /\xc3", 2, 13, "byte 0xc3" },
		{ "# \xed\xa0\x80", 1, 3, "not UTF-8" },
		{ "\x7f"
		  "ELF",
		  1, 1, "control character 0x7f" },
	};

	policies_refused(cases, COUNT(cases));
	policy_refused(&(struct bad){ "table:\n  \0{}", 2, 3, "control character 0x00" }, 12);
	/* UTF-16 */
	policy_refused(&(struct bad){ "t\0a\0b\0", 1, 2, "control character 0x00" }, 6);
}

TEST(test_top_level)
{
	static const struct bad cases[] = {
		{ "- a", 1, 1, "found a list; accepted: a mapping of interfaces, table" },
		{ "words", 1, 1, "found \"words\"; accepted: a mapping" },
		{ "tabel: {}", 1, 1,
		  "unknown key \"tabel\" (did you mean \"table\"?); accepted: interfaces, table" },
		{ "table: {}\nblock: []\ntable: {}", 3, 1, "key \"table\" again, first in line 1" },
		{ "crowdsec: {}", 1, 1, "unknown key \"crowdsec\"" },
		{ "statsd: {address: 127.0.0.1:8125}", 1, 1,
		  "key \"statsd\": it was removed; accepted: metrics: {listen: " },
		{ "interfaces: [eth0]", 1, 14, "accepted: a mapping of name, mode" },
		{ "interfaces: [{mode: auto}]", 1, 14, "key \"name\" is missing" },
		{ "interfaces: [{name: averylonginterface}]", 1, 21, "1 to 15 characters" },
		{ "interfaces: [{name: a/b}]", 1, 21, "1 to 15 characters" },
		{ "interfaces: [{name: 's*'}]", 1, 21,
		  "found \"s*\"; accepted: an interface's name, "
		  "1 to 15 characters, as eth0; no pattern" },
		{ "interfaces: [{name: 'eth?'}]", 1, 21, "no pattern" },
		{ LIMIT "match: {interface: 'eth[01]'}", 4, 24, "no pattern" },
		{ "interfaces: [{name: a, mode: fast}]", 1, 30,
		  "accepted: auto, native, generic, offload" },
		{ "interfaces: [{name: a}, {name: a}]", 1, 32, "found \"a\" again" },
		{ "table: 1M", 1, 8, "accepted: a mapping of buckets" },
		{ "table: {buckets: 0}", 1, 18, "accepted: 1 to 1G" },
		{ "table: {buckets: 2G}", 1, 18, "accepted: 1 to 1G" },
		{ "table: {buckets: many}", 1, 18, "found \"many\": not a number" },
		{ "table: {buckets: [1]}", 1, 18, "found a list" },
		{ "failsafe: [22]", 1, 12, "accepted: PORT/tcp or PORT/udp" },
		{ "failsafe: [0/tcp]", 1, 12, "accepted: PORT/tcp" },
		{ "failsafe: [65536/tcp]", 1, 12, "accepted: PORT/tcp" },
		{ "failsafe: [22/icmp]", 1, 12, "accepted: PORT/tcp" },
		{ "failsafe_rate: 100", 1, 16, "not a rate" },
		{ "failsafe_rate: 100 packets/s", 1, 16, "accepted here: a rate in connections" },
		{ "essential: {rate: 1 bits/s}", 1, 19, "accepted here: a rate in packets" },
		{ "essential: {rate: 0 packets/s}", 1, 19, "rate of 0" },
		{ "on_parse_error: limit", 1, 17, "accepted: pass, drop" },
		{ "fragments: none", 1, 12, "accepted: limit, pass, drop" },
		{ "metrics: {}", 1, 10, "key \"listen\" is missing" },
		{ "metrics: {listen: localhost:1}", 1, 19, "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: 127.0.0.1}", 1, 19, "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: 127.0.0.1:0}", 1, 19, "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: 127.0.0.1:70000}", 1, 19, "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: 127.0.0.1:81a}", 1, 19, "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: '[::1:9810'}", 1, 19, "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: 'unix:/run/x'}", 1, 19, "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: '::1:9810'}", 1, 19, "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: 127.0.0.1:1, top_sources: 5}", 1, 32,
		  "unknown key \"top_sources\"" },
		{ "metrics: {listen: 127.0.0.1:1, max_values: 1M}", 1, 44, "accepted: 0 to 100K" },
		{ "control: {socket: run/x}", 1, 19, "an absolute path" },
		{ "control: {group: }", 1, 18, "found nothing; accepted: a group's name" },
		{ "state_dir: ''", 1, 12, "an absolute path" },
		{ "pin_dir: [/a]", 1, 10, "found a list; accepted: an absolute path" },
	};

	policies_refused(cases, COUNT(cases));
}

TEST(test_addresses)
{
	static const struct bad cases[] = {
		{ "block: [10.0.0.0/8,\n  10.1.2.3/16]", 2, 3, "found \"10.1.2.3/16\": host bits" },
		{ "block: [10.0.0.0/33]", 1, 9, "/0 to /32" },
		{ "exempt: [example.org]", 1, 10, "not an address" },
		{ "block: ['@bad']", 1, 9, "found \"@bad\", but there is no such set" },
		{ "block: [[1.2.3.4]]", 1, 9, "found a list" },
		{ "block: [{reason: x}]", 1, 9, "key \"prefix\" is missing" },
		{ "block: [{prefix: 1.2.3.4, until: soon}]", 1, 34, "not a time" },
		{ "block: [{prefix: 1.2.3.4, for: 10m}]", 1, 27,
		  "accepted: until, reason, prefix" },
		{ "sets: [1.2.3.4]", 1, 7, "accepted: a mapping from names" },
		{ "sets: {Bad: [1.2.3.4]}", 1, 8, "characters of a-z, 0-9 and -" },
		{ "sets: {a: [1.2.3.4, x]}", 1, 21, "sets.a: found \"x\"" },
		{ "sets: {a: ['@b']}", 1, 12, "a set is no part of a set" },
		{ "sets: {b: [],\n a: [], b: []}", 2, 9, "key \"b\" again, first in line 1" },
		{ "sets: {a: {path: x}}", 1, 11, "key \"file\" is missing" },
		{ LIMIT "match: {src: '@none'}", 4, 18, "there is no such set" },
		{ "sets: {none: []}\n" LIMIT "match: {src: '@none'}", 5, 18,
		  "the set \"@none\" is empty" },
	};

	policies_refused(cases, COUNT(cases));
}

TEST(test_limits)
{
	static const struct bad cases[] = {
		{ "limits: 5", 1, 9, "accepted: a list of limits" },
		{ "limits:\n  - rate: 1 packets/s", 2, 5, "limits[0]: key \"name\" is missing" },
		{ "limits:\n  - name: a", 2, 5, "limits[0] \"a\": key \"rate\" is missing" },
		{ "limits:\n  - {name: a, match: {dport: 53}}", 2, 5,
		  "accepted without it: action: drop, "
		  "pass or tag" },
		{ "limits:\n  - name: a\n    action: drop", 3, 5,
		  "it would apply to every packet" },
		{ "limits:\n  - name: a\n    action: pass", 3, 5,
		  "it would apply to every packet" },
		{ "limits:\n  - name: a\n    action: tag", 3, 5, "tag has neither" },
		{ "limits:\n  - name: a\n    match: {dport: 1}\n    action: drop\n    burst: 5", 5,
		  5,
		  "burst is about a rate, but none is given; accepted without a rate: match, action, tag, mode" },
		{ "limits:\n  - name: a\n    match: {dport: 1}\n    action: drop\n    per: source",
		  5, 5, "per is about a rate" },
		{ LIMIT "action: pass", 4, 5, "action is pass, but a rate is given" },
		{ "limits:\n  - name: Web\n    rate: 1 packets/s", 2, 11, "characters of a-z" },
		{ LIMIT "rte: 5", 4, 5,
		  "limits[0] \"web\": unknown key \"rte\" (did you mean \"rate\"?); accepted: name, match, "
		  "per, prefix, prefix_scale, dst_prefix, rate, burst, algorithm" },
		{ LIMIT "rate: 5 packets/s", 4, 5, "key \"rate\" again, first in line 3" },
		{ LIMIT "match:\n\n  - src", 6, 5,
		  "limits[1]: found \"src\"; accepted: a mapping of" },
		{ "limits:\n  - {name: a, rate: 1 packets/s}\n  - {name: a, rate: 1 packets/s}", 3,
		  5, "limits[1] \"a\": the name is taken by limits[0]" },
		{ "limits: [{name: a, rate: 10 requests/m}]", 1, 26, "HTTP tier" },
		{ "limits: [{name: a, rate: 10 pkts/m}]", 1, 26,
		  "unknown unit; accepted: packets" },
		{ "limits: [{name: a, rate: 0 packets/s}]", 1, 26, "rate of 0" },
		{ "limits: [{name: a, rate: 5G packets/s}]", 1, 26,
		  "rate: found \"5G packets/s\": "
		  "the rate is above" },
		{ LIMIT "burst: 0", 4, 12, "burst: found \"0\"; accepted: 1 or more" },
		{ LIMIT "burst: 100 packets", 4, 12, "not a number" },
		{ LIMIT "burst: 100000000G", 4, 12, "burst: found" },
		{ LIMIT "burst: 5\n    algorithm: fixed-window", 4, 5,
		  "burst is given, but algorithm is fixed-window" },
		{ LIMIT "algorithm: magic", 4, 16,
		  "accepted: token-bucket, leaky-bucket, fixed-window, "
		  "sliding-window" },
		{ LIMIT "burst: 5\n    algorithm: leaky-bucket", 4, 5,
		  "burst is given, but algorithm is leaky-bucket" },
		{ LIMIT "burst: 5\n    algorithm: sliding-window", 4, 5,
		  "algorithm is sliding-window" },
		{ LIMIT "accounting: some", 4, 17, "accepted: percpu, exact" },
		{ LIMIT "scope: world", 4, 12, "accepted: node, cluster" },
		{ LIMIT "scope: cluster\n    per: [interface]", 5, 5,
		  "per has interface, but scope is cluster" },
		{ LIMIT "prefix: {ipv4: 33}", 4, 20, "accepted: 0 to 32" },
		{ LIMIT "prefix: {ipv6: -1}", 4, 20, "accepted: 0 to 128" },
		{ LIMIT "per: [dst]\n    prefix: {ipv4: 24}", 5, 5, "per does not contain source" },
		{ LIMIT "per: [host]", 4, 11,
		  "accepted: source, dst, proto, dport, vlan, interface" },
		{ LIMIT "per: [dst, dst]", 4, 16, "found \"dst\" again" },
		{ LIMIT "action: tag", 4, 5, "tag has neither" },
		{ LIMIT "action: tag\n    tag: {}", 5, 5, "tag has neither" },
		{ LIMIT "action: tag\n    tag: {dscp: 64}", 5, 17, "cs0 to cs7" },
		{ LIMIT "action: tag\n    tag: {mark: 0x100000000}", 5, 17, "0 to 0xffffffff" },
		{ LIMIT "mode: on", 4, 11, "accepted: enforce, shadow, off" },
		{ LIMIT "mode: [off]", 4, 11, "found a list" },
	};

	policies_refused(cases, COUNT(cases));
}

/* The same without a rate: the case's text stands in line 3, column 5. */
#define NAMED "limits:\n  - name: web\n    "

TEST(test_rates)
{
	static const struct bad cases[] = {
		{ NAMED "rate: []", 3, 11, "rate: found an empty list; accepted: NUMBER[K|M|G]" },
		{ NAMED "rate: [1 packets/s, 9 packets]", 3, 25, "rate: found \"9 packets\"" },
		{ NAMED "rate: [1 packets/s, [2 packets/s]]", 3, 25, "rate: found a list" },
		{ NAMED "rate: [1 packets/s, 2 packets/s, 3 packets/s, 4 packets/s, 5 packets/s]",
		  3, 64, "one rate more than 4" },
		{ NAMED "rate: [1 packets/s, 5G packets/s]", 3, 25,
		  "rate: found \"5G packets/s\": "
		  "the rate is above" },
		{ NAMED "rate: [1 packets/s, 5 connections/s]\n    match: {proto: udp}", 3, 25,
		  "match leaves TCP out" },
		{ NAMED "rate: [1 packets/s, 9 packets/m]\n    burst: 5", 4, 12,
		  "burst: found one "
		  "burst, a list of 1 for 2 rates; accepted: a burst for each rate" },
		{ NAMED "rate: [1 packets/s, 9 packets/m]\n    burst: [5, 6, 7]", 4, 12,
		  "found a list of 3 for 2 rates" },
		{ LIMIT "burst: []", 4, 12, "found a list of 0 for 1 rate;" },
		{ NAMED "rate: [1 packets/s, 9 packets/m]\n    burst: [5, 0]", 4, 16, "1 or more" },
		{ NAMED "rate: [1 packets/s, 9 packets/m]\n    burst: [5, 100000000G]", 4, 16,
		  "burst: found \"100000000G\"" },
		{ LIMIT "prefix: {ipv4: []}", 4, 20, "accepted: a prefix length, or a list" },
		{ LIMIT "prefix: {ipv4: [32, 33]}", 4, 25, "accepted: 0 to 32" },
		{ LIMIT "prefix: {ipv4: [24, 32]}", 4, 25,
		  "found \"32\" behind 24; accepted: each "
		  "shorter" },
		{ LIMIT "prefix: {ipv6: [64, 64]}", 4, 25, "found \"64\" behind 64" },
		{ LIMIT "prefix: {ipv6: [64, 60, 56, 52, 48]}", 4, 37,
		  "one prefix length more than 4" },
		{ LIMIT "prefix_scale: {ipv4: [1, 16]}", 4, 26,
		  "found 2 multipliers for 1 prefix "
		  "length; accepted: one for each in prefix.ipv4" },
		{ LIMIT "prefix: {ipv6: [64, 48]}\n    prefix_scale: {ipv6: 4}", 5, 26,
		  "found 1 multiplier for 2 prefix lengths" },
		{ LIMIT "prefix: {ipv6: [64, 48]}\n    prefix_scale: {ipv6: [1, 0]}", 5, 30,
		  "a whole number, 1 to 65536" },
		{ LIMIT "prefix_scale: {ipv4: 65537}", 4, 26, "1 to 65536" },
		{ LIMIT "prefix_scale: {ipv4: 1.5}", 4, 26, "1 to 65536" },
		{ LIMIT "prefix_scale: [1, 2]", 4, 19, "accepted: a mapping of ipv4, ipv6" },
		{ LIMIT "per: [dst]\n    prefix_scale: {ipv4: 2}", 5, 5,
		  "prefix_scale groups sources, "
		  "but per does not contain source" },
		{ LIMIT "rounding: up", 4, 5, "the estimate of a packet limit is rounded down" },
		{ LIMIT "window: first-request", 4, 5,
		  "window is given, but algorithm is "
		  "token-bucket; accepted with it: algorithm: fixed-window" },
		{ "limits:\n  - name: web\n    rate: 10 packets/100ms\n    algorithm: fixed-window\n    scope: cluster",
		  3, 5, "accepted with it: 1s or more, or scope: node" },
		{ LIMIT "algorithm: fixed-window\n    window: first-request\n    scope: cluster", 5,
		  5, "a window begins at another time on each node" },
		{ LIMIT "algorithm: fixed-window\n    window: first-request\n"
			"    overrides: [{src: 192.0.2.1, rate: 1 packets/s}]",
		  6, 40, "window is first-request" },
		{ LIMIT "dst_prefix: {ipv6: 64}", 4, 5,
		  "dst_prefix groups destinations, but per "
		  "does not contain dst; accepted with it: per: [dst]" },
		{ LIMIT "per: [dst]\n    dst_prefix: {ipv6: 129}", 5, 24, "1 to 128" },
		{ LIMIT "per: [dst]\n    dst_prefix: {ipv4: 0}", 5, 24, "1 to 32" },
		{ LIMIT "per: [dst]\n    on_full: prefix", 5, 5, "accepted with it: open, closed" },
	};

	policies_refused(cases, COUNT(cases));
}

TEST(test_throttles)
{
	static const struct bad cases[] = {
		{ LIMIT "throttle: soft", 4, 15,
		  "throttle: found \"soft\"; accepted: hard, {soft: 10%" },
		{ LIMIT "throttle: {}", 4, 15, "found a mapping; accepted: hard, {soft" },
		{ LIMIT "throttle: [hard]", 4, 15, "found a list; accepted: hard, {soft" },
		{ LIMIT "throttle: {sfot: 10%}", 4, 16,
		  "unknown key \"sfot\" (did you mean \"soft\"?); accepted: soft, for, "
		  "elastic, floor, while" },
		{ LIMIT "throttle: {soft: 10}", 4, 22,
		  "throttle.soft: found \"10\"; accepted: 0.1% to" },
		{ LIMIT "throttle: {soft: 0%}", 4, 22, "accepted: 0.1% to 100%" },
		{ LIMIT "throttle: {soft: 100.1%}", 4, 22, "accepted: 0.1% to 100%" },
		{ LIMIT "throttle: {soft: 0.05%}", 4, 22, "accepted: 0.1% to 100%" },
		{ LIMIT "throttle: {soft: 5%, for: 500ms}", 4, 31, "a duration of 1s to 7d" },
		{ LIMIT "throttle: {soft: 5%, for: 30}", 4, 31,
		  "throttle.for: found \"30\": not a dur" },
		{ LIMIT "throttle: {elastic: 5000%, for: 5s, while: {cpu: 5%}}", 4, 32,
		  "\"for\" sets the duration" },
		{ LIMIT "throttle: {elastic: 200%}", 4, 15, "key \"while\" is missing" },
		{ LIMIT "throttle: {elastic: 99%, while: {cpu: 5%}}", 4, 25, "100% to 10000%" },
		{ LIMIT "throttle: {elastic: 100%, while: {cpu: 5%}}", 4, 16,
		  "a ceiling of 100%, which changes nothing" },
		{ LIMIT "throttle: {elastic: 200%, floor: 100%, while: {cpu: 5%}}", 4, 38,
		  "1% to 99% of the rate" },
		{ LIMIT "throttle: {elastic: 200%, floor: 0%, while: {cpu: 5%}}", 4, 38,
		  "1% to 99% of the rate" },
		{ LIMIT "throttle: {soft: 10%, floor: 5%}", 4, 27,
		  "\"floor\" is the least rate of elastic" },
		{ LIMIT "throttle: {elastic: 10001%, while: {cpu: 5%}}", 4, 25, "100% to 10000%" },
		{ LIMIT "throttle: {elastic: 150.5%, while: {cpu: 5%}}", 4, 25,
		  "in whole percent" },
		{ LIMIT "throttle: {elastic: 200%, while: {}}", 4, 38,
		  "one or more of cpu, link, "
		  "load_signal" },
		{ LIMIT "throttle: {elastic: 200%, while: cpu}", 4, 38,
		  "a mapping of cpu, link, load_signal" },
		{ LIMIT "throttle: {elastic: 200%, while: {cpu: 0%}}", 4, 44, "1% to 100%" },
		{ LIMIT "throttle: {elastic: 200%, while: {link: 101%}}", 4, 45, "1% to 100%" },
		{ LIMIT "throttle: {elastic: 200%, while: {load_signal: A}}", 4, 52,
		  "a-z, 0-9 and -" },
		{ LIMIT "throttle: {elastic: 200%, while: {load_signal: {a: 5%, b: 5%}}}", 4, 52,
		  "found a mapping of 2 keys" },
		{ LIMIT "throttle: {elastic: 200%, while: {load_signal: {a: 5}}}", 4, 56,
		  "1% to 100%" },
		{ LIMIT "throttle: {elastic: 200%, while: {cpu: 5%}, soft: 5%}", 4, 16,
		  "found soft and elastic" },
		{ LIMIT "throttle: {soft: 5%, while: {cpu: 5%}}", 4, 26,
		  "\"while\" sets the condition of elastic" },
		{ LIMIT "throttle: {while: {cpu: 5%}}", 4, 15, "found a mapping; accepted: hard" },
	};

	policies_refused(cases, COUNT(cases));
}

TEST(test_bans)
{
	static const struct bad cases[] = {
		{ LIMIT "ban: 5", 4, 10,
		  "ban: found \"5\"; accepted: a mapping of after, for, factor, "
		  "max, spoofable" },
		{ LIMIT "ban: {for: 5m}", 4, 10, "key \"after\" is missing" },
		{ LIMIT "ban: {after: 5 drops/s}", 4, 10, "key \"for\" is missing" },
		{ LIMIT "ban: {after: 5, for: 5m}", 4, 18,
		  "ban.after: found \"5\": not a count of drops; "
		  "accepted: NUMBER drops/PERIOD" },
		{ LIMIT "ban: {after: 0 drops/s, for: 5m}", 4, 18, "not a count of drops" },
		{ LIMIT "ban: {after: 5 drops/2d, for: 5m}", 4, 18, "up to 1G drops within a day" },
		{ LIMIT "ban: {after: 2G drops/s, for: 5m}", 4, 18, "up to 1G drops within a day" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5}", 4, 34, "not a duration" },
		{ LIMIT "ban: {after: 5 drops/s, for: 500ms}", 4, 34, "a duration of 1s to 365d" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5m, max: 366d}", 4, 43, "1s to 365d" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5m, max: 4m}", 4, 38,
		  "max is shorter than for" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5m, factor: 0.5}", 4, 46,
		  "1 to 100, as 2 or 1.5" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5m, factor: 101}", 4, 46, "1 to 100" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5m, spoofable: maybe}", 4, 49,
		  "accepted: true, false, yes, no" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5m}", 4, 5,
		  "a forged packet can match, and "
		  "ban the owner of its source address; accepted: spoofable: true" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5m}\n    match: {tcp_flags: [ack, syn]}", 4,
		  5, "a forged packet" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5m, spoofable: no}\n    match: {proto: tcp}",
		  4, 5, "a forged packet" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5m, spoofable: yes}\n    per: [dst]", 4, 5,
		  "per does not contain source" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5m, spoofable: yes}\n    action: tag\n"
			"    tag: {mark: 1}",
		  4, 5, "action is tag" },
		{ "limits:\n"
		  "  - {name: a, rate: 5 packets/s, prefix: {ipv4: [32, 28, 24, 20]},\n"
		  "     ban: {after: 5 drops/s, for: 5m, spoofable: yes}}\n"
		  "  - {name: b, rate: 5 packets/s, prefix: {ipv4: [24, 16]}}\n"
		  "  - {name: c, rate: 5 packets/s, prefix: {ipv4: [24, 16]},\n"
		  "     ban: {after: 5 drops/s, for: 5m, spoofable: yes}}\n",
		  5, 5,
		  "limits[2] \"c\": ban: found IPv4 prefix length 16, one too many; "
		  "accepted: up to 4 different lengths" },
	};

	policies_refused(cases, COUNT(cases));
}

TEST(test_matches)
{
	static const struct bad cases[] = {
		{ LIMIT "match: [src]", 4, 12, "accepted: a mapping of src, dst, proto" },
		{ LIMIT "match: {dprt: 5}", 4, 13, "match: unknown key \"dprt\"" },
		{ LIMIT "match: {src: []}", 4, 18, "found an empty list" },
		{ LIMIT "match: {src: 10.0.0.1/8}", 4, 18, "match.src: found \"10.0.0.1/8\"" },
		{ LIMIT "match: {proto: tpc}", 4, 20, "accepted: tcp, udp, icmp" },
		{ LIMIT "match: {proto: 256}", 4, 20, "0 to 255" },
		{ LIMIT "match: {dport: 65536}", 4, 20, "0 to 65535" },
		{ LIMIT "match: {dport: [80, 90-80]}", 4, 25, "the smaller number first" },
		{ LIMIT "match: {dport: 80-}", 4, 20, "a port or a range" },
		{ LIMIT "match: {dport: http}", 4, 20, "a port or a range" },
		{ LIMIT "match: {vlan: 4096}", 4, 19, "0 to 4095" },
		{ LIMIT "match: {length: 0-65536}", 4, 21, "0 to 65535" },
		{ LIMIT "match: {tcp_flags: 'syn,!akc'}", 4, 24, "accepted: flags" },
		{ LIMIT "match: {tcp_flags: 'syn,'}", 4, 24, "accepted: flags" },
		{ LIMIT "match: {tcp_flags: 'syn,!syn'}", 4, 24, "each flag once" },
		{ LIMIT "match: {icmp_type: ping}", 4, 24, "echo-request" },
		{ LIMIT "match: {icmp_type: 256}", 4, 24, "0 to 255" },
		{ LIMIT "match: {interface: ''}", 4, 24, "an interface's name" },
		{ LIMIT "match: {proto: icmp, dport: 53}", 4, 26,
		  "none of the protocols in proto has "
		  "ports" },
		{ LIMIT "match: {proto: [47, 50], sport: 53}", 4, 30, "has ports" },
		{ LIMIT "match: {proto: udp, tcp_flags: syn}", 4, 25, "proto leaves tcp out" },
		{ LIMIT "match: {proto: tcp, icmp_type: 8}", 4, 25,
		  "accepted with it: icmp, icmpv6" },
		{ LIMIT "match: {proto: icmp, icmp_type: packet-too-big}", 4, 26,
		  "accepted with it: icmpv6" },
		{ LIMIT "match: {dport: 5, icmp_type: 8}", 4, 12, "no packet can meet" },
		{ LIMIT "match: {src: 10.0.0.0/8, dst: '::1'}", 4, 12, "no packet can meet" },
		{ LIMIT "match: {src: '::/0', icmp_type: redirect}", 4, 12, "no packet can meet" },
		{ "limits: [{name: a, rate: 5 connections/s, match: {proto: [udp, icmp]}}]", 1, 26,
		  "match leaves TCP out" },
	};

	policies_refused(cases, COUNT(cases));
}

static const char *write_file(char *path, const char *text)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return path;
}

TEST(test_set_file)
{
	char path[] = "/tmp/sluice-set-XXXXXX", yaml[128], place[64];
	struct policy *policy = NULL;
	struct sl_err err;

	/* A bad line is skipped, also one that is no text; most of them are no list. */
	write_file(path,
		   "# bad\n192.0.2.0/24\n\t 2001:db8::/32 # two \xff\r\n\n  192.0.2.1/24\n\xff\n");
	snprintf(yaml, sizeof(yaml), "sets: {bad: {file: %s}}\nblock: ['@bad']", path);
	assert_int_equal(policy_parse("x.yaml", yaml, strlen(yaml), &policy, &err), 0);
	assert_int_equal(policy->list[LIST_BLOCK].count, 2);
	assert_int_equal(policy->set[0].lines, 4);
	assert_int_equal(policy->set[0].skipped, 2);
	assert_int_equal(policy->set[0].skipped_first, 5);
	policy_free(policy);
	policy = NULL;
	unlink(path);
	strcpy(path, "/tmp/sluice-set-XXXXXX");
	write_file(path, "192.0.2.0/24\nroot:x:0:0\ndaemon:x:1:1\n");
	snprintf(yaml, sizeof(yaml), "sets: {bad: {file: %s}}\nblock: ['@bad']", path);
	assert_int_equal(policy_parse("x.yaml", yaml, strlen(yaml), &policy, &err), -EINVAL);
	assert_null(strstr(err.message, "root"));
	snprintf(place, sizeof(place), "%s:2:1: sets.bad.file: 2 of 3 lines are no prefixes", path);
	sl_err_format(&err, yaml, sizeof(yaml));
	assert_memory_equal(yaml, place, strlen(place));
	unlink(path);

	snprintf(yaml, sizeof(yaml), "sets: {bad: {file: %s}}", path);
	assert_int_equal(policy_parse("x.yaml", yaml, strlen(yaml), &policy, &err), -ENOENT);
	assert_string_equal(err.file, path);

	/* a file without an end, or one that blocks its reader */
	snprintf(yaml, sizeof(yaml), "sets: {bad: {file: /dev/zero}}");
	assert_int_equal(policy_parse("x.yaml", yaml, strlen(yaml), &policy, &err), -EINVAL);
	assert_string_equal(err.message, "not a regular file");
	assert_null(policy);
}

TEST(test_no_file)
{
	struct policy *policy = NULL;
	struct sl_err err;

	assert_int_equal(policy_load("/nonexistent/x.yaml", &policy, &err), -ENOENT);
	assert_string_equal(err.file, "/nonexistent/x.yaml");
	assert_int_equal(policy_load("/tmp", &policy, &err), -EISDIR);
	assert_null(policy);
}

TEST_MAIN
