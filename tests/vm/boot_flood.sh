#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# boot_flood.sh - beside the machine of boot.sh, in the network namespace of its card's other end (run.sh): frames
# to two ports, until the machine ends.
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
trap 'kill $(jobs -p); exit' TERM
# flood PORT: the card has no carrier before the machine runs, and sending fails.
flood() {
	until build/tests/netns/blast --interface tap0 --mac 52:54:00:00:00:01 --src 192.0.2.9 --dst 192.0.2.2 \
		--proto udp --dport "$1" --pps 500 --time "${TIMEOUT:-600}" > /dev/null 2>&1; do
		sleep 0.1
	done
}
flood 9 &
flood 10 &
wait
