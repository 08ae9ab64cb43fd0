#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# nodes.sh - membership: nodes that join, leave, are killed; two with one name, and one of them leaving;
# one with another secret; batches that an attacker repeats; a stream full of garbage; blocks that are
# withdrawn while others cannot receive it; a changed `cluster:` section. All by `status`,
# `cluster show` and metrics.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin nodes "$@"
http_rules api <<'YAML'
domain: api
descriptors: [{key: user, limits: ['10 requests/h'], scope: cluster}]
YAML
NODE_HTTP='  workers: 1'
SOON=5

redis_start main
for name in a b; do
	node_start $name "sync: 100ms"
done

# show NODE FILTER: of `cluster show`.
show() {
	node "$1" ctl -o json cluster show | jq -r "$2"
}
# state NODE PEER
state() {
	show "$1" ".peers[] | select(.node == \"$2\") | if .alive then \"alive\" elif .left then \"left\" else \"gone\" end"
}
is() {
	[ "$("${@:2}")" = "$1" ]
}
lag_of() {
	node a metrics | grep -c "^sluice_peer_lag_seconds{peer=\"$1\"}"
}
blocked() {
	node "$1" ctl -o json block list | jq -e --arg p "$2" '.entries[] | select(.prefix == $p)' > /dev/null
}

check_true "a receives from b" wait_for $SOON is alive state a b
check_is "the other node has a lag" "$(lag_of b)" 1
check_true "status lists the node, its lag, and that the store is up" eval \
	'node a ctl status | grep -A1 "^cluster  *node a, one of 2; cluster store up" | grep -q "^peers  *b [0-9]* ms"'
check_is "the JSON of status has it, too" "$(node a ctl -o json status | jq -r '.cluster.peers[].node')" b

# ---------------------------------------------------------------- rules that differ

# differs NODE PEER PATTERN: what `cluster show` prints on a node of another one.
differs() {
	node "$1" ctl cluster show | grep -qE "^DIFFERS +node $2 since [-0-9TZ:]+: $3\$"
}
differs_metric() {
	is "$3" eval "node $1 metrics | sed -n 's/^sluice_peer_differs{peer=\"$2\"} //p'"
}
found() {
	node "$1" ctl doctor -o json | jq -r '.checks[] | select(.check == "cluster") | "\(.level): \(.found)"'
}
same() {
	is null show a '.peers[] | select(.node == "b").differs' && is null show b '.peers[] | select(.node == "a").differs'
}
check_true "nodes with the same rules do not differ" eval 'same && differs_metric a b 0 && differs_metric b a 0'
node a ctl rule set api/user limits='20 requests/h' > /dev/null
check_true "a rule that was changed on a: b names it" wait_for $SOON differs b a 'rule api/user: 10 requests/h here, 20 requests/h there'
check_true "and so does the node that was changed" wait_for $SOON differs a b 'rule api/user: 20 requests/h here, 10 requests/h there'
check_true "the metric has the node" wait_for $SOON eval 'differs_metric a b 1 && differs_metric b a 1'
check_true "doctor, too" eval '[[ "$(found b)" == "warn: limits or rules differ from node a'"'"'s since "*": rule api/user: 10 requests/h here, 20 requests/h there" ]]'
node b ctl limit add - > /dev/null <<< '{name: web, rate: 100 packets/s}'
check_true "a limit that one node has alone is named as well" wait_for $SOON differs a b \
	'limit web: there alone; rule api/user: 20 requests/h here, 10 requests/h there'
node b ctl rule set api/user limits='20 requests/h' > /dev/null
check_true "a difference that ends is named no more" wait_for $SOON differs b a 'limit web: here alone'
node a ctl limit add - > /dev/null <<< '{name: web, rate: 100 packets/s, mode: shadow}'
check_true "equal rates, other keys" wait_for $SOON differs a b 'limit web'
for name in a b; do
	node $name ctl limit del web > /dev/null
	node $name ctl rule set api/user limits='10 requests/h' > /dev/null
