#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# hotplug.sh - run by run.sh with four CPUs: CPUs go offline and come back under traffic that moves among
# them, and a limit counted per CPU admits no more than its burst, 1 % of it, and its rate x time; and at
# least 99 % of the burst. Also where the daemon started with CPUs offline that come later, and where a
# limit changes meanwhile. Before each flood leases are taken on all CPUs and the bucket is full again.
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
. tests/lib/netns.sh
lab_begin hotplug
lab_link 0

BURST=20000 RATE=100 FRAMES=8000
[ "$(nproc)" = 4 ] || not_ok "four CPUs are needed, there are $(nproc)"
cpu() { echo "$2" > "/sys/devices/system/cpu/cpu$1/online" || not_ok "CPU $1 does not change"; }
# send CPU SOURCE COUNT
send() { blast "$LAB/blast" --cpu "$1" --src "$2" --dst $SERVER4 --dport 9 --count "$3"; }
begin() {
	daemon_start <<-YAML
		interfaces: [{name: s0, mode: native}]
		limits: [{name: web, match: {dport: 9}, rate: $RATE packets/s, burst: $BURST}]
	YAML
}
# Fewer than a batch on each CPU, and time until what they took is there again.
take_leases() {
	for n in "${@:2}"; do
		send "$n" "$1" 40
	done
	sleep 5
}
# within NAME SOURCE: what passed since sink_start.
within() {
	local first last count

	sink_stop s0
	count=$(packets_passed s0 "$2")
	read -r first last <<< "$(pass_times s0 "$2")"
	check "$1: admitted" "$count" $((BURST * 99 / 100)) \
		"$(awk -v b=$BURST -v r=$RATE -v s="$(calc "$last - $first")" 'BEGIN { print int(b * 1.01 + r * s) + 1 }')"
}
frames_sent() { ip -n "$NS_C" -s -j link show c0 | jq '.[0].stats64.tx.packets'; }
is_sending() { [ "$(frames_sent)" -gt $(($1 + 200)) ]; }
# churn SOURCE: a flood from each CPU in turn, while others, and its own, go and come.
churn() {
	for n in 1 2 3; do
		send 0 "$1" $((FRAMES / 8))
		sent=$(frames_sent)
		blast_bg "$LAB/moved" --cpu "$n" --src "$1" --dst $SERVER4 --dport 9 --count $FRAMES --pps 4000
		check_true "frames from CPU $n" wait_for 20 is_sending "$sent"
		cpu $((n % 3 + 1)) 0
		cpu "$n" 0
		send 0 "$1" $((FRAMES / 8))
		blast_wait
		cpu $((n % 3 + 1)) 1
		cpu "$n" 1
		send "$n" "$1" $((FRAMES / 8))
	done
}

begin
take_leases 10.1.1.1 0 1 2 3
sink_start s0
churn 10.1.1.1
within "CPUs go and come" 10.1.1.1

# others UP: all CPUs but the first.
others() { for n in 1 2 3; do cpu "$n" "$1"; done; }

# All but one come after the rules were compiled: they have no leases, and count exactly.
daemon_kill KILL
rm -rf "$LAB/state"
others 0
begin
others 1
take_leases 10.1.1.2 0 1 2 3
sink_start s0
churn 10.1.1.2
within "CPUs that were offline at the start" 10.1.1.2

# With them in the rules, and then without.
ctl limit set web match.dport=9,10 > "$LAB/set" || not_ok "limit set: $(cat "$LAB/set")"
take_leases 10.1.1.3 3 2 1 0
others 0
ctl limit set web match.dport=9 > "$LAB/set" || not_ok "limit set: $(cat "$LAB/set")"
others 1
take_leases 10.1.1.3 3 2 1 0
sink_start s0
churn 10.1.1.3
within "rules of four CPUs, then of one" 10.1.1.3
lab_done
