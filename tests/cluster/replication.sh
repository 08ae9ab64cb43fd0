#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# replication.sh - three daemons, one Redis: a block, ban or push-down of one holds on all within two
# sync intervals, ends on all, and is there again after a restart; a node passes its exempt sources
# whatever the others publish; writing into Redis without the secret changes nothing.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin replication "$@"

EXEMPT='10.1.7.0/24, 10.1.2.64/26'
http_rules api <<'YAML'
  - key: user
    limits: ['10 requests/h']
    push_down: {after: 5 rejections/10s, steps: [limit 50 packets/s], step: 60s, down: 60s, max: 1h}
  - key: brief
    limits: ['10 requests/h']
    push_down: {after: 5 rejections/10s, steps: [limit 50 packets/s], step: 60s, down: 8s, max: 1h}
  - key: attacker
    limits: ['10 requests/h']
    push_down: {after: 5 rejections/10s, steps: [drop], step: 60s, down: 60s, max: 1h}
  - key: owed
    limits: ['50 requests/d']
    consistency: {write_back: 60s}
YAML
# Entries that a check needs last a minute: longer than any check takes on a busy machine. Only entries
# that must end by themselves are brief, and nothing is measured meanwhile.
HTTP_TOP="interfaces: [{name: s0, mode: native}]
limits:
  - {name: lasting, match: {src: 10.1.2.0/24}, rate: 10 packets/m, burst: 10, accounting: exact,
     ban: {after: 5 drops/10s, for: 60s, max: 1h, spoofable: yes}}
  - {name: brief, match: {src: 10.1.3.0/24}, rate: 10 packets/m, burst: 10, accounting: exact,
     ban: {after: 5 drops/10s, for: 8s, max: 1h, spoofable: yes}}"
NODE_HTTP='  workers: 1
  push_down: {mode: enforce, max_share: 100%, min_requests: 5}'
# Two sync intervals, and the delays of this machine's CPUs.
SYNC='sync: 100ms'
SOON=3

redis_start main
for name in a b c; do
	node_add $name
	node_link $name
