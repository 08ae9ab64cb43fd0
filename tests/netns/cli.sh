#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# cli.sh - sluicectl on a terminal: the example in each command's help runs; --sort; color where a terminal
# asks for it; columns of zeros; suggestions for names.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin cli
lab_link 0
lab_link 1
mkdir "$LAB/rules"
cat > "$LAB/rules/api.yaml" <<'YAML'
domain: api
descriptors:
  - {key: user, limits: 5 requests/h}
  - key: path
    descriptors: [{key: tenant, rate_limit: {unit: hour, requests_per_unit: 1}}]
YAML
cat > "$LAB/bad.txt" <<< 203.0.113.0/24
echo "{name: more, match: {dport: 81}, rate: 5 packets/s}" > "$LAB/more.yaml"
daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
sets: {bad: [203.0.113.7]}
limits:
  - {name: web, match: {dport: 80}, rate: 10 packets/h, burst: 10, per: [source]}
  - {name: dns, match: {dport: 53}, rate: 1000 packets/s, throttle: {elastic: 200%, while: {load_signal: api-load}}}
  - {name: never, match: {dport: 54}, rate: 1000 packets/s}
http: {listen: [127.0.0.1:8180], rules: $LAB/rules}
YAML
sed 's/rate: 10 packets/rate: 20 packets/' "$CONFIG" > "$LAB/new.yaml"
python3 - > "$LAB/flood.pcap" <<'PY'
import struct, sys
out = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)
for i in range(200):
    frame = (bytes(12) + b"\x08\x00" + struct.pack(">BBHHHBBH", 0x45, 0, 28, 0, 0, 64, 17, 0) +
             bytes([198, 51, 100, 1 + i % 4, 10, 9, 0, 1]) + struct.pack(">HHHH", 1000, 80, 8, 0))
    out += struct.pack("<IIII", 1772373780 + i // 10, i % 10 * 100000, len(frame), len(frame)) + frame
sys.stdout.buffer.write(out)
PY
export SLUICE_SOCKET=$SOCKET
PATH=$BIN:$PATH
cd "$LAB" || exit 1
blast "$LAB/sent" --dst $SERVER4 --src 10.1.1.1 --count 50 --pps 20000 --dport 80
blast "$LAB/sent" --dst $SERVER4 --src 10.1.1.2 --count 200 --pps 20000 --dport 53

# ---- limit add: after all others, and a note where it can have no effect
added() {
	echo "$1" | sluicectl limit add - > "$LAB/out" 2>&1 || cat "$LAB/out"
	grep '^note' "$LAB/out"
	sluicectl limit del x > /dev/null
}
check_is "a pass, which comes too late" "$(added '{name: x, match: {src: 10.1.1.1, dport: 80}, action: pass}')" \
	"note: limit \"x\": it has no effect: a pass keeps packets from the limits after it, and there is none: put it before 'web' in the file"
check_is "a drop takes effect" "$(added '{name: x, match: {src: 10.1.1.99}, action: drop}')" ""
check_is "so does a rate" "$(added '{name: x, match: {src: 10.1.1.99}, rate: 5 packets/s}')" ""
echo '{name: y, match: {dport: 99}, action: drop}' | sluicectl limit add - > /dev/null
check_is "a drop decides about all of its packets" "$(added '{name: x, match: {src: 10.1.1.9, dport: 99}, rate: 5 packets/s}')" \
	"note: limit \"x\": no packet meets it: 'y' before it drops all that it matches"
sluicectl limit del y > /dev/null

# ---- before anything changes: names, order, zeros, color
sluicectl stats wbe > "$LAB/out" 2>&1
check_true "a limit's name" grep -q "there is no limit 'wbe' (did you mean 'web'?); limits: web, dns, never" "$LAB/out"
sluicectl rule show api/usre > "$LAB/out" 2>&1
check_true "a rule's name" grep -q "there is no rule 'api/usre' (did you mean 'api/user'?)" "$LAB/out"
sluicectl sttaus > "$LAB/out" 2>&1
check_true "a command" grep -q "did you mean 'status'" "$LAB/out"
sluicectl status --wtach > "$LAB/out" 2>&1
check_true "an option" grep -q "did you mean --watch" "$LAB/out"
for words in "block add 192.0.2.1 --duration 5m=did you mean --for" "block add 192.0.2.1 --reasn x=did you mean --reason" \
	"unblock 192.0.2.1=did you mean 'block del'" "limit set web rate=1000pps=did you mean '1000 packets/s'" \
	"limit set web rate=10Mbps=did you mean '10M bits/s'" "block add $SERVER4=is an address of this host"; do
	sluicectl ${words%=*} > "$LAB/out" 2>&1
	check_true "${words%=*}" grep -q "${words##*=}" "$LAB/out"
done
check_is "nothing of it is blocked" "$(sluicectl block list -o json | jq '.entries | length')" 0
check_true "a network with this host is blocked, and said to hold it" grep -q "^note: 10.1.0.0/30 holds this host's own address $SERVER4" \
	<(sluicectl block add 10.1.0.0/30)
sluicectl block del 10.1.0.0/30 > /dev/null
check_true "with --force its own address, too" sluicectl block add $SERVER4 --force
sluicectl block del $SERVER4 > /dev/null
printf '%s\n' 198.51.100.8 $SERVER4 198.51.100.9 | sluicectl block load - --origin own > "$LAB/out"
check_true "of a file such a line is skipped, and listed" grep -q "is an address of this host" "$LAB/out"
sluicectl block add @bad > /dev/null
sluicectl set add bad 198.51.100.3 $SERVER4 > "$LAB/out" 2>&1
check_true "nor does a blocked set get it" grep -q "is an address of this host" "$LAB/out"
check_is "and nothing else of that line" "$(sluicectl set list bad -o json | grep -c 198.51.100.3)" 0
check_true "but with --force" sluicectl set add bad $SERVER4 --force
sluicectl block del @bad > /dev/null
sluicectl block add @bad > "$LAB/out" 2>&1
check_true "nor is a set with it blocked" grep -q "is an address of this host" "$LAB/out"
sluicectl set del bad $SERVER4 > /dev/null
check_is "the others are blocked" "$(sluicectl block list -o json | jq '.entries | length')" 2
sluicectl block withdraw own > /dev/null
sluicectl block add 198.51.100.7 > /dev/null
check_is "completion of what can be removed" "$(bash -c 'source <(sluicectl completion bash)
	COMP_WORDS=(sluicectl block del 198); COMP_CWORD=3; _sluicectl; echo ${COMPREPLY[*]}')" 198.51.100.7
sluicectl block del 198.51.100.7 > /dev/null
first() {
	sluicectl stats --sort "$1" | awk 'NR == 2 { print $1 }'
}
# Rates are of the last second.
dns_is_first() { [ "$(first passed)" = dns ]; }
check_true "by passed packets" wait_for 5 dns_is_first
check_is "by dropped packets, the heading in any case" "$(first Dropped)" web
sluicectl stats --sort nix > "$LAB/out" 2>&1
check_is "a column that is none" $? 2
COLUMNS=80 sluicectl stats > "$LAB/out"
check_is "a column of zeros is not shown" "$(head -n 1 "$LAB/out" | grep -c TAGGED)" 0
check_true "one with a number is" grep -q DROPPED <<< "$(head -n 1 "$LAB/out")"
check_true "and with -o wide all are" grep -q TAGGED <<< "$(sluicectl stats -o wide | head -n 1)"
check_is "rows of zeros neither: built-in limits that met nothing" "$(grep -c '^@' "$LAB/out")" 0
check "with --all they are" "$(sluicectl stats --all | grep -c '^@')" 3 99
check_true "or by their name" grep -q '^@failsafe:' <(sluicectl stats @failsafe)
on_terminal() {
	TERM=xterm script -qec "$1" /dev/null
}
check_true "color on a terminal" grep -q $'\033\\[32mnative' <<< "$(on_terminal 'sluicectl status')"
check_is "none with NO_COLOR" "$(NO_COLOR=1 on_terminal 'sluicectl status' | grep -c $'\033')" 0
check_is "none in a pipe" "$(sluicectl status | grep -c $'\033')" 0

# ---- users of a rule with several keys
for _ in 1 2 3; do
	on_server curl -s -o /dev/null -H 'Content-Type: application/json' -d '{"domain": "api", "descriptors":
		[{"entries": [{"key": "path", "value": "/login"}, {"key": "tenant", "value": "acme"}]}]}' \
		http://127.0.0.1:8180/v1/check
