#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# events.sh - what happens, for people: drops and state changes of sources as text, as JSON and as
# pcapng, which tcpdump and tshark read; a source that is within its limit is no event.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin events
lab_link 0

daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
events: {rate: 50000}
limits:
  - {name: web, match: {dport: 80}, rate: 10 packets/h, burst: 10, ban: {after: 400 drops/10s, for: 2s, spoofable: yes}}
  - {name: dns, match: {dport: 53}, rate: 10 packets/h, burst: 10}
YAML

send() {
	blast "$LAB/sent" --dst $SERVER4 "$@"
}
events() {
	ctl events list -o json --count 1000 "$@"
}
# How many events: a filter of jq.
count() {
	events "${@:2}" | jq "[.events[] | select($1)] | length"
}
has() {
	[ "$(count "$@")" -ge 1 ]
}

send --src 10.1.9.1 --count 20 --pps 2000 --dport 53
check_true "right after the start a refusal is an event" wait_for 5 has '.kind == "over" and .source == "10.1.9.1"'
check_is "and so is each drop" "$(count '.kind == "drop" and .source == "10.1.9.1"')" 10

FOLLOWERS=()
follow() {
	"$BIN/sluicectl" -s "$SOCKET" events "${@:2}" > "$LAB/$1" 2> "$LAB/$1.err" &
	LAB_PIDS+=($!)
	FOLLOWERS+=($!)
}
follow lines -o json
follow text
follow packets --pcap "$LAB/all.pcapng"
PCAP=${FOLLOWERS[-1]}
follow of_dns --pcap - --limit dns --count 5
# Having asked where to begin, each sleeps between two questions, as `sleep` does.
sleep 300 &
started
SLEEPER=$!
follows() { [ "$(cut -d' ' -f1 "/proc/$1/syscall")" = "$(cut -d' ' -f1 "/proc/$SLEEPER/syscall")" ]; }
for pid in "${FOLLOWERS[@]}"; do
	check_true "follows" wait_for 5 follows "$pid"
done

send --src 10.1.1.1 --count 100 --pps 2000 --dport 80
send --src 10.1.2.1 --count 60 --pps 2000 --dport 53
send --src 10.1.3.1 --count 8 --pps 2000 --dport 80
wait_for 5 has '.kind == "drop" and .source == "10.1.2.1"'
check_is "drops of a source over its limit" "$(count '.kind == "drop" and .source == "10.1.1.1"')" 90
check_is "its limit, reason and packet" "$(events --within 10.1.1.1 --kind drop | jq -r '.events[0] |
	"\(.limit) \(.reason) \(.verdict) \(.interface) \(.proto) \(.dport) \(.dst)"')" \
	"web over drop s0 udp 80 $SERVER4"
check_is "its first refusal is one event" "$(count '.kind == "over" and .source == "10.1.1.1"')" 1
check_is "another limit's, by its name" "$(count '.source == "10.1.2.1"' --limit dns)" 51
check_is "a source within its limit is none" "$(count '.source == "10.1.3.1"')" 0
check_is "of a prefix" "$(count 'true' --within 10.1.2.0/24 --kind over)" 1

send --src 10.1.1.1 --count 600 --pps 20000 --dport 80
wait_for 5 has '.kind == "ban"'
check_is "a ban" "$(events --kind ban | jq -r '.events[0] | "\(.source) \(.limit)"')" "10.1.1.1 web"
check_true "it ends" wait_for 6 has '.kind == "unban" and .source == "10.1.1.1"'
ctl block add 198.51.100.0/24 --for 10m --reason test > /dev/null
ctl limit set dns burst=20 > /dev/null
ctl block del 198.51.100.0/24 > /dev/null
check_is "a block and its end" "$(events --within 198.51.100.9 | jq -r '[.events[].kind] | join(" ")')" "block unblock"
check_true "another change" has '.kind == "change" and (.detail | startswith("limit set by uid 0"))'

# ---- those who follow
check_true "lines of JSON" wait_for 5 jq -es 'map(select(.kind == "unblock")) | length == 1' "$LAB/lines"
check_is "all of them" "$(jq -s 'map(select(.source == "10.1.2.1")) | length' "$LAB/lines")" 51
check_true "as text" wait_for 5 grep -qE '^20.* drop 10\.1\.2\.1 limit dns drop \(over\) on s0 udp port [0-9]+ to 10\.1\.0\.1 port 53, [0-9]+ bytes' "$LAB/text"
check_true "pcapng to a pipe ends after --count" wait_for 5 eval "! kill -0 ${FOLLOWERS[-1]}"
drops_of() { tcpdump -nr "$1" "src $2" 2> /dev/null | wc -l; }
all_written() { [ "$(drops_of "$LAB/all.pcapng" 10.1.2.1)" -ge 50 ]; }
wait_for 5 all_written
kill $PCAP
wait $PCAP 2> /dev/null
check_is "tcpdump reads the packets of a limit" "$(tcpdump -nr "$LAB/of_dns" 'udp port 53 and src 10.1.2.1' 2> /dev/null | wc -l)" 5
check_is "and all, while it is written" "$(drops_of "$LAB/all.pcapng" 10.1.2.1)" 50
check_is "none that passed" "$(drops_of "$LAB/all.pcapng" 10.1.3.1)" 0
if command -v tshark > /dev/null; then
	check_is "tshark reads limit, reason and interface" "$(tshark -r "$LAB/all.pcapng" -Y 'ip.src == 10.1.2.1' -T fields \
		-e frame.comment -e frame.interface_name -e udp.dstport 2> /dev/null | sort | uniq -c | sed 's/^ *//')" \
		"50 sluice: drop, reason over, limit dns, 1 of 1	s0	53"
fi

# ---- nothing gets lost of the packets' counts, and the counts of events add up
sent=$(metric sluice_packets_total interface=s0 verdict=drop reason=over)
check_is "drops are counted as ever" "$sent" "$(calc "$(metric sluice_limit_packets_total limit=web verdict=drop) + $(metric sluice_limit_packets_total limit=dns verdict=drop)" | sed 's/\.0*$//')"
drops=$(metric sluice_packets_total interface=s0 verdict=drop)
seen=$(metric sluice_events_total kind=drop)
limited=$(metric sluice_events_not_reported_total kind=drop cause=limited)
lost=$(metric sluice_events_not_reported_total kind=drop cause=lost)
check_is "drops = events + limited + lost, below the sampling" "$((seen + limited + lost))" "$drops"

# ---- a flood of drops leaves what is rare, and an answer of nothing names its time
blast "$LAB/sent" --dst $SERVER4 --src 10.1.6.1 --count 6000 --pps 100000 --dport 53
flooded() { [ "$(metric sluice_events_total kind=drop)" -gt 4000 ]; }
check_true "a flood of events" wait_for 5 flooded
check_true "the change is there still" has '.detail | startswith("limit set by uid 0")' --kind change
ctl events list --kind pushdown > "$LAB/out"
check_true "of a kind without events: since when" grep -qE '^nothing since 20[0-9T:-]+Z; what happened before that is not kept$' "$LAB/out"
seconds_since() { echo $(($(date +%s) - $(date -d "$(events --kind "$1" | jq -r .kept_since)" +%s))); }
check "drops are kept for a shorter time than pushdowns" "$(seconds_since drop)" -1 "$(seconds_since pushdown)"
check_true "by the seconds of the flood" [ "$(seconds_since drop)" -lt "$(seconds_since pushdown)" ]

ctl events list --kind nix > "$LAB/out" 2>&1
check_true "a kind that is not known names those that are" grep -q "accepted: drop, over" "$LAB/out"
lab_done
