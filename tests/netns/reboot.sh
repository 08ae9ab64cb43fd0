#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# reboot.sh - what a source used of a packet limit is in the maps: kept over kill -9, a restart and an
# upgrade that has the same layout, down to the packet. A reboot, and an upgrade to another layout, begin
# all packet limits anew; a source over its limit passes nothing while the maps are made again.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin reboot
lab_link 0

# Windows that do not end during the test.
daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
limits:
  - {name: window, match: {src: 10.1.1.0/24}, rate: 10 packets/365d, algorithm: fixed-window}
  - {name: bucket, match: {src: 10.1.2.0/24}, rate: 10 packets/30d, burst: 10}
YAML

passed_of() { metric sluice_limit_packets_total limit="$1" verdict=pass; }
# send COUNT LAST: to both limits, from its source LAST; prints how many they let pass. (By the limits' own
# count: veth may lose the first frame after its interface was attached.)
send() {
	local n window bucket

	window=$(passed_of window)
	bucket=$(passed_of bucket)
	for n in 1 2; do
		blast "$LAB/sent" --src "10.1.$n.$2" --dst $SERVER4 --pps 200 --count "$1"
	done
	settle s0
	echo "$(($(passed_of window) - window)) $(($(passed_of bucket) - bucket))"
}

# ---- kill -9, a restart: the maps stay
check_is "of 4 passed" "$(send 4 1)" "4 4"
daemon_kill KILL
daemon_run
check_is "3 more after kill -9" "$(send 3 1)" "3 3"
daemon_kill TERM
daemon_run
check_is "after a restart 3 of 12" "$(send 12 1)" "3 3"
check_is "of a neighbour's all 10" "$(send 12 2)" "10 10"

# ---- an upgrade to a version with another layout: its maps are made again. Until its program is attached
# the old one limits
daemon_kill TERM
id=$(bpftool -j map show pinned "$PIN/state" | jq .id)
# shellcheck disable=SC2046
bpftool map update id "$id" key 0 0 0 0 value hex \
	$(bpftool -j map lookup id "$id" key 0 0 0 0 | jq -r '.value[]' | sed '1s/.*/0x7f/; s/^0x//' | xargs)
sink_start s0
blast_bg "$LAB/flood" --dst $SERVER4 --src 10.1.1.1 --count 20000 --pps 5000
daemon_run
blast_wait
sink_stop s0
check_true "of it passed at most one fresh limit" test "$(packets_passed s0 10.1.1.1)" -le 10
check_true "sluiced logs it" grep -q "were another version's: created again" "$LAB/daemon.log"
check_is "a neighbour has all of its limits" "$(send 12 3)" "10 10"

# ---- a reboot: no pins, nothing attached; state_dir stays
check_is "of another source's 7" "$(send 7 4)" "7 7"
daemon_kill TERM
daemon_purge
check_is "pins left" "$(find "$PIN" -type f 2> /dev/null | wc -l)" 0
check_true "--purge without pins succeeds" on_server "$BIN/sluiced" -c "$CONFIG" --purge 2> "$LAB/purge"
daemon_run
check_is "packet limits begin anew" "$(send 12 4)" "10 10"
lab_done
