// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Errors: each case is a configuration, in which '^' marks the place of the error, and a part of
 * its message. */
#include <time.h>
#include <unistd.h>

#include "lib/test.h"
#include "lib/policy_text.h"

/* The same inside of a limit: the case's text stands after this, in line 4, column 5. */
#define LIMIT "limits:\n  - name: web\n    rate: 1000 packets/s\n    "

TEST(test_text)
{
	static const struct bad cases[] = {
		{ "^", "nothing but blank lines" },
		{ "^# only this\n\n", "nothing but blank lines" },
		{ "^~", "nothing but blank lines" },
		{ "table:\n^\tbuckets: 1", "found a tab; accepted: spaces" },
		{ "block: [10.0.0.0/8\n^", "from line 1, column 8" },
		{ "state_dir: \"/x\n^", "while scanning a quoted scalar" },
		{ "a: b^: c", "mapping values are not allowed" },
		{ "exempt: [^@partners]", "found '@'" },
		{ "never_ban: ^[{prefix: 10.0.0.1, until: '2030-01-31T12:00:00Z'}]",
		  "without until" },
		{ LIMIT "match: {tcp_flags: ^!ack}", "quote a value that begins with '!'" },
		{ "block: ^!!set [1.2.3.4]", "found the tag" },
		{ "block: ^*all", "found the alias \"*all\", but no anchor \"&all\" before it" },
		{ "table: {buckets: 1}\n^---\ntable: {buckets: 2}", "second document" },
		{ "{^[a]: b}", "found a list as a key" },
		{ "? ^{a: b}\n: c", "found a mapping as a key" },
		{ "state_dir: ^\"/a\\tb\"", "control characters" },
		{ "state_dir: ^|\n  /a\n  /b\n", "line breaks" },
		{ "block:\n  [[[[[[[[[[[[[[[^[[[1]]]]]]]]]]]]]]]]]]", "nested too deep" },
		{ "state_dir: /^\xff", "byte 0xff, which is not UTF-8" },
		{ "# \xc3\xa4\nstate_dir: /^\xc3", "byte 0xc3" },
		{ "# ^\xed\xa0\x80", "not UTF-8" },
		{ "^\x7f"
		  "ELF",
		  "control character 0x7f" },
	};

	policies_refused(cases, COUNT(cases));
	policy_refused(&(struct bad){ "table:\n  ^\0{}", "control character 0x00" }, 13);
	/* UTF-16 */
	policy_refused(&(struct bad){ "t^\0a\0b\0", "control character 0x00" }, 7);
}

TEST(test_top_level)
{
	static const struct bad cases[] = {
		{ "^- a", "found a list; accepted: a mapping of interfaces, table" },
		{ "^words", "found \"words\"; accepted: a mapping" },
		{ "^tabel: {}",
		  "unknown key \"tabel\" (did you mean \"table\"?); accepted: interfaces, table" },
		{ "table: {}\nblock: []\n^table: {}", "key \"table\" again, first in line 1" },
		{ "^crowdsec: {}", "unknown key \"crowdsec\"" },
		{ "^statsd: {address: 127.0.0.1:8125}",
		  "key \"statsd\": it was removed; accepted: metrics: {listen: " },
		{ "interfaces: [^eth0]", "accepted: a mapping of name, mode" },
		{ "interfaces: [^{mode: auto}]", "key \"name\" is missing" },
		{ "interfaces: [{name: ^averylonginterface}]", "1 to 15 characters" },
		{ "interfaces: [{name: ^a/b}]", "1 to 15 characters" },
		{ "interfaces: [{name: ^'s*'}]",
		  "found \"s*\"; accepted: an interface's name, 1 to 15 characters, as eth0; no pattern" },
		{ "interfaces: [{name: ^'eth?'}]", "no pattern" },
		{ LIMIT "match: {interface: ^'eth[01]'}", "no pattern" },
		{ "interfaces: [{name: a, mode: ^fast}]", "accepted: auto, native, generic" },
		{ "interfaces: [{name: a}, {name: ^a}]", "found \"a\" again" },
		{ "table: ^1M", "accepted: a mapping of buckets" },
		{ "table: {buckets: ^0}", "accepted: 1 to 1G" },
		{ "table: {buckets: ^2G}", "accepted: 1 to 1G" },
		{ "table: {buckets: ^many}", "found \"many\": not a number" },
		{ "table: {buckets: ^[1]}", "found a list" },
		{ "failsafe: [^22]", "accepted: PORT/tcp or PORT/udp" },
		{ "failsafe: [^0/tcp]", "accepted: PORT/tcp" },
		{ "failsafe: [^65536/tcp]", "accepted: PORT/tcp" },
		{ "failsafe: [^22/icmp]", "accepted: PORT/tcp" },
		{ "failsafe_rate: ^100", "not a rate" },
		{ "failsafe_rate: ^100 packets/s", "accepted here: a rate in connections" },
		{ "essential: {rate: ^1 bits/s}", "accepted here: a rate in packets" },
		{ "essential: {rate: ^0 packets/s}", "rate of 0" },
		{ "on_parse_error: ^limit", "accepted: pass, drop" },
		{ "fragments: ^none", "accepted: limit, pass, drop" },
		{ "metrics: ^{}", "key \"listen\" is missing" },
		{ "metrics: {listen: ^localhost:1}", "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: ^127.0.0.1}", "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: ^127.0.0.1:0}", "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: ^127.0.0.1:70000}", "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: ^127.0.0.1:81a}", "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: ^'[::1:9810'}", "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: ^'unix:/run/x'}", "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: ^'::1:9810'}", "accepted: ADDRESS:PORT" },
		{ "metrics: {listen: 127.0.0.1:1, ^top_sources: 5}",
		  "unknown key \"top_sources\"" },
		{ "metrics: {listen: 127.0.0.1:1, max_values: ^1M}", "accepted: 0 to 100K" },
		{ "control: {socket: ^run/x}", "an absolute path" },
		{ "control: {group: ^}", "found nothing; accepted: a group's name" },
		{ "state_dir: ^''", "an absolute path" },
		{ "pin_dir: ^[/a]", "found a list; accepted: an absolute path" },
	};

	policies_refused(cases, COUNT(cases));
}

