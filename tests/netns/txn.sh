#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# txn.sh - whole files applied and reverted, under traffic. One source sends 1000/s all
# the while and is limited to 200/s by the file, to 20/s by the one that is applied; how many of
# its packets arrive in a second shows which one is in force. An unconfirmed apply reverts by
# itself where the daemon was killed and is not started again; a confirmed one stays; an interface that
# the new file lacks is detached on confirmation; what sluicectl prints and exits with; the audit log.
# The neighbour gets everything throughout. (All else of transactions: test_txn.c, test_history.c, test_sets.c.)

. "$(dirname "$0")/../lib/netns.sh"
lab_begin txn
lab_link 0

rules() {
	cat <<-YAML
	interfaces: [{name: s0, mode: native}]
	limits:
	  - {name: web, match: {src: 10.1.1.0/24}, rate: $1 packets/s, burst: $1, accounting: exact}
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

past() {
	awk -v t="$(now)" -v at="$1" 'BEGIN { exit !(t > at) }'
}
# judged WORDS FROM RATE: over two seconds from then on. A bucket that was full at the
# change or a sender that was held up may add a burst.
judged() {
	wait_for 20 past "$(calc "$2 + 2.1")"
	check "$1" "$(calc "$(packets_passed s0 10.1.1.2 "$2" "$(calc "$2 + 2")") / 2")" "$(calc "$3 * 0.9")" \
		"$(calc "$3 * 1.6 + 2")"
}

# ---- diff FILE, refusals
wait_for 20 test -s "$LAB/sink.s0"
ctl diff "$CONFIG" > "$LAB/diff"
check_is "diff of the file itself: exit code and output" "$? $(cat "$LAB/diff")" "0 "
ctl diff "$LAB/slow.yaml" > "$LAB/diff"
check_is "diff of another: exit code" $? 4
check_is "it prints the lines that differ" "$(grep -E '^[-+] ' "$LAB/diff" | tr -s ' ' | paste -sd,)" \
	"- rate: 200 packets/s,- burst: 200,+ rate: 20 packets/s,+ burst: 20"
check_true "diff -o json" jq -e .differs <(ctl diff "$LAB/slow.yaml" -o json)
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
check_is "the next daemon has the old rate, and nothing is pending" \
	"$(ctl limit show web -o json | jq -r '.. | .rate? // empty' | head -1), $(ctl status -o json | jq -r '.pending')" \
	"200 packets/s, null"

# ---- confirmed
ctl apply "$LAB/slow.yaml" --confirm 2s > /dev/null || not_ok "apply --confirm"
applied=$(now)
check_true "confirm" ctl confirm
wait_for 20 past "$(calc "$applied + 2")"
daemon_kill KILL
daemon_run
judged "confirmed, it stays, over a restart" "$(calc "$(now) + 0.1")" 20
check_is "there is nothing to confirm" "$(ctl confirm > /dev/null 2>&1; echo $?)" 1

# ---- an interface that the new file lacks is detached only on confirmation
config_write "$LAB/none.yaml" <<< 'limits: []'
attached() {
	ctl status -o json | jq -r '[.interfaces[] | select(.name == "s0") | .state] | .[0]'
}
ctl apply "$LAB/none.yaml" --confirm 60s > /dev/null || not_ok "apply --confirm"
check_is "without its interface, unconfirmed" "$(attached)" native
ctl confirm > /dev/null || not_ok "confirm"
check_is "confirmed" "$(attached)" null
check_is "rollback says what it undid" "$(ctl rollback -o json | jq -r '.undid | startswith("apply")')" true
check_is "undone" "$(attached)" native
judged "it limits again" "$(calc "$(now) + 1")" 20

# ---- the audit log
log=$LAB/state/audit.log
check_true "every line is JSON" jq -e -s length "$log"
check_is "applies, refused and done" \
	"$(jq -s '[.[] | select(.command == "apply") | .ok] | group_by(.) | map(length) | join(" ")' -r "$log")" \
	"1 3"
check_is "reverts" "$(jq -s '[.[] | select(.command == "revert")] | length' "$log")" 1
check_is "the refused block and its reason" \
	"$(jq -r 'select(.command == "block add") | .error' "$log" | grep -c confirm)" 1
check_is "by root, with the generation" \
	"$(jq -s '[.[] | select(.command == "confirm" and .ok and .user == "root" and .uid == 0 and .pid > 0)] | length' "$log")" 2
check_is "starts" "$(jq -s '[.[] | select(.command == "start")] | length' "$log")" 3
check_is "read-only commands are not in it" "$(grep -c '"status"\|"diff"' "$log")" 0

# ---- a file applied from elsewhere may name others beside it
mkdir "$LAB/other"
echo 198.51.100.7 > "$LAB/other/few.txt"
{
	cat "$LAB/slow.yaml"
	echo "sets: {few: {file: few.txt}}"
} > "$LAB/other/few.yaml"
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
