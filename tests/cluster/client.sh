#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The daemon's Redis client (through tests/cluster/redis_client.c) and real servers: TLS and certificate
# checks, the user with the fewest rights, passwords that change, databases, Unix sockets, names,
# flushed scripts, replicas (wait:), a sentinel's failover.

. "$(dirname "$0")/../lib/redis.sh"
http_begin client "$@"

ASK=$REPO/build/tests/cluster/redis_client

# client NAME LINES-UNDER-cluster.redis: starts one; send_line() writes lines to it.
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

# send_line NAME LINE: prints its reply.
send_line() {
	local answer

	echo "$2" >&"${CLIENT_IN[$1]}"
	read -r -t 20 answer <&"${CLIENT_OUT[$1]}" || answer="no answer: $(tail -n 2 "$LAB/$1.log")"
	echo "$answer"
}

# until_reply NAME LINE TEXT
until_reply() {
	[[ $(send_line "$1" "$2") == *$3* ]]
}

USER="user: sluice, password_file: $LAB/redis.password"

# ---------------------------------------------------------------- one server

redis_start main --unixsocket "$LAB/redis.sock" --databases 4
client plain "urls: [${REDIS_URL[main]}/2], $USER"
check_is "a command gets its reply" "$(send_line plain "ask 1 3000 HINCRBY sluice:x x 5")" "ok 1 error 0 late 0 down 0: 5"
check_is "it used the database of the url" "$(redis main -n 2 hget sluice:x x)" 5
check_is "a thousand commands at once" "$(send_line plain "ask 1000 3000 HINCRBY sluice:x x 1")" \
	"ok 1000 error 0 late 0 down 0: 1005"
check_is "one connection, with the node's name" \
	"$(redis main client list | grep -cE 'name=sluice-plain .*user=sluice( |$)')" 1
check_is "a command outside the user's rights is refused" "$(send_line plain "ask 1 3000 HMGET other x" | cut -d' ' -f1-9)" \
	"ok 0 error 1 late 0 down 0: NOPERM"
check_is "nor is one to its keys that nodes never send" "$(send_line plain "ask 1 3000 GET sluice:x" | cut -d' ' -f1-9)" \
	"ok 0 error 1 late 0 down 0: NOPERM"
# A user without a password, in the section and in Redis, logs in as itself, not as the default user.
redis main acl setuser free on nopass resetkeys '~free:*' -@all +ping +hget > /dev/null
client free "urls: ['${REDIS_URL[main]}'], user: free"
check_is "a user without a password" "$(send_line free "ask 1 3000 HGET free:x x" | cut -d' ' -f1-8)" \
	"ok 1 error 0 late 0 down 0:"
check_is "that user may use its own keys" "$(send_line free "ask 1 3000 HGET sluice:x x" | cut -d' ' -f1-9)" \
	"ok 0 error 1 late 0 down 0: NOPERM"
check_is "a script that is not loaded yet" "$(send_line plain "script 100 3000 return 7")" \
	"ok 100 error 0 late 0 down 0: 7"
redis main script flush > /dev/null
check_is "no server has a script left after the flush" "$(send_line plain "script 100 3000 return 7")" \
	"ok 100 error 0 late 0 down 0: 7"
check_is "a reply that arrived while the client slept is not late" \
	"$(send_line plain "asleep 3000 100 PING")" "ok 3000 error 0 late 0 down 0: PONG"
client local "urls: ['unix:$LAB/redis.sock'], $USER"
check_is "over a Unix socket" "$(send_line local "ask 1 3000 PING")" "ok 1 error 0 late 0 down 0: PONG"
client named "urls: ['redis://localhost:${REDIS_PORT[main]}'], $USER"
check_true "by host name" wait_for 5 until_reply named "ask 1 3000 PING" "ok 1"

# The password changes in Redis, and later in the file.
redis main acl setuser sluice resetpass ">another" > /dev/null
redis main client kill user sluice > /dev/null
check_true "a changed password is noticed" wait_for 5 until_reply plain state "refuses cluster.redis.user"
check_is "commands fail at once" "$(send_line plain "ask 1 3000 PING" | cut -d: -f1)" \
	"ok 0 error 0 late 0 down 1"
echo another > "$LAB/redis.password"
check_true "the file is read again" wait_for 8 until_reply plain state "up well"

