#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Real nginx, HAProxy and Caddy with configurations of a few lines that include docs/examples/snippets:
# of 5 for an API key 5 pass, then a page for browsers and a problem document for others.

. "$(dirname "$0")/../lib/http.sh"
http_begin snippets "$@"
. "$REPO/tests/lib/proxy.sh"
SNIPPETS=$REPO/docs/examples/snippets

proxy_rules
cp "$REPO/docs/examples/rules/plans.yaml" "$RULES/"
http_daemon <<YAML
  spoe: [127.0.0.1:8182]
YAML
application_start

# Time for a machine that stalls, as in proxy.sh.
mkdir "$LAB/nginx" "$LAB/haproxy" "$LAB/caddy"
for part in http server location; do
	sed "s|_timeout [0-9]*ms;|_timeout 2s;|; s|unix:/run/sluice/http.sock|unix:$UNIX|" "$SNIPPETS/nginx-$part.conf" > "$LAB/nginx/nginx-$part.conf"
done
cat > "$LAB/nginx/nginx.conf" <<CONF
events {}
http {
	access_log off;
	client_body_temp_path $LAB/nginx/body;
	proxy_temp_path $LAB/nginx/proxy;
	fastcgi_temp_path $LAB/nginx/f;
	uwsgi_temp_path $LAB/nginx/u;
	scgi_temp_path $LAB/nginx/s;
	include $LAB/nginx/nginx-http.conf;
	map \$http_x_api_key \$plan { default free; carl pro; }
	server {
		listen 8082;
		include $LAB/nginx/nginx-server.conf;
		set \$sluice_plan \$plan;
		set \$sluice_check "domain=plans&d=plan,user";
		location / {
			include $LAB/nginx/nginx-location.conf;
			proxy_pass http://127.0.0.1:8000;
		}
	}
	server {
		listen 8080;
		include $LAB/nginx/nginx-server.conf;
		location / {
			include $LAB/nginx/nginx-location.conf;
			proxy_pass http://127.0.0.1:8000;
		}
		location /free {
			proxy_pass http://127.0.0.1:8000;
		}
	}
	server {
		listen 8081;
		include $LAB/nginx/nginx-server.conf;
		set \$sluice_check "domain=api&d=user&limit=3/d";
		location / {
			include $LAB/nginx/nginx-location.conf;
			proxy_pass http://127.0.0.1:8000;
		}
	}
}
CONF
nginx -p "$LAB/nginx" -c "$LAB/nginx/nginx.conf" -e "$LAB/nginx/error.log" \
	-g "daemon off; master_process off; pid $LAB/nginx/pid;" 2> "$LAB/nginx/stderr" &
started

sed "s|connect 20ms|connect 1s|" "$SNIPPETS/haproxy.cfg" > "$LAB/haproxy/haproxy.cfg"
sed 's|hello 500ms|hello 2s|; s|processing 500ms|processing 1s|' "$REPO/docs/examples/haproxy-spoe.conf" \
	> "$LAB/haproxy/haproxy-spoe.conf"
cat > "$LAB/haproxy/web.cfg" <<CONF
frontend web from sluice
	bind 127.0.0.1:8090
	filter spoe engine sluice config $LAB/haproxy/haproxy-spoe.conf
	default_backend application

backend application
	server one 127.0.0.1:8000
CONF
haproxy -db -f "$LAB/haproxy/haproxy.cfg" -f "$LAB/haproxy/web.cfg" > "$LAB/haproxy/log" 2>&1 &
started

{
	printf '{\n\tadmin off\n\tauto_https off\n}\n'
	sed 's|_timeout [0-9]*ms|_timeout 2s|' "$SNIPPETS/sluice.caddy"
	printf 'http://:8100 {\n\troute {\n\t\timport sluice\n\t\treverse_proxy 127.0.0.1:8000\n\t}\n}\n'
} > "$LAB/caddy/Caddyfile"
XDG_CONFIG_HOME=$LAB/caddy XDG_DATA_HOME=$LAB/caddy caddy run --config "$LAB/caddy/Caddyfile" \
	--adapter caddyfile 2> "$LAB/caddy/log" &
started

for proxy in nginx:8080 haproxy:8090 caddy:8100; do
	name=${proxy%:*} port=${proxy#*:} statuses=
	wait_for 20 request "http://127.0.0.1:$port/" ||
		not_ok "$name does not start: $(tail -n 3 "$LAB/$name"/*log "$LAB/$name"/std* 2> /dev/null)"
	for i in 1 2 3 4 5 6; do
		statuses="$statuses $(through "$port" "bob-$name" /)"
	done
	check_is "$name: 5 of 6 pass" "$statuses" " 200 200 200 200 200 429"
	check_is "$name: others get JSON" "$(header Content-Type)" application/problem+json
	check_is "$name: with the policies" "$(jq -c '."violated-policies"' "$LAB/body")" '["user"]'
	check_is "$name: of the type of quotas" "$(jq -r .type "$LAB/body" | sed 's|.*#||')" quota-exceeded
	check_is "$name: a browser gets a page" "$(through "$port" "bob-$name" \
		-H 'Accept: text/html,application/xhtml+xml,*/*;q=0.8' /) $(header Content-Type | cut -d';' -f1)" \
		"429 text/html"
	check_true "$name: that names the wait" grep -Eq 'again in [0-9]+ seconds' "$LAB/body"
	check_true "$name: with Retry-After" test -n "$(header Retry-After)"
	check_is "$name: and Vary" "$(header Vary)" Accept
	check_is "$name: another user" "$(through "$port" "eve-$name" /)" 200
	check_is "$name: whose response has RateLimit" "$(header RateLimit | grep -c '"user";r=4;t=')" 1
done
check_is "nginx: a location without it" "$(through 8080 bob-nginx /free)" 200
# A limit of the server's own, without a rule.
statuses=
for i in 1 2 3 4; do
	statuses="$statuses $(through 8081 bob-own /)"
done
check_is "nginx: \$sluice_check: 3 of 4 pass, whatever the rules are" "$statuses" " 200 200 200 429"
check_is "nginx: and name the limit" "$(jq -c '."violated-policies"' "$LAB/body")" '["user"]'
check_is "nginx: another key" "$(through 8081 eve-own /)" 200

# Plans: docs/examples/rules/plans.yaml and the command in it.
utc_room 60 20
# passed USER: of 20 requests.
passed() {
	for _ in {1..20}; do through 8082 "$1" /; echo; done | grep -c 200
}
check_is "nginx: the smallest plan" "$(passed dora)" 10
check_is "nginx: a larger one" "$(passed carl)" 20
set -- $(sed -n 's/^# *sluicectl user set \([^ ]*\) bob .*/\1/p' "$REPO/docs/examples/rules/plans.yaml")
eval "ctl $(sed -n 's/^# *sluicectl \(user set .*\)/\1/p' "$REPO/docs/examples/rules/plans.yaml")" > "$LAB/out" 2>&1 ||
	not_ok "user set: $(cat "$LAB/out")"
check_is "nginx: an agreement of one's own" "$(passed bob)" 20
check_is "of both limits" "$(ctl user show "$1" bob | awk 'NR > 2 { print $4 }' | sort -n | xargs)" "50 2000"
lab_done