done
check_true "set back: they do not differ" wait_for $SOON eval 'same && differs_metric a b 0 && differs_metric b a 0'
check_true "doctor is content" is "ok: the store is up, 2 nodes" found b

# ---------------------------------------------------------------- two with one name

node_start c "node: b"
check_true "the second node of that name reports it" wait_for $SOON is true show c .bus.twice
check_true "so does the first" wait_for $SOON is true show b .bus.twice
check_true "cluster show has it in words" eval 'node b ctl cluster show | grep -q "another daemon uses the name of this node"'
node b ctl block add 10.2.0.1 > /dev/null
node c ctl block add 10.2.0.2 > /dev/null
check_true "the others accept the one that started last" wait_for $SOON blocked a 10.2.0.2
check_true "and nothing of the other" eval '! blocked a 10.2.0.1'
check_is "they log it once" "$(grep -c "two daemons have the node name b" "$HUB/a/daemon.log")" 1
node_stop c
check_true "when that one has left they accept b again" wait_for $SOON is alive state a b
check_true "and all blocks of b" wait_for 15 blocked a 10.2.0.1

# ---------------------------------------------------------------- ends

node_stop b
check_true "a node that leaves is gone at once" wait_for $SOON is left state a b
check_is "it does not count as late" "$(lag_of b)" 0
node b daemon_run
check_true "it is back" wait_for $SOON is alive state a b
node_kill b
check_true "a node that is killed is gone soon" wait_for $SOON is gone state a b
check_is "its lag grows" "$(lag_of b)" 1
check_true "status shows it as gone" eval 'node a ctl status | grep -q "^peers  *b gone for"'
check_is "so does doctor" "$(node a ctl doctor -o json | jq -r '.checks[] | select(.check == "cluster") | "\(.level): \(.found)"')" \
	"warn: the store is up; node b is silent"
node b daemon_run
check_true "it is back again" wait_for $SOON is alive state a b

# ---------------------------------------------------------------- another secret

(umask 077 && head -c 32 /dev/urandom | base64 > "$HUB/other.key")
node_start d "secret_file: $HUB/other.key"
node d ctl block add 10.2.0.3 > /dev/null
check_true "a node with another secret reports it" wait_for $SOON is true show d .bus.strangers
check_true "cluster show has it in words" eval 'node d ctl cluster show | grep -q "signed with a secret other than"'
check_true "the log has it" grep -q "other nodes have another secret" "$HUB/d/daemon.log"
check_is "no other node counts it" "$(show a .nodes) $(show d .nodes)" "2 1"
check_true "its blocks are not applied" eval '! blocked a 10.2.0.3'
check_true "its batches are counted as refused" wait_for $SOON eval '[ "$(show a .bus.refused.signature)" -ge 1 ]'
node_stop d

# ---------------------------------------------------------------- repeated batches, and garbage

# Appends the last COUNT entries of node b to the stream again, byte for byte. Node a does not count its own.
repeat() {
	python3 - "$REDIS_IP" "${REDIS_PORT[main]}" "$1" <<'PYTHON'
import socket, sys

s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
f = s.makefile("rwb")
def read():
    line = f.readline()
    kind, rest = line[:1], line[1:].strip()
    if kind == b"$":
        return f.read(int(rest) + 2)[:-2]
    return [read() for _ in range(int(rest))] if kind == b"*" else rest
def ask(*args):
    f.write(b"*%d\r\n" % len(args))
    for a in args:
        a = a if isinstance(a, bytes) else a.encode()
        f.write(b"$%d\r\n%s\r\n" % (len(a), a))
    f.flush()
    return read()
of_b = [fields for _, fields in ask("XREVRANGE", "sluice:{bus}", "+", "-", "COUNT", "1000")
        if b'"node":"b"' in b"".join(fields)]
for fields in of_b[:int(sys.argv[3])]:
    ask("XADD", "sluice:{bus}", "*", *fields)
PYTHON
}
node b ctl block del 10.2.0.1 > /dev/null
check_true "a block is withdrawn by the node that set it" wait_for $SOON eval '! blocked a 10.2.0.1'
before=$(show a .bus.refused.repeated)
repeat 30
check_true "repeated batches are refused and counted" wait_for $SOON eval \
	'[ "$(show a .bus.refused.repeated)" -ge $((before + 30)) ]'
