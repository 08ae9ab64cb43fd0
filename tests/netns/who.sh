#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# who.sh - who attacks: source list, watch, top and suggest, with packets of a wire and a terminal of 80 by 24;
# then a flood of spoofed addresses, which is named by its network, beside a neighbor, which is not.

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
send --src 10.7.3.0/27 --sequential 20 --count 1000 --pps 20000 --dport 9
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
check_is "a network of a few packets, exactly" \
	"$(jq -c '.networks[] | [.source, .sources, .passed.packets, .estimated]' "$LAB/drops")" '["10.7.3.0/27",20,1000,false]'
check_is "the others are counted" "$(jq '.more > 1' "$LAB/interface")" true
check_true "as text" grep -qE "^10\.1\.1\.1 .* web( |$)" "$LAB/text"
check_is "of at most 80 columns" "$(awk 'length > 80' "$LAB/text" | wc -l)" 0
ctl source list --by rate > "$LAB/out" 2>&1
check_true "an order that is not known names those that are" grep -q "drops, passes, bits or connections" "$LAB/out"
ctl source list --interface nix > "$LAB/out" 2>&1
check_true "an interface that is not known" grep -q "no interface 'nix'" "$LAB/out"

timeout 3 "$BIN/sluicectl" -s "$SOCKET" watch > "$LAB/watch" 2>&1
check_true "watch writes a line a second" test "$(jq -c 'select(.sources)' "$LAB/watch" | wc -l)" -ge 2

# ---- spoofed networks: a /16 and a /48, of which no source sends much, beside neighbors
sleep_past() { [ "$(ctl source list -o json | jq '.sources | length')" = 0 ]; }
wait_for 15 sleep_past	# what came so far is no longer counted
# The commands that are printed are run as they are.
mkdir "$LAB/bin"
printf '#!/bin/bash\nexec "%s" -s "%s" "$@"\n' "$BIN/sluicectl" "$SOCKET" > "$LAB/bin/sluicectl"
chmod +x "$LAB/bin/sluicectl"
run() { PATH=$LAB/bin:$PATH bash -c "$1" > "$LAB/out" 2>&1; }
arrivals_count 0
# Packets of a prefix that Linux got.
on_server nft "add counter netdev seen0 flood; add counter netdev seen0 beside;
	insert rule netdev seen0 in ip saddr 10.7.0.0/16 counter name flood;
	insert rule netdev seen0 in ip saddr 10.8.0.0/16 counter name beside"
blast_bg "$LAB/spoofed4" --dst $SERVER4 --dport 9 --src 10.7.0.0/16 --count 2000000 --pps 20000
blast_bg "$LAB/spoofed6" --dst $SERVER6 --dport 9 --src 2001:db8:7::/48 --count 1000000 --pps 10000
blast_bg "$LAB/beside" --dst $SERVER4 --dport 9 --src 10.8.0.0/29 --sequential 8 --count 40000 --pps 400
blast_bg "$LAB/beside6" --dst $SERVER6 --dport 9 --src 2001:db8:8::/64 --count 5000 --pps 50
# network PREFIX FILTER: of a network's row.
network() {
	jq -r --arg network "$1" "[.networks // [] | .[] | select(.source == \$network)][0] | $2" "$LAB/networks"
}
named() {
	ctl source list -o json > "$LAB/networks" 2> /dev/null
	[ "$(jq '[.networks // [] | .[].passed.per_second] | length == 2 and add > 24000' "$LAB/networks")" = true ]
}
neighbors() {
	jq '[.sources[] | select(.source | startswith("10.8.0.") or . == "2001:db8:8::/64")] | length' "$LAB/networks"
}
check_true "the networks of two floods of spoofed addresses are named" wait_for 20 named
check_is "and no other" "$(jq -r '[.networks[].source] | join(" ")' "$LAB/networks")" "10.7.0.0/16 2001:db8:7::/48"
# An estimate goes by the last second's packets, and a busy machine sends in bursts; their sum does not.
check "the /16 sends more or less 20,000/s" "$(network 10.7.0.0/16 '.passed.per_second | floor')" 8000 28000
check "both together 30,000/s" "$(jq '[.networks[].passed.per_second] | add | floor' "$LAB/networks")" 24000 36000
check_is "which is an estimate" "$(network 10.7.0.0/16 .estimated)" true
check "its sources that have an entry" "$(network 10.7.0.0/16 .sources)" 500 $((2048 * $(nproc)))
check_is "the flood's sources are not listed" \
	"$(jq -r '[.sources[].source | select(test("^10[.]7[.]|^2001:db8:7:"))] | length' "$LAB/networks")" 0
