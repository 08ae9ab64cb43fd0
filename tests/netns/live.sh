#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# live.sh - a rate changed during the flood holds from the next packets: 10/s -> 1000/s and
# 1000/s -> 10/s with a burst of 2000, in both accountings. In each second after the change
# passes are within 2% of the new rate (the offender's bucket is empty: no tokens to scale).
# No counter is reset and no packet is unaccounted.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin live
lab_link 0

BURST=2000 AFTER=10
cases="up-percpu up-exact down-percpu down-exact"
yaml() {
	echo "interfaces: [{name: s0, mode: native}]"
	echo "limits:"
	n=1
	for name in $cases window; do
		rate=1000
		[ "${name%-*}" = up ] && rate=10
		echo "  - {name: $name, match: {src: 10.1.$n.0/24}, rate: $rate packets/s,"
		if [ $name = window ]; then
			echo "     algorithm: fixed-window}"
		else
			echo "     burst: $BURST, accounting: ${name#*-}}"
		fi
		n=$((n + 1))
	done
	echo "  - {name: untouched, match: {src: 10.1.99.0/24}, rate: 1000 packets/s}"
}
daemon_start < <(yaml)
sink_start s0

# Floods until the end; the buckets are empty once each has passed its burst.
n=1
for name in $cases window; do
	blast_bg "$LAB/$name" --src 10.1.$n.2 --dst $SERVER4 --pps 10000 --time 60
	n=$((n + 1))
done
blast_bg "$LAB/untouched" --src 10.1.99.2 --dst $SERVER4 --pps 500 --time 60

all_empty() {
	local n

	for n in 1 2 3 4; do
		[ "$(packets_passed s0 10.1.$n.2)" -gt $BURST ] || return 1
	done
}
all_dropped_much() {
	local name

	for name in $cases; do
		[ "$(metric sluice_limit_packets_total limit=$name verdict=drop)" -gt 5000 ] || return 1
	done
}
check_true "every bucket was emptied" wait_for 20 all_empty
check_true "its source was dropped" wait_for 20 all_dropped_much

declare -A before
for name in $cases window; do
	before[$name]=$(metric sluice_limit_packets_total limit=$name)
done
declare -A changed
for name in $cases window; do
	rate=10
	[ "${name%-*}" = up ] && rate=1000
	ctl limit set $name "rate=$rate packets/s" > "$LAB/set.$name" 2>&1 ||
		not_ok "limit set $name: $(cat "$LAB/set.$name")"
	# /proc/uptime is cut to 10 ms.
	changed[$name]=$(calc "$(now) + 0.01")
done
for name in $cases window; do
	check "$name: the counters continue" "$(metric sluice_limit_packets_total limit=$name)" \
		"${before[$name]}" 1e18
done

lasted() {
	awk -v t="$(now)" -v from="${changed[window]}" -v d=$((AFTER + 2)) 'BEGIN { exit !(t > from + d) }'
}
wait_for 20 lasted
blast_stop
sink_stop s0
check_is "frames that the ring dropped" "$(ring_drops s0)" 0

# seconds SRC FROM N HALF: prints the fewest and the most in each of N seconds from FROM on, when the
# first packet came, and how many used earlier tokens. A slow stream (10/s, HALF 0.05) is one packet
# every 100 ms: seconds begin half-way between two packets, or a packet on an edge counts one
# second 9 and the next 11. Faster packets at first use tokens that the bucket had, because
# the sender had stalled.
seconds() {
	awk -F'\t' -v src="$1" -v from="$2" -v n="$3" -v half="$4" '
		$2 != src || $1 < from { next }
		!first { first = $1 }
		half && !begun {
			if (!last || $1 - last < half) { held++; last = $1; next }
			begun = 1
			from = $1 - half
		}
		{ i = int($1 - from); if (i < n) count[i]++ }
		END { least = most = count[0] + 0
			for (i = 1; i < n; i++) {
				c = count[i] + 0
				if (c < least) least = c
				if (c > most) most = c }
			printf "%d %d %.6f %d\n", least, most, first, held }' "$LAB/sink.s0"
}

n=1
for name in $cases; do
	src=10.1.$n.2
	rate=10 half=0.05
	[ "${name%-*}" = up ] && rate=1000 half=0
	read -r least most first held < <(seconds $src "${changed[$name]}" $AFTER $half)
	check "$name: fewest in a second after the change" "$least" "$(calc "$rate * 0.98")" \
		"$(calc "$rate * 1.02")"
	check "$name: most in a second after the change" "$most" "$(calc "$rate * 0.98")" \
		"$(calc "$rate * 1.02")"
	# A stalled sender's bucket held some tokens: 20 ms of them at 1000/s are 1% of the burst.
	check "$name: packets from tokens held before" "$held" 0 $((BURST * 2 / 100))
	check "$name: seconds till the first packet at the new rate" \
		"$(calc "$first - ${changed[$name]}")" 0 "$(calc "1.5 / $rate + 0.25")"
	sent=$(field "$LAB/$name" sent)
	got=$(packets_passed s0 $src)
	check_is "$name: passes counted" "$(metric sluice_limit_packets_total limit=$name verdict=pass)" "$got"
	check_is "$name: passes and drops are what was sent" \
		"$(metric sluice_limit_packets_total limit=$name)" "$sent"
	n=$((n + 1))
done

# A window that is over its new limit admits nothing more; the next ones admit the new limit.
offset=$(field "$LAB/sink.s0.json" utc_offset)
first=$(floor "${changed[window]} + $offset + 1")
read -r least most < <(awk -F'\t' -v offset="$offset" -v first="$first" '
	$2 == "10.1.5.2" { i = int($1 + offset) - first; if (i >= 0 && i < 10) w[i]++ }
	END { least = most = w[0] + 0
		for (i = 1; i < 10; i++) { c = w[i] + 0
			if (c < least) least = c
			if (c > most) most = c }
		print least, most }' "$LAB/sink.s0")
check_is "window: fewest and most in a window after the change" "$least $most" "10 10"
check_is "the unaffected neighbour" "$(packets_passed s0 10.1.99.2)" "$(field "$LAB/untouched" sent)"
check_is "limit show has the new rate" "$(ctl limit show up-exact -o json | jq -r '.. | .rate? // empty' | head -1)" \
	"1000 packets/s"
lab_done
