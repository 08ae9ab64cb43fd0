#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# failover.sh - what Redis forgets: a master is killed with charges that its replica never had, one
# is killed under load with wait: 1, and a Redis comes back empty. Forgotten charges are
# counted, and the nodes restore what they admitted themselves; meanwhile on_store_failure of each rule
# holds.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin failover "$@"
utc_room 86400 120

USERS=12
LIMIT=200
strict_rules "{name: day, rate: $LIMIT requests/d}"

# lost_units FIELD: the sum over LOAD_NODES.
shares() {
	local name

	for name in "${LOAD_NODES[@]}"; do
		node "$name" ctl -o json cluster show
	done | jq -s "[.[].quota.$1] | add"
}

# load ROUNDS PREFIX: runs a load and waits for it; $HUB/PREFIX collects the results of all loads of these users.
load() {
	load_add "$1" api "user=$2" 1 $USERS
}

# spend PREFIX: sends until no user has anything left on any node.
spend() {
	load_spend api "user=$1" 1 $USERS
}

all_passed() {
	load_had "$1" 200
}

# report PREFIX
report() {
	echo "# $1: of a limit of $LIMIT passed $(all_passed "$1"); forgotten $(shares lost), put back $(shares restored)"
}

# replica_of SERVER
replica_of() {
	local id

	id=$(redis "$1" cluster myid)
	for i in 1 2 3 4 5 6; do
		redis c$i cluster nodes | grep -q "myself,slave $id" && echo c$i
	done
}

# leads SERVER: it is a master, in a cluster that has all its slots.
leads() {
	[ "$(redis_info "$1" role)" = master ] &&
		redis "$1" cluster info | tr -d '\r' | grep -q '^cluster_slots_ok:16384'
}

# served: each user's response is one of the limit's.
served() {
	load 1 "$1"
	[ "$(load_others '200|429')" = 0 ]
}

redis_cluster 6
node_start a
node_start b
CLUSTER_REDIS+=", wait: 1"
node_start c
node_start d
redis_start alone
redis_use single alone
node_start e
node_start f

# ---------------------------------------------------------------- what the replica never had

LOAD_NODES=(a b)
load 40 lost
check_is "below the limit all pass" "$(all_passed lost)" "80 80"
# The link between the two, which goes over lo, is cut; nodes reach Redis from other namespaces.
replica=$(replica_of c1)
port=${REDIS_PORT[c1]}
nft add table inet cut
nft add chain inet cut in '{ type filter hook input priority 0; }'
nft add rule inet cut in iif lo tcp dport "$port" drop
nft add rule inet cut in iif lo tcp sport "$port" drop
load 20 lost
check_is "the master takes charges that its replica cannot have" "$(all_passed lost)" "120 120"
redis_kill c1
check_true "the replica becomes master" wait_for 15 leads "$replica"
nft delete table inet cut
check_true "the nodes find it" wait_for 10 served lost
spend lost
report lost
# Each node knows what it admitted itself, and sends that with its second command: what the other node
# admitted, and has not sent since, is the most that can be missing.
# (A restore whose reply never came is sent twice: an error towards fewer.)
check "each user had the whole limit" "$(all_passed lost | cut -d' ' -f1)" $((LIMIT - 2)) $((LIMIT + 24))
check "and at most the charges that the other node had not restored yet besides" \
	"$(all_passed lost | cut -d' ' -f2)" $LIMIT $((LIMIT + 24))
check "forgotten charges were counted" "$(shares lost)" 40 $((40 * USERS))
restored() {
	[ "$(shares restored)" -ge $(($(shares lost) * 95 / 100)) ]
}
check_true "they were restored" wait_for 5 restored

# ---------------------------------------------------------------- Redis comes back empty

LOAD_NODES=(e f)
load 60 empty
redis_kill alone
redis_again alone
check_true "an empty Redis is used again" wait_for 10 served empty
spend empty
report empty
check "each user had the whole limit" "$(all_passed empty | cut -d' ' -f1)" $((LIMIT - 2)) $((LIMIT + 64))
check "and at most the charges that the other node had not restored yet besides" \
	"$(all_passed empty | cut -d' ' -f2)" $LIMIT $((LIMIT + 64))
check "forgotten charges were counted" "$(shares lost)" $((110 * USERS)) $((130 * USERS))
check_true "they were restored" wait_for 5 restored
load 5 empty
check_is "after that no user gets more" "$(load_others 429)" 0

# ---------------------------------------------------------------- wait: 1

LOAD_NODES=(c d)
redis_again c1
check_true "the old master is the new one's replica" wait_for 10 redis_in_sync c1
load 20 wait
replica=$(replica_of c2)
load_bg 60 api user=wait 1 $USERS
redis_kill c2
load_wait
load_lines >> "$HUB/wait"
check_true "another replica becomes master" wait_for 15 leads "$replica"
redis_again c2
check_true "it has a replica of its own" wait_for 10 redis_in_sync c2
check_true "the nodes find it" wait_for 10 served wait
load 100 wait
report wait
check "with wait: 1 no user has more than 1 % above the limit" \
	"$(all_passed wait | cut -d' ' -f2)" 0 $((LIMIT * 101 / 100))
# A charge that no replica confirmed stays charged, and the request is refused.
check "each user had the limit, but for requests that failed" "$(load_had wait 200 503 | cut -d' ' -f1)" $LIMIT 10000

lab_done
