#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two sluiceds behind real nginx and HAProxy from docs/examples/failover, which refuse by 503 what has no
# decision: both are killed under load, one after the other. No request is without a decision. With
# Redis a strict limit is never exceeded, and loses at most the requests that were in progress; a lease
# adds what it may. Without Redis the example's `backup` gives one budget more for each daemon that decides.

. "$(dirname "$0")/../lib/redis.sh"
http_begin two "$@"
. "$REPO/tests/lib/proxy.sh"

LIMIT=2000
CLIENTS=3		# of each user
FAILOVER=$REPO/docs/examples/failover

# as NAME COMMAND...: with the files of this sluiced
declare -A PID=()
as() {
	local name=$1 LAB=$LAB/$1 DAEMON_PID=${PID[$1]:-}
	local SOCKET=$LAB/control.sock CONFIG=$LAB/sluice.yaml METRICS_LISTEN=127.0.0.1:98${PORT[$1]}0

	shift
	"$@"
	PID[$name]=$DAEMON_PID
}
declare -A PORT=([one]=1 [two]=2)

# begin CLUSTER-LINES...: both sluiceds
begin() {
	local name

	for name in one two; do
		mkdir -p "$LAB/$name"
		rm -rf "$LAB/$name/state"
		HTTP_TOP=${1:+"cluster: {redis: {$CLUSTER_REDIS}, secret_file: $LAB/cluster.key, node: $name, deadline: 1s}"}
		as "$name" http_config <<-YAML
		  listen: [127.0.0.1:8${PORT[$name]}80]
		  grpc: [127.0.0.1:8${PORT[$name]}81]
		  spoe: [127.0.0.1:8${PORT[$name]}82]
		YAML
		as "$name" daemon_run
		LAB_PIDS+=("${PID[$name]}")
	done
}

# proxies NGINX HAPROXY [SED]: on these ports, of the failover examples with this change
proxies() {
	local dir=$LAB/haproxy-$2 name

	mkdir -p "$dir"
	sed "${3:-}" "$FAILOVER/nginx.conf" > "$LAB/failover-$1.conf"
	nginx_start nginx-closed.conf "$1" "/^\tupstream sluice {/,/^\t}/c\include $LAB/failover-$1.conf;"
	printf '%s-8092 %s-8092\n' strict strict leased leased > "$dir/sluice-keys.map"
	echo "local-8096 local-8096" >> "$dir/sluice-keys.map"
	sed "s|bind :80$|bind 127.0.0.1:$2|; /^backend sluice/,\$d
		s|filter spoe .*|&\n\tfilter spoe engine again config $dir/haproxy-again.conf|; s|/etc/haproxy/|$dir/|" \
		"$REPO/docs/examples/haproxy-closed.cfg" > "$dir/haproxy.cfg"
	sed "${3:-}" "$FAILOVER/haproxy.cfg" > "$dir/failover.cfg"
	for name in haproxy-spoe failover/haproxy-again; do
		sed "s|hello 500ms|hello 2s|; s|processing 500ms|processing 2s|; s|/etc/haproxy/|$dir/|g" \
			"$REPO/docs/examples/$name.conf" > "$dir/${name##*/}.conf"
	done
	haproxy -db -f "$dir/haproxy.cfg" -f "$dir/failover.cfg" > "$dir/log" 2>&1 &
	started
	wait_for 10 request "http://127.0.0.1:$2/" || not_ok "HAProxy does not start: $(tail -n 2 "$dir/log")"
}

# Clients, each on a connection of its own; a line for each line of input: "USER STATUS COUNT ...".
cat > "$LAB/clients.py" <<'PYTHON'
import collections, http.client, sys, threading, time

lock, counts, pause = threading.Lock(), collections.Counter(), 0.01

def client(port, user):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    while True:
        connection.request("GET", "/", headers={"X-API-Key": user})
        reply = connection.getresponse()
        reply.read()
        with lock:
            counts["%s %d" % (user, reply.status)] += 1
        time.sleep(pause)

for arg in sys.argv[2:]:
    for _ in range(int(sys.argv[1])):
        threading.Thread(target=client, args=(int(arg[-4:]), arg), daemon=True).start()
for line in sys.stdin:
    pause = 0.003 if line == "faster\n" else pause
    with lock:
        print(" ".join("%s %d" % item for item in sorted(counts.items())), flush=True)
