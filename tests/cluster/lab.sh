#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The lab of the cluster's scenarios itself: servers that start, stop, stand still and come back empty;
# TLS, replicas, sentinels, a Redis Cluster; the ACL user; a proxy that simulates a bad network; nodes
# that reach Redis each from a namespace of its own.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin lab "$@"

# from NODE SERVER: the reply to PING from there.
from() {
	# shellcheck disable=SC2086
	node "$1" on_server timeout 2 redis-cli -h $REDIS_IP -p "${REDIS_PORT[$2]}" ${REDIS_TLS[$2]} ping 2>&1
}

# as_user SERVER COMMAND...: as nodes send it.
as_user() {
	local name=$1

	shift
	REDISCLI_AUTH=$(< "$LAB/redis.password") redis "$name" --user sluice "$@" 2>&1
}

redis_start main
node_add a
node_add b
node_add c
for name in a b c; do
	check_is "$name reaches Redis" "$(from $name main)" PONG
done
node b on_server ip link set lan0 down
check_is "not without its link" "$(from b main | grep -c PONG)" 0
node b on_server ip link set lan0 up
check_true "again with the link" wait_for 5 eval '[ "$(from b main)" = PONG ]'

redis main set x 1 > /dev/null
redis_pause main
check_is "a server that stands still sends nothing" "$(from a main | grep -c PONG)" 0
redis_resume main
check_is "it goes on" "$(from a main)" PONG
redis_kill main
check_is "a server that was killed refuses connections" "$(from a main | grep -c refused)" 1
redis_again main
check_is "it comes back empty" "$(redis main dbsize)" 0

check_is "the nodes' user may use their keys" "$(as_user main hset sluice:x x 1)" 1
check_is "the user may use no other keys" "$(as_user main hset x x 1 | grep -c NOPERM)" 1
check_is "the user may use no other commands" "$(as_user main flushall | grep -c NOPERM)" 1

redis_tls_start secure
check_is "TLS, with its certificates" "$(from a secure)" PONG
check_is "no connection without certificates" "$(redis-cli -h $REDIS_IP -p "${REDIS_PORT[secure]}" ping 2>&1 | grep -c PONG)" 0

# ---------------------------------------------------------------- proxy

proxy_start slow "${REDIS_PORT[main]}"
ask_slow() {
	timeout "${1:-5}" redis-cli -h $REDIS_IP -p "${PROXY_PORT[slow]}" ping 2>&1
}
check_is "through a proxy" "$(ask_slow)" PONG
proxy slow delay 200 > /dev/null
before=$(now)
check_is "with a delay, too" "$(ask_slow)" PONG
check "the delay holds both ways" "$(calc "$(now) - $before")" 0.39 4
proxy slow blackhole > /dev/null
check_is "nothing goes through" "$(ask_slow 0.5 | grep -c PONG)" 0
proxy slow pass > /dev/null
check_is "all faults undone" "$(ask_slow)" PONG
proxy slow refuse > /dev/null
check_is "connections are refused" "$(ask_slow | grep -c -e refused -e closed)" 1
proxy slow refuse off > /dev/null
check_is "connections are accepted again" "$(ask_slow)" PONG
check_is "the proxy counts connections" "$(proxy slow count | cut -d' ' -f1,2)" "ok 5"

# ---------------------------------------------------------------- several servers

redis_replica copy main
redis main set y 2 > /dev/null
check_true "a replica has what its master has" wait_for 5 eval '[ "$(redis copy get y)" = 2 ]'
redis_sentinel s1 main 1
check_is "a sentinel knows the master" \
	"$(redis s1 sentinel get-master-addr-by-name mymaster | tail -n 1)" "${REDIS_PORT[main]}"

redis_cluster 6
check_is "a cluster has all slots" \
	"$(redis c1 cluster info | tr -d '\r' | sed -n 's/^cluster_slots_ok://p')" 16384
check_is "it has three masters" "$(redis c1 cluster nodes | grep -c master)" 3
check_is "its servers redirect clients to each other" \
	"$(for i in 1 2 3; do redis c$i set sluice:{b} 1 2>&1; done | cut -d' ' -f1 | grep . | sort | uniq -c | xargs)" \
	"2 MOVED 1 OK"

# ---------------------------------------------------------------- nodes

http_rules api <<'YAML'
  - key: user
    rate_limit: {unit: day, requests_per_unit: 5}
YAML
# Without `cluster:` each node counts by itself.
CLUSTER_REDIS=
node_start a
node_start b
check_is "a node responds" "$(node a http_check api user=bob)" 200
check_is "each node has its own limit" "$(spread 8 api user=bob)" 9
check_is "each node counts its own requests" "$(cat "$HUB/a/passed" "$HUB/b/passed" | xargs)" "4 5"
check_is "each node has its own metrics" \
	"$(node a metric sluice_decisions_total verdict=over_limit) $(node b metric sluice_decisions_total verdict=over_limit)" "4 3"
node_stop a
check_is "the other node goes on when one has stopped" "$(spread 1 api user=eve)" 1

lab_done
