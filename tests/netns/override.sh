#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# override.sh - overrides on real frames, changed under traffic: a source gets rates of its own and
# loses them again, and its used share stays both times, so that the new rate holds at once,
# without a fresh burst. A file of 100000 is loaded meanwhile. Neighbours are not affected.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin override
lab_link 0

BURST=1000 AFTER=4
many() {
	echo "src,rate,burst"
	awk 'BEGIN { for (i = 0; i < 100000; i++)
		printf "100.%d.%d.%d,%d packets/s\n", 64 + i / 65536, i / 256 % 256, i % 256, 100 + i }'
}
many > "$LAB/many.csv"
daemon_start <<-YAML
	interfaces: [{name: s0, mode: native}]
	limits:
	  - name: slow
	    match: {src: 10.1.1.0/24}
	    rate: 10 packets/s
	    burst: $BURST
	    overrides: [{src: 10.1.1.9, rate: 1000 packets/s}]
	  - name: many
	    match: {src: 100.64.0.0/10}
	    rate: 10 packets/s
	    overrides_file: $LAB/many.csv
	  - name: turns
	    match: {src: 10.1.2.0/24}
	    rate: 1 packets/h
	    burst: 1
	    overrides: [{src: 10.1.2.20, rate: 1 packets/h, burst: 5}]
	YAML
sink_start s0

check_is "overrides of the file" "$(ctl override list many -o json | jq .count)" 100000
check_is "status counts them" "$(ctl status -o json | jq .overrides)" 100002

# One after the other: each is in the index in force, whichever of the prefix slots has that.
for i in {1..12}; do
	ctl override set turns 10.1.2.$i rate='1 packets/h' burst=5 > "$LAB/turn" || not_ok "$(cat "$LAB/turn")"
done
for i in 3 6 9; do
	ctl override del turns 10.1.2.$i > "$LAB/turn" || not_ok "$(cat "$LAB/turn")"
done
for i in {1..13} 20; do
	blast "$LAB/turn" --src 10.1.2.$i --dst $SERVER4 --count 8
done

blast_bg "$LAB/active" --src 10.1.1.2 --dst $SERVER4 --pps 2000 --time 60
blast_bg "$LAB/neighbour" --src 10.1.1.3 --dst $SERVER4 --pps 5 --time 60
blast_bg "$LAB/other" --src 10.1.1.9 --dst $SERVER4 --pps 500 --time 60
emptied() { [ "$(packets_passed s0 10.1.1.2)" -gt $BURST ]; }
check_true "the active source's bucket was emptied" wait_for 20 emptied

# The change comes into force somewhere between these two times.
set_from=$(now)
ctl override set slow 10.1.1.2 rate='200 packets/s' burst=$BURST > "$LAB/set" ||
	not_ok "override set: $(cat "$LAB/set")"
set_to=$(now)
after() { awk -v t="$(now)" -v from="$1" -v d="$2" 'BEGIN { exit !(t > from + d) }'; }
wait_for 20 after "$set_to" $AFTER
del_from=$(now)
ctl override del slow 10.1.1.2 > "$LAB/del" || not_ok "override del: $(cat "$LAB/del")"
del_to=$(now)
wait_for 20 after "$del_to" $AFTER
end=$(now)
begin=$(now)
ctl override set many 100.64.0.7 rate='7 packets/s' > "$LAB/one" || not_ok "$(cat "$LAB/one")"
# One by one, live. The slack is for a machine that is busy.
check "seconds to change one of 100000" "$(calc "$(now) - $begin")" 0 2
blast_stop
sink_stop s0

# passes SRC FROM TO
passes() {
	awk -F'\t' -v src="$1" -v from="$2" -v to="$3" '$2 == src && $1 >= from && $1 < to { n++ }
		END { print n + 0 }' "$LAB/sink.s0"
}
check "passes of its own rate, no fresh burst" "$(passes 10.1.1.2 "$set_from" "$del_from")" \
	"$(calc "200 * ($del_from - $set_to) * 0.95")" "$(calc "200 * ($del_from - $set_from) * 1.05 + 20")"
check "passes of the limit's rate after that" "$(passes 10.1.1.2 "$del_to" "$end")" \
	"$(calc "10 * ($end - $del_to) * 0.8 - 2")" "$(calc "10 * ($end - $del_to) * 1.1 + 5")"
check_is "a neighbour within the limit" "$(packets_passed s0 10.1.1.3)" "$(field "$LAB/neighbour" sent)"
check_is "another override" "$(packets_passed s0 10.1.1.9)" "$(field "$LAB/other" sent)"
check_is "each of those that changed in turn" \
	"$(for i in {1..13} 20; do packets_passed s0 10.1.2.$i; done | tr '\n' ' ')" "5 5 1 5 5 1 5 5 1 5 5 5 1 5 "
check_is "live changes left" "$(ctl status -o json | jq .live_changes)" 10
lab_done
