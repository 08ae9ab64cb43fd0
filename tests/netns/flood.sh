#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# flood.sh - a spoofed flood from 16 million random sources frees no offender. For token buckets of
# 1000/s and 10/s and fixed windows of 100 per second and hour:
#
#   - 1000 sources that are at their limit already pass nothing beyond limit x time;
#   - one that starts during the flood, at ten times its limit, is held to 1.1 x its limit;
#   - one that stays below half of it loses nothing;
#   - memory is constant, and evicted sources and their units are counted and shown.
#
# The table is a tenth of the default, so that a slow machine's flood overfills it many times as
# well. Half of the flood (of the bucket of 1000/s, most of it) are the 1000 sources, so that each
# is over its limit all the time. tally counts at tc ingress, per source, and drops: the cost of the
# stack is not part of this.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin flood
lab_link 0 2

OFFENDERS=1000
LATE=10.1.8.1 INNOCENT=10.1.9.1
FLOOD_SECONDS=10

# config ALGORITHM RATE BURST
config() {
	local burst="burst: $3, "

	[ "$1" = token-bucket ] || burst=
	config_write "$CONFIG" <<-YAML
	interfaces: [{name: s0, mode: native}]
	table: {buckets: 100K}
	limits:
	  - {name: sources, rate: $2, ${burst}algorithm: $1, accounting: $ACCOUNTING}
	YAML
}

snapshots=0
snapshot() {
	snapshots=$((snapshots + 1))
	kill -USR1 $TALLY
	wait_for 5 snapshot_there || not_ok "no snapshot"
}
# snapshot_at WINDOW: takes one at snapshot_utc. Of windows of a second near the end of one, when
# each offender has used it up, and not over its edge.
snapshot_at() {
	for _ in 1 2 3 4 5; do
		[ "$1" != 1 ] || wait_for 3 late_in_second
		snapshot_utc=$(utc)
		snapshot
		if [ "$1" != 1 ] || [ "${snapshot_utc%.*}" = "$(date +%s)" ]; then
			return
		fi
	done
	not_ok "no snapshot within a second"
}
snapshot_there() {
	[ "$(grep -c '\*' "$LAB/tally")" = $snapshots ]
}

# counts A B: prints lines "SRC DT PACKETS" between two snapshots.
counts() {
	awk -v a="$1" -v b="$2" '
		BEGIN { n = 1 }
		n == a { t[$2] = $1; c[$2] = $3 }
		n == b { printf "%s %.6f %d\n", $2, $1 - t[$2], $3 - c[$2] }
		$2 == "*" { n++ }' "$LAB/tally"
}

count_of() {
	counts "$1" "$2" | awk -v src="$3" '$1 == src { print $3 }'
}

utc() {
	date +%s.%N
}

# edges FROM TO WINDOW: window edges between two UTC times.
edges() {
	awk -v a="$1" -v b="$2" -v w="$3" 'BEGIN { print int(b / w) - int(a / w) }'
}

rss_kib() {
	# sluiced's own memory: the table, mapped from the kernel, is in pinned_bytes.
	awk '/^RssAnon/ { print $2 }' "/proc/$DAEMON_PID/status"
}

