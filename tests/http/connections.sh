#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Clients that only hold connections: on every listener one address has its share and no more, idle
# connections are closed first, active ones stay, and a TLS handshake has a deadline as a whole.

. "$(dirname "$0")/../lib/http.sh"
http_begin connections "$@"

for i in {1..4} {10..209}; do
	echo "addr add 192.0.2.$i/32 dev lo"
done | ip -batch - || exit 1
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout "$LAB/key" \
	-out "$LAB/crt" -subj /CN=sluice 2> /dev/null || exit 1
echo 0123456789abcdef-one > "$LAB/token"
http_rules api <<'YAML'
domain: api
descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 100000}}]
YAML
METRICS_LISTEN=0.0.0.0:9810
http_daemon <<YAML
  listen:
    - {address: '192.0.2.1:8180', insecure: true, max_connections: 300, max_connections_per_address: 100}
    - {address: '127.0.0.1:8443', tls: true}
  grpc: {address: '192.0.2.1:8181', insecure: true, max_connections: 300, max_connections_per_address: 100}
  spoe: {address: '192.0.2.1:8182', clients: [192.0.2.0/24], max_connections: 300, max_connections_per_address: 100}
  tls: {cert: $LAB/crt, key: $LAB/key}
  callers: [{name: one, token_file: $LAB/token, may: [check, report]}]
YAML

hold() { python3 "$REPO/tests/lib/connections.py" "$@"; }
hold handshake 127.0.0.1 8443 > "$LAB/handshake" &
slow=$!
for to in http:8180 grpc:8181 spoe:8182; do
	protocol=${to%:*} port=${to#*:}
	check_is "$protocol: 500 idle connections of one address" \
		"$(hold address 192.0.2.1 "$port" "$protocol" 500 100)" ok
	check_is "$protocol: idle connections of many" \
		"$(hold spread 192.0.2.1 "$port" "$protocol" 600 300)" ok
	check "$protocol: closed connections are counted" \
		"$(metric sluice_http_connections_evicted_total "listener=192.0.2.1:$port")" 700 1000
	check_is "$protocol: no connection was refused" \
		"$(metric sluice_http_connections_refused_total "listener=192.0.2.1:$port" reason=listener)" 0
done
# 64 of all, 16 of an address.
check_is "metrics: 500 idle connections of one address" "$(hold address 192.0.2.1 9810 metrics 500 16)" ok
check_is "metrics: idle connections of many" "$(hold spread 192.0.2.1 9810 metrics 600 64)" ok
check_is "bodies of callers without a token keep no client out" \
	"$(hold bodies 192.0.2.1 8180 0123456789abcdef-one)" ok
wait $slow
check_is "a TLS client that sends a byte now and then is closed" "$(cat "$LAB/handshake")" ok

lab_done
