#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Requests on two nodes that share limits through a real Redis: statuses, headers, remaining units, all
# or none over limits of both kinds, delayed responses, reports, the behavior without Redis, and two
# requests at once for the last unit.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin ask "$@"

http_rules api << 'YAML'
  - key: user
    scope: cluster
    limits: ['5 requests/d']
  - key: both
    limits: [{name: all, rate: 3 requests/d, scope: cluster}, {name: here, rate: 2 requests/d}]
  - key: log
    scope: cluster
    algorithm: sliding-log
    limits: ['3 requests/h']
  - key: bucket
    scope: cluster
    algorithm: token-bucket
    limits: ['4 requests/h']
    burst: 4
  - {key: first, scope: cluster, window: first-request, limits: ['4 requests/h']}
  - {key: sliding, scope: cluster, algorithm: sliding-window, limits: ['4 requests/d']}
  - key: patient
    scope: cluster
    algorithm: leaky-bucket
    limits: ['4 requests/s']
    on_limit: {wait: 5s, queue: 20}
  - {key: open, scope: cluster, limits: ['2 requests/d'], on_store_failure: open}
  - {key: closed, scope: cluster, limits: ['2 requests/d'], on_store_failure: closed}
  - {key: error, scope: cluster, limits: ['2 requests/d'], on_store_failure: error}
  - {key: local, scope: cluster, limits: ['8 requests/d'], on_store_failure: local}
  - {key: last-fixed, scope: cluster, consistency: strict, limits: ['1 requests/d']}
  - {key: last-first, scope: cluster, consistency: strict, window: first-request, limits: ['1 requests/h']}
  - {key: last-sliding, scope: cluster, consistency: strict, algorithm: sliding-window, limits: ['1 requests/d']}
  - {key: last-bucket, scope: cluster, consistency: strict, algorithm: token-bucket, limits: ['1 requests/h'], burst: 1}
  - {key: last-log, scope: cluster, consistency: strict, algorithm: sliding-log, limits: ['1 requests/h']}
YAML

redis_start main
node_start a
node_start b

# ask NODE KEY=VALUE...: prints the status.
ask() {
	local name=$1

	shift
	node "$name" http_check api "$@"
}

# header_of NODE HEADER: of its last response.
header_of() {
	node "$1" header "$2"
}

# of NODE FILTER: of its last response's body.
of() {
	jq -rc "$2" < "$HUB/$1/body"
}

check_is "a request passes" "$(ask a user=bob)" 200
check_is "what remains" "$(header_of a X-RateLimit-Remaining)" 4
check_is "the other node counts on from there" "$(ask b user=bob) $(header_of b X-RateLimit-Remaining)" "200 3"
check_is "the first node counts on after it" "$(ask a user=bob) $(header_of a X-RateLimit-Remaining)" "200 2"
check_is "the headers list the cluster limit" "$(header_of a RateLimit-Policy)" '"user";q=5;w=86400'
check_is "no more than the remaining two pass" "$(spread 4 api user=bob)" 2
check_is "the next request is refused" "$(ask b user=bob) $(header_of b X-RateLimit-Remaining)" "429 0"
check_is "the response names the limit that refused it" "$(of b '."violated-policies"')" '["user"]'
check_true "Retry-After is the time until there is room" [ "$(header_of b Retry-After)" -gt 30 ]
check_is "another user has the whole limit" "$(ask b user=al) $(header_of b X-RateLimit-Remaining)" "200 4"

# Limits of both kinds: the node's own limit refuses, and the cluster limit is not charged.
check_is "a node limit and a cluster limit: the node's own refuses the third" "$(ask a both=bob) $(ask a both=bob) $(ask a both=bob)" "200 200 429"
check_is "a refusal by one node's own limit is not charged to the cluster limit" "$(ask b both=bob) $(ask b both=bob)" "200 429"
check_is "the cluster limit refuses on the other node" "$(of b '."violated-policies"')" '["all"]'

check_is "a sliding log" "$(ask a log=x) $(ask b log=x) $(ask a log=x) $(ask b log=x)" "200 200 200 429"
check_is "a token bucket" "$(spread 6 api bucket=x)" 4

# Users that only the other node has seen.
shown() { node "$1" ctl -o json user show "$2" "$3" | jq -c '.limits | map(.remaining)'; }
for key in user bucket log patient; do
	ask b $key=unseen > /dev/null
done
check_is "user show has the counts of all nodes" "$(shown a api/user unseen) $(shown a api/bucket unseen)" "[4] [3]"
check_is "user show of a log, too" "$(shown a api/log unseen) $(shown b api/log unseen)" "[2] [2]"
check_is "user show charges nothing" "$(shown a api/user unseen) $(shown b api/user unseen)" "[4] [4]"
check_is "user show of limits of both kinds" "$(shown b api/both bob)" "[0,1]"