check_true "they change nothing" eval '! blocked a 10.2.0.1'

# Unsigned entries: many, and of a megabyte.
before=$(show a .bus.refused.signature)
for _ in $(seq 2000); do
	echo "xadd sluice:{bus} * m aaaa s bbbb"
done | redis main > /dev/null
# Counted before the large ones: a reply that is too large is skipped with all entries in it.
check_true "the garbage is counted" wait_for 15 eval '[ "$(show a .bus.refused.signature)" -ge $((before + 2000)) ]'
head -c 1M /dev/zero | tr '\0' x > "$LAB/big"
for _ in 1 2 3; do
	redis main -x xadd "sluice:{bus}" '*' s bbbb m < "$LAB/big" > /dev/null
done
node b ctl block add 10.2.0.4 > /dev/null
check_true "batches behind the garbage are received" wait_for 15 blocked a 10.2.0.4
check_is "no node is lost by it" "$(state a b) $(state b a)" "alive alive"

# ---------------------------------------------------------------- withdrawn while others are unreachable

node a ctl block add 10.2.1.1 > /dev/null
check_true "b has a block of node a" wait_for $SOON blocked b 10.2.1.1
wait_for $SOON grep -q 10.2.1.1 "$HUB/b/state/replicated.json"
node_kill b
node a ctl block del 10.2.1.1 > /dev/null
# Unavailable for longer than b reads back.
redis main del "sluice:{bus}" > /dev/null
node b daemon_run
check_true "a withdrew the block meanwhile: b removes it" wait_for $SOON eval '! blocked b 10.2.1.1'

node a ctl block add 10.2.1.2 > /dev/null
node b ctl block add 10.2.1.3 > /dev/null
check_true "each has the other's block" wait_for $SOON eval 'blocked b 10.2.1.2 && blocked a 10.2.1.3'
check_true "and writes it to its state" wait_for $SOON grep -q 10.2.1.2 "$HUB/b/state/replicated.json"
redis_stop main
node_kill b
node b daemon_run
check_true "b has it after a restart" blocked b 10.2.1.2
node b ctl block del 10.2.1.2 > /dev/null
node b ctl block del 10.2.1.3 > /dev/null
check_true "both are withdrawn on b, without a store" eval '! blocked b 10.2.1.2 && ! blocked b 10.2.1.3'
redis_again main
check_true "a removes them once the store is back" wait_for 15 eval '! blocked a 10.2.1.2 && ! blocked a 10.2.1.3'
check_true "they do not come back" eval 'sleep 1; ! blocked b 10.2.1.2 && ! blocked b 10.2.1.3'
check_true "another block stays" blocked a 10.2.0.4

# ---------------------------------------------------------------- a changed section

# changed LINES KEY: reload names the key, and changes nothing.
changed() {
	node a node_config a "$1"
	check_true "$2 needs a restart, and reload notes it" eval \
		'node a ctl reload | grep -q "^note: '"$2"' has changed: it takes effect when"'
}
changed "sync: 300ms" cluster.sync
changed "deadline: 9ms" cluster.deadline
changed "node: other" cluster.node
changed "secret_file: $HUB/other.key" cluster.secret_file
changed "redis: {urls: ['redis://10.90.0.1:7777']}" cluster.redis.urls
(CLUSTER_REDIS=; node a node_config a)
check_true "so does the end of the section" eval 'node a ctl reload | grep -q "^note: cluster has changed"'
check_is "all runs on as before" "$(show a '.node, .sync_ns' | xargs) $(state a b)" "a 100000000 alive"
lab_done
