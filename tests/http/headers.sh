#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What RateLimit, RateLimit-Policy, X-RateLimit-* and Retry-After say, and whether it comes true:
# for each algorithm and several limits, over each way to ask by HTTP/1.1 (tests/node/headers.js).

. "$(dirname "$0")/../lib/http.sh"
http_begin headers "$@"

http_rules kinds <<'YAML'
domain: kinds
descriptors:
  - {key: token-bucket, limits: ['2 requests/2s'], algorithm: token-bucket, burst: 4}
  - {key: leaky-bucket, limits: ['1 requests/2s'], algorithm: leaky-bucket}
  - {key: fixed-window, limits: ['5 requests/3s']}
  - {key: first-request, limits: ['5 requests/3s'], window: first-request}
  - {key: sliding-window, limits: ['5 requests/3s'], algorithm: sliding-window}
  - {key: sliding-log, limits: ['5 requests/3s'], algorithm: sliding-log}
  - {key: several, limits: ['3 requests/2s', {name: longer, rate: 8 requests/4s}]}
  - key: several-buckets
    algorithm: token-bucket
    limits:
      - {name: short, rate: 1 requests/s, burst: 2}
      - {name: "long; one, two", rate: 2 requests/3s, algorithm: sliding-window}
  - {key: slow, limits: ['1 requests/100s'], algorithm: leaky-bucket}
YAML
http_daemon < /dev/null

# Its lines are results.
node "$REPO/tests/node/headers.js" $URL > "$LAB/out" 2>&1
while IFS= read -r line; do
	case $line in
	"ok - "*) ok "${line#ok - }" ;;
	*) not_ok "${line#not ok - }" ;;
	esac
done < "$LAB/out"
check "kinds of limits, ways to ask" "$(grep -c '^ok' "$LAB/out")" 36 36

# Jitter: never earlier than true, and up to a tenth later; not the same for all.
http_check kinds slow=x > "$LAB/out"
for _ in $(seq 40); do
	http_check kinds slow=x > "$LAB/status"
	header Retry-After
done | sort -n > "$LAB/out"
check "the earliest Retry-After of 100 s" "$(head -n 1 "$LAB/out")" 97 103
check "the latest" "$(tail -n 1 "$LAB/out")" 104 110
lab_done
