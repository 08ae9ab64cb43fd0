#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# tag.sh - packets above the rate of a limit with action tag arrive with the DSCP of the rule
# and a good IPv4 checksum (tcpdump on the receiver agrees), an nft rule on the mark counts
# the same number, and neighbours, which are below it or in another limit, are unchanged.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin tag
lab_link 0

daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
limits:
  - {name: tagged, match: {src: [10.1.1.0/24, '2001:db8:70::/48']}, rate: 100 packets/s, burst: 100,
     action: tag, tag: {dscp: cs1, mark: 0x51}}
  - {name: dscp-only, match: {src: 10.1.2.0/24}, rate: 100 packets/s, action: tag, tag: {dscp: ef}}
  - {name: mark-only, match: {src: 10.1.3.0/24}, rate: 100 packets/s, action: tag, tag: {mark: 0x52}}
YAML
CS1=8 EF=46 AF21=18

on_server nft -f - <<'NFT'
table inet seen {
	counter mark51 {}
	counter mark52 {}
	counter unmarked {}
	counter other {}
	chain pre {
		type filter hook prerouting priority raw;
		iifname != "s0" accept
		udp dport != 9 accept
		meta mark 0x51 counter name mark51 drop
		meta mark 0x52 counter name mark52 drop
		meta mark 0 counter name unmarked drop
		counter name other drop
	}
}
NFT
seen() {
	nft_packets inet seen "$1"
}

sink_start s0
"${IN_S[@]}" tcpdump -i s0 -nn -U -s 128 -B 16384 --immediate-mode -w "$LAB/pcap" udp 2> "$LAB/tcpdump.log" &
started
TCPDUMP=$!
wait_for 5 grep -q 'listening on' "$LAB/tcpdump.log" || not_ok "tcpdump does not start"

# Frames come with a DSCP of their own: only a tagged one loses it.
send() {
	blast_bg "$LAB/$1" --dst $SERVER4 --length 100 --time 3 --dscp $AF21 "${@:2}"
}
send v4 --src 10.1.1.2 --pps 1000
send v6 --src 2001:db8:70:1::2 --dst $SERVER6 --pps 1000
send options --src 10.1.1.4 --pps 1000 --ip-options 3
send below --src 10.1.1.3 --pps 60
send dscp --src 10.1.2.2 --pps 1000
send mark --src 10.1.3.2 --pps 1000
send other --src 10.1.9.2 --pps 1000
blast_wait
sink_stop s0
# tcpdump is killed in an instant: first it must have written all that the sink recorded.
pcap_whole() {
	[ "$(tcpdump -nn -r "$LAB/pcap" udp 2> /dev/null | wc -l)" = "$(field "$LAB/sink.s0.json" packets)" ]
}
check_true "tcpdump has every frame of the sink" wait_for 5 pcap_whole
kill -TERM $TCPDUMP
wait $TCPDUMP

# with_dscp SRC DSCP
with_dscp() {
	awk -F'\t' -v src="$1" -v dscp="$2" '$2 == src && $7 == dscp { n++ } END { print n + 0 }' \
		"$LAB/sink.s0"
}
sent() {
	field "$LAB/$1" sent
}

# Nothing is dropped: [0.99, 1.00] of rate x time + burst untagged, the rest tagged.
expect_tagged() {
	local name=$1 src=$2 dscp=$3 tagged untagged

	tagged=$(with_dscp "$src" $dscp)
	untagged=$(with_dscp "$src" $AF21)
	check "$name: untagged up to the limit" "$untagged" 396 401
	check_is "$name: tagged and untagged are what was sent" $((tagged + untagged)) "$(sent "$name")"
}
expect_tagged v4 10.1.1.2 $CS1
expect_tagged v6 2001:db8:70:1::2 $CS1
expect_tagged options 10.1.1.4 $CS1
expect_tagged dscp 10.1.2.2 $EF
check_is "below its limit: unchanged" "$(with_dscp 10.1.1.3 $AF21)" "$(sent below)"
check_is "in no limit: unchanged" "$(with_dscp 10.1.9.2 $AF21)" "$(sent other)"
check_is "mark only: the DSCP is unchanged" "$(with_dscp 10.1.3.2 $AF21)" "$(sent mark)"
check_is "IPv4 frames with a bad checksum" "$(awk -F'\t' '$8 == "bad"' "$LAB/sink.s0" | wc -l)" 0

# tcpdump has its own code for checksum and DSCP (tos 0x20 is CS1).
tcpdump -nn -v -r "$LAB/pcap" 'ip src 10.1.1.2' 2> /dev/null > "$LAB/tcpdump"
check_is "tcpdump: bad checksums" "$(grep -c 'bad cksum' "$LAB/tcpdump")" 0
check_is "tcpdump: frames with tos 0x20" "$(grep -c 'tos 0x20' "$LAB/tcpdump")" \
	"$(with_dscp 10.1.1.2 $CS1)"
check_is "tcpdump: IPv6 frames of class 0x20" \
	"$(tcpdump -nn -v -r "$LAB/pcap" 'ip6 src 2001:db8:70:1::2' 2> /dev/null | grep -c 'class 0x20')" \
	"$(with_dscp 2001:db8:70:1::2 $CS1)"

tagged=$(($(with_dscp 10.1.1.2 $CS1) + $(with_dscp 2001:db8:70:1::2 $CS1) + $(with_dscp 10.1.1.4 $CS1)))
check_is "nft: mark 0x51" "$(seen mark51)" $tagged
check_is "counted as tagged" "$(metric sluice_limit_packets_total limit=tagged verdict=tag)" $tagged
check "nft: mark 0x52" "$(seen mark52)" $(($(sent mark) - 401)) $(($(sent mark) - 396))
check_is "counted as tagged by the mark" \
	"$(metric sluice_limit_packets_total limit=mark-only verdict=tag)" "$(seen mark52)"
check_is "nft: other marks" "$(seen other)" 0
check_is "nft: every other frame unmarked" "$(seen unmarked)" \
	$(($(jq -s 'map(.sent) | add' "$LAB"/{v4,v6,options,below,dscp,mark,other}) - $(seen mark51) - $(seen mark52)))
lab_done
