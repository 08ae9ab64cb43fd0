#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Requests in flight (`concurrency`): /v1/check and /v1/report; behind real nginx and HAProxy from
# docs/examples with an application that stands still; Envoy's calls, played by tests/js/envoy.js.

. "$(dirname "$0")/../lib/http.sh"
http_begin concurrency "$@"
. "$REPO/tests/lib/proxy.sh"

http_rules api <<'YAML'
domain: {name: api, concurrency: 30}
descriptors:
  - {key: user, limits: [1000 requests/d], concurrency: 20}
  - {key: few, limits: [5 requests/d], concurrency: 2}
  - {key: short, concurrency: 1 for 2s}
  - {key: live, limits: [1000 requests/d], concurrency: 4}
  - key: plan
    limits: [concurrency 1]
    overrides: [{value: large, limits: [concurrency 3]}]
YAML
http_daemon <<'YAML'
  grpc: [127.0.0.1:8181]
  spoe: [127.0.0.1:8182]
  syslog: [127.0.0.1:8183]
YAML

# take KEY=VALUE: a request begins; prints its status and appends its permit to $LAB/permits.
take() {
	http_check api "$@"
	jq -r '.permit // empty' "$LAB/body" >> "$LAB/permits"
}
# end PERMIT [MEMBERS]: a request has ended
end() { request -d "[{\"domain\": \"api\", \"release\": \"$1\"${2:+, $2}}]" /v1/report; }
end_all() {
	while read -r permit; do end "$permit"; done < "$LAB/permits" > "$LAB/out"
	: > "$LAB/permits"
}
permit() { sed -n "$1p" "$LAB/permits"; }
# flight LIMIT KEY=VALUE: how many are in flight, asked without charging
flight() {
	request -d "$(check_body api "$2" --peek true)" /v1/check > /dev/null
	echo $(($1 - $(header RateLimit | grep -o "\"${2%=*}-concurrency\";r=[0-9]*" | cut -d= -f2)))
}
flight_is() { [ "$(flight "${@:2}")" = "$1" ]; }
units() { metric sluice_concurrency_units_total event="$1"; }

# ---------------------------------------------------------------- /v1/check and /v1/report

check_is "two of a user's requests begin, a third does not" \
	"$(take few=bob) $(take few=bob) $(take few=bob)" "200 200 429"
check "Retry-After, with its jitter, where none can foretell it" "$(header Retry-After)" 1 2
check_is "the refusal names the limit" "$(jq -r '.detail, ."violated-policies"[0]' "$LAB/body" | xargs)" \
	"over the limit of api/few; retry after 1 s few-concurrency"
check_is "and is charged to no rate" "$(header RateLimit | grep -o '"few";r=[0-9]*')" '"few";r=3'
check_is "another user's begins" "$(take few=eve)" 200
check_is "one ends" "$(end "$(permit 1)") $(jq -c .not_charged "$LAB/body")" "202 []"
check_is "so another begins, and no more" "$(take few=bob) $(take few=bob)" "200 429"
check_is "an end that is sent again releases nothing" "$(end "$(permit 1)"; jq '.not_charged | length' "$LAB/body")" 2021
check_is "of nobody else" "$(take few=bob)" 429
check_is "what is no permit is rejected" "$(end nonsense; jq -r '.rejected[0].detail' "$LAB/body" | cut -d\; -f1)" \
	"202release: no permit"
check_is "the end of a request that got a 429 of its own" "$(end "$(permit 2)" '"status": 429')" 202
check_is "lets one begin" "$(take few=bob)" 200
end_all
check_is "a refusal by a rate" "$(take few=bob; end_all) $(take few=bob)" "200 429"
check_is "takes no unit" "$(header RateLimit | grep -o '"few-concurrency";r=[0-9]*')" '"few-concurrency";r=2'
check_is "peek takes none" "$(for i in 1 2 3; do http_check api few=peek --peek true; done)" 200200200
check_is "a value with a concurrency of its own" \
	"$(take plan=large)$(take plan=large)$(take plan=large)$(take plan=large) $(take plan=small)$(take plan=small)" \
	"200200200429 200429"
end_all
check_is "all are back" "$(flight 2 few=bob) $(flight 2 few=eve)" "0 0"
check "as the metrics have it" $(($(units taken) - $(units released))) 0 0
check "but for three ends that came again, of a user and of all" "$(units unknown)" 6 6

