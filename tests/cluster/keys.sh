#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What two nodes store in Redis, and which commands they send: keys that disclose nothing and expire by
# themselves, offenders that cost no commands, requests whose keys are on several servers; and a Redis in bad
# shape: scripts flushed and connections killed under load, keys that another program has written.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin keys "$@"

http_rules api <<'YAML'
  - {key: fixed, scope: cluster, limits: [10 requests/20s]}
  - {key: sliding, scope: cluster, algorithm: sliding-window, limits: [10 requests/20s]}
  - {key: log, scope: cluster, algorithm: sliding-log, limits: [10 requests/20s]}
  - {key: bucket, scope: cluster, algorithm: token-bucket, burst: 10, limits: [1 requests/2s]}
  - {key: first, scope: cluster, window: first-request, limits: [10 requests/20s]}
  - {key: lease, consistency: {lease: 1s}, limits: [10 requests/20s]}
  - {key: brief, scope: cluster, limits: [1 requests/s, {rate: 1 requests/s, algorithm: sliding-log}]}
  - {key: user, scope: cluster, on_store_failure: closed, limits: [100 requests/d]}
  - {key: other, scope: cluster, on_store_failure: open, limits: [5 requests/d]}
  - {key: counted, consistency: {write_back: 10m}, limits: [40 requests/d]}
YAML

redis_ring r1 r2
node_start a
node_start b
ready() { [ "$(node a metric sluice_store_up)$(node b metric sluice_store_up)" = 11 ]; }
check_true "both nodes have a store" wait_for 10 ready

both() { redis r1 "$@"; redis r2 "$@"; }
keys() { both --scan; }
statuses() { cat "$HUB"/{a,b}/many | sort | uniq -c | awk '{ print $2 ":" $1 }' | xargs; }

# ---------------------------------------------------------------- keys

for key in fixed sliding log bucket first lease; do
	spread 4 api $key=Mr-Secret > /dev/null
done
check_is "each key has a hash slot and a hash" \
	"$(keys | grep -cvE '^sluice:(\{bus\}|\{[0-9a-f]{16}\}[0-9a-f]{16}(b|w|s|l|lz|f))$')" 0
check_is "there are keys of each kind" "$(keys | sed 's/.*}.\{16\}//' | sort -u | xargs)" "b f l lz s sluice:{bus} w"
check_is "no key or value discloses a user" "$(for server in r1 r2; do
	redis $server --scan | while read -r key; do
		case $key in
		*lz) redis $server zrange "$key" 0 -1 ;;
		*bus}) redis $server xrange "$key" - + ;;
		*) redis $server hgetall "$key" ;;
		esac
	done
done | tee "$LAB/content" | grep -ci secret)" 0
check "there is content to search" "$(wc -l < "$LAB/content")" 40 100000
# KIND: the time to live of the first and the last key of a kind, ms.
longest() {
	local server

	for server in r1 r2; do
		redis $server --scan | grep -E "}.{16}$1\$" | while read -r key; do
			redis $server pttl "$key"
		done
	done | sort -n | sed -n '1p;$p' | xargs
}
# Their last request was within this second or two; of eight requests none is left when a bucket is empty.
while read -r kind most; do
	read -r least longest <<< "$(longest "$kind")"
	check "$kind: keys expire" "$least" 1 "$most"
	check "$kind: and no later than necessary" "$longest" 1 "$most"
done <<< 'w 22100
s 40100
l 20100
lz 20100
f 22100
b 16100'
check "messages expire, too" "$(for server in r1 r2; do redis $server pttl 'sluice:{bus}'; done | sort -n | tail -n 1)" \
	100000 120100
spread 1 api brief=x > /dev/null
gone() { [ "$(keys | grep -cE '}.{16}lz$')" -le 1 ]; }
check_true "expired keys are gone" wait_for 5 gone

# ---------------------------------------------------------------- commands

many_of() {
	local name=$1 count=$2 list= kv

	shift 2
	for kv; do
		list+=${list:+,}"{\"entries\":[{\"key\":\"${kv%%=*}\",\"value\":\"${kv#*=}\"}]}"
	done
	node "$name" many_bodies "$count" "{\"domain\":\"api\",\"descriptors\":[$list]}"
}
many_bodies() {
	"${IN_S[@]}" curl -s -m 60 -Z --no-progress-meter --parallel-max 8 -o /dev/null \
		-w '%{http_code}\n' -d "$2" "$URL/v1/check#[1-$1]" > "$LAB/many"
}
asked() { both info commandstats | tr -d '\r' | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p' |
	awk '{ n += $1 } END { print n + 0 }'; }
