#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The query that a proxy's administrator writes: one that cannot be read passes at the proxy, so the log, a metric,
# status and doctor have it, and no client can fill the log with such; its limits. And a socket that a proxy may
# not open: doctor names it, and what it proposes lets the proxy in.

. "$(dirname "$0")/../lib/http.sh"
http_begin query "$@"

http_rules api <<'YAML'
  - {key: user, rate_limit: {unit: day, requests_per_unit: 2}}
YAML
http_daemon <<YAML
  workers: 2
YAML
nginx() { request -H 'X-Sluice-V-user: bob' -H "X-Sluice-Uri: /" "${@:2}" "/nginx/check?$1"; }
doctor() { ctl doctor -o json | jq -r ".checks[] | select(.check == \"$1\") | $2"; }
undecided() { metric sluice_http_undecided_total api="$1" reason="$2"; }
lines() { grep -c "http: $1: request not decided.*: $2" "$LAB/daemon.log"; }

# ---------------------------------------------------------------- queries that cannot be read

check_is "a good query" "$(nginx 'domain=api&d=user')" 204
check_is "is nothing that doctor warns of" "$(doctor requests .level)" ok
check_is "the series is there before the first" "$(undecided nginx unreadable)" 0
for _ in 1 2 3; do check_is "limit=10/min" "$(nginx 'domain=api&d=user&limit=10/min')" 500; done
check_is "an empty variable of nginx" "$(nginx '')" 500
check_is "an unknown parameter" "$(request '/forward-auth?domain=api&d=method&peek=1')" 500
check_is "a body that is no JSON" "$(request -d '{' /v1/check)" 400
check_is "an unknown member" "$(request -d '{"domain":"api","descriptors":[{"entries":[{"key":"user","value":"b"}]}],"x":1}' /json)" 400
check_is "a token that nobody has" "$(nginx 'domain=api&d=user' -H 'X-Sluice-Token: nobody-has-this-token')" 500
check_is "a path that there is not" "$(request /nginx/chek)" 404
check_is "each is counted" "$(undecided nginx unreadable) $(undecided forward_auth unreadable) $(undecided v1_check unreadable) $(undecided json unreadable) $(undecided nginx caller) $(undecided other path)" "4 1 1 1 1 1"
check_is "the first of a kind is logged, with what was found" "$(lines nginx "limit: found '10/min'; accepted: COUNT/UNIT")" 1
check_is "and each other kind" "$(lines nginx 'd: none found') $(lines forward_auth 'peek: unknown') $(lines v1_check '') $(lines json '') $(lines nginx 'unknown token') $(lines other 'unknown path')" "1 1 1 1 1 1"
check_is "doctor has them" "$(doctor requests .level)" bad
check_true "their number and the last" grep -qE '^9 requests .*: other: unknown path$' <<< "$(doctor requests .found)"
check_is "status has them" "$(ctl status -o json | jq -r '.http.undecided | "\(.requests) \(.last.api) \(.last.reason)"')" "9 other path"

# 300 texts that a client invents: a bounded number of lines, and one of another frontend still gets its own.
for i in {1..300}; do echo "url = \"$URL/nginx/check?domain=api&d=user&x$i=1\""; done |
	curl -s -o /dev/null -H 'X-Sluice-V-user: bob' -K - > /dev/null
check_is "invented ones are counted" "$(undecided nginx unreadable)" 304
check "but not all logged" "$(lines nginx '')" 3 20
check_is "the first of another frontend and reason" "$(request -H 'X-Sluice-Token: nobody' '/forward-auth?domain=api&d=method')" 500
check_is "is logged all the same" "$(lines forward_auth 'unknown token')" 1
check_is "good queries are decided as ever" "$(nginx 'domain=api&d=user')$(nginx 'domain=api&d=user')" 204403
# ---------------------------------------------------------------- limits in the query

passed() { for _ in {1..9}; do nginx "domain=api&$1"; echo; done | grep -c 204; }
check_is "two limits of a d, the first the smaller one" "$(passed 'd=a=1&limit=2/d&limit=4/h')" 2
check_is "the second" "$(passed 'd=a=2&limit=4/h&limit=2/d')" 2
check_is "of one unit" "$(passed 'd=a=3&limit=4/d&limit=2/d')" 2
check_is "one limit" "$(passed 'd=a=4&limit=4/d')" 4
no_rule=$(metric sluice_decisions_total domain= rule= verdict=no_rule)
check_is "a limit alone" "$(passed 'd=user,b=1&limit=3/d')" 3
check_is "is counted by its rule" "$(metric sluice_decisions_total domain=api rule=user/b@day verdict=ok) $(metric sluice_decisions_total domain=api rule=user/b@day verdict=over_limit)" "3 6"
check_is "not as one without a rule" "$(metric sluice_decisions_total domain= rule= verdict=no_rule)" "$no_rule"
check_is "user list" "$(ctl user list --rule api/user/b@day -o json | jq -r '.users[] | "\(.rule) \(.value) \(.passed.requests) \(.refused.requests)"')" "api/user/b@day bob,1 3 6"
check_is "user top" "$(ctl user top -o json | jq -r '.users[] | select(.rule == "api/user/b@day") | "\(.value) \(.refused)"')" "bob,1 6"
check_is "analyze" "$(ctl analyze api/user/b@day -o json | jq -r '.limits[] | "\(.name) \(.passed) \(.refused)"')" "api/user/b@day 3 6"
check_is "events" "$(ctl events list -o json | jq -r '[.events[] | select(.rule == "api/user/b@day") | .value] | unique[]')" bob,1
check_is "user show" "$(ctl user show api/user/b@day bob,1 -o json | jq -r '.limits[] | "\(.limit) \(.quota) \(.remaining)"')" "user/b@day 3 0"
check_is "of another value" "$(ctl user show api/user/b@day al,1 -o json | jq -r '.limits[].remaining')" 3
check_true "user reset" ctl user reset api/user/b@day bob,1
check_is "3 more" "$(passed 'd=user,b=1&limit=3/d')" 3
check_is "and of a rule in a file the number that it had" "$(metric sluice_decisions_total domain=api rule=user verdict=ok)" 2
check_true "what no command can change names where it is" grep -q "changes in the proxy's query" <(ctl rule set api/user/b@day limits='9 requests/d' 2>&1)
check_is "what is in the headers" "$(nginx 'domain=api&d=user,b=1&limit=3/d') $(header RateLimit | cut -d';' -f1-2)" '403 "user/b@day";r=0'
check_is "gRPC's limit" "$(request -d '{"domain":"api","descriptors":[{"entries":[{"key":"c","value":"1"}],"limit":{"requestsPerUnit":1,"unit":"HOUR"}}]}' /json)" 200
check_is "is a rule, too" "$(metric sluice_decisions_total domain=api rule=c@hour verdict=ok)" 1

