#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# survive.sh - limits outlive the daemon. Under one long flood: the daemon is killed with -9 and
# a new one started; a source is blocked for a time, the daemon killed and not restarted, and
# the block ends on time; the rule set is swapped 200 times. All the while the offender gets
# [0.99, 1.00] of its limit and its neighbour everything, and at the end every packet sent is
# counted once.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin survive
lab_link 0

RATE=1000 BURST=2000
daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
limits:
  - {name: percpu, match: {src: 10.1.1.0/24}, rate: $RATE packets/s, burst: $BURST}
  - {name: exact, match: {src: 10.1.2.0/24}, rate: $RATE packets/s, burst: $BURST, accounting: exact}
  - {name: window, match: {src: 10.1.3.0/24}, rate: $RATE packets/s, algorithm: fixed-window}
  - {name: swapped, match: {src: 10.1.9.0/24}, rate: 500 packets/s}
YAML
sink_start s0

n=1
for name in percpu exact window; do
	blast_bg "$LAB/$name" --src 10.1.$n.2 --dst $SERVER4 --pps $((RATE * 10)) --time 120
	blast_bg "$LAB/$name.neighbour" --src 10.1.$n.3 --dst $SERVER4 --pps 500 --time 120
	n=$((n + 1))
done
blast_bg "$LAB/blocked" --src 10.7.0.1 --dst $SERVER4 --pps 1000 --time 120

dropping() {
	[ "$(metric sluice_limit_packets_total limit=percpu verdict=drop)" -gt 5000 ]
}
check_true "the offender is limited" wait_for 10 dropping

# ---- kill -9, under traffic
daemon_kill KILL
killed=$(now)
seconds_since() {
	awk -v t="$(now)" -v from="$1" -v d="$2" 'BEGIN { exit !(t > from + d) }'
}
wait_for 10 seconds_since "$killed" 2
check_true "no daemon responds" test "$(ctl status > /dev/null 2>&1; echo $?)" = 3
before=$(awk -F'\t' '$2 == "10.1.1.2"' "$LAB/sink.s0" | wc -l)
daemon_run
dead=$(calc "$(now) - $killed")
after=$(metric sluice_limit_packets_total limit=percpu verdict=pass)
check "the new daemon's counts include the old one's and those without a daemon (for $dead s)" \
	"$after" "$before" 1e18
check_is "the attachment is the same" "$(metric sluice_interface_info interface=s0 mode=native)" 1

# ---- a block with a deadline, and no daemon
from=$(now)
ctl block add 10.7.0.1 --for 4s > /dev/null || not_ok "block add"
to=$(calc "$(now) + 0.01")
daemon_kill KILL
wait_for 10 seconds_since "$to" 5
read -r last next < <(awk -F'\t' -v from="$from" -v to="$to" '
	$2 == "10.7.0.1" && $1 < to + 1 { last = $1 }
	$2 == "10.7.0.1" && $1 > to + 1 { print last, $1; exit }' "$LAB/sink.s0")
check "the block began at once" "${last:-none}" "$(calc "$from - 0.05")" "$to"
check "and ended on time, without a daemon" "${next:-none}" "$(calc "$from + 3.99")" \
	"$(calc "$to + 4.05")"
daemon_run
check_is "the new daemon lists no block" \
	"$(ctl block list -o json | grep -c '10\.7\.0\.1')" 0

# ---- 200 rule sets
anon_kib() {
	awk '/^RssAnon/ { print $2 }' "/proc/$DAEMON_PID/status"
}
generation=$(metric sluice_rules_generation)
swapping=$(now)
for i in $(seq 100); do
	# From here on the heap has its size.
	[ "$i" != 20 ] || memory=$(anon_kib)
	ctl limit set swapped "rate=$((500 + i)) packets/s" > /dev/null &&
		ctl limit set swapped "rate=500 packets/s" > /dev/null || not_ok "swap $i"
done
swapped=$(calc "$(now) - $swapping")
check "rule sets swapped (in $swapped s)" $(($(metric sluice_rules_generation) - generation)) 200 300

# The heap varies by a rule set (1 MB) or two; one leaked in ten would be 16 MB.
check "sluiced's memory after them, KiB (after the first: $memory)" "$(anon_kib)" 1 $((memory + 4096))

# ---- orderly stop: the limit still holds
daemon_kill TERM
stopped=$(now)
check_true "and it says so" grep -q 'exiting; limits stay in force' "$LAB/daemon.log"
wait_for 10 seconds_since "$stopped" 1
blast_stop
sink_stop s0
daemon_run
check_is "frames that the ring dropped" "$(ring_drops s0)" 0

n=1
for name in percpu exact window; do
	start=$(field "$LAB/$name" start)
	end=$(field "$LAB/$name" end)
	sent=$(field "$LAB/$name" sent)
	got=$(packets_passed s0 10.1.$n.2)
	neighbour=$(packets_passed s0 10.1.$n.3)
	if [ $name = window ]; then
		# Whole windows, plus the partial ones at either end.
		offset=$(field "$LAB/sink.s0.json" utc_offset)
		windows=$(($(floor "$end + $offset") - $(floor "$start + $offset")))
		check "$name: the offender, over $(calc "$end - $start") s" "$got" \
			$((RATE * (windows - 1))) $((RATE * (windows + 1)))
		most=$(awk -F'\t' -v offset="$offset" '$2 == "10.1.3.2" { i = int($1 + offset)
			if (++w[i] > most) most = w[i] } END { print most }' "$LAB/sink.s0")
		check "$name: most in a window" "$most" $RATE $RATE
	else
		times=$(pass_times s0 10.1.$n.2)
		check "$name: the offender, over $(calc "$end - $start") s" "$got" \
			"$(calc "0.99 * ($RATE * ($end - $start) + $BURST)")" \
			"$(calc "$RATE * (($end > ${times#* } ? $end : ${times#* }) - $start) + $BURST")"
		# Over no interval more either: the log of passes, through a bucket of doubles. A
		# sender that was held up finds tokens; leases and late stamps are 1% of the burst.
		lowest=$(awk -F'\t' -v src=10.1.$n.2 -v rate=$RATE -v burst=$BURST '
			$2 == src {
				if (!seen++) lowest = tokens = burst
				else tokens += ($1 - last) * rate
				if (tokens > burst) tokens = burst
				last = $1
				if (--tokens < lowest) lowest = tokens }
			END { if (seen) printf "%.2f", lowest }' "$LAB/sink.s0")
		check "$name: fewest tokens an exact bucket had at a pass" "$lowest" \
			$((-BURST / 100)) $((BURST / 10))
	fi
	check_is "$name: the neighbour" "$neighbour" "$(field "$LAB/$name.neighbour" sent)"
	check_is "$name: passes counted" \
		"$(metric sluice_limit_packets_total limit=$name verdict=pass)" $((got + neighbour))
	check_is "$name: passes and drops are what was sent" \
		"$(metric sluice_limit_packets_total limit=$name)" $((sent + neighbour))
	n=$((n + 1))
done
lab_done