TEST(test_addresses)
{
	static const struct bad cases[] = {
		{ "block: [10.0.0.0/8,\n  ^10.1.2.3/16]", "found \"10.1.2.3/16\": host bits" },
		{ "block: [^10.0.0.0/33]", "/0 to /32" },
		{ "exempt: [^example.org]", "not an address" },
		{ "block: [^'@bad']", "found \"@bad\", but there is no such set" },
		{ "block: [^[1.2.3.4]]", "found a list" },
		{ "block: [^{reason: x}]", "key \"prefix\" is missing" },
		{ "block: [{prefix: 1.2.3.4, until: ^soon}]", "not a time" },
		{ "block: [{prefix: 1.2.3.4, ^for: 10m}]", "accepted: until, reason, prefix" },
		{ "sets: ^[1.2.3.4]", "accepted: a mapping from names" },
		{ "sets: {^Bad: [1.2.3.4]}", "characters of a-z, 0-9 and -" },
		{ "sets: {a: [1.2.3.4, ^x]}", "sets.a: found \"x\"" },
		{ "sets: {a: [^'@b']}", "a set is no part of a set" },
		{ "sets: {b: [],\n a: [], ^b: []}", "key \"b\" again, first in line 1" },
		{ "sets: {a: ^{path: x}}", "key \"file\" is missing" },
		{ LIMIT "match: {src: ^'@none'}", "there is no such set" },
		{ "sets: {none: []}\n" LIMIT "match: {src: ^'@none'}",
		  "the set \"@none\" is empty" },
	};

	policies_refused(cases, COUNT(cases));
}

