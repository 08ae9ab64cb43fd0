#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# reboot.sh - long limits outlive the kernel: 7 of 10 a year are used, the pins are removed (an orderly
# stop; a power cut, after the state was written), and 3 are left. Of a limit per second
# nothing is kept, a torn file changes nothing, and a neighbour has all of its limit. They outlive an upgrade to
# another layout of the maps, too.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin reboot
lab_link 0

# Windows that do not end during the test.
daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
limits:
  - {name: window, match: {src: 10.1.1.0/24}, rate: 10 packets/365d, algorithm: fixed-window}
  - {name: bucket, match: {src: 10.1.2.0/24}, rate: 10 packets/30d, burst: 10}
  - {name: first, match: {src: 10.1.4.0/24}, rate: 10 packets/30d, algorithm: fixed-window, window: first-request}
  - {name: second, match: {src: 10.1.3.0/24}, rate: 10 packets/s, burst: 10}
YAML

# send COUNT LAST: to each of the four limits, from its source LAST; prints how many the long ones let
# pass. (By the limits' own count: veth may lose the first frame after its interface was attached.)
send() {
	local n window bucket first

	window=$(metric sluice_limit_packets_total limit=window verdict=pass)
	bucket=$(metric sluice_limit_packets_total limit=bucket verdict=pass)
	first=$(metric sluice_limit_packets_total limit=first verdict=pass)
	for n in 1 2 3 4; do
		blast "$LAB/sent" --src "10.1.$n.$2" --dst $SERVER4 --pps 200 --count "$1"
	done
	settle s0
	echo "$(($(metric sluice_limit_packets_total limit=window verdict=pass) - window))" \
		"$(($(metric sluice_limit_packets_total limit=bucket verdict=pass) - bucket))" \
		"$(($(metric sluice_limit_packets_total limit=first verdict=pass) - first))"
}

# What a reboot leaves: no pins, nothing attached; state_dir stays.
power_cut() {
	daemon_kill KILL
	reboot
}
reboot() {
	daemon_purge
	check_is "pins left" "$(find "$PIN" -type f 2> /dev/null | wc -l)" 0
	check_true "--purge without pins succeeds" on_server "$BIN/sluiced" -c "$CONFIG" --purge 2> "$LAB/purge"
	daemon_run
}

check_is "of 7 passed, in all three limits" "$(send 7 1)" "7 7 7"
sent=$(now)
wait_for 20 elapsed "$sent" 12	# ten seconds, and the writing
check_is "only root can read the file" "$(stat -c %a "$LAB/state/buckets")" 600
power_cut
check_true "sluiced logs what it restored" grep -q "restored the use of long limits: 3 sources" "$LAB/daemon.log"
check_is "after a power cut of 12 more passed" "$(send 12 1)" "3 3 3"
check_is "of a neighbour's" "$(send 12 2)" "10 10 10"

# ---- orderly stop: nothing is lost, however new
check_is "of another source's 4" "$(send 4 3)" "4 4 4"
daemon_kill TERM
reboot
check_is "6 are left after an orderly stop and a reboot" "$(send 12 3)" "6 6 6"

# ---- an upgrade to a version with another layout: its maps are made again. Until its program is attached the old one
# limits: of a limit that is used up nothing passes, before, during or after
check_is "all of a source's limits are used" "$(send 12 4)" "10 10 10"
daemon_kill TERM
id=$(bpftool -j map show pinned "$PIN/state" | jq .id)
# shellcheck disable=SC2046
bpftool map update id "$id" key 0 0 0 0 value hex \
	$(bpftool -j map lookup id "$id" key 0 0 0 0 | jq -r '.value[]' | sed '1s/.*/0x7f/; s/^0x//' | xargs)
sink_start s0
blast_bg "$LAB/flood" --dst $SERVER4 --src 10.1.1.4 --count 20000 --pps 5000
daemon_run
blast_wait
sink_stop s0
check_is "nothing of it passed" "$(packets_passed s0 10.1.1.4)" 0
check_true "sluiced logs it" grep -q "were another version's: created again" "$LAB/daemon.log"
check_is "what was used is still used, a neighbour's not" "$(send 12 4) $(send 12 5)" "0 0 0 10 10 10"

# ---- a torn file
daemon_kill TERM
truncate -s -5 "$LAB/state/buckets"
reboot
check_true "a torn file is refused with a message" grep -q "buckets was truncated or extended" "$LAB/daemon.log"
check_is "it changes nothing: limits begin anew" "$(send 12 3)" "10 10 10"
lab_done
