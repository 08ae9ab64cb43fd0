#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# boot.sh - started before the network, as the unit is: READY=1, for which the network waits, comes after the
# limits of an interface that appears within a second, also while sluiced starts; without it after that second.
# An interface that comes later is limited before it is brought up. An address that comes later can be
# listened on. A reload is done that was requested while sluiced starts. (A real boot of systemd:
# boot_systemd.sh.)

. "$(dirname "$0")/../lib/netns.sh"
lab_begin boot

UNIT=$REPO/scripts/sluiced.service
check_true "the unit is ordered before the network" grep -q '^Before=network-pre.target' "$UNIT"
check_true "and starts without what comes after it" grep -q '^DefaultDependencies=no' "$UNIT"

# systemd's end of the socket: notes what was attached at READY=1.
cat > "$LAB/notified.py" <<'PY'
import socket, subprocess, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("bound", flush=True)
while b"READY=1" not in s.recv(4096).split(b"\n"):
    pass
at = time.monotonic()
links = subprocess.run(["ip", "-n", sys.argv[2], "-o", "link"], capture_output=True, text=True).stdout
print(f"{at:.3f}", " ".join(l.split(":")[1].split("@")[0].strip() for l in links.splitlines() if "xdp" in l),
      flush=True)
PY
ready_after() {
	local log=$1

	export NOTIFY_SOCKET=$LAB/$log.sock
	python3 "$LAB/notified.py" "$NOTIFY_SOCKET" "$NS_S" > "$LAB/$log" &
	started
	wait_for 5 grep -q bound "$LAB/$log"
	daemon_run
	unset NOTIFY_SOCKET
}
METRICS_LISTEN=10.1.0.1:9810
config_write "$CONFIG" <<'YAML'
interfaces: [{name: s0}, {name: s1}]
limits:
  - {name: slow, rate: 1 packets/h, burst: 20}
YAML
lab_link 1
# s0 is there under another name, and gets its own once sluiced has logged WORDS, in one call.
comes_after() {
	local words=$1

	lab_link 0
	ip -n "$NS_S" link set s0 down
	ip -n "$NS_S" link set s0 name later
	ip -n "$NS_S" link set later up
	: > "$LAB/daemon.log"
	wait_for 30 grep -q "$words" "$LAB/daemon.log" && ip -n "$NS_S" link set later down name s0 up &
}
limited_at_ready() {
	wait_for 5 grep -q '\.' "$LAB/$1"
	sed -n 's/^[0-9.]* //p' "$LAB/$1" | tr ' ' '\n' | sort | xargs
}
comes_after "s0: not there"
ready_after early
check_is "it comes while sluiced starts: READY=1 comes when both are limited" "$(limited_at_ready early)" "s0 s1"
daemon_kill TERM
ip -n "$NS_S" link del s0
comes_after "ready: "
ready_after late
check_is "... and while it waits" "$(limited_at_ready late)" "s0 s1"
check_true "an address that came later is listened on" \
	on_server curl -sf -o /dev/null http://10.1.0.1:9810/metrics
daemon_kill TERM

ip -n "$NS_S" link del s0
: > "$LAB/daemon.log"
reload_while_it_starts() {
	wait_for 30 grep -q "s0: not there" "$LAB/daemon.log" && sed -i 's/burst: 20/burst: 30/' "$CONFIG" &&
		kill -HUP $(ip netns pids "$NS_S")
}
reload_while_it_starts &
{ wait_for 60 grep -q "ready: " "$LAB/daemon.log" && now > "$LAB/started"; } &
began=$(now)
ready_after one
wait_for 5 grep -q '\.' "$LAB/one"
check_is "without one of them READY=1 comes all the same" "$(sed -n 's/^[0-9.]* //p' "$LAB/one")" s1
check_true "a file that changed after it was read: the reload that was requested is done" \
	wait_for 10 grep -q '^sluiced: reloaded ' "$LAB/daemon.log"
at=$(sed -n 's/^\([0-9.]*\) .*/\1/p' "$LAB/one")
check "a second after the start, not sooner" "$(calc "$at - $began")" 0.9 1000
check "nor much later" "$(calc "$at - $(cat "$LAB/started")")" -1 8

# Hot-plugged: attached while it is down, as udev has it before it is brought up.
ip -n "$NS_C" link add c0 address $MAC_C type veth peer name s0 address $MAC_S netns "$NS_S"
on_client sh -c 'echo 1 > /proc/sys/net/ipv6/conf/c0/disable_ipv6'
attached() {
	ip -n "$NS_S" link show s0 | grep -q xdp
}
check_true "an interface that appears is attached while it is down" wait_for 5 attached
check_is "and was not brought up" "$(ip -n "$NS_S" -o link show s0 | grep -c 'state UP')" 0
ip -n "$NS_S" addr add 10.1.0.1/16 dev s0
ip -n "$NS_C" link set c0 up
ip -n "$NS_S" link set s0 up
arrivals_count 0
blast "$LAB/sent" --dst $SERVER4 --src 10.1.1.1 --count 200 --pps 20000
settle s0
check_is "from its first frame on the limit holds" "$(arrived 0)" 30
lab_done
