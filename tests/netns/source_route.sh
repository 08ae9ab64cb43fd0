#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# source_route.sh - a packet to one address of this host whose route goes on to another one, which a limit is for:
# Linux refuses it. With accept_source_route or seg6_enabled it does not, and the limit is not met: what
# packet-walk.md says of `dst`.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin source_route
lab_link 0
OTHER4=10.1.0.77 OTHER6=2001:db8:1::77
ip -n "$NS_S" addr add $OTHER4/16 dev s0
ip -n "$NS_S" addr add $OTHER6/64 dev s0 nodad
quiet() {
	nsenter --net=/run/netns/"$NS_S" sysctl -qw "$@" || exit 1
}

# frame SOURCE DESTINATION [OTHER]: a datagram to port 9, with a loose source route (RFC 791) or a segment routing
# header (RFC 8754) by way of the destination; in hexadecimal.
frame() {
	python3 - "$MAC_S" "$@" <<'PYTHON'
import ipaddress, struct, sys

to = bytes.fromhex(sys.argv[1].replace(':', ''))
src, dst, *other = (ipaddress.ip_address(text).packed for text in sys.argv[2:])

def sum16(data):
    total = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff

final = other[0] if other else dst
udp = struct.pack('!HHH', 9, 9, 8)
udp += struct.pack('!H', sum16(src + final + struct.pack('!HH', 17, 8) + udp))
if len(src) == 4:
    route = b'\x83\x07\x04' + other[0] + b'\x00' if other else b''
    head = struct.pack('!BBHHHBBH', 0x45 + len(route) // 4, 0, 28 + len(route), 0, 0, 64, 17, 0) + src + dst + route
    packet = b'\x08\x00' + head[:10] + struct.pack('!H', sum16(head)) + head[12:] + udp
else:
    route = struct.pack('!BBBBBBH', 17, 4, 4, 1, 1, 0, 0) + other[0] + dst if other else b''
    packet = b'\x86\xdd' + struct.pack('!IHBB', 6 << 28, len(route) + 8, 43 if route else 17, 64) + src + dst + route + udp
print((to + bytes.fromhex('020000000001') + packet).hex())
PYTHON
}

daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
limits:
  - {name: other, match: {dst: [$OTHER4, $OTHER6], proto: udp}, rate: 1 packets/h, burst: 1}
YAML
# A byte for each datagram at the other addresses.
on_server python3 -c 'if 1:
	import select, socket, sys
	sockets = [socket.socket(family, socket.SOCK_DGRAM) for family in (socket.AF_INET, socket.AF_INET6)]
	for s, address in zip(sockets, sys.argv[2:]):
		s.bind((address, 9))
	got = open(sys.argv[1], "wb", 0)
	while True:
		for s in select.select(sockets, [], [])[0]:
			s.recv(100)
			got.write(b".")' "$LAB/got" $OTHER4 $OTHER6 &
started
SERVER=$!
disown
check_true "a server" wait_for 5 test -e "$LAB/got"
# The server waits for more, and its sockets are empty.
all_read() {
	grep -q '^State:.S' "/proc/$SERVER/status" && [ "$(on_server ss -Huan | awk '{ n += $2 } END { print n + 0 }')" = 0 ]
}
# arrive SOURCE DESTINATION [OTHER]: how many of 20 the other address gets.
arrive() {
	local before

	before=$(wc -c < "$LAB/got")
	on_client "$TOOLS/netns/blast" --interface c0 --raw "$(frame "$@")" --pps 100 --count 20 > "$LAB/blast"
	settle s0
	wait_for 5 all_read
	echo $(($(wc -c < "$LAB/got") - before))
}

check_is "IPv4, straight: the limit holds" "$(arrive 10.1.0.9 $OTHER4)" 1
check_is "IPv6" "$(arrive 2001:db8:1:1::9 $OTHER6)" 1
check_is "IPv4 with a source route: Linux refuses it" "$(arrive 10.1.0.9 $SERVER4 $OTHER4)" 0
check_is "IPv6 with segments" "$(arrive 2001:db8:1:1::9 "$SERVER6" $OTHER6)" 0
quiet net.ipv4.conf.all.accept_source_route=1 net.ipv4.conf.s0.accept_source_route=1
quiet net.ipv6.conf.all.seg6_enabled=1 net.ipv6.conf.s0.seg6_enabled=1
check_is "with accept_source_route it delivers: IPv4" "$(arrive 10.1.0.9 $SERVER4 $OTHER4)" 20
check_is "with seg6_enabled: IPv6" "$(arrive 2001:db8:1:1::9 "$SERVER6" $OTHER6)" 20
lab_done