TEST(test_limits)
{
	static const struct bad cases[] = {
		{ "limits: ^5", "accepted: a list of limits" },
		{ "limits:\n  - ^rate: 1 packets/s", "limits[0]: key \"name\" is missing" },
		{ "limits:\n  - ^name: a", "limits[0] \"a\": key \"rate\" is missing" },
		{ "limits:\n  - ^{name: a, match: {dport: 53}}",
		  "accepted without it: action: drop, pass or tag" },
		{ "limits:\n  - name: a\n    ^action: drop", "it would apply to every packet" },
		{ "limits:\n  - name: a\n    ^action: pass", "it would apply to every packet" },
		{ "limits:\n  - name: a\n    ^action: tag", "tag has neither" },
		{ "limits:\n  - name: a\n    match: {dport: 1}\n    action: drop\n    ^burst: 5",
		  "burst is about a rate, but none is given; accepted without a rate: match, action, tag, mode" },
		{ "limits:\n  - name: a\n    match: {dport: 1}\n    action: drop\n    ^per: source",
		  "per is about a rate" },
		{ LIMIT "^action: pass", "action is pass, but a rate is given" },
		{ "limits:\n  - name: ^Web\n    rate: 1 packets/s", "characters of a-z" },
		{ LIMIT "^rte: 5",
		  "limits[0] \"web\": unknown key \"rte\" (did you mean \"rate\"?); accepted: name, match, per, prefix, prefix_scale, dst_prefix, rate, burst, algorithm" },
		{ LIMIT "^rate: 5 packets/s", "key \"rate\" again, first in line 3" },
		{ LIMIT "match:\n\n  - ^src", "limits[1]: found \"src\"; accepted: a mapping of" },
		{ "limits:\n  - {name: a, rate: 1 packets/s}\n  - ^{name: a, rate: 1 packets/s}",
		  "limits[1] \"a\": the name is taken by limits[0]" },
		{ "limits: [{name: a, rate: ^10 requests/m}]", "HTTP tier" },
		{ "limits: [{name: a, rate: ^10 pkts/m}]", "unknown unit; accepted: packets" },
		{ "limits: [{name: a, rate: ^0 packets/s}]", "rate of 0" },
		{ "limits: [{name: a, rate: ^5G packets/s}]",
		  "rate: found \"5G packets/s\": the rate is above" },
		{ LIMIT "burst: ^0", "burst: found \"0\"; accepted: 1 or more" },
		{ LIMIT "burst: ^100 packets", "not a number" },
		{ LIMIT "burst: ^100000000G", "burst: found" },
		{ LIMIT "^burst: 5\n    algorithm: fixed-window",
		  "burst is given, but algorithm is fixed-window" },
		{ LIMIT "algorithm: ^magic",
		  "accepted: token-bucket, leaky-bucket, fixed-window, sliding-window" },
		{ LIMIT "^burst: 5\n    algorithm: leaky-bucket",
		  "burst is given, but algorithm is leaky-bucket" },
		{ LIMIT "^burst: 5\n    algorithm: sliding-window", "algorithm is sliding-window" },
		{ LIMIT "accounting: ^some", "accepted: percpu, exact" },
		{ LIMIT "scope: ^world", "accepted: node, cluster" },
		{ LIMIT "scope: cluster\n    ^per: [interface]",
		  "per has interface, but scope is cluster" },
		{ LIMIT "prefix: {ipv4: ^33}", "accepted: 0 to 32" },
		{ LIMIT "prefix: {ipv6: ^-1}", "accepted: 0 to 128" },
		{ LIMIT "per: [dst]\n    ^prefix: {ipv4: 24}", "per does not contain source" },
		{ LIMIT "per: [^host]", "accepted: source, dst, proto, dport, vlan, interface" },
		{ LIMIT "per: [dst, ^dst]", "found \"dst\" again" },
		{ LIMIT "^action: tag", "tag has neither" },
		{ LIMIT "action: tag\n    ^tag: {}", "tag has neither" },
		{ LIMIT "action: tag\n    tag: {dscp: ^64}", "cs0 to cs7" },
		{ LIMIT "action: tag\n    tag: {mark: ^0x100000000}", "0 to 0xffffffff" },
		{ LIMIT "mode: ^on", "accepted: enforce, shadow, off" },
		{ LIMIT "mode: ^[off]", "found a list" },
	};

	policies_refused(cases, COUNT(cases));
}

/* The same without a rate: the case's text stands in line 3, column 5. */
#define NAMED "limits:\n  - name: web\n    "

