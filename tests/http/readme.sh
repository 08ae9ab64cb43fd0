#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# readme.sh - README's block "# README: requests", pasted as it stands where build/ is: each line of it that ends in
# "# CODE" prints that code, and at its end nothing runs.

. "$(dirname "$0")/../lib/http.sh"
http_begin readme "$@"

awk '/^```/ { inside = !inside; wanted = 0; next }
	inside && $0 == "# README: requests" { wanted = 1 }
	wanted' "$REPO/README.md" > "$LAB/pasted"
check "README has lines that send requests" "$(grep -c '^ask ' "$LAB/pasted")" 4 20
ln -s "$BIN" "$LAB/build"
utc_room 60 10
(cd "$LAB" && TMPDIR=$LAB timeout 60 bash pasted > "$LAB/said" 2> "$LAB/errors")
check_is "README's requests get the codes that it states" "$(grep -xE '[0-9]{3}' "$LAB/said" | tr '\n' ' ')" \
	"$(sed -nE 's/^ask "\{.*# ([0-9]{3}).*/\1/p' "$LAB/pasted" | tr '\n' ' ')"
check_true "the last command has bob, and his searches" grep -qE '^api/user/path=/search .*bob' "$LAB/said"
check_is "no other words" "$(cat "$LAB/errors")" ""
gone() { [ "$(request http://127.0.0.1:8180/readyz)" = 000 ]; }
check_true "nothing runs at its end" wait_for 10 gone
lab_done
