#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# idle.sh - a daemon without traffic seldom wakes up: voluntary context switches of all its threads in five
# seconds. Timers run while something needs them: the sweep of users while requests come, an HTTP worker's
# deadlines while there are connections. (With interfaces: tests/netns/idle.sh.)

. "$(dirname "$0")/../lib/http.sh"
http_begin idle "$@"

http_rules api <<'YAML'
  - {key: user, limits: [5 requests/s]}
YAML

connected() {
	"${IN_S[@]}" ss -Htn state established '( sport = :8180 )' | grep -q .
}

STATE="  workers: 1
  state: {users: 10000}"
http_daemon <<< "$STATE"
check_true "it is quiet after the start" wait_for 10 daemon_quiet 3
# A second's timers (3 threads), once each; they ran, so the count is not 0.
check "wake-ups in 5 s without traffic" "$(daemon_wakeups 5)" 5 40

check_is "a request" "$(http_check api user=a)" 200
check_true "quiet again once its user has expired" wait_for 15 daemon_quiet 3
check "wake-ups after it" "$(daemon_wakeups 5)" 5 40

# A client that stays connected costs its worker four a second; its timeout still holds.
coproc CLIENT { exec "${IN_S[@]}" curl -s -m 30 telnet://127.0.0.1:8180; }
check_true "a connection" wait_for 5 connected
check "wake-ups beside an open connection" "$(daemon_wakeups 5)" 15 60
kill "$CLIENT_PID"
check_true "quiet again once it is closed" wait_for 5 daemon_quiet 3

lab_done
