#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# bench-redis.sh [--markdown] - what a strict decision costs Redis: its CPU time per call of
# charge.lua, sent as a worker does (tests/bench/shared.c, 64 in flight over one connection),
# beside redis-benchmark -P 16 with the same EVALSHA, on the same server in the same run.
#
# CPU is Redis' own count (INFO cpu), so other load on the machine matters little. The two take
# turns, BENCH_ROUNDS (5) times of BENCH_SECONDS (1) each; medians, with the least and the most.

set -u
cd "$(dirname "$0")/.." || exit 1

MARKDOWN=0
[ "${1:-}" = --markdown ] && MARKDOWN=1
: "${BENCH_ROUNDS:=5}" "${BENCH_SECONDS:=1}"
CALLS=40000
LUA=user/cluster/quota/charge.lua

dir=$(mktemp -d /tmp/sluice-bench-redis.XXXXXX) || exit 1
redis-server --port 0 --unixsocket "$dir/socket" --save '' --appendonly no --dir "$dir" \
	--logfile redis.log &
server=$!
trap 'kill $server 2> /dev/null; wait $server 2> /dev/null; rm -rf "$dir"' EXIT
for _ in $(seq 100); do
	[ -S "$dir/socket" ] && break
	sleep 0.1
done

cli() {
	redis-cli -s "$dir/socket" "$@"
}

cpu() {
	cli info cpu | tr -d '\r' | awk -F: '/^used_cpu_(user|sys):/ { s += $2 } END { printf "%.6f", s }'
}

sha=$(cli script load "$(cat $LUA)") || exit 1

# The arguments are those of cluster_store_redis.c: op, capacity, ticks or us, cost, hold.
declare -A KIND=([token-bucket]=b [fixed-window]=w [sliding-window]=s)
declare -A ARGS=([token-bucket]="0 1000000 57600000" [fixed-window]="4 1000000 3600000000"
	[sliding-window]="8 1000000 3600000000")

ours() {
	build/tests/bench/shared "$dir/socket" "$BENCH_SECONDS" 64 "$1" > "$dir/answered" || exit 1
	read -r calls refused < "$dir/answered"
	[ "$refused" = 0 ] || { echo "bench-redis: $refused of $calls did not pass" >&2; exit 1; }
}

theirs() {
	# shellcheck disable=SC2086
	redis-benchmark -s "$dir/socket" -P 16 -c 4 -n $CALLS -r 10000 -q evalsha "$sha" 1 \
		"sluice:{0000000000000001}__rand_int____${KIND[$1]}" obench lbench ${ARGS[$1]} 1 0 \
		> "$dir/out" 2>&1 || exit 1
	calls=$CALLS
}

# One run: "ALGORITHM WHO MICROSECONDS" of CPU per call.
measure() {
	local before after

	before=$(cpu)
	"$1" "$2"
	after=$(cpu)
	awk -v w="$1" -v a="$2" -v b="$before" -v e="$after" -v n="$calls" \
		'BEGIN { print a, w, (e - b) * 1e6 / n }' >> "$dir/results"
}

for algorithm in fixed-window sliding-window token-bucket; do
	cli flushall > /dev/null
	# Keys are made by both before anything is measured.
	ours $algorithm
	theirs $algorithm
	for _ in $(seq "$BENCH_ROUNDS"); do
		measure ours $algorithm
		measure theirs $algorithm
	done
done

# stats ALGORITHM WHO: "median least most"
stats() {
	awk -v a="$1" -v w="$2" '$1 == a && $2 == w { print $3 }' "$dir/results" | sort -g |
		awk '{ v[NR] = $1 } END { printf "%.2f %.2f %.2f", v[int((NR + 1) / 2)], v[1], v[NR] }'
}

[ $MARKDOWN = 1 ] && printf '%s\n' '| strict | us of Redis CPU a decision | redis-benchmark -P 16 | ratio |' \
	'|---|---:|---:|---:|'
for algorithm in fixed-window sliding-window token-bucket; do
	read -r median least most <<< "$(stats $algorithm ours)"
	read -r other other_least other_most <<< "$(stats $algorithm theirs)"
	ratio=$(awk -v a="$median" -v b="$other" 'BEGIN { printf "%.2f", a / b }')
	if [ $MARKDOWN = 1 ]; then
		echo "| $algorithm | $median ($least-$most) | $other ($other_least-$other_most) | $ratio |"
	else
		echo "redis: $algorithm: $median us CPU a strict decision ($least-$most), redis-benchmark -P 16 $other ($other_least-$other_most): $ratio"
	fi
done
