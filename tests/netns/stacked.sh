#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# stacked.sh - a bridge and its port, a macvlan on the bridge: attached and detached in any order, all or one,
# at a reload, and a port that appears later. Linux changes a device's program only while those right above
# it have none: ours are taken off for that moment and are the same afterwards; one of others is named.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin stacked
lab_link 0
lab_link 1
THEIRS=$BIN/tests/bpf/neighbour.bpf.o
ip -n "$NS_S" link add br0 address $MAC_S type bridge
ip -n "$NS_S" link set br0 up
ip -n "$NS_S" link set s0 master br0
ip -n "$NS_S" addr flush dev s0
ip -n "$NS_S" addr add 10.1.0.1/16 dev br0
ip -n "$NS_S" link add mv1 link br0 type macvlan
on_server nft "add table netdev seen; add counter netdev seen passed;
	add chain netdev seen in { type filter hook ingress device br0 priority 0; };
	add rule netdev seen in ether saddr $MAC_C counter name passed drop" || not_ok "nft on br0"

config() {
	config_write "$CONFIG" <<-YAML
	interfaces: [$1]
	limits: [{name: slow, match: {src: '10.0.0.0/8'}, rate: 1 packets/m, burst: 20}]
	YAML
}
reload() {
	config "$1"
	check_true "reload: $1" ctl reload
}
# probe WORDS SRC EXPECTED: of 100 frames to s0 so many arrive behind br0's XDP.
probe() {
	local seen

	seen=$(nft_packets netdev seen passed)
	blast "$LAB/probe" --src "$2" --dst $SERVER4 --count 100 --pps 20000
	settle s0
	check_is "$1: arrived of 100" $(($(nft_packets netdev seen passed) - seen)) "$3"
}
program() {
	ip -n "$NS_S" -j link show "$1" | jq '.[0].xdp.prog.id // 0'
}
programs_left() {
	ip -n "$NS_S" -j link show | jq '[.[] | select(.xdp)] | length'
}
state() {
	ctl -o json status | jq -r ".interfaces[] | select(.name == \"$1\").state"
}
is() {
	[ "$(state "$1")" = "$2" ]
}
put_theirs() {
	ip -n "$NS_S" -force link set dev "$1" xdpgeneric obj "$THEIRS" sec xdp.frags
}

# ---- the upper one first in the file
config '{name: mv1}, {name: br0}, {name: s0}, {name: s1}'
daemon_run
check_is "states" "$(for i in mv1 br0 s0 s1; do state $i; done | xargs)" "generic generic native native"
neighbor=$(program s1)
on_server "$BIN/sluicectl" check "$CONFIG" > "$LAB/check"
doctor() {
	on_server "$BIN/sluicectl" -s "$SOCKET" doctor -o json |
		jq -r --arg i "$1" '[.checks[] | select(.check == "limits" and .interface == $i) | .level + ": " + .found] | join(" ")'
}
check_is "check notes each pair" "$(grep -o 'interface [a-z0-9]* stands on [a-z0-9]*: a packet through both is charged on each' "$LAB/check" |
	cut -d: -f1 | sort | xargs)" "interface br0 stands on s0 interface mv1 stands on br0 interface mv1 stands on s0"
check_is "doctor: the bridge" "$(doctor br0)" "warn: stands on s0: a packet through both is charged on each; configure one of them"
check_is "doctor: the port, the neighbor" "$(doctor s0)$(doctor s1)" ""
sed 's/match: {/match: {interface: [br0, s1], /' "$CONFIG" > "$LAB/one.yaml"
check_is "no note if each limit is for one of them" "$(on_server "$BIN/sluicectl" check "$LAB/one.yaml" | grep -c 'stands on')" 0
probe "each packet is charged on both" 10.1.1.1 10
uppers="$(program br0) $(program mv1)"
check_true "detach the lowest" ctl detach s0
check_is "it has no program" "$(program s0)" 0
check_is "those above have the same as before" "$(program br0) $(program mv1)" "$uppers"
probe "charged once" 10.1.1.2 20
check_true "attach it below them" ctl attach s0
check_is "the same above" "$(program br0) $(program mv1)" "$uppers"
probe "charged on both" 10.1.1.3 10
check_true "detach the one between" ctl detach br0
check_is "programs below and above" "$(program s0 | grep -c '[1-9]') $(program br0) $(program mv1)" "1 0 ${uppers#* }"
sleep 1.1	# the daemon looks at its programs each second
check_is "none was missed" "$(metric sluice_interface_program_lost_total)" 0

# ---- from the port to its bridge, and back
reload '{name: s0}, {name: s1}'
probe "the port" 10.1.1.4 20
reload '{name: br0}, {name: s1}'
check_is "the port has none" "$(program s0)" 0
probe "the bridge" 10.1.1.5 20
reload '{name: s0}, {name: s1}'
probe "the port" 10.1.1.6 20

# ---- a port that appears later
reload '{name: br0}, {name: s9}, {name: s1}'
ip -n "$NS_S" link add s9 type veth peer name c9 netns "$NS_C"
ip -n "$NS_S" link set s9 master br0
check_true "a port that appears is attached" wait_for 5 is s9 native
check_is "the bridge is" "$(state br0)" generic

# ---- a program of others above
check_true "another program above" put_theirs mv1
check_true "attach is refused" sh -c "! '$BIN/sluicectl' -s '$SOCKET' attach s0 2> /dev/null"
ctl attach mv1 2> /dev/null
check_true "detach is refused" sh -c "! '$BIN/sluicectl' -s '$SOCKET' detach s9 2> '$LAB/refused'"
check_true "by the device's name" grep -q "cannot detach from br0: mv1 above it has an XDP program ('[a-z_]*', id [1-9]" "$LAB/refused"
check_is "all as before" "$(state s9) $(state br0)" "native generic"
probe "the bridge is limited" 10.1.1.7 20
ip -n "$NS_S" link set dev mv1 xdp off
check_true "without it: detach" ctl detach s9
check_is "the neighbor was never touched" "$(program s1)" "$neighbor"

# ---- all
reload '{name: mv1}, {name: br0}, {name: s0}, {name: s1}'
check_true "detach --all" ctl detach --all
check_true "the daemon ends" wait_for 5 daemon_gone
check_is "programs left" "$(programs_left)" 0
daemon_run
daemon_kill KILL
rm -r "$PIN"
check_true "--purge of stubs without pins" on_server "$BIN/sluiced" -c "$CONFIG" --purge
check_is "programs left" "$(programs_left)" 0
reload_config='{name: s0}, {name: s1}'
config "$reload_config"
daemon_run
put_theirs br0
check_true "detach --all below another program fails" sh -c "! '$BIN/sluicectl' -s '$SOCKET' detach --all 2> '$LAB/refused'"
check_true "and names what is in the way" grep -q "br0 above it .*ip link set dev br0 xdp off" "$LAB/refused"
check_true "the daemon ends, and attaches nothing again" wait_for 5 daemon_gone
check_is "nothing is limited any more" "$(program s1) $(ls "$PIN" 2> /dev/null | wc -l)" "0 0"
ip -n "$NS_S" link set dev br0 xdp off
check_true "--purge removes the rest" on_server "$BIN/sluiced" -c "$CONFIG" --purge
check_is "programs left" "$(programs_left)" 0
lab_done
