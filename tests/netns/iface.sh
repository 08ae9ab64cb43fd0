#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# iface.sh - attach, detach, and an interface that vanishes and returns, by a daemon that has
# dropped its capabilities; native and generic; MTU 9000. An interface that is not attached, and
# one that was detached, pass everything.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin iface
lab_link 0
lab_link 1 2 9000

daemon_start <<'YAML'
interfaces: [{name: s0}]
limits:
  - {name: slow, match: {src: '10.0.0.0/8'}, rate: 1 packets/m, burst: 20}
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
	settle "s$n"
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
