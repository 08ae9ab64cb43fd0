#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Calls on two nodes that share limits through a real Redis: statuses, headers, who is told what
# remains, all or none over limits of both kinds, held answers, reports, what happens without Redis.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin ask "$@"

http_rules api << 'YAML'
domain: api
descriptors:
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
YAML

redis_start main
node_start a
node_start b

# ask NODE KEY=VALUE...: the status.
ask() {
	local name=$1

	shift
	node "$name" http_check api "$@"
}

# says NODE HEADER: of its last answer.
says() {
	node "$1" header "$2"
}

# of NODE FILTER: of its last answer's body.
of() {
	jq -rc "$2" < "$HUB/$1/body"
}

check_is "a call" "$(ask a user=bob)" 200
check_is "what remains" "$(says a X-RateLimit-Remaining)" 4
check_is "the other node counts on" "$(ask b user=bob) $(says b X-RateLimit-Remaining)" "200 3"
check_is "and this one after it" "$(ask a user=bob) $(says a X-RateLimit-Remaining)" "200 2"
check_is "the headers that list it" "$(says a RateLimit-Policy)" '"user";q=5;w=86400'
check_is "and no more than the rest pass" "$(spread 4 api user=bob)" 2
check_is "a refusal" "$(ask b user=bob) $(says b X-RateLimit-Remaining)" "429 0"
check_is "which says what refused it" "$(of b '."violated-policies"')" '["user"]'
check_true "and when there is room" [ "$(says b Retry-After)" -gt 30 ]
check_is "another user has all of it" "$(ask b user=al) $(says b X-RateLimit-Remaining)" "200 4"

# Both kinds: this node's own refuses, and nothing is charged elsewhere.
check_is "of both kinds" "$(ask a both=bob) $(ask a both=bob) $(ask a both=bob)" "200 200 429"
check_is "what one node refuses is nobody else's" "$(ask b both=bob) $(ask b both=bob)" "200 429"
check_is "which all of them refuse" "$(of b '."violated-policies"')" '["all"]'

check_is "a sliding log" "$(ask a log=x) $(ask b log=x) $(ask a log=x) $(ask b log=x)" "200 200 200 429"
check_is "a token bucket" "$(spread 6 api bucket=x)" 4

# Whom only the other node has seen.
shown() { node "$1" ctl -o json user show "$2" "$3" | jq -c '.limits | map(.remaining)'; }
for key in user bucket log patient; do
	ask b $key=unseen > /dev/null
done
check_is "user show is of all nodes" "$(shown a api/user unseen) $(shown a api/bucket unseen)" "[4] [3]"
check_is "of a log, too" "$(shown a api/log unseen) $(shown b api/log unseen)" "[2] [2]"
check_is "and charges nothing" "$(shown a api/user unseen) $(shown b api/user unseen)" "[4] [4]"
check_is "of limits of both kinds" "$(shown b api/both bob)" "[0,1]"

# Somebody looks.
peek() {
	node "$1" request -d "$(check_body api "$2" --peek true)" /v1/check
}
check_is "a peek" "$(peek a user=al) $(of a '.statuses[0].remaining')" "200 4"
check_is "charges nothing" "$(peek b user=al) $(of b '.statuses[0].remaining')" "200 4"

# What has happened elsewhere is told, and counts everywhere within a moment.
check_is "a report" "$(node a request -d "[$(check_body api user=eve)]" /v1/report)" 202
eve() {
	[ "$(peek b user=eve) $(of b '.statuses[0].remaining')" = "200 4" ]
}
check_true "is known to the other node" wait_for 5 eve

node a ctl user reset api/user bob > /dev/null
fresh() {
	[ "$(ask b user=bob)" = 200 ]
}
check_true "a reset on one node is for all" wait_for 5 fresh

# Another node has the same requests in mind: to it that is no loss which it has to put right.
for key in bucket first sliding log; do
	limit=4
	[ $key != log ] || limit=3
	spread 6 api $key=reset > /dev/null
	check_is "$key: used up" "$(ask a $key=reset) $(ask b $key=reset)" "429 429"
	node a ctl user reset api/$key reset > /dev/null
	hears() { [ "$(peek b $key=reset) $(of b '.statuses[0].remaining')" = "200 $limit" ]; }
	check_true "$key: a reset on one node is for all" wait_for 5 hears
	check_is "$key: and all of it is there again, once" "$(spread 8 api $key=reset)" $limit
done
check_is "nothing was taken for lost" "$(for name in a b; do
	node $name ctl -o json cluster show | jq .quota.lost; done | xargs)" "0 0"

# Held answers: eight on each of two nodes at once, four a second.
hold() {
	node "$1" many 8 api patient=x > "$HUB/$1/held" &
}
MANY=(-Z --no-progress-meter --parallel-max 8 -H 'X-Sluice-Wait: 5s')
begin=$(now)
hold a
hold b
wait
took=$(calc "$(now) - $begin")
check_is "all that were held pass" "$(cat "$HUB/a/held" "$HUB/b/held" | paste -sd' ')" "8 8"
check "and no faster than the limit: sixteen in 3.75 s" "$took" 3.6 8
MANY=()

# ---------------------------------------------------------------- without Redis

check_is "a limit with a contract" "$(ask a open=x) $(ask a closed=x) $(ask a error=x)" "200 200 200"
redis_kill main
gone() {
	[ "$(node a metric sluice_store_up)" = 0 ] && [ "$(node b metric sluice_store_up)" = 0 ]
}
check_true "both see that it is gone" wait_for 10 gone
check_is "user show is by what is known" "$(shown a api/user unseen)" "[4]"
check_is "open" "$(ask a open=y) $(ask a open=y) $(ask a open=y)" "200 200 200"
check_is "closed" "$(ask a closed=y)" 503
check_is "which says why" "$(of a .detail)" "the cluster store is unavailable, and the rule refuses in that case (closed)"
check_is "error" "$(ask b error=y) $(of b .detail)" "503 the cluster store is unavailable"
# Whom nobody hears of any more is not gone.
sleep 3
check_is "each node has its share" "$(spread 8 api local=y)" 8
check_is "half of it" "$(cat "$HUB/a/passed")" 4
node_stop a
node_start a
check_is "and not more where it has just begun" "$(spread 8 api local=x) $(cat "$HUB/a/passed")" "8 4"
check_is "it is counted" "$(node b metric 'sluice_decisions_store_unavailable_total{domain="api",rule="error"}')" 1
redis_again main
back() {
	tries=$((tries + 1))
	[ "$(ask a closed=z$tries)$(ask b closed=z$tries)" = 200200 ]
}
tries=0
check_true "it comes back" wait_for 15 back
# Each worker makes its own way back.
over() { [ "$(ask a closed=z$tries)" = 429 ]; }
check_true "and counts again" wait_for 10 over

lab_done