# The server is restarted empty, in place.
redis_kill main
check_true "a server that died is noticed" wait_for 5 until_reply plain state "away cannot be reached"
redis_again main
redis main acl setuser sluice resetpass ">another" > /dev/null
check_true "the restarted server is found" wait_for 8 until_reply plain "ask 1 3000 PING" "ok 1"
check_is "scripts are loaded into it again" "$(send_line plain "script 10 3000 return 7")" "ok 10 error 0 late 0 down 0: 7"

# ---------------------------------------------------------------- TLS

sed -n "s/^user sluice.*>\([^ ]*\) .*/\1/p" "$LAB/redis-users.acl" > "$LAB/redis.password"
redis_tls_start secure
client good "urls: ['${REDIS_URL[secure]}'], $USER, tls: {ca: $LAB/tls/ca.crt}"
check_is "TLS, by address" "$(send_line good "ask 100 3000 PING")" "ok 100 error 0 late 0 down 0: PONG"
client host "urls: ['rediss://localhost:${REDIS_PORT[secure]}'], $USER, tls: {ca: $LAB/tls/ca.crt}"
check_true "TLS, by name" wait_for 5 until_reply host "ask 1 3000 PING" "ok 1"
client other "urls: ['${REDIS_URL[secure]}'], $USER, tls: {ca: $LAB/tls/ca.crt, name: redis.example}"
check_is "a certificate of another name is refused" "$(send_line other "ask 1 3000 PING" | cut -d: -f1)" \
	"ok 0 error 0 late 0 down 1"
check_true "the log has the reason" grep -q "ertificate rejected: .*mismatch" "$LAB/other.log"
client system "urls: ['${REDIS_URL[secure]}'], $USER, tls: {}"
check_is "a certificate of an unknown authority is refused" "$(send_line system "ask 1 3000 PING" | cut -d: -f1)" \
	"ok 0 error 0 late 0 down 1"
check_true "the log has the reason of that, too" grep -q "ertificate rejected: ." "$LAB/system.log"
client open "urls: ['redis://$REDIS_IP:${REDIS_PORT[secure]}'], $USER"
check_is "a client without TLS is refused" "$(send_line open "ask 1 3000 PING" | cut -d: -f1)" "ok 0 error 0 late 0 down 1"
cp "$LAB/tls/ca.crt" "$LAB/later.crt"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=none" \
	-keyout "$LAB/other.key" -out "$LAB/changes.crt" 2> /dev/null
client changes "urls: ['${REDIS_URL[secure]}'], $USER, tls: {ca: $LAB/changes.crt}"
check_is "a CA that did not sign the server's certificate" "$(send_line changes "ask 1 3000 PING" | cut -d: -f1)" \
	"ok 0 error 0 late 0 down 1"
mv "$LAB/later.crt" "$LAB/changes.crt"
check_true "the CA file is read again once it is right" wait_for 8 until_reply changes "ask 1 3000 PING" "ok 1"
redis_tls_start strict --tls-auth-clients yes
client bare "urls: ['${REDIS_URL[strict]}'], $USER, tls: {ca: $LAB/tls/ca.crt}"
check_is "where a client certificate is required, a client without one is refused" \
	"$(send_line bare "ask 1 3000 PING" | cut -d: -f1)" "ok 0 error 0 late 0 down 1"
cp "$LAB/tls/client.crt" "$LAB/mine.crt"
client cert "urls: ['${REDIS_URL[strict]}'], $USER, tls: {ca: $LAB/tls/ca.crt, cert: $LAB/mine.crt, key: $LAB/tls/client.key}"
check_is "a client with a certificate is accepted" "$(send_line cert "ask 1 3000 PING")" "ok 1 error 0 late 0 down 0: PONG"

# Certificates expire while the client runs: its own, and the server's. A connection that is closed comes first.
cp "$LAB/tls/client-expired.crt" "$LAB/new.crt"
mv "$LAB/new.crt" "$LAB/mine.crt"
redis strict client kill type normal > /dev/null
check_true "the log names the client's expired certificate" wait_for 8 grep -q "TLS: .*certificate expired" "$LAB/cert.log"
redis secure config set tls-cert-file "$LAB/tls/server-expired.crt" > /dev/null
redis-cli -h "$REDIS_IP" -p "${REDIS_PORT[secure]}" --tls --insecure client kill type normal > /dev/null
check_true "the log names the server's expired certificate" wait_for 8 grep -q "rejected: certificate has expired" "$LAB/good.log"
check_true "so does the state" until_reply good state "rejected: certificate has expired"
sleep 1
check_is "each cause once" "$(grep warning "$LAB/good.log" "$LAB/cert.log" | sort | uniq -d)" ""

