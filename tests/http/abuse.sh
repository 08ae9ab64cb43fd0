#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Malformed, oversize, slow, half-closed, greedy and idle clients: each gets a clear error, the
# daemon's memory and descriptors stay bounded, and a well-behaved client is not held up. Bounds on
# times are generous, since the machine has other work; times are printed. ABUSE_ROUNDS=5 measures
# with and without abuse in turns.

. "$(dirname "$0")/../lib/http.sh"
http_begin abuse "$@"

IDLE=10000
[ "$(ulimit -Hn)" -gt 12000 ] || IDLE=$(($(ulimit -Hn) / 2 / 100 * 100))
# A list of 100k prefixes for the reloads.
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "10.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256 }' > "$LAB/bad"
HTTP_TOP="sets: {bad: {file: $LAB/bad}}
block: ['@bad']"
http_rules api <<'YAML'
domain: api
descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 4000000}}]
YAML
http_daemon < /dev/null

resident() { awk '/^VmRSS/ { print $2 }' "/proc/$DAEMON_PID/status"; }
before=$(resident)
python3 "$REPO/tests/lib/abuse.py" 8180 $IDLE "$SOCKET" > "$LAB/out" || not_ok "abuse.py failed"
echo "# $(jq -c 'del(.answers)' "$LAB/out")"

if [ -n "${ABUSE_ROUNDS:-}" ]; then
	jq . "$LAB/out"
	ok "p99 beside abuse, in turns"
	lab_done
	exit
fi
check_is "each malformed request gets its own error" "$(jq -c .wrong "$LAB/out")" "[]"
check_is "a half-closed client gets its response" "$(jq .half_closed "$LAB/out")" 200
check_is "idle connections stay" "$(jq .idle "$LAB/out")" $IDLE
for kind in busy flood slow greedy churn reload with_idle; do
	check "beside $kind: requests answered" "$(jq ".$kind.n" "$LAB/out")" 50 1000000
	check "their p50, ms" "$(jq ".$kind.p50" "$LAB/out")" 0 100
done
gone() { [ "$(metric sluice_http_connections)" -le 2 ] && [ "$(metric process_open_fds)" -le 100 ]; }
check_true "connections of clients that left are closed, and their descriptors" wait_for 15 gone
# AddressSanitizer keeps freed memory.
most=150000
[ -z "${SLUICE_BUILD:-}" ] || most=2000000
check "memory, KiB more than before" $(($(resident) - before)) -100000 $most
check_is "it is ready" "$(request /readyz)" 200
check "refusals are counted" "$(metric sluice_http_requests_total code=400)" 6 10000000

lab_done
