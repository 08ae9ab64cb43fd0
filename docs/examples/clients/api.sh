#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A client that waits as long as a limited API asks, and a random time more: source it.

# api URL [CURL OPTIONS]: the body, once the API allows the request
api() {
	local headers body status after attempt

	headers=$(mktemp) body=$(mktemp)
	for attempt in 1 2 3 4 5 6 7 8 9 10; do
		status=$(curl -sS -D "$headers" -o "$body" -w '%{http_code}' "$@")
		[ "$status" = 429 ] || [ "$status" = 503 ] || break
		after=$(tr -d '\r' < "$headers" | sed -n 's/^retry-after: *//Ip')
		[ -n "$after" ] || break
		# and up to 1, 2, 4... 32 s more
		sleep "$(awk -v after="$after" -v most=$((1 << (attempt < 6 ? attempt - 1 : 5))) \
			-v seed=$RANDOM$RANDOM 'BEGIN { srand(seed); print after + rand() * most }')"
	done
	cat "$body"
	rm -f "$headers" "$body"
	[ "$status" -lt 400 ]
}
