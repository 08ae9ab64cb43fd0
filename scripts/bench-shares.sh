#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# bench-shares.sh [--markdown] - what each consistency costs a Redis of its own: decisions a second
# and commands a decision over Zipf(1.0) keys (tests/bench/shares.c: the daemon's shares, client and
# script, without HTTP). Three nodes in one process, which has a CPU, and Redis the other.
#
# BENCH_SHARES_SECONDS (10) are counted, after half as many in which demand becomes known; leases of
# 10 s, write-back every second. Aims: of the thousand hottest keys 20 times fewer commands with
# leases than decisions, of all others at most 1.05 for each.

set -u
cd "$(dirname "$0")/.." || exit 1
: "${BENCH_SHARES_SECONDS:=10}"
MARKDOWN=0
[ "${1:-}" = --markdown ] && MARKDOWN=1
command -v redis-server > /dev/null || { echo "bench-shares: redis-server is needed" >&2; exit 1; }
LAB=$(mktemp -d)
REDIS=0
trap 'kill "$REDIS" 2> /dev/null; wait 2> /dev/null; rm -rf "$LAB"' EXIT
CPUS=$(nproc)
KEYS=20000

PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
taskset -c 0 redis-server --bind 127.0.0.1 --port "$PORT" --save '' --appendonly no --dir "$LAB" \
	> "$LAB/redis.log" 2>&1 &
REDIS=$!
for _ in $(seq 50); do
	redis-cli -p "$PORT" ping > /dev/null 2>&1 && break
	sleep 0.1
done

# Microseconds of CPU that Redis has used.
used() {
	redis-cli -p "$PORT" info cpu | tr -d '\r' |
		awk -F: '/^used_cpu_(sys|user):/ { sum += $2 } END { printf "%.0f", sum * 1000000 }'
}

# run CONSISTENCY INTERVAL_MS: "consistency decisions/s commands/decision hot tail late us"
run() {
	local before after

	redis-cli -p "$PORT" flushall > /dev/null
	before=$(used)
	taskset -c $((CPUS > 1)) build/tests/bench/shares "$PORT" "$1" 0 "$BENCH_SHARES_SECONDS" 3 \
		$KEYS "$2" > "$LAB/line" 2> /dev/null || { echo "bench-shares: $1 failed" >&2; exit 1; }
	after=$(used)
	awk -v us=$((after - before)) -v s="$BENCH_SHARES_SECONDS" \
		'{ printf "%s %.2f\n", $0, us / ($2 * s * 1.5) }' "$LAB/line" >> "$LAB/results"
}

run strict 1000
run lease 10000
run write_back 1000

row() {
	if [ $MARKDOWN = 1 ]; then
		local IFS='|'
		echo "|$*|" | sed 's/|/ | /g; s/^ //; s/ $//'
	else
		printf '%-14s' "$1"
		shift
		printf ' %20s' "$@"
		echo
	fi
}

echo
if [ $MARKDOWN = 1 ]; then echo "## Consistencies over Redis"; else echo "Consistencies over Redis"; fi
echo
row "" "decisions/s" "commands a decision" "hottest thousand" "all others" "Redis CPU us each"
[ $MARKDOWN = 1 ] && echo "|---|---|---|---|---|---|"
while read -r name rate commands hot tail _ us; do
	row "$name" "$rate" "$commands" "$hot" "$tail" "$us"
done < "$LAB/results"
echo
awk '$1 == "lease" {
	printf "Aim: leases, hottest thousand, 0.05 commands a decision: %.4f %s\n", $4,
		$4 <= 0.05 ? "met" : "missed"
	printf "Aim: leases, all others, 1.05 commands a decision: %.4f %s\n", $5,
		$5 <= 1.05 ? "met" : "missed" }' "$LAB/results"
exit 0
