#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Whatever happens to Redis, a response comes in time on every frontend, each rule does what its
# on_store_failure states, in the form of each frontend, and service recovers by itself: Redis stopped,
# standing still (SIGSTOP), killed and restarted empty, cut off by nft, slow.
#
# Two nodes, four rules, six frontends: each of these 48 gets 66 requests a second before, during and after
# each fault. The deadline is the default, 5 ms; 99 of 100 responses take less than half of it, by the clients'
# clock and by the nodes'.
#
# The machine has others on it, so clients, nodes and Redis get a CPU at once here (SCHED_FIFO). A virtual
# CPU that sleeps wakes up milliseconds late on some hosts, so a loop of the lowest priority (SCHED_IDLE)
# keeps each awake.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin faults "$@"

DEADLINE=${FAULTS_DEADLINE:-5}
NODE_HTTP='  workers: 2
  grpc: [127.0.0.1:8181]
  spoe: [127.0.0.1:8182]'
RULES_OF=(local open closed error)
# What each frontend responds: passes, closed, error.
cat > "$HUB/says" <<'SAYS'
check 200 503 503
auth 200 503 503
nginx 204 403 500
json 200 429 503
grpc OK OVER_LIMIT UNAVAILABLE
spoe free limited none
SAYS
PROBE=$(check_body api closed=probe)
declare -A LOAD_PID=()
# The bound of 99 of 100 responses (ms): they do not wait for Redis. (The first five of each worker do, 4 of 5 ms.)
SOON=$(calc "$DEADLINE / 2")
EVERY=15 FOR=1.5	# ms between two questions; s that a fault lasts

# ---------------------------------------------------------------- the load, in phases

load() {
	local name frontend rule lines=()

	while read -r frontend _; do
		for rule in "${RULES_OF[@]}"; do
			lines+=("$frontend:$rule=x")
		done
	done < "$HUB/says"
	PHASE=0 LOADED=("$@")
	for name; do
		nsenter "--net=/run/netns/$LAB_ID-$name" "$BIN/tests/cluster/load" $EVERY api "$HUB/load-$name" \
			"${lines[@]}" 2> "$HUB/$name/load" &
		started
		LOAD_PID[$name]=$!
	done
}

load_end() {
	local name

	for name in "${LOADED[@]}"; do
		kill -TERM "${LOAD_PID[$name]}"
		wait "${LOAD_PID[$name]}" || not_ok "load: $(cat "$HUB/$name/load")"
	done
	rm -f "$HUB"/load-*
}

phase_there() {
	local name

	for name in "${LOADED[@]}"; do
		[ -e "$HUB/load-$name.$PHASE" ] || return
	done
}

# phase NAME: the responses since the last phase are NAME's, in $HUB/NAME.
phase() {
	local name

	PHASE=$((PHASE + 1))
	for name in "${LOADED[@]}"; do
		kill -USR1 "${LOAD_PID[$name]}"
	done
	wait_for 5 phase_there || not_ok "$1: no responses: $(cat "$HUB"/*/load)"
	cat "$HUB"/load-*."$PHASE" > "$HUB/$1"
	cat "$HUB"/load-*."$PHASE".took > "$HUB/$1.took"
}

# p99 NAME...: of all responses of these phases, of every node, frontend and rule (ms).
p99() {
	(cd "$HUB" && sort -n "${@/%/.took}") |
		awk '{ at[NR] = $1 } END { print (NR ? at[int((NR - 1) * 0.99) + 1] : "none") }'
}

# waited NAME: how many of its responses took four fifths of the deadline, the time that Redis is waited for (%).
waited() {
	awk -v ms="$(calc "$DEADLINE * 0.8")" '{ n += $1 >= ms } END { print (NR ? 100 * n / NR : "none") }' \
		"$HUB/$1.took"
}

