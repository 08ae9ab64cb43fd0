#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The daemon's Redis client (through tests/cluster/redis_client.c) and real servers: TLS and whose
# certificate it takes, the user with the least rights, passwords that change, databases, Unix
# sockets, names, scripts that are flushed, replicas (wait:), a sentinel's failover.

. "$(dirname "$0")/../lib/redis.sh"
http_begin client "$@"

ASK=$REPO/build/tests/cluster/redis_client

# client NAME LINES-UNDER-cluster.redis: lines go to it with say().
declare -A CLIENT_IN=() CLIENT_OUT=()
client() {
	local name=$1

	head -c 32 /dev/urandom | base64 > "$LAB/cluster.key"
	chmod 600 "$LAB/cluster.key"
	printf 'cluster:\n  redis: {%s}\n  node: %s\n  secret_file: %s\n' "$2" "$name" \
		"$LAB/cluster.key" > "$LAB/$name.yaml"
	mkfifo "$LAB/$name.in" "$LAB/$name.out"
	"${MORTAL[@]}" "$ASK" "$LAB/$name.yaml" < "$LAB/$name.in" > "$LAB/$name.out" \
		2> "$LAB/$name.log" &
	started
	disown $!
	exec {CLIENT_IN[$name]}> "$LAB/$name.in" {CLIENT_OUT[$name]}< "$LAB/$name.out"
}

# say NAME LINE: and its answer.
say() {
	local answer

	echo "$2" >&"${CLIENT_IN[$1]}"
	read -r -t 20 answer <&"${CLIENT_OUT[$1]}" || answer="no answer: $(tail -n 2 "$LAB/$1.log")"
	echo "$answer"
}

# until_says NAME LINE TEXT
until_says() {
	[[ $(say "$1" "$2") == *$3* ]]
}

USER="user: sluice, password_file: $LAB/redis.password"

# ---------------------------------------------------------------- one server

redis_start main --unixsocket "$LAB/redis.sock" --databases 4
client plain "urls: [${REDIS_URL[main]}/2], $USER"
check_is "a command" "$(say plain "ask 1 3000 HINCRBY sluice:x x 5")" "ok 1 error 0 late 0 down 0: 5"
check_is "in the database of the url" "$(redis main -n 2 hget sluice:x x)" 5
check_is "a thousand at once" "$(say plain "ask 1000 3000 HINCRBY sluice:x x 1")" \
	"ok 1000 error 0 late 0 down 0: 1005"
check_is "one connection, with the node's name" \
	"$(redis main client list | grep -cE 'name=sluice-plain .*user=sluice( |$)')" 1
check_is "what the user may not is refused" "$(say plain "ask 1 3000 HMGET other x" | cut -d' ' -f1-9)" \
	"ok 0 error 1 late 0 down 0: NOPERM"
# One without a password, in the section and in Redis, is himself and not the default user.
redis main acl setuser free on nopass resetkeys '~free:*' -@all +ping +hget > /dev/null
client free "urls: ['${REDIS_URL[main]}'], user: free"
check_is "a user without a password" "$(say free "ask 1 3000 HGET free:x x" | cut -d' ' -f1-8)" \
	"ok 1 error 0 late 0 down 0:"
check_is "may what he may" "$(say free "ask 1 3000 HGET sluice:x x" | cut -d' ' -f1-9)" \
	"ok 0 error 1 late 0 down 0: NOPERM"
check_is "a script, which nobody has loaded" "$(say plain "script 100 3000 return 7")" \
	"ok 100 error 0 late 0 down 0: 7"
redis main script flush > /dev/null
check_is "nor has any more" "$(say plain "script 100 3000 return 7")" \
	"ok 100 error 0 late 0 down 0: 7"
check_is "an answer that was there while we slept is not late" \
	"$(say plain "asleep 3000 100 PING")" "ok 3000 error 0 late 0 down 0: PONG"
