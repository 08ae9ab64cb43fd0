#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# slots.sh - two daemons and a Redis Cluster of six: slots that move while they are used lose nothing,
# nor does a manual failover; exactly the limit passes for each user. A master is lost without a replica:
# its keys alone, or all with Redis' default, and each cause is logged once.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin slots "$@"
utc_room 86400 120

USERS=24
LIMIT=300
bucket="{name: all, rate: 100000 requests/d, algorithm: token-bucket, burst: 50000}"
strict_rules "{name: day, rate: $LIMIT requests/d}, $bucket"
redis_cluster 6
node_start a
node_start b

# errors NAME: how many replies of a kind of error the servers have given.
errors() {
	local i

	for i in 1 2 3 4 5 6; do
		redis_info c$i "errorstat_$1"
	done | sed 's/count=//' | awk '{ n += $1 } END { print n + 0 }'
}

# move_slot SLOT FROM TO: as redis-cli does it, with pauses between its steps.
move_slot() {
	local slot=$1 from=$2 to=$3 keys

	redis $to cluster setslot $slot importing "$(redis $from cluster myid)" > /dev/null
	redis $from cluster setslot $slot migrating "$(redis $to cluster myid)" > /dev/null
	# One key at a time: requests meet a slot that is half moved.
	while keys=$(redis $from cluster getkeysinslot $slot 1) && [ -n "$keys" ]; do
		case $(redis $from migrate $REDIS_IP "${REDIS_PORT[$to]}" "$keys" 0 5000) in
		OK | NOKEY) ;;
		*) return ;; # one of the two has been replaced
		esac
	done
	redis $to cluster setslot $slot node "$(redis $to cluster myid)" > /dev/null
	redis $from cluster setslot $slot node "$(redis $to cluster myid)" > /dev/null
}

# "SLOT SERVER" of each slot with a key of a bucket; SERVER is an index of SERVERS.
slots_used() {
	local i

	for i in 0 1 2; do
		redis "${SERVERS[i]}" --scan --pattern 'sluice:{*' | sed 's/.*/cluster keyslot "&"/' |
			redis "${SERVERS[i]}" | sort -un | sed "s/$/ $i/"
	done
}

# failures: how often servers have found that another one has failed.
failures() {
	cat "${REDIS_DIR[@]/%//log}" | grep -c ' as failing'
}

# no_request_fails COMMAND PREFIX: while COMMAND runs, under load; and each user has exactly the limit. On a
# busy machine a server may be silent for longer than the deadline, and requests are answered without it, or
# for so long that the others replace it (CLUSTERDOWN): if one of those that failed was late, or a server
# failed, it is done again, with other users.
no_request_fails() {
	local try before

	for try in a b c d; do
		before=$(failures)
		load_bg $((LIMIT * 2 / 3)) api "user=$2$try" 1 $USERS
		$1
		load_wait
		if [ "$(failures)" = "$before" ]; then
			[ "$(load_others '200|429')" != 0 ] && load_late 0.75 '200|429' || break
		fi
		echo "# $1: requests were late, or a server was; once more"
	done
	check_is "each user had exactly the limit" "$(load_passed)" "$LIMIT $LIMIT"
	check_is "no request failed" "$(load_others '200|429')" 0
}

# ---------------------------------------------------------------- without faults

load_bg $((LIMIT * 2 / 3)) api user=u 1 1
load_wait
check_is "of one user exactly the limit passes" "$(load_passed)" "$LIMIT $LIMIT"
check_is "no response is an error" "$(load_others '200|429')" 0

# ---------------------------------------------------------------- slots move

from=$(errors MOVED)
each_has_a_key() { [ "$(slots_used | wc -l)" -ge $((USERS * 3 / 4)) ]; }
move_slots() {
	local slot at

	mapfile -t SERVERS < <(redis_masters)
	moves=0
	wait_for 10 each_has_a_key
	while load_runs && [ $moves -lt 60 ]; do
		while read -r slot at; do
			move_slot "$slot" "${SERVERS[at]}" "${SERVERS[(at + 1) % 3]}"
			moves=$((moves + 1))
		done < <(slots_used | shuf -n 9)
	done
}
no_request_fails move_slots v
check "slots were moved meanwhile" $moves 9 1000
check "requests met slots being moved (ASK)" "$(errors ASK)" 1 1000000
check "requests met slots that had moved (MOVED)" "$(($(errors MOVED) - from))" 1 1000000

# ---------------------------------------------------------------- a manual failover

replicas_lead() {
	[ "$(redis_masters | xargs)" = "$1" ]
}
fail_over() {
	local replicas server

	[ "$(redis_masters | xargs)" = "c1 c2 c3" ] && replicas="c4 c5 c6" || replicas="c1 c2 c3"
	for server in $replicas; do
		redis $server cluster failover > /dev/null
	done
	check_true "the replicas have become masters" wait_for 10 replicas_lead "$replicas"
	check_true "under load" load_runs
}
no_request_fails fail_over w

# ---------------------------------------------------------------- a master is lost, with its replica

# Not the one that has the messages.
for victim in $(redis_masters); do
	[ "$(redis $victim exists 'sluice:{bus}')" = 1 ] || break
done
replica=$(redis $victim cluster nodes | awk -v id="$(redis $victim cluster myid)" '$4 == id { split($2, at, "[:@]"); print at[2] }')
for server in "${!REDIS_PORT[@]}"; do
	[ "${REDIS_PORT[$server]}" != "$replica" ] || redis_kill $server
done
redis_kill $victim
# refused: how many of USERS are refused, since on_store_failure is closed.
refused() {
	local i

	for ((i = 1; i <= USERS; i++)); do
		node a http_check api user=lost$i
		echo
	done | grep -c 503
}
some() { (($(refused) > 0 && $(refused) < USERS)); }
all() { [ "$(refused)" = $USERS ]; }
check_true "without full coverage its keys alone have no store" wait_for 10 some
for i in 1 2 3 4 5 6; do
	redis c$i config set cluster-require-full-coverage yes > /dev/null 2>&1
	# Looks at the state of the cluster again.
	redis c$i cluster setslot 0 stable > /dev/null 2>&1
done
check_true "with it, Redis' default, none has" wait_for 15 all
# Breakers open and close meanwhile.
for i in 1 2 3 4 5; do
	sleep 1
	all || not_ok "they have one again"
done
check_true "the log has the cause" grep -q "reports that its cluster is down: CLUSTERDOWN" "$HUB/a/daemon.log"
for name in a b; do
	check "node $name: lines about messages" "$(grep -c 'warning: cluster: messages' "$HUB/$name/daemon.log")" 1 2
	check_is "node $name: none twice" "$(grep 'warning: cluster: messages' "$HUB/$name/daemon.log" | sort | uniq -d)" ""
	# Four servers are left.
	check "node $name: lines of the servers" "$(grep -c 'cluster is down' "$HUB/$name/daemon.log")" 1 8
done

lab_done
