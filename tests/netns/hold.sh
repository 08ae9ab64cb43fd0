#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# hold.sh - a limit holds, and refuses no more than it must: token bucket and fixed window, packets
# and bytes, IPv4 and IPv6, plain and QinQ, both accountings, all at the same time for 10 s.
#
# Each of the 32 limits has an offender that sends ten times its rate and a neighbour in the
# same limit that sends 0.6 of it. Of the offender [0.99, 1.00] of rate x time + burst passes
# (of a window: rate x the windows met), of the neighbour everything. Untagged offenders are spread over two
# receive queues on two CPUs, tagged ones come by one: veth puts a frame into the queue of the sender's CPU.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin hold
lab_link 0 2

SECONDS_SENT=10
PACKETS_RATE=400 PACKETS_BURST=800
BYTES_RATE=400000 BYTES_BURST=800000 BYTES_FRAME=1000

# Sets the variables of case I (0..31).
case_of() {
	local i=$1

	ALGORITHM=token-bucket UNIT=packets FAMILY=4 TAGGED=plain ACCOUNTING=percpu
	[ $((i & 1)) = 0 ] || ALGORITHM=fixed-window
	[ $((i & 2)) = 0 ] || UNIT=bytes
	[ $((i & 4)) = 0 ] || FAMILY=6
	[ $((i & 8)) = 0 ] || TAGGED=qinq
	[ $((i & 16)) = 0 ] || ACCOUNTING=exact
	NAME=$ALGORITHM-$UNIT-ipv$FAMILY-$TAGGED-$ACCOUNTING
	TAGS=()
	[ $TAGGED = plain ] || TAGS=(--tag 0x88a8:100 --tag 0x8100:$((200 + i)))
	if [ $FAMILY = 4 ]; then
		SRC_NET=10.1.$((100 + i)).0/24
		OFFENDER=10.1.$((100 + i)).2 NEIGHBOUR=10.1.$((100 + i)).3 DST=$SERVER4
	else
		SRC_NET=2001:db8:$((100 + i))::/48
		OFFENDER=2001:db8:$((100 + i)):1::2 NEIGHBOUR=2001:db8:$((100 + i)):2::2 DST=$SERVER6
	fi
	RATE=$PACKETS_RATE BURST=$PACKETS_BURST FRAME=100 PPS=$PACKETS_RATE
	if [ $UNIT = bytes ]; then
		RATE=$BYTES_RATE BURST=$BYTES_BURST FRAME=$BYTES_FRAME
		PPS=$((BYTES_RATE / BYTES_FRAME))
	fi
}

yaml() {
	local i

	echo "interfaces: [{name: s0, mode: native}]"
	echo "limits:"
	for i in $(seq 0 31); do
		case_of "$i"
		echo "  - name: $NAME"
		echo "    match: {src: '$SRC_NET'}"
		echo "    rate: $RATE $UNIT/s"
		[ $ALGORITHM = fixed-window ] || echo "    burst: $BURST"
		echo "    algorithm: $ALGORITHM"
		echo "    accounting: $ACCOUNTING"
	done
}

daemon_start < <(yaml)
check_is "attached" "$(metric sluice_interface_info interface=s0 mode=native)" 1
sink_start s0

queue_packets() {
	on_server ethtool -S s0 | awk -v key="rx_queue_$1_xdp_packets:" '$1 == key { print $2 }'
}
before0=$(queue_packets 0)
before1=$(queue_packets 1)
at=$(mid_second)
for i in $(seq 0 31); do
	case_of "$i"
	common=(--at "$at" --time $SECONDS_SENT --dst $DST --length $FRAME "${TAGS[@]}")
	if [ $TAGGED = plain ] && [ "$(nproc)" -gt 1 ]; then
		for cpu in 0 1; do
			blast_bg "$LAB/offender.$i.$cpu" --src $OFFENDER --pps $((PPS * 5)) --cpu $cpu "${common[@]}"
		done
	else
		blast_bg "$LAB/offender.$i.0" --src $OFFENDER --pps $((PPS * 10)) --cpu $((i & 1)) "${common[@]}"
	fi
	blast_bg "$LAB/neighbour.$i" --src $NEIGHBOUR --pps $((PPS * 6 / 10)) "${common[@]}"
