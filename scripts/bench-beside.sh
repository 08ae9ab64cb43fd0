#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# bench-beside.sh - writes docs/pictures/beside.tsv: what a refused packet costs by the number of limits, beside
# nft's dynamic sets, iptables' hashlimit and a program that walks its rules (tests/bench/walk.bpf.c, a
# stand-in); and what a request costs, beside nginx' limit_req, HAProxy's stick tables, and Node.js with a limiter
# of npm over Redis.
# `make pictures` draws it (scripts/beside_picture.py).
#
# Packets: live frames of one source over a veth, 64 bytes, one CPU for the generator and the receiver; the
# limits are for other ports, but the last, which refuses nearly all. The figure is the time of a
# frame, which is made and judged, as a multiple of that with bare XDP_DROP. Requests: CPU time of the server's processes for each, over 32
# connections that stay open, all answered by 204 or 200, as a multiple of nginx'; one process or thread. They
# take turns, BENCH_ROUNDS (5) times of BENCH_SECONDS (0.5, requests 1); medians, with the least and the most. Needs
# root, a machine without other work, and for one of them BENCH_NODE_MODULES, where `npm install
# rate-limiter-flexible ioredis` put its packages.

set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib/netns.sh
: "${BENCH_ROUNDS:=5}" "${BENCH_SECONDS:=0.5}" "${BENCH_LIMITS:=1 16 64 256}"
OUT=docs/pictures/beside.tsv
CPU=1
[ "$(nproc)" -gt 1 ] || CPU=0

lab_begin beside
lab_link 0 2
on_server ethtool -K s0 gro on || { echo "bench-beside: cannot switch GRO on" >&2; exit 1; }

# each COUNT FORMAT: FORMAT with a port for every limit but the last.
each() {
	[ "$1" -lt 2 ] || seq 10000 $((10000 + $1 - 2)) | sed "s/.*/$2/"
}

# on NAME LIMITS, off NAME: and nothing else is on s0.
on() {
	case $1 in
	bare | walk)
		"${IN_S[@]}" $([ "$1" = bare ] && echo "$TOOLS/bench/livegen --bare s0" || echo "$TOOLS/bench/walk s0 $2 10") \
			2> "$LAB/other" &
		OTHER=$!
		wait_for 5 grep -q ready "$LAB/other"
		;;
	nft)
		{
			echo 'table netdev beside {'
			{ each "$2" '&'; echo last; } | sed 's/.*/set s& { type ipv4_addr; flags dynamic; size 65536; timeout 10s; }/'
			echo 'chain in { type filter hook ingress device s0 priority 0;'
			each "$2" 'udp dport & update @s& { ip saddr limit rate over 10\/second } drop'
			echo 'update @slast { ip saddr limit rate over 10/second } drop'
			printf '}\n}\n'
		} | on_server nft -f -
		;;
	iptables)
		{
			echo '*raw'
			each "$2" '-A PREROUTING -p udp --dport & -m hashlimit --hashlimit-above 10\/sec --hashlimit-mode srcip --hashlimit-name h& -j DROP'
			echo '-A PREROUTING -p udp -m hashlimit --hashlimit-above 10/sec --hashlimit-mode srcip --hashlimit-name last -j DROP'
			echo COMMIT
		} | on_server iptables-restore
		;;
	sluice)
		{
			echo 'interfaces: [{name: s0, mode: native}]'
			echo 'limits:'
			each "$2" '  - {name: port-&, match: {proto: udp, dport: &}, rate: 10 packets\/s, per: source}'
			echo '  - {name: last, match: {proto: udp}, rate: 10 packets/s, per: source}'
		} | daemon_start
		;;
	esac
}
off() {
	case $1 in
	bare | walk) kill -TERM $OTHER; wait $OTHER ;;
	nft) on_server nft delete table netdev beside ;;
	iptables) on_server iptables -t raw -F ;;
	sluice)
		# It removes its pins and exits.
		ctl detach --all > /dev/null
		wait_for 10 daemon_gone || exit 1
		DAEMON_PID=
		;;
	esac
}

# ns NAME LIMITS: sets NS, of the generator and the receiver together, a packet.
ns() {
	local before after

	on "$1" "$2" || { echo "bench-beside: $1 with $2 limits does not start" >&2; exit 1; }
	before=$(ring_drops s0)
	on_client chrt -f 10 "$TOOLS/bench/livegen" --interface c0 --mac $MAC_S --dst $SERVER4 --cpu $CPU \
		--time "$BENCH_SECONDS" --src 10.1.1.2 > "$LAB/run" || exit 1
	after=$(ring_drops s0)
	off "$1"
	NS=$(jq -r "(.end - .start) * 1e9 / (.sent - ($after - $before))" "$LAB/run")
}

for _ in $(seq "$BENCH_ROUNDS"); do
	for limits in $BENCH_LIMITS; do
		ns bare 1
		bare=$NS
		for name in sluice nft iptables walk; do
			ns $name "$limits"
			awk -v name=$name -v limits="$limits" -v ns="$NS" -v bare="$bare" \
				'BEGIN { printf "%s\t%s\t%s\n", name, limits, ns / bare }' >> "$LAB/packets"
		done
	done
done

# ---------------------------------------------------------------- requests

on_server ip link set lo up
mkdir "$LAB/rules"
cat > "$LAB/rules/api.yaml" <<'YAML'
domain: api
descriptors:
  - {key: user, limits: [4000000000 requests/d]}
