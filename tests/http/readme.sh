#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# readme.sh - README's rule file for requests, and README's statements about it: each line of its block
# "# README: requests" that ends in "# CODE" prints that code.

. "$(dirname "$0")/../lib/http.sh"
http_begin readme "$@"

# block WORDS: prints the fenced block of README whose first line is that.
block() {
	awk -v first="# README: $1" '
		/^```/ { inside = !inside; wanted = 0; next }
		inside && $0 == first { wanted = 1 }
		wanted' "$REPO/README.md"
}

block rules | http_rules readme
http_daemon < /dev/null
block requests > "$LAB/requests.sh"
check "README has lines that send requests" "$(grep -c '^ask ' "$LAB/requests.sh")" 4 20
expected=$(sed -nE 's/^ask "\{.*# ([0-9]{3}).*/\1/p' "$LAB/requests.sh")

utc_room 60 10
check_is "README's requests get the codes that it states" "$(bash "$LAB/requests.sh" | tr '\n' ' ')" \
	"$(printf '%s\n' "$expected" | tr '\n' ' ')"
lab_done
