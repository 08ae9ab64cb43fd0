#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# gRPC with a real client (@grpc/grpc-js): the responses of rls.proto, headers that come true, 100
# streams at once, errors, Unix socket and TLS; health while the daemon stops.

. "$(dirname "$0")/../lib/http.sh"
http_begin grpc "$@"

http_rules api <<'YAML'
  - key: user
    rate_limit: {unit: day, requests_per_unit: 5}
  - key: plan
    value: free
    descriptors:
      - key: path
        rate_limit: {unit: week, requests_per_unit: 7}
  - key: burst
    limits: [{rate: 2 requests/s, burst: 6}]
    algorithm: token-bucket
  - key: many
    rate_limit: {unit: day, requests_per_unit: 40}
  - {key: watched, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 2}}
  - key: huge
    limits: 4000000000000 requests/d
YAML
cp "$RULES/api.yaml" "$LAB/api.yaml"

http_rules quota <<'YAML'
  - key: backend
    value: a
    quota_mode: true
    metadata: {name: a, region: {eu: true}}
    rate_limit: {unit: day, requests_per_unit: 1}
  - key: backend
    value: b
    quota_mode: true
    metadata: {name: b, weight: 2.5, region: {us: true}}
    rate_limit: {unit: day, requests_per_unit: 2}
YAML
http_rules kinds < "$REPO/tests/http/kinds.yaml"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
	-addext subjectAltName=DNS:localhost -keyout "$LAB/key.pem" -out "$LAB/cert.pem" \
	2> /dev/null || exit 1
http_daemon <<YAML
  grpc: ['127.0.0.1:8181', 'unix:$LAB/grpc.sock', {address: '127.0.0.1:8184', tls: true}]
  tls: {cert: $LAB/cert.pem, key: $LAB/key.pem}
YAML

node "$REPO/tests/js/grpc.js" 127.0.0.1:8181 "$LAB/grpc.sock" localhost:8184 "$LAB/cert.pem"
[ $? = 0 ] || LAB_FAILED=1

# Each kind of limit: as many pass as its headers state, and one after Retry-After.
node "$REPO/tests/js/grpc_headers.js" 127.0.0.1:8181 || LAB_FAILED=1

check_is "HTTP uses the same counters: bob is refused there, too" "$(http_check api user=bob)" 429
check_is "requests are counted by status" "$(metric sluice_http_requests_total api=grpc code=16)" 1
check "requests beyond what can be decided are refused" "$(metric sluice_decisions_total domain= rule= verdict=beyond)" 5 5
check_is "an unknown method is a request without a decision" "$(metric sluice_http_undecided_total api=grpc reason=path)" 1
check_true "the log has the reason" grep -q "it exceeds a bound: more than 32 descriptors" "$LAB/daemon.log"
check "decisions are counted" "$(metric sluice_decisions_total domain=api rule=many verdict=ok)" 40 40

# A client of another protocol gets an error that names the protocol.
check_is "an HTTP/1.1 request gets an error in HTTP/1.1" "$(curl -s -m 5 -o "$LAB/body" -w '%{http_code}' \
	--http0.9 http://127.0.0.1:8181/)" 400

node "$REPO/tests/js/grpc_drain.js" 127.0.0.1:8181 "$DAEMON_PID" || LAB_FAILED=1
wait_for 10 daemon_gone || not_ok "sluiced does not end"
lab_done
