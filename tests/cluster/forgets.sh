#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# forgets.sh - one node, and a Redis that forgets everything: before a flush, after it, many times while
# flushes are on their way, and by an empty restart. A user gets the limit and never one more, not even by
# the one request a second that the node refuses but still sends to Redis. At more moments, in virtual
# time: tests/scenario/requests/forgets.scn.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin forgets "$@"

LIMIT=40
KINDS=(strict-window strict-bucket written-window written-first written-bucket)
http_rules api <<YAML
domain: api
descriptors:
  - {key: strict-window, limits: $LIMIT requests/h, consistency: strict}
  - {key: strict-bucket, limits: $LIMIT requests/d, algorithm: token-bucket, burst: $LIMIT, consistency: strict}
  - {key: written-window, limits: $LIMIT requests/h, consistency: {write_back: 200ms}}
  - {key: written-first, limits: $LIMIT requests/h, window: first-request, consistency: {write_back: 200ms}}
  - {key: written-bucket, limits: $LIMIT requests/d, algorithm: token-bucket, burst: $LIMIT,
     consistency: {write_back: 200ms}}
YAML
redis_start main
utc_room 3600 60
node_start a
for kind in "${KINDS[@]}"; do
	check_is "$kind: the node responds" "$(node a http_check api "$kind=first")" 200
done

# spend USER COUNT: sends so many requests of each kind; what passed is added up in $LAB/KIND.USER.
spend() {
	local kind

	for kind in "${KINDS[@]}"; do
		node a many "$2" api "$kind=$1" >> "$LAB/$kind.$1"
	done
}
forget() {
	redis main flushall > /dev/null
}
# passed USER WORDS: a restart may charge requests in flight twice, so somewhat less may have passed.
passed() {
	local kind

	for kind in "${KINDS[@]}"; do
		check "$2: $kind: passed" "$(awk '{ n += $1 } END { print n }' "$LAB/$kind.$1")" "${3:-$LIMIT}" $LIMIT
	done
}
# More than a second: each key is sent to Redis once more.
probes() {
	spend "$1" 10
	sleep 1.1
	spend "$1" 10
	sleep 1.1
	spend "$1" 10
}

for moment in 0.1; do
	spend "at-$moment" 20
	sleep $moment
	forget
	spend "at-$moment" 30
	passed "at-$moment" "forgotten after $moment s"
done
for moment in 0.05; do
	spend "full-$moment" 45
	sleep $moment
	forget
	probes "full-$moment"
	passed "full-$moment" "forgotten after $moment s, all used"
done

# A flush each 200 ms, and Redis loses everything faster than a command can use it.
while :; do
	forget
done &
forgetting=$!
started
for _ in $(seq 30); do
	spend always 2
	sleep 0.02
done
probes always
kill $forgetting
wait $forgetting 2> /dev/null
sleep 0.5
probes always
passed always "forgotten all the time"

spend restarted 20
redis_kill main
spend restarted 5
redis_again main
check_true "Redis is back" wait_for 10 eval '[ "$(node a metric sluice_store_breaker_open)" = 0 ]'
probes restarted
passed restarted "restarted empty" $((LIMIT / 2))
lab_done