done
check_is "all values of its keys" "$(sluicectl user top -o json | jq -r '.users[0].value')" /login,acme
# Also of what passed.
on_server curl -s -o /dev/null -H 'Content-Type: application/json' -d '{"domain": "api", "descriptors":
	[{"entries": [{"key": "user", "value": "ann"}]}]}' http://127.0.0.1:8180/v1/check
check_is "user list: two values that passed or were refused" \
	"$(sluicectl user list -o json | jq -c '[.users[] | [.value, .passed.requests, .refused.requests]] | sort')" \
	'[["/login,acme",1,2],["ann",1,0]]'
check_is "the refused first" "$(sluicectl user list --by refused | awk 'NR == 2 { print $2 }')" /login,acme
check "two refusals in some seconds are not 0/s" "$(sluicectl user list --by refused | awk 'NR == 2 { print $4 }')" 0.1 2
sluicectl source list --by bits > "$LAB/out"
# Live, suggest has quantiles of users, too: 3 and 1 requests within 5 to 10 s.
sluicectl suggest --for 100ms --share 0% -o json > "$LAB/suggested"
check_is "suggest: live users, by rule" "$(jq -r '[.groups[] | select(.unit == "requests/m") | "\(.group) \(.subjects)"] | join(", ")' \
	"$LAB/suggested")" "api path,tenant 1, api user 1"