check_is "the neighbors are" "$(neighbors)" 9
check_is "within the network its sources are listed" \
	"$(ctl source list --within 10.7.0.0/16 -o json | jq '.sources | length')" 20
check "with --all, too" "$(ctl source list --all --count 10000 -o json | jq '.sources | length')" 1000 10000
COLUMNS=80 ctl source list > "$LAB/text"
check_true "as text" grep -qE '^10\.7\.0\.0/16 +[0-9,]+\+ +0 +~[0-9.]+k ' "$LAB/text"
check_is "of at most 80 columns" "$(awk 'length > 80' "$LAB/text" | wc -l)" 0

ctl suggest --for 1s -o json > "$LAB/suggest"
check_is "suggest names them" "$(jq -r '[.apart[].source] | sort | join(" ")' "$LAB/suggest")" "10.7.0.0/16 2001:db8:7::/48"
check "its limit of a source is of the neighbors, who send 50/s" \
	"$(jq '.groups[] | select(.group == "source").rate' "$LAB/suggest")" 30 80
check "and that of a /16 far below the flood" "$(jq '.groups[] | select(.group == "wide").rate' "$LAB/suggest")" 240 800
check_true "in the configuration, too" grep -q 'name: suggested-wide' <(jq -r .yaml "$LAB/suggest")

# passed_per_second WHAT: packets of it that Linux got, over two seconds or, on a busy machine, more.
passed_per_second() {
	local before began

	before=$(nft_packets netdev seen0 "$1")
	began=$(date +%s%N)
	sleep 2
	echo $((($(nft_packets netdev seen0 "$1") - before) * 1000000000 / ($(date +%s%N) - began)))
}
named
limit=$(network 10.7.0.0/16 .limit) block=$(network 10.7.0.0/16 .block)
check_true "the command for a limit" run "$limit"
sleep 1.5	# its burst
rate=$(grep -oE 'rate: [0-9]+' <<< "$limit" | tr -dc 0-9)
check "a tenth of 8,000 to 28,000/s" "$rate" 800 2800
check "reaches Linux" "$(passed_per_second flood)" $((rate * 8 / 10)) $((rate * 11 / 10))
check_true "the command for a block" run "$block"
check_is "nothing of it does" "$(passed_per_second flood)" 0
check "all of the neighbors does" "$(passed_per_second beside)" 300 500
check_is "the network is blocked" "$(named; network 10.7.0.0/16 '"\(.state) \(.block)"')" "blocked null"
ctl limit del net-10-7-0-0-16 > /dev/null
ctl block del 10.7.0.0/16 > /dev/null

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
wait_for 10 on_screen '^10\.7\.0\.0/16 +~ .*[0-9]\+ sources'
screen > "$LAB/screen"
check_true "top begins with the networks" grep -qE '^10\.7\.0\.0/16 +~ .*[0-9]\+ sources' <(sed -n 3,4p "$LAB/screen")
check_is "in at most 80 columns" "$(awk 'length > 80' "$LAB/screen" | wc -l)" 0
terminal send-keys Up Up b
check_true "b asks for the network" wait_for 5 on_screen 'block (10\.7\.0\.0/16|2001:db8:7::/48) for 10 minutes\? y/n'
terminal send-keys n q
blast_stop
wait_for 15 sleep_past
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
