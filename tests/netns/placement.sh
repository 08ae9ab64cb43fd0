#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# placement.sh - docs/operations.md, "On which interface": a published port of a container is judged on the
# uplink before DNAT, and on the container's veth the host sees only what the container sends; a native
# program on a veth switches its peer's TSO off; DHCP clients all send from 0.0.0.0, and the page's `pass` keeps
# them out of the limit per source.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin placement
lab_link 0
NS_BOX=$LAB_ID-box
trap 'ip netns del "$NS_BOX" 2> /dev/null; lab_end' EXIT
ip netns add "$NS_BOX" || exit 1

# A container as Docker makes one: a veth into its namespace, and DNAT from a port of this host.
ip -n "$NS_S" link add box type veth peer name eth0 netns "$NS_BOX"
ip -n "$NS_S" addr add 172.30.0.1/24 dev box
ip -n "$NS_S" link set box up
ip -n "$NS_BOX" addr add 172.30.0.2/24 dev eth0
ip -n "$NS_BOX" link set eth0 up
ip -n "$NS_BOX" route add default via 172.30.0.1
on_server sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0
on_server nft -f - <<'NFT'
table ip nat {
	chain pre {
		type nat hook prerouting priority dstnat;
		iifname "s0" udp dport 8080 dnat to 172.30.0.2:80
	}
}
NFT
nsenter --net=/run/netns/"$NS_BOX" nft -f - <<'NFT'
table inet seen {
	counter served {}
	chain in { type filter hook input priority 0; udp dport 80 counter name served; }
}
NFT
served() {
	nsenter --net=/run/netns/"$NS_BOX" nft -j list counter inet seen served |
		jq '.nftables[] | .counter? // empty | .packets'
}

tso() {
	nsenter --net=/run/netns/"$1" ethtool -k "$2" | awk '$1 == "tcp-segmentation-offload:" { print $2 }'
}
check_is "TSO of the container's end before" "$(tso "$NS_BOX" eth0)" on

daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}, {name: box, mode: native}]
limits:
  - {name: dhcp, match: {src: 0.0.0.0, proto: udp, sport: 68, dport: 67}, action: pass}
  - {name: per-source, match: {interface: s0}, rate: 50 packets/h, burst: 50}
  - {name: published, match: {proto: udp, dport: 8080, interface: s0}, rate: 5 packets/m, burst: 5}
  - {name: inside, match: {proto: udp, dport: 80}, rate: 5 packets/m, burst: 5}
  - {name: from-container, match: {proto: udp, src: 172.30.0.2, interface: box}, rate: 1000 packets/s}
YAML
matched() {
	ctl -o json stats | jq --arg name "$1" '[.limits[] | select(.name == $name) | .packets | .pass + .drop] | add'
}

blast "$LAB/published" --src 10.1.0.2 --dst $SERVER4 --dport 8080 --count 20 --pps 1000
wait_for 5 test "$(served)" -ge 5
check_is "published port, limited on the uplink by the host's port: the container got" "$(served)" 5
check_is "a limit on the container's own port meets" "$(matched inside)" 0
check_is "on the container's veth a limit sees of what the client sends" "$(matched from-container)" 0
nsenter --net=/run/netns/"$NS_BOX" bash -c 'for i in 1 2 3; do echo x > /dev/udp/10.1.0.9/9; done'
check "and what the container sends" "$(matched from-container)" 3 3
check_is "TSO of the container's end under a native program" "$(tso "$NS_BOX" eth0)" off

arrivals_count
blast "$LAB/dhcp" --src 0.0.0.0 --dst 255.255.255.255 --sport 68 --dport 67 --count 100 --pps 5000
check_is "of 100 DISCOVERs pass, over the limit per source" "$(arrived)" 100
blast "$LAB/other" --src 0.0.0.0 --dst 255.255.255.255 --sport 69 --dport 67 --count 100 --pps 5000
check_is "of 100 packets of the same source that are no DHCP" "$(($(arrived) - 100))" 50
lab_done
