# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# redis.sh - a lab of real Redis servers, and of several sluiced that have one in common. On top of
# http.sh and netns.sh.
#
#     . tests/lib/redis.sh
#     cluster_begin NAME "$@"     needs root; starts the script again in a namespace of its own, the
#                                 hub: Redis runs here; nodes hang on its bridge (10.90.0.1)
#     redis_start main            a server; nodes use the first one that was started, or redis_use
#     http_rules api <<'YAML'     all nodes read the same rules
#     node_start a; node_start b  a sluiced each, in a namespace each (10.90.0.11, .12 ...)
#     check_is "..." "$(node a http_check api user=bob)" 200
#     node a ctl status; node a metric sluice_store_up; node a on_server nft ...
#     check "..." "$(spread 100 api user=bob)" 50 50
#     lab_done
#
# Redis alone (redis_*, proxy_*) works after http_begin, too, without root, on 127.0.0.1. Servers and
# proxies die with the script, whatever becomes of it. Start them in the script itself, not in $(...).
#
# Servers:
#     redis_start NAME [OPTION...]        REDIS_PORT[NAME], REDIS_PID[NAME], REDIS_URL[NAME]; options are
#                                         redis-server's. 64 MB, nothing on disk
#     redis_tls_start NAME [OPTION...]    TLS only; $LAB/tls has ca.crt, client.crt, client.key
#     redis_stop NAME                     as one stops a server; redis_kill: with SIGKILL
#     redis_again NAME                    the same again: port, options, and (nothing on disk) empty
#     redis_pause NAME, redis_resume NAME SIGSTOP, SIGCONT
#     redis NAME COMMAND...               redis-cli to it
#     redis_replica NAME OF [OPTION...]
#     redis_sentinel NAME MASTER QUORUM   watches MASTER as "mymaster"; down after 500 ms
#     redis_cluster [N]                   Redis Cluster c1..cN (6): half are masters, half replicas
#     redis_ring NAME...                  several that know nothing of each other
#     redis_use MODE NAME...              what nodes that start from now on have as cluster.redis
# Each has two users: the default one may do all (this script), "sluice" what docs/examples/redis-user.conf
# says, with the password in $LAB/redis.password (the nodes).
#
# Proxies in front of a server (tests/cluster/proxy.py):
#     proxy_start NAME PORT               PROXY_PORT[NAME]
#     proxy NAME delay 50                 and all that proxy.py knows; prints its answer

. "$(dirname "${BASH_SOURCE[0]}")/http.sh"

declare -A REDIS_PORT=() REDIS_PID=() REDIS_URL=() REDIS_DIR=() REDIS_TLS=()
declare -A PROXY_PORT=() PROXY_CONTROL=()
declare -A NODE_PID=() NODE_IP=()
NODES=()
REDIS_IP=127.0.0.1
REDIS_NEXT=6379
PROXY_NEXT=7379
CLUSTER_REDIS=
NODE_HTTP='  workers: 2'

# The command itself, so that $! is it; SIGKILLed when this script ends.
MORTAL=(setpriv --pdeathsig KILL)

# ---------------------------------------------------------------- servers

redis_start() {
	REDIS_TLS[$1]=
	redis_first "$@"
}

redis_tls_start() {
	redis_certificates
	REDIS_TLS[$1]="--tls --cacert $LAB/tls/ca.crt --cert $LAB/tls/client.crt --key $LAB/tls/client.key"
	redis_first "$@"
}

redis_first() {
	local name=$1

	shift
	REDIS_PORT[$name]=$REDIS_NEXT
	REDIS_NEXT=$((REDIS_NEXT + 1))
	REDIS_DIR[$name]=$LAB/redis-$name
	REDIS_URL[$name]=redis${REDIS_TLS[$name]:+s}://$REDIS_IP:${REDIS_PORT[$name]}
	mkdir -p "${REDIS_DIR[$name]}"
	printf '%s\0' "$@" > "${REDIS_DIR[$name]}/options"
	redis_users
	redis_again "$name"
	[ -n "$CLUSTER_REDIS" ] || redis_use single "$name"
}

