#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# bench-http.sh [--markdown] - decisions over HTTP/1.1 keep-alive (wrk, 32 connections) beside
# libevent's evhttp that says 204 to everything (tests/bench/evhttp.c), and beside nginx whose
# limit_req allows all and that says 204.
#
#   one worker each: evhttp; /nginx/check, which says 204 as well; /v1/check with JSON both ways.
#     Client and server have a CPU each.
#   a worker for each CPU: evhttp, nginx, ours; the client on the same CPUs.
#
# They take turns, BENCH_ROUNDS (5) times for BENCH_HTTP_SECONDS (2), and medians count; single runs
# differ by a fifth. "CPU us" is the server's own CPU time for a request (utime and stime of its
# processes), which other work on the machine changes less than req/s.

set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib/http.sh
http_begin bench-http "$@"

MARKDOWN=0
[ "${1:-}" = --markdown ] && MARKDOWN=1
: "${BENCH_ROUNDS:=5}" "${BENCH_HTTP_SECONDS:=2}"
CPUS=$(nproc)
CLIENT=1
[ "$CPUS" -gt 1 ] || CLIENT=0
command -v wrk > /dev/null || { echo "bench-http: wrk is needed" >&2; exit 1; }

http_rules api <<'YAML'
  - key: user
    rate_limit: {unit: day, requests_per_unit: 4000000000}
YAML
cat > "$LAB/post.lua" <<'LUA'
wrk.method = "POST"
wrk.body = '{"domain":"api","descriptors":[{"entries":[{"key":"user","value":"alice"}]}]}'
LUA
cat > "$LAB/nginx.conf" <<CONF
worker_processes $CPUS;
daemon off;
pid $LAB/nginx.pid;
error_log $LAB/nginx.log;
events { worker_connections 1024; }
http {
	access_log off;
	keepalive_requests 1000000000;
	client_body_temp_path $LAB/t1; proxy_temp_path $LAB/t2; fastcgi_temp_path $LAB/t3;
	uwsgi_temp_path $LAB/t4; scgi_temp_path $LAB/t5;
	limit_req_zone \$http_x_sluice_v_user zone=users:10m rate=1000000000r/s;
	server {
		listen 127.0.0.1:8190;
		location / { limit_req zone=users burst=1000000 nodelay; return 204; }
	}
}
CONF

# serve WORKERS: ours with so many, and the yardsticks.
serve() {
	http_daemon <<< "  workers: $1"
	"$TOOLS/bench/evhttp" 8191 "$1" &
	started
	EVHTTP=$!
	if [ "$1" = 1 ]; then
		taskset -apc 0 "$DAEMON_PID" > /dev/null
		taskset -apc 0 $EVHTTP > /dev/null
	fi
	wait_for 5 curl -s -o /dev/null http://127.0.0.1:8191/
}

# ticks_of PID: the CPU time of a process and its children, in clock ticks.
ticks_of() {
	local pids

	pids=$(printf '%s\n' "$1"; pgrep -P "$1")
	cat $(printf '/proc/%s/stat\n' $pids) | sed 's/.*) //' | awk '{ sum += $12 + $13 } END { print sum }'
}

# server_of NAME: its PID.
server_of() {
	case $1 in
	*evhttp) echo "$EVHTTP" ;;
	all-nginx) cat "$LAB/nginx.pid" ;;
	*) echo "$DAEMON_PID" ;;
	esac
}

# load NAME URL [WRK OPTIONS]: a line "name req/s p50 p99 cpu" (us).
load() {
	local name=$1 url=$2 on=(taskset -c $CLIENT) threads=1 server before after

	shift 2
	if [[ $name == all-* ]]; then
		on=()
		threads=$CPUS
	fi
	server=$(server_of "$name")
	before=$(ticks_of "$server")
	"${on[@]}" wrk -t "$threads" -c 32 -d "$BENCH_HTTP_SECONDS" --latency -H 'X-Sluice-V-user: alice' \
		"$@" "$url" > "$LAB/wrk" || { cat "$LAB/wrk" >&2; exit 1; }
	if grep -q 'Non-2xx' "$LAB/wrk"; then
		echo "bench-http: $name: not all answers were 2xx" >&2
		exit 1
	fi
	after=$(ticks_of "$server")
	awk -v name="$name" -v cpu=$(((after - before) * 1000000 / $(getconf CLK_TCK))) 'function us(text) {
			return text ~ /us$/ ? text + 0 : text ~ /ms$/ ? text * 1000 : text * 1000000 }
		$1 == "50%" { p50 = us($2) } $1 == "99%" { p99 = us($2) } /^Requests\/sec/ { rate = $2 } / requests in / { all = $1 }
		END { printf "%s %.0f %.0f %.0f %.2f\n", name, rate, p50, p99, cpu / all }' "$LAB/wrk" >> "$LAB/results"
}

