#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Soft limits of the cluster: above a limit that three nodes share each admits its part of the excess,
# so that all together stay within limit + excess; without Redis as well.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin soft "$@"

http_rules api <<'YAML'
  - {key: window, scope: cluster, limits: [100 requests/h], throttle: {soft: 30%}}
  - {key: sliding, scope: cluster, algorithm: sliding-window, limits: [100 requests/h], throttle: {soft: 30%}}
  - {key: log, scope: cluster, algorithm: sliding-log, limits: [100 requests/h], throttle: {soft: 30%}}
  - {key: first, scope: cluster, window: first-request, limits: [100 requests/h], throttle: {soft: 30%}}
  - {key: bucket, scope: cluster, algorithm: token-bucket, burst: 100, limits: [100 requests/h], throttle: {soft: 30%}}
  - {key: lease, consistency: {lease: 1s}, limits: [100 requests/h], throttle: {soft: 30%}}
  - {key: hard, scope: cluster, limits: [100 requests/h]}
YAML
STRICT="window sliding log first bucket"

redis_start main
for name in a b c; do node_start $name; done
ready() { [ "$(for n in a b c; do node $n metric sluice_store_up; done | xargs)" = "1 1 1" ]; }
check_true "the nodes have a store" wait_for 10 ready
three() {
	[ "$(for n in a b c; do node $n ctl -o json cluster show | jq '.nodes | length'; done | xargs)" = "3 3 3" ]
}
wait_for 10 three

# soft NODE KEY: decisions of the rule with that verdict.
soft() {
	node "$1" metrics | awk -v rule="rule=\"$2\"" '/^sluice_decisions_total/ && index($1, rule) &&
		/verdict="soft"/ { n = $2 } END { print n + 0 }'
}

for key in $STRICT; do
	check "$key: all together" "$(spread 200 api $key=one)" 125 131
	for name in a b c; do check "$key: of it soft on $name" "$(soft $name $key)" 8 11; done
	check "$key: and no more" "$(spread 20 api $key=one)" 0 2
	# One node: the limit, and its own part of the excess.
	check "$key: one node alone" "$(node b many 200 api $key=two)" 108 112
	check "$key: then another" "$(node c many 50 api $key=two)" 8 11
done
check "lease" "$(spread 200 api lease=one)" 105 136
check_is "a hard one" "$(spread 100 api hard=one)" 100
redis_kill main
down() { [ "$(for n in a b c; do node $n metric sluice_store_up; done | xargs)" = "0 0 0" ]; }
check_true "Redis is gone" wait_for 15 down
check "without it: each its part of both" "$(spread 100 api window=four)" 90 133
lab_done
