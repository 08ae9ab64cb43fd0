#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# leases.sh - ordinary limits are counted by CPU: real packets at 0.9 of a token bucket and of a fixed
# window of 1000/s pass, and their sources are in the pinned per-CPU hash, as bpftool prints it. After a
# flood no more passed than the burst and the rate; `status` names what is counted exactly, and why.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin leases
lab_link 0

daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
limits:
  - {name: bucket, match: {dport: 81}, rate: 1000 packets/s, burst: 2000}
  - {name: window, match: {dport: 82}, rate: 1000 packets/s, algorithm: fixed-window}
  - {name: tiny, match: {dport: 83}, rate: 5 packets/s}
YAML
leases() {
	bpftool -j map dump pinned "$PIN/lease"
}
# Of each entry the units and the end of CPUs that took a lease.
leased() {
	leases | jq '[.[] | select([.formatted.values[].value | select(.end > 0 and .units > 0)] != [])] | length'
}
check_is "before traffic the hash is empty" "$(leases | jq length)" 0
sink_start s0
for port in 81 82 83; do
	blast "$LAB/sent" --dst $SERVER4 --src 10.1.$port.2 --dport $port --count 900 --pps 900
done
check_is "a source of the bucket passes" "$(packets_passed s0 10.1.81.2)" 900
check_is "one of the window passes" "$(packets_passed s0 10.1.82.2)" 900
check_is "both are in the per-CPU hash, the exact one is not" "$(leased)" 2

start=$(date +%s.%N)
blast "$LAB/sent" --dst $SERVER4 --src 10.1.81.3 --dport 81 --count 60000 --pps 30000
sink_stop s0
most=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%d", 2020 + 1000 * (b - a) }')
passed=$(packets_passed s0 10.1.81.3)
check_true "of a flood $passed passed, at most $most" test "$passed" -le "$most" -a "$passed" -ge 3500
check_is "status names the limit that is counted exactly" \
	"$(ctl status | grep -o 'tiny (it is too small to be divided among so many CPUs)')" \
	"tiny (it is too small to be divided among so many CPUs)"
lab_done
