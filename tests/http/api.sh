#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# /v1/check, /v1/report, /json, /nginx/check, /v1/defer, /forward-auth and health as docs/openapi.yaml has them:
# tests/js/api.js sends the requests, and fails on what the document has and the server does not.

. "$(dirname "$0")/../lib/redis_servers.sh"
http_begin api "$@"

http_rules api <<'YAML'
  - {key: user, limits: ['3 requests/d'], algorithm: token-bucket, burst: 3}
  - {key: once, limits: ['1 requests/d'], algorithm: token-bucket, burst: 1}
  - {key: watched, rate_limit: {unit: day, requests_per_unit: 1}, shadow_mode: true}
  - {key: named, rate_limit: {unit: day, requests_per_unit: 3, name: three}, metadata: {plan: free}}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: flight, concurrency: 1}
  - {key: closed, limits: ['3 requests/d'], on_store_failure: closed}
  - {key: error, limits: ['3 requests/d'], on_store_failure: error}
  - {key: later, limits: ['1 requests/d'], algorithm: token-bucket, burst: 1, scope: cluster, on_limit: {defer: {}}}
  - {key: soon, limits: ['2 requests/s'], algorithm: token-bucket, burst: 1, scope: cluster, on_limit: {defer: {}}}
YAML
head -c 32 /dev/urandom | base64 > "$LAB/cluster.key"
chmod 600 "$LAB/cluster.key"
redis_start main
HTTP_TOP="cluster: {redis: {urls: ['${REDIS_URL[main]}']}, node: a, secret_file: $LAB/cluster.key, deadline: 1s}"

http_rules whole <<'YAML'
domain: {name: whole, limits: 3 requests/d}
descriptors:
  - {key: user, limits: ['1 requests/d'], ban: {after: 1 rejections/1m, for: 10m}}
YAML
http_daemon <<'YAML'
  state: {users: 1000, on_full: closed}
YAML

node "$REPO/tests/js/api.js" $URL "$DAEMON_PID" "${REDIS_PID[main]}" > "$LAB/out" 2>&1
results "$LAB/out"
check "groups of checks" "$(grep -c '^ok' "$LAB/out")" 31 31
# The last of them stops sluiced; if it did not run, sluiced is stopped here.
wait_for 10 daemon_gone || kill -KILL "$DAEMON_PID"
wait "$DAEMON_PID"
check_is "sluiced ended with" $? 0
DAEMON_PID=

# ---------------------------------------------------------------- callers with tokens

for name in edge reporter; do echo "token-of-$name-0123456789abcdef" > "$LAB/$name"; done
chmod 600 "$LAB"/edge "$LAB"/reporter
http_daemon <<YAML
  callers:
    - {name: edge, token_file: $LAB/edge, domains: [api], may: [check]}
    - {name: reporter, token_file: $LAB/reporter, domains: [api], may: [report]}
YAML
edge="$(cat "$LAB/edge")"
reporter="$(cat "$LAB/reporter")"
check_is "without a token" "$(http_check api user=t)" 401
check_is "WWW-Authenticate names the scheme" "$(header WWW-Authenticate)" Bearer
HTTP_OPTIONS=(-H "Authorization: Bearer $edge")
check_is "with a token" "$(http_check api user=t)" 200
check_is "for a domain that the token does not have" "$(http_check other user=t)" 403
check_is "a caller that may check may not report" "$(request "${HTTP_OPTIONS[@]}" -d "[$(check_body api user=t)]" /v1/report)" 403
HTTP_OPTIONS=(-H "X-Sluice-Token: $reporter")
check_is "a caller that may report may not check" "$(http_check api user=t)" 403
check_is "but may report" "$(request "${HTTP_OPTIONS[@]}" \
	-d "[$(check_body api user=t),$(check_body other user=t)]" /v1/report)" 202
check_is "only for its own domain" "$(jq -c '[.accepted, (.rejected | map(.index))]' "$LAB/body")" "[1,[1]]"
for path in '/nginx/check?domain=api&d=user' '/forward-auth?domain=api&d=path'; do
	check_is "$path without a token" "$(request "$path")" 500
	check_is "with the client's Authorization" "$(request -H "Authorization: Bearer $edge" "$path")" 500
	check_true "a client learns nothing about tokens" test -z "$(header WWW-Authenticate)"
	check_is "with the proxy's token" "$(request -H "X-Sluice-Token: $edge" -H 'Authorization: Bearer x' "$path" |
		sed s/204/200/)" 200
done
lab_done
