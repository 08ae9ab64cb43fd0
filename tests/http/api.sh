#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# /v1/check, /v1/report, /json, /nginx/check, /forward-auth and health as docs/openapi.yaml has them:
# tests/node/api.js asks, and misses what the document says and the server does not.

. "$(dirname "$0")/../lib/http.sh"
http_begin api "$@"

http_rules api <<'YAML'
domain: api
descriptors:
  - {key: user, limits: ['3 requests/d'], algorithm: token-bucket, burst: 3}
  - {key: once, limits: ['1 requests/d'], algorithm: token-bucket, burst: 1}
  - {key: watched, rate_limit: {unit: day, requests_per_unit: 1}, shadow_mode: true}
  - {key: named, rate_limit: {unit: day, requests_per_unit: 3, name: three}}
  - {key: free, rate_limit: {unlimited: true}}
YAML
http_daemon <<'YAML'
  state: {users: 1000, on_full: closed}
YAML

node "$REPO/tests/node/api.js" $URL "$DAEMON_PID" > "$LAB/out" 2>&1
while IFS= read -r line; do
	case $line in
	"ok - "*) ok "${line#ok - }" ;;
	*) not_ok "${line#not ok - }" ;;
	esac
done < "$LAB/out"
check "groups of checks" "$(grep -c '^ok' "$LAB/out")" 20 20
wait "$DAEMON_PID"
check_is "sluiced ended with" $? 0
DAEMON_PID=
lab_done
