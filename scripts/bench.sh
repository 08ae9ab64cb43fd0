#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# bench.sh [--markdown] - what deciding costs, as ratios to bare XDP_DROP in the same run.
#
#   1 packets per second on live frames over a veth, 64 bytes, one core for the generator and
#     the receiver: bare XDP_DROP, ours (exact, percpu; what passes is dropped at the end, so
#     that the stack is not measured), nft's per-source limit at netdev ingress (with a final
#     drop, too); for 1, 1000, 100k and 16M sources and limits of 10/s and 1000/s
#   2 what a packet of one busy source costs, refused or passed, with all kinds of rules beside it,
#     as a multiple of the least program that could refuse it (tests/bench/cost.c)
#   3 the HTTP tier: the memory of a user, and a decision (tests/bench/decide.c); requests
#     (scripts/bench-http.sh)
#
# Single runs vary by a third: what is compared takes turns, BENCH_ROUNDS (5) times, and medians
# are printed with the least and the most. BENCH_SECONDS (0.6) a run. Needs root and an idle
# machine; everything happens in two namespaces of its own.

set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib/netns.sh

MARKDOWN=0
[ "${1:-}" = --markdown ] && MARKDOWN=1
: "${BENCH_ROUNDS:=5}" "${BENCH_SECONDS:=0.6}"
CPU=1
[ "$(nproc)" -gt 1 ] || CPU=0

lab_begin bench
lab_link 0 2
mkdir -p "$PIN"
on_server ethtool -K s0 gro on || { echo "bench: cannot switch GRO on" >&2; exit 1; }

say() {
	[ $MARKDOWN = 1 ] && echo "$*" >&2 || echo "$*"
}

# ---------------------------------------------------------------- the contestants

mkfifo "$LAB/to" "$LAB/from"
"${IN_S[@]}" "$TOOLS/bench/judge" s0 "$PIN/live" < "$LAB/to" > "$LAB/from" &
started
exec 7> "$LAB/to" 8< "$LAB/from"
read -r -t 120 answer <&8 || { echo "bench: the program does not load" >&2; exit 1; }

ours() {
	echo "$1" >&7
	read -r -t 10 answer <&8 && [ "$answer" = "on $1" ] || { echo "bench: $1: $answer" >&2; exit 1; }
}

# use NAME: and nothing else is on s0.
use() {
	case $1 in
	bare)
		ours off
		"${IN_S[@]}" "$TOOLS/bench/livegen" --bare s0 2> "$LAB/bare" &
		started
		BARE=$!
		wait_for 5 grep -q ready "$LAB/bare"
		;;
	nft-*)
		ours off
		on_server nft -f - <<-NFT || exit 1
		table netdev bench {
			set sources {
				type ipv4_addr
				flags dynamic
				size 1048576
				timeout 10s
			}
			chain in {
				type filter hook ingress device s0 priority 0;
				update @sources { ip saddr limit rate over ${1#nft-}/second } drop
				drop
			}
		}
		NFT
		;;
	*)
		ours "$1"
		;;
	esac
}

unuse() {
	case $1 in
	bare)
		kill -TERM $BARE
		wait $BARE || exit 1
		;;
	nft-*) on_server nft delete table netdev bench ;;
	esac
}

# measure SOURCES: Mpps that the receiver judged.
measure() {
	local src="--src 10.0.0.0/8" before after

	case $1 in
	1) src="--src 10.1.1.2" ;;
	1000) src="--src 10.2.0.0/22 --sequential 1000" ;;
	100k) src="--src 10.4.0.0/15 --sequential 100000" ;;
	esac
	before=$(ring_drops s0)
	# shellcheck disable=SC2086
	on_client "$TOOLS/bench/livegen" --interface c0 --mac $MAC_S --dst $SERVER4 --cpu $CPU \
		--time "$BENCH_SECONDS" $src > "$LAB/run" || exit 1
	after=$(ring_drops s0)
	jq -r "(.sent - ($after - $before)) / (.end - .start) / 1e6" "$LAB/run"
}

# stats FILE COLUMN-KEY...: "median least most" of the third column of lines starting so.
stats() {
	awk -v a="$1" -v b="$2" '$1 == a && $2 == b { print $3 }' "$LAB/results" | sort -g | awk '
		{ v[NR] = $1 } END { if (NR) printf "%.2f %.2f %.2f", v[int((NR + 1) / 2)], v[1], v[NR]
			else print "0 0 0" }'
}

