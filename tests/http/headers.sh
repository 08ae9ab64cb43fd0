#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What RateLimit, RateLimit-Policy, X-RateLimit-* and Retry-After state comes true:
# for each algorithm and several limits, over each HTTP/1.1 endpoint, and through a real HAProxy
# over SPOE (tests/js/headers.js).

. "$(dirname "$0")/../lib/http.sh"
http_begin headers "$@"
. "$REPO/tests/lib/proxy.sh"

http_rules kinds < "$REPO/tests/http/kinds.yaml"
http_daemon <<'YAML'
  spoe: [127.0.0.1:8182]
YAML
application_start
haproxy_kinds 8080

# Its output lines are results.
node "$REPO/tests/js/headers.js" http://127.0.0.1:8080 spoe > "$LAB/spoe" 2>&1 &
started
node "$REPO/tests/js/headers.js" $URL > "$LAB/out" 2>&1
wait "${LAB_PIDS[-1]}"
cat "$LAB/spoe" >> "$LAB/out"
results "$LAB/out"
check "kinds of limits, endpoints" "$(grep -c '^ok' "$LAB/out")" 65 65

# Jitter: never too early, up to a tenth later, and not the same for all.
from=$(now)
http_check kinds slow=x > "$LAB/out"
for _ in $(seq 40); do
	http_check kinds slow=x > "$LAB/status"
	header Retry-After
done | sort -n > "$LAB/out"
check "the earliest Retry-After of 100 s, less what this took" "$(head -n 1 "$LAB/out")" \
	"$(calc "99 - ($(now) - $from)")" 103
check "the latest" "$(tail -n 1 "$LAB/out")" 103 110
lab_done