remaining() {
	node "$1" request -d "$(check_body api "$2" --peek true)" /v1/check > /dev/null
	jq '.statuses[0].remaining' < "$HUB/$1/body"
}

# Five of each pass, whichever servers its two keys are on; a charge to one that the other refused is refunded.
for i in 1 2 3 4 5; do
	many_of a 20 user=two$i other=two$i &
	many_of b 20 user=two$i other=two$i
	wait $!
	echo "$(statuses) left $(remaining a user=two$i)"
done > "$LAB/two"
# A reply that takes longer than the deadline of a second would change the numbers below.
without_reply() {
	{ node a metrics; node b metrics; } |
		awk '/^sluice_decisions_store_unavailable_total/ { n += $2 } END { print n + 0 }'
}
check_is "each was decided by Redis' reply" "$(without_reply)" 0
check_is "of two limits on two servers both or none are charged" "$(sort "$LAB/two" | uniq -c | xargs)" \
	"5 200:5 429:35 left 95"

before=$(asked) begin=$(now)
many_of a 1000 other=two1
many_of b 1000 other=two1 user=two1
check_is "a user over the limit is refused" "$(statuses)" "429:2000"
check "refusals cost a command a second and node" "$(calc "$(asked) - $before")" 0 \
	"$(calc "2 * ($(now) - $begin) + 4")"
check_is "a neighbour passes" "$(spread 2 api other=al)" 4

# A reset also clears what a node has counted for minutes and not flushed. The first request of each node is
# charged in Redis, so the second to come knows one of the other.
spread 15 api counted=bob > /dev/null
check_is "each node knows what it counted" \
	"$({ remaining a counted=bob; remaining b counted=bob; } | sort | xargs)" "24 25"
node a ctl user reset api/counted bob > /dev/null
reset_seen() { [ "$(remaining a counted=bob) $(remaining b counted=bob)" = "40 40" ]; }
check_true "a reset reaches a node at once that would send no command for minutes" wait_for 5 reset_seen

# ---------------------------------------------------------------- Redis in bad shape

MANY=(-Z --no-progress-meter --parallel-max 8)
meanwhile() {
	while :; do
		both "$@" > /dev/null 2>&1
		sleep 0.1
	done &
	MEANWHILE=$!
	started
}
enough() {
	kill $MEANWHILE
	wait $MEANWHILE 2> /dev/null
}
meanwhile script flush
check_is "while scripts are flushed the limit holds" "$(spread 100 api user=flush)" 100
enough
check_is "no request gets an error" "$(statuses)" "200:100 429:100"
meanwhile client kill type normal skipme yes
check "while connections are killed at most the limit passes" "$(spread 300 api user=kill)" 0 100
enough
check_is "every request gets a response" "$(statuses | tr ' ' '\n' | awk -F: '{ n += $2 } END { print n }')" 600
well() { [ "$(node a http_check api user=w$RANDOM)$(node b http_check api user=w$RANDOM)" = 200200 ]; }
check_true "then all is well" wait_for 10 well
sleep 0.5
check_true "on all connections" wait_for 10 well

both flushall > /dev/null
spread 10 api user=mine > /dev/null
spread 2 api other=mine > /dev/null
keys | grep w$ > "$LAB/written"
check_is "keys" "$(wc -l < "$LAB/written")" 2
while read -r key; do
	both set "$key" "not a hash" > /dev/null
done < "$LAB/written"
check_is "keys that another program has written: closed" "$(spread 10 api user=mine) $(statuses)" "0 503:20"
# One after the other: a request in flight occupies its place.
MANY=()
check_is "keys that another program has written: open" "$(node a many 10 api other=mine)" 10
check_is "other keys are counted" "$(spread 10 api other=yours) $(statuses)" "5 200:5 429:15"
while read -r key; do
	both del "$key" > /dev/null
done < "$LAB/written"
check "once those keys are gone the limit holds again" "$(spread 100 api user=mine)" 70 100

lab_done