VARIANTS="bare exact-10 percpu-10 nft-10 exact-1000 percpu-1000 nft-1000"
SOURCES="1 1000 100k 16M"

say "live frames: $BENCH_ROUNDS rounds of 4 x 7 runs"
for round in $(seq "$BENCH_ROUNDS"); do
	say "  round $round"
	for sources in $SOURCES; do
		for variant in $VARIANTS; do
			use "$variant"
			mpps=$(measure "$sources") || exit 1
			echo "$variant $sources $mpps" >> "$LAB/results"
			unuse "$variant"
		done
	done
done
echo off >&7
exec 7>&- 8<&-

say "busy source: 9 rounds of 21 cases"
"$TOOLS/bench/cost" "$PIN/cost" 9 > "$LAB/cost" || exit 1

LAB_ENDED=1

# ---------------------------------------------------------------- the tables

median_of() {
	stats "$1" "$2" | cut -d' ' -f1
}

# row CELLS...
row() {
	if [ $MARKDOWN = 1 ]; then
		printf '|'
		printf ' %s |' "$@"
		echo
	else
		printf '%-24s' "$1"
		shift
		printf '%26s' "$@"
		echo
	fi
}
rule() {
	if [ $MARKDOWN = 1 ]; then
		printf '|---'
		printf '|---:%.0s' $(seq "$1")
		echo '|'
	fi
}

head_line() {
	[ $MARKDOWN = 1 ] && echo "### $*" || echo "$*"
	echo
}

echo
echo "Kernel $(uname -r), $(nproc) CPUs, $(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo); $(date -u +%F)"
echo
head_line "Mpps on live frames: median (least-most) of $BENCH_ROUNDS, and share of bare XDP_DROP"
# shellcheck disable=SC2086
row sources $SOURCES
rule 4
for variant in $VARIANTS; do
	cells=()
	for sources in $SOURCES; do
		read -r median least most <<< "$(stats "$variant" "$sources")"
		ratio=$(awk -v a="$median" -v b="$(median_of bare "$sources")" 'BEGIN { printf "%.2f", b ? a / b : 0 }')
		cells+=("$median ($least-$most) $ratio")
	done
	row "$variant" "${cells[@]}"
done
echo
head_line "A busy source: ns added to bare XDP_DROP, and as multiples of tests/bench/floor.bpf.c"
row case ns multiple least most
rule 4
# shellcheck disable=SC2086
tail -n +2 "$LAB/cost" | while read -r line; do row $line; done

# ---------------------------------------------------------------- the aims

echo
head_line "Aims"
row aim wanted got
rule 2
# aim WORDS WANTED VALUE MOST?: met where value >= wanted (or <= with "most").
aim() {
	local verdict

	verdict=$(awk -v w="$2" -v v="$3" -v most="${4:-}" 'BEGIN { print (most ? v <= w : v >= w) ? "met" : "missed" }')
	row "$1" "$2" "$3 $verdict"
}
share() {
	awk -v a="$(median_of "$1" "$3")" -v b="$(median_of "$2" "$3")" 'BEGIN { printf "%.2f", b ? a / b : 0 }'
}
for rate in 10 1000; do
	aim "exact $rate/s, 1" 0.80 "$(share exact-$rate bare 1)"
	aim "exact $rate/s, 1000" 0.75 "$(share exact-$rate bare 1000)"
	aim "exact $rate/s, 16M" 0.50 "$(share exact-$rate bare 16M)"
done
for sources in $SOURCES; do
	for rate in 10 1000; do
		aim "percpu/exact $rate/s, $sources" 0.90 "$(share percpu-$rate exact-$rate "$sources")"
	done
done
for kind in exact percpu; do
	for rate in 10 1000; do
		aim "$kind/nft $rate/s, 1" 3.0 "$(share $kind-$rate nft-$rate 1)"
	done
done
# A busy source, as multiples of the floor.
while read -r name _ multiple _; do
	case $name in
	refused*) aim "$name" 1.30 "$multiple" most ;;
	passed-4*) aim "$name" 3.00 "$multiple" most ;;
	passed*) aim "$name" 2.00 "$multiple" most ;;
	esac
done < "$LAB/cost"

# ---------------------------------------------------------------- the HTTP tier

echo
head_line "HTTP tier: what a user takes, and a decision"
if [ $MARKDOWN = 1 ]; then
	"$TOOLS/bench/decide" --markdown
else
	"$TOOLS/bench/decide"
fi

echo
scripts/bench-http.sh "$@"
