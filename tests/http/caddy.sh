#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Real Caddy from docs/examples/Caddyfile (port 8080) and Caddyfile-closed (8090): limits, headers,
# what clients cannot achieve, and how each proxy fails. And Traefik's requests, as its documentation
# has them: Traefik itself is not packaged.

. "$(dirname "$0")/../lib/http.sh"
http_begin caddy "$@"
. "$REPO/tests/lib/proxy.sh"
ODD=a

proxy_rules
http_daemon < /dev/null
application_start
caddy_start Caddyfile 8080
caddy_start Caddyfile-closed 8090

proxy_pair 8080 8090
check_is "the client sees the violated policies" \
	"$(through 8080 mallory / > "$LAB/out"; jq -c '."violated-policies"' "$LAB/body")" '["user"]'

# ---------------------------------------------------------------- without a daemon

wrong='s|header_up Host localhost|&\n\t\t\theader_up X-Sluice-Token wrong|'
caddy_start Caddyfile 8081 "$wrong"
caddy_start Caddyfile-closed 8091 "$wrong"
proxy_undecided 8081 8091
proxy_left_alone 8080 8090

# ---------------------------------------------------------------- Traefik, replayed

# The address as in the example; its query is sent with the headers that Traefik sends.
address=$(sed -n "s/^ *address: 'http:\/\/127.0.0.1:8180\(.*\)'$/\1/p" "$REPO/docs/examples/traefik-closed.yml")
check_is "traefik.yml has the same address" "$(grep -cF "$address" "$REPO/docs/examples/traefik.yml")" 1
check_true "both are YAML" node -e 'const { createRequire } = require("node:module");
const YAML = createRequire(process.argv[1] + "/build/js/")("yaml"), fs = require("node:fs");
for (const name of process.argv.slice(2))
	YAML.parse(fs.readFileSync(name, "utf8")).http.middlewares.sluice.forwardAuth.address.length' \
	"$REPO" "$REPO"/docs/examples/traefik*.yml
# traefik HEADER URI [CURL OPTIONS]: with the header that the keys' middleware has added
traefik() {
	local header=$1 uri=$2

	shift 2
	request -H 'User-Agent: Go-http-client/1.1' -H 'Accept-Encoding: gzip' -H "$header" \
		-H 'X-Forwarded-For: 192.0.2.77' -H 'X-Forwarded-Host: api.example.com' \
		-H 'X-Forwarded-Method: GET' -H 'X-Forwarded-Proto: http' \
		-H "X-Forwarded-Uri: $uri" -H 'X-Real-Ip: 192.0.2.77' \
		"$@" "$address"
}
statuses=
for uri in /search '/%73earch?x' /search / / / / /; do
	statuses="$statuses $(traefik 'X-User: tina' "$uri")"
done
check_is "Traefik: 2 of /search, 5 in all, then 429" "$statuses" " 200 200 429 200 200 200 429 429"
check_true "with Retry-After" test -n "$(header Retry-After)"
check_is "another user passes" "$(traefik 'X-User: theo' /)" 200
statuses=
for i in 1 2 3 4 5 6; do
	statuses="$statuses $(traefik 'X-Guest: 192.0.2.77' /)"
done
check_is "and five guests of an address" "$statuses" " 200 200 200 200 200 429"
check_is "the source is the peer that Traefik saw" "$(left source=192.0.2.77)" 989

# The same through the entry point of traefik.yml, which adds a proxy's headers.
check_is "through Traefik the source is the client" "$(traefik 'X-User: theo' / -H 'X-Forwarded-For: 192.0.2.77, 127.0.0.1' \
	-H 'X-Forwarded-Port: 8179' -H 'X-Forwarded-Server: proxy-1') $(left source=192.0.2.77)" "200 988"
lab_done
