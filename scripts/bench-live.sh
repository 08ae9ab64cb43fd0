#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# bench-live.sh [WORD] - ms from a command to the first packet or request that is judged by its change
# (tests/bench/live_change.c): with ten limits, and beside 100k prefixes, overrides, blocks, and rules. Of the
# cases whose line contains WORD. Two directions in turns, BENCH_CHANGES (250) of both together; median, p90,
# p99, most, and the median time to the answer. Needs root; figures of a machine with other work are those of
# the work.

set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib/netns.sh
: "${BENCH_CHANGES:=250}" "${BENCH_MANY:=100000}"
WORD=${1:-}

lab_begin live
lab_link 0
mkdir "$LAB/rules"
# addresses: that none of the sources has.
addresses() { awk -v n="$BENCH_MANY" 'BEGIN { for (i = 0; i < n; i++) printf "10.%d.%d.%d\n", 64 + int(i / 65536),
	int(i / 256) % 256, i % 256 }'; }
addresses > "$LAB/many.txt"
SETS="sets: {many: {file: $LAB/many.txt}}"
addresses | sed 's/$/,10 packets\/s/' > "$LAB/many.csv"
{
	printf 'domain: api\ndescriptors:\n  - {key: user, limits: 1000000 requests/s}\n'
	seq "$BENCH_MANY" | sed 's/.*/  - {key: k&, limits: & requests\/s}/'
} > "$LAB/rules/many.yaml"

request() { jq -nc --arg c "$1" --argjson a "$2" '{command: $c, args: $a}'; }
# measure NAME REFUSE PASS ARG...
measure() {
	local name=$1

	shift
	[[ "$BESIDE, $name" == *"$WORD"* ]] || return 0
	printf '%s, %s\t' "$BESIDE" "$name"
	on_server "$TOOLS/bench/live_change" "$SOCKET" "$BENCH_CHANGES" "$@" || not_ok "$BESIDE, $name"
}
packets() { measure "$@" packets "$NS_C" c0 s0 --dst $SERVER4 --src 10.1.5.2 --dport 80; }
requests() { measure "$@" requests 8180 \
	'{"domain": "api", "descriptors": [{"entries": [{"key": "user", "value": "eve"}]}]}'; }

limit_set() { packets "limit set" \
	"$(request "limit set" '{"name": "web", "pairs": ["mode=enforce"]}')" \
	"$(request "limit set" '{"name": "web", "pairs": ["mode=shadow"]}')"; }
block() { packets "block add, del" "$(request "block add" '{"prefix": "10.1.5.2"}')" \
	"$(request "block del" '{"prefix": "10.1.5.2"}')"; }
override() { packets "override set, del" \
	"$(request "override del" '{"name": "web", "src": "10.1.5.2"}')" \
	"$(request "override set" '{"name": "web", "src": "10.1.5.2", "pairs": ["rate=100000000 packets/s"]}')"; }

# beside NAME [YAML]: a daemon with ten limits, and this.
beside() {
	BESIDE=$1
	[ -z "$DAEMON_PID" ] || daemon_kill KILL
	rm -rf "$LAB/state"
	daemon_start <<-YAML
	interfaces: [{name: s0, mode: native}]
	${2:-}
	limits:
	  - {name: web, match: {dport: 80}, rate: 1 packets/h, burst: 1, mode: ${MODE:-shadow}${MORE:-}}
	${LIMIT:+  - $LIMIT}
	$(for i in 1 2 3 4 5 6 7 8 9; do echo "  - {name: l$i, match: {dport: $i}, rate: 10 packets/s}"; done)
	YAML
}

printf 'beside\tmedian\tp90\tp99\tmost\tanswer\n'
beside "ten limits"
limit_set
block
# The first of a limit, and the last one, take the whole way.
MODE=enforce beside "ten limits, its only override"
override
MODE=enforce MORE=", overrides: [{src: 10.1.5.3, rate: 10 packets/s}]" beside "ten limits, one override more"
override
MODE=enforce MORE=", overrides_file: $LAB/many.csv" beside "$BENCH_MANY overrides"
override
MORE=", overrides_file: $LAB/many.csv" beside "$BENCH_MANY overrides"
limit_set
block
beside "$BENCH_MANY blocks" "$SETS
block: ['@many']"
limit_set
block
LIMIT="{name: wide, match: {src: '@many'}, rate: 10 packets/s}" beside "$BENCH_MANY prefixes" "$SETS"
limit_set
block
beside "$BENCH_MANY rules" "http: {listen: [127.0.0.1:8180], rules: $LAB/rules}"
requests "user block, unset" "$(request "user block" '{"name": "api/user", "value": "eve"}')" \
	"$(request "user unset" '{"name": "api/user", "value": "eve"}')"
requests "rule set" "$(request "rule set" '{"name": "api/user", "pairs": ["rate_limit=", "limits=1 requests/h"]}')" \
	"$(request "rule set" '{"name": "api/user", "pairs": ["limits=1000000 requests/s"]}')"
lab_done
