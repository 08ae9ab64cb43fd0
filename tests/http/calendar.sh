#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# calendar.sh - a daemon whose clock is set: ten requests in a month of Berlin. What was used is kept over restarts,
# a kill and a change of the zone, until the month's end there; headers, JSON, Envoy's form and `user show` have that
# end, and the lengths of days of 23 and 25 hours.

. "$(dirname "$0")/../lib/http.sh"
http_begin calendar "$@"

gcc -shared -fPIC -o "$LAB/clock.so" "$REPO/tests/lib/preload/clock.c" || not_ok "clock.c does not compile"
truncate -s 8 "$LAB/by"
IN_S+=(env LD_PRELOAD="$LAB/clock.so" CLOCK_SET_BY="$LAB/by")
# The daemon reads it each second.
set_clock() {
	python3 -c 'import datetime, struct, sys, time
us = int((datetime.datetime.fromisoformat(sys.argv[2] + "+00:00").timestamp() - time.time()) * 1e6)
open(sys.argv[1], "r+b").write(struct.pack("q", us))' "$LAB/by" "$1"
}
passes() { [ "$(http_check api "$1")" = 200 ]; }
# policy NAME: the length of its window, from the headers of a look.
policy() {
	request -d "$(check_body api "$1" --peek true)" /v1/check > /dev/null
	header RateLimit-Policy
}
has_policy() { [ "$(policy "$1")" = "$2" ]; }
# near LEAST MOST NUMBER
near() { [ "$3" -ge "$1" ] && [ "$3" -le "$2" ]; }

rules() {
	http_rules api <<-YAML
	  - {key: user, calendar: $1, limits: [10 requests/month]}
	  - {key: day, calendar: $1, limits: [10 requests/day]}
	  - {key: envoy, calendar: $1, rate_limit: {unit: month, requests_per_unit: 10}}
	YAML
}
rules Europe/Berlin
# March has 31 days less an hour, and ends ten minutes later.
set_clock 2026-03-31T21:50:00
http_daemon <<'YAML'
  workers: 1
  retry_jitter: 0%
YAML
check_is "ten of fifteen in March" "$(http_passed 15 api user=bob)" 10
check_is "the eleventh" "$(http_check api user=bob)" 429
check_true "Retry-After is the month's end" near 500 600 "$(header Retry-After)"
check_is "its length" "$(header RateLimit-Policy)" '"user";q=10;w=2674800'
check_true "t, too" near 500 600 "$(header RateLimit | sed 's/.*t=//')"
check_is "JSON" "$(jq -c '[.. | objects | select(.window_s) | .window_s, .remaining]' "$LAB/body")" '[2674800,0]'
check_is "Envoy's form: a month" "$(request -d '{"domain": "api", "descriptors": [{"entries": [{"key": "envoy", "value": "bob"}]}]}' /json) $(
	jq -r '.statuses[0].currentLimit.unit' "$LAB/body")" "200 MONTH"
ctl -o json user show api/user bob > "$LAB/user"
check_is "user show" "$(jq -c '.limits[0] | [.window_s, .remaining]' "$LAB/user")" '[2674800,0]'
check_true "the month's end" near 500000 600000 "$(jq '.limits[0].reset_ms' "$LAB/user")"
daemon_kill TERM
daemon_run
check_is "after a restart" "$(http_check api user=bob)" 429
daemon_kill KILL
daemon_run
check_is "after a kill" "$(http_check api user=bob)" 429
rules Europe/Paris
ctl reload > /dev/null || not_ok "reload"
check_is "by another zone" "$(http_check api user=bob) $(ctl -o json rule show api/user | jq -r '.. | .calendar? // empty')" "429 Europe/Paris"
daemon_kill TERM
set_clock 2026-03-31T22:00:01
daemon_run
check_is "April, which began while the daemon was away" "$(http_passed 15 api user=bob)" 10
check_is "its eleventh" "$(http_check api user=bob)" 429
check_true "Retry-After is the end of April" near 2591900 2592000 "$(header Retry-After)"
set_clock 2026-04-30T21:59:50
check_true "ten seconds before May" near 1 3000000 "$(http_check api user=bob > /dev/null; header Retry-After)"
check_true "May" wait_for 30 passes user=bob

set_clock 2026-03-29T12:00:00
check_true "a day of 23 hours" wait_for 10 has_policy day=bob '"day";q=10;w=82800'
set_clock 2026-10-25T12:00:00
check_true "one of 25" wait_for 10 has_policy day=bob '"day";q=10;w=90000'
set_clock 2026-10-26T12:00:00
check_true "its neighbor has 24" wait_for 10 has_policy day=bob '"day";q=10;w=86400'

check_is "a live change" "$(ctl rule set api/user calendar=Asia/Kolkata > /dev/null; policy user=bob) $(
	ctl -o json rule show api/user | jq -r '.. | .calendar? // empty')" '"user";q=10;w=2678400 Asia/Kolkata'
check_is "no such zone" "$(ctl rule set api/user calendar=Mars/Olympus 2>&1 | grep -c 'Mars/Olympus.*accepted: UTC, or a name of the tz database')" 1

rules Europe/Berlin
for at in 21:58:0{0..5} 21:59:5{0..9} 22:00:0{0..9} 22:00:1{0..5}; do
	echo "203.0.113.9 - bob [30/Jun/2026:$at +0000] \"GET /x HTTP/1.1\" 200 5 \"-\" \"-\""
done > "$LAB/log"
check_is "replay: ten in June, ten in July" "$("$BIN/sluicectl" replay "$LAB/log" -c "$RULES" --domain api -o json |
	jq -c '.limits[] | select(.name == "api/user") | [.passed, .refused]')" "[20,12]"
lab_done
