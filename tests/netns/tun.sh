#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# tun.sh - an interface without an Ethernet header: what sockets and nft count behind it is what the limits
# allow; tags, captures of drops, explain and replay read the same packets; an interface that cannot be judged
# is refused by name. tests/vm/tunnels.sh has the kinds that need modules.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin tun

on_server ip tuntap add tun0 mode tun
on_server ip addr add 172.31.0.1/16 dev tun0
on_server ip addr add fd31::1/64 dev tun0 nodad
on_server ip link set tun0 mtu 1400 up

daemon_start <<'YAML'
interfaces: [{name: tun0}]
events: {rate: 50000}
block: [172.31.9.9, 'fd31::9', 8.0.9.9]
limits:
  - {name: slow, match: {src: [172.31.1.0/24, 'fd31::1:0/112', 8.0.0.0/8, 134.221.0.0/16]}, per: source, rate: 1 packets/m, burst: 5}
  - {name: bytes, match: {src: 172.31.2.1}, rate: 1000 bytes/h, burst: 1000}
  - {name: tagged, match: {src: [172.31.3.1, 'fd31::3']}, rate: 1 packets/h, burst: 1, action: tag,
     tag: {dscp: ef, mark: 0x51}}
YAML
check_is "mode" "$(ctl -o json status | jq -r '.interfaces[0].state')" generic

# send COUNT SRC [SIZE [DSCP]]: UDP to port 9, as the program that owns the interface writes it.
cat > "$LAB/send.py" <<'PY'
import fcntl, os, socket, struct, sys
fd = os.open('/dev/net/tun', os.O_RDWR)
fcntl.ioctl(fd, 0x400454ca, struct.pack('16sH', b'tun0', 0x1001))
def checksum(data):
    s = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    while s >> 16: s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff
def packet(src, size, tos):
    data = b'x' * size
    if ':' in src:
        a = socket.inet_pton(socket.AF_INET6, src) + socket.inet_pton(socket.AF_INET6, 'fd31::1')
        u = struct.pack('!HHHH', 1234, 9, 8 + size, 0) + data
        s = checksum(a + struct.pack('!II', len(u), 17) + u + b'\0' * (size % 2))
        return struct.pack('!IHBB', 6 << 28 | tos << 20, len(u), 17, 64) + a + u[:6] + struct.pack('!H', s) + u[8:]
    a = socket.inet_aton(src) + socket.inet_aton('172.31.0.1')
    h = struct.pack('!BBHHHBB', 0x45, tos, 28 + size, 1, 0, 64, 17)
    return h + struct.pack('!H', checksum(h + a)) + a + struct.pack('!HHHH', 1234, 9, 8 + size, 0) + data
def later(src):
    h = packet(src, 20, 0)
    h = h[:6] + struct.pack('!H', 100) + h[8:10] + b'\0\0' + h[12:]
    return h[:10] + struct.pack('!H', checksum(h[:20])) + h[12:]
print('up', flush=True)
for line in sys.stdin:
    count, src, size, tos = line.split() + ['20', '0'][len(line.split()) - 2:]
    for i in range(int(count)):
        os.write(fd, later(src) if size == 'later' else packet(src, int(size), int(tos)))
    print('sent', flush=True)
PY
coproc SEND { exec "${IN_S[@]}" python3 "$LAB/send.py"; }
LAB_PIDS+=("$SEND_PID")
disown "$SEND_PID"
read -r _ <&"${SEND[0]}"
send() {
	local all
	all=$(metric sluice_packets_total interface=tun0)
	echo "$*" >&"${SEND[1]}"
	read -r _ <&"${SEND[0]}"
	wait_for 5 judged "$((all + $1))" || not_ok "not every packet of '$*' was counted"
}
judged() {
	[ "$(metric sluice_packets_total interface=tun0)" -ge "$1" ]
}
carrier() {
	on_server ip link show tun0 | grep -q LOWER_UP
}
wait_for 5 carrier

on_server nft -f - <<'NFT'
table inet seen {
	counter ef {}
	counter mark51 {}
	chain pre {
		type filter hook prerouting priority raw;
		iifname != "tun0" accept
		meta mark 0x51 counter name mark51
		ip dscp ef counter name ef
		ip6 dscp ef counter name ef
	}
}
NFT
"${IN_S[@]}" python3 -c '
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.bind(("::", 9)); print("up", flush=True)
while True: print(s.recvfrom(2048)[1][0].replace("::ffff:", ""), flush=True)' > "$LAB/socket" &
started
disown
wait_for 5 grep -q up "$LAB/socket"
on_server sh -c 'echo 0 > /proc/sys/net/ipv4/conf/tun0/rp_filter; echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter'
on_server ip route add 8.0.0.0/8 dev tun0
on_server ip route add 134.221.0.0/16 dev tun0

