# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# redis_servers.sh - real Redis servers of every topology, and proxies in front of them that simulate a
# slow network. On top of http.sh; redis.sh adds nodes that use them.
#
# Servers:
#     redis_start NAME [OPTION...]        REDIS_PORT[NAME], REDIS_PID[NAME], REDIS_URL[NAME]; options are
#                                         redis-server's. 64 MB, nothing on disk
#     redis_tls_start NAME [OPTION...]    TLS only; $LAB/tls has ca.crt, client.crt, client.key
#     redis_stop NAME                     SIGTERM; redis_kill: SIGKILL
#     redis_again NAME                    the same again: port, options, and (nothing on disk) empty
#     redis_pause NAME, redis_resume NAME SIGSTOP, SIGCONT
#     redis NAME COMMAND...               redis-cli to it
#     redis_replica NAME OF [OPTION...]
#     redis_sentinel NAME MASTER QUORUM [LINE...]
#                                         watches MASTER as "mymaster"; down after 500 ms; lines of its configuration
#     redis_cluster [N]                   Redis Cluster c1..cN (6): half are masters, half replicas
#     redis_ring NAME...                  several independent servers
#     redis_use MODE NAME...              cluster.redis of nodes that start from now on
# Each has two users: the default one may do all (this script), "sluice" has the rights of
# docs/examples/redis-user.conf, with the password in $LAB/redis.password (the nodes).
#
# Proxies in front of a server (tests/cluster/proxy.py):
#     proxy_start NAME PORT               PROXY_PORT[NAME]
#     proxy NAME delay 50                 ms, in each direction; "delay 1 5": from 1 to 5, at random

. "$(dirname "${BASH_SOURCE[0]}")/http.sh"

declare -A REDIS_PORT=() REDIS_PID=() REDIS_URL=() REDIS_DIR=() REDIS_TLS=()
declare -A PROXY_PORT=() PROXY_CONTROL=()
REDIS_IP=127.0.0.1
REDIS_NEXT=6379
PROXY_NEXT=7379
CLUSTER_REDIS=

# The command itself, so that $! is its pid; SIGKILLed when this script ends.
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
	stand_still "${REDIS_PID[$1]}"
}

redis_resume() {
	kill -CONT "${REDIS_PID[$1]}"
}

redis_replica() {
	local name=$1 of=$2

	shift 2
	redis_start "$name" --replicaof "$REDIS_IP" "${REDIS_PORT[$of]}" "$@"
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
	$(printf '%s\n' "${@:4}")
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

# redis_cluster_ok NAME REPLICAS: it knows all servers, and a replica has its master's data.
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

# The user that servers log in as; the password is this lab's.
redis_users() {
	[ -e "$LAB/redis.password" ] && return
	head -c 18 /dev/urandom | base64 | tr '+/' '-_' > "$LAB/redis.password"
	chmod 600 "$LAB/redis.password"
	{
		echo "user default on nopass ~* &* +@all"
		redis_example '^user'
	} > "$LAB/redis-users.acl"
}

# redis_example WORDS: a user of docs/examples/redis-user.conf, with this lab's password.
redis_example() {
	sed -n "s|>[^ ]*|>$(< "$LAB/redis.password")|; s/$1 sluice /user sluice /p" "$REPO/docs/examples/redis-user.conf"
}

# One authority, a server's and a client's certificate, for the hub's addresses; of each one that has expired.
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
		openssl x509 -req -in "$dir/$who.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" -CAcreateserial \
			-days 0 -extfile "$dir/$who.ext" -out "$dir/$who-expired.crt" 2> /dev/null
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
	wait_for 10 proxy "$name" delay 0 || not_ok "proxy $name does not start: $(tail -n 2 "$LAB/proxy-$name")"
}

# proxy NAME WORDS...: done when its reply is printed.
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
