#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# iface.sh - attach, detach, and an interface that is renamed, moves to another namespace, vanishes and
# returns, by a daemon that has dropped its capabilities; native and generic; MTU 9000. An interface that
# is not attached, and one that was detached, pass everything.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin iface
lab_link 0
lab_link 1 2 9000

daemon_start <<'YAML'
interfaces: [{name: s0}]
limits:
  - {name: slow, match: {src: '10.0.0.0/8'}, rate: 1 packets/h, burst: 20}
  - {name: bytes, match: {src: 172.16.0.0/12}, rate: 9000 bytes/m, burst: 90000}
YAML

# CAP_NET_ADMIN 12, CAP_PERFMON 38, CAP_BPF 39; nothing else, in any thread.
capabilities() {
	cat "/proc/$DAEMON_PID/task/"*/status | awk '/^CapEff/ { print $2 }' | sort -u
}
check_is "effective capabilities" "$(capabilities)" 000000c000001000
check_is "seccomp filter mode" "$(awk '/^Seccomp:/ { print $2 }' "/proc/$DAEMON_PID/status")" 2

# probe WORDS DEVICE SRC COUNT LEAST MOST [OPTIONS]: of COUNT frames through cN, so many arrive
# behind sN's XDP. The client sends nothing else.
probe() {
	local words=$1 n=$2 src=$3 count=$4 least=$5 most=$6 seen

	shift 6
	seen=$(arrived "$n")
	on_client "$TOOLS/netns/blast" --interface "c$n" --mac $MAC_S --mac-src $MAC_C --src "$src" \
		--dst "10.$((n + 1)).0.1" --count "$count" --pps 20000 "$@" > "$LAB/probe" ||
		not_ok "$words: blast"
	settle "${NAME_NOW:-s$n}"
	check "$words: arrived of $(field "$LAB/probe" sent)" $(($(arrived "$n") - seen)) "$least" "$most"
}
mode_of() {
	metrics | sed -n "s/^sluice_interface_info{.*interface=\"$1\".*mode=\"\([a-z]*\)\".*/\1/p"
}
arrivals_count 0
arrivals_count 1

check_is "auto is native" "$(mode_of s0)" native
probe "attached at start" 0 10.1.1.1 100 20 20
probe "not attached" 1 10.2.1.1 100 100 100

check_true "attach" ctl attach s1
check_is "mode" "$(mode_of s1)" native
probe "attached live" 1 10.2.1.2 100 20 20
probe "limits are shared by interfaces" 1 10.1.1.1 100 0 0
probe "9000 bytes in fragments of the buffer" 1 172.16.0.1 100 10 10 --length 9000
check_true "attach again" ctl attach s1
probe "attached twice is attached once" 1 10.2.1.3 100 20 20

check_true "detach" ctl detach s1
check_is "no longer listed" "$(mode_of s1)" ""
probe "detached" 1 10.2.1.2 100 100 100
probe "the other one is still on" 0 10.1.1.2 100 20 20

check_true "attach in generic mode" ctl attach s1 --mode generic
check_is "mode" "$(mode_of s1)" generic
probe "generic" 1 10.2.1.4 100 20 20
check_true "detach" ctl detach s1
probe "detached" 1 10.2.1.4 100 100 100

# ---- names, and native where there is none
refused() {
	ctl "$@" 2>&1 > /dev/null
}
ip -n "$NS_S" link add px type veth
ip -n "$NS_S" link set dev px name -x
check_true "attach an interface named -x" ctl attach -- -x
check_is "its state" "$(mode_of -x)" native
check_is "without --" "$(refused detach -x | sed 's/.*; //')" "a name that begins with '-' follows after --"
check_true "detach it" ctl detach -- -x
check_is "its state" "$(mode_of -x)" ""
ip -n "$NS_S" link add br0 type bridge
check_is "native without a driver for it" "$(refused attach br0 --mode native)" "sluicectl: cannot attach to br0 in \
native mode: Underlying driver does not support XDP in native mode (mode generic works with every driver, auto takes \
the one that works)"
ip -n "$NS_S" link del br0
check_true "no other programs are shown where there are none" sh -c "! '$BIN/sluicectl' -s '$SOCKET' status | grep 'other programs'"

# ---- renamed: followed by its number
shown() {
	ctl status | grep -q "^$1 *$2 "
}
rename() {
	on_server nft delete table netdev seen1 2> /dev/null
	ip -n "$NS_S" link set "$1" down
	ip -n "$NS_S" link set "$1" name "$2"
	ip -n "$NS_S" link set "$2" up
	arrivals_count 1 "$2"
}
programs_of() {
	ip -n "$NS_S" -j link show "$1" | jq '[.[] | select(.xdp)] | length'
}
check_true "attach" ctl attach s1
rename s1 wan0
NAME_NOW=wan0
check_true "status shows the new name" wait_for 5 shown s1 "native, renamed: wan0"
probe "renamed" 1 10.2.2.1 100 20 20
attached_by_doctor() {
	on_server "$BIN/sluicectl" -s "$SOCKET" doctor -o json |
		jq -r --arg i "$1" '.checks[] | select(.check == "attached" and .interface == $i) | "\(.level): \(.found)"'
}
check_is "doctor looks at it" "$(attached_by_doctor wan0)" "ok: in native mode"
check_is "another mode for the old name" "$(refused attach s1 --mode generic)" \
	"sluicectl: s1 was renamed to wan0: configure that name to change its mode"
