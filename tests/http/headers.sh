#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What RateLimit, RateLimit-Policy, X-RateLimit-* and Retry-After say, and whether it comes true:
# for each algorithm and several limits, over each way to ask by HTTP/1.1 (tests/node/headers.js).

. "$(dirname "$0")/../lib/http.sh"
http_begin headers "$@"

http_rules kinds < "$REPO/tests/http/kinds.yaml"
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
