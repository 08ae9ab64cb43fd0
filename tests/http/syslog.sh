#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Access logs over UDP, charged as reports: real nginx from docs/examples/nginx-log.conf, real HAProxy
# from haproxy-log.cfg; thousands of lines; invalid lines; what a client can write into one.

. "$(dirname "$0")/../lib/http.sh"
http_begin syslog "$@"

# A bucket that refills hardly at all during the test.
http_rules api <<'YAML'
  - {key: source, limits: ['1000 requests/d'], algorithm: token-bucket, burst: 100000}
  - {key: guest, limits: ['100 requests/d'], algorithm: token-bucket, burst: 20000}
  - key: user
    limits: ['100 requests/d']
    algorithm: token-bucket
    burst: 20000
    descriptors:
      - {key: path, limits: ['100 requests/d'], algorithm: token-bucket, burst: 10000}
YAML
http_daemon <<YAML
  syslog: [127.0.0.1:8183, unix:$LAB/syslog.sock]
YAML

python3 "$REPO/tests/http/application.py" 8000 > "$LAB/application.log" 2>&1 &
started
# Ports of its own, no error log; otherwise unchanged.
sed "s|listen 80;|listen 8080;|; s|^http {|&\n\tlarge_client_header_buffers 8 128k;\n\tclient_body_temp_path $LAB/b;\n\tproxy_temp_path $LAB/p;\n\tfastcgi_temp_path $LAB/f;\n\tuwsgi_temp_path $LAB/u;\n\tscgi_temp_path $LAB/s;|
	s|location / {|location = /static { return 200; }\n\t\t&|" \
	"$REPO/docs/examples/nginx-log.conf" > "$LAB/nginx.conf"
nginx -p "$LAB" -c "$LAB/nginx.conf" -e "$LAB/error.log" \
	-g "daemon off; master_process off; pid $LAB/nginx.pid;" 2> "$LAB/nginx.err" &
started
sed "s|bind :80$|bind 127.0.0.1:8090|" "$REPO/docs/examples/haproxy-log.cfg" > "$LAB/haproxy.cfg"
haproxy -db -f "$LAB/haproxy.cfg" > "$LAB/haproxy.log" 2>&1 &
started
for port in 8000 8080 8090; do
	wait_for 10 request http://127.0.0.1:$port/ || not_ok "nobody answers on port $port"
done

# used LIMIT KEY=VALUE...: units that lines have charged to it
used() {
	request -d "$(check_body api "${@:2}" --peek true)" /v1/check > /dev/null
	echo $(($1 - $(jq '.statuses[0].remaining' "$LAB/body")))
}
used_is() { [ "$(used "${@:2}")" = "$1" ]; }
lines() { metric sluice_http_requests_total api=syslog code="${1:-0}"; }
# line WORDS...: sends a line to the socket, as any local process can
line() { printf '%s' "$*" > /dev/udp/127.0.0.1/8183; }

# ---------------------------------------------------------------- nginx and HAProxy

for port in 8080 8090; do
	request -H "X-API-Key: bob-$port" "http://127.0.0.1:$port/page?q" > "$LAB/out"
	request -H "X-API-Key: bob-$port" "http://127.0.0.1:$port/b/../%70age" --path-as-is > "$LAB/out"
	check_true "port $port: two requests of bob's were charged" wait_for 5 used_is 2 20000 user=bob-$port
	check_true "both are charged to one path" wait_for 5 used_is 2 10000 user=bob-$port path=/page
	check_is "no other user is charged" "$(used 20000 user=eve-$port)" 0
	check_is "a 429 of the application charges nothing" \
		"$(request -H "X-API-Key: bob-$port" -H 'X-Answer: 429' http://127.0.0.1:$port/)" 429
	guests=$(used 20000 guest=127.0.0.1)
	check_is "nor does its 401 charge a user" "$(request -H "X-API-Key: bob-$port" -H 'X-Answer: 401' http://127.0.0.1:$port/)" 401
	request "http://127.0.0.1:$port/nobody" > "$LAB/out"
	check_true "that and no key are a guest's" wait_for 5 used_is $((guests + 2)) 20000 guest=127.0.0.1
	check_is "bob's are still two" "$(used 20000 user=bob-$port)" 2
	request -H "X-API-Key: last-$port" "http://127.0.0.1:$port/" > "$LAB/out"
	check_true "a request without a key" wait_for 5 used_is 1 20000 user=last-$port
	check_is "charges bob nothing" "$(used 20000 user=bob-$port)" 2
	check_is "a key of - or nothing belongs to no user" "$(used 20000 user=-) $(used 20000 user=)" "0 0"
done

# ---------------------------------------------------------------- thousands

before=$(lines)
h2load --h1 -n 8000 -c 20 -t 1 -H 'X-API-Key: many' http://127.0.0.1:8080/static > "$LAB/load" 2>&1
check_is "8000 requests" "$(grep -c 'status codes: 8000 2xx' "$LAB/load")" 1
check_true "8000 lines, none lost" wait_for 10 used_is 8000 20000 user=many
check "no further line was counted" "$(($(lines) - before))" 8000 8000
check_is "no line malformed, none lost" "$(lines 1) $(lines 2)" "0 0"

# ---------------------------------------------------------------- what a client can write into a line

odd=$(printf 'x","user":"victim"},{"user":"victim\x01\xff\xfe\\')
for port in 8080 8090; do
	for path in '/%22%7d%5d,%22hits%22:1000' '/"}],"hits":1000,"x":"' '/%ff%00'; do
		request -g --path-as-is -H "X-API-Key: $odd" "http://127.0.0.1:$port$path" > "$LAB/out"
	done
	request -H "X-API-Key: after-$port" "http://127.0.0.1:$port/" > "$LAB/out"
	check_true "port $port: odd keys and paths, and a request after them" wait_for 5 used_is 1 20000 user=after-$port
done
# A header of control characters, six bytes each in the log, and a path of quotes, two bytes each.
controls=$(head -c 6000 /dev/zero | tr '\0' '\001')
quotes=$(head -c 8000 /dev/zero | tr '\0' '"')
before=$(lines)
printf 'GET /%s HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\nConnection: close\r\n\r\n' "$quotes" "$controls" |
	python3 -c 'import socket, sys
s = socket.create_connection(("127.0.0.1", 8080))
s.sendall(sys.stdin.buffer.read())
print(s.recv(100).split(b" ")[1].decode())' > "$LAB/out"
check_is "a request with a header of control characters" "$(cat "$LAB/out")" 200
is_line() { [ "$(lines)" = $((before + 1)) ]; }
check_true "it is counted" wait_for 5 is_line
check_is "no other user was charged for it" "$(used 20000 user=victim) $(used 20000 user=x)" "0 0"
check_is "no line was malformed" "$(lines 1)" 0

# ---------------------------------------------------------------- invalid lines

call='"domain":"api","d":{"user":"direct"}'
line "<14>{$call}"
line "<14>1 2026-11-21T18:00:00Z host app 1 - - {$call,\"hits\":4}"
check_true "a line of any process on this host" wait_for 5 used_is 5 20000 user=direct
line "{$call,\"hits\":-2}"
check_true "hits below 0 are refunded" wait_for 5 used_is 3 20000 user=direct
for line in hello '{' "{$call" '{"d":{"user":"direct"}}' "{$call,\"hits\":\"many\"}" \
	"{$call,\"at\":4102444800}" "$(printf '\377\376{')"; do
	line "$line"
done
is_malformed() { [ "$(lines 1)" = 7 ]; }
check_true "seven invalid lines are counted" wait_for 5 is_malformed
check_is "they charge nothing" "$(used 20000 user=direct)" 3
check_true "the log has the reason" grep -q 'syslog 127.0.0.1:8183: .* invalid lines; the last one: no JSON' "$LAB/daemon.log"
python3 - "$LAB/syslog.sock" <<'PYTHON'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(b'{"domain":"api","d":{"user":"unix"},"hits":"6"}', sys.argv[1])
PYTHON
check_true "over a Unix socket, too" wait_for 5 used_is 6 20000 user=unix

# Lines that are queued when it stops are charged by it or by its successor.
before=$(used 20000 user=many)
stand_still "$DAEMON_PID"
for ((i = 0; i < 500; i++)); do line '{"domain":"api","d":{"user":"many"}}'; done
kill -CONT "$DAEMON_PID"
daemon_kill TERM
daemon_run
check_is "500 lines that came while it stood still are charged" "$(($(used 20000 user=many) - before))" 500

lab_done