TEST(test_rates)
{
	static const struct bad cases[] = {
		{ NAMED "rate: ^[]", "rate: found an empty list; accepted: NUMBER[K|M|G]" },
		{ NAMED "rate: [1 packets/s, ^9 packets]", "rate: found \"9 packets\"" },
		{ NAMED "rate: [1 packets/s, ^[2 packets/s]]", "rate: found a list" },
		{ NAMED "rate: [1 packets/s, 2 packets/s, 3 packets/s, 4 packets/s, ^5 packets/s]",
		  "one rate more than 4" },
		{ NAMED "rate: [1 packets/s, ^5G packets/s]",
		  "rate: found \"5G packets/s\": the rate is above" },
		{ NAMED "rate: [1 packets/s, ^5 connections/s]\n    match: {proto: udp}",
		  "match leaves TCP out" },
		{ NAMED "rate: [1 packets/s, 9 packets/m]\n    burst: ^5",
		  "burst: found one burst, a list of 1 for 2 rates; accepted: a burst for each rate" },
		{ NAMED "rate: [1 packets/s, 9 packets/m]\n    burst: ^[5, 6, 7]",
		  "found a list of 3 for 2 rates" },
		{ LIMIT "burst: ^[]", "found a list of 0 for 1 rate;" },
		{ NAMED "rate: [1 packets/s, 9 packets/m]\n    burst: [5, ^0]", "1 or more" },
		{ NAMED "rate: [1 packets/s, 9 packets/m]\n    burst: [5, ^100000000G]",
		  "burst: found \"100000000G\"" },
		{ LIMIT "prefix: {ipv4: ^[]}", "accepted: a prefix length, or a list" },
		{ LIMIT "prefix: {ipv4: [32, ^33]}", "accepted: 0 to 32" },
		{ LIMIT "prefix: {ipv4: [24, ^32]}",
		  "found \"32\" behind 24; accepted: each shorter" },
		{ LIMIT "prefix: {ipv6: [64, ^64]}", "found \"64\" behind 64" },
		{ LIMIT "prefix: {ipv6: [64, 60, 56, 52, ^48]}", "one prefix length more than 4" },
		{ LIMIT "prefix_scale: {ipv4: ^[1, 16]}",
		  "found 2 multipliers for 1 prefix length; accepted: one for each in prefix.ipv4" },
		{ LIMIT "prefix: {ipv6: [64, 48]}\n    prefix_scale: {ipv6: ^4}",
		  "found 1 multiplier for 2 prefix lengths" },
		{ LIMIT "prefix: {ipv6: [64, 48]}\n    prefix_scale: {ipv6: [1, ^0]}",
		  "a whole number, 1 to 65536" },
		{ LIMIT "prefix_scale: {ipv4: ^65537}", "1 to 65536" },
		{ LIMIT "prefix_scale: {ipv4: ^1.5}", "1 to 65536" },
		{ LIMIT "prefix_scale: ^[1, 2]", "accepted: a mapping of ipv4, ipv6" },
		{ LIMIT "per: [dst]\n    ^prefix_scale: {ipv4: 2}",
		  "prefix_scale groups sources, but per does not contain source" },
		{ LIMIT "^calendar: UTC", "windows of packets are aligned to UTC" },
		{ LIMIT "^rounding: up", "the estimate of a packet limit is rounded down" },
		{ LIMIT "^window: first-request",
		  "window is given, but algorithm is token-bucket; accepted with it: algorithm: fixed-window" },
		{ "limits:\n  - name: web\n    ^rate: 10 packets/100ms\n    algorithm: fixed-window\n    scope: cluster",
		  "accepted with it: 1s or more, or scope: node" },
		{ LIMIT "algorithm: fixed-window\n    ^window: first-request\n    scope: cluster",
		  "a window begins at another time on each node" },
		{ LIMIT "algorithm: fixed-window\n    window: first-request\n"
			"    overrides: [{src: 192.0.2.1, rate: ^1 packets/s}]",
		  "window is first-request" },
		{ LIMIT "^dst_prefix: {ipv6: 64}",
		  "dst_prefix groups destinations, but per does not contain dst; accepted with it: per: [dst]" },
		{ LIMIT "per: [dst]\n    dst_prefix: {ipv6: ^129}", "1 to 128" },
		{ LIMIT "per: [dst]\n    dst_prefix: {ipv4: ^0}", "1 to 32" },
		{ LIMIT "per: [dst]\n    ^on_full: prefix", "accepted with it: open, closed" },
	};

	policies_refused(cases, COUNT(cases));
}