# said NAME well|away: how many of the responses of that phase are what each frontend should send then; a line
# "FRONTEND LOCAL OPEN CLOSED ERROR" for each (%).
said() {
	awk -v when="$2" 'NR == FNR { says[$1, "local"] = says[$1, "open"] = $2
			says[$1, "closed"] = when == "well" ? $2 : $3; says[$1, "error"] = when == "well" ? $2 : $4
			frontend[NR] = $1; frontends = NR; next }
		{ split($1, at, "[:=]"); all[at[1], at[2]] += $2; want = says[at[1], at[2]] ":"
			for (i = 6; i <= NF; i++) if (index($i, want) == 1) n[at[1], at[2]] += substr($i, length(want) + 1) }
		function of(f, rule) { return all[f, rule] ? 100 * n[f, rule] / all[f, rule] : -1 }
		END { for (i = 1; i <= frontends; i++) { f = frontend[i]
			print f, of(f, "local"), of(f, "open"), of(f, "closed"), of(f, "error") } }' \
		"$HUB/says" "$HUB/$1"
}

# decided: "COUNT SLOW" of all decisions of the nodes so far: SLOW of them took longer than 2 ms, by their own clock.
decided() {
	local name

	for name in "${LOADED[@]}"; do
		node "$name" metrics
	done | awk '/^sluice_decision_duration_seconds_bucket\{le="0.002048"\}/ { quick += $2 }
		/^sluice_decision_duration_seconds_count/ { all += $2 } END { print all, all - quick }'
}

# ---------------------------------------------------------------- bounds

# passed NAME: the least of any rule on any frontend, of 100.
passed() {
	said "$1" well | cut -d' ' -f2- | tr ' ' '\n' | sort -n | head -n 1
}

# The machine may stand still for longer than the deadline, more than once in a hundred responses. That is a fault
# of its own: the measurement is repeated a few times, and holds if it holds once.

# well WORDS: for half a second all pass, in time. (If a stall comes just after a fault, Redis is not tried
# for up to three seconds more.)
well() {
	for _ in 1 2 3 4 5 6 7 8 9; do
		sleep 0.5
		phase well
		[ "$(floor "$(passed well)")" -ge 95 ] && [ "$(floor "$(p99 well)")" -lt "$DEADLINE" ] && break
	done
	check "$1: 99 of 100 responses within (ms)" "$(p99 well)" 0 "$DEADLINE"
	check "$1: all rules on all frontends let through (%)" "$(passed well)" 95 100
}

# healed NODE...: all their workers reach Redis, and a rule with `closed` lets through.
healed() {
	local name

	for name; do
		[ "$(node "$name" metric sluice_store_breaker_open)" = 0 ] &&
			[ "$(node "$name" request -d "$PROBE" /v1/check)" = 200 ] || return
	done
}

connections() {
	redis_info main total_connections_received
}

# A user over the limit stays over. In an empty Redis that holds only once each node has restored its charges.
over() {
	local name passed=0

	for name in "${LOADED[@]}"; do
		passed=$((passed + $(node "$name" many 5 api few=over)))
	done
	MEANWHILE=$((MEANWHILE + passed))
	[ $passed = 0 ]
}

# each_says WORDS: what each frontend responds while Redis is unavailable.
each_says() {
	local frontend pass closed error

	said away away > "$HUB/said"
	while read -r frontend pass closed error; do
		check_is "$1: $frontend: local, open, closed and error say $pass, $pass, $closed, $error (%)" \
			"$(sed -n "s/^$frontend //p" "$HUB/said")" "100 100 100 100"
	done < "$HUB/says"
}

# suffer WORDS BREAK MEND: $TOOK has how long responses took: p99 during the fault, and until recovery (ms);
# how many waited (%); of how many decisions how many were slow, by the nodes' clock.
suffer() {
	local name before

	phase before
	before=$(connections)
	$2
	phase begin
	TOOK=$(decided)
	sleep $FOR
	phase away
	TOOK="$(p99 begin away) $(waited away) $(paste <(echo "$TOOK") <(decided) | awk '{ print $3 - $1, $4 - $2 }')"
	each_says "$1"
	for name in "${LOADED[@]}"; do
		check_is "$1: a user over the limit stays over: $name" \
			"$(node "$name" many 5 api few=over) $(sort "$HUB/$name/many" | uniq | xargs)" "0 429"
		check_is "$1: $name stays ready" "$(node "$name" request /readyz)" 200
	done
	$3
	check_true "$1: recovered" wait_for 10 healed "${LOADED[@]}"
	phase heals
	TOOK="$(p99 begin away heals) $TOOK"
	# Four clients of each node: their attempts during the fault, every second or two, and one afterwards.
	[ "$(connections)" -ge "$before" ] || before=0
	check "$1: no storm of connections" "$(($(connections) - before))" 0 50
}

