#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# scenarios.sh [FILE...] - plays the files of tests/scenario/requests that are `real` (or those) in real
# time: each node a daemon, with a real Redis; those that vary by consistency with leases, too. The
# language: tests/lib/request_scenario.h.
#
# They sleep most of their time, so $LANES are played at a time, the longest first. A lane is this script
# once more, a lab with a network, a Redis and nodes of its own; it takes one file of $TODO after the
# other: a scenario's name, its path and consistency, and its steps as the player prints them.

: "${LANES:=10}"

# todo FILE CONSISTENCY: prepares it for a lane. Returns whether there is another consistency to play.
todo() {
	local steps title

	title="$(basename "$1" .scn) ${2//[^a-z]/}"
	steps=$("${BUILD:-build}/tests/unit/request/engine/test_request_scenario" --steps "$1" "$2" 2>&1)
	case $? in
	0) ;;
	1) return 1 ;;	# not a real one
	*)
		echo "not ok - scenarios: $steps"
		return 1
		;;
	esac
	printf '%s\n' "$title" "$1 $2" "$steps" > "$TODO/$(tail -n 1 <<< "$steps" | awk '{ printf "%08d", $3 }') $title"
	[ "$(sed '1,/^---$/d' <<< "$steps" | head -c 1)" = 1 ]
}

