#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# queues.sh - one source spread over two receive queues on two CPUs is held to one limit, and
# one whose packets all come by one queue gets all of it; in both accountings and algorithms.
#
# veth puts a frame into the queue of the sender's CPU and its NAPI runs there, so two pinned
# senders are two queues on two CPUs.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin queues
if [ "$(nproc)" -lt 2 ]; then
	skip "one CPU only"
	LAB_ENDED=1
	exit 0
fi
lab_link 0 2

RATE=1000 BURST=2000 SECONDS_SENT=10

# name-of-limit: last octet of the source on both queues, and of the one on one queue
cases="percpu-token-bucket percpu-fixed-window exact-token-bucket exact-fixed-window"
yaml() {
	echo "interfaces: [{name: s0, mode: native}]"
	echo "limits:"
	n=1
	for name in $cases; do
		echo "  - {name: $name, match: {src: 10.1.$n.0/24}, rate: $RATE packets/s,"
		[ "${name#*-}" = token-bucket ] && echo "     burst: $BURST,"
		echo "     algorithm: ${name#*-}, accounting: ${name%%-*}}"
		n=$((n + 1))
	done
}
daemon_start < <(yaml)
sink_start s0

queue_packets() {
	on_server ethtool -S s0 | awk -v key="rx_queue_$1_xdp_packets:" '$1 == key { print $2 }'
}
before0=$(queue_packets 0)
before1=$(queue_packets 1)

at=$(mid_second)
n=1
for name in $cases; do
	for cpu in 0 1; do
		blast_bg "$LAB/both.$name.$cpu" --src 10.1.$n.2 --dst $SERVER4 --cpu $cpu \
			--pps $((RATE * 10)) --at "$at" --time $SECONDS_SENT
	done
	# One queue: the four cases take turns at which.
	blast_bg "$LAB/one.$name" --src 10.1.$n.3 --dst $SERVER4 --cpu $((n & 1)) \
		--pps $((RATE * 10)) --at "$at" --time $SECONDS_SENT
	blast_bg "$LAB/neighbour.$name" --src 10.1.$n.4 --dst $SERVER4 --pps $((RATE * 6 / 10)) \
		--at "$at" --time $SECONDS_SENT
	n=$((n + 1))
done
blast_wait
sink_stop s0

# Both CPUs processed their half: 4 x 10 x the rate each, and the one-queue sources beside.
for queue in 0 1; do
	before=$((queue == 0 ? before0 : before1))
	check "packets of queue $queue" $(($(queue_packets $queue) - before)) \
		$((RATE * 10 * 4 * SECONDS_SENT * 9 / 10)) $((RATE * 10 * 8 * SECONDS_SENT))
done
check_is "frames that the ring dropped" "$(ring_drops s0)" 0

# bound WORDS SRC ALGORITHM START END
bound() {
	local times most least end

	if [ "$3" = token-bucket ]; then
		times=$(pass_times s0 "$2")
		end=$(calc "$5 > ${times#* } ? $5 : ${times#* }")
		most=$(calc "$RATE * ($end - $4) + $BURST")
		least=$(calc "0.99 * ($RATE * ($5 - $4) + $BURST)")
	else
		most=$((RATE * (SECONDS_SENT + 1)))
		least=$(calc "0.99 * $most")
	fi
	check "$1" "$(packets_passed s0 "$2")" "$least" "$most"
}

n=1
for name in $cases; do
	start=$(field "$LAB/both.$name.0" start)
	start1=$(field "$LAB/both.$name.1" start)
	end=$(field "$LAB/both.$name.0" end)
	end1=$(field "$LAB/both.$name.1" end)
	bound "$name: spread over two queues" 10.1.$n.2 "${name#*-}" \
		"$(calc "$start < $start1 ? $start : $start1")" "$(calc "$end > $end1 ? $end : $end1")"
	bound "$name: all by one queue" 10.1.$n.3 "${name#*-}" \
		"$(field "$LAB/one.$name" start)" "$(field "$LAB/one.$name" end)"
	check_is "$name: the neighbour's packets" "$(packets_passed s0 10.1.$n.4)" \
		"$(field "$LAB/neighbour.$name" sent)"
	n=$((n + 1))
done
lab_done
