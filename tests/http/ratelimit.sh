#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The differences from envoyproxy/ratelimit that docs/decisions/0018-http-rules.md lists, line by line, with a real gRPC
# client: a line that is no longer true fails here, in the docs or in the code.

. "$(dirname "$0")/../lib/http.sh"
http_begin ratelimit "$@"

http_rules diff <<'YAML'
  - key: user
    rate_limit: {unit: day, requests_per_unit: 5}
  - key: path
    rate_limit: {unit: day, requests_per_unit: 5}
  - key: address
    rate_limit: {unit: day, requests_per_unit: 2}
  - key: none
    rate_limit: {unit: day, requests_per_unit: 0}
  - key: counted
    rate_limit: {unit: day, requests_per_unit: 100}
  - key: backend_name
    quota_mode: true
    descriptors:
      - {key: tenant, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
      - {key: pool, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 9}}
YAML
http_daemon <<YAML
  grpc: [127.0.0.1:8181]
  hosts: [ratelimit.internal]
YAML

node "$REPO/tests/js/ratelimit.js" 127.0.0.1:8181
[ $? = 0 ] || LAB_FAILED=1

# ---------------------------------------------------------------- metrics, hosts, refunds, domains

check_is "a request of 3 hits is one in the metrics" \
	"$(metric sluice_decisions_total domain=diff rule=counted verdict=ok)" 1
body='{"domain": "diff", "descriptors": [{"entries": [{"key": "path", "value": "host"}]}]}'
check_is "/json by a host name that is not in http.hosts" \
	"$(request -d "$body" -H 'Host: other.internal:8080' /json)" 403
check_is "by one that is listed" "$(request -d "$body" -H 'Host: ratelimit.internal:8080' /json)" 200
check_is "by an address" "$(request -d "$body" /json)" 200
check_is "refunds are for /v1/report" "$(request -d '{"domain": "diff", "descriptors": [{"entries": [],
	"isNegativeHits": true}]}' /json)" 400
http_rules more < "$RULES/diff.yaml"
check_true "a domain in two files is refused, as by envoyproxy without MERGE_DOMAIN_CONFIG" \
	eval '! "$BIN/sluicectl" check "$CONFIG" > "$LAB/out" 2>&1 && grep -q "more.yaml:1.*diff" "$LAB/out"'
lab_done
