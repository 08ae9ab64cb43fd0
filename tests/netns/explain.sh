#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# explain.sh - the command, as an admin types it: what it prints for real sources is what their next
# real packets meet, it charges them nothing, and its text names limit, line and wait.
#
# Rates of one packet an hour: a bucket passes its burst and no more, so counts are exact.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin explain
lab_link 0

daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
failsafe: [22/tcp]
block: [10.1.5.0/24]
exempt: [10.1.3.0/24]
limits:
  - {name: few, match: {src: 10.1.7.0/24}, rate: 1 packets/h, burst: 5}
  - {name: web, match: {src: 10.1.8.0/24, proto: tcp, dport: 443}, rate: 1 packets/h, burst: 2}
  - {name: watch, match: {src: 10.1.9.0/24}, rate: 1 packets/h, burst: 1, mode: shadow}
  - {name: bgp, match: {proto: tcp, dport: 179}, action: pass}
  - {name: memcached, match: {proto: udp, sport: 11211}, action: drop}
  - {name: flow, match: {src: 10.1.12.0/24}, rate: 1 packets/h, burst: 60}
  - {name: port, match: {src: 10.1.12.0/24, proto: udp, dport: 53}, rate: 1 packets/h, burst: 10}
  - {name: guard, match: {src: 10.1.13.0/24}, rate: 10 packets/s, burst: 5,
     ban: {after: 2 drops/10s, for: 1h, spoofable: true}}
YAML

line_of() {
	grep -n "$1" "$CONFIG" | cut -d: -f1
}

# said FILTER ARGUMENTS...: a member of the output.
said() {
	local filter=$1

	shift
	ctl -o json explain "$@" | jq -r "$filter"
}

# meets WORDS REASON ACTION SOURCE "EXPLAIN ARGUMENTS" "BLAST ARGUMENTS": explain's verdict on the
# next packet, and that one packet's own counter.
meets() {
	local words=$1 reason=$2 action=$3 source=$4 before

	# shellcheck disable=SC2086
	check_is "$words: explain" "$(said '.verdict | "\(.reason) \(.action)"' "$source" $5)" \
		"$reason $action"
	before=$(metric sluice_packets_total reason="$reason" verdict="$action")
	# shellcheck disable=SC2086
	blast "$LAB/one" --src "$source" --dst $SERVER4 --count 1 $6
	settle s0
	check_is "$words: its next packet" \
		$(($(metric sluice_packets_total reason="$reason" verdict="$action") - before)) 1
}

UDP="--proto udp --dport 9"
meets "blocked" block drop 10.1.5.1 "$UDP" ""
meets "exempt" exempt pass 10.1.3.1 "$UDP" ""
meets "beside both" no_match pass 10.1.4.1 "$UDP" ""
meets "failsafe" failsafe pass 10.1.4.1 "--dport 22 --dst $SERVER4" "--proto tcp --dport 22"
meets "in shadow, within" within pass 10.1.9.1 "$UDP" ""
meets "dropped without a rate" match drop 10.1.4.1 "--proto udp --sport 11211" "--sport 11211"
check_is "its limit" "$(said .verdict.limit 10.1.4.1 --proto udp --sport 11211)" memcached
meets "passed without a rate" match pass 10.1.4.1 "--proto tcp --dport 179" "--proto tcp --dport 179"
check_is "explain: only the limits that apply" "$(said '[.limits[].limit] | join(" ")' 10.1.4.1 --proto tcp --dport 179)" bgp
check_is "stats names limits without a rate" \
	"$(ctl -o json stats | jq -r '.limits[] | select(.rate == null) | .name' | xargs)" "bgp memcached"
check_is "a limit in shadow mode: explain" "$(said '.limits[0].result' 10.1.9.1 $UDP)" shadow

# ---- explain a thousand times charges nothing: five packets pass, as without
for _ in $(seq 20); do
	ctl explain 10.1.7.1 $UDP > "$LAB/text"
done
check_is "used after explain" "$(said '.limits[0].meters[0].used' 10.1.7.1 $UDP)" 0
blast "$LAB/four" --src 10.1.7.1 --dst $SERVER4 --count 4
settle s0
check_is "four of five are used" "$(said '.limits[0].meters[0].used' 10.1.7.1 $UDP)" 4
meets "the fifth" within pass 10.1.7.1 "$UDP" ""
meets "the sixth" over drop 10.1.7.1 "$UDP" ""
meets "a neighbour's first" within pass 10.1.7.2 "$UDP" ""
check "it passes in less than the hour that a packet takes" \
	"$(said '.verdict.passes_in_ns' 10.1.7.1 $UDP)" 3000000000000 3600000000000
