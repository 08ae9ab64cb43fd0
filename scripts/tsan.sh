#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# tsan.sh - what `make tsan-test` runs of build/tsan: the daemon and its threads under
# ThreadSanitizer, asked through every frontend while its rules change, its log is read and metrics
# are scraped. Exit 1 where a request failed or ThreadSanitizer had something to say. TSAN_SECONDS
# (10) of load.

export SLUICE_BUILD=${SLUICE_BUILD:-$(cd "$(dirname "$0")/.." && pwd)/build/tsan}
. "$(dirname "$0")/../tests/lib/http.sh"
http_begin tsan "$@"

rules() {
	http_rules api <<-YAML
	domain: api
	descriptors:
	  - {key: user, detailed_metric: true, limits: ['$1 requests/s', '$1 requests/h']}
	  - {key: plan, limits: ['$1 requests/m'], algorithm: sliding-window}
	  - {key: session, limits: ['$1 requests/h'], algorithm: sliding-log}
	  - {key: queued, limits: ['$1 requests/s'], on_limit: {wait: 50ms, queue: 10}}
	YAML
}
rules 100
export TSAN_OPTIONS="log_path=$LAB/said history_size=5 ${TSAN_OPTIONS:-}"
http_daemon <<'YAML'
  grpc: {address: 127.0.0.1:8181}
  spoe: {address: 127.0.0.1:8182}
  workers: 3
YAML
"$TOOLS/cluster/load" 2 api "$LAB/load" {check,auth,nginx,json,grpc,spoe}:user=ann \
	{check,json,grpc}:plan=gold {check,spoe}:session=s1 {check,json}:user=bob check:queued=q &
started
LOAD=$!
until=$((SECONDS + ${TSAN_SECONDS:-10})) reloads=0
while [ $SECONDS -lt $until ]; do
	rules $((50 + reloads % 7))
	ctl reload > /dev/null || not_ok "reload"
	ctl rule set api/plan limits="$((60 + reloads % 7)) requests/m" > /dev/null || not_ok "rule set"
	ctl user block api/user eve --for 1s > /dev/null || not_ok "user block"
	ctl status > /dev/null || not_ok "status"
	ctl analyze > /dev/null || not_ok "analyze"
	request "/nginx/check?domain=api&d=new$reloads&limit=5/s" > /dev/null
	metrics > /dev/null || not_ok "metrics"
	ctl user list > "$LAB/users" 2>&1
	kill -0 $LOAD 2> /dev/null || break
	reloads=$((reloads + 1))
done
kill -TERM $LOAD
wait $LOAD
check_is "the load ended well" $? 0
check "rules were changed" $reloads 3 100000
check "requests were answered" "$(awk '{ n += $2 } END { print n }' "$LAB"/load.*[0-9])" 500 1e9
wait_for 10 true
kill -TERM $DAEMON_PID
wait_for 30 daemon_gone || not_ok "sluiced does not end"
DAEMON_PID=
for said in "$LAB"/said.*; do
	[ -e "$said" ] || continue
	grep -E 'WARNING|SUMMARY' "$said" | sort | uniq -c
	head -n 120 "$said"
	not_ok "ThreadSanitizer"
done
[ $LAB_FAILED = 0 ] && ok "no data races"
lab_done
