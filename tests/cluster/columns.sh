#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# columns.sh - every command of sluicectl on a node of a cluster with a real Redis, with names, prefixes and
# errors as long as they may be: no line is wider than 80 columns, but for one word alone behind its
# indentation (a name that a user gave), YAML, differences between files, and doctor's commands to copy.
# No row names a field that the reply does not have. -o json is JSON; --watch repeats what is a query, and states why it does not repeat others.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin columns "$@"
redis_start main

P=2001:db8:aaaa:bbbb:cccc:dddd:eeee
long() {
	printf "$1%.0s" $(seq "$2")
}
L=$(long l 63)				# the limit that commands name
S=$(long s 63)				# the set
V=$(long v 63)
D=$(long d 30)
http_rules api <<YAML
domain: $D
descriptors:
  - key: $(long k 30)
    limits: [999999 requests/h, {name: $(long q 63), rate: 3 requests/d}]
    scope: cluster
    consistency: {write_back: 60s}
    push_down: {after: 5 rejections/10s, steps: [limit 50 packets/s], step: 60s, down: 60s, max: 1h}
    ban: {after: 5 rejections/10s, for: 1h}
  - {key: $(long j 30), limits: ['1000 requests/h'], scope: cluster, consistency: strict, on_store_failure: closed, on_limit: {defer: {}}}
YAML
RULE=$D/$(long k 30)
limits() {
	local i

	for i in 1 2 3 4 5 6 7; do
		echo "  - {name: $i$(long n 61), match: {src: ['$P:${i}000/116', 10.2.$i.0/24], proto: udp, dport: 100-${i}000}, per: [source, dport, proto],"
		echo "     rate: [1000000000 packets/s, 100000000000 packets/h], burst: [1000000000, 2000000000], scope: cluster, mode: shadow}"
	done
}
HTTP_TOP="interfaces: [{name: s0, mode: native}]
history: {size: 8M, age: 2d}
sets: {$S: ['$P:ffff/128']}
exempt: ['2001:db8:1111:2222:3333:4444:5555:6666/128', '@$S']
limits:
  - {name: $L, match: {src: ['2001:db8::/32', 10.1.0.0/16]}, prefix: {ipv6: [128, 64, 48]}, rate: [10 packets/m, 100000000 packets/h],
     burst: [10, 200000000], accounting: exact, scope: cluster, ban: {after: 100 drops/10s, for: 1h, max: 4h, spoofable: yes},
     overrides: [{src: '$P:1', rate: [2000000 packets/s, 200000000 packets/h]}]}
  - {name: $(long e 63), match: {src: 10.9.0.0/16, dport: 1-1000}, rate: 1000000 packets/s,
     throttle: {elastic: 200%, while: {load_signal: $(long g 63)}}}
  - {name: $(long b 63), match: {src: 10.8.0.0/16}, rate: 8M bits/s, algorithm: leaky-bucket, action: tag, tag: {dscp: cs1}}
$(limits)"
NODE_HTTP='  workers: 1
  push_down: {mode: enforce, max_share: 100%, min_requests: 5}'
for name in a b c; do
	node_add $name
	node_link $name
	node_start $name 'sync: 100ms'
done
check_true "the nodes know each other" wait_for 15 nodes_know_each_other a b c

