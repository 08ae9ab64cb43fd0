#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What Linux delivers was judged: frames of every kind go to a Linux stack without the limiter and
# to one behind it (tests/escape/escape.c). SLUICE_LONG=1: a million frames.
. "$(dirname "$0")/../lib/netns.sh"

lab_begin escape
NS_F=$LAB_ID-f
trap 'ip netns del "$NS_F" 2> /dev/null; lab_end' EXIT
ip netns add "$NS_F" || exit 1

# quiet NS NAME=VALUE...: switches off Linux' own limits, which are not under test.
quiet() {
	nsenter --net=/run/netns/"$1" sysctl -qw "${@:2}" || exit 1
}

# server NS CLIENT-DEV DEV
server() {
	ip -n "$NS_C" link add "$2" address $MAC_C mtu 9000 numtxqueues 1 numrxqueues 1 type veth \
		peer name "$3" address $MAC_S mtu 9000 numtxqueues 1 numrxqueues 1 netns "$1" || exit 1
	quiet "$NS_C" net.ipv6.conf."$2".disable_ipv6=1
	quiet "$1" net.ipv6.conf."$3".accept_dad=0 net.ipv6.conf."$3".accept_ra=0 \
		net.ipv4.conf.all.rp_filter=0 net.ipv4.conf."$3".rp_filter=0 \
		net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0 net.ipv4.icmp_msgs_per_sec=1000000 \
		net.ipv4.icmp_msgs_burst=1000000 net.ipv4.tcp_syncookies=0 net.core.somaxconn=1048576 \
		net.ipv4.tcp_max_syn_backlog=1048576 net.ipv4.tcp_synack_retries=0 \
		net.ipv4.ipfrag_high_thresh=1073741824 net.ipv6.ip6frag_high_thresh=1073741824 \
		net.ipv4.ipfrag_max_dist=0
	ip -n "$1" link set lo up
	ip -n "$NS_C" link set "$2" up
	ip -n "$1" link set "$3" up
	ip -n "$1" addr add 203.0.113.10/24 dev "$3"
	ip -n "$1" addr add 2001:db8:ffff::10/64 dev "$3" nodad
	ip -n "$1" neigh add 203.0.113.1 lladdr $MAC_C dev "$3" nud permanent
	ip -n "$1" neigh add 2001:db8:ffff::1 lladdr $MAC_C dev "$3" nud permanent
	ip -n "$1" route add 10.0.0.0/8 via 203.0.113.1
	ip -n "$1" route add 2001:db9::/32 via 2001:db8:ffff::1
	vlan "$1" "$3" 5 && vlan "$1" "$3v5" 7
}

# vlan NS DEV VID: a device DEVvVID, where the kernel has 802.1Q (tests/vm/vlan.sh does without fail).
vlan() {
	ip -n "$1" link add link "$2" name "$2v$3" type vlan id "$3" 2> /dev/null || return 1
	quiet "$1" net.ipv4.conf."$2v$3".rp_filter=0
	ip -n "$1" link set "$2v$3" up
}

# track NS: a rule that has connections tracked. Linux then puts fragments together before it reads on.
track() {
	nsenter --net=/run/netns/"$1" nft 'add table inet t; add chain inet t i { type filter hook input priority 0; }
		add rule inet t i ct state established,related accept' || exit 1
	quiet "$1" net.netfilter.nf_conntrack_frag6_high_thresh=1073741824
}

server "$NS_S" c0 s0
server "$NS_F" c1 s1

# Every second round with connection tracking.
rounds=2
[ "${SLUICE_LONG:-}" = 1 ] && rounds=${ESCAPE_ROUNDS:-8}
for i in $(seq "$rounds"); do
	[ "$i" = 1 ] || SLUICE_SEED=
	export SLUICE_SEED
	what="round $i"
	((i % 2)) || what+=', connections tracked'
	for ns in "$NS_S" "$NS_F"; do
		if ((i % 2)); then
			nsenter --net=/run/netns/"$ns" nft flush ruleset
		else
			track "$ns"
		fi
	done
	# Each round from other sources: the server still has connections and fragments of the last ones.
	if "$TOOLS/escape/escape" --first $((1 + (i - 1) % 12 * 80000)) --client "$NS_C" --free "$NS_F" --held "$NS_S" ${ESCAPE_ARGS:-}; then
		ok "$what: what Linux delivered was judged"
	else
		not_ok "$what: see above"
	fi
done
lab_done