# An end that is lost.
began=$(date +%s%N)
check_is "one begins" "$(take short=bob) $(take short=bob)" "200 429"
check_true "its unit comes back by itself" wait_for 10 eval '[ "$(take short=bob)" = 200 ]'
check "not before its time" $((($(date +%s%N) - began) / 1000000)) 2000 9999
check_is "its end, too late, releases nothing" "$(end "$(permit 1)") $(take short=bob)" "202 429"
end_all

# kill -9, and live changes.
for i in 1 2 3; do take live=bob; done > "$LAB/out"
daemon_kill KILL
daemon_run
check_is "a daemon that was killed still counts 3 of 4" "$(flight 4 live=bob)" 3
check_true "4 is made 2" ctl rule set api/live concurrency=2
check_is "while 3 are in flight none begins" "$(take live=bob)" 429
end "$(permit 1)" > "$LAB/out"
check_is "nor with 2" "$(take live=bob)" 429
end "$(permit 2)" > "$LAB/out"
check_is "with 1 one does" "$(take live=bob) $(take live=bob)" "200 429"
check_is "user show has them" "$(ctl user show api/live bob | awk '$1 == "live-concurrency" { print $2, $3, $4 }')" "within 0 2"
check_true "without the key there is no such limit" ctl rule set api/live concurrency=
check_is "so a request holds a unit of the domain alone" "$(take live=bob) $(jq -r '.permit | length' "$LAB/body")" "200 32"
check_true "save writes it" ctl save
check_is "into the file" "$(grep live "$RULES/api.yaml")" "  - {key: live, limits: [1000 requests/d]}"
end_all
check_is "nodes do not share it" "$(ctl rule set api/few scope=cluster 2>&1 | grep -o 'requests in flight are counted on each node')" \
	"requests in flight are counted on each node"

# ---------------------------------------------------------------- nginx and HAProxy

application_start
nginx_start nginx.conf 8080 's|access_log off;||'
haproxy_start haproxy.cfg 8090

# begin PORT USER: one request through a proxy, which the application answers when $LAB/hold is gone
begin() {
	curl -s -m 30 -o /dev/null -w '%{http_code}\n' -H "X-API-Key: $2" -H "X-Hold: $LAB/hold" \
		"http://127.0.0.1:$1/" >> "$LAB/statuses-$1" &
	started
	disown
}
answered() { [ "$(grep -c "^$2" "$LAB/statuses-$1")" = "$3" ]; }

for port in 8080 8090; do
	: > "$LAB/hold"
	for i in {1..30}; do begin $port bob-$port; done
	check_true "port $port: of 30 at once 10 get 429" wait_for 15 answered $port 429 10
	check_true "20 are with the application" wait_for 10 flight_is 20 20 user=bob-$port
	check_is "the others' wait for nothing" "$(through $port eve-$port /)" 200
	rm "$LAB/hold"
	check_true "which serves the 20" wait_for 15 answered $port 200 20
	check_true "then all units are back" wait_for 10 flight_is 0 20 user=bob-$port
	check_is "and others are served" "$(through $port bob-$port /)" 200
	check_is "no more than 10 were refused" "$(grep -c 429 "$LAB/statuses-$port")" 10

	# Clients that break off.
	: > "$LAB/hold"
	gone=()
	for i in {1..8}; do
		begin $port pat-$port
		gone+=($!)
	done
	check_true "port $port: 8 are in flight" wait_for 10 flight_is 8 20 user=pat-$port
	kill -9 "${gone[@]}"
	# HAProxy's request stays with the application, and so in flight, until that has answered.
	[ $port = 8080 ] || rm "$LAB/hold"
	check_true "clients that break off give theirs back" wait_for 10 flight_is 0 20 user=pat-$port
	rm -f "$LAB/hold"
done
check_is "no line was malformed" "$(metric sluice_http_requests_total api=syslog code=1)" 0
check_true "no unit is left" wait_for 10 flight_is 0 20 user=bob-8080

# ---------------------------------------------------------------- Envoy

python3 -c 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)' \
	< "$REPO/docs/examples/envoy.yaml" > "$LAB/envoy.json"
node "$REPO/tests/js/envoy.js" "$LAB/envoy.json" CONCURRENCY || LAB_FAILED=1
lab_done
