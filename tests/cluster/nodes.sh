#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# nodes.sh - who is there: nodes that come, end, are killed; two with one name, and one of them ending;
# one with another secret; batches that somebody repeats; a stream full of
# garbage; what is taken back while others cannot hear it; a changed `cluster:` section. All by `status`,
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

check_true "a hears b" wait_for $SOON is alive state a b
check_is "of the other there is a lag" "$(lag_of b)" 1
check_true "status says who is there, how late, and that the store is up" eval \
	'node a ctl status | grep -A1 "^cluster  *node a, one of 2; cluster store up" | grep -q "^peers  *b [0-9]* ms"'
check_is "so does its JSON" "$(node a ctl -o json status | jq -r '.cluster.peers[].node')" b

# ---------------------------------------------------------------- two with one name

node_start c "node: b"
check_true "who has b's name says so" wait_for $SOON is true show c .bus.twice
check_true "and so does b" wait_for $SOON is true show b .bus.twice
check_true "in words" eval 'node b ctl cluster show | grep -q "another daemon uses the name of this node"'
node b ctl block add 10.2.0.1 > /dev/null
node c ctl block add 10.2.0.2 > /dev/null
check_true "the others hear the one that began last" wait_for $SOON blocked a 10.2.0.2
check_true "not the other" eval '! blocked a 10.2.0.1'
check_is "and say so, once" "$(grep -c "two daemons have the node name b" "$HUB/a/daemon.log")" 1
node_stop c
check_true "when that ends they hear b again" wait_for $SOON is alive state a b
check_true "and all it says" wait_for 15 blocked a 10.2.0.1

# ---------------------------------------------------------------- ends

node_stop b
check_true "one that ends is gone at once" wait_for $SOON is left state a b
check_is "and is not late" "$(lag_of b)" 0
node b daemon_run
check_true "back" wait_for $SOON is alive state a b
node_kill b
check_true "one that is killed is gone soon" wait_for $SOON is gone state a b
check_is "and its lag grows" "$(lag_of b)" 1
check_true "status tells" eval 'node a ctl status | grep -q "^peers  *b gone for"'
node b daemon_run
check_true "back again" wait_for $SOON is alive state a b

# ---------------------------------------------------------------- who has another secret

(umask 077 && head -c 32 /dev/urandom | base64 > "$HUB/other.key")
node_start d "secret_file: $HUB/other.key"
node d ctl block add 10.2.0.3 > /dev/null
check_true "one with another secret is told so" wait_for $SOON is true show d .bus.strangers
check_true "in words" eval 'node d ctl cluster show | grep -q "signed with a secret other than"'
check_true "and in its log" grep -q "other nodes have another secret" "$HUB/d/daemon.log"
check_is "nobody hears it" "$(show a .nodes) $(show d .nodes)" "2 1"
check_true "what it blocks is not blocked" eval '! blocked a 10.2.0.3'
check_true "it is counted" wait_for $SOON eval '[ "$(show a .bus.refused.signature)" -ge 1 ]'
node_stop d

# ---------------------------------------------------------------- what is repeated, and garbage

# Copies the last COUNT entries to the stream's end, byte for byte.
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
for _, fields in ask("XREVRANGE", "sluice:{bus}", "+", "-", "COUNT", sys.argv[3]):
    ask("XADD", "sluice:{bus}", "*", *fields)
PYTHON
}
node b ctl block del 10.2.0.1 > /dev/null
check_true "what b blocked is taken back" wait_for $SOON eval '! blocked a 10.2.0.1'
before=$(show a .bus.refused.repeated)
repeat 100
check_true "what is repeated is refused and counted" wait_for $SOON eval \
	'[ "$(show a .bus.refused.repeated)" -ge $((before + 30)) ]'
check_true "and changes nothing" eval '! blocked a 10.2.0.1'

# Entries of no signature: many, and of a megabyte.
before=$(show a .bus.refused.signature)
for _ in $(seq 2000); do
	echo "xadd sluice:{bus} * m aaaa s bbbb"
done | redis main > /dev/null
head -c 1M /dev/zero | tr '\0' x > "$LAB/big"
for _ in 1 2 3; do
	redis main -x xadd "sluice:{bus}" '*' s bbbb m < "$LAB/big" > /dev/null
done
node b ctl block add 10.2.0.4 > /dev/null
check_true "behind garbage others are heard" wait_for 15 blocked a 10.2.0.4
check_true "it is counted" eval '[ "$(show a .bus.refused.signature)" -ge $((before + 2000)) ]'
check_is "nobody has ended for it" "$(state a b) $(state b a)" "alive alive"

# ---------------------------------------------------------------- taken back while others cannot hear it

node a ctl block add 10.2.1.1 > /dev/null
check_true "b has a block of a's" wait_for $SOON blocked b 10.2.1.1
wait_for $SOON grep -q 10.2.1.1 "$HUB/b/state/replicated.json"
node_kill b
node a ctl block del 10.2.1.1 > /dev/null
# Longer away than what is read again.
redis main del "sluice:{bus}" > /dev/null
node b daemon_run
check_true "which it took back meanwhile: it is gone from b" wait_for $SOON eval '! blocked b 10.2.1.1'

node a ctl block add 10.2.1.2 > /dev/null
node b ctl block add 10.2.1.3 > /dev/null
check_true "each has the other's" wait_for $SOON eval 'blocked b 10.2.1.2 && blocked a 10.2.1.3'
check_true "and keeps it" wait_for $SOON grep -q 10.2.1.2 "$HUB/b/state/replicated.json"
redis_stop main
node_kill b
node b daemon_run
check_true "b has it again" blocked b 10.2.1.2
node b ctl block del 10.2.1.2 > /dev/null
node b ctl block del 10.2.1.3 > /dev/null
check_true "both taken back on b, which knows of no store" eval '! blocked b 10.2.1.2 && ! blocked b 10.2.1.3'
redis_again main
check_true "are gone from a when that is back" wait_for 15 eval '! blocked a 10.2.1.2 && ! blocked a 10.2.1.3'
check_true "and do not come back" eval 'sleep 1; ! blocked b 10.2.1.2 && ! blocked b 10.2.1.3'
check_true "another block stays" blocked a 10.2.0.4

# ---------------------------------------------------------------- another section

# changed LINES KEY: reload names the key, and nothing is changed.
changed() {
	node a node_config a "$1"
	check_true "$2 takes a restart, reload says" eval \
		'node a ctl reload | grep -q "^note: '"$2"' has changed: it takes effect when"'
}
changed "sync: 300ms" cluster.sync
changed "deadline: 9ms" cluster.deadline
changed "node: other" cluster.node
changed "secret_file: $HUB/other.key" cluster.secret_file
changed "redis: {urls: ['redis://10.90.0.1:7777']}" cluster.redis
(CLUSTER_REDIS=; node a node_config a)
check_true "and so does its end" eval 'node a ctl reload | grep -q "^note: cluster has changed"'
check_is "all goes on as it was" "$(show a '.node, .sync_ns' | xargs) $(state a b)" "a 100000000 alive"
lab_done
