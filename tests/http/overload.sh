#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# overload.sh - a server of bounded concurrency and a fixed service time behind a real nginx, offered
# four times its capacity by clients that give up after a second.
#
# Without a limit it collapses: it works on requests whose clients have gone. With an elastic limit
# of four times its capacity that shrinks while the latencies in nginx's log are too long, it keeps at
# least 90 % of its best goodput and answers all critical requests; low ones are shed first. All
# figures are shares of the best goodput of the same run: one client for each slot.

. "$(dirname "$0")/../lib/http.sh"
http_begin overload "$@"

SLOTS=8 SERVICE_MS=100
CAPACITY=$((SLOTS * 1000 / SERVICE_MS))
OVERLOAD=$REPO/tests/http/overload.py
CRITICAL=$((CAPACITY / 5))
NORMAL=$((CAPACITY * 2))
LOW=$((CAPACITY * 4 - CRITICAL - NORMAL))

http_rules app <<YAML
  - key: server
    limits: [$((CAPACITY * 4)) requests/s]
    algorithm: token-bucket
    burst: $((CAPACITY * 2))
    throttle: {elastic: 100%, floor: 5%, while: {load_signal: slow}}
  - {key: class, value: critical, priority: critical}
  - {key: class, value: low, priority: low}
YAML
HTTP_TOP="load_signals: [{name: slow, latency: 500ms, quantile: 95%, window: 1s, domain: app}]"
http_daemon <<YAML
  syslog: [127.0.0.1:8183]
YAML

cat > "$LAB/nginx.conf" <<CONF
worker_processes 1;
events { worker_connections 8192; }
http {
	log_format sluice escape=json '{"domain":"app","d":[{"log":"nginx"}],"status":"\$status","latency":"\$request_time"}';
	access_log syslog:server=127.0.0.1:8183,nohostname,tag=sluice sluice;
	client_body_temp_path $LAB/body;
	proxy_temp_path $LAB/proxy;
	fastcgi_temp_path $LAB/f;
	uwsgi_temp_path $LAB/u;
	scgi_temp_path $LAB/s;
	upstream sluice { server 127.0.0.1:8180; keepalive 64; }
	server {
		listen 127.0.0.1:8001;
		access_log off;
		location / { proxy_pass http://127.0.0.1:8000; }
	}
	server {
		listen 127.0.0.1:8002;
		location / {
			auth_request /_sluice;
			error_page 403 = @refused;
			proxy_pass http://127.0.0.1:8000;
		}
		location @refused { return 429; }
		location = /_sluice {
			internal;
			proxy_pass_request_headers off;
			proxy_pass_request_body off;
			proxy_set_header Host localhost;
			proxy_set_header Connection "";
			proxy_set_header X-Sluice-V-class \$http_x_class;
			proxy_http_version 1.1;
			proxy_pass http://sluice/nginx/check?domain=app&d=server=one&d=class;
		}
	}
}
CONF

python3 "$OVERLOAD" server 8000 $SLOTS $SERVICE_MS $((CAPACITY * 3)) > "$LAB/server.log" 2>&1 &
started
nginx -p "$LAB" -c "$LAB/nginx.conf" -e "$LAB/error.log" \
	-g "daemon off; master_process off; pid $LAB/nginx.pid;" 2> "$LAB/stderr" &
started
answers() {
	[ "$(request http://127.0.0.1:8001/)" = 200 ]
}
wait_for 10 answers || not_ok "the server does not start: $(tail -n 2 "$LAB"/*err* "$LAB/server.log")"

offer() {
	python3 "$OVERLOAD" offer "http://127.0.0.1:$1/" "$2" "$3" 1000 critical=$CRITICAL normal=$NORMAL \
		low=$LOW
}

# of CLASS FIELD < JSON
of() {
	jq ".$1.$2" "$LAB/offered"
}

# How many requests a second were good, as a share of the best.
share() {
	jq --argjson s "$1" --argjson b "$best" '([.[].good] | add) / $s / $b' "$LAB/offered"
}

best=$(python3 "$OVERLOAD" best http://127.0.0.1:8001/ $SLOTS 4 | jq '.all.good / 4')
check "the best goodput, requests a second" "$best" $((CAPACITY / 2)) $((CAPACITY + CAPACITY / 20))

offer 8001 6 3 > "$LAB/offered"
check "without a limit: the goodput's share of the best" "$(share 3)" 0 0.2
check "critical requests are lost, too" "$(calc "$(of critical good) / $(of critical sent)")" 0 0.2
check_true "after that it works again" wait_for 20 answers

offer 8002 26 14 > "$LAB/offered"
echo "# $(cat "$LAB/offered"), best $best/s"
check "with the limit: the goodput's share of the best" "$(share 12)" 0.9 1.1
check_is "critical requests that were not answered in time" \
	$(($(of critical sent) - $(of critical good))) 0
check "low requests get a smaller share than normal ones" \
	"$(calc "$(of low good) / $(of low sent) / ($(of normal good) / $(of normal sent))")" 0 0.6
check "scale of the limit" "$(metrics | awk '/^sluice_http_elastic_scale_ratio/ { print $2 }')" 0.1 0.6
lab_done
