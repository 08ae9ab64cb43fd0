#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The HTTP tier alone: no interfaces; rules that are watched; refused clients; metrics; its state
# after kill -9 and its end on SIGTERM.

. "$(dirname "$0")/../lib/http.sh"
http_begin serve "$@"

http_rules api <<'YAML'
  - key: user
    rate_limit: {unit: day, requests_per_unit: 5}
YAML
http_daemon < /dev/null

check_is "healthz" "$(request /healthz)" 200
check_is "readyz" "$(request /readyz)" 200
check_is "HEAD, too" "$(request -I /healthz)" 200
check_is "of 8 requests at 5 a day pass" "$(http_passed 8 api user=bob)" 5
check_is "another user has a limit of its own" "$(http_check api user=eve)" 200
check_is "over the Unix socket it is the same bucket" \
	"$(HTTP_OPTIONS=(--unix-socket "$UNIX"); http_check api user=bob)" 429
check_is "in a domain without rules all pass" "$(http_passed 8 other user=bob)" 8

# ---------------------------------------------------------------- refused requests

check_is "a web page's request is refused" "$(request -H 'Origin: http://a.example' /healthz)" 403
check_is "a request for another host name is refused" "$(request -H 'Host: a.example' /healthz)" 403
check_is "on the endpoint for nginx the error is not a limit's" \
	"$(request -H 'Host: a.example' '/nginx/check?domain=api')" 500
check_is "localhost is accepted" "$(request -H 'Host: localhost:8180' /healthz)" 200
check_is "an unknown token is refused" \
	"$(HTTP_OPTIONS=(-H "Authorization: Bearer aaaaaaaaaaaaaaaaaaaaaaaa"); http_check api user=x)" 401
check_is "no such path" "$(request /nothing)" 404
check_is "another method" "$(request -X DELETE /v1/check)" 405
check_is "Allow names the method" "$(header Allow)" POST
check_is "no JSON" "$(request -d '{' /v1/check)" 400
check_is "errors are problem details" "$(header Content-Type)" application/problem+json

# ---------------------------------------------------------------- privileges of its threads

threads=$(ls "/proc/$DAEMON_PID/task" | wc -l)
check "threads: the main one, and workers" "$threads" 2 300
check_is "each thread is behind the system call filter" \
	"$(grep -l '^Seccomp:.*2$' /proc/"$DAEMON_PID"/task/*/status | wc -l)" "$threads"
powerful=0
for caps in $(awk '/^CapEff/ { print $2 }' /proc/"$DAEMON_PID"/task/*/status); do
	# CAP_SYS_ADMIN, CAP_DAC_OVERRIDE, CAP_SETUID
	[ $((0x$caps & (1 << 21 | 1 << 1 | 1 << 7))) = 0 ] || powerful=$((powerful + 1))
done
check_is "no thread has root's capabilities" $powerful 0
check_is "each thread has no_new_privs" \
	"$(grep -l '^NoNewPrivs:.*1$' /proc/"$DAEMON_PID"/task/*/status | wc -l)" "$threads"

# ---------------------------------------------------------------- changed rules

http_rules api <<'YAML'
  - key: user
    rate_limit: {unit: day, requests_per_unit: 9}
YAML
limit_is() { http_check api user=new --peek true && [ "$(jq .statuses[0].limit "$LAB/body")" = "$1" ]; }
check_true "a changed file is in force within seconds" wait_for 5 limit_is 9
echo 'domain: [' | http_rules bad
said() { grep -q "bad.yaml.*" "$LAB/daemon.log"; }
check_true "a bad file is logged with its name" wait_for 5 said
check_is "the previous rules stay in force" "$(http_check api user=eve)" 200
check_is "the metric shows the failure" "$(metric sluice_http_rules_last_reload_success)" 0
rm "$RULES/bad.yaml"
good() { [ "$(metric sluice_http_rules_last_reload_success)" = 1 ]; }
check_true "until it is removed" wait_for 5 good

# A directory as Kubernetes mounts it: a symbolic link that is replaced.
mkdir "$LAB/v1" "$LAB/v2"
sed 's/9/7/' "$RULES/api.yaml" > "$LAB/v1/api.yaml"
sed 's/9/8/' "$RULES/api.yaml" > "$LAB/v2/api.yaml"
rm "$RULES/api.yaml"
ln -s "$LAB/v1" "$LAB/now"
ln -s "$LAB/now" "$RULES/linked"
check_true "rules behind a link" wait_for 5 limit_is 7
ln -sfn "$LAB/v2" "$LAB/now.new" && mv -T "$LAB/now.new" "$LAB/now"
check_true "a swapped link is noticed" wait_for 5 limit_is 8

# ---------------------------------------------------------------- metrics

check_is "decisions by verdict" "$(metric sluice_decisions_total domain=api rule=user verdict=over_limit)" 4
check "their durations are counted" "$(metric sluice_decision_duration_seconds_count)" 20 200
check_is "requests by code" "$(metric sluice_http_requests_total api=other code=403)" 2
metrics | sed '1,/^$/d' > "$LAB/metrics"
check_true "promtool finds nothing" promtool check metrics < "$LAB/metrics"

# ---------------------------------------------------------------- SIGTERM

check "of 8 more requests 3 pass" "$(http_passed 8 api user=bob)" 3 3
daemon_kill KILL
daemon_run
check_is "after kill -9 bob is still refused" "$(http_check api user=bob)" 429
exec 9<> /dev/tcp/127.0.0.1/8180
daemon_kill TERM
check_true "SIGTERM ends it with a connection open" [ ! -e "$LAB/http.sock" ]
check_is "and it says what then holds: nothing" "$(grep -c 'exiting; no request gets a decision' "$LAB/daemon.log")" 1
check_is "no limit stays in force" "$(grep -c 'in force' "$LAB/daemon.log")" 0
daemon_run
check_is "the next daemon continues the counts" "$(http_check api user=bob)" 429
daemon_kill TERM

# ---------------------------------------------------------------- without root

if [ "$(id -u)" = 0 ]; then
	install -m 755 "$BIN/sluiced" "$LAB/sluiced"
	chown -R 65534 "$LAB"
	setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all -- \
		"$LAB/sluiced" -c "$CONFIG" >> "$LAB/daemon.log" 2>&1 &
	DAEMON_PID=$!
	disown $DAEMON_PID
	check_true "it starts as nobody" wait_for 10 ctl status
	check_is "it takes over the counts of root's daemon" "$(http_check api user=bob)" 429
	check_is "an interface is refused" "$(ctl attach lo 2>&1 | grep -c 'without interfaces')" 1
	check_is "the system call filter holds" "$(awk '/^Seccomp:/ { print $2 }' "/proc/$DAEMON_PID/status")" 2
fi

lab_done
