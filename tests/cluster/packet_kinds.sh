#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# packet_kinds.sh - all kinds of limits of the packet tier, each of `scope: cluster` and flooded on
# three nodes at the same time: algorithms, units, IPv4 and IPv6, several rates, lists of prefixes,
# overrides, a bucket for all, one for each port. From the second second on all nodes together pass
# what one limit allows; sources below it in sum, and exempt ones, lose nothing.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin packet_kinds "$@"
redis_start main

NODE_HTTP=
HTTP_TOP="interfaces: [{name: s0, mode: native}]
exempt: [10.1.20.0/24]
limits:
  - {name: token, match: {src: 10.1.1.0/24}, rate: 300 packets/s, scope: cluster}
  - {name: leaky, match: {src: 10.1.2.0/24}, rate: 300 packets/s, algorithm: leaky-bucket, scope: cluster}
  - {name: fixed, match: {src: 10.1.3.0/24}, rate: 600 packets/2s, algorithm: fixed-window, scope: cluster}
  - {name: sliding, match: {src: 10.1.4.0/24}, rate: 1200 packets/4s, algorithm: sliding-window, scope: cluster}
  - {name: bytes, match: {src: 10.1.5.0/24}, rate: 30K bytes/s, scope: cluster}
  - {name: bits, match: {src: 10.1.6.0/24}, rate: 240K bits/s, scope: cluster}
  - {name: new, match: {src: 10.1.7.0/24, proto: tcp}, rate: 60 connections/s, scope: cluster}
  - {name: v6, match: {src: '2001:db8:1::/48'}, rate: 300 packets/s, scope: cluster}
  - {name: ladder, match: {src: 10.1.8.0/24}, rate: 150 packets/s, prefix: {ipv4: [32, 24]},
     prefix_scale: {ipv4: [1, 2]}, scope: cluster}
  - {name: own, match: {src: 10.1.9.0/24}, rate: 60 packets/s, scope: cluster,
     overrides: [{src: 10.1.9.7, rate: 300 packets/s, burst: 300}]}
  - {name: all, match: {src: 10.1.10.0/24}, per: [], rate: 300 packets/s, scope: cluster}
  - {name: port, match: {src: 10.1.11.0/24, dport: 9000-9010}, per: [dport], rate: 300 packets/s, scope: cluster}
  - {name: counted, match: {src: 10.1.13.0/24}, rate: 300 packets/s, count: all, scope: cluster}
  - {name: rates, match: {src: 10.1.12.0/24}, rate: [1000 packets/s, 30K bytes/s], scope: cluster}"
packet_nodes a b c

# send SRC [OPTIONS]: from each node's client.
send() {
	node $name blast_bg "$HUB/$name/sent.$((++SENT))" --src "$1" --dst "${TO:-$SERVER4}" --time 6 "${@:2}"
}
sinks_start
FROM=$(now)
for name in a b c; do
	SENT=0
	for n in 1 2 3 4; do
		send 10.1.$n.2 --pps 600
	done
	send 10.1.5.2 --pps 600 --length 100
	send 10.1.6.2 --pps 600 --length 100
	send 10.1.7.2 --pps 200 --proto tcp
	TO=$SERVER6 send 2001:db8:1:5::/64 --pps 600
	send 10.1.8.0/24 --sequential 8 --pps 600
	send 10.1.9.7 --pps 600
	send 10.1.9.8 --pps 200
	send 10.1.10.0/24 --pps 600
	send 10.1.11.0/24 --dport 9000-9001 --pps 800
	send 10.1.12.2 --pps 600 --length 100
	# It hammers at one node, and stays far below the limit at the others.
	send 10.1.13.2 --pps $([ $name = a ] && echo 900 || echo 60)
	# The sources that lose nothing come last: below the limit in sum; exempt.
	send 10.1.1.3 --pps 85
	send 10.1.20.2 --pps 200
done
blast_wait
sinks_stop

# sum PATTERN FROM TO [PORT]: frames that passed on all nodes, of matching sources, in that time.
sum() {
	cat "$HUB"/[abc]/sink.s0 | awk -F'\t' -v p="$1" -v from="$(calc "$FROM + $2")" \
		-v to="$(calc "$FROM + $3")" -v port="${4:-}" '
		$2 ~ p && $1 >= from && $1 < to && (port == "" || $4 == port) { n++ }
		END { print n + 0 }'
}
# held WORDS PATTERN RATE [PORT]: in each of the four seconds after the first one RATE passed, with
# tolerance for a machine that stands still.
held() {
	check "$1: in 4 s" "$(sum "$2" 1 5 "${4:-}")" $(($3 * 4 * 6 / 10)) $(($3 * 4 * 14 / 10))
}
# lost_nothing WORDS PATTERN FILE
lost_nothing() {
	local sent

	sent=$(for name in a b c; do field "$HUB/$name/$3" sent; done | awk '{ n += $1 } END { print n }')
	check_is "$1" "$(sum "$2" 0 100)" "$sent"
}
held "token bucket" '^10\.1\.1\.2$' 300
held "leaky bucket" '^10\.1\.2\.2$' 300
held "bytes" '^10\.1\.5\.2$' 300
held "bits" '^10\.1\.6\.2$' 300
held "connections" '^10\.1\.7\.2$' 60
held "IPv6, a /64" '^2001:db8:1:5:' 300
held "a list of prefixes, the wider one" '^10\.1\.8\.' 300
held "who has an override" '^10\.1\.9\.7$' 300
held "who has not" '^10\.1\.9\.8$' 60
held "one bucket for all" '^10\.1\.10\.' 300
held "a bucket for each port, one" '^10\.1\.11\.' 300 9000
held "another" '^10\.1\.11\.' 300 9001
held "of several rates the smaller one" '^10\.1\.12\.2$' 300
check "count: all: what one node refuses keeps the source out of all, in 4 s" "$(sum '^10\.1\.13\.2$' 1.5 5.5)" 0 120
check "it had its burst" "$(sum '^10\.1\.13\.2$' 0 1.5)" 250 900
# The limit in each of at most four windows, and what each node admitted before the others published: 0.7 s
# in the first one, two intervals in the others, and delays.
check "a window of 2 s, in 6 s" "$(sum '^10\.1\.3\.2$' 0 100)" 1500 $((4 * 600 + 2 * 600 * 20 / 10))
# 4 s: 2.5 windows, and the same once.
check "a sliding window, in 6 s" "$(sum '^10\.1\.4\.2$' 0 100)" 1200 $((3000 + 2 * 600 * 14 / 10))
lost_nothing "who is below his limit in sum loses nothing" '^10\.1\.1\.3$' sent.16
lost_nothing "nor who is exempt" '^10\.1\.20\.2$' sent.17
check_is "every message was understood" \
	"$(for name in a b c; do node $name ctl -o json cluster show | jq '.packets.bad + .packets.unknown'; done | xargs)" "0 0 0"
lab_done
