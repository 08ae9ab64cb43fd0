#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two requests at once, on two nodes, for the last unit of a limit: one passes. Ten thousand
# times, by each algorithm; with leases never two. (tests/prop/test_cluster_store_script.c tests the same on
# the store alone.)

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin last "$@"

http_rules api <<'YAML'
  - {key: fixed, scope: cluster, limits: [3 requests/d]}
  - {key: first, scope: cluster, window: first-request, limits: [3 requests/d]}
  - {key: sliding, scope: cluster, algorithm: sliding-window, limits: [3 requests/d]}
  - {key: log, scope: cluster, algorithm: sliding-log, limits: [3 requests/d]}
  - {key: bucket, scope: cluster, algorithm: token-bucket, burst: 3, limits: [3 requests/d]}
  - {key: leaky, scope: cluster, algorithm: leaky-bucket, limits: [3 requests/d]}
  - {key: leased, consistency: {lease: 100ms}, limits: [3 requests/d]}
YAML

redis_start main
node_start a
node_start b

last() {
	python3 "$REPO/tests/cluster/last.py" "$LAB/a/http.sock" "$LAB/b/http.sock" api "$@" 2>&1 | xargs
}
utc_room 86400 60
for key in fixed first sliding log bucket; do
	check_is "$key: of two at once one passes" "$(last $key 1700 2)" "1 1700"
done
# One passes, and the next in eight hours.
check_is "leaky: of two at once one passes" "$(last leaky 1700 0)" "1 1700"
check_is "leased: of two at once at most one passes" "$(last leased 500 2)" "1 500"
lab_done