TEST(test_throttles)
{
	static const struct bad cases[] = {
		{ LIMIT "throttle: ^soft", "throttle: found \"soft\"; accepted: hard, {soft: 10%" },
		{ LIMIT "throttle: ^{}", "found a mapping; accepted: hard, {soft" },
		{ LIMIT "throttle: ^[hard]", "found a list; accepted: hard, {soft" },
		{ LIMIT "throttle: {^sfot: 10%}",
		  "unknown key \"sfot\" (did you mean \"soft\"?); accepted: soft, for, elastic, floor, while" },
		{ LIMIT "throttle: {soft: ^10}", "throttle.soft: found \"10\"; accepted: 0.1% to" },
		{ LIMIT "throttle: {soft: ^0%}", "accepted: 0.1% to 100%" },
		{ LIMIT "throttle: {soft: ^100.1%}", "accepted: 0.1% to 100%" },
		{ LIMIT "throttle: {soft: ^0.05%}", "accepted: 0.1% to 100%" },
		{ LIMIT "throttle: {soft: 5%, for: ^500ms}", "a duration of 1s to 7d" },
		{ LIMIT "throttle: {soft: 5%, for: ^30}", "throttle.for: found \"30\": not a dur" },
		{ LIMIT "throttle: {elastic: 5000%, ^for: 5s, while: {cpu: 5%}}",
		  "\"for\" sets the duration" },
		{ LIMIT "throttle: ^{elastic: 200%}", "key \"while\" is missing" },
		{ LIMIT "throttle: {elastic: ^99%, while: {cpu: 5%}}", "100% to 10000%" },
		{ LIMIT "throttle: {^elastic: 100%, while: {cpu: 5%}}",
		  "a ceiling of 100%, which changes nothing" },
		{ LIMIT "throttle: {elastic: 200%, floor: ^100%, while: {cpu: 5%}}",
		  "1% to 99% of the rate" },
		{ LIMIT "throttle: {elastic: 200%, floor: ^0%, while: {cpu: 5%}}",
		  "1% to 99% of the rate" },
		{ LIMIT "throttle: {soft: 10%, ^floor: 5%}",
		  "\"floor\" is the least rate of elastic" },
		{ LIMIT "throttle: {elastic: ^10001%, while: {cpu: 5%}}", "100% to 10000%" },
		{ LIMIT "throttle: {elastic: ^150.5%, while: {cpu: 5%}}", "in whole percent" },
		{ LIMIT "throttle: {elastic: 200%, while: ^{}}",
		  "one or more of cpu, link, load_signal" },
		{ LIMIT "throttle: {elastic: 200%, while: ^cpu}",
		  "a mapping of cpu, link, load_signal" },
		{ LIMIT "throttle: {elastic: 200%, while: {cpu: ^0%}}", "1% to 100%" },
		{ LIMIT "throttle: {elastic: 200%, while: {link: ^101%}}", "1% to 100%" },
		{ LIMIT "throttle: {elastic: 200%, while: {load_signal: ^A}}", "a-z, 0-9 and -" },
		{ LIMIT "throttle: {elastic: 200%, while: {load_signal: ^{a: 5%, b: 5%}}}",
		  "found a mapping of 2 keys" },
		{ LIMIT "throttle: {elastic: 200%, while: {load_signal: {a: ^5}}}", "1% to 100%" },
		{ LIMIT "throttle: {^elastic: 200%, while: {cpu: 5%}, soft: 5%}",
		  "found soft and elastic" },
		{ LIMIT "throttle: {soft: 5%, ^while: {cpu: 5%}}",
		  "\"while\" sets the condition of elastic" },
		{ LIMIT "throttle: ^{while: {cpu: 5%}}", "found a mapping; accepted: hard" },
	};

	policies_refused(cases, COUNT(cases));
}

