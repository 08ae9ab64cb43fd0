#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# wan.sh - two data centers that share limits: Redis and node a are in one, node b in the other, a round trip
# away (proxy.py delays both directions). For each consistency: what both let through of a limit, and how long
# b's responses take. Then b is cut off, and returns.
#
#     rate      100 requests/s, of which 40 are used: none is refused, cut off or not
#     over      the same limit, with 200 requests/s
#     hour      400 an hour, with 120 requests/s; without a reply none passes, so the count is exact
#     cut       800 an hour, which are used while b is cut off
#
# WAN_TRIPS="5 80 200" (ms) prints the table of docs/cluster.md instead: `make wan`.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin wan "$@"

: "${WAN_TRIPS:=80}"
RATE=100 HOUR=400 LEASE_MS=1000 BACK_MS=1000
# The default in the table; less, so that a step shows.
[ "$WAN_TRIPS" = 80 ] && BURST=50 || BURST=$RATE
BUCKET="limits: $RATE requests/s, algorithm: token-bucket, burst: $BURST"
# Requests a second on each node. A response waits for the one before it on its connection, so there are several.
LINES=(strict-rate=20 lease-rate=20 back-rate=20 strict-hour=60 lease-hour=60 back-hour=60 lease-over=100 lease-cut=60)
CONNECTIONS=16

rules() {
	local how consistency

	printf 'domain: api\ndescriptors:\n'
	for how in strict lease back; do
		consistency=$how
		[ $how != lease ] || consistency="{lease: ${LEASE_MS}ms}"
		[ $how != back ] || consistency="{write_back: ${BACK_MS}ms}"
		echo "  - {key: $how-rate, $BUCKET, consistency: $consistency}"
		echo "  - {key: $how-over, $BUCKET, consistency: $consistency}"
		echo "  - {key: $how-cut, limits: $((2 * HOUR)) requests/h, consistency: $consistency}"
		echo "  - {key: $how-hour, limits: $HOUR requests/h, consistency: $consistency, on_store_failure: closed}"
	done
}

