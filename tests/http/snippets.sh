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
printf "\n  - {key: user, value: watcher, shadow_mode: true, limits: ['1 requests/d', {name: tight, rate: 1 requests/d, mode: shadow}]}\n" \
	>> "$RULES/api.yaml"
http_daemon <<YAML
  spoe: [127.0.0.1:8182]
  grpc: [127.0.0.1:8181]
YAML
application_start
# Express, as an API that pages of other origins may use.
NODE_PATH=$REPO/build/js/node_modules node -e '
	const app = require("express")();
	app.use((request, response, next) => {
		response.set({ "Access-Control-Allow-Origin": request.get("Origin") || "*", "Access-Control-Allow-Credentials": "true",
			"Access-Control-Allow-Headers": "X-API-Key", "Access-Control-Expose-Headers": "ETag" });
		request.method === "OPTIONS" ? response.sendStatus(204) : next();
	});
	app.use((request, response) => response.json({}));
	app.listen(8001, "127.0.0.1");' > "$LAB/express" 2>&1 &
started
wait_for 10 request http://127.0.0.1:8001/ || not_ok "Express does not start: $(cat "$LAB/express")"

# Time for a machine that stalls, as in proxy.sh.
mkdir -p "$LAB/nginx/page" "$LAB/haproxy" "$LAB/caddy"
for part in http server location; do
	sed "s|_timeout [0-9]*ms;|_timeout 2s;|; s|unix:/run/sluice/http.sock|unix:$UNIX|; s|/etc/nginx/sluice/|$LAB/nginx/|" \
		"$SNIPPETS/nginx-$part.conf" > "$LAB/nginx/nginx-$part.conf"
done
for user in watcher bob-nginx eve-nginx bob-own eve-own dora carl bob gina una kim lea; do
	echo "key-$user $user;"
