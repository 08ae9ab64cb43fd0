# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# redis.sh - a lab of real Redis servers, and of several sluiced that share one. On top of
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
# Redis alone (redis_*, proxy_*: all of it in redis_servers.sh) works after http_begin, too, without
# root, on 127.0.0.1. Servers and proxies die with the script, however it ends. Start them in
# the script itself, not in $(...).

. "$(dirname "${BASH_SOURCE[0]}")/redis_servers.sh"

declare -A NODE_PID=() NODE_IP=()
NODES=()
NODE_HTTP='  workers: 2'

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
	# An address of its own: otherwise the bridge takes that of a port, and another with each new port.
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

# strict_rules LIMITS: of a user on all nodes together; without the store every request is refused.
strict_rules() {
	http_rules api <<-YAML
	domain: api
	descriptors:
	  - key: user
	    limits: [$1]
	    scope: cluster
	    consistency: strict
	    on_store_failure: closed
	YAML
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

# many COUNT DOMAIN KEY=VALUE...: that many requests, one after the other on one connection (MANY has
# curl's options: -Z --parallel-max 8); prints how many were allowed. $LAB/many has all statuses.
many() {
	local count=$1

	shift
	"${IN_S[@]}" curl -s -m 60 -o /dev/null -w '%{http_code}\n' "${MANY[@]}" \
		-d "$(check_body "$@")" "$URL/v1/check#[1-$count]" > "$LAB/many"
	grep -c '^200$' "$LAB/many"
}
MANY=()

# spread COUNT DOMAIN KEY=VALUE...: COUNT requests to each node that runs, at the same time; prints how many
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
# PREFIX1, PREFIX2 ... a request in turn, ROUNDS times, on one connection. $HUB/NODE/load has a line
# "value status seconds" for each.
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
				print "write-out = \"" value " %{http_code} %{time_total}\\n\""
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

# load_lines: the results of all loads that were started last.
load_lines() {
	local name

	for name in "${LOAD_NODES[@]:-${NODES[@]}}"; do
		cat "$HUB/$name/load"
	done
}

# "LEAST MOST": how many requests of a value passed, on all nodes together.
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

# load_others 'STATUS|STATUS': how many had another status.
load_others() {
	load_lines | grep -cvE " ($1) "
}

# load_late SECONDS 'STATUS|STATUS': whether one with another status took so long.
load_late() {
	load_lines | grep -vE " ($2) " | awk -v s="$1" '$3 >= s { late = 1 } END { exit !late }'
}

# load_add ROUNDS DOMAIN KEY=PREFIX FIRST LAST: load_bg, waited for; $HUB/PREFIX collects the results of all
# such loads.
load_add() {
	load_bg "$@"
	load_wait
	load_lines >> "$HUB/${3#*=}"
}

# load_spend DOMAIN KEY=PREFIX FIRST LAST: load_add until no value has anything left. (A worker may still be
# connecting to Redis again.)
load_spend() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		load_add 30 "$@"
		[ "$(load_others 429)" = 0 ] && return
	done
}

# load_had PREFIX STATUS...: "LEAST MOST" over its values of how many requests had one of these, in all load_adds.
load_had() {
	awk -v statuses="${*:2}" '{ n[$1] += index(statuses, $2) > 0 }
		END { for (value in n) print n[value] }' "$HUB/$1" | sort -n | sed -n '1p;$p' | xargs
}

# nodes_know_each_other NAME...: each counts all of them.
nodes_know_each_other() {
	local name

	for name; do
		[ "$(node "$name" ctl -o json cluster show | jq .nodes)" = $# ] || return
	done
}

# at_once PID: all its threads get a CPU at once (SCHED_FIFO). (All: a thread that spins for a lock would keep a
# holder of less priority off the CPU.)
at_once() {
	chrt -a -f -p 1 "$1" 2> /dev/null
}

# ---------------------------------------------------------------- packets

# packet_nodes NAME...: started, with a client each ($HTTP_TOP has interface s0); they know each other.
packet_nodes() {
	local name

	for name; do
		node_add "$name"
		node_link "$name"
		node_start "$name"
	done
	for name; do
		check_true "$name knows the others" wait_for 15 node_met "$name"
	done
}

node_met() {
	[ "$(node "$1" ctl -o json cluster show | jq .nodes)" = ${#NODES[@]} ]
}

# A sink's process is a variable of netns.sh: here one for each node.
declare -A NODE_SINK=()

sinks_start() {
	local name

	for name in "${NODES[@]}"; do
		node "$name" sink_start s0
		NODE_SINK[$name]=$SINK_PID
	done
}

sinks_stop() {
	local name

	for name in "${NODES[@]}"; do
		SINK_PID=${NODE_SINK[$name]}
		node "$name" sink_stop s0
	done
}
