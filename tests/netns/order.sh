#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# order.sh - each adjacent pair of steps of the order: 1 ARP and neighbour discovery, 3 exempt,
# 4 failsafe ports, 5 block, 7 limits. For every pair a source that meets both, where the earlier
# step must decide, and one that meets only the later. (2, login sessions, and 6, bans and
# push-downs, have no rules here.)
#
# Each probe is a number of frames; the receiver's count and the reason's counter must both be
# exact, so a step that decides by chance is found.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin order
lab_link 0

# Bucket sizes are exact here: a rate of one packet a minute passes its burst and no more.
daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
essential: {rate: 100 packets/s}
failsafe: [22/tcp]
failsafe_rate: 50 connections/s
exempt: [10.1.3.0/24, 10.1.35.0/24, '2001:db8:3::/48']
block: [10.1.5.0/24, 10.1.35.0/24, 8.0.0.0/7, 12.0.0.0/8, '2001:db8:5::/48', '3000::/15', '3100::/16']
limits:
  - {name: all, rate: 1 packets/m, burst: 10}
YAML

# probe WORDS COUNT LEAST MOST REASON VERDICT OPTIONS...: COUNT frames, of which LEAST..MOST
# arrive, and as many more are counted under reason and verdict as WANT states: those that arrived for
# verdict pass, the missing ones for drop.
probe() {
	local words=$1 count=$2 least=$3 most=$4 reason=$5 verdict=$6 seen before sent arrived

	shift 6
	seen=$(rx_passed)
	before=$(metric sluice_packets_total reason="$reason" verdict="$verdict")
	blast "$LAB/probe" --count "$count" --dst $SERVER4 "$@"
	settle s0
	sent=$(field "$LAB/probe" sent)
	arrived=$(($(rx_passed) - seen))
	check "$words: arrived of $sent" "$arrived" "$least" "$most"
	[ "$verdict" = pass ] || arrived=$((sent - arrived))
	check_is "$words: counted as $reason, $verdict" \
		$(($(metric sluice_packets_total reason="$reason" verdict="$verdict") - before)) "$arrived"
}

# Our frames that passed XDP: all of them, ARP too, carry the client's address.
rx_passed() {
	on_server nft -j list counter netdev seen passed | jq '.nftables[] | .counter? // empty | .packets'
}
on_server nft -f - <<NFT
table netdev seen {
	counter passed {}
	chain in {
		type filter hook ingress device s0 priority 0;
		ether saddr $MAC_C counter name passed drop
	}
}
NFT

ND="--proto icmp6 --icmp 135 --dst $SERVER6 --length 86"
SSH="--proto tcp --dport 22 --flags 2"

# ---- 7 alone: the limit works
probe "7 limits: over its limit" 50 10 10 over drop --src 10.1.7.1
probe "7 limits: within it" 10 10 10 within pass --src 10.1.7.2

# ---- 5 before 7
probe "5|7: blocked, and within its limit" 5 0 0 block drop --src 10.1.5.1
probe "5|7: beside the block" 5 5 5 within pass --src 10.1.6.1
probe "5|7: blocked, IPv6" 5 0 0 block drop --src 2001:db8:5::1 --dst $SERVER6
probe "5|7: beside the block, IPv6" 5 5 5 within pass --src 2001:db8:6::1 --dst $SERVER6
probe "5|7: an odd protocol is blocked as well" 5 0 0 block drop --src 10.1.5.1 --proto 99
probe "5|7: a truncated packet is blocked as well" 5 0 0 block drop --src 10.1.5.1 --truncate 36
probe "5|7: a later fragment is blocked as well" 5 0 0 block drop --src 10.1.5.1 --fragment later

# ---- 4 before 5: only blocks wider than /8 (IPv4) or /16 (IPv6) are escaped
probe "4|5: failsafe port, in a /7 block" 5 5 5 failsafe pass --src 9.1.1.1 $SSH
probe "4|5: another port, in a /7 block" 5 0 0 block drop --src 9.1.1.1 --proto tcp --dport 23
probe "4|5: failsafe port, in a /8 block" 5 0 0 block drop --src 12.1.1.1 $SSH
probe "4|5: failsafe port, in a /24 block" 5 0 0 block drop --src 10.1.5.2 $SSH
probe "4|5: failsafe port of another host, in a /7 block" 5 0 0 block drop --src 9.1.1.2 $SSH \
	--dst 10.99.99.99
probe "4|5: failsafe port, in a /15 block" 5 5 5 failsafe pass --src 3001::1 --dst $SERVER6 $SSH --length 74
probe "4|5: failsafe port, in a /16 block" 5 0 0 block drop --src 3100::1 --dst $SERVER6 $SSH --length 74

# ---- 4 before 7: the limit of 10 does not hold, failsafe_rate does, for new connections
probe "4|7: failsafe port, over the limit" 40 40 40 failsafe pass --src 10.1.7.4 $SSH
probe "4|7: failsafe port, over failsafe_rate" 500 50 60 failsafe_over drop --src 10.1.7.5 $SSH
probe "4|7: UDP on that port is no failsafe" 50 10 10 over drop --src 10.1.7.6 --dport 22
probe "4|7: the port of another host is limited" 50 10 10 over drop --src 10.1.7.7 $SSH --dst 10.99.99.99

# ---- 3 before 4, 5 and 7
probe "3|4: exempt, over failsafe_rate" 500 500 500 exempt pass --src 10.1.3.1 $SSH
probe "3|5: exempt and blocked" 50 50 50 exempt pass --src 10.1.35.1
probe "3|7: exempt, over the limit" 50 50 50 exempt pass --src 10.1.3.2
probe "3|7: exempt, over the limit, IPv6" 50 50 50 exempt pass --src 2001:db8:3::1 --dst $SERVER6
probe "3|7: beside the exemption" 50 10 10 over drop --src 10.1.4.2

# ---- 1 before 3, 5 and 7
probe "1|5: genuine neighbour discovery from a blocked source" 5 5 5 nd pass \
	--src 2001:db8:5::2 --ttl 255 $ND
probe "1|5: neighbour discovery with hop limit 64 from a blocked source" 5 0 0 block drop \
	--src 2001:db8:5::2 --ttl 64 $ND
probe "1|5: with code 1 from a blocked source" 5 0 0 block drop \
	--src 2001:db8:5::2 --ttl 255 $ND --icmp 135,1
probe "1|5: with a fragment header from a blocked source" 5 0 0 block drop \
	--src 2001:db8:5::2 --ttl 255 $ND --ext 44 --length 94
probe "1|5: an echo request with hop limit 255 from a blocked source" 5 0 0 block drop \
	--src 2001:db8:5::2 --ttl 255 $ND --icmp 128
probe "1|7: genuine neighbour discovery over the limit" 50 50 50 nd pass \
	--src 2001:db8:7:1::1 --ttl 255 $ND
probe "1|7: with hop limit 64 it is limited" 50 10 10 over drop \
	--src 2001:db8:7:2::1 --ttl 64 $ND
probe "1|3: neighbour discovery of an exempt source is step 1's" 5 5 5 nd pass \
	--src 2001:db8:3::2 --ttl 255 $ND
probe "1|3: and held by essential" 1000 100 130 essential_over drop \
	--src 2001:db8:3:1::2 --ttl 255 $ND
probe "1|5: ARP from a blocked source" 5 5 5 arp pass --proto arp --src 10.1.5.9
probe "1|7: ARP, over the limit" 50 50 50 arp pass --proto arp --src 10.1.7.9
probe "1: ARP, over essential" 1000 100 130 essential_over drop --proto arp --src 10.1.7.10
lab_done
