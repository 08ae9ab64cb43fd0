#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# packets.sh - one limit of the packet tier over three nodes, and a real Redis between them. A source
# that floods all three is held to it in sum; one below it in sum loses nothing; a limit of scope node
# is each node's own; without Redis each node holds the limit by itself.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin packets "$@"
redis_start main

RATE=500
NODE_HTTP=
HTTP_TOP="interfaces: [{name: s0, mode: native}]
limits:
  - {name: shared, match: {src: 10.1.1.0/24}, rate: $RATE packets/s, scope: cluster}
  - {name: counted, match: {src: 10.1.2.0/24}, rate: 50 packets/365d, algorithm: fixed-window, scope: cluster}
  - {name: own, match: {src: 10.1.3.0/24}, rate: $RATE packets/s}"
packet_nodes a b c

# flood SECONDS: of every node at the same time; $HUB/NODE/sink.s0 records what passed.
flood() {
	local name

	sinks_start
	FROM=$(now)
	for name in a b c; do
		node $name blast_bg "$HUB/$name/flood" --src 10.1.1.2 --dst $SERVER4 --pps 1500 --time "$1"
		node $name blast_bg "$HUB/$name/below" --src 10.1.1.3 --dst $SERVER4 --pps 140 --time "$1"
		node $name blast_bg "$HUB/$name/own" --src 10.1.3.2 --dst $SERVER4 --pps 400 --time "$1"
		node $name blast_bg "$HUB/$name/count" --src 10.1.2.2 --dst $SERVER4 --pps 20 --time "$1"
	done
	blast_wait
	sinks_stop
}

# sum SRC [FROM TO]: frames that passed on all nodes.
sum() {
	local name

	for name in a b c; do
		node $name packets_passed s0 "$@"
	done | awk '{ n += $1 } END { print n + 0 }'
}
sent() {
	local name

	for name in a b c; do
		field "$HUB/$name/$1" sent
	done | awk '{ n += $1 } END { print n + 0 }'
}

flood 7
# burst + rate x t, and until nodes have published (nodes - 1) x (burst + rate x 0.7 s).
check "the flood, of all nodes in sum, in 7 s" "$(sum 10.1.1.2)" $((RATE * 7)) \
	$((RATE * 8 + 2 * RATE * 17 / 10))
# From the second second on; a machine that stands still publishes later.
check "the flood in 4 s from the third on" \
	"$(sum 10.1.1.2 "$(calc "$FROM + 3")" "$(calc "$FROM + 7")")" $((RATE * 4 * 7 / 10)) \
	$((RATE * 4 * 13 / 10))
check_is "a source below its limit in sum loses nothing" "$(sum 10.1.1.3)" "$(sent below)"
check_is "nor does one below each node's own limit" "$(sum 10.1.3.2)" "$(sent own)"
# 60 a second: 50 and those within two sync intervals, and half a second until the source is found.
check "of a count for a year there passed in sum" "$(sum 10.1.2.2)" 50 $((50 + 60))
check_is "limit show has the consumption of all nodes" \
	"$(node a ctl -o json limit show shared | jq -r .scope)" cluster
check_is "source show, too" \
	"$(node a ctl -o json source show 10.1.1.2 | jq -r '.limits[] | select(.limit == "shared") | .scope')" \
	cluster
check_true "messages are counted" test "$(node a ctl -o json cluster show | jq .packets.charged)" -gt 10
check_is "every message was understood" "$(node a ctl -o json cluster show | jq '.packets.bad + .packets.unknown')" 0

# ---- a daemon is restarted
node_kill b
node b daemon_run
check_true "b knows the others again" wait_for 15 node_met b
flood 5
check "with a new daemon on one node, 3 s of the flood" \
	"$(sum 10.1.1.2 "$(calc "$FROM + 2")" "$(calc "$FROM + 5")")" $((RATE * 3 * 6 / 10)) \
	$((RATE * 3 * 14 / 10))
check "of the count for a year next to nothing" "$(sum 10.1.2.2)" 0 5

# ---- without Redis each node is alone: (nodes - 1) x the limit more
redis_stop main
flood 5
check "without Redis 3 s of the flood, each node for itself" \
	"$(sum 10.1.1.2 "$(calc "$FROM + 2")" "$(calc "$FROM + 5")")" $((RATE * 3 * 3 * 8 / 10)) \
	$((RATE * 3 * 3 * 11 / 10))
redis_again main
wait_for 15 node_met a
flood 6
check "with Redis again one limit, in 3 s" \
	"$(sum 10.1.1.2 "$(calc "$FROM + 3")" "$(calc "$FROM + 6")")" $((RATE * 3 * 6 / 10)) \
	$((RATE * 3 * 14 / 10))
lab_done