# Peeks.
peek() {
	node "$1" request -d "$(check_body api "$2" --peek true)" /v1/check
}
check_is "a peek shows what remains" "$(peek a user=al) $(of a '.statuses[0].remaining')" "200 4"
check_is "a peek charges nothing" "$(peek b user=al) $(of b '.statuses[0].remaining')" "200 4"

# A report counts on every node within a moment.
check_is "a report is accepted" "$(node a request -d "[$(check_body api user=eve)]" /v1/report)" 202
eve() {
	[ "$(peek b user=eve) $(of b '.statuses[0].remaining')" = "200 4" ]
}
check_true "the other node counts it" wait_for 5 eve

node a ctl user reset api/user bob > /dev/null
fresh() {
	[ "$(ask b user=bob)" = 200 ]
}
check_true "a reset on one node holds for all" wait_for 5 fresh

# The other node has charged the same requests: it must not take the reset for a loss and restore them.
for key in bucket first sliding log; do
	limit=4
	[ $key != log ] || limit=3
	spread 6 api $key=reset > /dev/null
	check_is "$key: used up" "$(ask a $key=reset) $(ask b $key=reset)" "429 429"
	node a ctl user reset api/$key reset > /dev/null
	reset_seen() { [ "$(peek b $key=reset) $(of b '.statuses[0].remaining')" = "200 $limit" ]; }
	check_true "$key: a reset on one node holds for all" wait_for 5 reset_seen
	check_is "$key: the whole limit is there again, once" "$(spread 8 api $key=reset)" $limit
done
check_is "no charge was taken for lost" "$(for name in a b; do
	node $name ctl -o json cluster show | jq .quota.lost; done | xargs)" "0 0"

# Delayed responses: eight on each of two nodes at once, four a second.
hold() {
	node "$1" many 8 api patient=x > "$HUB/$1/held" &
}
MANY=(-Z --no-progress-meter --parallel-max 8 -H 'X-Sluice-Wait: 5s')
begin=$(now)
hold a
hold b
wait
took=$(calc "$(now) - $begin")
check_is "all delayed requests pass" "$(cat "$HUB/a/held" "$HUB/b/held" | paste -sd' ')" "8 8"
check "they pass no faster than the limit: sixteen in 3.75 s" "$took" 3.6 8
MANY=()

# ---------------------------------------------------------------- without Redis

check_is "each rule of on_store_failure passes with Redis" "$(ask a open=x) $(ask a closed=x) $(ask a error=x)" "200 200 200"
redis_kill main
gone() {
	[ "$(node a metric sluice_store_up)" = 0 ] && [ "$(node b metric sluice_store_up)" = 0 ]
}
check_true "both nodes notice that Redis is gone" wait_for 10 gone
check_is "user show has what this node knows" "$(shown a api/user unseen)" "[4]"
check_is "open" "$(ask a open=y) $(ask a open=y) $(ask a open=y)" "200 200 200"
check_is "closed" "$(ask a closed=y)" 503
check_is "the response gives the reason" "$(of a .detail)" "the cluster store is unavailable, and the rule refuses in that case (closed)"
check_is "error" "$(ask b error=y) $(of b .detail)" "503 the cluster store is unavailable"
# Nodes that are silent while Redis is unavailable still count as members.
sleep 3
check_is "each node admits its share" "$(spread 8 api local=y)" 8
check_is "its share is half" "$(cat "$HUB/a/passed")" 4
node_stop a
node_start a
check_is "a key that has just begun gets no more" "$(spread 8 api local=x) $(cat "$HUB/a/passed")" "8 4"
check_is "the decision without the store is counted" "$(node b metric 'sluice_decisions_store_unavailable_total{domain="api",rule="error"}')" 1
redis_again main
back() {
	tries=$((tries + 1))
	[ "$(ask a closed=z$tries)$(ask b closed=z$tries)" = 200200 ]
}
tries=0
check_true "Redis is back" wait_for 15 back
# Each worker connects by itself.
over() { [ "$(ask a closed=z$tries)" = 429 ]; }
check_true "the limit is counted in Redis again" wait_for 10 over

# ---------------------------------------------------------------- the last unit, and two want it

# Each worker has a connection of its own, and either may be the faster one: the request that this node
# took for the second often is Redis' first.
node_stop a
node_stop b
proxy_start uneven "${REDIS_PORT[main]}"
proxy uneven delay 0 2 > /dev/null
CLUSTER_REDIS=${CLUSTER_REDIS/:${REDIS_PORT[main]}/:${PROXY_PORT[uneven]}}
node_start c
check_true "through a proxy: the node has Redis" wait_for 10 eval '[ "$(ask c user=last)" = 200 ]'
check_is "of two requests at once exactly one passes" "$(python3 "$REPO/tests/cluster/pairs.py" \
	"$HUB/c/http.sock" 3000 api last-fixed last-first last-sliding last-bucket last-log)" "200,429 3000"

lab_done
