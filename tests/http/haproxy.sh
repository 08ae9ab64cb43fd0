#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Real HAProxy from docs/examples/haproxy.cfg (port 8080) and haproxy-closed.cfg (8090): limits,
# headers, what clients cannot achieve, requests too large for a SPOE frame, many at once,
# and how each proxy fails.

. "$(dirname "$0")/../lib/http.sh"
http_begin haproxy "$@"
. "$REPO/tests/lib/proxy.sh"

TWO_KEYS=403
LARGE=('tune.bufsize 140000' 'tune.http.maxhdr 300')

proxy_rules
http_daemon <<YAML
  spoe: [127.0.0.1:8182]
YAML
application_start
haproxy_start haproxy.cfg 8080 "${LARGE[@]}"
haproxy_start haproxy-closed.cfg 8090 "${LARGE[@]}"

proxy_pair 8080 8090
check_is "of two keys in a request neither escapes" "$(through 8080 two -H 'X-API-Key: three' /)" 403
check_is "the agent found no error" "$(metric sluice_http_requests_total api=spoe code=1)" 0

# ---------------------------------------------------------------- larger than HAProxy's buffers

# Twice 9000 bytes are more than a frame of 16380: HAProxy cannot send it to the agent, and refuses the request.
keys='d2_user=req.fhdr(x-api-key) d3_user=req.fhdr(x-api-key)'
HAPROXY_ARGS="domain=str(api) source=src d1_source=src $keys d3_path=path" haproxy_start haproxy.cfg 8081
large=$(head -c 9000 /dev/zero | tr '\0' k)
check_is "a key that does not fit twice is refused" "$(through 8081 "$large" /)" 431
check_is "a key that fits" "$(through 8081 "${large:0:7000}" /)" 200
check_is "a key that fits, with a long path" "$(through 8081 "${large:0:5000}" "/${large:0:7000}")" 431
check_is "mallory with a long path stays refused" "$(through 8081 mallory "/$large")" 429

# ---------------------------------------------------------------- beyond what a request may have

# An error would let them pass (docs/http-api.md): they are refused, and nothing is charged.
HAPROXY_ARGS='domain=str(api) hits=req.fhdr(x-hits) d1_user=req.fhdr(x-api-key)' haproxy_start haproxy.cfg 8082
check_is "as many hits as a request may have: over the limit" "$(through 8082 hits -H 'X-Hits: 1099511627776' /)" 429
check_is "one more is refused" "$(through 8082 hits -H 'X-Hits: 1099511627777' /)" 429
check_is "and more than 64 bits" "$(through 8082 hits -H 'X-Hits: 99999999999999999999' /)" 429
check_is "none of them was charged" "$(left user=hits)" 5

# descriptors COUNT: arguments with so many of a request
descriptors() { printf 'domain=str(api)'; for i in $(seq 0 $(($1 - 1))); do printf ' d%d_user=str(of-%d)' "$i" "$i"; done; }
HAPROXY_ARGS=$(descriptors 32) haproxy_start haproxy.cfg 8083
check_is "32 descriptors" "$(through 8083 any /)" 200
HAPROXY_ARGS=$(descriptors 33) haproxy_start haproxy.cfg 8084
check_is "33 are refused" "$(through 8084 any /)" 429
check_is "both proxies asked without an error" "$(metric sluice_http_requests_total api=spoe code=1)" 0

# ---------------------------------------------------------------- many at once

http_rules api <<'YAML'
  - key: user
    limits: ['600 requests/d']
    algorithm: token-bucket
    burst: 600
YAML
new_rules() { through 8080 reload / > /dev/null && [ "$(header X-RateLimit-Limit)" = 600 ]; }
check_true "other rules are in force" wait_for 10 new_rules
h2load --h1 -n 3000 -c 40 -t 1 -H 'X-API-Key: many' http://127.0.0.1:8080/ > "$LAB/load" 2>&1 &
started
h2load --h1 -n 1000 -c 10 -t 1 -H 'X-API-Key: some' http://127.0.0.1:8090/ > "$LAB/load2" 2>&1
wait "${LAB_PIDS[-1]}"
h2load --h1 -n 100 -c 10 -t 1 -H 'X-API-Key: few' http://127.0.0.1:8090/ > "$LAB/load3" 2>&1
codes() { sed -n 's/^status codes: \([0-9]*\) 2xx, [0-9]* 3xx, \([0-9]*\) 4xx, \([0-9]*\) 5xx.*/\1 \2 \3/p' "$1"; }
check_is "of 3000 by 40 clients at once 600 pass" "$(codes "$LAB/load")" "600 2400 0"
check_is "of 1000 by 10 beside them 600" "$(codes "$LAB/load2")" "600 400 0"
check_is "of 100 all" "$(codes "$LAB/load3")" "100 0 0"
check_is "each was one request to the agent" "$(($(left user=few) + $(left user=many)))" 500

# ---------------------------------------------------------------- without a daemon

for i in 1 2 3 4 5 6; do request -d "$(check_body api user=mallory --descriptors \
	'[{"entries":[{"key":"user","value":"mallory"}],"hits":100}]')" /v1/check > "$LAB/out"; done
refused() { [ "$(through 8080 mallory /) $(through 8090 mallory /)" = "429 429" ]; }
check_true "mallory is refused at both" refused
stand_still "$DAEMON_PID"
check_is "sluiced stands still: open" "$(through 8080 mallory /)" 200
check_is "sluiced stands still: closed" "$(through 8090 mallory /)" 503
kill -CONT "$DAEMON_PID"
check_true "resumed: refused again" wait_for 10 refused

daemon_kill TERM
check_is "sluiced stopped: open" "$(through 8080 mallory /)" 200
check_is "the request arrives" "$(jq -r .path "$LAB/body")" /
check_is "sluiced stopped: closed" "$(through 8090 somebody /)" 503
check_is "with Retry-After" "$(header Retry-After)" 1
daemon_run
check_true "started again: refused as before" wait_for 15 refused

lab_done
