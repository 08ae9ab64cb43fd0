#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# soak.sh MINUTES - the scenarios that kill, swap and flood, over and over until the time is up
# or one fails; each with a new seed, which is printed.

set -u
cd "$(dirname "$0")/.." || exit 1

deadline=$((SECONDS + ${1:-60} * 60))
round=0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
while [ $SECONDS -lt $deadline ]; do
	round=$((round + 1))
	export SLUICE_SEED=$RANDOM$RANDOM
	for scenario in survive hold flood iface; do
		if ! bash tests/netns/$scenario.sh > "$log" 2>&1; then
			cat "$log"
			echo "soak: $scenario failed in round $round, SLUICE_SEED=$SLUICE_SEED"
			exit 1
		fi
	done
	echo "soak: round $round, $(($deadline - SECONDS)) s left"
done
echo "soak: $round rounds"