# drive SECONDS VALUE: $LAB/answers has "NAME NODE SENT-MS TOOK-MS STATUS", SENT from the first request on.
drive() {
	local i line

	for ((i = 0; i < CONNECTIONS; i++)); do
		for line in "${LINES[@]}"; do
			echo "api ${line%=*} $2 $(calc "${line#*=} / $CONNECTIONS") 2"
		done
	done > "$LAB/lines"
	chrt -f 1 "$BIN/tests/cluster/drive" "$1" "$LAB/a/http.sock" "$LAB/b/http.sock" < "$LAB/lines" > "$LAB/raw" 2> "$LAB/drive" ||
		not_ok "drive: $(cat "$LAB/drive")"
	sort -n -k3 "$LAB/raw" | awk -v names="${LINES[*]%=*}" 'BEGIN { n = split(names, name, " ") }
		NR == 1 { begin = $3; printf "%.0f", begin / 1000 > "'"$LAB"'/began" }
		{ print name[$1 % n + 1], $2 ? "b" : "a", ($3 - begin) / 1000, ($4 - $3) / 1000, $5 }' > "$LAB/answers"
}

# had NAME NODE STATUS FROM TO: how many of a node (.: both) had that status (.: any); sent FROM to TO (ms).
had() {
	awk -v name="$1" -v node="$2" -v status="$3" -v from="$4" -v to="$5" '$1 == name && (node == "." || $2 == node) &&
		(status == "." || $5 == status) && $3 >= from && $3 < to { n++ } END { print n + 0 }' "$LAB/answers"
}

# p99 NAME FROM TO: of b's responses (ms).
p99() {
	awk -v name="$1" -v from="$2" -v to="$3" '$1 == name && $2 == "b" && $5 == 200 && $3 >= from && $3 < to { print $4 }' \
		"$LAB/answers" | sort -n | awk '{ at[NR] = $1 } END { print at[int((NR - 1) * 0.99) + 1] }'
}

# most_in MS NAME NODE FROM TO: the most and the least that passed in such an interval, of those that begin with a request.
most_in() {
	awk -v ms="$1" -v name="$2" -v node="$3" -v from="$4" -v to="$5" '
		$1 == name && (node == "." || $2 == node) && $3 >= from && $3 < to { all[++n] = $3; ok[n] = $5 == 200 }
		END { least = 1e9; end = 1
			for (i = 1; i <= n && all[i] + ms <= to; i++) {
				while (end <= n && all[end] < all[i] + ms) sum += ok[end++]
				if (sum > most) most = sum
				if (sum < least) least = sum
				sum -= ok[i] }
			print most + 0, least }' "$LAB/answers"
}

# ---------------------------------------------------------------- two centers

rules > "$LAB/api.yaml"
http_rules api < "$LAB/api.yaml"
redis_start main
redis_use single main
NEAR=$CLUSTER_REDIS
proxy_start far "${REDIS_PORT[main]}"
at_once "${REDIS_PID[main]}"
at_once "${LAB_PIDS[-1]}"

# centers RTT: two and a half round trips are the deadline.
centers() {
	local deadline=$(($1 * 5 / 2))

	proxy far delay 0 > /dev/null
	[ "$deadline" -ge 20 ] || deadline=20
	DEADLINE=$deadline
	CLUSTER_REDIS=$NEAR
	node_start a "deadline: ${deadline}ms"
	CLUSTER_REDIS=${NEAR/:${REDIS_PORT[main]}/:${PROXY_PORT[far]}}
	node_start b "deadline: ${deadline}ms"
	at_once "${NODE_PID[a]}"
	at_once "${NODE_PID[b]}"
	proxy far delay "$(calc "$1 / 2")" > /dev/null
	check_true "$1 ms: each node has received from the other" wait_for 10 nodes_know_each_other a b
}

table() {
	local trip how passed

	echo "# round trip, deadline, consistency: overshoot, p99 of b in its first second, later"
	for trip in $WAN_TRIPS; do
		centers "$trip"
		drive 10 "t$trip"
		for how in strict lease back; do
			passed=$(had $how-hour . 200 0 1e9)
			echo "# $trip ms, $DEADLINE ms, $how: $(calc "($passed - $HOUR) * 100 / $HOUR") %," \
				"$(p99 $how-rate 0 1000) ms, $(p99 $how-rate 1000 1e9) ms"
		done
		node_stop a
		node_stop b
	done
}

if [ "$WAN_TRIPS" != 80 ]; then
	utc_room 3600 120
	table
	lab_done
	exit
fi

# ---------------------------------------------------------------- cut off for three seconds

nft add table ip lab
nft 'add chain ip lab in { type filter hook input priority 0; }'
cut_off() { nft add rule ip lab in tcp dport "${PROXY_PORT[far]}" drop; }
join() { nft flush chain ip lab in; }
opened() { [ "$(node b metric sluice_store_breaker_open)" = "$1" ]; }
ms_now() { echo $(($(date +%s%N) / 1000000)); }

# The machine may stand still for longer than a round trip: that is measured again, up to three times.
utc_room 3600 200
for attempt in 1 2 3; do
	centers 80
	drive 15 "x$attempt" &
	driving=$!
	sleep 5.5
	CUT=$(ms_now)
	cut_off
	sleep 4
	JOINED=$(ms_now)
	join
	wait_for 4 opened 0
	BACK=$(ms_now)
	wait $driving
	began=$(cat "$LAB/began")
	CUT=$((CUT - began)) JOINED=$((JOINED - began)) BACK=$((BACK - began))
	[ "$(floor "$(p99 lease-rate 1000 $CUT)")" -lt 40 ] && [ $((BACK - JOINED)) -lt 3500 ] && break
	node_stop a
	node_stop b
done
echo "# cut off from $CUT to $JOINED ms, Redis replies to b again at $BACK ms"

check "strict: each response of b waits a round trip: 99 of 100 within (ms)" "$(p99 strict-rate 1000 $CUT)" 80 200
for how in lease back; do
	check "$how: after its first second none waits for Redis: 99 of 100 within (ms)" "$(p99 $how-rate 1000 $CUT)" 0 40
done
for how in strict lease; do
	check "$how: what passed of $HOUR an hour" "$(had $how-hour . 200 0 $CUT)" $((HOUR - 2)) $HOUR
done
check "write_back: what passed of $HOUR an hour, and what a node admits in an interval and a round trip" \
	"$(had back-hour . 200 0 $CUT)" $HOUR \
	$((HOUR + $(most_in $((BACK_MS + 130)) back-hour a 0 $CUT | cut -d' ' -f1)))

# Below the limit: no step. (write_back charges at once what b admitted in two intervals.)
for how in strict lease; do
	for node in a b; do
		check_is "$how: below the limit: $node: while b is cut off none is refused" \
			"$(had $how-rate $node . $CUT $JOINED)" "$(had $how-rate $node 200 $CUT $JOINED)"
		check_is "$how: below the limit: $node: nor once it is back" \
			"$(had $how-rate $node . $JOINED 1e9)" "$(had $how-rate $node 200 $JOINED 1e9)"
	done
done
# Above it: the limit in one center, and in the other a share, a quarter to three quarters of it.
seconds=$(calc "($JOINED - $CUT) / 1000")
check "above the limit: a, while b is cut off" "$(had lease-over a 200 $CUT $JOINED)" \
	"$(floor "0.85 * $seconds * $RATE")" "$(floor "($seconds + 0.25) * $RATE + $BURST")"
check "above the limit: b, cut off" "$(had lease-over b 200 $CUT $JOINED)" \
	"$(floor "0.2 * $seconds * $RATE")" "$(floor "0.75 * ($seconds * $RATE + $BURST)")"
read -r most least < <(most_in 1000 lease-over . $BACK 14500)
check "above the limit: both once b is back: no burst: the most of a second" "$most" "$RATE" $((RATE * 5 / 4))
check "nor a step: the least" "$least" $((RATE / 2)) $((RATE + RATE / 10))
check "of a window's limit: b has passed" "$(had lease-cut b 200 0 1e9)" 0 $((2 * HOUR * 3 / 4))
check_is "and both once b is back: none, for it has its charges" "$(had lease-cut . 200 $((BACK + 1500)) 1e9)" 0
lab_done
