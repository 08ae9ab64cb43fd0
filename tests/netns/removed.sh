#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# removed.sh - the program removed or replaced by another tool; pins removed, and
# their file system unmounted, with the daemon running and without. Limits hold again, or an alarm
# is raised where the file asks for no more; a start and --purge cope with a stub without pins.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin removed
lab_link 0
THEIRS=$BIN/tests/bpf/neighbour.bpf.o

# config [KEYS]: of the interface.
config() {
	config_write "$CONFIG" <<-YAML
	interfaces: [{name: s0${1:+, $1}}]
	limits:
	  - {name: slow, match: {src: '10.0.0.0/8'}, rate: 1 packets/m, burst: 20}
	YAML
}

# probe WORDS SRC LEAST MOST: of 100 frames so many arrive behind s0's XDP.
probe() {
	local seen

	seen=$(arrived)
	blast "$LAB/probe" --src "$2" --dst $SERVER4 --count 100 --pps 20000
	settle s0
	check "$1: arrived of $(field "$LAB/probe" sent)" $(($(arrived) - seen)) "$3" "$4"
}
arrivals_count
state() {
	ctl -o json status | jq -r '.interfaces[0].state'
}
is() {
	[ "$(state)" = "$1" ]
}
lost() {
	[ "$(metric sluice_interface_program_lost_total cause="$1")" = "$2" ]
}
put_theirs() {
	ip -n "$NS_S" -force link set dev s0 xdpdrv obj "$THEIRS" sec xdp.frags
}
xdp_off() {
	ip -n "$NS_S" link set dev s0 xdp off
}
programs_left() {
	ip -n "$NS_S" -j link show s0 | jq '[.[] | select(.xdp)] | length'
}
restart() {
	daemon_kill "$1"
	daemon_run
}

config
daemon_run
probe "attached" 10.1.1.1 20 20

# ---- removed
xdp_off
check_true "removed: noticed" wait_for 5 lost removed 1
check_true "attached again" wait_for 5 is native
probe "a new source is limited" 10.1.1.2 20 20
probe "and nothing is forgotten" 10.1.1.1 0 0

# ---- replaced
check_true "another program replaces ours" put_theirs
check_true "noticed" wait_for 5 is replaced
probe "nothing is limited" 10.1.1.3 100 100
check_true "status names the other program" grep -q "replaced by '\|already ('" \
	<(ctl -o json status | jq -r '.interfaces[0].error')
check_true "attach does not report success" sh -c "! '$BIN/sluicectl' -s '$SOCKET' attach s0 2> '$LAB/attach'"
check_true "it reports why" grep -q "already" "$LAB/attach"
check_true "a reload of the rules is still accepted" ctl reload
xdp_off
check_true "the other program is removed: ours is attached" wait_for 5 is native
probe "limited" 10.1.1.3 20 20

config "on_removed: replace"
check_true "reload" ctl reload
put_theirs
check_true "on_removed: replace: noticed" wait_for 5 lost replaced 2
check_true "replaced in turn" wait_for 5 is native
probe "limited" 10.1.1.4 20 20

config "on_removed: alarm"
check_true "reload" ctl reload
xdp_off
check_true "on_removed: alarm: noticed" wait_for 5 is removed
check_true "in the log" grep -q 's0: its XDP program was taken off: NOTHING IS LIMITED' "$LAB/daemon.log"
probe "left as it is" 10.1.1.5 100 100
check_is "state after that" "$(state)" removed
check_true "attach" ctl attach s0
check_is "attach restores the program" "$(state)" native
probe "limited" 10.1.1.5 20 20

# ---- pins removed under the daemon
config
check_true "reload" ctl reload
rm -r "$PIN"
pins_are_back() {
	[ "$(metric sluice_pins_lost_total)" = 1 ] && [ -e "$PIN/table" ] && [ -e "$PIN/rules_now" ]
}
check_true "pins removed: created again" wait_for 5 pins_are_back
daemon_kill KILL
probe "limits outlive the daemon" 10.1.1.6 20 20
daemon_run
probe "and the next one took them over" 10.1.1.6 0 0

# ---- pins removed with no daemon running
daemon_kill TERM
rm -r "$PIN"
passes_all() {
	local seen

	seen=$(arrived)
	blast "$LAB/probe" --src 10.1.1.7 --dst $SERVER4 --count 100 --pps 20000
	settle s0
	[ $(($(arrived) - seen)) = 100 ]
}
daemon_run
check_is "pins removed before the start: it attaches" "$(state)" native
probe "in place of the orphaned stub" 10.1.1.7 20 20
check_is "programs on s0" "$(programs_left)" 1

daemon_kill KILL
rm -r "$PIN"
check_true "--purge beside an orphaned stub" on_server "$BIN/sluiced" -c "$CONFIG" --purge
check_is "programs on s0" "$(programs_left)" 0
check_is "filters on s0" "$(ip netns exec "$NS_S" tc filter show dev s0 ingress | grep -c sluice)" 0

daemon_run
daemon_kill KILL
rm -r "$PIN"
check_true "the orphaned stub passes everything in the end" wait_for 10 passes_all
check_true "--purge, later" on_server "$BIN/sluiced" -c "$CONFIG" --purge
check_is "programs on s0" "$(programs_left)" 0

# ---- their file system unmounted
mkdir "$LAB/bpf"
mount -t bpf bpf "$LAB/bpf" || exit 1
PIN=$LAB/bpf/sluice
config
daemon_run
umount -l "$LAB/bpf"
no_pins() {
	[ "$(metric sluice_pins_present)" = 0 ]
}
check_true "unmounted: noticed" wait_for 5 no_pins
check_is "doctor says what mends it" "$(ctl doctor -o json | jq -r '.checks[] | select(.check == "pins") |
	"\(.level): \(.found), \(.mend)"')" "bad: the pins are gone: limits end with the daemon, systemctl restart sluiced"
probe "limits hold" 10.1.1.8 20 20
daemon_kill TERM
mount -t bpf bpf "$LAB/bpf" || exit 1
daemon_run
check_is "the next start attaches" "$(state)" native
probe "and limits" 10.1.1.9 20 20
check_is "programs on s0" "$(programs_left)" 1
daemon_kill TERM
check_true "--purge" on_server "$BIN/sluiced" -c "$CONFIG" --purge
umount -l "$LAB/bpf"
PIN=/sys/fs/bpf/$LAB_ID
lab_done