redis_again() {
	local name=$1 port=${REDIS_PORT[$1]} dir=${REDIS_DIR[$1]} options=()

	mapfile -d '' -t options < "$dir/options"
	[ -n "${options[0]:-}" ] || options=()
	if [ -n "${REDIS_TLS[$name]}" ]; then
		options=(--port 0 --tls-port "$port" --tls-ca-cert-file "$LAB/tls/ca.crt"
			--tls-cert-file "$LAB/tls/server.crt" --tls-key-file "$LAB/tls/server.key"
			--tls-auth-clients optional "${options[@]}")
	else
		options=(--port "$port" "${options[@]}")
	fi
	"${MORTAL[@]}" redis-server --bind "$REDIS_IP" --dir "$dir" --logfile "$dir/log" --save '' \
		--appendonly no --maxmemory 64mb --maxmemory-policy noeviction --protected-mode no \
		--aclfile "$LAB/redis-users.acl" --repl-diskless-sync-delay 0 \
		--repl-timeout 5 "${options[@]}" > "$dir/stdout" 2>&1 &
	REDIS_PID[$name]=$!
	started
	disown $!
	if ! wait_for 10 redis_answers "$name"; then
		not_ok "redis-server $name does not start: $(tail -n 2 "$dir/log" "$dir/stdout")"
		LAB_ENDED=1
		exit 1
	fi
}

# redis NAME COMMAND...
redis() {
	local name=$1

	shift
	# shellcheck disable=SC2086
	redis-cli -h "$REDIS_IP" -p "${REDIS_PORT[$name]}" ${REDIS_TLS[$name]} --raw "$@"
}

redis_answers() {
	[ "$(redis "$1" ping)" = PONG ]
}

# redis_info NAME FIELD: of INFO.
redis_info() {
	redis "$1" info everything | tr -d '\r' | awk -F: -v f="$2" '$1 == f { print $2; exit }'
}

redis_end() {
	kill "-$1" "${REDIS_PID[$2]}" 2> /dev/null
	wait_for 10 redis_gone "$2" || not_ok "redis-server $2 does not end on SIG$1"
}

redis_gone() {
	! kill -0 "${REDIS_PID[$1]}" 2> /dev/null
}

redis_stop() {
	redis_end TERM "$1"
}

redis_kill() {
	redis_end KILL "$1"
}

redis_pause() {
	kill -STOP "${REDIS_PID[$1]}"
}

redis_resume() {
	kill -CONT "${REDIS_PID[$1]}"
}

redis_replica() {
	local name=$1 of=$2

	shift 2
	redis_start "$name" --replicaof "$REDIS_IP ${REDIS_PORT[$of]}" "$@"
	wait_for 10 redis_in_sync "$name" || not_ok "replica $name does not come up"
}

redis_in_sync() {
	[ "$(redis_info "$1" master_link_status)" = up ]
}

redis_sentinel() {
	local name=$1 dir=$LAB/redis-$1

	mkdir -p "$dir"
	REDIS_PORT[$name]=$REDIS_NEXT
	REDIS_NEXT=$((REDIS_NEXT + 1))
	REDIS_DIR[$name]=$dir
	REDIS_TLS[$name]=
	REDIS_URL[$name]=redis://$REDIS_IP:${REDIS_PORT[$name]}
	cat > "$dir/conf" <<-CONF
	port ${REDIS_PORT[$name]}
	bind $REDIS_IP
	protected-mode no
	dir $dir
	logfile $dir/log
	sentinel monitor mymaster $REDIS_IP ${REDIS_PORT[$2]} $3
	sentinel down-after-milliseconds mymaster 500
	sentinel failover-timeout mymaster 5000
	CONF
	"${MORTAL[@]}" redis-sentinel "$dir/conf" > "$dir/stdout" 2>&1 &
	REDIS_PID[$name]=$!
	started
	disown $!
	wait_for 10 redis_answers "$name" || not_ok "sentinel $name does not start"
}

redis_cluster() {
	local count=${1:-6} i at=()

	for ((i = 1; i <= count; i++)); do
		redis_start "c$i" --cluster-enabled yes --cluster-node-timeout 1500 \
			--cluster-replica-validity-factor 0 --cluster-allow-replica-migration no \
			--cluster-require-full-coverage no
		at+=("$REDIS_IP:${REDIS_PORT[c$i]}")
	done
	if ! redis-cli --cluster create "${at[@]}" --cluster-replicas 1 --cluster-yes \
		> "$LAB/redis-create" 2>&1; then
		not_ok "redis-cli --cluster create: $(tail -n 3 "$LAB/redis-create")"
		return
	fi
	for ((i = 1; i <= count; i++)); do
		wait_for 10 redis_cluster_ok "c$i" $((count / 2)) || not_ok "Redis Cluster: c$i does not join"
	done
	redis_use cluster c1 c2 c3
}

