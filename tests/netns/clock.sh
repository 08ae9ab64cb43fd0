#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# clock.sh - the clock is set under a running daemon, nine days ahead and back: what was given half an hour
# (blocks by hand and of a feed, exemptions, a ban, a user's block) holds, and ends as before in all lists;
# also after a restart; the history stays; what was to end in seconds ends.

. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/parts.sh"
lab_begin clock
lab_link 0

gcc -shared -fPIC -o "$LAB/clock.so" "$REPO/tests/lib/preload/clock.c" || not_ok "clock.c does not compile"
# set_clock SECONDS: so far ahead of this machine's.
set_clock() {
	python3 -c 'import struct, sys; open(sys.argv[1], "r+b").write(struct.pack("q", int(sys.argv[2]) * 1000000))' "$LAB/by" "$1"
}
truncate -s 8 "$LAB/by"
IN_S+=(env LD_PRELOAD="$LAB/clock.so" CLOCK_SET_BY="$LAB/by")
rules_of_users "100000 requests/s"
daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
history: {size: 8M, age: 7d}
limits:
  - {name: far, match: {dport: 81}, rate: 1 packets/30d}
  - {name: web, match: {dport: 80}, rate: 10 packets/h, burst: 10, ban: {after: 20 drops/10s, for: 30m, spoofable: yes}}
http: {listen: [127.0.0.1:8180], rules: $LAB/rules}
YAML
arrivals_count
request() {
	on_server curl -s -o /dev/null -w '%{http_code}' -d "{\"domain\": \"api\", \"descriptors\": [{\"entries\": [{\"key\": \"user\", \"value\": \"$1\"}]}]}" \
		http://127.0.0.1:8180/v1/check
}
is_free() { [ "$(request "$1")" = 200 ]; }
# All ends that are listed, in minutes.
ends() {
	{ ctl -o json block list | jq '.entries[].left_ns'; ctl -o json exempt list | jq '.entries[].left_ns'
		ctl -o json ban list | jq '.bans[] | select(.active) | .left_ns'; } | awk '{ printf "%s%d", s, ($1 / 1e9 + 59) / 60; s = " " }'
}
holds() {
	check_is "$1: blocks, a feed's, and not their neighbor" "$(of_ten 10.1.1.1) $(of_ten 10.1.1.2) $(of_ten 10.1.1.9)" "0 0 10"
	check_is "$1: an exemption, and a ban" "$(of_ten 10.1.1.3 --dport 81) $(of_ten 10.1.1.4 --dport 9)" "10 0"
	check_is "$1: a user's" "$(request bob) $(request eve)" "429 200"
	check_is "$1: all ends" "$(ends)" "30 30 30 30"
}

ctl block add 10.1.1.1 --for 30m > /dev/null || not_ok "block add"
echo 10.1.1.2 30m | ctl block load --origin feed - > /dev/null || not_ok "block load"
ctl exempt add 10.1.1.3 --for 30m > /dev/null || not_ok "exempt add"
ctl user block api/user bob --for 30m > /dev/null || not_ok "user block"
blast "$LAB/sent" --dst $SERVER4 --src 10.1.1.4 --count 60 --pps 2000 --dport 80
check_true "a ban" wait_for 10 banned 10.1.1.4
holds "as given"
recorded() { ctl why 10.1.1.4 -o json | jq -e '[.events[], .in_force[] | select(.kind == "ban")] | length > 0'; }
check_true "the history has the ban" wait_for 10 recorded

ahead() { grep -q "the clock was set $1" "$LAB/daemon.log"; }
set_clock $((9 * 86400))
check_true "nine days ahead" wait_for 10 ahead forward
# Removes what has ended.
ctl user block api/user eve --for 1s > /dev/null
check_true "a second ends" wait_for 10 is_free eve
holds "ahead"
check_true "ahead: the history is there" recorded
daemon_kill TERM
daemon_run
check_is "after a restart" "$(of_ten 10.1.1.1) $(of_ten 10.1.1.2) $(request bob) $(ends)" "0 0 429 30 30 30 30"
set_clock 0
check_true "and back" wait_for 10 ahead back
ctl user block api/user eve --for 1s > /dev/null
check_true "a second ends, too" wait_for 10 is_free eve
holds "back"
lab_done
