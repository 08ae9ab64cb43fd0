#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# asan.sh - what `make asan-test` runs of build/asan. Exit 1 where anything failed or a sanitizer
# had something to say.

set -u
cd "$(dirname "$0")/.." || exit 1
export SLUICE_BUILD=$PWD/build/asan
failed=0

for source in $(find tests/unit -name 'test_*.c' | sort); do
	program=$SLUICE_BUILD/${source%.c}
	if ! "$program" > "$SLUICE_BUILD/log" 2>&1; then
		echo "not ok - $program"
		grep -aE 'FAILED|ERROR|SUMMARY|runtime error' "$SLUICE_BUILD/log" | head -20
		failed=1
	fi
done
# The daemon and the CLI; what of them says something writes it to a file.
export ASAN_OPTIONS=log_path=$SLUICE_BUILD/said UBSAN_OPTIONS=log_path=$SLUICE_BUILD/said
rm -f "$SLUICE_BUILD"/said.*
for scenario in tests/http/{serve,abuse,callers,rules,wait,grpc,haproxy,syslog}.sh \
	tests/cluster/{cluster_requests,client,failover,faults}.sh; do
	bash "$scenario" 2>&1 | tee "$SLUICE_BUILD/log" | grep -v '^ok'
	! grep -qaE '^not ok' "$SLUICE_BUILD/log" || failed=1
done
for said in "$SLUICE_BUILD"/said.*; do
	[ -f "$said" ] || continue
	head -n 40 "$said"
	failed=1
done
[ $failed = 0 ] && echo "asan: ok"
exit $failed
