#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Delayed responses (on_limit: wait, queue): a leaky bucket of 5 requests/s, through
# /v1/check, gRPC and nginx; new rules and the end of the daemon in the middle.

. "$(dirname "$0")/../lib/http.sh"
http_begin wait "$@"

rules() {
	http_rules api <<-YAML
	domain: api
	descriptors:
	  - key: user
	    limits: ['$1']
	    algorithm: leaky-bucket
	    on_limit: {wait: $2, queue: 10}
	YAML
}
rules '5 requests/s' 2s
http_daemon <<'YAML'
  grpc: [127.0.0.1:8181]
  workers: 2
YAML

# Pages behind auth_request: with a client that disconnects, nginx decides what happens to its queued request.
cat > "$LAB/nginx.conf" <<NGINX
user root;
pid $LAB/nginx.pid;
error_log $LAB/nginx.log;
events { worker_connections 256; }
http {
	access_log off;
	client_body_temp_path $LAB/t1; proxy_temp_path $LAB/t2; fastcgi_temp_path $LAB/t3;
	uwsgi_temp_path $LAB/t4; scgi_temp_path $LAB/t5;
	upstream limiter { server unix:$UNIX; keepalive 16; }
	server {
		listen 127.0.0.1:8080;
		location /page {
			auth_request /_limit;
			error_page 403 =429 @limited;
			try_files /none @page;
		}
		location @page { return 200 "page\n"; }
		location @limited { return 429; }
		location = /_limit {
			internal;
			proxy_pass http://limiter/nginx/check?domain=api&d=user;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_pass_request_headers off;
			proxy_set_header Host localhost;
			proxy_pass_request_body off;
			proxy_set_header Content-Length "";
			proxy_set_header X-Sluice-V-user \$http_x_user;
			proxy_set_header X-Sluice-Wait 5s;
			proxy_read_timeout 6s;
		}
	}
}
NGINX
nginx -c "$LAB/nginx.conf" -p "$LAB" -g 'daemon off; master_process off;' 2> /dev/null &
started
wait_for 5 curl -s -o /dev/null http://127.0.0.1:8080/ || not_ok "nginx does not start"

for way in check:8180 grpc:8181 nginx:8080; do
	node "$REPO/tests/js/wait.js" ${way%:*} 127.0.0.1:${way#*:} || LAB_FAILED=1
done

# ---------------------------------------------------------------- what metrics show

# hold USER COUNT: sends so many requests in the background; their statuses are in $LAB/held. It returns when they
# are there: each is connected or has its status. The start of so many curls takes seconds on a busy machine.
hold() {
	local i body

	body=$(check_body api "user=$1")
	: > "$LAB/held"
	for ((i = 0; i < $2; i++)); do
		curl -s -m 120 -o /dev/null -w '%{http_code}\n' -d "$body" "$URL/v1/check" >> "$LAB/held" &
		started
	done
	wait_for 20 all_sent "$2" || not_ok "$2 requests are not sent"
}
# A connection that ends after the first count is in the second.
all_sent() { [ $(($("${IN_S[@]}" ss -Htn state established '( dport = :8180 )' | wc -l) + $(wc -l < "$LAB/held"))) -ge "$1" ]; }
waiting() { [ "$(metric sluice_http_delayed domain=api rule=user)" = "$1" ]; }
held() { [ "$(grep -c "^$1" "$LAB/held")" = "$2" ]; }

# limit_is N: it is in force.
limit_is() { http_check api user=slow --peek true > /dev/null &&
	     [ "$(jq '.statuses[0].limit' "$LAB/body")" = "$1" ]; }
# One passes; the others are due in 30 s and more, so nothing below depends on when they came.
rules '1 requests/30s' 5m
check_true "rules for one in thirty seconds" wait_for 5 limit_is 1
before=$(metric sluice_decisions_total domain=api rule=user verdict=delayed)
hold metrics 4
check_true "sluice_http_delayed counts delayed requests" wait_for 2 waiting 3
check_true "one of them is served at once" wait_for 2 held 200 1
rules '2 requests/s' 5m
check_true "all are served" wait_for 10 held 200 4
check_true "until none is delayed" wait_for 2 waiting 0
check "decisions that were delayed" $(($(metric sluice_decisions_total domain=api rule=user \
	verdict=delayed) - before)) 3 3

# ---------------------------------------------------------------- new rules, and the daemon stops

rules '1 requests/30s' 5m
check_true "rules for one in thirty seconds" wait_for 5 limit_is 1
hold reload 3
check_true "two wait, for thirty seconds and sixty" wait_for 2 waiting 2
# As long a wait as before: else who has waited for longer is refused.
rules '100 requests/s' 5m
check_true "with new rules they are served at the new rate" wait_for 5 held 200 3

rules '1 requests/30s' 5m
check_true "one in thirty seconds again" wait_for 5 limit_is 1
hold drain 3
check_true "two wait" wait_for 2 waiting 2
daemon_kill TERM
check_true "delayed requests get a response when the daemon stops" wait_for 2 held '[24]' 3
check "they are not all served at once" "$(grep -c '^200' "$LAB/held")" 1 2
lab_done