client local "urls: ['unix:$LAB/redis.sock'], $USER"
check_is "over a Unix socket" "$(say local "ask 1 3000 PING")" "ok 1 error 0 late 0 down 0: PONG"
client named "urls: ['redis://localhost:${REDIS_PORT[main]}'], $USER"
check_true "by name" wait_for 5 until_says named "ask 1 3000 PING" "ok 1"

# The password changes, and later the file.
redis main acl setuser sluice resetpass ">another" > /dev/null
redis main client kill user sluice > /dev/null
check_true "a password that changed is noticed" wait_for 5 until_says plain state "refuses cluster.redis.user"
check_is "commands fail at once" "$(say plain "ask 1 3000 PING" | cut -d: -f1)" \
	"ok 0 error 0 late 0 down 1"
echo another > "$LAB/redis.password"
check_true "and read again" wait_for 8 until_says plain state "up well"

# Restarted empty, in place.
redis_kill main
check_true "a server that died is noticed" wait_for 5 until_says plain state "away cannot be reached"
redis_again main
redis main acl setuser sluice resetpass ">another" > /dev/null
check_true "and found again" wait_for 8 until_says plain "ask 1 3000 PING" "ok 1"
check_is "with its scripts" "$(say plain "script 10 3000 return 7")" "ok 10 error 0 late 0 down 0: 7"

# ---------------------------------------------------------------- TLS

sed -n "s/^user sluice.*>\([^ ]*\) .*/\1/p" "$LAB/redis-users.acl" > "$LAB/redis.password"
redis_tls_start secure
client good "urls: ['${REDIS_URL[secure]}'], $USER, tls: {ca: $LAB/tls/ca.crt}"
check_is "TLS, by address" "$(say good "ask 100 3000 PING")" "ok 100 error 0 late 0 down 0: PONG"
client host "urls: ['rediss://localhost:${REDIS_PORT[secure]}'], $USER, tls: {ca: $LAB/tls/ca.crt}"
check_true "TLS, by name" wait_for 5 until_says host "ask 1 3000 PING" "ok 1"
client other "urls: ['${REDIS_URL[secure]}'], $USER, tls: {ca: $LAB/tls/ca.crt, name: redis.example}"
check_is "a certificate of another name is refused" "$(say other "ask 1 3000 PING" | cut -d: -f1)" \
	"ok 0 error 0 late 0 down 1"
check_true "and why is said" grep -q "ertificate rejected: .*mismatch" "$LAB/other.log"
client system "urls: ['${REDIS_URL[secure]}'], $USER, tls: {}"
check_is "one of an authority nobody knows, too" "$(say system "ask 1 3000 PING" | cut -d: -f1)" \
	"ok 0 error 0 late 0 down 1"
check_true "and why" grep -q "ertificate rejected: ." "$LAB/system.log"
client open "urls: ['redis://$REDIS_IP:${REDIS_PORT[secure]}'], $USER"
check_is "without TLS nothing" "$(say open "ask 1 3000 PING" | cut -d: -f1)" "ok 0 error 0 late 0 down 1"
cp "$LAB/tls/ca.crt" "$LAB/later.crt"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=none" \
	-keyout "$LAB/other.key" -out "$LAB/changes.crt" 2> /dev/null
client changes "urls: ['${REDIS_URL[secure]}'], $USER, tls: {ca: $LAB/changes.crt}"
check_is "an authority that is not the server's" "$(say changes "ask 1 3000 PING" | cut -d: -f1)" \
	"ok 0 error 0 late 0 down 1"
mv "$LAB/later.crt" "$LAB/changes.crt"
check_true "is read again when it is put right" wait_for 8 until_says changes "ask 1 3000 PING" "ok 1"
redis_tls_start strict --tls-auth-clients yes
client bare "urls: ['${REDIS_URL[strict]}'], $USER, tls: {ca: $LAB/tls/ca.crt}"
check_is "where a client needs a certificate, one without" \
	"$(say bare "ask 1 3000 PING" | cut -d: -f1)" "ok 0 error 0 late 0 down 1"
