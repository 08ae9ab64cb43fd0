#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# scenarios.sh [FILE...] - plays the files of tests/scenario/requests that are `real` (or those) in real
# time: each node a daemon, with a real Redis. The language: tests/lib/request_scenario.h. With CONSISTENCY
# (scenarios_lease.sh) only those that vary by it.

. "$(dirname "$0")/../lib/redis.sh"
: "${CONSISTENCY:=strict}"
cluster_begin "scenarios-${CONSISTENCY//[^a-z]/}" "$@"
PLAYER="${BUILD:-build}/tests/unit/request/engine/test_request_scenario"
NODE_HTTP='  workers: 1'
declare -A allowed denied

redis_start main
proxy_start slow "${REDIS_PORT[main]}"
DIRECT=$CLUSTER_REDIS PROXIED=${CLUSTER_REDIS/:${REDIS_PORT[main]}/:${PROXY_PORT[slow]}}
nft add table inet cut
nft add set inet cut nodes '{ type ipv4_addr; }'
nft add chain inet cut in '{ type filter hook input priority 0; }'
nft add rule inet cut in ip saddr @nodes tcp dport "{ ${REDIS_PORT[main]}, ${PROXY_PORT[slow]} }" drop

now_ms() {
	date +%s%3N
}

# descriptors KEY=VALUE[,KEY=VALUE...][;...][#HITS]: of the body of a request
descriptors() {
	jq -nc --arg d "$1" '($d / "#") as $all | $all[0] / ";" | map({entries: (. / "," |
		map(capture("^(?<key>[^=]*)=(?<value>.*)$")))} + if $all[1] then {hits: $all[1] | tonumber} else {} end)'
}

# post NODE PATH JSON: prints the body of the response.
post() {
	node "$1" request -d "$3" "$2" > /dev/null
	cat "$HUB/$1/body"
}

# requests NODE COUNT DESCRIPTORS: prints how many of them were allowed, and how many denied.
requests() {
	local count=$2 names=("$1") name passed=0 refused=0 descriptors

	descriptors=$(descriptors "$3")
	[ "$1" != any ] || names=("${nodes[@]}")
	for name in "${names[@]}"; do
		passed=$((passed + $(node "$name" many $((count / ${#names[@]})) "$domain" \
			--descriptors "$descriptors")))
		refused=$((refused + $(grep -c '^429$' "$HUB/$name/many")))
	done
	echo $passed $refused
}

# candidate LIMIT: what the nodes counted of a limit with mode: shadow: allowed, denied.
candidate() {
	local name

	for name in "${nodes[@]}"; do
		node "$name" ctl analyze -o json
	done | jq -sr --arg name "$1" '[.[].limits[].candidates[]? | select(.name == $name)] |
		"\(map(.passed) | add) \(map(.refused) | add)"'
}

# edge: the most that a node measured within a window, in % of its limit, and 0.
edge() {
	local name

	for name in "${nodes[@]}"; do
		node "$name" ctl analyze -o json
	done | jq -sr '[.[].limits[].edge_peak // 0] | max * 100 | round | "\(.) 0"'
}

# verdicts WORDS ALLOWED DENIED LEAST MOST LEAST MOST: "-": any number
verdicts() {
	[ "$4" = - ] || check "$1 allowed" "$2" "$4" "$5"
	[ "$6" = - ] || check "$1 denied" "$3" "$6" "$7"
}

# step WHAT LINE AT NODE DESCRIPTOR TIMES DELAY_MS ALLOW DENY
step() {
	local pause=$(($3 - $(now_ms) + begin)) passed refused of=${5%#*}
	local what="$title:$2"

	[ $pause -le 0 ] || sleep "$(printf '%d.%03d' $((pause / 1000)) $((pause % 1000)))"
	case $1 in
	at)
		read -r passed refused < <(requests "$4" "$6" "$5")
		allowed[$of]=$((${allowed[$of]:-0} + passed))
		denied[$of]=$((${denied[$of]:-0} + refused))
		verdicts "$what: $5, of $6" "$passed" "$refused" "${@:8}"
		;;
	left)
		check "$what: left of $5" "$(post "$4" /v1/check "{\"domain\": \"$domain\", \"peek\": true,
			\"descriptors\": $(descriptors "$5")}" | jq '.statuses[0].remaining')" "${@:8:2}"
		;;
	report)
		post "$4" /v1/report "$(jq -c --arg domain "$domain" '[{domain: $domain, descriptors: .}]' \
			<<< "$(descriptors "$5")")" > /dev/null
		;;
	total)
		if [ "${5#candidate:}" != "$5" ]; then
			read -r passed refused < <(candidate "${5#candidate:}")
			allowed[$5]=$passed denied[$5]=$refused
		elif [ "$5" = edge: ]; then
			read -r "allowed[$5]" "denied[$5]" < <(edge)
		fi
		verdicts "$what: $5 in total" "${allowed[$5]:-0}" "${denied[$5]:-0}" "${@:8}"
		;;
	cut) nft add element inet cut nodes "{ ${NODE_IP[$4]} }" ;;
	end-cut) nft delete element inet cut nodes "{ ${NODE_IP[$4]} }" ;;
	lose) redis main FLUSHALL > /dev/null ;;
	losing)
		while :; do
			redis main FLUSHALL > /dev/null
		done &
		LOSING=$!
		started
		;;
	end-losing)
		kill $LOSING
		wait $LOSING 2> /dev/null
		;;
	kill) redis_kill main ;;
	end-kill) redis_again main ;;
	stop) redis_pause main ;;
	end-stop) redis_resume main ;;
	slow) proxy slow delay $(($7 / 2)) > /dev/null ;;	# each way
	end-slow) proxy slow delay 0 > /dev/null ;;
	*) not_ok "$what: no '$1' on daemons" ;;
	esac
}

# play FILE
play() {
	local title lines name begin varies domain line

	title="$(basename "$1" .scn) $CONSISTENCY"
	lines=$("$PLAYER" --steps "$1" "$CONSISTENCY" 2>&1)
	case $? in
	0) ;;
	1) return ;;	# not a real one
	*)
		not_ok "$lines"
		return
		;;
	esac
	read -r varies domain line < <(sed '1,/^---$/d' <<< "$lines")
	[ "$varies" = 1 ] || [ "$CONSISTENCY" = strict ] || return
	sed '/^---$/,$d' <<< "$lines" | http_rules api
	read -ra nodes <<< "$line"
	utc_room 3600 60
	allowed=() denied=()
	CLUSTER_REDIS=$DIRECT
	grep -q '^slow ' <<< "$lines" && CLUSTER_REDIS=$PROXIED
	for name in "${NODES[@]}"; do
		node_stop "$name"
		rm -rf "${HUB:?}/$name/state"
	done
	# Once they have stopped: a node gives Redis back what it lost.
	redis main FLUSHALL > /dev/null
	for name in "${nodes[@]}"; do
		node_start "$name" "sync: 100ms"
	done
	wait_for 10 nodes_know_each_other "${nodes[@]}" || not_ok "$title: the nodes do not know each other"
	begin=$(now_ms)
	while read -r line; do
		step $line
	done < <(sed '1,/^---$/d' <<< "$lines" | tail -n +2)
}

[ $# -gt 0 ] || set -- tests/scenario/requests/*.scn
for file; do
	play "$file"
done
lab_done