in_time() {
	awk -v took="$TOOK" -v ms="$SOON" 'BEGIN { split(took, at)
		exit !(at[1] < ms && at[2] < ms && at[3] <= 1 && at[5] <= at[4] / 100) }'
}

# fault WORDS BREAK MEND
fault() {
	local all away waited count slow

	for _ in 1 2 3; do
		suffer "$@"
		in_time && break
	done
	read -r all away waited count slow <<< "$TOOK"
	echo "# $1: $(cat "$HUB/begin.took" "$HUB/away.took" | wc -l) answers, the longest $(
		sort -n "$HUB/begin.took" "$HUB/away.took" | tail -n 1) ms"
	check "$1: 99 of 100 responses within (ms)" "$away" 0 "$SOON"
	check "$1: and until recovery (ms)" "$all" 0 "$SOON"
	# Each worker's first five, and those that a stall delays.
	check "$1: soon no request waits for Redis (%)" "$waited" 0 1
	check "$1: by the nodes' clock: of $count decisions longer than 2 ms" "$slow" 0 $((count / 100))
	well "$1, and it is over"
	MEANWHILE=0
	check_true "$1, afterwards: a user over the limit is still over" wait_for 10 over
	check "$1, afterwards: what that user got meanwhile, of a limit of 20" $MEANWHILE 0 20
}

http_rules api <<'YAML'
  - {key: local, limits: 1M requests/d, scope: cluster, consistency: strict, on_store_failure: local}
  - {key: open, limits: 1M requests/d, scope: cluster, consistency: strict, on_store_failure: open}
  - {key: closed, limits: 1M requests/d, scope: cluster, consistency: strict, on_store_failure: closed}
  - {key: error, limits: 1M requests/d, scope: cluster, consistency: strict, on_store_failure: error}
  - {key: few, limits: 20 requests/d, scope: cluster, consistency: strict, on_store_failure: open}
YAML
utc_room 86400 120

for ((cpu = 0; cpu < $(nproc); cpu++)); do
	chrt -i 0 taskset -c $cpu bash -c 'while :; do :; done' &
	started
done
redis_start main
at_once "${REDIS_PID[main]}"
for name in a b; do
	node_start $name "deadline: ${DEADLINE}ms"
	at_once "${NODE_PID[$name]}"
done
check_true "at the start all is well" wait_for 10 healed a b
check "strict: both nodes together hold the limit" "$(spread 30 api few=over)" 20 20

# ---------------------------------------------------------------- under load

pause() { redis_pause main; }
resume() { redis_resume main; }
cut_off() { nft add rule ip lab in tcp dport "${REDIS_PORT[main]}" drop; }
join() { nft flush chain ip lab in; }
stop() { redis_stop main; }
killed() { redis_kill main; }
again() {
	redis_again main
	at_once "${REDIS_PID[main]}"
}

load a b
well "all is well"
fault "it stands still" pause resume
nft add table ip lab
nft 'add chain ip lab in { type filter hook input priority 0; }'
fault "cut off" cut_off join
fault "stopped" stop again
fault "killed" killed again
load_end

# ---------------------------------------------------------------- slow

# Through a proxy that delays both directions: a round trip takes four deadlines.
EVERY=20 FOR=4
node_stop a
node_stop b
proxy_start slow "${REDIS_PORT[main]}"
at_once "${LAB_PIDS[-1]}"
redis_use single main
CLUSTER_REDIS=${CLUSTER_REDIS/:${REDIS_PORT[main]}/:${PROXY_PORT[slow]}}
node_start c "deadline: ${DEADLINE}ms"
at_once "${NODE_PID[c]}"
check_true "through a proxy: all is well" wait_for 10 healed c
# (A late reply, such as the first over a new connection, may let one through: the rule is `open`.)
over_through_proxy() { [ "$(node c many 5 api few=over)" = 0 ]; }
check_true "through a proxy: a user over the limit is refused" wait_for 5 over_through_proxy
slow() { proxy slow delay $((2 * DEADLINE)) > /dev/null; }
quick() { proxy slow delay 0 > /dev/null; }

load c
well "through a proxy"
fault "slow" slow quick
load_end

lab_done