done
node_start a "$SYNC"
node_start b "$SYNC"
(HTTP_TOP="exempt: [$EXEMPT]
$HTTP_TOP"; node c node_config c "$SYNC")
node c daemon_run

# alive NODE: how many other nodes it counts as alive.
alive() {
	node "$1" ctl -o json cluster show | jq '[.peers[] | select(.alive)] | length'
}
all_there() {
	[ "$(alive a) $(alive b) $(alive c)" = "2 2 2" ]
}
check_true "all nodes are alive to each other" wait_for 10 all_there
check_is "the store is up" "$(node a metric sluice_store_up)" 1
check "the last message of a node is recent" "$(node a metrics | awk '/^sluice_peer_lag_seconds{peer="b"}/ { print $2 }')" 0 5
check_true "status shows nodes and store" eval 'node a ctl status | grep -q "^cluster  *node a, one of 3; cluster store up"'
check_true "metrics are well-formed" eval 'node a metrics | sed "1,/^\$/d" | promtool check metrics > /dev/null 2>&1'

# ---------------------------------------------------------------- blocks

# block_of NODE PREFIX: where the block comes from: a node, "live", or nothing.
block_of() {
	node "$1" ctl -o json block list |
		jq -r --arg p "$2" '.entries[] | select(.prefix == $p) | .node // (if .live then "live" else "file" end)'
}
blocks_are() {
	[ "$(block_of a "$1") $(block_of b "$1") $(block_of c "$1")" = "$2" ]
}
# judged NODE COUNT: so many frames were judged in all.
judged() {
	[ "$(node "$1" metric sluice_packets_total)" -ge "$2" ]
}
# passes NODE SOURCE [COUNT]: how many of ten frames pass.
passes() {
	local before

	node "$1" sink_start s0
	before=$(node "$1" metric sluice_packets_total)
	node "$1" blast "$HUB/$1/blast" --src "$2" --dst $SERVER4 --count "${3:-10}"
	# On a busy machine frames wait before they are judged.
	wait_for 15 judged "$1" $((before + ${3:-10})) ||
		echo "# of ${3:-10} frames $(($(node "$1" metric sluice_packets_total) - before)) were judged," \
			"$(node "$1" ring_drops s0) lost in the ring" >&2
	node "$1" sink_stop s0
	node "$1" packets_passed s0 "$2"
}

node a ctl block add 10.1.1.1 --reason "a test" > /dev/null
check_true "a block holds on all nodes" wait_for $SOON blocks_are 10.1.1.1 "live a a"
check_is "it has its reason" "$(node b ctl -o json block list | jq -r '.entries[0].reason')" "a test"
check_is "its frames are dropped on another node" "$(passes b 10.1.1.1)" 0
check_is "a neighbour's are not" "$(passes b 10.1.1.3)" 10
check_is "it is no live change there" "$(node b ctl -o json status | jq .live_changes)" 0
check_true "nor part of what save writes" eval '! node b ctl diff | grep -q 10.1.1.1'

node a ctl block add 10.1.7.1 > /dev/null
check_true "a source that is exempt on one node is blocked" wait_for $SOON blocks_are 10.1.7.1 "live a a"
check_is "the others drop its frames" "$(passes b 10.1.7.1)" 0
check_is "that node does not" "$(passes c 10.1.7.1)" 10
node c ctl block del 10.1.7.1 > /dev/null
check_true "removing the block on any node removes it on all" wait_for $SOON blocks_are 10.1.7.1 "  "

node b ctl block add 10.1.1.4 --for 8s > /dev/null
check_true "a block with a deadline" wait_for $SOON blocks_are 10.1.1.4 "b live b"
check_true "it ends on all" wait_for 11 blocks_are 10.1.1.4 "  "
node a ctl exempt add 10.1.1.9 > /dev/null
node a ctl block add 10.0.0.0/7 --force > /dev/null
node a ctl block add 10.1.1.5 > /dev/null
check_true "another block" wait_for $SOON blocks_are 10.1.1.5 "live a a"
check_is "exemptions hold on their own node only" "$(node b ctl -o json exempt list | jq '.entries | length')" 0
check_is "a prefix that is too wide is not published" "$(block_of b 10.0.0.0/7)" ""
node a ctl block del 10.0.0.0/7 > /dev/null

# ---------------------------------------------------------------- bans

banned_on_all() {
	node a banned "$1" && node b banned "$1" && node c banned "$1"
}
banned_nowhere() {
	! node a banned "$1" && ! node b banned "$1" && ! node c banned "$1"
}
node a blast "$HUB/blast" --src 10.1.2.1 --dst $SERVER4 --count 30
check_true "a ban holds on all nodes" wait_for $SOON banned_on_all 10.1.2.1
check_is "ban list names the node and the limit" "$(node b ctl -o json ban list | jq -r '.bans[0] | .node, .limit' | xargs)" "a lasting"
check_is "it drops frames on another node" "$(passes b 10.1.2.1)" 0
check_true "a neighbour is not banned" eval '! node b banned 10.1.2.2'
node a blast "$HUB/blast" --src 10.1.2.65 --dst $SERVER4 --count 30
check_true "a source that is exempt on one node is banned on the others" wait_for $SOON eval 'node a banned 10.1.2.65 && node b banned 10.1.2.65'
check_true "that node does not ban it" eval '! node c banned 10.1.2.65'
check_is "and passes its frames" "$(passes c 10.1.2.65 30)" 30
node a blast "$HUB/blast" --src 10.1.3.1 --dst $SERVER4 --count 30
check_true "a brief ban" wait_for $SOON banned_on_all 10.1.3.1
check_true "it ends on all" wait_for 13 banned_nowhere 10.1.3.1
node b blast "$HUB/blast" --src 10.1.2.3 --dst $SERVER4 --count 30
check_true "another ban" wait_for $SOON banned_on_all 10.1.2.3
node c ctl ban del 10.1.2.3 > /dev/null
check_true "a ban lifted on one node is lifted on all" wait_for $SOON banned_nowhere 10.1.2.3

# ---------------------------------------------------------------- push-downs

# step NODE SOURCE: its action, and the node that began it.
step() {
	node "$1" ctl -o json pushdowns list |
		jq -r --arg s "$2" '.pushdowns[] | select(.source == $s) | .step + ":" + (.node // "")'
}
steps_are() {
	[ "$(step a "$1") $(step b "$1") $(step c "$1")" = "$2" ]
}
# The packet tier pushes down only sources that it has seen.
ip -n "$LAB_ID-a-c" addr add 10.1.5.1/16 dev c0
node a on_server python3 -m http.server --bind $SERVER4 8080 > /dev/null 2>&1 &
started
fetch() {
	node a on_client curl -s -o /dev/null -m 2 --interface 10.1.5.1 http://$SERVER4:8080/
}
check_true "a client connects" wait_for 10 fetch
# abuse [KEY]
abuse() {
	local body

	body=$(check_body api "${1:-user}=mallory" --source '"10.1.5.1"')
	for _ in $(seq 24); do
		node a request --unix-socket "$HUB/a/http.sock" -d "$body" /v1/check
	done > /dev/null
}
# may_pass NODE SOURCE: what 50 a second with a burst of 50 allow from the first frame sent to the
# last that passed.
may_pass() {
	node "$1" pass_times s0 "$2" | awk -v start="$(field "$HUB/$1/blast" start)" \
		'{ print 51 + 50 * ($2 > start ? $2 - start : 0) }'
}
abuse brief
check_true "a push-down holds on all nodes" wait_for $SOON steps_are 10.1.5.1 "limit: limit:a limit:a"
check_true "it ends on all" wait_for 19 steps_are 10.1.5.1 "  "
fetch
abuse
check_true "again" wait_for $SOON steps_are 10.1.5.1 "limit: limit:a limit:a"
# Fewer than a veth's ring holds: none is lost before it is judged.
count=$(passes b 10.1.5.1 240)
check "its 50 a second hold on another node" "$count" 50 "$(may_pass b 10.1.5.1)"
check_is "a neighbour is not limited" "$(passes b 10.1.5.2 240)" 240
node b ctl pushdowns clear 10.1.5.1 > /dev/null
check_true "a push-down cleared on one node is cleared on all" wait_for $SOON steps_are 10.1.5.1 "  "
pushed_to_drop() {
	fetch
	abuse attacker
	wait_for $SOON steps_are 10.1.5.1 "drop: drop:a drop:a"
}
check_true "a push-down with drop is on all nodes" wait_for 20 pushed_to_drop
check_is "nothing of the source passes" "$(passes a 10.1.5.1) $(passes b 10.1.5.1) $(passes c 10.1.5.1)" "0 0 0"
check_is "a neighbour passes" "$(passes b 10.1.5.2)" 10
node c ctl pushdowns clear 10.1.5.1 > /dev/null
check_true "until it is cleared" wait_for $SOON steps_are 10.1.5.1 "  "

# ---------------------------------------------------------------- restarts, a split

check_true "before: a block on all nodes" blocks_are 10.1.1.5 "live a a"
node_kill b
check_true "a node that is gone is missed" wait_for 10 eval '[ "$(alive a)" = 1 ]'
node a ctl block add 10.1.1.6 > /dev/null
node b daemon_run
check_is "after a restart blocks are in force at once" "$(block_of b 10.1.1.5)" a
check_true "a block set meanwhile is received" wait_for 10 blocks_are 10.1.1.6 "live a a"
check_true "the node is not missed any more" wait_for 10 all_there

node c on_server ip link set lan0 down
check_true "one node is cut off" wait_for 10 eval '[ "$(alive a)" = 1 ]'
node c ctl block add 10.1.1.7 > /dev/null
node b ctl block del 10.1.1.5 > /dev/null
check_is "it goes on by itself" "$(block_of c 10.1.1.7)" live
node c on_server ip link set lan0 up
check_true "after the split each node's blocks are on all" wait_for 15 blocks_are 10.1.1.7 "c c live"
check_true "a block removed meanwhile is removed on all" wait_for 15 blocks_are 10.1.1.5 "  "

# ---------------------------------------------------------------- unflushed counts of a node that stops

check_is "a write_back limit with an interval of a minute" "$(node b many 30 api owed=1)" 30
node_stop b
check_is "a node that stops flushes its counts" "$(node a many 60 api owed=1)" 20
node b daemon_run

# ---------------------------------------------------------------- nodes without an HTTP tier

# Without an HTTP tier a node still applies the push-downs of others.
(NODE_HTTP=; node c node_config c "$SYNC")
node_kill c
node c daemon_run
check_true "a node without an HTTP tier" wait_for 15 all_there
fetch
abuse
check_true "it pushes down, too" wait_for $SOON steps_are 10.1.5.1 "limit: limit:a limit:a"
node a ctl pushdowns clear 10.1.5.1 > /dev/null
check_true "and ends it" wait_for $SOON steps_are 10.1.5.1 "  "

# ---------------------------------------------------------------- a writer without the secret

forge() {
	redis main xadd "sluice:{bus}" '*' m "$1" s "$2" > /dev/null
}
now_us=$(($(date +%s%N) / 1000))
forge '{"node":"a","boot_us":'$now_us',"number":1,"sent_us":'$now_us',"sync_us":200000,"version":"1","messages":[{"kind":"blocks","until_us":'$((now_us + 60000000))',"body":{"add":[{"source":"10.1.1.200","at_us":'$now_us',"until_us":0,"reason":""}]}}]}' 0123456789abcdef0123456789abcdef
forge x y
redis main xadd "sluice:{bus}" '*' one 1 > /dev/null
node a ctl block add 10.1.1.8 > /dev/null
check_true "batches of others are still received" wait_for $SOON blocks_are 10.1.1.8 "live a a"
check_is "a forged block is not applied" "$(block_of b 10.1.1.200)" ""
forged() { [ "$(node b ctl -o json cluster show | jq .bus.refused.signature)" = 3 ]; }
check_true "forged batches are counted" wait_for $SOON forged
redis main del "sluice:{bus}" > /dev/null
redis main set "sluice:{bus}" 1 > /dev/null
check_true "cluster show reports a key that is no stream" wait_for 5 eval 'node b ctl cluster show | grep -q WRONGTYPE'
redis main del "sluice:{bus}" > /dev/null
node a ctl block add 10.1.1.10 > /dev/null
check_true "it recovers afterwards" wait_for 15 blocks_are 10.1.1.10 "live a a"

lab_done