check_is "the refusing limit" "$(said .verdict.limit 10.1.7.1 $UDP)" few
check_is "its line" "$(said .verdict.line 10.1.7.1 $UDP)" "$(line_of 'name: few')"

# ---- the text output
ctl explain 10.1.7.1 $UDP > "$LAB/text"
check_true "the text names action, reason, step, limit, line and wait" grep -qE \
	"^drop \(over, step 7: limits\), by limit few, line $(line_of 'name: few'); passes in [0-9]+m" \
	"$LAB/text"
ctl explain 10.1.8.1 > "$LAB/text"
check_true "the text names a field that was left out" grep -qE \
	"^  --dport 443 \(matches web, line $(line_of 'name: web')\): pass \(within" "$LAB/text"
ctl explain 10.1.5.1 > "$LAB/text"
check_true "the text names the entry of the list" grep -qE \
	"^blocked  10\.1\.5\.0/24, line $(line_of 'block:')" "$LAB/text"
ctl explain 10.1.5.1 --dport 70000 > "$LAB/text" 2>&1
check_is "a bad field: exit" $? 1
ctl explain > "$LAB/text" 2>&1
check_is "no source: exit" $? 2

# ---- what a source lost in the last seconds: counted behind XDP by Linux
arrivals_count
# lost SOURCE: by both commands; "LOST BY" of the sent packets.
lost() {
	ctl -o json explain "$1" | jq -c '.lately | [.dropped, .passed, .estimate, (.by // [] | map(.limit // .reason) | join(" "))]'
	ctl -o json source show "$1" | jq -c '.lately | [.dropped, .passed, .estimate, (.by // [] | map(.limit // .reason) | join(" "))]'
}
# Heavy sources are of this window of 2^32 ns and the one before: waits for the first half of one.
window_room() {
	local ms

	while :; do
		ms=$(sed 's/[. ].*//' /proc/uptime)000
		[ $((ms * 1000000 % 4294967296)) -gt 2000000000 ] || break
		sleep 0.2
	done
}
window_room
before=$(arrived)
blast "$LAB/lossy" --src 10.1.12.1 --dst $SERVER4 --count 340 --dport 9
blast "$LAB/lossy" --src 10.1.12.1 --dst $SERVER4 --count 60 --dport 53
blast "$LAB/neighbor" --src 10.1.12.2 --dst $SERVER4 --count 7
settle s0
through=$(($(arrived) - before - 7))
# The events of drops are read five times a second.
all_seen() { [ "$(lost 10.1.12.1 | sort -u)" = '[340,60,false,"flow"]' ]; }
wait_for 5 all_seen
check_is "of 400 packets 60 arrive" $through 60
check_is "both commands have its 85 % and the limits, the most first" "$(lost 10.1.12.1 | sort -u)" '[340,60,false,"flow"]'
check_is "... of a neighbor that lost none" "$(lost 10.1.12.2 | sort -u)" '[0,7,false,""]'
check_is "... of a source that sent nothing" "$(lost 10.1.12.3 | sort -u)" '[0,0,false,""]'
ctl -o text source show 10.1.12.1 > "$LAB/text"
check_true "as text" grep -qE '^lately   85\.0% lost in the last [0-9]+ s: 340 dropped, 60 passed, by limit flow$' "$LAB/text"
check_true "of explain" grep -qE '^lately   85\.0% lost in the last [0-9]+ s: 340 dropped, 60 passed, by limit flow$' <(ctl explain 10.1.12.1)
check_true "of the neighbor" grep -qE '^lately   nothing lost: 7 passed in the last [0-9]+ s$' <(ctl source show 10.1.12.2)

# ---- a banned source: its next pass is the end of the ban, by both; a blocked one's that of the block
blast "$LAB/guarded" --src 10.1.13.1 --dst $SERVER4 --count 50
settle s0
check_is "it is banned" "$(ctl source show 10.1.13.1 -o json | jq '.banned_until != null')" true
sleep 0.6 # the bucket has room again
next() { ctl source show "$1" -o json | jq '.limits[] | select(.limit == "guard") | .wait_ns // 0'; }
check "source show: the next pass" "$(next 10.1.13.1)" 3500000000000 3600000000000
check "explain: the next pass" "$(said .verdict.passes_in_ns 10.1.13.1)" 3500000000000 3600000000000
check_is "a neighbor's" "$(next 10.1.13.2)" 0
ctl block add 10.1.13.2 --for 2h > /dev/null
check "a blocked source's" "$(next 10.1.13.2)" 7100000000000 7200000000000
check_true "one without an end: never" grep -qE '^guard .* never$' <(ctl block add 10.1.13.3 > /dev/null; ctl source show 10.1.13.3)
lab_done