# received SRC: datagrams that a socket has of it.
received() {
	grep -c "^$1\$" "$LAB/socket"
}
# expect WORDS SRC LEAST MOST
expect() {
	wait_for 2 eval "[ \$(received $2) -ge $3 ]"
	check "$1: $2" "$(received "$2")" "$3" "$4"
}
send 100 172.31.1.1; expect "a limit per source" 172.31.1.1 5 5
send 100 172.31.1.2; expect "another source has its own" 172.31.1.2 5 5
send 100 fd31::1:1; expect "IPv6" fd31::1:1 5 5
send 100 172.31.9.9; expect "blocked" 172.31.9.9 0 0
send 100 fd31::9; expect "blocked" fd31::9 0 0
# As an EtherType, the first two bytes of these sources say IPv4 and IPv6.
send 100 8.0.9.9; expect "blocked" 8.0.9.9 0 0
send 100 8.0.1.1; expect "limited" 8.0.1.1 5 5
send 100 134.221.1.1; expect "limited" 134.221.1.1 5 5
send 50 172.31.8.8; expect "in no limit" 172.31.8.8 50 50
send 100 172.31.2.1 72 0; expect "bytes are the packet's: 10 of 100" 172.31.2.1 10 10
send 10 172.31.1.1 later 0
check_is "of a later fragment without a first, none passes a spent limit" \
	"$(ctl -o json explain 172.31.1.1 --fragment later | jq -r '.verdict.reason')" over

# ---- tags: the kernel looks into the first 14 bytes for what the program changed
send 20 172.31.3.1 20 1; expect "tagged packets arrive" 172.31.3.1 20 20
check_is "with their DSCP" "$(nft_packets inet seen ef)" 19
send 20 fd31::3 20 1; expect "tagged packets arrive" fd31::3 20 20
check_is "IPv6 without it" "$(nft_packets inet seen ef)" 19
check_is "which is counted" "$(metric sluice_map_errors_total map=packet op=store)" 19
check_is "and with their mark" "$(nft_packets inet seen mark51)" 38

# ---- what commands say of it
explained() {
	ctl -o json explain "$@" --interface tun0 | jq -r '[.verdict.action, .verdict.reason, .verdict.limit // empty] | join(" ")'
}
check_is "explain: refused" "$(explained 172.31.1.1)" "drop over slow"
check_is "explain: blocked" "$(explained fd31::9)" "drop block"
check_is "explain: passes" "$(explained 172.31.1.77 --proto udp)" "pass within"
check_is "explain: no tag there" "$(ctl explain 172.31.1.1 --interface tun0 --vlan 5 2>&1 | grep -c 'no Ethernet header')" 1

ctl events --pcap "$LAB/drops.pcap" --last 1000 --count 200 || not_ok "events --pcap"
drops_of() {
	tcpdump -nn -r "$LAB/drops.pcap" "src $1 and udp dst port 9" 2> /dev/null | wc -l
}
check_is "tcpdump reads drops" "$(drops_of 172.31.1.1)" 95
check_is "IPv6, too" "$(drops_of fd31::1:1)" 10

# ---- replay: raw IP, by the same code and lengths
check_true "detach" ctl detach tun0
"${IN_S[@]}" tcpdump -i tun0 -Q in -nn -U -s 128 -B 16384 --immediate-mode -w "$LAB/raw.pcap" udp 2> "$LAB/tcpdump.log" &
started
disown
wait_for 5 grep -q 'listening on' "$LAB/tcpdump.log"
for of in 172.31.1.9 fd31::1:9 172.31.9.9 '172.31.2.1 72 0'; do
	echo "30 $of" >&"${SEND[1]}"
	read -r _ <&"${SEND[0]}"
done
expect "detached" 172.31.1.9 30 30
captured() {
	[ "$(tcpdump -nn -r "$LAB/raw.pcap" 2> /dev/null | wc -l)" = 120 ]
}
wait_for 5 captured
check_is "replay of a raw capture" "$("$BIN/sluicectl" replay "$LAB/raw.pcap" -c "$CONFIG" -o json |
	jq -c '[.totals.passed, .totals.refused, .bytes]')" "[20,100,$((60 * 48 + 30 * 68 + 30 * 100))]"

# ---- what cannot be judged is refused by name
on_server ip link add gpe0 type vxlan gpe external dstport 4790
ctl attach gpe0 > "$LAB/refused" 2>&1
check_is "attach: refused" "$(grep -c 'gpe0 (type 65534, kind vxlan) is an interface that sluice cannot judge' "$LAB/refused")" 1
check_is "no program is there" "$(on_server ip link show gpe0 | grep -c xdp)" 0
on_server ip link add vx0 type vxlan id 5 dstport 4789 remote 172.31.0.9
check_true "an Ethernet interface of the same kind is not" ctl attach vx0
lab_done