done
blast_wait
sink_stop s0

# Each of the 16 limits sends half of ten times the 400 packets of its rate, and of bytes as many frames, by each.
for queue in 0 1; do
	before=before$queue
	[ "$(nproc)" = 1 ] || check "packets of queue $queue" $(($(queue_packets $queue) - ${!before})) \
		$((16 * PACKETS_RATE * 5 * SECONDS_SENT * 9 / 10)) $((32 * PACKETS_RATE * 11 * SECONDS_SENT))
done
check_is "frames that the ring dropped" "$(ring_drops s0)" 0
metrics > "$LAB/metrics"
metrics() {
	cat "$LAB/metrics"
}
for i in $(seq 0 31); do
	case_of "$i"
	read -r start end sent < <(cat "$LAB/offender.$i".? | jq -rs '"\(map(.start) | min) \(map(.end) | max) \(map(.sent) | add)"')
	got=$(passed s0 $OFFENDER)
	[ $UNIT = packets ] && value=${got% *} || value=${got#* }
	if [ $ALGORITHM = token-bucket ]; then
		# To the last frame that passed: the stamp is after the decision.
		times=$(pass_times s0 $OFFENDER)
		most=$(calc "($end > ${times#* } ? $end : ${times#* }) - $start")
		most=$(calc "$RATE * $most + $BURST")
		least=$(calc "0.99 * ($RATE * ($end - $start) + $BURST)")
	else
		# Started and ended within a second: one window more than seconds.
		most=$((RATE * (SECONDS_SENT + 1)))
		least=$(calc "0.99 * $most")
	fi
	check "$NAME: the offender's $UNIT" "$value" "$least" "$most"
	neighbour=$(packets_passed s0 $NEIGHBOUR)
	check_is "$NAME: the neighbour's packets" "$neighbour" "$(field "$LAB/neighbour.$i" sent)"
	check_is "$NAME: passes counted" "$(metric sluice_limit_packets_total limit=$NAME verdict=pass)" \
		$((${got% *} + neighbour))
	check_is "$NAME: drops counted" "$(metric sluice_limit_packets_total limit=$NAME verdict=drop)" \
		$((sent - ${got% *}))
done

# No window ever admitted more than its limit, and whole ones no less than 0.99 of it.
windows() {
	awk -F'\t' -v src="$1" -v offset="$2" -v bytes="$3" '
		$2 == src { w[int($1 + offset)] += bytes ? $5 : 1 }
		END { for (i in w) { if (!n++) { least = most = w[i] }
			if (w[i] < least) least = w[i]
			if (w[i] > most) most = w[i] }
			print n + 0, least + 0, most + 0 }' "$LAB/sink.s0"
}
offset=$(field "$LAB/sink.s0.json" utc_offset)
for i in $(seq 1 2 31); do
	case_of "$i"
	bytes=0
	[ $UNIT = bytes ] && bytes=1
	read -r n least most < <(windows $OFFENDER "$offset" $bytes)
	check "$NAME: windows met" "$n" $((SECONDS_SENT + 1)) $((SECONDS_SENT + 1))
	# Stamps are microseconds after decisions, but an offender uses its window up in the
	# first 100 ms: none of its packets is near the window's end.
	# A frame that does not fit into the rest of a window in bytes leaves that over.
	bound=$(calc "0.99 * $RATE - ($bytes ? $FRAME : 0)")
	check "$NAME: least in a window" "$least" "$bound" "$RATE"
	check "$NAME: most in a window" "$most" "$bound" "$RATE"
done
lab_done
