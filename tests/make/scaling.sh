#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# scaling.sh - docs/scaling.md and its decision have the tables that tests/bench/scaling.py derives, a changed unit cost is
# noticed, and the simulation gives what the script has recorded: up to 10 nodes (`make scaling`: 1000).

. "$(dirname "$0")/../lib/plain.sh"

mkdir -p "$dir/docs/decisions"
cp docs/scaling.md "$dir/docs/"
cp docs/decisions/0046-scaling.md "$dir/docs/decisions/"
cp tests/bench/scaling.py "$dir/"
derive() {
	(cd "$dir" && python3 scaling.py "$1") > "$dir/out" 2>&1
}

is "the pages have the tables of the script" derive check
sed -i 's/"v1_check": (10.2,/"v1_check": (11.3,/' "$dir/scaling.py"
is "another unit cost: they are not current" no derive check
is "the line is named" prints '^docs/scaling.md:[0-9]+: not what tests/bench/scaling.py derives: make scaling$'
is "it is written" derive write
is "and then current" derive check
is "others of its figures stay" [ "$(diff -r docs/decisions "$dir/docs/decisions" | grep -c '^>.*nginx/check')" = 0 ]

simulate() {
	python3 tests/bench/scaling.py simulate "${SLUICE_BUILD:-build}/tests/bench/nodes" 10 > "$dir/out" 2>&1
}
is "the simulation gives what the page states" simulate
is "of leases and of write-back" [ "$(grep -c '^\(lease\|write_back\) ' "$dir/out")" = 4 ]
exit $failed
