#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ring.sh - two daemons and three Redis servers on a ring: when one stops, its share of the users is
# unavailable for two seconds, then the others serve them; later it serves them again. Users of the other
# servers are not affected.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin ring "$@"
utc_room 86400 120

USERS=30
LIMIT=60
strict_rules "{name: day, rate: $LIMIT requests/d}"
redis_ring r1 r2 r3
node_start a
node_start b

# load ROUNDS: runs a load and waits for it; $HUB/all collects.
load() {
	load_bg "$1" api user=u 1 $USERS
	load_wait
	load_lines >> "$HUB/all"
}

# got moved|stayed STATUS: "LEAST MOST" responses with it, of users that are in $HUB/moved, or are not.
got() {
	awk -v which="$1" -v status="$2" -v moved="$(xargs < "$HUB/moved")" '
		BEGIN { for (i = split(moved, m, " "); i > 0; i--) is[m[i]] = 1 }
		($1 in is) == (which == "moved") { n[$1] += $2 == status }
		END { for (user in n) print n[user] }' "$HUB/all" | sort -n | sed -n '1p;$p' | xargs
}

served() {
	load 1
	[ "$(load_others '200|429')" = 0 ]
}

# keys SERVER: of buckets.
keys() {
	redis $1 --scan | grep -cE '^sluice:\{[0-9a-f]{16}\}'
}

load 10
cp /dev/null "$HUB/moved"
check_is "all requests are counted" "$(got stayed 200)" "20 20"
for server in r1 r2 r3; do
	check "$server has its share of $USERS users" "$(keys $server)" 2 22
done
before=$(keys r2)

redis_kill r2
load 1
load_lines | awk '$2 == 503 { print $1 }' | sort -u > "$HUB/moved"
check_is "its users, and no others, have no server" "$(wc -l < "$HUB/moved")" "$before"
check_true "until the others serve them" wait_for 10 served
check_is "other users got a response each time" "$(got stayed 503)" "0 0"

redis_again r2
back() {
	load 1
	[ "$(keys r2)" = "$before" ]
}
check_true "it is back, and serves them again" wait_for 20 back
load 60
check_is "a user whose server stayed had exactly the limit" "$(got stayed 200)" "$LIMIT $LIMIT"
# Two moves, each of which may lose charges that the other node has not restored yet.
check "a user whose server stopped had not much more" "$(got moved 200 | cut -d' ' -f2)" $((LIMIT / 2)) $((2 * LIMIT))
echo "# of a limit of $LIMIT whose server went had $(got moved 200)"

lab_done
