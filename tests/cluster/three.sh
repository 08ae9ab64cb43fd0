#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Three daemons in three namespaces, a real Redis, and the user of the documents in it. One user's
# requests, spread over the three, are held to one limit: with each algorithm, strict, leased and
# written back. A user of one node alone is never above it, a neighbour loses nothing, and the
# overshoot that the daemons export is the one counted here.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin three "$@"

PERIOD=10	# seconds: all that is driven is within one window
TIME=3.5
EACH=90		# requests a second of each node
INTERVAL_MS=200

# NAME KIND COUNT CAPACITY, then the rule's lines.
rule() {
	local name=$1

	LIMITS[$name]="$2 $3 $4 $PERIOD"
	NAMES+=("$name")
	printf '  - {key: %s, limits: %s requests/%ss, consistency: %s, on_store_failure: error, %s}\n' \
		"$name" "$3" $PERIOD "${CONSISTENCY[${name%%-*}]}" "$5" >> "$LAB/api.yaml"
}
declare -A LIMITS=() CONSISTENCY=([strict]=strict [lease]='{lease: 100ms}'
	[written]="{write_back: ${INTERVAL_MS}ms}")
NAMES=()
printf 'domain: api\ndescriptors:\n' > "$LAB/api.yaml"
for how in strict lease written; do
	rule $how-fixed-window window 300 300 'algorithm: fixed-window'
	rule $how-first-request window 300 300 'algorithm: fixed-window, window: first-request'
	rule $how-sliding-window window 300 300 'algorithm: sliding-window'
	rule $how-token-bucket bucket 60 300 'algorithm: token-bucket, burst: 300'
	rule $how-leaky-bucket bucket 50 1 'algorithm: leaky-bucket'
done
rule strict-sliding-log window 300 300 'algorithm: sliding-log'
http_rules api < "$LAB/api.yaml"

redis_start main
for name in a b c; do
	node_start $name "sync: 50ms"
done
SOCKETS=("$LAB/a/http.sock" "$LAB/b/http.sock" "$LAB/c/http.sock")
# Each has sent one command to Redis.
for name in a b c; do
	check_is "$name responds" "$(node $name http_check api strict-fixed-window=first)" 200
done

# Of each rule: a user of all three nodes, one of node a alone, an innocent one.
for name in "${NAMES[@]}"; do
	echo "api $name spread $EACH 3"
	echo "api $name alone $((2 * EACH)) 1"
	echo "api $name innocent 1 3"
done > "$LAB/lines"
for name in "${NAMES[@]}"; do
	for user in spread alone innocent; do
		echo "${LIMITS[$name]}"
	done
done > "$LAB/limits"

first=$((($(date +%s) / PERIOD + 1) * PERIOD))
sleep "$(jq -n "$first + 0.1 - now")"
"$BIN/tests/cluster/drive" $TIME "${SOCKETS[@]}" < "$LAB/lines" > "$LAB/answers" 2> "$LAB/drive" ||
	not_ok "drive: $(cat "$LAB/drive")"
# A flush takes time: it is sent within 10 ms of its time, and a node without a reply after 20 ms
# suspends counting by itself (quota.c).
python3 "$REPO/tests/cluster/judge.py" $((INTERVAL_MS * 1000 + 30000)) ${first}000000 $((first + PERIOD))000000 \
	"$LAB/limits" < "$LAB/answers" > "$LAB/judged"
check_is "responses to each line" "$(wc -l < "$LAB/judged")" $((3 * ${#NAMES[@]}))
awk '{ all += $1 + $2 + $3; other += $3; outside += $6 } END { print all, other, outside }' \
	"$LAB/judged" > "$LAB/sums"
read -r all other outside < "$LAB/sums"
check "requests" "$all" 20000 40000
check_is "no response was an error" "$other" 0
check_is "no response was outside the window" "$outside" 0
# The last counts have been flushed.
sleep 0.5
for name in a b c; do
	node $name metrics > "$LAB/$name/metrics"
done

# overshoot RULE: the largest that a node exports.
overshoot() {
	cat "$LAB"/[abc]/metrics | awk -v want="{rule=\"api/$1\"}" '
		$1 == "sluice_overshoot_ratio" want && $2 > most { most = $2 } END { print most + 0 }'
}

# judge RULE USER: allowed refused other excess most outside
judge() {
	sed -n "$(grep -n "^api $1 $2 " "$LAB/lines" | cut -d: -f1)p" "$LAB/judged"
}

for name in "${NAMES[@]}"; do
	read -r kind count capacity _ <<< "${LIMITS[$name]}"
	read -r allowed _ _ excess most _ <<< "$(judge "$name" spread)"
	# A bucket drains during the load, a window does not.
	least=$capacity upto=$capacity
	if [ "$kind" = bucket ]; then
		least=$(jq -n "$capacity + $count * ($TIME - 0.2) / $PERIOD | floor")
		upto=$((least + count))
	fi
	case $name in
	strict-*)
		check_is "$name: above the limit" "$excess" 0
		check "$name: allowed" "$allowed" $((least * 98 / 100 - 1)) $upto
		;;
	lease-*)
		check_is "$name: above the limit" "$excess" 0
		check "$name: allowed" "$allowed" $((least * 90 / 100 - 1)) $upto
		;;
	written-*)
		check "$name: above the limit, of 2 x $most in an interval" "$excess" 0 $((2 * most))
		check "$name: allowed" "$allowed" $((least * 98 / 100 - 1)) $((upto + excess))
		;;
	esac
	# Within 1% of the limit; of a bucket for one request, which drains until it is flushed, two requests.
	exported=$(jq -n "$(overshoot "$name") * $capacity | round")
	off=$((capacity == 1 ? 2 : capacity / 100))
	check "$name: overshoot exported, counted $excess" "$exported" $((excess > off ? excess - off : 0)) \
		$((excess + off))
	read -r allowed _ _ excess _ _ <<< "$(judge "$name" alone)"
	check_is "$name: one node alone, above the limit" "$excess" 0
	check "$name: one node alone, allowed" "$allowed" $((least * 90 / 100 - 1)) $upto
	read -r _ refused _ _ _ _ <<< "$(judge "$name" innocent)"
	check "$name: of the neighbour's requests refused" "$refused" 0 $((capacity == 1))
done
lab_done
