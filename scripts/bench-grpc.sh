#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# bench-grpc.sh [--markdown] - decisions over gRPC (h2load) beside a bare nghttp2 server that
# answers the same few bytes to everything (tests/bench/h2bare.c).
#
# One worker, one connection, 1 and 100 streams; and 8 connections of one stream. Client and
# server have a CPU each. The two take turns, BENCH_ROUNDS (5) times for BENCH_GRPC_SECONDS (2),
# and medians count: req/s, p50 and p99 as the client saw them, CPU time of the server per
# request. The ratio of CPU times says more than that of req/s where the client is the slower one.

set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib/http.sh
http_begin bench-grpc "$@"

MARKDOWN=0
[ "${1:-}" = --markdown ] && MARKDOWN=1
: "${BENCH_ROUNDS:=5}" "${BENCH_GRPC_SECONDS:=2}"
CLIENT=1
[ "$(nproc)" -gt 1 ] || CLIENT=0

http_rules api <<'YAML'
  - key: user
    rate_limit: {unit: day, requests_per_unit: 4000000000}
YAML
http_daemon <<'YAML'
  grpc: [127.0.0.1:8181]
  workers: 1
YAML
taskset -apc 0 "$DAEMON_PID" > /dev/null
taskset -c 0 "$TOOLS/bench/h2bare" > "$LAB/port" &
started
BARE=$!
wait_for 5 test -s "$LAB/port" || exit 1

# RateLimitRequest{domain: "api", descriptors: [{user: "alice"}]} with its prefix.
printf '\0\0\0\0\x16\x0a\x03api\x12\x0f\x0a\x0d\x0a\x04user\x12\x05alice' > "$LAB/request"
PATH_=/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit

# Clock ticks of a process.
ticks() {
	awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"
}

# run NAME PORT PID CONNECTIONS STREAMS: a line "name connections streams req/s p50 p99 us/req".
run() {
	local before after

	before=$(ticks "$3")
	rm -f "$LAB/log"
	taskset -c $CLIENT h2load -c "$4" -m "$5" -D "$BENCH_GRPC_SECONDS" -d "$LAB/request" \
		-H 'content-type: application/grpc' -H 'te: trailers' --log-file="$LAB/log" \
		"http://127.0.0.1:$2$PATH_" > "$LAB/h2load" 2>&1 || { cat "$LAB/h2load" >&2; exit 1; }
	after=$(ticks "$3")
	if awk '$2 != 200 { exit 0 } END { if (NR) exit 1 }' "$LAB/log"; then
		echo "bench-grpc: $1 does not answer 200" >&2
		exit 1
	fi
	cut -f 3 "$LAB/log" | sort -n | awk -v name="$1 $4 $5" -v s="$BENCH_GRPC_SECONDS" \
		-v cpu=$(((after - before) * 1000000 / $(getconf CLK_TCK))) '{ v[NR] = $1 }
		END { printf "%s %.0f %d %d %.2f\n", name, NR / s, v[int((NR + 1) / 2)],
			v[int(NR * 0.99) + 1], cpu / NR }' >> "$LAB/results"
}

for round in $(seq "$BENCH_ROUNDS"); do
	[ $MARKDOWN = 1 ] || echo "gRPC: round $round"
	for shape in "1 1" "1 100" "8 1"; do
		# shellcheck disable=SC2086
		run bare "$(cat "$LAB/port")" $BARE $shape
		# shellcheck disable=SC2086
		run sluice 8181 "$DAEMON_PID" $shape
	done
done

# median NAME CONNECTIONS STREAMS COLUMN
median() {
	awk -v n="$1" -v c="$2" -v m="$3" -v column="$4" '$1 == n && $2 == c && $3 == m {
		print $column }' "$LAB/results" | sort -g |
		awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

row() {
	if [ $MARKDOWN = 1 ]; then
		local IFS='|'
		echo "|$*|" | sed 's/|/ | /g; s/^ //; s/ $//'
	else
		printf '%-34s' "$1"
		shift
		printf ' %12s' "$@"
		echo
	fi
}

echo
if [ $MARKDOWN = 1 ]; then echo "## Decisions over gRPC"; else echo "Decisions over gRPC"; fi
echo
row "connections x streams" "req/s" "p50 us" "p99 us" "CPU us each" "of bare, req/s" "of bare, CPU"
[ $MARKDOWN = 1 ] && echo "|---|---|---|---|---|---|---|"
for shape in "1 1" "1 100" "8 1"; do
	for name in bare sluice; do
		# shellcheck disable=SC2086
		set -- $shape
		row "$name, $1 x $2" "$(median $name "$1" "$2" 4)" "$(median $name "$1" "$2" 5)" \
			"$(median $name "$1" "$2" 6)" "$(median $name "$1" "$2" 7)" \
			"$(calc "$(median $name "$1" "$2" 4) / $(median bare "$1" "$2" 4)" | cut -c 1-4)" \
			"$(calc "$(median bare "$1" "$2" 7) / $(median $name "$1" "$2" 7)" | cut -c 1-4)"
	done
done
echo
for streams in 1 100; do
	got=$(calc "$(median bare 1 $streams 7) / $(median sluice 1 $streams 7)" | cut -c 1-4)
	echo "Aim: $streams streams, CPU of bare by ours, 0.80: $got $(awk -v g="$got" \
		'BEGIN { print (g >= 0.8 ? "met" : "missed") }')"
done
LAB_ENDED=1
exit 0
