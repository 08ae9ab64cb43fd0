#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Requests for later, on two nodes, a Redis with an append-only file and a worker: released in order at the
# limit's rate, charged once with all others, none lost when a node, the worker and Redis are killed; looked up,
# cancelled, refused where there is no room, dead where nobody acknowledges them.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin defer "$@"

# `daily` releases nothing within the test.
http_rules api <<'YAML'
  - key: user
    limits: [10 requests/s]
    algorithm: token-bucket
    burst: 1
    scope: cluster
    on_limit: {defer: {max: 100, ttl: 1h, retry: 1s}}
  - key: busy
    limits: [10 requests/s]
    algorithm: token-bucket
    burst: 1
    scope: cluster
    on_limit: {defer: {ttl: 1h}}
  - key: daily
    limits: [1 requests/d]
    scope: cluster
    on_limit: {defer: {max: 3, ttl: 5s}}
  - key: short
    limits: [1 requests/s]
    algorithm: token-bucket
    burst: 1
    scope: cluster
    on_limit: {defer: {ttl: 1h, deliveries: 1, retry: 1s}}
YAML

# An fsync may take longer than an interval here: `always` only where something is killed.
redis_start main --appendonly yes --appendfsync everysec
for name in a b; do node_start $name; done
ready() { [ "$(for n in a b; do node $n metric sluice_store_up; done | xargs)" = "1 1" ]; }
check_true "the nodes have a store" wait_for 10 ready
worker_user() { redis main XINFO GROUPS 'sluice:defer:{api/user}:released' | grep -qx workers; }
check_true "the consumer group is there before the first request" wait_for 5 worker_user

