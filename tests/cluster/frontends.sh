#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Limits counted in a real Redis, over every frontend: the headers come true for each kind
# of limit, though each response waited for the store (tests/http/headers.sh has the same without one).

. "$(dirname "$0")/../lib/redis.sh"
http_begin frontends "$@"
. "$REPO/tests/lib/proxy.sh"

redis_start main
redis_use single main
(umask 077 && head -c 32 /dev/urandom | base64 > "$LAB/cluster.key")
HTTP_TOP="cluster:
  redis: {$CLUSTER_REDIS}
  secret_file: $LAB/cluster.key
  node: one
  deadline: 1s"
# Every rule counts in Redis, but one: it counts what it refuses, which is known on its node only.
sed '/key: counted/b; s/- {key: \([a-z-]*\),/- {key: \1, scope: cluster,/; s/^\( *\)- key: .*/&\n\1  scope: cluster/' \
	"$REPO/tests/http/kinds.yaml" | http_rules kinds
http_daemon <<'YAML'
  grpc: [127.0.0.1:8181]
  spoe: [127.0.0.1:8182]
YAML
check_is "all other rules count in Redis" \
	"$(ctl -o json rule list | jq '[.rules[] | select(all(.limits[]; .scope == "cluster"))] | length')" 12
application_start
haproxy_kinds 8080

# Their output lines are results.
command node "$REPO/tests/js/headers.js" http://127.0.0.1:8080 spoe > "$LAB/spoe" 2>&1 &
started
command node "$REPO/tests/js/grpc_headers.js" 127.0.0.1:8181 > "$LAB/grpc" 2>&1 &
started
command node "$REPO/tests/js/headers.js" $URL > "$LAB/http" 2>&1
wait "${LAB_PIDS[-1]}" "${LAB_PIDS[-2]}"
results "$LAB/http" "$LAB/spoe" "$LAB/grpc"
check "kinds of limits, frontends" "$(cat "$LAB/http" "$LAB/spoe" "$LAB/grpc" | grep -c '^ok')" 77 77
check "keys in Redis" "$(redis main dbsize)" 10 1000
check_is "no decision was made without Redis" "$(metric sluice_decisions_store_unavailable_total)" 0
lab_done