# ---- what there is to see: bans, blocks of another node, push-downs, refused users, events
run() {
	node a ctl "$@"
}
node b ctl block add "$P:b000/120" --for 1h --reason "$(long r 60)" > /dev/null || not_ok "block add on b"
node a blast "$LAB/sent" --dst $SERVER6 --src $P:1 --count 30 --pps 2000 --dport 80
node a blast "$LAB/sent" --dst $SERVER6 --src 2001:db8:aaaa:bbbb:1111:2222:3333:4444 --count 300 --pps 2000 --dport 80
node b blast "$LAB/sent" --dst $SERVER4 --src 10.1.1.1 --count 300 --pps 2000 --dport 80
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
	node a http_check "$D" "${RULE#*/}=$V" > /dev/null
	node a request -d "$(check_body "$D" "${RULE#*/}=w$V" --source "\"$P:77\"")" /v1/check > /dev/null
done
run load-signal set "$(long g 63)" 0.123456 --for 1h > /dev/null || not_ok "load-signal set"
run limit set "$L" mode=shadow mode=enforce > /dev/null || not_ok "limit set"
run block add "$P:a000/120" --for 1h --reason "$(long r 60)" > /dev/null || not_ok "block add"
check_true "a ban, one of another node" wait_for 10 eval '[ "$(run -o json ban list | jq ".bans | length")" -ge 2 ]'
check_true "refused users" wait_for 10 eval '[ "$(run -o json user top | jq ".users | length")" -ge 1 ]'

# ---- each command once, with these arguments; "-" has none
CONFIG=$HUB/a/sluice.yaml
sed 's/rate: 8M bits/rate: 16M bits/' "$CONFIG" > "$LAB/new.yaml"
echo "{name: $(long m 63), match: {dport: 81}, rate: 5 packets/s}" > "$LAB/more.yaml"
printf '%s\n' $P:c0{00..15} > "$LAB/bad.txt"
python3 - "$LAB/flood.pcap" <<'PY'
import struct, sys
out = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)
for i in range(300):
    frame = (bytes(12) + b"\x08\x00" + struct.pack(">BBHHHBBH", 0x45, 0, 28, 0, 0, 64, 17, 0) +
             bytes([10, 1, 1, 1 + i % 4, 10, 9, 0, 1]) + struct.pack(">HHHH", 1000, 80, 8, 0))
    out += struct.pack("<IIII", 1772373780 + i // 10, i % 10 * 100000, len(frame), len(frame)) + frame
open(sys.argv[1], "wb").write(out)
PY
NOW=$(date +%s)
cat > "$LAB/arguments" <<ARGS
status|-
stats|-
stats|$L
explain|$P:1 --dst 2001:db8:1111:2222:3333:4444:5555:7777 --proto tcp --dport 80
explain|2001:db8:aaaa:bbbb:1111:2222:3333:4444
explain|10.2.1.7
source show|$P:1
source list|-
analyze|-
events list|-
why|$P:1
why|$RULE $V
history read|$P:1 --from $((NOW - 600)) --to $((NOW + 60))
history sources|--from $((NOW - 600)) --to $((NOW + 60))
limit list|-
limit show|$L
override list|$L
block list|-
exempt list|-
set list|-
set list|$S
ban list|-
defer list|-
pushdowns list|-
cluster show|-
rule list|-
rule show|$RULE
user list|-
user top|-
user show|$RULE $V
load-signal list|-
rollback list|-
diff|-
diff|$LAB/new.yaml
doctor|--why
check|$CONFIG
rule test|-c $RULES --domain $D --entries ${RULE#*/}=$V
replay|$LAB/flood.pcap -c $CONFIG --compare $LAB/new.yaml
suggest|--from $LAB/flood.pcap
events|--last 20 --count 20
watch|--count 3
top|-
help|-
help|limit set
completion|bash
version|-
limit set|$L burst=20,200000000
limit add|$LAB/more.yaml
limit del|$(long m 63)
override set|$L $P:2 'rate=5 packets/s,500 packets/h'
override del|$L $P:2
block add|$P:d000/120 --for 10m --reason $(long r 60)
block del|$P:d000/120
block load|$LAB/bad.txt --origin $(long o 31)
block withdraw|$(long o 31)
exempt add|$P:e000/120
exempt del|$P:e000/120
set add|$S $P:f001
set del|$S $P:f001
set replace|$S $LAB/bad.txt
feed report|$S --error '$(long E 60) $(long F 60)'
user set|$RULE $V 'limits=1000 requests/m' --for 1h
user unset|$RULE $V
user block|$RULE $V --for 1h
user exempt|$RULE $V --for 1h
user reset|$RULE $V
user unban|$RULE $V
rule set|$RULE 'limits=10 requests/m,500 requests/h'
ban del|2001:db8:aaaa:bbbb:1111:2222:3333:4444
pushdowns clear|-
load-signal set|$(long g 63) 63% --for 10s
attach|lan0 --mode generic
detach|lan0
status|-
diff|-
rollback|-
save|-
reload|-
apply|$LAB/new.yaml --confirm 2m
status|-
confirm|-
ARGS

# Standard input: the lines of a command that are too wide.
too_wide() {
	# Characters, not bytes.
	LC_ALL=C sed 's/[\x80-\xbf]//g' | case $1 in
	'limit show' | 'rule show' | completion) cat > /dev/null ;;
	diff) grep -av '^[-+ @]' ;;
	doctor) grep -av '^        Do: ' ;;
	suggest) sed '/^limits:/,$d' ;;
	*) cat ;;
	esac | awk 'length($0) > 80 && $0 ~ /^ *[^ ]+ +[^ ]/ { print length($0) ": " $0 }'
}
ask() {
	node a on_server env COLUMNS=80 timeout 20 "$BIN/sluicectl" -s "$HUB/a/control.sock" "$@"
}
# fits COMMAND [WORD...]: its text.
fits() {
	ask $1 "${@:2}" > "$LAB/text" 2> "$LAB/error"
	[ -s "$LAB/text" ] || not_ok "$*: no text: $(cat "$LAB/error")"
	too_wide "$1" < "$LAB/text" > "$LAB/wide"
	[ ! -s "$LAB/wide" ] || not_ok "$*: too wide: $(head -n 3 "$LAB/wide")"
	! grep -o '(missing:.*' "$LAB/text" > "$LAB/missing" || not_ok "$*: $(head -n 3 "$LAB/missing")"
}
is_json() {
	[ "$(ask $1 "${@:2}" -o json 2> "$LAB/error" | jq -r type | sort -u)" = object ] || not_ok "$*: -o json: $(cat "$LAB/error")"
}
# repeats COMMAND [WORD...]: JSON, one object a line; ended by head.
repeats() {
	[ "$(ask $1 "${@:2}" -o json --watch=0.1 2> "$LAB/error" | head -n 2 | jq -r type | xargs)" = "object object" ] ||
		not_ok "$* --watch: $(cat "$LAB/error")"
}
refuses() {
	ask $1 "${@:2}" --watch > "$LAB/text" 2> "$LAB/error"
	[ "$? $(cat "$LAB/text")" = "2 " ] && grep -q "^sluicectl: --watch cannot repeat '$1': [a-z]" "$LAB/error" ||
		not_ok "$*: --watch is not refused: $(cat "$LAB/error" "$LAB/text")"
}
count=0
while IFS='|' read -r command arguments <&3; do
	[ "$arguments" = - ] && arguments=
	eval "ARGV=($arguments)"
	count=$((count + 1))
	case $command in
	diff) [ -z "$arguments" ] && repeats $command || refuses $command "${ARGV[@]}" ;;
	*' list' | *' show' | status | stats | explain | analyze | user\ top | why | doctor | history\ *)
		repeats "$command" "${ARGV[@]}" ;;
	*) refuses "$command" "${ARGV[@]}" ;;
	esac
	case $command in
	top | watch) ;;		# on a terminal, which netns/who.sh has; JSON alone
	*) fits "$command" "${ARGV[@]}" ;;
	esac
	case $command in
	help | completion | top | watch) ;;
	*' list' | *' show' | status | stats | explain | analyze | user\ top | why | doctor | history\ * | \
	diff | check | rule\ test | replay | suggest | version | events) is_json "$command" "${ARGV[@]}" ;;
	esac
done 3< "$LAB/arguments"
check "commands" $count 75 200
# Each row has its line above.
check_is "no command is left out" "$(ask completion bash | sed -n "s/.*command='\([^']*\)'.*/\1/p" | sort -u |
	comm -3 - <(cut -d'|' -f1 "$LAB/arguments" | sort -u) | xargs)" ""

# ---- without the store
redis_kill main
check_true "the store is unavailable" wait_for 15 eval 'run status | grep -q UNAVAILABLE'
fits status
fits "cluster show"
fits doctor
lab_done