done > "$LAB/nginx/keys.map"
echo '"http://127.0.0.1:8086" $http_origin;' > "$LAB/nginx/origins.map"
# limited [NGINX...]: what each limited location has
limited() { printf 'include %s/nginx/nginx-location.conf; proxy_pass http://127.0.0.1:%d; %s' "$LAB" "${PORT:-8000}" "$*"; }
# at NAME [NUMBER]: a check about a limit that only NAME has
at() { printf '"domain=own&d=at=%s&limit=%d/d"' "$1" "${2:-2}"; }
cat > "$LAB/nginx/nginx.conf" <<CONF
events {}
http {
	access_log off;
	client_body_temp_path $LAB/nginx/body;
	proxy_temp_path $LAB/nginx/proxy;
	fastcgi_temp_path $LAB/nginx/f;
	uwsgi_temp_path $LAB/nginx/u;
	scgi_temp_path $LAB/nginx/s;
	log_format shadow escape=none '\$sluice_user \$sluice_shadow';
	include $LAB/nginx/nginx-http.conf;
	map \$sluice_user \$plan { default free; carl pro; }
	server {
		listen 8082;
		include $LAB/nginx/nginx-server.conf;
		set \$sluice_plan \$plan;
		set \$sluice_check "domain=plans&d=plan,user";
		location / { $(limited) }
	}
	server {
		listen 8080;
		access_log $LAB/nginx/log shadow;
		include $LAB/nginx/nginx-server.conf;
		location / { $(limited) }
		location /free { proxy_pass http://127.0.0.1:8000; }
	}
	server {
		listen 8081;
		include $LAB/nginx/nginx-server.conf;
		set \$sluice_check "domain=api&d=user&limit=3/d";
		location / { $(limited) }
		location /behind { $(limited "set \$sluice_location_check $(at behind);") }
		location /before { set \$sluice_location_check $(at before); $(limited) }
		location /common { set \$sluice_check $(at common); $(limited) }
		location /outer { $(limited) location /outer/inner { proxy_pass http://127.0.0.1:8000; } }
		location /away { $(limited "set \$sluice_location_check $(at away 9);") try_files /none /there; }
		location /there { $(limited) }
	}
	server {
		listen 8083;
		include $LAB/nginx/nginx-server.conf;
		set \$sluice_check $(at intercept 4);
		location / { $(limited "proxy_intercept_errors on;") }
		location /denied { $(limited "deny all;") }
	}
	server {
		listen 8084 http2;
		include $LAB/nginx/nginx-server.conf;
		set \$sluice_check "domain=api&d=user&limit=2/d";
		location / { include $LAB/nginx/nginx-location.conf; grpc_pass grpc://127.0.0.1:8181; }
	}
	server {
		listen 8085;
		include $LAB/nginx/nginx-server.conf;
		set \$sluice_check $(at cors 4);
		location / { $(PORT=8001 limited) }
		location /other { $(PORT=8001 limited "set \$sluice_location_check $(at other 4);") }
	}
	server { listen 8086; listen 8087; root $LAB/nginx/page; }
}
CONF
cat > "$LAB/nginx/page/index.html" <<'HTML'
<!doctype html><pre id=seen></pre><script>
(async () => {
	const seen = [];
	for (let i = 0; i < 5; i++) {
		try {
			const response = await fetch(`http://127.0.0.1:${location.hash.slice(1)}/${i}`,
				{ credentials: 'include', headers: { 'X-API-Key': 'key-kim' } });
			seen.push(response.status + (response.headers.has('RateLimit') ? '+RateLimit' : '') +
				(response.headers.has('Retry-After') ? '+Retry-After' : ''));
		} catch (e) {
			seen.push(e.name);
		}
	}
	document.getElementById('seen').textContent = seen.join(' ');
})();
</script>
HTML
nginx -p "$LAB/nginx" -c "$LAB/nginx/nginx.conf" -e "$LAB/nginx/error.log" \
	-g "daemon off; master_process off; pid $LAB/nginx/pid;" 2> "$LAB/nginx/stderr" &
started

sed "s|connect 20ms|connect 1s|" "$SNIPPETS/haproxy.cfg" > "$LAB/haproxy/haproxy.cfg"
printf 'key-%s %s\n' watcher watcher bob-haproxy bob-haproxy eve-haproxy eve-haproxy kim kim-haproxy > "$LAB/haproxy/sluice-keys.map"
sed "s|hello 500ms|hello 2s|; s|processing 500ms|processing 1s|; s|/etc/haproxy/|$LAB/haproxy/|g" "$REPO/docs/examples/haproxy-spoe.conf" \
	> "$LAB/haproxy/haproxy-spoe.conf"
cat > "$LAB/haproxy/web.cfg" <<CONF
frontend web from sluice
	bind 127.0.0.1:8090
	log stdout format raw local0
	log-format "watcher %[var(txn.sluice.shadow)]"
	filter spoe engine sluice config $LAB/haproxy/haproxy-spoe.conf
	default_backend application

frontend pages from sluice
	bind 127.0.0.1:8095
	filter spoe engine sluice config $LAB/haproxy/haproxy-spoe.conf
	default_backend express

backend application
	server one 127.0.0.1:8000

backend express
	server one 127.0.0.1:8001
CONF
SLUICE_ORIGINS='https://app.example|http://127.0.0.1:8086' haproxy -db -f "$LAB/haproxy/haproxy.cfg" -f "$LAB/haproxy/web.cfg" > "$LAB/haproxy/log" 2>&1 &
started

printf 'key-%s %s\n' bob-caddy bob-caddy eve-caddy eve-caddy kim kim-caddy > "$LAB/caddy/sluice-keys"
{
	printf '{\n\tadmin off\n\tauto_https off\n}\n'
	sed "s|_timeout [0-9]*ms|_timeout 2s|; s|/etc/caddy/|$LAB/caddy/|" "$SNIPPETS/sluice.caddy"
	for port in 8100 8105; do
		printf 'http://:%d {\n\troute {\n\t\timport sluice\n\t\treverse_proxy 127.0.0.1:800%d\n\t}\n}\n' $port $((port > 8100))
	done
} > "$LAB/caddy/Caddyfile"
echo 'http://127.0.0.1:8086 http://127.0.0.1:8086' > "$LAB/caddy/sluice-origins"
XDG_CONFIG_HOME=$LAB/caddy XDG_DATA_HOME=$LAB/caddy caddy run --config "$LAB/caddy/Caddyfile" \
	--adapter caddyfile 2> "$LAB/caddy/log" &
started

for proxy in nginx:8080 haproxy:8090 caddy:8100; do
	name=${proxy%:*} port=${proxy#*:} statuses=
	wait_for 20 request "http://127.0.0.1:$port/" ||
		not_ok "$name does not start: $(tail -n 3 "$LAB/$name"/*log "$LAB/$name"/std* 2> /dev/null)"
	for i in 1 2 3 4 5 6; do
		statuses="$statuses $(through "$port" "key-bob-$name" /)"
	done
	check_is "$name: 5 of 6 pass" "$statuses" " 200 200 200 200 200 429"
	check_is "$name: others get JSON" "$(header Content-Type)" application/problem+json
	check_is "$name: with the policies" "$(jq -c '."violated-policies"' "$LAB/body")" '["user"]'
	check_is "$name: of the type of quotas" "$(jq -r .type "$LAB/body" | sed 's|.*#||')" quota-exceeded
	check_is "$name: a browser gets a page" "$(through "$port" "key-bob-$name" \
		-H 'Accept: text/html,application/xhtml+xml,*/*;q=0.8' /) $(header Content-Type | cut -d';' -f1)" \
		"429 text/html"
	check_true "$name: that names the wait" grep -Eq 'again in [0-9]+ seconds' "$LAB/body"
	check_true "$name: with Retry-After" test -n "$(header Retry-After)"
	check_is "$name: and Vary" "$(header Vary)" Accept
	check_is "$name: a user's name is no key" "$(through "$port" "bob-$name" --interface 127.2.2.2 /)" 200
	check_is "$name: another user" "$(through "$port" "key-eve-$name" /)" 200
	check_is "$name: whose response has RateLimit" "$(header RateLimit | grep -c '"user";r=4;t=')" 1
done
# A rule in shadow mode refuses nothing, and the proxies' logs have what it would refuse.
over=1
for proxy in nginx:8080 haproxy:8090; do
	name=${proxy%:*}
	for i in 1 2 3; do through "${proxy#*:}" key-watcher / > "$LAB/out"; done
	check_is "$name: three pass in shadow mode" "$(cat "$LAB/out")" 200
	check_true "$name: those over the limit are in its log" wait_for 5 grep -q 'watcher \["api/user=watcher","api/user=watcher:tight"\]' "$LAB/$name/log"
	check_is "$name: only they" "$(grep -c 'watcher \[' "$LAB/$name/log")" "$((++over))"
	check_is "$name: clients do not see it" "$(grep -ci shadow "$LAB/headers")" 0
done
check_is "nginx: a location without it" "$(through 8080 key-bob-nginx /free)" 200
# statuses COUNT PORT KEY [CURL OPTIONS] PATH
statuses() {
	for _ in $(seq "$1"); do through "${@:2}"; printf ' '; done | sed 's/ $//'
}
# A limit of the server's own, without a rule.
check_is "nginx: \$sluice_check: 3 of 4 pass, whatever the rules are" "$(statuses 4 8081 key-bob-own /)" "200 200 200 429"
check_is "nginx: and name the limit" "$(jq -c '."violated-policies"' "$LAB/body")" '["user"]'
check_is "nginx: another key" "$(through 8081 key-eve-own /)" 200
# Locations with checks of their own beside it, wherever `set` stands.
for place in behind before common; do
	check_is "nginx: a location's own check, $place: 2 of 3 pass" "$(statuses 3 8081 key-una /$place)" "200 200 429"
done
check_is "nginx: a nested location has the server's" "$(through 8081 key-bob-own /outer/inner)" 429
check_is "nginx: the location after a redirect has its own" "$(through 8081 key-bob-own /away)" 429
check_is "nginx: of which nothing was charged to the server's" "$(statuses 4 8081 key-una /)" "200 200 200 429"

# Whatever has 403 but was not refused by sluice.
check_is "nginx: the application's own 403, intercepted" "$(through 8083 key-una -H 'X-Answer: 403' /)" 403
check_is "nginx: of a client that names a 403" "$(through 8083 key-una -H 'X-Answer: 403' -H 'Accept: , 403|' /)" 403
check_is "nginx: denied by nginx" "$(through 8083 key-una /denied)" 403
check_is "nginx: what sluice refuses is still refused" "$(statuses 3 8083 key-una -H 'X-Answer: 403' /)" "403 403 429"
check_is "nginx: with JSON" "$(jq '."violated-policies" | length' "$LAB/body")" 1

# Plans: docs/examples/rules/plans.yaml and the command in it.
utc_room 60 20
# passed USER: of 20 requests.
passed() {
	for _ in {1..20}; do through 8082 "$1" /; echo; done | grep -c 200
}
check_is "nginx: the smallest plan" "$(passed key-dora)" 10
check_is "nginx: a larger one" "$(passed key-carl)" 20
set -- $(sed -n 's/^# *sluicectl user set \([^ ]*\) bob .*/\1/p' "$REPO/docs/examples/rules/plans.yaml")
eval "ctl $(sed -n 's/^# *sluicectl \(user set .*\)/\1/p' "$REPO/docs/examples/rules/plans.yaml")" > "$LAB/out" 2>&1 ||
	not_ok "user set: $(cat "$LAB/out")"
check_is "nginx: an agreement of one's own" "$(passed key-bob)" 20
check_is "of both limits" "$(ctl user show "$1" bob | sed '1,/^LIMIT/d' | awk '{ print $4 }' | sort -n | xargs)" "50 2000"
# Customers' names are no keys, and invented keys and none are guests: 10 in all of one address.
check_is "nginx: of invented keys, names and no key 10 pass" "$(
	for i in {1..8}; do through 8082 "invented-$i" /; echo; through 8082 bob /; echo; request http://127.0.0.1:8082/; echo; done |
		grep -c 200)" 10
check_is "nginx: a second key gains nothing" "$(for i in {1..5}; do through 8082 "more-$i" -H 'X-API-Key: key-dora' /; echo; done | sort -u)" 429
check_is "nginx: customers still pass" "$(through 8082 key-carl /)" 200

# gRPC: sluice's own health service as the application.
check_is "nginx: gRPC: 2 of 3 calls, then RESOURCE_EXHAUSTED, and another user's" "$(node -e '
	const { Client, grpc } = require(process.argv[1]), client = new Client("127.0.0.1:8084");
	(async () => {
		for (const key of ["gina", "gina", "gina", "kim"]) {
			const metadata = new grpc.Metadata();
			metadata.set("x-api-key", `key-${key}`);
			const answer = await client.call("health", "Check", {}, { deadline: Date.now() + 10000 }, metadata);
			console.log(answer.error || answer.status);
		}
		client.close();
	})()' "$REPO/tests/js/rls" | xargs)" "SERVING SERVING RESOURCE_EXHAUSTED SERVING"

# Pages of two origins, of which origins.map has the first: 4 requests of 5, and a preflight for each.
if command -v chromium > /dev/null; then
	# page PORT PATH
	page() {
		timeout 60 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \
			--user-data-dir="$LAB/chromium" --no-first-run --virtual-time-budget=5000 --dump-dom \
			"http://127.0.0.1:$1/#$2" 2> "$LAB/console" | sed -n 's/.*id="seen">\([^<]*\)<.*/\1/p'
	}
	seen=200+RateLimit
	check_is "a browser across origins sees 429 and the limits" "$(page 8086 8085/cors)" \
		"$seen $seen $seen $seen 429+RateLimit+Retry-After"
	for proxy in haproxy:8095 caddy:8105; do
		name=${proxy%:*} port=${proxy#*:}
		check_is "$name: a request from the command line" "$(through "$port" key-kim /)" 200
		check_is "$name: a browser across origins, too" "$(page 8086 "$port")" \
			"$seen $seen $seen $seen 429+RateLimit+Retry-After"
	done
	check_is "a page of another origin neither, and its preflights are charged" "$(page 8087 8085/other)" \
		"200 200 TypeError TypeError TypeError"
else
	skip "chromium is not installed"
fi
check_is "an OPTIONS that is no preflight is charged" "$(through 8085 key-lea -X OPTIONS -H 'Origin: http://127.0.0.1:8086' /)" 429
# guests ADDRESS: what is left to them
guests() { left guest="$1"; }
n=1
for proxy in haproxy:8095 caddy:8105; do
	name=${proxy%:*} port=${proxy#*:} from=127.5.5.$((++n))
	preflight() { request --interface $from -X OPTIONS -H "Origin: $1" -H 'Access-Control-Request-Method: GET' "http://127.0.0.1:$port/"; }
	check_is "$name: ten preflights" "$(for _ in {1..10}; do preflight http://127.0.0.1:8086; echo; done | sort | uniq -c | xargs)" "10 204"
	check_is "$name: of which none is charged" "$(guests $from) $(left source=$from)" "5 1000"
	check_is "$name: one of another origin" "$(preflight http://127.0.0.1:8087)" 204
	check_is "$name: which does not see the limits" "$(header Access-Control-Expose-Headers)" ETag
	check_is "$name: is charged" "$(guests $from)" 4
	request --interface $from -X OPTIONS -H 'Origin: http://127.0.0.1:8086' "http://127.0.0.1:$port/" > "$LAB/out"
	check_is "$name: an OPTIONS that is none" "$(guests $from)" 3
done
check_is "a preflight is not refused" "$(through 8085 key-lea -X OPTIONS -H 'Origin: http://127.0.0.1:8086' \
	-H 'Access-Control-Request-Method: GET' /)" 204
lab_done
