#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Real nginx from docs/examples/nginx.conf (port 8080) and nginx-closed.conf (8090): limits, headers,
# what clients cannot achieve, and how each fails.

. "$(dirname "$0")/../lib/http.sh"
http_begin nginx "$@"
. "$REPO/tests/lib/proxy.sh"

proxy_rules
http_daemon < /dev/null
application_start
nginx_start nginx.conf 8080
nginx_start nginx-closed.conf 8090

proxy_pair 8080 8090
check_is "nginx logs no error for refusals" "$(grep -c 'unexpected status' "$LAB"/nginx-8080/error.log)" 0

# ---------------------------------------------------------------- an application that ignores case

# Express decides what is /search: of all that it takes for it two pass.
NODE_PATH=$REPO/build/js/node_modules node -e '
	const app = require("express")();
	app.get("/search", (request, response) => response.send("search"));
	app.use((request, response) => response.send("other"));
	app.listen(8001, "127.0.0.1");' > "$LAB/express" 2>&1 &
started
wait_for 10 request http://127.0.0.1:8001/ || not_ok "Express does not start: $(cat "$LAB/express")"
nginx_start nginx.conf 8082 's|127.0.0.1:8000|127.0.0.1:8001|'
expressed() {
	for path in /search /SEARCH /search/ /Search/ '/search?q' '/sEarch/?q' /SEARCH; do
		through "$1" exp "$path" > "$LAB/out"
		grep -o '^search' "$LAB/body"
	done | grep -c .
}
check_is "Express takes 7 for /search" "$(expressed 8001)" 7
check_is "behind nginx 2 of them reach it" "$(expressed 8082)" 2
check_is "another path passes" "$(through 8082 exp /find; cat "$LAB/body")" 200other

# ---------------------------------------------------------------- its own errors

# Errors of the application's that nginx takes for its own stay what they are.
intercept='s|proxy_pass http://application;|proxy_intercept_errors on; &|'
nginx_start nginx.conf 8083 "$intercept"
nginx_start nginx-closed.conf 8093 "$intercept"
for port in 8083 8093; do
	for status in 403 500 429; do
		check_is "port $port: an intercepted $status" "$(through $port eve -H "X-Answer: $status" /)" $status
	done
	check_is "port $port: a refusal" "$(through $port mallory -H 'X-Answer: 403' /)" 429
done

# ---------------------------------------------------------------- without a daemon

wrong='s|proxy_set_header Host localhost;|& proxy_set_header X-Sluice-Token wrong;|'
nginx_start nginx.conf 8081 "$wrong"
nginx_start nginx-closed.conf 8091 "$wrong"
proxy_undecided 8081 8091
proxy_left_alone 8080 8090
lab_done
