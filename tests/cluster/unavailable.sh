#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What two nodes let through of a lease and of a write_back limit while Redis is unavailable, for each
# on_store_failure: first the quota at hand when it stopped, and then what the rule states. Once Redis stands still
# (SIGSTOP) and has forgotten nothing, once it is killed and comes back empty.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin away "$@"

LIMIT=400
EACH=80			# requests a second of each node
LEASE_MS=100 BACK_MS=200
# quota.h: a flush is sent within 10 ms of its time, and its reply is waited for for 20 ms.
FLUSH_MS=30

NAMES=()
printf 'domain: api\ndescriptors:\n' > "$LAB/api.yaml"
for how in lease written; do
	for failure in local open closed error; do
		NAMES+=($how-$failure)
		consistency="{lease: ${LEASE_MS}ms}"
		[ $how = lease ] || consistency="{write_back: ${BACK_MS}ms}"
		printf '  - {key: %s, limits: %s requests/h, consistency: %s, on_store_failure: %s}\n' \
			$how-$failure $LIMIT "$consistency" $failure >> "$LAB/api.yaml"
	done
done
http_rules api < "$LAB/api.yaml"

redis_start main
utc_room 3600 60
for name in a b; do
	node_start $name "sync: 50ms
		deadline: 100ms"
	check_is "$name responds" "$(node $name http_check api lease-closed=first)" 200
done
# The share of a node follows from the number of nodes.
check_true "each node knows the other" wait_for 10 nodes_know_each_other a b
SOCKETS=("$LAB/a/http.sock" "$LAB/b/http.sock")


# drive SECONDS VALUE RATE FILE: each rule on both nodes.
drive() {
	local name

	for name in "${NAMES[@]}"; do
		echo "api $name $2 $3 2"
	done > "$LAB/lines"
	"$BIN/tests/cluster/drive" "$1" "${SOCKETS[@]}" < "$LAB/lines" > "$LAB/$4" 2> "$LAB/drive" ||
		not_ok "drive: $(cat "$LAB/drive")"
}

# counted LINE NODE STATUS FROM FILE...: how many of a node's requests (.: of both) sent at FROM (us of UTC)
# or later got that status.
counted() {
	local line=$1 node=$2 status=$3 from=$4

	shift 4
	(cd "$LAB" && cat "$@") | awk -v line="$line" -v node="$node" -v status="$status" -v from="$from" '
		$1 == line && (node == "." || $2 == node) && $5 == status && $3 >= from { n++ } END { print n + 0 }'
}

# most LINE NODE MS FILE...: the most allowed within so long.
most() {
	local line=$1 node=$2 ms=$3

	shift 3
	(cd "$LAB" && cat "$@") | awk -v line="$line" -v node="$node" '
		$1 == line && $2 == node && $5 == 200 { print $4 }' |
		sort -n | awk -v us=$((ms * 1000)) '{ at[NR] = $1; while ($1 - at[from + 1] >= us) from++
			if (NR - from > most) most = NR - from } END { print most + 0 }'
}

# All counts are flushed, and what Redis forgot is restored.
settled() {
	local name

	for name in a b; do
		[ "$(node $name metric sluice_store_breaker_open)" = 0 ] && node $name ctl -o json cluster show |
			jq -e '.quota | .unflushed == 0 and .lost == .restored' > /dev/null || return
	done
}

# while_away WORDS LINE NODE: from $GONE on, until the last response.
while_away() {
	local name=${NAMES[$2]} node=$3 words="$1: ${NAMES[$2]}: node $3" holds_us
	local all passed refused failed late

	all=$(awk -v line="$2" -v node="$node" -v from="$GONE" '$1 == line && $2 == node && $3 >= from { n++ }
		END { print n + 0 }' "$LAB/answers")
	passed=$(counted "$2" "$node" 200 "$GONE" answers)
	refused=$(counted "$2" "$node" 429 "$GONE" answers)
	failed=$(counted "$2" "$node" 503 "$GONE" answers)
	check_is "$words: each request has a response" $((passed + refused + failed)) "$all"
	case $name in
	*-open)
		check_is "$words: all pass" "$passed" "$all"
		;;
	*-local)
		check_is "$words: none gets an error" "$failed" 0
		check "$words: some are refused" "$refused" 1 "$all"
		# An even part is a half; the demand is recognized as even, so at least half of that passes.
		check "$words: its share passes" "$(counted "$2" "$node" 200 0 answers)" \
			$((LIMIT / 4)) $((LIMIT * 60 / 100))
		;;
	*)
		holds_us=$((LEASE_MS * 1000))
		[ "${name%-*}" = lease ] || holds_us=$(((BACK_MS + FLUSH_MS) * 1000))
		late=$(counted "$2" "$node" 200 $((GONE + holds_us)) answers)
		check_is "$words: none passes by quota at hand after $((holds_us / 1000)) ms" "$late" 0
		check "$words: no more than the quota passes" "$passed" 0 "$(in_hand "$2" "$node")"
		check_is "$words: no request is refused as over the limit" "$refused" 0
		;;
	esac
}

# in_hand LINE NODE: of a lease half of what all may hold, a tenth; of write_back what it admits meanwhile.
in_hand() {
	case ${NAMES[$1]} in
	lease-*) echo $((LIMIT / 20)) ;;
	*) most "$1" "$2" $((BACK_MS + FLUSH_MS)) answers ;;
	esac
}

# afterwards WORDS LINE LEAST: what passed in all, once Redis is back.
afterwards() {
	local words="$1: ${NAMES[$2]}: all that passed" before all upto node more=0 most

	before=$(counted "$2" . 200 0 answers)
	all=$(counted "$2" . 200 0 answers first later)
	upto=$((before > LIMIT ? before : LIMIT))
	# Counts of one node that the other has yet to receive.
	for node in 0 1; do
		[ "${NAMES[$2]%-*}" = lease ] && break
		most=$(most "$2" $node $((BACK_MS + FLUSH_MS)) first later)
		more=$((most > more ? most : more))
	done
	check "$words, $before before" "$all" "$3" $((upto + more))
}

# round VALUE LEAST COMMAND... -- COMMAND...: the first command stops Redis, the second brings it back.
round() {
	local value=$1 least=$2 words="Redis $1" driving i

	shift 2
	drive 3 "$value" $EACH answers &
	driving=$!
	sleep 1
	$1 main
	GONE=$(date +%s%6N)
	wait $driving
	for i in "${!NAMES[@]}"; do
		while_away "$words" "$i" 0
		while_away "$words" "$i" 1
	done
	$2 main
	check_true "$words: all is flushed" wait_for 10 settled
	# The next requests find out what was forgotten.
	drive 0.5 "$value" 10 first
	check_true "$words: and restored" wait_for 10 settled
	drive 1 "$value" 300 later
	for i in "${!NAMES[@]}"; do
		afterwards "$words" "$i" $((LIMIT * least / 100))
	done
}

# A flush whose connection ended is sent again: one interval of each node may count twice.
round paused 90 redis_pause redis_resume
round killed 80 redis_kill redis_again
# One outage to the log: it ends when nothing has failed for ten seconds.
passing() { grep -q "messages: sent and received again" "$HUB/a/daemon.log"; }
check_true "the log has that messages pass again" wait_for 20 passing
check "and each cause once" "$(grep -c 'warning: cluster: messages' "$HUB/a/daemon.log")" 1 2
lab_done
