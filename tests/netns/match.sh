#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# match.sh - limits without a rate on real packets: UDP from port 11211 never arrives, port 179
# always, whatever the limit; explain, stats and metrics name the limit; changed live and in shadow
# mode; they hold without the daemon. Beside each, a neighbor.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin match
lab_link 0

daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
failsafe: [22/tcp]
limits:
  - {name: bgp, match: {proto: tcp, dport: 179}, action: pass}
  - {name: memcached, match: {proto: udp, sport: 11211}, action: drop}
  - {name: few, rate: 1 packets/h, burst: 5}
YAML

arrivals_count
# sent N ARGUMENTS...: N frames of a source; how many of them arrive.
sent() {
	local before

	before=$(arrived)
	blast "$LAB/sent" --dst "${DST:-$SERVER4}" --length 100 --count "$1" --pps 2000 --src "${@:2}"
	settle s0
	echo $(($(arrived) - before))
}
line_of() {
	grep -n "name: $1" "$CONFIG" | cut -d: -f1
}
counted() {
	metric sluice_limit_packets_total limit="$1" verdict="$2"
}
check_is "from port 11211" "$(sent 40 10.1.1.1 --sport 11211 --dport 53)" 0
check_is "from port 11212, within the limit" "$(sent 40 10.1.1.1 --sport 11212 --dport 53)" 5
check_is "to port 179" "$(sent 40 10.1.1.1 --proto tcp --dport 179)" 40
check_is "to port 180, the limit is used up" "$(sent 40 10.1.1.1 --proto tcp --dport 180)" 0
check_is "IPv6 from port 11211" \
	"$(DST=$SERVER6 sent 40 2001:db8:70:1::2 --sport 11211 --dport 53)" 0
check_is "IPv6 to port 179" "$(DST=$SERVER6 sent 40 2001:db8:70:1::2 --proto tcp --dport 179)" 40
check_is "counted by the limit that drops" "$(counted memcached drop)" 80
check_is "counted by the limit that passes" "$(counted bgp pass)" 80
check_is "dropped, with the reason" "$(metric sluice_packets_total reason=match verdict=drop)" 80
check_is "passed, with the reason" "$(metric sluice_packets_total reason=match verdict=pass)" 80
check_is "stats names them" \
	"$(ctl -o json stats | jq -r '.limits[] | select(.rate == null) | .name' | tr '\n' ' ')" "bgp memcached "
check_true "stats as text" grep -Eq '^memcached +' <(ctl stats)

explained() {
	ctl -o json explain 10.1.1.1 "$@" | jq -r '.verdict | "\(.action) \(.reason) \(.limit) \(.line)"'
}
check_is "explain: dropped" "$(explained --proto udp --sport 11211)" "drop match memcached $(line_of memcached)"
check_is "explain: passed" "$(explained --proto tcp --dport 179)" "pass match bgp $(line_of bgp)"
check_is "explain: only the limits that apply" "$(ctl -o json explain 10.1.1.1 --proto tcp \
	--dport 179 | jq -r '[.limits[].limit] | join(" ")')" bgp
check_is "explain: the failsafe port comes first" \
	"$(explained --proto tcp --dport 22 --dst $SERVER4)" "pass failsafe null null"

# ---- live
ctl limit set memcached mode=shadow > /dev/null
check_is "in shadow mode it meets the limit" "$(sent 40 10.1.2.1 --sport 11211)" 5
check_is "what passes is counted" "$(counted memcached shadow)" 5
ctl limit set memcached mode= > /dev/null
check_is "enforced again" "$(sent 40 10.1.2.2 --sport 11211)" 0
ctl limit del bgp > /dev/null
check_is "a pass that was deleted" "$(sent 40 10.1.2.3 --proto tcp --dport 179)" 5
echo '{name: ntp, match: {proto: udp, sport: 123}, action: drop}' | ctl limit add - > /dev/null
check_is "added live, behind the limit: a drop comes first" "$(sent 40 10.1.2.4 --sport 123)" 0
check_is "its neighbor" "$(sent 40 10.1.2.4 --sport 124)" 5
check_true "limit show prints what can be added" grep -q '^action: drop$' <(ctl limit show ntp)

# ---- without the daemon, and after it
daemon_kill KILL
check_is "without a daemon" "$(sent 40 10.1.3.1 --sport 123)" 0
daemon_run
check_is "with the next one" "$(sent 40 10.1.3.1 --sport 11211)" 0
check_is "live changes survive" "$(sent 40 10.1.3.1 --sport 123)" 0
check_is "and the neighbor" "$(sent 40 10.1.3.1 --sport 125)" 5

# ---- check
cat > "$LAB/hidden.yaml" <<'YAML'
interfaces: [{name: s0}]
limits:
  - {name: udp, match: {proto: udp}, action: drop}
  - {name: dns, match: {proto: udp, dport: 53}, rate: 10 packets/s}
  - {name: tcp, match: {proto: tcp, dport: 53}, rate: 10 packets/s}
YAML
check_is "check notes what is hidden" "$(ctl check "$LAB/hidden.yaml" | grep -c 'no packet meets it')" 1
check_true "and by what" grep -q "'udp' before it drops all" <(ctl check "$LAB/hidden.yaml")
lab_done