# redis_cluster_ok NAME REPLICAS: it knows who is one, and if it is one it has its master's data.
redis_cluster_ok() {
	redis "$1" cluster info | grep -q cluster_state:ok || return
	[ "$(redis "$1" cluster nodes | grep -c slave)" = "$2" ] || return
	[ "$(redis_info "$1" role)" = master ] || redis_in_sync "$1"
}

# Those of c1, c2 ... that are masters.
redis_masters() {
	local i

	for ((i = 1; i <= 6; i++)); do
		[ "$(redis_info c$i role 2> /dev/null)" = master ] && echo c$i
	done
}

redis_ring() {
	local name

	for name; do
		redis_start "$name"
	done
	redis_use ring "$@"
}

redis_use() {
	local mode=$1 name urls= tls=

	shift
	for name; do
		urls+=${urls:+, }${REDIS_URL[$name]}
		[ -z "${REDIS_TLS[$name]}" ] || tls=", tls: {ca: $LAB/tls/ca.crt}"
	done
	CLUSTER_REDIS="urls: [$urls], mode: $mode, user: sluice, password_file: $LAB/redis.password$tls"
	# A sentinel has users of its own.
	[ "$mode" != sentinel ] || CLUSTER_REDIS="urls: [$urls], mode: sentinel, user: sluice, password_file: $LAB/redis.password"
}

# What servers know users by; the password is this lab's.
redis_users() {
	[ -e "$LAB/redis.password" ] && return
	head -c 18 /dev/urandom | base64 | tr '+/' '-_' > "$LAB/redis.password"
	chmod 600 "$LAB/redis.password"
	{
		echo "user default on nopass ~* &* +@all"
		sed -n "/^user sluice /s|>[^ ]*|>$(< "$LAB/redis.password")|p" \
			"$REPO/docs/examples/redis-user.conf"
	} > "$LAB/redis-users.acl"
}

# One authority, a server's and a client's certificate, for the hub's addresses.
redis_certificates() {
	local dir=$LAB/tls who

	[ -d "$dir" ] && return
	mkdir -p "$dir"
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=lab" \
		-keyout "$dir/ca.key" -out "$dir/ca.crt" 2> /dev/null
	for who in server client; do
		openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$who" \
			-keyout "$dir/$who.key" -out "$dir/$who.csr" 2> /dev/null
		printf 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:10.90.0.1\n' > "$dir/$who.ext"
		openssl x509 -req -in "$dir/$who.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" \
			-CAcreateserial -days 30 -extfile "$dir/$who.ext" -out "$dir/$who.crt" 2> /dev/null ||
			not_ok "openssl makes no certificate"
	done
}

# ---------------------------------------------------------------- proxies

# proxy_start NAME PORT: to the hub's PORT.
proxy_start() {
	local name=$1

	PROXY_PORT[$name]=$PROXY_NEXT
	PROXY_CONTROL[$name]=$((PROXY_NEXT + 1))
	PROXY_NEXT=$((PROXY_NEXT + 2))
	"${MORTAL[@]}" python3 "$REPO/tests/cluster/proxy.py" "$REDIS_IP:${PROXY_PORT[$name]}" \
		"$REDIS_IP:$2" "$REDIS_IP:${PROXY_CONTROL[$name]}" 2> "$LAB/proxy-$name" &
	started
	disown $!
	wait_for 10 proxy "$name" count || not_ok "proxy $name does not start: $(tail -n 2 "$LAB/proxy-$name")"
}

# proxy NAME WORDS...: done when its answer is printed.
proxy() {
	local name=$1 answer

	shift
	{
		exec {PROXY_FD}<> "/dev/tcp/$REDIS_IP/${PROXY_CONTROL[$name]}"
	} 2> /dev/null || return
	echo "$*" >&$PROXY_FD
	read -r -t 5 answer <&$PROXY_FD
	exec {PROXY_FD}>&-
	echo "$answer"
	[ "${answer%% *}" = ok ]
}

# ---------------------------------------------------------------- nodes