pinned_bytes() {
	local pin

	for pin in "$PIN"/*; do
		bpftool -j map show pinned "$pin" 2> /dev/null
	done | jq -s 'map(.bytes_memlock // 0) | add'
}

# case_run NAME ALGORITHM RATE PER_SECOND BURST WINDOW_SECONDS (0: token bucket)
case_run() {
	local name=$1 rate=$4 burst=$5 window=$6 a b first from to worst allowed least met innocent_sent
	local pps=$((rate * 10)) innocent_pps late seen rss bytes offered

	[ "$pps" -ge 100 ] || pps=100
	innocent_pps=$(floor "$rate * 0.4")
	[ "$window" -gt 1 ] && innocent_pps=8
	config "$2" "$3" "$5"
	ctl reload > "$LAB/reload" 2>&1 || not_ok "$name: reload: $(cat "$LAB/reload")"
	# A long window must not end in the middle of this.
	if [ "$window" -ge 60 ]; then
		while [ $(($(date +%s) % window)) -ge $((window - 18)) ]; do
			sleep 0.2
		done
	fi
	rss=$(rss_kib)
	bytes=$(pinned_bytes)
	# At their limit: each sends three times its burst.
	flood_bg "$LAB/prime" --src 10.1.0.0/22 --sequential $OFFENDERS --time 1.5 --cpu 1
	blast_wait
	check "$name: frames to bring each source to its limit" \
		"$(calc "$(field "$LAB/prime" sent) / $OFFENDERS")" "$((burst * 12 / 10))" 1e9

	flood_began=$(now)
	flood_bg "$LAB/flood" --src 11.0.0.0/8 --share $SHARE --share-src 10.1.0.0 \
		--share-sources $OFFENDERS --time $FLOOD_SECONDS --cpu 1
	# Buckets refilled a little between the two; by now they are empty again. Of a window of
	# a second, be near its end, when each offender has used it up.
	wait_for 5 flooded_for 2 || not_ok "$name: the flood does not start"
	snapshot_at "$window"
	from=$snapshot_utc
	a=$snapshots
	first=$a
	# A flood that stood still just before a snapshot left tokens in each bucket. Of five
	# moments, one comes after no stall: from there on, at most limit x time passes.
	while [ "$window" = 0 ] && [ $((a - first)) -lt 4 ]; do
		sleep 0.1
		snapshot
		a=$snapshots
	done
	blast_bg "$LAB/late" --src $LATE --pps $pps --dst $SERVER4 --time 4 --cpu 0
	late=$BLAST
	blast_bg "$LAB/innocent" --src $INNOCENT --pps "$innocent_pps" --dst $SERVER4 --time 4 --cpu 0
	wait "$late" "$BLAST"
	snapshot_at "$window"
	b=$snapshots
	to=$snapshot_utc
	blast_wait

	# Two more: one on its way between XDP and tc at either snapshot.
	worst=$(for start in $(seq $first $a); do
		counts "$start" $b
		echo "*"
	done | awk -v rate="$rate" -v window="$window" \
		-v windows="$(edges "$from" "$to" "$((window ? window : 1))")" \
		-v n=$OFFENDERS '
		$1 == "*" {
			if (moments++ == 0 || worst < least) {
				least = worst; all = seen; got = sum; allowed_all = sent }
			seen = sum = sent = 0
			next }
		{ split($1, q, "."); i = q[3] * 256 + q[4] }
		q[1] == 10 && i < n {
			allowed = window ? rate * windows : rate * $2
			over = $3 - allowed; seen++; sum += $3; sent += allowed
			if (seen == 1 || over > worst) worst = over }
		END { printf "%d %.3f %.0f %.0f\n", all, least, got, allowed_all }')
	read -r seen worst sum allowed <<< "$worst"
	check_is "$name: offenders watched" "$seen" $OFFENDERS
	# They were over their limits all the time, or a bucket fills up meanwhile and its burst comes
	# on top. A machine that is busy with other work floods too slowly for that.
	offered=$(jq ".sent / (.end - .start) * $SHARE * 4" "$LAB/flood")
	if awk -v o="$offered" -v a="$allowed" 'BEGIN { exit !(o < 1.2 * a) }'; then
		check "$name: the worst offender's passes beyond limit x time" "$worst" -1e9 "$burst"
		skip "$name: sources at their limit: the flood offered only $offered of 1.2 x $allowed"
	else
		check "$name: the worst offender's passes beyond limit x time" "$worst" -1e9 2
		check "$name: what the offenders got together" "$sum" "$(calc "0.9 * $allowed")" \
			"$(calc "$allowed + 2 * $OFFENDERS")"
	fi

	if [ "$window" = 0 ]; then
		allowed=$(calc "$rate * $(jq '.end - .start' "$LAB/late") + $burst")
		least=$(calc "0.95 * $allowed")
	else
		# Windows that it met: the first and the last may have been too short to use up.
		allowed=$(calc "$(date +%s.%N) - $(now)")
		met=$(($(edges "$(jq ".start + $allowed" "$LAB/late")" \
			"$(jq ".end + $allowed" "$LAB/late")" "$window") + 1))
		allowed=$((rate * met))
		least=$((rate * (met > 2 ? met - 2 : 1)))
	fi
	check "$name: the late one's passes" "$(count_of $a $b $LATE)" "$least" "$(calc "1.1 * $allowed")"
	innocent_sent=$(field "$LAB/innocent" sent)
	check_is "$name: the innocent one's passes" "$(count_of $a $b $INNOCENT)" "$innocent_sent"
	check "$name: sluiced's memory, KiB (was $rss)" "$(rss_kib)" 1 $((rss + 512))
	check_is "$name: bytes of the pinned maps" "$(pinned_bytes)" "$bytes"
	echo "# $name: flood of $(jq '(.sent / (.end - .start) / 1e6 * 100 | round) / 100' "$LAB/flood") Mpps;" \
		"evicted and forgiven $(metric sluice_table_evicted_units_total limit=sources)," \
		"full $(metric sluice_table_full_total limit=sources)"
}

# The flood is on, and for so many seconds.
flooded_for() {
	awk -v t="$(now)" -v from="$flood_began" -v d="$1" 'BEGIN { exit !(t > from + d) }'
}
late_in_second() {
	local ms

	ms=$((10#$(date +%N) / 1000000))
	[ $ms -gt 850 ] && [ $ms -lt 950 ]
}

ACCOUNTING=percpu
config token-bucket "1000 packets/s" 100
daemon_run
"${IN_S[@]}" "$TOOLS/netns/tally" s0 10.1.0.0/20 "$LAB/tally" 2> "$LAB/tally.ready" &
started
TALLY=$!
wait_for 5 grep -q ready "$LAB/tally.ready" || not_ok "tally does not start"

SHARE=0.95
case_run "bucket of 1000/s" token-bucket "1000 packets/s" 1000 100 0
SHARE=0.5
case_run "bucket of 10/s" token-bucket "10 packets/s" 10 10 0
case_run "window of 100/s" fixed-window "100 packets/s" 100 100 1
ACCOUNTING=exact
case_run "bucket of 10/s, exact" token-bucket "10 packets/s" 10 10 0
# More sources came in an hour than the table has room for: each that was
# evicted had used at least one packet of its limit.
stat_of() {
	ctl stats sources -o json | jq ".limits[0].$1"
}
evicted=$(stat_of evicted)
forgiven=$(stat_of evicted_units)
case_run "window of 100/h" fixed-window "100 packets/h" 100 100 3600
strangers=$(jq '.sent / 2 | floor' "$LAB/flood")
evicted=$(($(stat_of evicted) - evicted))
forgiven=$(($(stat_of evicted_units) - forgiven))
# Except those in the table at the end, and those that came twice while they were in it.
check "window of 100/h: evicted, of $strangers strangers" "$evicted" $((strangers * 19 / 20 - 200000)) "$strangers"
check "window of 100/h: evicted packets" "$forgiven" "$evicted" $((evicted * 50))
check_is "window of 100/h: the metric agrees" "$(metric sluice_table_evicted_units_total limit=sources)" \
	"$(stat_of evicted_units)"
kill -TERM $TALLY
wait $TALLY
lab_done
