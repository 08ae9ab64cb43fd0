#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ban.sh - a source that goes on after being refused is banned for a while, twice as long each time up
# to the maximum, by the data path: tested on real frames with the daemon killed. The next
# daemon lists the bans, lifts them, agrees with source show, and restores them after
# a reboot (the pins gone, state_dir not). This host's gateway is never banned, and a neighbour
# never affected. (Without `spoofable`: bpf/test_socket.c.)

. "$(dirname "$0")/../lib/netns.sh"
lab_begin ban
lab_link 0

daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
exempt: [10.1.4.0/24]
never_ban: [10.1.2.9]
limits:
  - {name: short, match: {src: 10.1.1.0/24}, rate: 10 packets/s, burst: 10, accounting: exact,
     ban: {after: 20 drops/10s, for: 1s, max: 4s, spoofable: yes}}
  - {name: long, match: {src: [10.1.2.0/24, 10.1.0.0/24, 10.1.4.0/24]}, rate: 10 packets/m, burst: 10,
     accounting: exact, ban: {after: 20 drops/m, for: 1h, spoofable: yes}}
YAML

# ban SOURCE MEMBER
ban() {
	ctl -o json ban list | jq -r --arg s "$1" ".bans[] | select(.source == \$s) | .$2"
}
# ---------------------------------------------------------------- twice as long, without a daemon

sink_start s0
from=$(now)
blast_bg "$LAB/offender" --src 10.1.1.1 --dst $SERVER4 --pps 200 --time 9
blast_bg "$LAB/neighbour" --src 10.1.1.2 --dst $SERVER4 --pps 8 --time 9
check_true "the offender is banned" wait_for 5 banned 10.1.1.1
daemon_kill KILL
blast_wait
sink_stop s0
check "seconds of it without a daemon" "$(calc "$(now) - $from")" 8 60

# Silences of more than half a second between frames that passed: the bans.
awk -F'\t' '$2 == "10.1.1.1" { if (last && $1 - last > 0.5) print $1 - last; last = $1 }' \
	"$LAB/sink.s0" > "$LAB/bans"
# A ban begins with the 21st drop, a tenth of a second after the bucket was empty.
n=0
for length in 1 2 4; do
	n=$((n + 1))
	check "ban $n lasts" "$(sed -n ${n}p "$LAB/bans")" $length "$(calc "$length + 0.5")"
done
check "of the offender's frames arrived" "$(packets_passed s0 10.1.1.1)" 40 60
check_is "of the neighbour's frames as many arrived as were sent" "$(packets_passed s0 10.1.1.2)" \
	"$(field "$LAB/neighbour" sent)"

# ---------------------------------------------------------------- listed, lifted

# over SOURCE COUNT: the bucket and COUNT more, at once.
over() {
	blast "$LAB/over" --src "$1" --dst $SERVER4 --count $((10 + $2))
	settle s0
}
# by_reason REASON: packets dropped for it.
by_reason() {
	metric sluice_packets_total reason="$1" verdict=drop
}

daemon_run
over 10.1.2.1 20
check_true "twenty drops: not banned" eval '! banned 10.1.2.1'
before=$(by_reason ban)
over 10.1.2.1 0
check_true "one more: banned" banned 10.1.2.1
check_is "the rest are dropped by the ban, and counted for it" $(($(by_reason ban) - before)) 9
check_is "the list counts the drops" "$(ban 10.1.2.1 drops)" 9
check_is "the list names the limit" "$(ban 10.1.2.1 limit)" long
check_is "at the first level" "$(ban 10.1.2.1 level)" 0
check "nanoseconds left" "$(ban 10.1.2.1 left_ns)" 3.5e12 3.6e12
check_true "source show has the ban" grep -q '^banned *until 2' <(ctl source show 10.1.2.1)
check_true "source show has none for the neighbour" grep -q '^banned *no' <(ctl source show 10.1.2.2)
check "sluice_bans_active" "$(metric sluice_bans_active)" 1 2
check_true "status counts it" grep -qE '^banned *[12] ' <(ctl status)
over 10.1.2.2 0
check_true "a source within its limit is not banned" eval '! banned 10.1.2.2'
over 10.1.4.1 100
check_true "an exempt source is not banned" eval '! banned 10.1.4.1'

check_is "ban del of a source without a ban fails" "$(ctl ban del 10.1.2.2 2> /dev/null; echo $?)" 1
check_is "ban del" "$(ctl ban del 10.1.2.1)" "lifted: 10.1.2.1"
check_true "the ban is gone" eval '! banned 10.1.2.1'
before=$(by_reason over)
over 10.1.2.1 10
check_is "from then on the source is only limited" $(($(by_reason over) - before)) 20
check_true "it is not banned at once" eval '! banned 10.1.2.1'
over 10.1.2.1 0
check_true "it is banned after as many drops again" banned 10.1.2.1
check_is "the ban is at the first level again" "$(ban 10.1.2.1 level)" 0

over 10.1.2.9 100
check_true "a source in never_ban is not banned" eval '! banned 10.1.2.9'

# ---------------------------------------------------------------- the gateway

refreshed() {
	[ "$(ctl -o json status | jq .generation)" -gt "$1" ]
}
generation=$(ctl -o json status | jq .generation)
ip -n "$NS_S" route add default via 10.1.0.8
check_true "a new default route is noticed" wait_for 5 refreshed "$generation"
over 10.1.0.8 100
over 10.1.0.9 100
check_true "the gateway is not banned" eval '! banned 10.1.0.8'
check_true "the address beside it is banned" banned 10.1.0.9
generation=$(ctl -o json status | jq .generation)
ip -n "$NS_S" route replace default via 10.1.0.7
wait_for 5 refreshed "$generation"
over 10.1.0.7 100
over 10.1.0.8 0
over 10.1.0.8 20
check_true "nor is the next gateway" eval '! banned 10.1.0.7'
check_true "the old one may be banned then" banned 10.1.0.8

# ---------------------------------------------------------------- a reboot

stored() {
	grep -q 10.1.2.1 "$LAB/state/bans.json" && grep -q 10.1.0.8 "$LAB/state/bans.json"
}
check_true "bans are saved" wait_for 15 stored
daemon_kill KILL
daemon_purge
check_is "pins left" "$(ls "$PIN" 2> /dev/null | wc -l)" 0
daemon_run
check_true "after a reboot the ban is in force again" banned 10.1.2.1
check_is "it has the same limit" "$(ban 10.1.2.1 limit)" long
before=$(by_reason ban)
over 10.1.2.1 0
check_is "packets dropped by the restored ban" $(($(by_reason ban) - before)) 10
check_is "ban del of a network lifts all bans in it" "$(ctl ban del 10.1.0.0/24 | sort | tr '\n' ' ')" \
	"lifted: 10.1.0.8 lifted: 10.1.0.9 "
check_true "and no others" banned 10.1.2.1
lab_done