cluster_begin() {
	if [ "$(id -u)" != 0 ]; then
		LAB_NAME=$1
		skip "needs root (namespaces)"
		exit 0
	fi
	http_begin "$@"
	trap cluster_end EXIT
	LAB_ID=slt$$
	HUB=$LAB
	REDIS_IP=10.90.0.1
	# Its own address: else it would take one of its ports, and another with each port that comes.
	ip link add lan address 02:00:00:00:01:00 type bridge forward_delay 0 || exit 1
	echo 1 > /proc/sys/net/ipv6/conf/lan/disable_ipv6
	ip addr add $REDIS_IP/16 dev lan
	ip link set lan up
	(umask 077 && head -c 32 /dev/urandom | base64 > "$LAB/cluster.key")
}

cluster_end() {
	local status=$? name pid

	LAB=$HUB
	for name in "${NODES[@]}"; do
		[ -z "${NODE_PID[$name]}" ] || kill -KILL "${NODE_PID[$name]}" 2> /dev/null
		for ns in "$LAB_ID-$name" "$LAB_ID-$name-c"; do
			for pid in $(ip netns pids "$ns" 2> /dev/null); do
				kill -KILL "$pid" 2> /dev/null
			done
			ip netns del "$ns" 2> /dev/null
		done
		rm -rf "/sys/fs/bpf/$LAB_ID-$name"
	done
	if [ $LAB_ENDED = 0 ] || [ $LAB_FAILED != 0 ]; then
		cluster_logs
	fi
	(exit $status)
	http_end
}

cluster_logs() {
	local name

	for name in "${NODES[@]}"; do
		echo "--- $name said:"
		tail -n 15 "$HUB/$name/daemon.log" 2> /dev/null
	done
}

