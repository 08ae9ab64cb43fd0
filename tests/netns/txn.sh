#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# txn.sh - whole files applied and reverted, under traffic. One source sends 1000/s all
# the while and is limited to 200/s by the file, to 20/s by the one that is applied; how many of
# its packets arrive in a second shows which one is in force. An unconfirmed apply reverts by
# itself, also where the daemon was killed and is not started again; a confirmed one stays; a
# daemon killed before the deadline still waits when restarted; ten rollbacks undo ten changes; diff's exit
# codes; the audit log has it all. The neighbour gets everything throughout.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin txn
lab_link 0

rules() {
	cat <<-YAML
	interfaces: [{name: s0, mode: native}]
	sets: {watched: [10.1.1.0/24]}
	limits:
	  - {name: web, match: {src: '@watched'}, rate: $1 packets/s, burst: $1, accounting: exact}
	YAML
}
daemon_start < <(rules 200)
config_write "$LAB/slow.yaml" < <(rules 20)
config_write "$LAB/bad.yaml" <<'YAML'
limits:
  - {name: web, rate: none}
YAML
sink_start s0
blast_bg "$LAB/offender" --src 10.1.1.2 --dst $SERVER4 --pps 1000 --time 150
blast_bg "$LAB/neighbour" --src 10.1.2.2 --dst $SERVER4 --pps 200 --time 150

# rate FROM SECONDS: packets of the offender a second that arrived from then on.
rate() {
	packets_passed s0 10.1.1.2 "$1" "$(calc "$1 + $2")" | awk -v s="$2" '{ printf "%.1f", $1 / s }'
}
past() {
	awk -v t="$(now)" -v at="$1" 'BEGIN { exit !(t > at) }'
}
# judged WORDS FROM RATE: over a second and a half from then on. A bucket that was full at the
# change or a sender that was held up may add a burst.
judged() {
	wait_for 20 past "$(calc "$2 + 2.1")"
	check "$1" "$(rate "$2" 2)" "$(calc "$3 * 0.9")" "$(calc "$3 * 1.6 + 2")"
}

wait_for 20 test -s "$LAB/sink.s0"
judged "the file's limit" "$(calc "$(now) + 1")" 200

# ---- diff FILE, refusals
ctl diff "$CONFIG" > "$LAB/diff"
check_is "diff of the file itself: exit code and output" "$? $(cat "$LAB/diff")" "0 "
ctl diff "$LAB/slow.yaml" > "$LAB/diff"
check_is "diff of another: exit code" $? 4
check_is "it prints the lines that differ" "$(grep -E '^[-+] ' "$LAB/diff" | tr -s ' ' | paste -sd,)" \
	"- rate: 200 packets/s,- burst: 200,+ rate: 20 packets/s,+ burst: 20"
ctl diff "$LAB/slow.yaml" -o json | jq -e .differs > /dev/null
check_is "diff -o json" $? 0
said=$(ctl apply "$LAB/bad.yaml" 2>&1)
check_is "a bad file is refused" $? 1
check_true "the error has the place" grep -q "$LAB/bad.yaml:6:23: " <<< "$said"
check_is "diff of it, too" "$(ctl diff "$LAB/bad.yaml" > /dev/null 2>&1; echo $?)" 1
check_is "wrong usage" "$(ctl apply > /dev/null 2>&1; echo $?)" 2

# ---- unconfirmed, with the daemon killed and not started again
ctl apply "$LAB/slow.yaml" --confirm 6s > "$LAB/said" || not_ok "apply --confirm: $(cat "$LAB/said")"
applied=$(now)
check_true "apply prints that it is not confirmed" grep -q "NOT CONFIRMED" "$LAB/said"
said=$(ctl block add 192.0.2.1 2>&1)
check_is "another change meanwhile is refused" $? 1
check_true "the error names confirm and rollback" grep -q "confirm.*rollback" <<< "$said"
check_true "status has it" grep -q "UNCONFIRMED" <(ctl status)
daemon_kill KILL
judged "applied, and the daemon killed" "$(calc "$applied + 1")" 20
wait_for 20 past "$(calc "$applied + 6")"
judged "reverted on time by the data path alone" "$(calc "$applied + 7")" 200
check_true "no daemon responds" test "$(ctl status > /dev/null 2>&1; echo $?)" = 3
daemon_run
check_is "the next daemon has the old rate" "$(ctl limit show web -o json | jq -r '.. | .rate? // empty' | head -1)" \
	"200 packets/s"
judged "and does" "$(calc "$(now) + 1")" 200
check_is "nothing is pending" "$(ctl status -o json | jq -r '.pending')" null

# ---- killed before the deadline, started again, and then left alone
ctl apply "$LAB/slow.yaml" --confirm 10s > /dev/null || not_ok "apply --confirm"
applied=$(now)
daemon_kill KILL
daemon_run
check_true "the new daemon still waits for confirmation" test "$(ctl status -o json | jq -r '.pending.left_ns > 0')" = true
judged "with the applied rules" "$(calc "$applied + 1.5")" 20
wait_for 20 past "$(calc "$applied + 10")"
judged "then it reverts" "$(calc "$applied + 13")" 200
check_is "after the deadline the file is reverted" "$(ctl status -o json | jq -r '.pending, .applied' | paste -sd,)" \
	"null,null"