NGINX_CHECK="$URL/nginx/check?domain=api&d=user"
serve 1
for round in $(seq "$BENCH_ROUNDS"); do
	[ $MARKDOWN = 1 ] || echo "HTTP, one worker: round $round"
	load evhttp http://127.0.0.1:8191/
	load nginx-check "$NGINX_CHECK"
	load v1-check $URL/v1/check -s "$LAB/post.lua"
done
daemon_kill TERM
kill $EVHTTP
serve "$CPUS"
nginx -p "$LAB" -c "$LAB/nginx.conf" &
started
wait_for 5 curl -s -o /dev/null http://127.0.0.1:8190/
for round in $(seq "$BENCH_ROUNDS"); do
	[ $MARKDOWN = 1 ] || echo "HTTP, all CPUs: round $round"
	load all-evhttp http://127.0.0.1:8191/
	load all-nginx http://127.0.0.1:8190/
	load all-nginx-check "$NGINX_CHECK"
	load all-v1-check $URL/v1/check -s "$LAB/post.lua"
done
kill "$(cat "$LAB/nginx.pid")"

# median NAME COLUMN
median() {
	awk -v n="$1" -v column="$2" '$1 == n { print $column }' "$LAB/results" | sort -g |
		awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}
spread() {
	awk -v n="$1" '$1 == n { print $2 }' "$LAB/results" | sort -g |
		awk '{ v[NR] = $1 } END { printf "%d-%d", v[1], v[NR] }'
}
# ratio NAME OTHER [COLUMN]
ratio() {
	awk -v a="$(median "$1" "${3:-2}")" -v b="$(median "$2" "${3:-2}")" 'BEGIN { printf "%.2f", b ? a / b : 0 }'
}

row() {
	if [ $MARKDOWN = 1 ]; then
		local cell

		printf '|'
		for cell in "$@"; do
			printf ' %s |' "$cell"
		done
		echo
	else
		printf '%-34s %8s %15s %8s %8s %12s %8s %11s\n' "$@"
	fi
}

echo
[ $MARKDOWN = 1 ] && echo "## HTTP/1.1: median of $BENCH_ROUNDS, 32 connections" && echo
row "" "req/s" "least-most" "p50 us" "p99 us" "to the first" "CPU us" "of first's"
[ $MARKDOWN = 1 ] && echo '|---|---:|---:|---:|---:|---:|---:|---:|'
line() {
	row "$2" "$(median "$1" 2)" "$(spread "$1")" "$(median "$1" 3)" "$(median "$1" 4)" "$(ratio "$1" "$3")" \
		"$(median "$1" 5)" "$(ratio "$1" "$3" 5)"
}
line evhttp "one worker: evhttp, 204" evhttp
line nginx-check "/nginx/check, 204" evhttp
line v1-check "/v1/check, JSON" evhttp
line all-nginx "all CPUs: nginx limit_req, 204" all-nginx
line all-evhttp "evhttp, 204" all-nginx
line all-nginx-check "/nginx/check, 204" all-nginx
line all-v1-check "/v1/check, JSON" all-nginx
echo
verdict() {
	awk -v v="$2" -v w="$3" -v words="$1" 'BEGIN {
		printf "%s: %s, aim %s, %s\n", words, v, w, (v + 0 >= w + 0 ? "met" : "missed") }'
}
verdict "One worker to evhttp's 204" "$(ratio nginx-check evhttp)" 0.9
verdict "All CPUs to nginx limit_req's 204: /nginx/check" "$(ratio all-nginx-check all-nginx)" 1.2
verdict "All CPUs to nginx limit_req's 204: /v1/check" "$(ratio all-v1-check all-nginx)" 1.0
verdict "CPU of nginx limit_req, by that of /nginx/check" "$(ratio all-nginx all-nginx-check 5)" 1.2
verdict "CPU of nginx limit_req, by that of /v1/check" "$(ratio all-nginx all-v1-check 5)" 1.0
LAB_ENDED=1
