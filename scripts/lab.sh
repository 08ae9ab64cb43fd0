#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# lab.sh - sluice to look at: a namespace with two clients, one with the limiter, a veth between
# them, real traffic. Each second shows what was sent, what passed and what was dropped while the
# limit is changed live, turned into a tag, and left alone by a daemon killed with -9. About 20 s;
# everything is removed at the end. Exit 0 only where every limit held. What was seen goes into the file
# that SLUICE_SEEN names, a line each.

set -u
cd "$(dirname "$0")/.." || exit 1
if [ "$(id -u)" != 0 ]; then
	echo "run it as root: namespaces, veth and XDP need that" >&2
	exit 1
fi
. tests/lib/netns.sh
lab_begin lab
lab_link 0

bold= plain=
[ -t 1 ] && bold=$'\e[1m' plain=$'\e[0m'
title() {
	printf '\n%s== %s%s\n' "$bold" "$*" "$plain"
}

FLOODER=10.1.1.2 NEIGHBOUR=10.1.2.2
title "two namespaces, veth c0 - s0; sluiced runs on s0 with this configuration"
tee "$LAB/yaml" <<'YAML'
interfaces: [{name: s0}]
limits:
  - name: per-source
    rate: 1000 packets/s
    burst: 1000
YAML
daemon_start < "$LAB/yaml"
echo
ctl status

sink_start s0
echo
echo "$FLOODER sends 20000 packets/s, its neighbour $NEIGHBOUR 80."
blast_bg "$LAB/flooder" --src $FLOODER --dst $SERVER4 --pps 20000 --time 120 --length 100
blast_bg "$LAB/neighbour" --src $NEIGHBOUR --dst $SERVER4 --pps 80 --time 120 --length 100

sent_now() {
	ip -n "$NS_C" -j -s link show c0 | jq '.[0].stats64.tx.packets'
}
# "flooder neighbour tagged", of what arrived so far
arrived_now() {
	awk -F'\t' -v f=$FLOODER -v n=$NEIGHBOUR '
		$2 == f { a++; if ($7 == 8) tagged++ } $2 == n { b++ }
		END { print a + 0, b + 0, tagged + 0 }' "$LAB/sink.s0"
}

# show SECONDS RATE: lines of what happens each second, the neighbour's packets apart; the checks are on the whole of it.
show() {
	local i now sent flooder neighbour tagged before_sent before_f before_n before_t before

	printf '%s%10s %10s %10s %10s %10s %10s%s\n' "$bold" sent/s passed/s dropped/s "tagged/s" \
		"neighbour" "limit/s" "$plain"
	before=$(now)
	before_sent=$(sent_now)
	read -r before_f before_n before_t < <(arrived_now)
	for ((i = 0; i < $1; i++)); do
		sleep 1
		now=$(now)
		sent=$(sent_now)
		read -r flooder neighbour tagged < <(arrived_now)
		awk -v d="$(calc "$now - $before")" -v s=$((sent - before_sent)) \
			-v f=$((flooder - before_f)) -v n=$((neighbour - before_n)) \
			-v t=$((tagged - before_t)) -v limit="$2" 'BEGIN {
			s = s > n ? s - n : 0
			printf "%10d %10d %10d %10d %10d %10s\n",
				s / d, f / d, (s > f ? (s - f) / d : 0), t / d, n / d, limit }'
		before=$now before_sent=$sent before_f=$flooder before_n=$neighbour before_t=$tagged
	done
}

# held RATE FROM TO BURST: the flooder got its rate between two times, and little more.
got=()
held() {
	got+=("$(floor "$(packets_passed s0 $FLOODER "$2" "$3") / ($3 - $2) + 0.5")")
	check "the flooder's packets in $(calc "$3 - $2" | cut -c1-4) s at $1/s" \
		"$(packets_passed s0 $FLOODER "$2" "$3")" \
		"$(calc "0.97 * $1 * ($3 - $2)")" "$(calc "1.02 * $1 * ($3 - $2) + $4 + 1")"
}

title "1000 packets/s"
from=$(now)
show 3 1000
to=$(now)
held 1000 "$from" "$to" 1000

for rate in 100 5000; do
	title "sluicectl limit set per-source rate='$rate packets/s' burst=$rate"
	ctl limit set per-source "rate=$rate packets/s" burst=$rate || not_ok "limit set"
	from=$(now)
	show 3 $rate
	to=$(now)
	held $rate "$from" "$to" 0
done

title "1000 packets/s again, and the daemon is killed with -9: the limit goes on"
ctl limit set per-source "rate=1000 packets/s" burst=1000 || not_ok "limit set"
daemon_kill KILL
from=$(now)
show 3 1000
to=$(now)
held 1000 "$from" "$to" 0
daemon_run
echo "a new daemon:"
ctl stats

title "sluicectl limit set per-source action=tag tag.dscp=cs1: above the limit, marked and passed"
ctl limit set per-source action=tag tag.dscp=cs1 || not_ok "limit set"
from=$(now)
show 3 1000
to=$(now)
read -r tagged unmarked < <(awk -F'\t' -v f=$FLOODER -v a="$from" -v b="$to" '
	$2 == f && $1 >= a && $1 < b { if ($7 == 8) n++; else m++ } END { print n + 0, m + 0 }' "$LAB/sink.s0")
check "the flooder's frames without a mark" "$unmarked" "$(calc "0.97 * 1000 * ($to - $from)")" \
	"$(calc "1.03 * 1000 * ($to - $from)")"
check "and with DSCP cs1" "$tagged" 10000 1000000

blast_stop
sink_stop s0
title "in the end"
flooder=$(packets_passed s0 $FLOODER)
tagged_all=$(awk -F'\t' -v f=$FLOODER '$2 == f && $7 == 8 { n++ } END { print n + 0 }' "$LAB/sink.s0")
check_is "the neighbour's packets" "$(packets_passed s0 $NEIGHBOUR)" "$(field "$LAB/neighbour" sent)"
check_is "passed, tagged and dropped are what was sent" \
	"$(metric sluice_limit_packets_total limit=per-source)" \
	$(($(field "$LAB/flooder" sent) + $(field "$LAB/neighbour" sent) - $(ring_drops s0)))
check_is "the receiver saw what the counters say" \
	"$(($(metric sluice_limit_packets_total limit=per-source) - $(metric sluice_limit_packets_total limit=per-source verdict=drop)))" \
	$((flooder + $(packets_passed s0 $NEIGHBOUR)))
sent=$(field "$LAB/flooder" sent)
cat >> "${SLUICE_SEEN:-/dev/null}" <<SEEN
packets: $FLOODER sent $sent: $((flooder - tagged_all)) passed, $tagged_all passed with a tag, $((sent - flooder)) dropped
         limit 100, 5000, 1000 packets/s: ${got[1]}, ${got[2]}, ${got[3]} passed each second, the last with the daemon killed
         its neighbour $NEIGHBOUR sent $(field "$LAB/neighbour" sent), $(packets_passed s0 $NEIGHBOUR) passed
SEEN
title "cleaning up"
lab_done
