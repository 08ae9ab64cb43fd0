#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# protected.sh - blind ACKs, forged from the address of the Redis server, of the resolver and of the
# other node, under a limit that also bans by forged packets (`spoofable: yes`): none of the three is
# banned, the address beside each is, and the node still reaches Redis and the other node. That
# holds after the other node has left and while Redis is unavailable.

# /etc/resolv.conf is replaced, for this script alone.
if [ "$(id -u)" = 0 ] && [ -z "${PROTECTED_MOUNTS:-}" ]; then
	PROTECTED_MOUNTS=1 exec unshare -m -- bash "$0" "$@"
fi
. "$(dirname "$0")/../lib/redis.sh"
cluster_begin protected "$@"
redis_start main

RESOLVER=10.1.0.53
printf 'search example.org\nnameserver %s\n' $RESOLVER > "$LAB/resolv.conf"
mount --bind "$LAB/resolv.conf" /etc/resolv.conf || exit 1
NODE_HTTP=
HTTP_TOP="interfaces: [{name: s0, mode: native}]
limits:
  - {name: acks, match: {tcp_flags: ack}, rate: 10 packets/h, burst: 10, accounting: exact,
     ban: {after: 20 drops/m, for: 1h, spoofable: yes}}"
packet_nodes a b

# forge SOURCE: sends 200 ACKs with its address; FORGE_PASSED of them passed.
forge() {
	local before

	before=$(node a metric sluice_limit_packets_total limit=acks verdict=pass)
	node a blast "$HUB/a/forged" --src "$1" --dst $SERVER4 --proto tcp --flags 16 --dport 8080 --count 200
	node a settle s0
	FORGE_PASSED=$(($(node a metric sluice_limit_packets_total limit=acks verdict=pass) - before))
}
# spared WHO ADDRESS BESIDE PASSED
spared() {
	forge "$2"
	check_true "$1 is not banned" eval "! node a banned $2"
	check_is "the limit holds for it" "$FORGE_PASSED" "$4"
	forge "$3"
	check_true "the address beside it is banned" node a banned "$3"
}
knows_b() {
	node a ctl -o json cluster show |
		jq -e --arg b "${NODE_IP[b]}" '.peers[] | select(.node == "b") | .addresses | index($b)' > /dev/null
}

check_true "a knows b's address" wait_for 15 knows_b
spared "Redis" $REDIS_IP 10.90.0.2 10
spared "the resolver" $RESOLVER 10.1.0.54 10
spared "the other node" "${NODE_IP[b]}" 10.90.0.99 10
check_is "a still has Redis" "$(node a metric sluice_store_up)" 1
check_true "a still has the other node" node_met a

# ---- b leaves, then Redis stops
node_kill b
redis_stop main
forge "${NODE_IP[b]}"
forge $REDIS_IP
check_true "a node that has left is still not banned" eval "! node a banned ${NODE_IP[b]}"
check_true "nor is Redis while it is unavailable" eval "! node a banned $REDIS_IP"
lab_done
