#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tunnels.sh - run by run.sh: behind each kind of interface without an Ethernet header, sockets get what its
# limits allow; kinds where XDP sees something else are refused by name (dp_find_link()).
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
for module in wireguard ip_gre ip6_gre ipip ip6_tunnel sit pppoe vrf ip_vti xfrm_interface nft_counter nft_fib_inet; do
	tests/vm/kmod.sh modprobe $module 2> /dev/null
done
. tests/lib/netns.sh
lab_begin tunnels
DAEMON_WAIT=120 # for eight programs, by an emulated CPU
lab_link 0
for end in C S; do
	in=IN_$end[@]
	"${!in}" sh -c 'for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $file; done
		for file in /proc/sys/net/ipv6/conf/*/accept_dad; do echo 0 > $file; done'
done
on_client sh -c 'echo 0 > /proc/sys/net/ipv6/conf/c0/disable_ipv6'
ip -n "$NS_C" addr add 10.1.0.2/16 dev c0
ip -n "$NS_C" addr add 2001:db8:1::2/48 dev c0 nodad

# both NAME TYPE [OPTIONS]: the two ends of a tunnel over IPv4; both6: over IPv6.
both() {
	ip -n "$NS_C" link add "$1" type "${@:2}" local 10.1.0.2 remote $SERVER4
	ip -n "$NS_S" link add "$1" type "${@:2}" local $SERVER4 remote 10.1.0.2
}
both6() {
	ip -n "$NS_C" link add "$1" type "${@:2}" local 2001:db8:1::2 remote $SERVER6
	ip -n "$NS_S" link add "$1" type "${@:2}" local $SERVER6 remote 2001:db8:1::2
}
both gre1 gre
both gre2 gre key 5 csum seq
both ipip1 ipip
both sit1 sit
both6 tnl1 ip6tnl mode any
both6 gre3 ip6gre key 4 csum seq

ip -n "$NS_C" link add wg1 type wireguard
ip -n "$NS_S" link add wg1 type wireguard
for end in c s; do
	(umask 077 && wg genkey > "$LAB/key.$end")
	wg pubkey < "$LAB/key.$end" > "$LAB/public.$end"
done
on_client wg set wg1 private-key "$LAB/key.c" listen-port 51820 peer "$(cat "$LAB/public.s")" \
	endpoint $SERVER4:51820 allowed-ips 0.0.0.0/0,::/0
on_server wg set wg1 private-key "$LAB/key.s" listen-port 51820 peer "$(cat "$LAB/public.c")" \
	endpoint 10.1.0.2:51820 allowed-ips 0.0.0.0/0,::/0

# What pppd does for PPPoE once the peers agree: a channel over session 7, a unit, IPv4 and IPv6 on.
cat > "$LAB/pppoe.py" << 'PY'
import ctypes, fcntl, os, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
session = libc.socket(24, 1, 0)
peer = struct.pack('=HI', 24, 0) + struct.pack('!H', 7) + bytes.fromhex(sys.argv[2].replace(':', ''))
peer += sys.argv[1].encode().ljust(16, b'\0')
if session < 0 or libc.connect(session, peer, len(peer)):
    sys.exit('PPPoE: ' + os.strerror(ctypes.get_errno()))
def ask(fd, request, value):
    return struct.unpack('i', fcntl.ioctl(fd, request, struct.pack('i', value)))[0]
channel, unit = os.open('/dev/ppp', os.O_RDWR), os.open('/dev/ppp', os.O_RDWR)
ask(channel, 0x40047438, ask(session, 0x80047437, 0))
ask(channel, 0x4004743a, ask(unit, 0xc004743e, 0))
for protocol in 0x21, 0x57:
    fcntl.ioctl(unit, 0x4008744b, struct.pack('ii', protocol, 0))
time.sleep(1000)
PY
"${IN_C[@]}" python3 "$LAB/pppoe.py" c0 $MAC_S &
started
"${IN_S[@]}" python3 "$LAB/pppoe.py" s0 $MAC_C &
started
there() {
	ip -n "$NS_C" link show ppp0 && ip -n "$NS_S" link show ppp0
}
check_true "PPPoE" wait_for 20 there

NAMES=(gre1 gre2 ipip1 sit1 tnl1 gre3 wg1 ppp0)
for n in "${!NAMES[@]}"; do
	name=${NAMES[$n]}
	for last in 1 8 9; do
		ip -n "$NS_C" addr add 10.2$n.0.$last/24 dev "$name"
		ip -n "$NS_C" addr add fd2$n::$last/64 dev "$name" nodad
	done
	ip -n "$NS_S" addr add 10.2$n.0.2/24 dev "$name"
	ip -n "$NS_S" addr add fd2$n::2/64 dev "$name" nodad
	ip -n "$NS_C" link set "$name" up
	ip -n "$NS_S" link set "$name" up
	interfaces+="{name: $name}, " blocked+="10.2$n.0.9, 'fd2$n::9', " exempt+="10.2$n.0.8, 'fd2$n::8', "
done

# Neighbor discovery, which SIT has, is no part of it.
daemon_start << YAML
interfaces: [$interfaces]
block: [$blocked]
exempt: [$exempt]
limits: [{name: slow, match: {proto: udp}, per: source, rate: 1 packets/h, burst: 5}]
YAML
"${IN_S[@]}" python3 -c '
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.bind(("::", 9)); print("up", flush=True)
while True: print(s.recvfrom(2048)[1][0].replace("::ffff:", ""), flush=True)' > "$LAB/socket" &
started
wait_for 20 grep -q up "$LAB/socket"
cat > "$LAB/send.py" << 'PY'
import socket, sys
for source in sys.argv[2:]:
    s = socket.socket(socket.AF_INET6 if ':' in source else socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((source, 0))
    for i in range(40):
        s.sendto(b'x' * 20, (sys.argv[1], 9))
PY
received() {
	grep -c "^$1\$" "$LAB/socket"
}
# passes NAME SERVER NET: 40 of each source, the one without a limit last.
passes() {
	on_client python3 "$LAB/send.py" "$2" "$3"9 "$3"1 "$3"8 || not_ok "$1: cannot send to $2"
	wait_for 20 eval "[ \$(received ${3}8) -ge 40 ]"
	check_is "$1: limited, blocked, neither of 40 from $3*" \
		"$(received "$3"1) $(received "$3"9) $(received "$3"8)" "5 0 40"
}
for n in "${!NAMES[@]}"; do
	name=${NAMES[$n]}
	check_is "$name" "$(ctl -o json status | jq -r ".interfaces[] | select(.name == \"$name\").state")" generic
	[ $name = sit1 ] || passes "$name" 10.2$n.0.2 10.2$n.0.
	[ $name = ipip1 ] || passes "$name" fd2$n::2 fd2$n::
	check_is "$name: packets dropped" "$(metric sluice_packets_total interface="$name" verdict=drop)" \
		$(([ $name = sit1 ] || [ $name = ipip1 ]) && echo 75 || echo 150)
done

# refused NAME WORDS TYPE [OPTIONS]
refused() {
	ip -n "$NS_S" link add "$1" type "${@:3}" || not_ok "no $1"
	ctl attach "$1" > "$LAB/refused" 2>&1
	check_true "$1 is refused: $2 ($(head -c 200 "$LAB/refused"))" grep -q "$2" "$LAB/refused"
	check_is "$1 has no program" "$(ip -n "$NS_S" link show "$1" | grep -c xdp)" 0
}
refused vrf1 'VRF device' vrf table 10
refused vti1 'type 768, kind vti' vti local $SERVER4 remote 10.1.0.2 key 3
refused xfrm1 'type 65534, kind xfrm' xfrm dev s0 if_id 7
refused gre4 'GRE interface without one remote address' gre local $SERVER4
lab_done
