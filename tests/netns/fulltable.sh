#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# fulltable.sh - forged sources fill a small table under a slow limit. Up to the price stated in
# docs/algorithms.md, a new source is limited like any other, and an offender is
# refused. Beyond it on_full decides, which is logged, counted and shown.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin fulltable
lab_link 0
daemon_start <<YAML
interfaces: [{name: s0}]
table: {buckets: 100}
limits:
  - {name: slow, rate: 10 packets/h, burst: 10, algorithm: token-bucket, match: {proto: udp}}
YAML

# 49 sets of 19; 2 more are kept for prefixes.
PLACES=931

# sent COUNT OPTIONS...: prints how many of them passed.
sent() {
	local before want=$1

	shift
	before=$(metric sluice_limit_packets_total limit=slow)
	SENT_PASSED=$(metric sluice_limit_packets_total limit=slow verdict=pass)
	blast "$LAB/blast" --dst $SERVER4 --count "$want" "$@"
	wait_for 10 judged $((before + want)) || not_ok "not all frames were judged"
	SENT_PASSED=$(($(metric sluice_limit_packets_total limit=slow verdict=pass) - SENT_PASSED))
}
judged() {
	[ "$(metric sluice_limit_packets_total limit=slow)" -ge "$1" ]
}
# forge FROM TO: groups of ten sources, each of which is refused once.
forge() {
	local group

	for ((group = $1; group < $2; group++)); do
		blast "$LAB/blast" --src 11.0.$group.0/24 --sequential 10 --dst $SERVER4 --count 110
	done
}

check_is "check prints the price" "$(ctl check "$CONFIG" | grep -c 'forged sources, fill the table')" 1
check_is "status prints it" "$(ctl status | grep -c 'slow: table full after')" 1

forge 0 40
check "offenders that left a fingerprint" \
	"$(metric sluice_table_evicted_total limit=slow kind=recorded)" 100 400
sent 20 --src 10.1.9.1
check_is "a new source is held to its limit" "$SENT_PASSED" 10
sent 10 --src 11.0.3.0/24 --sequential 10
check_is "evicted offenders get nothing" "$SENT_PASSED" 0
check_is "every source found a place" "$(metric sluice_table_full_total)" 0

forge 40 140
check "packets without a place" "$(metric sluice_table_full_total)" 1000 8000
check "offenders that are remembered" "$(metric sluice_table_fingerprints)" 780 $((PLACES - 49))
wait_for 5 grep -q "limit 'slow': the table is full" "$LAB/daemon.log"
check_is "the full table is logged, once" "$(grep -c 'the table is full' "$LAB/daemon.log")" 1
sent 5 --src 10.1.9.2
check_is "on_full: open passes new sources" "$SENT_PASSED" 5
sent 10 --src 11.0.3.0/24 --sequential 10
check_is "offenders still get nothing" "$SENT_PASSED" 0
lab_done
