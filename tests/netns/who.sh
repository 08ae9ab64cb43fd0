#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# who.sh - who attacks: source list, watch and top, with packets of a wire and a terminal of 80 by 24.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin who
lab_link 0

daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
limits:
  - {name: web, match: {dport: 80}, rate: 10 packets/h, burst: 10}
  - {name: dns, match: {dport: 53}, rate: 10 packets/h, burst: 10}
YAML

send() {
	blast "$LAB/sent" --dst $SERVER4 "$@"
}
# A member of a source's entry.
of() {
	jq -r --arg source "$1" ".sources[] | select(.source == \$source) | $2" "$LAB/drops"
}
listed() {
	jq -r '[.sources[].source] | join(" ")' "$LAB/$1"
}

# All within the windows that are counted: the first one ends 4.3 s after its packets at the earliest.
send --src 10.1.1.1 --count 3000 --pps 20000 --dport 80
send --src 10.1.2.1 --count 800 --pps 20000 --dport 53
send --src 10.1.3.1 --count 500 --pps 20000 --dport 9
ctl source list -o json > "$LAB/drops"
ctl source list -o json --by passes > "$LAB/passes"
ctl source list -o json --limit dns > "$LAB/limit"
ctl source list -o json --within 10.1.2.0/23 > "$LAB/within"
ctl source list -o json --interface s0 --count 1 > "$LAB/interface"
COLUMNS=80 ctl source list > "$LAB/text"
check_is "the heaviest is first" "$(jq -r '.sources[0].source' "$LAB/drops")" 10.1.1.1
check_is "its drops" "$(of 10.1.1.1 .dropped.packets)" 2990
check_is "its passes" "$(of 10.1.1.1 .passed.packets)" 10
check_is "nothing is missed" "$(of 10.1.1.1 .dropped.missed)" 0
check_is "the limit that refused it" "$(of 10.1.1.1 .limit)" web
check_is "its bucket is full" "$(of 10.1.1.1 '"\(.used) of \(.capacity)"')" "10 of 10"
check_is "another limit's source" "$(of 10.1.2.1 '"\(.limit) \(.dropped.packets)"')" "dns 790"
check_is "by passes another is first" "$(jq -r '.sources[0].source' "$LAB/passes")" 10.1.3.1
check_is "of one limit" "$(listed limit)" 10.1.2.1
check_is "within a prefix" "$(listed within)" "10.1.2.1 10.1.3.1"
check_is "of an interface, the first" "$(listed interface)" 10.1.1.1
check_is "the others are counted" "$(jq '.more > 1' "$LAB/interface")" true
check_true "as text" grep -qE "^10\.1\.1\.1 .* web( |$)" "$LAB/text"
check_is "of at most 80 columns" "$(awk 'length > 80' "$LAB/text" | wc -l)" 0
ctl source list --by rate > "$LAB/out" 2>&1
check_true "an order that is not known names those that are" grep -q "drops, passes, bits or connections" "$LAB/out"
ctl source list --interface nix > "$LAB/out" 2>&1
check_true "an interface that is not known" grep -q "no interface 'nix'" "$LAB/out"

timeout 3 "$BIN/sluicectl" -s "$SOCKET" watch > "$LAB/watch" 2>&1
check_true "watch writes a line a second" test "$(jq -c 'select(.sources)' "$LAB/watch" | wc -l)" -ge 2

# ---- top, in a terminal of 80 by 24
TMUX_SOCKET=$LAB/tmux
terminal() {
	tmux -S "$TMUX_SOCKET" "$@"
}
screen() {
	terminal capture-pane -p
}
on_screen() {
	screen | grep -qE "$1"
}
terminal -f /dev/null new-session -d -x 80 -y 24 "$BIN/sluicectl -s $SOCKET top"
blast_bg "$LAB/flood" --dst $SERVER4 --dport 80 --src 10.1.1.1 --count 200000 --pps 10000
wait_for 10 on_screen '^10\.1\.1\.1 '
screen > "$LAB/screen"
check_true "the source, its bucket, its limit" grep -qE '^10\.1\.1\.1 .*######## web' "$LAB/screen"
check_is "24 lines" "$(wc -l < "$LAB/screen")" 24
check_is "of at most 80 columns" "$(awk 'length > 80' "$LAB/screen" | wc -l)" 0
terminal send-keys x
check_true "x explains" wait_for 5 on_screen '10\.1\.1\.1: '
terminal send-keys s
check_true "s changes the order" wait_for 5 on_screen 'by passes'
terminal send-keys s s s p
terminal send-keys 10.1.0.0/16 Enter
check_true "p looks at a prefix" wait_for 5 on_screen 'within 10\.1\.0\.0/16'
terminal send-keys i
check_true "i looks at an interface" wait_for 5 on_screen ' on s0 .*sources?$'
terminal send-keys i f
check_true "f freezes" wait_for 5 on_screen FROZEN
terminal send-keys f b
check_true "b asks" wait_for 5 on_screen 'block 10\.1\.1\.1 for 10 minutes\? y/n'
terminal send-keys n
sleep 0.3
check_is "n: nothing is blocked" "$(ctl block list -o json | jq '.entries | length')" 0
terminal send-keys b
wait_for 5 on_screen 'y/n'
terminal send-keys y
check_true "y blocks" wait_for 5 on_screen '10\.1\.1\.1 is blocked'
check_is "as block list shows" "$(ctl block list -o json | jq -r '.entries[0].prefix')" 10.1.1.1
check_true "and top" wait_for 10 on_screen '^10\.1\.1\.1 .* block +blocked'
check_true "one is not several" wait_for 10 on_screen '  1 source$'
blast_stop
terminal resize-window -x 60 -y 10
sleep 0.5
terminal send-keys j k
check_is "a smaller terminal has no line beyond it" "$(screen | awk 'length > 60' | wc -l)" 0
terminal send-keys q
check_true "q ends" wait_for 5 eval '! terminal has-session 2> /dev/null'
check_true "without a terminal it names watch" grep -q "sluicectl watch" <(ctl top 2>&1 < /dev/null)
daemon_kill TERM
lab_done
