#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# sweep.sh - a sweep over the destinations of a /64 is charged to one bucket with dst_prefix, and is
# limited; without it each destination has a bucket. A neighbouring /64 has its own.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin sweep
lab_link 0

# A rate of one packet an hour passes its burst and no more.
daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
limits:
  - {name: grouped, match: {dport: 1000}, per: [dst], dst_prefix: {ipv6: 64}, rate: 1 packets/h, burst: 100}
  - {name: each, match: {dport: 2000}, per: [dst], rate: 1 packets/h, burst: 100}
YAML

# sweep NETWORK PORT COUNT: a frame to each of COUNT addresses of a /64, all over it.
sweep() {
	on_client python3 - "$@" <<PY
import ipaddress, socket, struct, sys
network = int(ipaddress.IPv6Address(sys.argv[1]))
mac = bytes.fromhex("$MAC_S$MAC_C".replace(":", "")) + b"\x86\xdd"
src = ipaddress.IPv6Address("2001:db8:1::2").packed
udp = struct.pack("!4H", 1, int(sys.argv[2]), 8, 0)
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("c0", 0))
for i in range(1, int(sys.argv[3]) + 1):
    dst = (network | i * 0x9e3779b97f4a7c15 & 2**64 - 1).to_bytes(16, "big")
    link.send(mac + struct.pack("!IHBB", 6 << 28, len(udp), 17, 64) + src + dst + udp)
PY
	settle s0
}
buckets() { metric sluice_limit_sources limit="$1" state=live; }
drops() { metric sluice_limit_packets_total limit="$1" verdict=drop; }
passes() { metric sluice_limit_packets_total limit="$1" verdict=pass; }

sweep 2001:db8:7:1:: 1000 2000
check_is "of 2000 destinations of a /64 passed" "$(passes grouped)" 100
check_is "and were dropped" "$(drops grouped)" 1900
swept() { [ "$(buckets "$1")" = "$2" ]; }
check_true "one bucket counts them" wait_for 10 swept grouped 1
sweep 2001:db8:7:2:: 1000 50
check_is "a neighbouring /64 passes" "$(passes grouped)" 150
check_true "in a bucket of its own" wait_for 10 swept grouped 2
sweep 2001:db8:7:1:: 2000 2000
check_is "without dst_prefix all pass" "$(passes each)" 2000
check_true "each in a bucket of its own" wait_for 10 swept each 2000

ctl -o json explain 2001:db8:1::2 --dst 2001:db8:7:1::99 --proto udp --dport 1000 > "$LAB/explain" ||
	not_ok "explain: $(cat "$LAB/explain")"
check_is "explain states the prefix" \
	"$(jq -r '[.. | objects | select(has("dst_prefix")).dst_prefix] | unique | join(",")' "$LAB/explain")" 64
ctl limit set grouped dst_prefix.ipv6=48 > "$LAB/set" || not_ok "limit set: $(cat "$LAB/set")"
sweep 2001:db8:7:1:: 1000 60
sweep 2001:db8:7:2:: 1000 60
check_is "of two /64 in one /48" "$(passes grouped)" 250
lab_done