# A Redis Cluster with TLS: the client uses TLS to the servers that it names, too.
at=()
for i in 1 2 3; do
	redis_tls_start t$i --cluster-enabled yes --tls-cluster yes --tls-replication yes
	at+=("$REDIS_IP:${REDIS_PORT[t$i]}")
done
# shellcheck disable=SC2086
redis-cli ${REDIS_TLS[t1]} --cluster create "${at[@]}" --cluster-yes > "$LAB/create" 2>&1 ||
	not_ok "redis-cli --cluster create: $(tail -n 2 "$LAB/create")"
whole() { ! for i in 1 2 3; do redis t$i cluster info; done | grep -q cluster_state:fail; }
check_true "a cluster with TLS is complete" wait_for 10 whole
client slots "urls: ['${REDIS_URL[t1]}'], mode: cluster, $USER, tls: {ca: $LAB/tls/ca.crt}"
for key in a b c d; do
	send_line slots "ask 10 3000 HINCRBY sluice:{$key} n 1"
done > "$LAB/slots"
check_is "keys of all its servers" "$(sort "$LAB/slots" | uniq -c | xargs)" "4 ok 10 error 0 late 0 down 0: 10"
check_is "no server is without keys" "$(for i in 1 2 3; do redis t$i dbsize; done | grep -c '^0$')" 0

# ---------------------------------------------------------------- replicas, sentinels

redis_start first --min-replicas-to-write 0
redis_replica second first
# A replica in sync receives writes a second later: they begin with its first REPLCONF ACK.
redis first set lab 1 > /dev/null
check_true "writes reach the replica" wait_for 10 eval '[ "$(redis second get lab)" = 1 ]'
client sure "urls: [${REDIS_URL[first]}], $USER, wait: 1"
check_is "a replica confirms durable writes" "$(send_line sure "durable 100 1000 HINCRBY sluice:n n 1")" \
	"ok 100 error 0 late 0 down 0: 100"
check_is "the replica has them" "$(redis second hget sluice:n n)" 100
redis_pause second
check_is "without a replica the error names it, and the write is done" \
	"$(send_line sure "durable 1 1000 HINCRBY sluice:n n 1")" \
	"ok 0 error 1 late 0 down 0: NOREPLICAS 0 of 1 have it"
redis_resume second
check_true "a durable write succeeds again" wait_for 5 until_reply sure "durable 1 1000 HINCRBY sluice:n n 1" "ok 1"

redis_sentinel s1 first 1
check_true "the sentinel has both servers" wait_for 15 eval \
	'[ "$(redis s1 sentinel replicas mymaster | grep -c "^ip$")" = 1 ]'
# One that has users: the second line of the example is what it needs; the first stops it at its start.
redis_sentinel s2 first 1 'user default on nopass -@all +ping' "$(redis_example '^# user')"
client users "urls: [${REDIS_URL[s2]}], mode: sentinel, $USER"
check_is "a sentinel with users names the master" "$(send_line users "ask 1 3000 HINCRBY sluice:n n 1" | cut -d: -f1)" \
	"ok 1 error 0 late 0 down 0"
check_is "it refused nothing" "$(grep -c warning "$LAB/users.log")" 0
redis s2 shutdown > /dev/null 2>&1
redis_stop s2
client watched "urls: ['redis://$REDIS_IP:1', ${REDIS_URL[s1]}], mode: sentinel, $USER"
check_is "the sentinel names the master" "$(send_line watched "ask 10 3000 HINCRBY sluice:n n 1" | cut -d: -f1)" \
	"ok 10 error 0 late 0 down 0"
check_true "a failover starts" wait_for 15 eval '[ "$(redis s1 sentinel failover mymaster)" = OK ]'
check_true "the sentinel names the other server after it" wait_for 15 eval \
	'until_reply watched state "127.0.0.1:${REDIS_PORT[second]} up"'
check_true "the new master takes writes" wait_for 8 until_reply watched "ask 1 3000 HINCRBY sluice:n n 1" "ok 1"
redis_kill second
check_true "the old server is master again after that one died" wait_for 20 eval \
	'until_reply watched state "127.0.0.1:${REDIS_PORT[first]} up"'
check_true "it takes writes, too" wait_for 8 until_reply watched "ask 1 3000 HINCRBY sluice:n n 1" "ok 1"

lab_done
