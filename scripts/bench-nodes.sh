#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# bench-nodes.sh [--markdown] - what each consistency costs a real Redis, asked for by real daemons:
# three nodes in namespaces, /v1/check over HTTP (wrk, 16 connections to each), 20000 keys by Zipf's
# law. Commands are those that Redis counts (INFO commandstats: EVALSHA), decisions those that
# the daemons count; messages between nodes, some 20 commands a second and node, are not in it.
#
# Each runs BENCH_NODES_SECONDS (8), of which the first half is not counted: in it demand becomes
# known. Everything shares the machine's CPUs, so ratios count and rates say little.

set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib/redis.sh
cluster_begin bench-nodes "$@"
MARKDOWN=0
[ "${1:-}" = --markdown ] && MARKDOWN=1
: "${BENCH_NODES_SECONDS:=8}"
command -v wrk > /dev/null || { echo "bench-nodes: wrk is needed" >&2; exit 1; }
KEYS=20000

http_rules bench <<'YAML'
  - {key: strict, limits: [4000000 requests/d], consistency: strict}
  - {key: lease, limits: [4000000 requests/d], consistency: {lease: 10s}}
  - {key: write_back, limits: [4000000 requests/d], consistency: {write_back: 1s}}
YAML
cat > "$LAB/zipf.lua" <<'LUA'
-- Each thread has a list of keys drawn by Zipf's law beforehand, and goes through it in a circle.
local id = 0
function setup(thread)
	id = id + 1
	thread:set("seed", id + tonumber(os.getenv("BENCH_SEED")))
end
function init(args)
	local name, keys, sum, at = args[1], tonumber(args[2]), 0, {}
	for i = 1, keys do
		sum = sum + 1 / i
		at[i] = sum
	end
	math.randomseed(seed)
	bodies, n = {}, 0
	for i = 1, 200000 do
		local want, low, high = math.random() * sum, 1, keys
		while low < high do
			local mid = math.floor((low + high) / 2)
			if at[mid] < want then low = mid + 1 else high = mid end
		end
		bodies[i] = wrk.format("POST", "/v1/check", nil,
			'{"domain":"bench","descriptors":[{"entries":[{"key":"' .. name .. '","value":"' ..
			low .. '"}]}]}')
	end
end
function request()
	n = n % #bodies + 1
	return bodies[n]
end
LUA

redis_start main
for name in a b c; do
	NODE_HTTP='  workers: 1' node_start $name "deadline: 100ms"
done
met() {
	[ "$(node "$1" ctl -o json cluster show | jq .nodes)" = 3 ]
}
for name in a b c; do
	wait_for 10 met $name || { echo "bench-nodes: $name does not know the others" >&2; exit 1; }
done

# "decisions commands cpu_us" so far.
counted() {
	local decisions=0

	for name in a b c; do
		decisions=$((decisions + $(node $name metric sluice_decisions_total verdict=ok)))
	done
	echo "$decisions" \
		"$(redis main info commandstats | tr -d '\r' | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p')" \
		"$(redis main info cpu | tr -d '\r' | awk -F: '/^used_cpu_(sys|user):/ { s += $2 } END { printf "%.0f", s * 1e6 }')"
}

# run CONSISTENCY: a line "consistency decisions/s commands/decision cpu_us/decision" into $LAB/results.
run() {
	local before after half=$((BENCH_NODES_SECONDS / 2)) pids=()

	redis main flushall > /dev/null
	for name in a b c; do
		BENCH_SEED=$((${#pids[@]} * 100)) node $name on_server wrk -t 1 -c 16 \
			-d $((half * 2 + 2)) -s "$HUB/zipf.lua" http://127.0.0.1:8180 -- "$1" $KEYS \
			> "$HUB/$name/wrk" 2>&1 &
		started
		pids+=($!)
	done
	sleep $((half + 1))
	before=$(counted)
	sleep "$half"
	after=$(counted)
	wait "${pids[@]}"
	echo "$1 $half $before $after" |
		awk '{ n = $6 - $3; printf "%s %.0f %.4f %.2f\n", $1, n / $2, ($7 - $4) / n, ($8 - $5) / n }' \
		>> "$HUB/results"
}

run strict
run lease
run write_back

echo
if [ $MARKDOWN = 1 ]; then
	printf '%s\n' '## Consistencies, by real daemons' '' \
		'| | decisions/s | commands a decision | Redis CPU us each |' '|---|---:|---:|---:|'
	awk '{ printf "| %s | %s | %s | %s |\n", $1, $2, $3, $4 }' "$HUB/results"
else
	printf '%-12s %12s %20s %18s\n' nodes decisions/s "commands a decision" "Redis CPU us each"
	awk '{ printf "%-12s %12s %20s %18s\n", $1, $2, $3, $4 }' "$HUB/results"
fi
LAB_ENDED=1