client cert "urls: ['${REDIS_URL[strict]}'], $USER, tls: {ca: $LAB/tls/ca.crt, cert: $LAB/tls/client.crt, key: $LAB/tls/client.key}"
check_is "and one with" "$(say cert "ask 1 3000 PING")" "ok 1 error 0 late 0 down 0: PONG"

# A Redis Cluster with TLS: so are the servers that it names. (What moved is found: redis_client takes all for slot 0's.)
at=()
for i in 1 2 3; do
	redis_tls_start t$i --cluster-enabled yes --tls-cluster yes --tls-replication yes
	at+=("$REDIS_IP:${REDIS_PORT[t$i]}")
done
# shellcheck disable=SC2086
redis-cli ${REDIS_TLS[t1]} --cluster create "${at[@]}" --cluster-yes > "$LAB/create" 2>&1 ||
	not_ok "redis-cli --cluster create: $(tail -n 2 "$LAB/create")"
whole() { ! for i in 1 2 3; do redis t$i cluster info; done | grep -q cluster_state:fail; }
check_true "a cluster with TLS" wait_for 10 whole
client slots "urls: ['${REDIS_URL[t1]}'], mode: cluster, $USER, tls: {ca: $LAB/tls/ca.crt}"
for key in a b c d; do
	say slots "ask 10 3000 HINCRBY sluice:{$key} n 1"
done > "$LAB/slots"
check_is "keys of all its servers" "$(sort "$LAB/slots" | uniq -c | xargs)" "4 ok 10 error 0 late 0 down 0: 10"
check_is "on all of them" "$(for i in 1 2 3; do redis t$i dbsize; done | grep -c '^0$')" 0

# ---------------------------------------------------------------- replicas, sentinels

redis_start first --min-replicas-to-write 0
redis_replica second first
# In sync is not yet sent to: that begins a second later, with its first REPLCONF ACK.
redis first set lab 1 > /dev/null
check_true "what is written gets there" wait_for 10 eval '[ "$(redis second get lab)" = 1 ]'
client sure "urls: [${REDIS_URL[first]}], $USER, wait: 1"
check_is "a replica has it" "$(say sure "durable 100 1000 HINCRBY sluice:n n 1")" \
	"ok 100 error 0 late 0 down 0: 100"
check_is "indeed" "$(redis second hget sluice:n n)" 100
redis_pause second
check_is "none has it: said so, and done all the same" \
	"$(say sure "durable 1 1000 HINCRBY sluice:n n 1")" \
	"ok 0 error 1 late 0 down 0: NOREPLICAS 0 of 1 have it"
redis_resume second
check_true "again" wait_for 5 until_says sure "durable 1 1000 HINCRBY sluice:n n 1" "ok 1"

redis_sentinel s1 first 1
check_true "the sentinel knows both" wait_for 15 eval \
	'[ "$(redis s1 sentinel replicas mymaster | grep -c "^ip$")" = 1 ]'
client watched "urls: ['redis://$REDIS_IP:1', ${REDIS_URL[s1]}], mode: sentinel, $USER"
check_is "the master, by a sentinel" "$(say watched "ask 10 3000 HINCRBY sluice:n n 1" | cut -d: -f1)" \
	"ok 10 error 0 late 0 down 0"
check_true "a failover" wait_for 15 eval '[ "$(redis s1 sentinel failover mymaster)" = OK ]'
check_true "the other after a failover" wait_for 15 eval \
	'until_says watched state "127.0.0.1:${REDIS_PORT[second]} up"'
check_true "takes writes" wait_for 8 until_says watched "ask 1 3000 HINCRBY sluice:n n 1" "ok 1"
redis_kill second
check_true "and back, after that one died" wait_for 20 eval \
	'until_says watched state "127.0.0.1:${REDIS_PORT[first]} up"'
check_true "takes writes, too" wait_for 8 until_says watched "ask 1 3000 HINCRBY sluice:n n 1" "ok 1"

lab_done