# check NODE KEY VALUE [REFERENCE]: prints the status, and "TICKET POSITION"; $HUB/body.
ask() {
	local body=${4:+,\"reference\":\"$4\"}

	nsenter --net="/run/netns/$LAB_ID-$1" curl -s -m 5 -o "$HUB/body" -w '%{http_code}' "http://127.0.0.1:8180/v1/check" \
		-d "{\"domain\":\"api\",\"descriptors\":[{\"entries\":[{\"key\":\"$2\",\"value\":\"$3\"}]}]$body}"
	[ ! -s "$HUB/body" ] || jq -r 'select(.ticket) | " \(.ticket) \(.position)"' "$HUB/body" | tr -d '\n'
}
# asks NODE KEY VALUE REFERENCE...: a request for each, one after the other on one connection; prints their statuses.
# The tickets are in $HUB/asked.
asks() {
	local node=$1 key=$2 value=$3 reference

	shift 3
	for reference; do
		[ "$reference" = "$1" ] || echo next
		printf 'url = "http://127.0.0.1:8180/v1/check"\nsilent\nmax-time = 5\nwrite-out = " %%{http_code}\\n"\n'
		printf 'data = "{\\"domain\\":\\"api\\",\\"descriptors\\":[{\\"entries\\":[{\\"key\\":\\"%s\\",\\"value\\":\\"%s\\"}]}],\\"reference\\":\\"%s\\"}"\n' \
			"$key" "$value" "$reference"
	done > "$HUB/asks"
	nsenter --net="/run/netns/$LAB_ID-$node" curl -K "$HUB/asks" > "$HUB/asked"
	sed 's/.* //' "$HUB/asked"
}
# ticket NODE METHOD TICKET: the state (and its number), or the status.
ticket() {
	nsenter --net="/run/netns/$LAB_ID-$1" curl -s -m 5 -X "$2" "http://127.0.0.1:8180/v1/defer/$3" |
		jq -r '[.state // .status, .position // .deliveries // empty] | map(tostring) | join(" ")'
}
entries() { redis main XRANGE "sluice:defer:{api/$1}:$2" - + | grep -A1 '^reference$' | grep -v '^reference$\|^--$'; }

# ---- in order, at the rate, whichever node

check_is "the first passes, the others are deferred" "$(asks a user bob job-0 $(seq -f 'job-%g' 1 10) | uniq -c | xargs)" \
	"1 200 10 202"
first=$(sed -n 2p "$HUB/asked" | jq -R -r 'split(" ")[0] | fromjson | .ticket')
check_is "on another node, too" "$(asks b user bob $(seq -f 'job-%g' 11 20) | uniq -c | xargs)" "10 202"
check_is "without a reference they are refused" "$(spread 20 api user=bob)" 0
check_is "a neighbor is not touched" "$(ask b user alice)" 200
released() { [ "$(entries user released | wc -l)" = 20 ]; }
check_true "all are released" wait_for 10 released
check_is "in order" "$(entries user released | xargs)" "$(seq -f 'job-%g' 1 20 | xargs)"
# "SPAN MEDIAN" of the times of releases, ms: a machine that stands still makes some late, not the median.
times() {
	redis main XRANGE "sluice:defer:{api/user}:released" - + | grep -E '^[0-9]{13}-[0-9]+$' | sed 's/-.*//' |
		awk 'NR == 1 { first = $1 } NR > 1 { print $1 - last > "/dev/stderr" } { last = $1 } END { print last - first }' \
			2> "$HUB/intervals"
	sort -n "$HUB/intervals" | sed -n 10p
}
read -r span median <<< "$(times | xargs)"
check "no faster than the limit: 19 intervals of 100 ms" "$span" 1850 9000
check "at its rate: the median interval" "$median" 90 108
check_is "it waits for a worker" "$(ticket b GET "$first")" "released 0"

# ---- nobody overtakes those that wait: 60 for 6 s, and thousands beside them

asks a busy bob $(seq -f 'b-%g' 60) > /dev/null
last=$(tail -n 1 "$HUB/asked" | jq -R -r 'split(" ")[0] | fromjson | .ticket')
check_is "no request overtakes those that wait" "$(spread 3000 api busy=bob)" 0
check_is "they waited all the time" "$(ticket a GET "$last" | cut -d' ' -f1)" waiting

# ---- the worker of the example; killed

cat > "$LAB/job" <<SH
#!/bin/bash
echo "\$1" >> "$HUB/jobs"
[ ! -e "$HUB/slow" ] || sleep 30
SH
chmod +x "$LAB/job"
start_worker() {
	REDIS="redis-cli -h $REDIS_IP -p ${REDIS_PORT[main]}" QUEUE=api/user RETRY=1 "${MORTAL[@]}" \
		bash docs/examples/defer/worker.sh "$1" "$LAB/job" > "$HUB/worker.log" 2>&1 &
	WORKER=$!
	started
	disown $!
}
touch "$HUB/slow"
start_worker one
has_jobs() { [ "$(sort -u "$HUB/jobs" 2> /dev/null | wc -l)" -ge "$1" ]; }
check_true "a worker takes the first" wait_for 5 has_jobs 1
check_is "a ticket that a worker has" "$(ticket a GET "$first")" "released 1"
kill -KILL $WORKER
rm "$HUB/slow"
sum() { redis main HGET 'sluice:defer:{api/user}:state' "$1"; }
charges=$(sum released)
start_worker two
check_true "another one does all of them" wait_for 10 has_jobs 20
again() { [ "$(grep -cx job-1 "$HUB/jobs")" = 2 ]; }
check_true "the one that was taken is delivered again" wait_for 5 again
check_is "the others once, in order" "$(grep -vx job-1 "$HUB/jobs" | xargs)" "$(seq -f 'job-%g' 2 20 | xargs)"
check_is "a redelivery is no release" "$(sum released)" "$charges"
is_done() { [ "$(ticket a GET "$first")" = "done" ] && [ "$(redis main XLEN 'sluice:defer:{api/user}:released')" = 0 ]; }
check_true "what is acknowledged is done" wait_for 5 is_done
check_is "counted, and it takes no room any more" "$(sum done) $(redis main HLEN 'sluice:defer:{api/user}:tickets')" "20 0"

# ---- kill -9 of a node, the worker and Redis under load: none is lost

redis main CONFIG SET appendfsync always > /dev/null
accepted=()
# load FIRST LAST: through b; adds those that were deferred.
load() {
	local jobs

	mapfile -t jobs < <(seq -f 'job-%g' "$1" "$2")
	mapfile -t status < <(asks b user bob "${jobs[@]}")
	for i in "${!jobs[@]}"; do
		[ "${status[i]}" != 202 ] || accepted+=("${jobs[i]}")
	done
}
load 101 110
node_kill a
load 111 120
kill -KILL $WORKER
load 121 130
redis_kill main
redis_again main
redis main CONFIG SET appendfsync always > /dev/null
again() { [ "$(asks b user bob job-131)" = 202 ]; }
check_true "requests are deferred again" wait_for 10 again
accepted+=(job-131)
start_worker three
load 132 140
check "most were accepted" ${#accepted[@]} 30 40
node_start a
all_done() { for job in "${accepted[@]}"; do grep -qx "$job" "$HUB/jobs" || return 1; done; }
check_true "a node, the worker and Redis were killed: every accepted request is done" wait_for 20 all_done
late=$(grep -E '^job-1[0-9][0-9]$' "$HUB/jobs" | awk -F- '!seen[$2]++ { if ($2 < most) n++; else most = $2 } END { print n + 0 }')
check "in order, but the one that the worker had" "$late" 0 1

# ---- cancel, full, ttl

ask a daily eve > /dev/null
read -r status one position < <(ask a daily eve e-1)
read -r status two position < <(ask b daily eve e-2)
read -r status three position < <(ask a daily eve e-3)
check_is "the third of three" "$status $position" "202 3"
check_is "one more than max is refused as without defer" "$(ask b daily eve e-4)" 429
check_is "cancelled, on another node" "$(ticket b DELETE "$one")" cancelled
check_is "those after it move up" "$(ticket a GET "$three")" "waiting 2"
check_is "a cancelled ticket" "$(ticket a GET "$one")" 404
check_is "cancelled once" "$(ticket b DELETE "$one")" 404
check_is "a ticket of nobody" "$(ticket a GET "${one:0:40}00000000")" 404
check_is "no ticket" "$(ticket a GET x)" 404
read -r status four position < <(ask b daily eve e-5)
check_is "there is room again" "$status $position" "202 3"

# ---- nobody acknowledges

ask a short dan > /dev/null
read -r status dead position < <(ask a short dan d-1)
taken() { [ "$(redis main XREADGROUP GROUP workers me STREAMS 'sluice:defer:{api/short}:released' '>' | grep -cx d-1)" = 1 ]; }
check_true "a worker takes it, and dies" wait_for 5 taken
check_is "the release was charged: nothing passes right after it" "$(ask a short dan)" 429
is_dead() { [ "$(ticket b GET "$dead")" = dead ]; }
check_true "after its deliveries it is dead" wait_for 5 is_dead
check_is "and why" "$(redis main XRANGE 'sluice:defer:{api/short}:dead' - + | grep -A1 '^reason$' | tail -n 1)" deliveries

is_dead() { [ "$(ticket a GET "$four")" = dead ]; }
check_true "over its ttl it is dead" wait_for 10 is_dead
check_is "dead letters" "$(entries daily dead | xargs)" "e-2 e-3 e-5"

# ---- what is shown

check_is "defer list" "$(node a ctl defer list -o json | jq -c '[.rules[] | select(.rule != "api/busy") | [.rule, .dead, .sum.full, .not_durable]]')" \
	'[["api/user",0,0,false],["api/daily",3,1,false],["api/short",1,0,false]]'
check_is "the metric of dead ones" "$(node a metric sluice_http_deferred domain=api rule=daily state=dead)" 3
check_is "Redis has an append-only file" "$(node a metric sluice_http_defer_durable domain=api rule=user)" 1
redis main CONFIG SET appendonly no > /dev/null
warned() { grep -q 'requests that api/user defers are lost when Redis stops' "$HUB/a/daemon.log"; }
check_true "the log says that the append-only file is off" wait_for 10 warned
check_is "so does doctor" "$(node a ctl doctor | grep -c 'api/user defers are lost when Redis stops')" 1

# One server must have all keys.
sed 's/mode: single/mode: cluster/' "$HUB/a/sluice.yaml" > "$LAB/slots.yaml"
check_is "check says that a Redis Cluster cannot defer" \
	"$("$BIN/sluicectl" check "$LAB/slots.yaml" 2>&1 | grep -c 'api/user": on_limit defers requests, but that needs')" 1
check_is "nor says it of a single server" "$("$BIN/sluicectl" check "$HUB/a/sluice.yaml" 2>&1 | grep -c 'on_limit defers')" 0

# ---- without Redis, within the deadline

redis_kill main
failed() { node a metric sluice_http_deferrals_total domain=api rule=user outcome=failed; }
check_is "without Redis it is refused as without defer" "$(asks a user zoe $(seq -f 'z-%g' 1 12) | sort -u | tail -n 1)" 429
check "and counted" "$(failed)" 1 12
lab_done