# node_add NAME: its namespace, joined to the hub.
node_add() {
	local name=$1 ip=10.90.0.$((11 + ${#NODES[@]})) ns=$LAB_ID-$1

	NODES+=("$name")
	NODE_IP[$name]=$ip
	NODE_PID[$name]=
	mkdir -p "$HUB/$name"
	chmod 755 "$HUB/$name"
	ip netns add "$ns" || exit 1
	ip -n "$ns" link set lo up
	ip link add "hub-$name" type veth peer name lan0 netns "$ns" || exit 1
	echo 1 > "/proc/sys/net/ipv6/conf/hub-$name/disable_ipv6"
	nsenter --net="/run/netns/$ns" sh -c 'echo 1 > /proc/sys/net/ipv6/conf/lan0/disable_ipv6'
	ip link set "hub-$name" master lan up
	ip -n "$ns" addr add "$ip/16" dev lan0
	ip -n "$ns" link set lan0 up
}

# node NAME COMMAND...: a function of this library, or a program, as this node: ctl, metric, request,
# http_check, daemon_kill, on_server nft ...; files ($LAB/body) are the node's own.
node() {
	local name=$1 status
	local LAB=$HUB/$name SOCKET=$HUB/$name/control.sock CONFIG=$HUB/$name/sluice.yaml
	local UNIX=$HUB/$name/http.sock PIN=/sys/fs/bpf/$LAB_ID-$name
	local NS_S=$LAB_ID-$name NS_C=$LAB_ID-$name-c DAEMON_PID=${NODE_PID[$name]}
	local IN_S=(nsenter "--net=/run/netns/$NS_S") IN_C=(nsenter "--net=/run/netns/$NS_C")

	shift
	"$@"
	status=$?
	NODE_PID[$name]=$DAEMON_PID
	return $status
}

# node_start NAME [LINES]: LINES are beneath `cluster:`. $HTTP_TOP is the sections beside (interfaces,
# limits ...), $NODE_HTTP the lines beneath `http:` (empty: no such section).
node_start() {
	[ -n "${NODE_IP[$1]:-}" ] || node_add "$1"
	node "$1" node_config "$@"
	node "$1" daemon_run
}

node_config() {
	local cluster http

	cluster=$(node_section "${2:-}" "redis: {$CLUSTER_REDIS}" "node: $1" \
		"secret_file: $HUB/cluster.key" "deadline: 1s")
	http=$(node_section "$NODE_HTTP" "listen: [127.0.0.1:8180, unix:$UNIX]" "rules: $RULES")
	{
		printf '%s\n' "${HTTP_TOP:-}"
		[ -z "$NODE_HTTP" ] || printf 'http:\n%s\n' "$http"
		[ -z "$CLUSTER_REDIS" ] || printf 'cluster:\n%s\n' "$cluster"
	} | config_write "$CONFIG"
}

# node_section LINES DEFAULT...: the defaults whose keys LINES do not have, and LINES, all indented.
node_section() {
	local lines line

	lines=$(sed 's/^[ \t]*/  /; /^ *$/d' <<< "$1")
	shift
	for line; do
		grep -q "^  ${line%%:*}:" <<< "$lines" || printf '  %s\n' "$line"
	done
	[ -z "$lines" ] || printf '%s\n' "$lines"
}

# node_link NAME [N QUEUES MTU]: a client of this node's own, for its packet tier: cN and sN of netns.sh;
# then "node a blast ..." and "node a sink_start s0" are as there.
node_link() {
	local name=$1

	shift
	if [ ! -e "/run/netns/$LAB_ID-$name-c" ]; then
		ip netns add "$LAB_ID-$name-c" || exit 1
		ip -n "$LAB_ID-$name-c" link set lo up
	fi
	node "$name" lab_link "${@:-0}"
}

node_stop() {
	node "$1" daemon_kill TERM
}

node_kill() {
	node "$1" daemon_kill KILL
}

# many COUNT DOMAIN KEY=VALUE...: that many calls, one after the other on one connection (MANY has
# curl's options: -Z --parallel-max 8); prints how many were allowed. $LAB/many has all statuses.
many() {
	local count=$1

	shift
	"${IN_S[@]}" curl -s -m 60 -o /dev/null -w '%{http_code}\n' "${MANY[@]}" \
		-d "$(check_body "$@")" "$URL/v1/check#[1-$count]" > "$LAB/many"
	grep -c '^200$' "$LAB/many"
}
MANY=()

# spread COUNT DOMAIN KEY=VALUE...: COUNT calls of each node that runs, at the same time; prints how many
# were allowed in sum, "node a cat $LAB/passed" of one.
spread() {
	local name pids=()

	for name in "${NODES[@]}"; do
		[ -n "${NODE_PID[$name]}" ] || continue
		node "$name" many "$@" > "$HUB/$name/passed" &
		pids+=($!)
	done
	wait "${pids[@]}"
	for name in "${NODES[@]}"; do
		[ -z "${NODE_PID[$name]}" ] || cat "$HUB/$name/passed"
	done | awk '{ n += $1 } END { print n + 0 }'
}

# load_bg ROUNDS DOMAIN KEY=PREFIX FIRST LAST: in the background, on each of LOAD_NODES (all that run): for values
# PREFIX1, PREFIX2 ... a call in turn, ROUNDS times, on one connection. $HUB/NODE/load has a line
# "value status" for each.
load_bg() {
	local key=${3%%=*} prefix=${3#*=} name

	awk -v rounds="$1" -v domain="$2" -v key="$key" -v prefix="$prefix" -v first="$4" -v last="$5" 'BEGIN {
		for (round = 0; round < rounds; round++)
			for (i = first; i <= last; i++) {
				value = prefix i
				body = "{\"domain\": \"" domain "\", \"descriptors\": [{\"entries\": [{\"key\": \"" \
					key "\", \"value\": \"" value "\"}]}]}"
				gsub(/"/, "\\\"", body)
				print (n++ ? "next\n" : "") "url = \"http://127.0.0.1:8180/v1/check\""
				print "data = \"" body "\"\noutput = /dev/null\nsilent\nmax-time = 10"
				print "write-out = \"" value " %{http_code}\\n\""
			} }' > "$HUB/load"
	LOADS=()
	for name in "${LOAD_NODES[@]:-${NODES[@]}}"; do
		[ -n "${NODE_PID[$name]}" ] || continue
		nsenter --net="/run/netns/$LAB_ID-$name" curl -K "$HUB/load" > "$HUB/$name/load" 2>&1 &
		started
		LOADS+=($!)
	done
}
LOADS=() LOAD_NODES=()

load_wait() {
	wait "${LOADS[@]}"
}

load_runs() {
	kill -0 "${LOADS[0]}" 2> /dev/null
}

# load_lines: what all loads that were started last have said.
load_lines() {
	local name

	for name in "${LOAD_NODES[@]:-${NODES[@]}}"; do
		cat "$HUB/$name/load"
	done
}

# "LEAST MOST": how many calls for a value passed, on all nodes together.
load_passed() {
	load_lines | awk '{ n[$1] += $2 == 200 } END {
		for (value in n) {
			if (least == "" || n[value] < least)
				least = n[value]
			if (n[value] > most)
				most = n[value]
		}
		print least + 0, most + 0 }'
}

# load_others 'STATUS|STATUS': how many had another one.
load_others() {
	load_lines | grep -cvE " ($1)\$"
}
