#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# lists.sh - every query of sluicectl, of a daemon whose names and prefixes are as long as they may
# be: at 80 columns no line of a table is longer, in a pipe nothing is cut, JSON parses, and --watch
# repeats each: text with a blank line behind it, JSON one object per line. Completion has the names.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin lists
lab_link 0

N63=$(printf 'n%.0s' {1..63})
M63=$(printf 'm%.0s' {1..63})
PREFIX=2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff
mkdir "$LAB/rules"
cat > "$LAB/rules/r.yaml" <<YAML
domain: $(printf 'd%.0s' {1..60})
descriptors:
  - {key: $(printf 'k%.0s' {1..60}), limits: [9999 requests/s, 1000000 requests/h, 10000000 requests/d]}
YAML
daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
sets: {$N63: [$PREFIX/128], $M63: [2001:db8::/32]}
limits:
  - {name: $N63, match: {src: '@$N63'}, per: [source, dport, proto], rate: 1000000000 packets/s, burst: 1000000000,
     throttle: {elastic: 200%, while: {load_signal: $M63}}}
  - {name: $M63, match: {src: '@$M63'}, prefix: {ipv6: [128, 64, 48]},
     rate: [1000000 packets/s, 100000000 packets/h], ban: {after: 1000 drops/10s, for: 1h, spoofable: yes},
     overrides: [{src: '$PREFIX', rate: [2000000 packets/s, 200000000 packets/h]}]}
http: {listen: [127.0.0.1:8180], rules: $LAB/rules}
YAML
ctl block add "$PREFIX" --for 1h --reason "$(printf 'r%.0s' {1..60})" > /dev/null || not_ok "block add"
ctl exempt add 2001:db8:1111:2222:3333:4444::/96 > /dev/null || not_ok "exempt add"
ctl limit set "$N63" mode=shadow > /dev/null || not_ok "limit set"
ctl load-signal set "$M63" 0.123456 --for 1h > /dev/null || not_ok "load-signal set"
RULE=$(ctl rule list --json | jq -r '.rules[0].rule')

# Every query of the daemon but those that print YAML or sentences, with its arguments.
queries() {
	"$BIN/sluicectl" completion bash | sed -n "s/.*command='\([^']*\)'.*/\1/p" |
		grep -E '( list|^stats|^user top|^user show|^source show)$'
}
arguments() {
	case $1 in
	'override list') echo "$M63" ;;
	'source show') echo "$PREFIX" ;;
	'user show') echo "$RULE bob" ;;
	esac
}
count=0
while read -r query; do
	# shellcheck disable=SC2046,SC2086 # words
	set -- $query $(arguments "$query")
	# The first line of user show repeats its arguments: one word that is too wide.
	widest=$(COLUMNS=80 ctl "$@" 2>&1 | grep -v "^$RULE$" | awk '{ gsub(/…/, "."); if (length($0) > n) n = length($0) } END { print n + 0 }')
	check "$query: the longest line" "$widest" 1 80
	check_is "$query: in a pipe nothing is cut" "$(ctl "$@" | grep -c '…\|not shown')" 0
	check_true "$query: JSON" test "$(ctl "$@" --json | jq -r type)" = object
	timeout 20 "$BIN/sluicectl" -s "$SOCKET" "$@" --json --watch=0.2 | head -n 3 > "$LAB/watched"
	check_is "$query: one object a line" "$(while read -r line; do jq -c type <<< "$line"; done < "$LAB/watched" | xargs)" \
		"object object object"
	count=$((count + 1))
done < <(queries)
check "queries" "$count" 12 40

check_is "the name, whole" "$(ctl limit list | grep -c "^$N63 ")" 1
check_is "the address, at 80 columns, too" "$(COLUMNS=80 ctl block list | grep -c "^$PREFIX ")" 1
check_true "what is not shown is named" grep -q '^not shown: .*UNTIL' <(COLUMNS=80 ctl block list)
check_is "-o wide shows all" "$(COLUMNS=80 ctl block list -o wide | grep -c 'not shown\|…')" 0
timeout 1 "$BIN/sluicectl" -s "$SOCKET" block list --watch=0.2 > "$LAB/watched"
check "text is streamed" "$(grep -c '^PREFIX' "$LAB/watched")" 2 6
check_is "with a blank line behind each" "$(grep -c '^$' "$LAB/watched")" "$(grep -c '^PREFIX' "$LAB/watched")"
check_is "a change is not repeated" "$(ctl reload --watch 2> /dev/null; echo $?)" 2
check_is "nor what fails" "$(timeout 5 "$BIN/sluicectl" -s "$SOCKET" override list none --watch=0.2 2> /dev/null; echo $?)" 1

# A terminal of 80 columns.
script -qec "stty cols 80; $BIN/sluicectl -s $SOCKET limit list" /dev/null < /dev/null > "$LAB/terminal" 2>&1
check "on a terminal" "$(tr -d '\r' < "$LAB/terminal" | sed 's/…/./g; s/\x1b\[[0-9;]*m//g' | awk '{ if (length($0) > n) n = length($0) } END { print n + 0 }')" 20 80

# ---------------------------------------------------------------- completion

complete_as() {
	bash -c 'source <("$1/sluicectl" completion bash); export SLUICE_SOCKET=$2
		COMP_WORDS=("$1/sluicectl" "${@:3}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_sluicectl; echo "${COMPREPLY[*]}"' - "$BIN" "$SOCKET" "$@"
}
check_is "commands" "$(complete_as lo)" load-signal
check_is "subcommands" "$(complete_as block '')" "list add del load withdraw"
check_is "options" "$(complete_as block add 10.0.0.1 --f)" "--for --force"
check_is "values" "$(complete_as attach s0 --mode n)" native
check_is "keys of limits" "$(complete_as limit set web m)" "match= mode="
check_is "keys again" "$(complete_as limit set web mode = shadow acc)" "accounting="
check_is "a value of a key" "$(complete_as limit set web mode =)" ""
check_is "--help names them" "$("$BIN/sluicectl" limit set --help | grep -c "^  Keys: match per prefix ")" 1
check_is "keys of rules" "$(complete_as rule set api/user lim)" "limits="
check_is "keys of overrides" "$(complete_as override set web 10.0.0.1 '')" "rate= burst="
check_is "names of limits" "$(complete_as limit show n)" "$N63"
check_is "names of sets" "$(complete_as set del m)" "$M63"
check_is "interfaces" "$(complete_as attach l)" lo

lab_done
