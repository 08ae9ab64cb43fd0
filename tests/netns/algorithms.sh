#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# algorithms.sh - what the scenarios show in steps of a clock, with packets of a wire: an interval bucket, window
# counters, and limits that count what they refuse; without the daemon, too.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin algorithms
lab_link 0

utc_room 3600 60
daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
limits:
  - {name: interval, match: {dport: 81}, algorithm: interval-bucket, rate: 20 packets/h, burst: 50}
  - {name: counters, match: {dport: 82}, algorithm: window-counters, buckets: 3, rate: 40 packets/h}
  - {name: all, match: {dport: 83}, count: all, rate: 10 packets/s, burst: 20}
  - {name: admitted, match: {dport: 84}, rate: 10 packets/s, burst: 20}
YAML

sink_start s0
send() {
	blast "$LAB/sent" --dst $SERVER4 --dport "$@"
}
send 81 --src 10.1.1.1 --count 80 --pps 2000
send 82 --src 10.1.2.1 --count 80 --pps 2000
# Two seconds at fifty times the rate.
send 83 --src 10.1.3.1 --count 1000 --pps 500
send 84 --src 10.1.4.1 --count 1000 --pps 500
sink_stop s0
check_is "an interval bucket passes its burst" "$(packets_passed s0 10.1.1.1)" 50
check_is "window counters pass the limit" "$(packets_passed s0 10.1.2.1)" 40
check_is "count: all: who goes on gets nothing after the burst" "$(packets_passed s0 10.1.3.1)" 20
passed=$(packets_passed s0 10.1.4.1)
check_true "without it the rate ($passed)" test "$passed" -gt 30 -a "$passed" -lt 80
check_is "its drops are counted" "$(metric sluice_limit_packets_total limit=all verdict=drop)" 980

# A pause of more than a second: ten tokens and more, and no refusal in between.
sleep 1.2
sink_start s0
send 83 --src 10.1.3.1 --count 10 --pps 2000
sink_stop s0
check_is "count: all: after a pause it passes" "$(packets_passed s0 10.1.3.1)" 10

daemon_kill KILL
sink_start s0
send 81 --src 10.1.1.1 --count 30 --pps 2000
send 82 --src 10.1.2.1 --count 30 --pps 2000
send 82 --src 10.1.2.2 --count 50 --pps 2000
sink_stop s0
check_is "without the daemon the bucket stays empty" "$(packets_passed s0 10.1.1.1)" 0
check_is "and the window full" "$(packets_passed s0 10.1.2.1)" 0
check_is "of another source it is empty" "$(packets_passed s0 10.1.2.2)" 40
daemon_run
ctl explain 10.1.1.1 --dst 10.1.0.1 --proto udp --dport 81 > "$LAB/explain"
check_true "the next daemon explains it" grep -qE '^drop .over.*by limit interval.* passes in [0-9]+m' "$LAB/explain"
daemon_kill TERM
check_true "--purge removes everything" on_server "$BIN/sluiced" -c "$CONFIG" --purge
lab_done