if [ -z "${TODO:-}" ]; then
	TODO=$(mktemp -d) || exit 1
	trap 'rm -rf "$TODO"' EXIT
	trap 'exit 130' INT TERM HUP
	[ $# -gt 0 ] || set -- tests/scenario/requests/*.scn
	for file; do
		todo "$file" strict && todo "$file" '{lease: 1s}'
	done
	for ((lane = 0; lane < LANES; lane++)); do
		TODO=$TODO bash "$0" > "$TODO/.$lane" 2>&1 &
	done
	wait
	for file in "$TODO"/*; do
		[ ! -e "$file" ] || echo "not ok - scenarios: not played: $file"
	done > "$TODO/.left"
	cat "$TODO"/.[0-9l]*
	! grep -q '^not ok' "$TODO"/.[0-9l]*
	exit
fi

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin scenarios "$@"
NODE_HTTP='  workers: 1
  retry_jitter: 0%'
declare -A allowed denied streams

coproc POST { exec "${MORTAL[@]}" python3 "$REPO/tests/cluster/post.py"; }
LAB_PIDS+=("$POST_PID")
redis_start main
proxy_start slow "${REDIS_PORT[main]}"
DIRECT=$CLUSTER_REDIS PROXIED=${CLUSTER_REDIS/:${REDIS_PORT[main]}/:${PROXY_PORT[slow]}}
nft add table inet cut
nft add set inet cut nodes '{ type ipv4_addr; }'
nft add chain inet cut in '{ type filter hook input priority 0; }'
nft add rule inet cut in ip saddr @nodes tcp dport "{ ${REDIS_PORT[main]}, ${PROXY_PORT[slow]} }" drop

# post NODE COUNT PATH BODY: sets passed, refused, retry and response.
post() {
	echo "$HUB/$1/http.sock ${*:2}" >&"${POST[1]}"
	read -r passed refused retry response <&"${POST[0]}"
}

# within WORDS VALUE LEAST MOST: check() of whole numbers, without a program. "-": any number
within() {
	[ "$3" != - ] || return
	if [[ $2 =~ ^[0-9]+$ ]] && ((10#$2 >= $3 && 10#$2 <= $4)); then
		ok "$1 ($2 in [$3, $4])"
	else
		not_ok "$1: $2 is not in [$3, $4]"
	fi
}

# verdicts WORDS DESCRIPTOR ALLOWED DENIED LEAST MOST LEAST MOST
verdicts() {
	allowed[$2]=$((${allowed[$2]:-0} + $3))
	denied[$2]=$((${denied[$2]:-0} + $4))
	within "$1 allowed" "$3" "$5" "$6"
	within "$1 denied" "$4" "$7" "$8"
}

# of NODE: sets names
of() {
	names=("$1")
	[ "$1" != any ] || names=("${nodes[@]}")
}

# requests WORDS AT NODE DESCRIPTOR BODY TIMES RETRY ALLOW DENY
requests() {
	local names name passed refused retry response all=0 over=0 ended

	of "$3"
	for name in "${names[@]}"; do
		post "$name" $(($6 / ${#names[@]})) /v1/check "$5"
		all=$((all + passed)) over=$((over + refused))
	done
	verdicts "$1" "$4" $all $over "${@:8}"
	case $7 in
	-) ;;
	never) check_is "$1 retry never" "$retry" - ;;
	*)
		# Seconds, rounded up. What was charged before, and this, came up to $late after the time stated.
		ended=$((${EPOCHREALTIME/[.,]/} / 1000 - begin - $2))
		late=$((ended > late ? ended : late))
		within "$1 retry" "$retry" $((($7 > late ? $7 - late + 999 : 999) / 1000)) $((($7 + late + 999) / 1000))
		;;
	esac
}

# analyzed FILTER: of what the nodes measured.
analyzed() {
	local name

	for name in "${nodes[@]}"; do
		node "$name" ctl analyze -o json
	done | jq -sr "$@"
}

# total WORDS DESCRIPTOR ALLOW DENY: a candidate's is what the nodes counted.
total() {
	local passed=${allowed[$2]:-0} refused=${denied[$2]:-0}

	case $2 in
	candidate:*)
		read -r passed refused < <(analyzed --arg name "${2#*:}" '[.[].limits[].candidates[]? |
			select(.name == $name)] | "\(map(.passed) | add) \(map(.refused) | add)"')
		;;
	esac
	within "$1 allowed in total" "$passed" "$3" "$4"
	within "$1 denied in total" "$refused" "$5" "$6"
}

# stream LINE NODE BODY TIMES EVERY_MS: in the background, by a program for each node.
stream() {
	local names name

	of "$2"
	for name in "${names[@]}"; do
		nsenter --net="/run/netns/$LAB_ID-$name" curl -s -m 60 -o /dev/null -w '%{http_code}\n' -d "$3" \
			--rate $((60000 / ($5 * ${#names[@]})))/m "$URL/v1/check#[1-$(($4 / ${#names[@]}))]" \
			> "$HUB/$name/stream-$1" &
		started
		streams[$1]+=" $!"
	done
}

# end_stream LINE NODE WORDS DESCRIPTOR ALLOW DENY
end_stream() {
	local names passed refused

	of "$2"
	wait ${streams[$1]}
	unset "streams[$1]"
	read -r passed refused < <(for name in "${names[@]}"; do cat "$HUB/$name/stream-$1"; done |
		awk '{ n[$1]++ } END { print n[200] + 0, n[429] + 0 }')
	verdicts "$3" "$4" "$passed" "$refused" "${@:5}"
}

# new_rules LINE: from the line behind it on.
new_rules() {
	local name

	sed "1,$1d; /^---\$/,\$d; s/CONSISTENCY/$consistency/" "$file" | http_rules api
	for name in "${nodes[@]}"; do
		node "$name" ctl reload > /dev/null || not_ok "$title:$1: reload"
	done
}

# report NODE BODY MS: of so long ago.
report() {
	local at= passed refused retry response

	[ "$3" = 0 ] || at=$(printf ',"at":%.6f' "$(calc "${EPOCHREALTIME/,/.} - $3 / 1000")")
	post "$1" 1 /v1/report "[${2%?}$at}]"
	[ "${response#'{"accepted":1,'}" != "$response" ] || not_ok "$title: report: $response"
}

# left WORDS NODE BODY LEAST MOST
left() {
	local passed refused retry response

	post "$2" 1 /v1/check "${3%?},\"peek\":true}"
	within "$1 left" "$(jq '.statuses[0].remaining' <<< "$response")" "$4" "$5"
}

# step WHAT LINE AT NODE DESCRIPTOR BODY TIMES MS RETRY ALLOW DENY
step() {
	local pause what="$title:$2: $5"

	pause=$(($3 + begin - ${EPOCHREALTIME/[.,]/} / 1000))
	[ $pause -ge "-$late" ] || late=$((-pause))
	[ $pause -le 0 ] || sleep "$(printf '%d.%03d' $((pause / 1000)) $((pause % 1000)))"
	case $1 in
	at) requests "$what, of $7" "$3" "$4" "$5" "$6" "$7" "${@:9}" ;;
	left) left "$what" "$4" "$6" "${@:10:2}" ;;
	report) report "$4" "$6" "$8" ;;
	stream) stream "$2" "$4" "$6" "$7" "$8" ;;
	end-stream) end_stream "$2" "$4" "$what, of $7" "$5" "${@:10}" ;;
	total) total "$what" "$5" "${@:10}" ;;
	rules) new_rules "$2" ;;
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
	slow) proxy slow delay $(($8 / 2)) > /dev/null ;;	# each way
	end-slow) proxy slow delay 0 > /dev/null ;;
	*) not_ok "$what: no '$1' on daemons" ;;
	esac
}

# play FILE: of $TODO.
play() {
	local title file consistency varies every line begin late=0 name failed=$LAB_FAILED

	{
		read -r title
		read -r file consistency
	} < "$1"
	sed '1,2d; /^---$/,$d' "$1" | http_rules api
	sed '1,/^---$/d' "$1" > "$LAB/steps"
	read -r varies every line < "$LAB/steps"
	read -ra nodes <<< "$line"
	utc_room 3600 60
	allowed=() denied=()
	CLUSTER_REDIS=$DIRECT
	grep -q '^slow ' "$LAB/steps" && CLUSTER_REDIS=$PROXIED
	for name in "${NODES[@]}"; do
		[ -z "${NODE_PID[$name]}" ] || node_stop "$name"
		rm -rf "${HUB:?}/$name/state"
	done
	# Once they have stopped: a node gives Redis back what it lost.
	redis main FLUSHALL > /dev/null
	for name in "${nodes[@]}"; do
		node_start "$name" "sync: 100ms"
	done
	wait_for 10 nodes_know_each_other "${nodes[@]}" || not_ok "$title: the nodes do not know each other"
	begin=$((${EPOCHREALTIME/[.,]/} / 1000))
	[ "$every" = 0 ] || begin=$(((begin / every + 1) * every))
	while read -ra line; do
		step "${line[@]}"
	done < <(tail -n +2 "$LAB/steps")
	echo "# $title: late by up to $late ms"; [ $LAB_FAILED = "$failed" ] || { echo "# $title: late by up to $late ms"; cluster_logs; }
}

while :; do
	next=$(ls -r "$TODO" | head -n 1)
	[ -n "$next" ] || break
	mv "$TODO/$next" "$LAB/next" 2> /dev/null && play "$LAB/next"
done
lab_done