# 300 keys and domains that nobody has, and names that are no text: all of them share one rule.
for i in {1..300}; do echo "url = \"$URL/nginx/check?domain=x$i&d=k$i=1&limit=2/d\""; done | curl -s -o /dev/null -K - > /dev/null
check_is "of 300 invented ones" "$(nginx 'domain=%ff%22&d=%0a=1&limit=2/d')" 204
check "a bounded number are rules" "$(metrics | grep -c '^sluice_decisions_total{.*@.*verdict="ok"')" 20 64
check "the others one" "$(metric sluice_decisions_total domain=@other rule=requests verdict=ok)" 238 290
check_is "each limit holds" "$(for _ in {1..5}; do request "/nginx/check?domain=x299&d=k299=1&limit=2/d"; echo; done | grep -c 204)" 1
check_is "and those before are counted as ever" "$(passed 'd=user,b=2&limit=3/d') $(metric sluice_decisions_total domain=api rule=user/b@day verdict=ok)" "3 9"

# ---------------------------------------------------------------- a socket that nginx may not open

if [ "$(id -u)" != 0 ] || ! setpriv --reuid 65534 --regid 65534 --clear-groups true; then
	skip "needs root (other users)"
	lab_done
	exit
fi
mkdir "$LAB/nginx"
cat > "$LAB/nginx.conf" <<CONF
events {}
pid $LAB/nginx/pid;
daemon off;
master_process off;
http {
	access_log off;
	client_body_temp_path $LAB/nginx/b; proxy_temp_path $LAB/nginx/p; fastcgi_temp_path $LAB/nginx/f;
	uwsgi_temp_path $LAB/nginx/u; scgi_temp_path $LAB/nginx/s;
	server {
		listen 8080;
		location / { auth_request /_sluice; empty_gif; }
		location = /_sluice {
			internal;
			proxy_pass_request_headers off;
			proxy_set_header Host localhost;
			proxy_set_header X-Sluice-V-user \$http_x_api_key;
			proxy_intercept_errors on;
			error_page 500 502 504 = @down;
			proxy_pass http://unix:$UNIX:/nginx/check?domain=api&d=user;
		}
		location @down { return 204; }
	}
}
CONF
nginx_run() {
	chown -R 65534:65534 "$LAB/nginx"
	setpriv --reuid 65534 --regid 65534 --clear-groups nginx -p "$LAB/nginx" -c "$LAB/nginx.conf" \
		-e "$LAB/nginx/error.log" 2> "$LAB/stderr" &
	started
	NGINX=$!
	wait_for 10 request http://127.0.0.1:8080/ || not_ok "nginx does not start: $(cat "$LAB/stderr")"
}
through() { for _ in {1..9}; do request -H "X-API-Key: $1" http://127.0.0.1:8080/; echo; done | grep -c 200; }
unix() { ctl doctor -o json | jq -r ".checks[] | select(.check == \"listener\" and (.found | startswith(\"unix:\"))) | $1"; }
check_true "no proxy runs: who may connect" grep -qE 'accepts connections \(mode 0660, root:root: root, group root may connect\)$' <<< "$(unix .found)"
check_is "which is fine" "$(unix .level)" ok
nginx_run
check_is "all pass that nginx may not ask for" "$(through first)" 9
check_is "doctor" "$(unix .level)" bad
check_true "names nginx and its user" grep -q "nginx (pid $NGINX, user nobody) may not$" <<< "$(unix .found)"
chmod 700 "$LAB"
check_true "or the directory" grep -q "may not enter $LAB$" <<< "$(unix .found)"
check_is "and what opens it" "$(unix .mend)" "chmod o+x $LAB"
chmod 755 "$LAB"
listener=$(unix .mend | sed -n 's/^http: \(listen: .*\), then systemctl restart sluiced$/\1/p')
daemon_kill TERM
http_daemon <<< "  $listener"
check_is "with the listener that it proposes" "$(unix .level)" ok
check_is "nginx asks, and 2 pass" "$(through second)" 2
kill "$NGINX"
lab_done
