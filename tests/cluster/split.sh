#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# split.sh - two halves, each with a Redis that is a master: node a with the old one, node b with the one
# that a sentinel promoted meanwhile. Each half holds the limit by what it counted; once they are joined,
# what the old master lost is restored, the overshoot is reported, and messages pass.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin split "$@"
utc_room 86400 60

LIMIT=200
USERS=4
http_rules api <<YAML
  - key: user
    limits: [{name: day, rate: $LIMIT requests/d}]
    scope: cluster
    on_store_failure: closed
YAML

redis_start old
redis_replica new old
redis_sentinel watch old 1
check_true "the sentinel has both servers" wait_for 15 eval \
	'[ "$(redis watch sentinel replicas mymaster | grep -c "^ip$")" = 1 ]'
redis_use sentinel watch
# One that is never asked while the first answers.
CLUSTER_REDIS="${CLUSTER_REDIS/]/, redis://$REDIS_IP:1]}"
node_start a
node_start b

# load ROUNDS NODE..., spend NODE...
load() {
	LOAD_NODES=("${@:2}")
	load_add "$1" api user=u 1 $USERS
}
spend() {
	LOAD_NODES=("$@")
	load_spend api user=u 1 $USERS
}
all() {
	load_had u 200
}
sees() {
	[ "$(node "$1" http_check api user="$2")" = "$3" ]
}

check_true "a sentinel that was never asked is not called down" eval \
	"node a ctl cluster show | grep -q '^$REDIS_IP:1 (sentinel)  *not asked yet *$'"
load 50 a b
check_is "together they count" "$(all)" "100 100"
check_is "a neighbour passes" "$(node a http_check api user=other)" 200

check_is "the replica has every charge" "$(printf 'SET lab 1\nWAIT 1 5000\n' | redis old | xargs)" "OK 1"
# The old master and a on one side; the new one, the sentinel and b on the other. Traffic between servers (and of this script) goes over lo.
nft add table inet split
nft add chain inet split in '{ type filter hook input priority 0; }'
nft add rule inet split in iif lo tcp dport "${REDIS_PORT[old]}" drop
nft add rule inet split in iif lo tcp sport "${REDIS_PORT[old]}" drop
nft add rule inet split in ip saddr "${NODE_IP[a]}" tcp dport "{ ${REDIS_PORT[new]}, ${REDIS_PORT[watch]} }" drop
nft add rule inet split in ip saddr "${NODE_IP[b]}" tcp dport "${REDIS_PORT[old]}" drop
check_true "the sentinel has another master" wait_for 15 eval '[ "$(redis_info new role)" = master ]'
check_true "b finds it" wait_for 15 sees b other 200
spend a
check_is "on the old master's side the limit holds" "$(all)" "$LIMIT $LIMIT"
spend b
check_is "on the other, too: what was left at the split passes twice" "$(all)" "$((LIMIT + 100)) $((LIMIT + 100))"

nft delete table inet split
check_true "the old master is a replica" wait_for 20 eval '[ "$(redis_info old role)" = slave ]'
check_true "a finds the new one" wait_for 20 sees a other 200
check_is "no user gets more" "$(spend a b; all | cut -d' ' -f2)" "$(all | cut -d' ' -f2)"
restored() {
	[ "$(node a ctl -o json cluster show | jq .quota.restored)" = $((100 * USERS)) ]
}
check_true "charges of the old master are restored" wait_for 10 restored
reported() {
	node a metrics | grep -qx 'sluice_overshoot_ratio{rule="api/user"} 0.5'
}
check_true "the overshoot is reported: half of the limit" wait_for 5 reported
check_is "a neighbour has the rest of the limit" "$(node b http_check api user=other)" 200

lab_done
