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

: "${LANES:=6}"

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
	cat "$TODO"/.?
	! grep -q '^not ok' "$TODO"/.?
	exit
fi

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin scenarios "$@"
NODE_HTTP='  workers: 1
  retry_jitter: 0%'
declare -A allowed denied streams

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

# post NODE PATH JSON: prints the body of the response.
post() {
	node "$1" request -d "$3" "$2" > /dev/null
	cat "$HUB/$1/body"
}

# send NODE COUNT BODY FILE [CURL OPTIONS]: COUNT requests on one connection; FILE gets "STATUS RETRY-AFTER".
send() {
	nsenter --net="/run/netns/$LAB_ID-$1" curl -s -m 60 -o /dev/null "${@:5}" \
		-w '%{http_code} %header{retry-after}\n' -d "$3" "$URL/v1/check#[1-$2]" > "$HUB/$1/$4"
}

# counts FILE NODE...: how many there were allowed, how many denied.
counts() {
	local name

	for name in "${@:2}"; do
		cat "$HUB/$name/$1"
	done | awk '{ n[$1]++ } END { print n[200] + 0, n[429] + 0 }'
}

# verdicts WORDS DESCRIPTOR "ALLOWED DENIED" LEAST MOST LEAST MOST: "-": any number
verdicts() {
	local passed=${3% *} refused=${3#* }

	allowed[$2]=$((${allowed[$2]:-0} + passed))
	denied[$2]=$((${denied[$2]:-0} + refused))
	[ "$4" = - ] || check "$1 allowed" "$passed" "$4" "$5"
	[ "$6" = - ] || check "$1 denied" "$refused" "$6" "$7"
}

# requests WORDS AT NODE DESCRIPTOR BODY TIMES RETRY ALLOW DENY
requests() {
	local names=("$3") name retry

	[ "$3" != any ] || names=("${nodes[@]}")
	for name in "${names[@]}"; do
		send "$name" $(($6 / ${#names[@]})) "$5" "sent"
	done
	verdicts "$1" "$4" "$(counts sent "${names[@]}")" "${@:8}"
	[ "$7" != - ] || return
	retry=$(tail -n 1 "$HUB/$name/sent")
	retry=${retry#* }
	if [ "$7" = never ]; then
		check_is "$1 retry never" "$retry" ""
		return
	fi
	# Seconds, rounded up. What was charged before, or this, came later than stated by $late at most.
	late=$(($(now_ms) - begin - $2 > late ? $(now_ms) - begin - $2 : late))
	check "$1 retry" "$retry" $((($7 - late + 999) / 1000)) $((($7 + late + 999) / 1000))
}

# analyzed FILTER: of what the nodes measured.
analyzed() {
	local name

	for name in "${nodes[@]}"; do
		node "$name" ctl analyze -o json
	done | jq -sr "$@"
}

# total WORDS DESCRIPTOR ALLOW DENY: a candidate's and the edge's are what the nodes counted.
total() {
	local all="${allowed[$2]:-0} ${denied[$2]:-0}"

	case $2 in
	candidate:*)
		all=$(analyzed --arg name "${2#*:}" '[.[].limits[].candidates[]? | select(.name == $name)] |
			"\(map(.passed) | add) \(map(.refused) | add)"')
		;;
	edge:) all=$(analyzed '[.[].limits[].edge_peak // 0] | max * 100 | round | "\(.) 0"') ;;
	esac
	allowed[$2]=0 denied[$2]=0
	verdicts "$1 in total" "$2" "$all" "${@:3}"
}

# stream LINE NODE BODY TIMES EVERY_MS: in the background.
stream() {
	local names=("$2") name

	[ "$2" != any ] || names=("${nodes[@]}")
	for name in "${names[@]}"; do
		send "$name" $(($4 / ${#names[@]})) "$3" "stream-$1" \
			--rate $((60000 / ($5 * ${#names[@]})))/m &
		started
		streams[$1]+=" $!"
	done
}

# end_stream LINE NODE WORDS DESCRIPTOR ALLOW DENY
end_stream() {
	local names=("$2")

	[ "$2" != any ] || names=("${nodes[@]}")
	wait ${streams[$1]}
	unset "streams[$1]"
	verdicts "$3" "$4" "$(counts "stream-$1" "${names[@]}")" "${@:5}"
}

# rules FILE LINE CONSISTENCY: those from the line behind it on.
new_rules() {
	local name

	sed "1,$2d; /^---\$/,\$d; s/CONSISTENCY/$3/" "$1" | http_rules api
	for name in "${nodes[@]}"; do
		node "$name" ctl reload > /dev/null || not_ok "$title:$2: reload"
	done
}

# report NODE BODY MS: of so long ago.
report() {
	post "$1" /v1/report "$(jq -c --arg ms "$3" '[. + if $ms == "0" then {} else
		{at: (now - ($ms | tonumber) / 1000)} end]' <<< "$2")" > /dev/null
}

# step WHAT LINE AT NODE DESCRIPTOR BODY TIMES MS RETRY ALLOW DENY
step() {
	local pause=$(($3 - $(now_ms) + begin)) what="$title:$2: $5"

	[ $pause -le 0 ] || sleep "$(printf '%d.%03d' $((pause / 1000)) $((pause % 1000)))"
	case $1 in
	at) requests "$what, of $7" "$3" "$4" "$5" "$6" "$7" "${@:9}" ;;
	left) check "$what left" "$(post "$4" /v1/check "${6%?},\"peek\":true}" |
		jq '.statuses[0].remaining')" "${@:10:2}" ;;
	report) report "$4" "$6" "$8" ;;
	stream) stream "$2" "$4" "$6" "$7" "$8" ;;
	end-stream) end_stream "$2" "$4" "$what, of $7" "$5" "${@:10}" ;;
	total) total "$what" "$5" "${@:10}" ;;
	rules) new_rules "$file" "$2" "$consistency" ;;
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
	begin=$(now_ms)
	[ "$every" = 0 ] || begin=$(((begin / every + 1) * every))
	while read -ra line; do
		step "${line[@]}"
	done < <(tail -n +2 "$LAB/steps")
	[ $LAB_FAILED = "$failed" ] || cluster_logs
}

while :; do
	next=$(ls -r "$TODO" | head -n 1)
	[ -n "$next" ] || break
	mv "$TODO/$next" "$LAB/next" 2> /dev/null && play "$LAB/next"
done
lab_done