check "three requests as a rate of a minute" "$(jq '.groups[] | select(.group == "api path,tenant").most' "$LAB/suggested")" 17 180
jq -r .rules "$LAB/suggested" > "$LAB/suggested.yaml"
check_true "as rules that match, in shadow mode" grep -q "api/path/tenant .*shadow" <(sluicectl rule test -c "$LAB/suggested.yaml" --domain api --entries path=/x,tenant=y)
check_is "in shadow mode" "$(grep -c 'shadow_mode: true' "$LAB/suggested.yaml")" 2

# ---- each example, in the order of the rows
examples=0
while read -r command; do
	example=$(sluicectl help $command | sed -n 's/^Example: //p')
	[ -n "$example" ] || continue
	examples=$((examples + 1))
	case $command in
	top) continue ;;			# who.sh has it in a terminal
	events | watch | status) limit="timeout 3" ;;
	*) limit= ;;
	esac
	on_server env SLUICE_SOCKET="$SOCKET" PATH="$PATH" $limit bash -c "$example" > "$LAB/out" 2>&1
	status=$?
	case $command in
	diff) expected=4 ;;
	events | watch | status) expected=124 ;;
	ban\ del | user\ unban | cluster\ show) expected=1 ;;	# no bans, no cluster
	doctor) [ $status -le 1 ] && expected=$status || expected='0 or 1' ;;
	*) expected=0 ;;
	esac
	[ $status = "$expected" ] || not_ok "$example: exit $status, not $expected: $(head -c 300 "$LAB/out")"
done < <(sluicectl help --mdoc | sed -n 's/^\.It Cm \([a-z -]*[a-z]\).*/\1/p' | awk '{ print }' |
	while read -r name; do echo "$(sluicectl help | grep -nE "^  $name( |$)" | head -n 1 | cut -d: -f1) $name"; done |
	sort -n | cut -d' ' -f2-)
check "commands with an example that ran" $examples 55 200
wait_for 5 ctl status
daemon_kill TERM
lab_done
