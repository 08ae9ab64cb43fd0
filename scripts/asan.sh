#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# asan.sh - what `make asan-test` runs of build/asan. Exit 1 where anything failed or a sanitizer
# had something to say.

set -u
cd "$(dirname "$0")/.." || exit 1
export SLUICE_BUILD=$PWD/build/asan
failed=0

for program in "$SLUICE_BUILD"/tests/unit/test_*; do
	[ -f "$program" ] && [ -x "$program" ] || continue
	if ! "$program" > "$SLUICE_BUILD/log" 2>&1; then
		echo "not ok - $program"
		grep -aE 'FAILED|ERROR|SUMMARY|runtime error' "$SLUICE_BUILD/log" | head -20
		failed=1
	fi
done
export ASAN_OPTIONS=detect_leaks=0
for scenario in tests/http/{serve,abuse,callers}.sh; do
	bash "$scenario" 2>&1 | tee "$SLUICE_BUILD/log"
	! grep -qaE '^not ok|AddressSanitizer|runtime error' "$SLUICE_BUILD/log" || failed=1
done
[ $failed = 0 ] && echo "asan: ok"
exit $failed
