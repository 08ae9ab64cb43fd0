#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# asan.sh [short] - what `make asan-test` runs of build/asan; short: without the unit tests, and with the
# tools of build/tests, what CI does. Exit 1 where anything failed or a sanitizer had something to say.

set -u
cd "$(dirname "$0")/.." || exit 1
export SLUICE_BUILD=$PWD/build/asan
failed=0
# Sets, feeds, entries, events: what users' programs and other hosts send to the main thread.
scenarios=(tests/netns/{fetch,history,clock,entries,events}.sh tests/http/{rules,abuse}.sh)
if [ "${1:-}" = short ]; then
	export SLUICE_TOOLS=$PWD/build/tests
else
	scenarios+=(tests/netns/{crowdsec,lists,override,txn,ban,explain}.sh
		tests/http/{serve,callers,wait,grpc,haproxy,syslog}.sh
		tests/cluster/{cluster_requests,client,failover,faults}.sh)
fi

[ "${1:-}" = short ] || for source in $(find tests/unit -name 'test_*.c' | sort); do
	program=$SLUICE_BUILD/${source%.c}
	if ! "$program" > "$SLUICE_BUILD/log" 2>&1; then
		echo "not ok - $program"
		grep -aE 'FAILED|ERROR|SUMMARY|runtime error' "$SLUICE_BUILD/log" | head -20
		failed=1
	fi
done
# The daemon and the CLI; what of them says something writes it to a file. (A test's clock is loaded first.)
export ASAN_OPTIONS=log_path=$SLUICE_BUILD/said:verify_asan_link_order=0 UBSAN_OPTIONS=log_path=$SLUICE_BUILD/said
rm -f "$SLUICE_BUILD"/said.*
# Three at a time: they wait most of theirs. Each ends with 0 only if all of it was ok.
printf '%s\n' "${scenarios[@]}" | xargs -n 1 -P 3 bash -c 'log=$(bash "$0" 2>&1) || { echo "== $0"; grep -v "^ok" <<< "$log"; exit 1; }' ||
	failed=1
for said in "$SLUICE_BUILD"/said.*; do
	[ -f "$said" ] || continue
	head -n 40 "$said"
	failed=1
done
[ $failed = 0 ] && echo "asan: ok"
exit $failed