# ---- confirmed
ctl apply "$LAB/slow.yaml" --confirm 3s > /dev/null || not_ok "apply --confirm"
applied=$(now)
ctl confirm > /dev/null
check_is "confirm" $? 0
wait_for 20 past "$(calc "$applied + 3")"
judged "confirmed, it stays" "$(calc "$applied + 4")" 20
daemon_kill KILL
daemon_run
check_is "it stays over a restart" "$(ctl status -o json | jq -r .applied.file)" "$LAB/slow.yaml"
check_is "there is nothing to confirm" "$(ctl confirm > /dev/null 2>&1; echo $?)" 1

# ---- a set changes under traffic
ctl set del watched 10.1.1.0/24 > /dev/null 2>&1
check_is "a match on nobody is refused" $? 1
ctl set add watched 10.1.9.0/24 > /dev/null && ctl set del watched 10.1.1.0/24 > /dev/null ||
	not_ok "set add, set del"
judged "taken out of the set that its limit matches on" "$(calc "$(now) + 0.2")" 1000
check_is "rollback of one" "$(ctl rollback -o json | jq -r .undid)" "set del watched 10.1.1.0/24"
judged "puts it back" "$(calc "$(now) + 0.5")" 20
check_is "rollback of the other" "$(ctl rollback -o json | jq -r .undid)" "set add watched 10.1.9.0/24"

# ---- an interface that the new file lacks is detached only on confirmation
config_write "$LAB/none.yaml" <<< 'limits: []'
attached() {
	ctl status -o json | jq -r '[.interfaces[] | select(.name == "s0") | .state] | .[0]'
}
ctl apply "$LAB/none.yaml" --confirm 60s > /dev/null || not_ok "apply --confirm"
check_is "without its interface, unconfirmed" "$(attached)" native
ctl confirm > /dev/null || not_ok "confirm"
check_is "confirmed" "$(attached)" null
ctl rollback > /dev/null || not_ok "rollback"
check_is "undone" "$(attached)" native
judged "it limits again" "$(calc "$(now) + 1")" 20

# ---- ten changes of all kinds, and ten rollbacks, with kill -9 between
web() {
	ctl limit show web -o json | jq -r '.. | .rate? // empty' | head -1
}
for i in 1 2 3 4 5; do
	ctl limit set web "rate=$((300 + i)) packets/s" > /dev/null || not_ok "limit set $i"
	config_write "$LAB/next.yaml" < <(rules $((400 + i)))
	ctl apply "$LAB/next.yaml" --discard-live > /dev/null || not_ok "apply $i"
done
check_is "changes that can be undone" "$(ctl rollback list -o json | jq '.changes | length')" 10
for i in 5 4 3 2 1; do
	ctl rollback > /dev/null || not_ok "rollback $i"
	check_is "back at the live change $i" "$(web)" "$((300 + i)) packets/s"
	[ $i != 3 ] || { daemon_kill KILL; daemon_run; }
	ctl rollback > /dev/null || not_ok "rollback $i"
	expected="$((400 + i - 1)) packets/s"
	[ $i != 1 ] || expected="20 packets/s"
	check_is "back at the file before" "$(web)" "$expected"
done
ctl rollback > /dev/null 2>&1
check_is "there is no eleventh" $? 1
ctl reload > /dev/null
check_is "reload reads the configured file" "$(web)" "200 packets/s"
judged "which holds" "$(calc "$(now) + 1")" 200

# ---- the audit log
log=$LAB/state/audit.log
check_true "every line is JSON" jq -e -s length "$log"
check_is "applies, done and refused" \
	"$(jq -s '[.[] | select(.command == "apply") | .ok] | group_by(.) | map(length) | join(" ")' -r "$log")" \
	"1 9"
check_is "reverts" "$(jq -s '[.[] | select(.command == "revert")] | length' "$log")" 2
check_is "the refused block and its reason" \
	"$(jq -r 'select(.command == "block add") | .error' "$log" | grep -c confirm)" 1
check_is "by root, with the generation" \
	"$(jq -s '[.[] | select(.command == "limit set") | select(.user == "root" and .uid == 0 and .pid > 0
		and .generation[1] > .generation[0])] | length' "$log")" 5
check_is "starts" "$(jq -s '[.[] | select(.command == "start")] | length' "$log")" 5
check_is "read-only commands are not in it" "$(grep -c '"status"\|"diff"' "$log")" 0

# ---- a file applied from elsewhere may name others beside it
mkdir "$LAB/other"
echo 198.51.100.7 > "$LAB/other/few.txt"
sed 's|^sets: {|&few: {file: few.txt}, |' "$LAB/slow.yaml" > "$LAB/other/few.yaml"
before=$(cksum < "$CONFIG")
check_true "a set beside an applied file" ctl apply "$LAB/other/few.yaml" --discard-live
check_is "save would give its name another meaning" \
	"$(ctl save 2>&1 | grep -c "sets.few names few.txt, beside $LAB/other/few.yaml")" 1
check_is "the configuration is as it was" "$(cksum < "$CONFIG")" "$before"
sed -i "s|file: few.txt|file: $LAB/other/few.txt|" "$LAB/other/few.yaml"
check_true "with an absolute path" ctl apply "$LAB/other/few.yaml" --discard-live
check_true "save has no objection" ctl save
check_is "its set is in the configuration" "$(grep -c "$LAB/other/few.txt" "$CONFIG")" 1

blast_stop
sink_stop s0
check_is "frames that the ring dropped" "$(ring_drops s0)" 0
check_is "the neighbour" "$(packets_passed s0 10.1.2.2)" "$(field "$LAB/neighbour" sent)"
lab_done
