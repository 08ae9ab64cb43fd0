#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# neighbors.sh - neighbor discovery by what Linux makes of it. One neighbor's flood of solicitations, or of
# what a limit per source counts, takes nothing from others of its /64 nor from the gateway. Advertisements of
# routers that are blocked, or whose type a limit drops, install no default route; others do.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin neighbors
lab_link 0
quiet() {
	nsenter --net=/run/netns/"$NS_S" sysctl -qw "$@" || exit 1
}
quiet net.ipv6.conf.s0.accept_ra=2 net.ipv6.conf.s0.autoconf=0
ip -n "$NS_S" -6 route add default via fe80::1 dev s0 metric 9999

# frame TYPE SOURCE: an advertisement of a router (134), a solicitation (135) or a hello of OSPFv3 (89,
# its protocol), in hexadecimal.
frame() {
	python3 - "$@" <<'PYTHON'
import socket, struct, sys

def address(text):
    return socket.inet_pton(socket.AF_INET6, text)

advertises = sys.argv[1] == '134'
src, dst = address(sys.argv[2]), address('ff02::1' if advertises else '2001:db8:1::1')
mac = bytes.fromhex('020000000001')
body = struct.pack('!BBHBBHII', 134, 0, 0, 64, 0, 1800, 0, 0) if advertises else \
       struct.pack('!BBHI', 135, 0, 0, 0) + dst
body += b'\x01\x01' + mac
sum = sum(struct.unpack('!%dH' % ((len(body) + 40) // 2), src + dst + struct.pack('!II', len(body), 58) + body))
sum = (sum & 0xffff) + (sum >> 16)
body = body[:2] + struct.pack('!H', ~(sum + (sum >> 16)) & 0xffff) + body[4:]
to = bytes.fromhex('333300000001' if advertises else '020000000002')
proto = 58
if sys.argv[1] == '89':
    to, dst, body, proto = bytes.fromhex('333300000005'), address('ff02::5'), bytes(36), 89
print((to + mac + b'\x86\xdd' + struct.pack('!IHBB', 6 << 28, len(body), proto, 255) + src + dst + body).hex())
PYTHON
}
# sends TYPE SOURCE COUNT
sends() {
	on_client "$TOOLS/netns/blast" --interface c0 --raw "$(frame "$1" "$2")" --pps 40 --count "$3" > "$LAB/blast"
}

daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
essential: {rate: 100 packets/s}
block: ['fe80::bad']
limits:
  - {name: redirects, match: {icmp_type: nd-redirect}, action: drop}
  - {name: per-source, rate: 100 packets/s, burst: 100}
YAML

on_server nft -f - <<NFT
table netdev seen {
	counter bad {}
	counter good {}
	counter gateway {}
	chain in {
		type filter hook ingress device s0 priority 0;
		ip6 saddr fe80::66 counter name bad
		ip6 saddr fe80::2 counter name good
		ip6 saddr fe80::1 counter name gateway
	}
}
NFT
seen() {
	nft_packets netdev seen "$1"
}
# Its first second's worth has passed.
flooded() {
	[ "$(seen bad)" -gt 100 ]
}

# ---------------------------------------------------------------- a flood of solicitations

on_client "$TOOLS/netns/blast" --interface c0 --raw "$(frame 135 fe80::66)" --pps 3000 --time 3 > "$LAB/flood" &
started
FLOOD=$!
check_true "the flood goes on" wait_for 5 flooded
sends 135 fe80::2 20
sends 135 fe80::1 20
wait $FLOOD
check "of a neighbor's flood" "$(seen bad)" 100 450
check_is "of another neighbor's" "$(seen good)" 20
check_is "of the gateway's" "$(seen gateway)" 20

# ---------------------------------------------------------------- a limit per source

on_server nft reset counters > /dev/null
on_client "$TOOLS/netns/blast" --interface c0 --raw "$(frame 89 fe80::66)" --pps 3000 --time 3 > "$LAB/flood" &
started
FLOOD=$!
check_true "the flood goes on" wait_for 5 flooded
sends 89 fe80::2 20
wait $FLOOD
check "of a neighbor's flood of OSPF" "$(seen bad)" 100 450
check_is "another neighbor's hellos" "$(seen good)" 20

# ---------------------------------------------------------------- advertisements of routers

# routes_of SOURCE: default routes that it installed.
routes_of() {
	ip -n "$NS_S" -6 route show default | grep -c "via $1 dev s0 proto ra"
}
sends 134 fe80::bad 3
sends 134 fe80::3 1
check_true "a router's advertisement installs a default route" wait_for 5 eval '[ "$(routes_of fe80::3)" = 1 ]'
check_is "a blocked one's does not" "$(routes_of fe80::bad)" 0
ctl limit set redirects match.icmp_type=nd-router-advert > /dev/null || not_ok "limit set"
sends 134 fe80::4 3
check_is "dropped by the limit that names the type" \
	"$(ctl -o json stats | jq '.limits[0].packets.drop')" 3
check_is "and no route" "$(routes_of fe80::4)" 0
check_is "that of before stays" "$(routes_of fe80::3)" 1
lab_done