probe "still limited" 1 10.2.2.5 100 20 20
daemon_kill TERM
daemon_run
check_true "a new daemon follows it" shown s1 "native, renamed: wan0"
probe "limited" 1 10.2.2.2 100 20 20
check_true "detach by the configured name" ctl detach s1
check_is "programs left on wan0" "$(programs_of wan0)" 0
probe "detached" 1 10.2.2.1 100 100 100
rename wan0 s1
check_true "attach" ctl attach s1
rename s1 wan0
check_true "renamed" wait_for 5 shown s1 "native, renamed: wan0"
ip -n "$NS_S" link add s1 type veth
check_true "another interface with the name is attached" wait_for 5 shown s1 native
check_is "and the first one is detached" "$(programs_of s1) $(programs_of wan0)" "1 0"
probe "it passes everything" 1 10.2.2.3 100 100 100
check_true "the new name, attached" ctl attach wan0
probe "limited" 1 10.2.2.4 100 20 20
ip -n "$NS_S" link set wan0 down
ip -n "$NS_S" link del s1
ip -n "$NS_S" link set wan0 name s1
ip -n "$NS_S" link set s1 up
check_true "back under the name that is configured too: attached in its place" wait_for 5 shown s1 native
check_true "and not twice" shown wan0 absent
check_true "detach both" sh -c "'$BIN/sluicectl' -s '$SOCKET' detach s1 && '$BIN/sluicectl' -s '$SOCKET' detach wan0"
check_is "programs left on s1" "$(programs_of s1)" 0
unset NAME_NOW

# ---- moved to another namespace: the program goes along, and limits until it is detached
lab_link 2
check_true "attach" ctl attach s2
ip -n "$NS_S" link set s2 netns "$NS_C"
ip -n "$NS_C" link set s2 up
on_client nft "add table netdev moved; add counter netdev moved passed;
	add chain netdev moved in { type filter hook ingress device s2 priority 0; };
	add rule netdev moved in ether saddr $MAC_C counter name passed drop" || not_ok "nft on s2"
moved_count() {
	on_client nft -j list counter netdev moved passed | jq '.nftables[] | .counter? // empty | .packets'
}
moved_received() {
	[ "$(ip -n "$NS_C" -j -s link show s2 | jq '.[0].stats64.rx.packets')" -ge "$1" ]
}
# moved_probe WORDS SRC EXPECTED: of 100 frames so many arrive behind its XDP, in the other namespace.
moved_probe() {
	local seen received

	seen=$(moved_count)
	received=$(ip -n "$NS_C" -j -s link show s2 | jq '.[0].stats64.rx.packets')
	on_client "$TOOLS/netns/blast" --interface c2 --mac $MAC_S --mac-src $MAC_C --src "$2" --dst 10.3.0.1 \
		--count 100 --pps 20000 > "$LAB/probe"
	wait_for 5 moved_received $((received + 100)) || not_ok "s2 has not received all"
	check_is "$1: arrived of 100" $(($(moved_count) - seen)) "$3"
}
check_true "status shows it" wait_for 5 shown s2 moved
moved_probe "moved" 10.3.1.1 20
check_is "doctor names it" "$(attached_by_doctor s2)" "warn: moved to another network namespace: its limits hold there"
check_true "detach" ctl detach s2
moved_probe "detached" 10.3.1.1 100
check_is "no longer listed" "$(mode_of s2)" ""
ip -n "$NS_C" link del s2

# ---- an interface that vanishes and returns
ip -n "$NS_S" link del s0
on_server nft delete table netdev seen0 2> /dev/null
gone() {
	[ "$(mode_of s0)" = absent ]
}
check_true "the daemon notices that it is gone" wait_for 5 gone
lab_link 0
arrivals_count 0
back() {
	[ "$(mode_of s0)" = native ]
}
check_true "it attaches when the interface is back" wait_for 10 back
probe "it is limited" 0 10.1.1.3 100 20 20
probe "and remembers" 0 10.1.1.1 100 0 0
check_is "capabilities are still dropped" "$(capabilities)" 000000c000001000

# ---- gone while the daemon was down
daemon_kill KILL
ip -n "$NS_S" link del s0
on_server nft delete table netdev seen0 2> /dev/null
lab_link 0
arrivals_count 0
probe "a new device under the old name is not attached by itself" 0 10.1.1.4 100 100 100
daemon_run
check_true "a new daemon attaches it" wait_for 10 back
probe "and it is limited" 0 10.1.1.5 100 20 20

# ---- stopped, and detached
daemon_kill TERM
probe "stopped, the limit holds" 0 10.1.1.6 100 20 20
daemon_run
check_true "detach an interface of the file" ctl detach s0
probe "detached" 0 10.1.1.6 100 100 100
daemon_kill TERM
check_is "XDP programs left on s0" \
	"$(ip -n "$NS_S" -j link show s0 | jq '[.[] | select(.xdp)] | length')" 0
lab_done