TEST(test_bans)
{
	static const struct bad cases[] = {
		{ LIMIT "ban: ^5",
		  "ban: found \"5\"; accepted: a mapping of after, for, factor, max, spoofable" },
		{ LIMIT "ban: ^{for: 5m}", "key \"after\" is missing" },
		{ LIMIT "ban: ^{after: 5 drops/s}", "key \"for\" is missing" },
		{ LIMIT "ban: {after: ^5, for: 5m}",
		  "ban.after: found \"5\": not a count of drops; accepted: NUMBER drops/PERIOD" },
		{ LIMIT "ban: {after: ^0 drops/s, for: 5m}", "not a count of drops" },
		{ LIMIT "ban: {after: ^5 drops/2d, for: 5m}", "up to 1G drops within a day" },
		{ LIMIT "ban: {after: ^2G drops/s, for: 5m}", "up to 1G drops within a day" },
		{ LIMIT "ban: {after: 5 drops/s, for: ^5}", "not a duration" },
		{ LIMIT "ban: {after: 5 drops/s, for: ^500ms}", "a duration of 1s to 365d" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5m, max: ^366d}", "1s to 365d" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5m, ^max: 4m}", "max is shorter than for" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5m, factor: ^0.5}", "1 to 100, as 2 or 1.5" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5m, factor: ^101}", "1 to 100" },
		{ LIMIT "ban: {after: 5 drops/s, for: 5m, spoofable: ^maybe}",
		  "accepted: true, false, yes, no" },
		{ LIMIT "^ban: {after: 5 drops/s, for: 5m}",
		  "a forged packet can match, and ban the owner of its source address; accepted: spoofable: true" },
		{ LIMIT "^ban: {after: 5 drops/s, for: 5m}\n    match: {tcp_flags: [ack, syn]}",
		  "a forged packet" },
		{ LIMIT "^ban: {after: 5 drops/s, for: 5m, spoofable: no}\n    match: {proto: tcp}",
		  "a forged packet" },
		{ LIMIT "^ban: {after: 5 drops/s, for: 5m, spoofable: yes}\n    per: [dst]",
		  "per does not contain source" },
		{ LIMIT "^ban: {after: 5 drops/s, for: 5m, spoofable: yes}\n    action: tag\n"
			"    tag: {mark: 1}",
		  "action is tag" },
		{ "limits:\n"
		  "  - {name: a, rate: 5 packets/s, prefix: {ipv4: [32, 28, 24, 20]},\n"
		  "     ban: {after: 5 drops/s, for: 5m, spoofable: yes}}\n"
		  "  - {name: b, rate: 5 packets/s, prefix: {ipv4: [24, 16]}}\n"
		  "  - ^{name: c, rate: 5 packets/s, prefix: {ipv4: [24, 16]},\n"
		  "     ban: {after: 5 drops/s, for: 5m, spoofable: yes}}\n",
		  "limits[2] \"c\": ban: found IPv4 prefix length 16, one too many; accepted: up to 4 different lengths" },
	};

	policies_refused(cases, COUNT(cases));
}

TEST(test_matches)
{
	static const struct bad cases[] = {
		{ LIMIT "match: ^[src]", "accepted: a mapping of src, dst, proto" },
		{ LIMIT "match: {^dprt: 5}", "match: unknown key \"dprt\"" },
		{ LIMIT "match: {src: ^[]}", "found an empty list" },
		{ LIMIT "match: {src: ^10.0.0.1/8}", "match.src: found \"10.0.0.1/8\"" },
		{ LIMIT "match: {proto: ^tpc}", "accepted: tcp, udp, icmp" },
		{ LIMIT "match: {proto: ^256}", "0 to 255" },
		{ LIMIT "match: {dport: ^65536}", "0 to 65535" },
		{ LIMIT "match: {dport: [80, ^90-80]}", "the smaller number first" },
		{ LIMIT "match: {dport: ^80-}", "a port or a range" },
		{ LIMIT "match: {dport: ^http}", "a port or a range" },
		{ LIMIT "match: {vlan: ^4096}", "0 to 4095" },
		{ LIMIT "match: {length: ^0-65536}", "0 to 65535" },
		{ LIMIT "match: {tcp_flags: ^'syn,!akc'}", "accepted: flags" },
		{ LIMIT "match: {tcp_flags: ^'syn,'}", "accepted: flags" },
		{ LIMIT "match: {tcp_flags: ^'syn,!syn'}", "each flag once" },
		{ LIMIT "match: {icmp_type: ^ping}", "echo-request" },
		{ LIMIT "match: {icmp_type: ^256}", "0 to 255" },
		{ LIMIT "match: {interface: ^''}", "an interface's name" },
		{ LIMIT "match: {proto: icmp, ^dport: 53}",
		  "none of the protocols in proto has ports" },
		{ LIMIT "match: {proto: [47, 50], ^sport: 53}", "has ports" },
		{ LIMIT "match: {proto: udp, ^tcp_flags: syn}", "proto leaves tcp out" },
		{ LIMIT "match: {proto: tcp, ^icmp_type: 8}", "accepted with it: icmp, icmpv6" },
		{ LIMIT "match: {proto: icmp, ^icmp_type: packet-too-big}",
		  "accepted with it: icmpv6" },
		{ LIMIT "match: ^{dport: 5, icmp_type: 8}", "no packet can meet" },
		{ LIMIT "match: ^{src: 10.0.0.0/8, dst: '::1'}", "no packet can meet" },
		{ LIMIT "match: ^{src: '::/0', icmp_type: redirect}", "no packet can meet" },
		{ "limits: [{name: a, rate: ^5 connections/s, match: {proto: [udp, icmp]}}]",
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