PYTHON
# load USER-PORT...: begins, slowly, so that nothing is used up before the last kill; load_end
load() {
	rm -f "$LAB/to" "$LAB/from"
	mkfifo "$LAB/to" "$LAB/from"
	python3 "$LAB/clients.py" $CLIENTS "$@" < "$LAB/to" > "$LAB/from" 2> "$LAB/clients.err" &
	started
	LOAD=$!
	exec 7> "$LAB/to" 8< "$LAB/from"
}
load_end() {
	kill $LOAD
	exec 7>&- 8<&-
	check_is "each client had its response" "$(cat "$LAB/clients.err")" ""
}
# count USER STATUS [faster]: until now
count() {
	echo "${3:-}" >&7
	read -r -t 30 COUNTS <&8
	COUNT=$(grep -o "\<$1 $2 [0-9]*" <<< "$COUNTS" | cut -d' ' -f3)
	COUNT=${COUNT:-0}
}
# had COUNT USER...: each of these passed so often
had() {
	local user least=$1

	for user in "${@:2}"; do
		count "$user" 200
		[ "$COUNT" -ge "$least" ] || return
	done
}
# over USER...: nothing is left of the limit of each, and there was not for 100 more requests of each
over() {
	local user

	for user; do
		count "$user" 200 faster
		[ "$COUNT" = "${PASSED[$user]:-}" ] || REFUSED[$user]=$(count "$user" 429; echo "$COUNT")
		PASSED[$user]=$COUNT
	done
	for user; do
		count "$user" 429
		[ "$COUNT" -gt $((${REFUSED[$user]} + 100)) ] || return
	done
}
declare -A PASSED=() REFUSED=()
# How many requests were neither passed nor refused by a decision.
undecided() {
	count x 0
	grep -oE '[a-z]*-80[0-9]* [0135][0-9]* [0-9]*' <<< "$COUNTS" | awk '{ n += $3 } END { print n + 0 }'
}
# value NAME METRIC: of this sluiced, the sum of its series
value() {
	curl -s "http://127.0.0.1:98${PORT[$1]}0/metrics" | awk -v name="$2" 'index($1, name) == 1 { n += $2 } END { print n + 0 }'
}
# kill_hard NAME: its counters end with it, so what it answered without Redis is noted first.
LATE=0
note_late() {
	LATE=$((LATE + $(value "$1" sluice_decisions_store_unavailable_total)))
}
kill_hard() {
	note_late "$1"
	as "$1" daemon_kill KILL
}
works() {
	[ "$(value "$1" sluice_http_requests_total)" -gt $((BEFORE + 20)) ]
}
# again NAME: starts it, and waits until the proxies use it
again() {
	as "$1" daemon_run
	LAB_PIDS+=("${PID[$1]}")
	BEFORE=$(value "$1" sluice_http_requests_total)
	check_true "$1 decides again" wait_for 20 works "$1"
}

application_start

# ---------------------------------------------------------------- with Redis

redis_start main
redis_use single main
(umask 077 && head -c 32 /dev/urandom | base64 > "$LAB/cluster.key")
http_rules api <<YAML
  - {key: user, value: 'strict*', scope: cluster, on_store_failure: error, limits: [$LIMIT requests/d],
     algorithm: fixed-window}
  - {key: user, value: 'leased*', consistency: {lease: 100ms}, on_store_failure: error, limits: [$LIMIT requests/d],
     algorithm: fixed-window}
YAML
begin redis
proxies 8090 8092
users=(strict-8090 strict-8092 leased-8090 leased-8092)
load "${users[@]}"
check_true "both decide" wait_for 20 had 100 "${users[@]}"
kill_hard one
BEFORE=$(value two sluice_http_requests_total)
check_true "one is killed, the other decides" wait_for 10 works two
again one
kill_hard two
check_is "nothing is used up yet" "$(count x 0; grep -o " 429 " <<< "$COUNTS")" ""
again two
check_true "each limit is used up" wait_for 60 over "${users[@]}"
for name in one two; do note_late $name; done
[ $LATE = 0 ] || echo "# Redis was late for $LATE requests, which the rules answer by an error"
check "requests without a decision, but for those" "$(undecided)" 0 $LATE
for user in "${users[@]}"; do
	count "$user" 200
	case $user in
	# Charged, but killed before the response: at most what each client had in progress, twice; or
	# charged by a Redis that was late.
	strict*) check "$user: of $LIMIT passed" "$COUNT" $((LIMIT - 2 * CLIENTS - LATE)) $LIMIT ;;
	leased*) check "$user: of $LIMIT passed" "$COUNT" $((LIMIT * 9 / 10 - LATE)) $((LIMIT * 11 / 10)) ;;
	esac
done
load_end
as one daemon_kill TERM
as two daemon_kill TERM

# ---------------------------------------------------------------- without

LIMIT=500
http_rules api <<YAML
  - {key: user, value: 'local*', limits: [$LIMIT requests/d], algorithm: fixed-window}
YAML
begin
proxies 8094 8096 's|8280 max.*1s|& backup|; s|server two .*|& backup|'
users=(local-8094 local-8096)
# passed WORDS LEAST MOST: each had so many, once all is used up
passed() {
	PASSED=()
	check_true "$1: all is used up" wait_for 60 over "${users[@]}"
	for user in "${users[@]}"; do
		count "$user" 200
		check "$1: $user had" "$COUNT" "$2" "$3"
	done
}
load "${users[@]}"
passed "while one decides" $LIMIT $LIMIT
kill_hard one
passed "it is killed, the backup decides by its own count" $((2 * LIMIT)) $((2 * LIMIT))
again one
passed "the killed one has forgotten nothing" $((2 * LIMIT)) $((2 * LIMIT))
check_is "no request was without a decision" "$(undecided)" 0
load_end
lab_done