YAML
cat > "$LAB/nginx.conf" <<CONF
worker_processes 1; daemon off; pid $LAB/nginx.pid; error_log $LAB/nginx.log;
events { worker_connections 1024; }
http {
	access_log off; keepalive_requests 1000000000; client_body_temp_path $LAB/t1; proxy_temp_path $LAB/t2;
	fastcgi_temp_path $LAB/t3; uwsgi_temp_path $LAB/t4; scgi_temp_path $LAB/t5;
	limit_req_zone \$http_x_sluice_v_user zone=users:10m rate=1000000000r/s;
	server {
		listen 127.0.0.1:8101;
		location / { limit_req zone=users burst=1000000 nodelay; return 204; }
	}
}
CONF
cat > "$LAB/haproxy.cfg" <<CONF
global
	nbthread 1
defaults
	mode http
	timeout client 60s
frontend api
	bind 127.0.0.1:8102
	stick-table type string len 64 size 1m expire 1h store http_req_rate(1s)
	http-request track-sc0 hdr(X-Sluice-V-user)
	http-request deny if { sc_http_req_rate(0) gt 4000000000 }
	http-request return status 204
CONF
cat > "$LAB/limiter.js" <<'JS'
// A limiter of npm in an HTTP server of its own: one Lua call to Redis for each request.
const { RateLimiterRedis } = require("rate-limiter-flexible"), Redis = require("ioredis");
const limiter = new RateLimiterRedis({ storeClient: new Redis(8104), points: 4e9, duration: 86400 });
require("http").createServer((request, response) => limiter.consume(request.headers["x-sluice-v-user"])
	.then(() => { response.writeHead(204); response.end(); }, () => { response.writeHead(429); response.end(); })).listen(8103);
JS
printf 'wrk.method = "POST"\nwrk.body = %s\n' \
	"'{\"domain\":\"api\",\"descriptors\":[{\"entries\":[{\"key\":\"user\",\"value\":\"alice\"}]}]}'" > "$LAB/post.lua"

# start NAME COMMAND...: PIDS[NAME]
declare -A PIDS URLS
start() {
	"${IN_S[@]}" taskset -c 0 "${@:2}" > "$LAB/$1.out" 2>&1 &
	started
	PIDS[$1]=$!
}
daemon_start <<YAML
http: {listen: [127.0.0.1:8100], rules: $LAB/rules, workers: 1}
YAML
on_server taskset -apc 0 "$DAEMON_PID" > /dev/null
PIDS[sluice-nginx]=$DAEMON_PID PIDS[sluice-v1]=$DAEMON_PID
start nginx nginx -p "$LAB" -c "$LAB/nginx.conf"
start haproxy haproxy -db -f "$LAB/haproxy.cfg"
URLS=([sluice-nginx]="http://127.0.0.1:8100/nginx/check?domain=api&d=user" [nginx]=http://127.0.0.1:8101/
	[sluice-v1]="http://127.0.0.1:8100/v1/check" [haproxy]=http://127.0.0.1:8102/)
# Where npm has put it: BENCH_NODE_MODULES.
if [ -d "${BENCH_NODE_MODULES:=/nowhere}/rate-limiter-flexible" ]; then
	start redis redis-server --port 8104 --save '' --dir "$LAB"
	NODE_PATH=$BENCH_NODE_MODULES start node node "$LAB/limiter.js"
	URLS[node]=http://127.0.0.1:8103/
	PIDS[node]="${PIDS[node]} ${PIDS[redis]}"
fi

# Nanoseconds of CPU of processes and their children.
cpu_ns() {
	local pid

	for pid in "$@" $(for p in "$@"; do pgrep -P "$p"; done); do
		cat /proc/"$pid"/task/*/schedstat
	done | awk '{ sum += $1 } END { printf "%.0f", sum }'
}
for name in "${!URLS[@]}"; do
	wait_for 10 on_server curl -s -o /dev/null "${URLS[$name]}" || { echo "bench-beside: no $name" >&2; exit 1; }
done
for _ in $(seq "$BENCH_ROUNDS"); do
	for name in "${!URLS[@]}"; do
		before=$(cpu_ns ${PIDS[$name]})
		on_server taskset -c $CPU wrk -t 1 -c 32 -d 1 -H 'X-Sluice-V-user: alice' \
			$([ $name != sluice-v1 ] || echo -s "$LAB/post.lua") "${URLS[$name]}" > "$LAB/wrk"
		! grep -q Non-2xx "$LAB/wrk" || { echo "bench-beside: $name refuses" >&2; exit 1; }
		awk -v name="$name" -v ns=$(($(cpu_ns ${PIDS[$name]}) - before)) \
			'/ requests in / { printf "%s\t1\t%s\n", name, ns / $1 }' "$LAB/wrk" >> "$LAB/requests"
	done
done
LAB_ENDED=1

# What NAME LIMITS MEDIAN LEAST MOST.
{
	printf '# scripts/bench-beside.sh; %s, %s; %s\n' "$(uname -r)" "$(lscpu | sed -n 's/^Model name: *//p')" "$(date -u +%F)"
	python3 - "$LAB" <<-'PY'
	import statistics, sys
	def read(what, unit):
	    runs = {}
	    for line in open(f"{sys.argv[1]}/{what}s"):
	        name, limits, ns = line.split()
	        runs.setdefault((name, int(limits)), []).append(float(ns))
	    unit = statistics.median(runs[unit]) if unit else 1
	    for (name, limits), of in sorted(runs.items()):
	        print(what, name, limits, *("%.2f" % (x / unit) for x in (statistics.median(of), min(of), max(of))), sep="\t")
	read("packet", None)
	read("request", ("nginx", 1))
	PY
} > "$LAB/results" && cp "$LAB/results" "$OUT" && cat "$OUT"
