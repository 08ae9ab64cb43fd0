#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A penalty over three nodes: refusals on any of them count, the ban holds on all, also on one that
# was away, and without Redis; lifted on one node it ends on all. A neighbor is never banned.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin ban "$@"

http_rules api <<'YAML'
  - key: login
    limits: [6 requests/h]
    scope: cluster
    ban: {after: 15 rejections/10m, for: 1h}
YAML

redis_start main
for name in a b; do node_start $name; done
ready() { [ "$(for n in a b; do node $n metric sluice_store_up; done | xargs)" = "1 1" ]; }
check_true "the nodes have a store" wait_for 10 ready
two() { [ "$(for n in a b; do node $n ctl -o json cluster show | jq '.nodes | length'; done | xargs)" = "2 2" ]; }
wait_for 10 two

# bans WHO NODE...: on how many of the nodes it is banned.
bans() {
	local who=$1 n

	shift
	for n; do node "$n" ctl user show api/login "$who" -o json | jq 'select(.ban) | 1'; done | wc -l
}
banned_on() { [ "$(bans "$@")" = $(($# - 1)) ]; }
free_on() { [ "$(bans "$@")" = 0 ]; }

# 12 refusals on each of two nodes are more than 15; of the neighbor 5 on each are not.
check_is "the limit is shared" "$(spread 8 api login=alice)" 6
check_is "mallory" "$(node a many 9 api login=mallory)" 6
node a many 9 api login=mallory > /dev/null
check_is "12 refusals are no ban" "$(sleep 0.5; bans mallory a b)" 0
node b many 12 api login=mallory > /dev/null
check_true "24 of both nodes are one, on both" wait_for 5 banned_on mallory a b
check_is "not of the neighbor" "$(bans alice a b)" 0
ends() { for n in a b; do node $n ctl user show api/login mallory -o json | jq '.ban.left_ns / 1e9 | floor'; done | sort -n | xargs; }
read -r first last <<< "$(ends)"
check "an hour, the same on both" $((last - first)) 0 2
check "..." "$first" 3580 3600

node_start c
check_true "a node that was away" wait_for 15 banned_on mallory c
node_kill c

redis_kill main
check_is "without Redis" "$(bans mallory a b)" 2
redis_again main
check_true "Redis is back" wait_for 15 ready
check_is "lifted on b" "$(node b ctl user unban api/login mallory)" "mallory is no longer banned by api/login"
check_true "it ends on both" wait_for 5 free_on mallory a b
lab_done
