#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The HTTP tier alone: no interfaces; rules that are watched; who may come; metrics; its state
# after kill -9 and its end on SIGTERM.

. "$(dirname "$0")/../lib/http.sh"
http_begin serve "$@"

http_rules api <<'YAML'
domain: api
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 5}
YAML
http_daemon < /dev/null

check_is "healthz" "$(request /healthz)" 200
check_is "readyz" "$(request /readyz)" 200
check_is "HEAD, too" "$(request -I /healthz)" 200
check_is "of 8 requests at 5 a day pass" "$(http_passed 8 api user=bob)" 5
check_is "somebody else has his own" "$(http_check api user=eve)" 200
check_is "over the Unix socket it is the same bucket" \
	"$(HTTP_OPTIONS=(--unix-socket "$UNIX"); http_check api user=bob)" 429
check_is "in a domain without rules all pass" "$(http_passed 8 other user=bob)" 8

# ---------------------------------------------------------------- who may come

check_is "a web page's request is refused" "$(request -H 'Origin: http://a.example' /healthz)" 403
check_is "and one for another's name" "$(request -H 'Host: a.example' /healthz)" 403
check_is "of a proxy's nginx front as an error, not as a limit" \
	"$(request -H 'Host: a.example' '/nginx/check?domain=api')" 500
check_is "localhost is ours" "$(request -H 'Host: localhost:8180' /healthz)" 200
check_is "a token that nobody has" \
	"$(HTTP_OPTIONS=(-H "Authorization: Bearer aaaaaaaaaaaaaaaaaaaaaaaa"); http_check api user=x)" 401
check_is "no such path" "$(request /nothing)" 404
check_is "another method" "$(request -X DELETE /v1/check)" 405
check_is "which is named" "$(header Allow)" POST
check_is "no JSON" "$(request -d '{' /v1/check)" 400
check_is "told as a problem" "$(header Content-Type)" application/problem+json

# ---------------------------------------------------------------- what its threads may do

threads=$(ls "/proc/$DAEMON_PID/task" | wc -l)
check "threads: the main one, and workers" "$threads" 2 300
check_is "each behind the system call filter" \
	"$(grep -l '^Seccomp:.*2$' /proc/"$DAEMON_PID"/task/*/status | wc -l)" "$threads"
powerful=0
for caps in $(awk '/^CapEff/ { print $2 }' /proc/"$DAEMON_PID"/task/*/status); do
	# CAP_SYS_ADMIN, CAP_DAC_OVERRIDE, CAP_SETUID
	[ $((0x$caps & (1 << 21 | 1 << 1 | 1 << 7))) = 0 ] || powerful=$((powerful + 1))
done
check_is "without root's powers" $powerful 0
check_is "each without new privileges" \
	"$(grep -l '^NoNewPrivs:.*1$' /proc/"$DAEMON_PID"/task/*/status | wc -l)" "$threads"

# ---------------------------------------------------------------- rules live

http_rules api <<'YAML'
domain: api
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 9}
YAML
limit_is() { http_check api user=new --peek true && [ "$(jq .statuses[0].limit "$LAB/body")" = "$1" ]; }
check_true "a changed file is in force within seconds" wait_for 5 limit_is 9
echo 'domain: [' | http_rules bad
said() { grep -q "bad.yaml.*" "$LAB/daemon.log"; }
check_true "a bad one is told with its name" wait_for 5 said
check_is "and the rules before go on" "$(http_check api user=eve)" 200
check_is "metrics say so" "$(metric sluice_http_rules_last_reload_success)" 0
rm "$RULES/bad.yaml"
good() { [ "$(metric sluice_http_rules_last_reload_success)" = 1 ]; }
check_true "until it is gone" wait_for 5 good

# A directory as Kubernetes mounts it: a link that is pointed to another.
mkdir "$LAB/v1" "$LAB/v2"
sed 's/9/7/' "$RULES/api.yaml" > "$LAB/v1/api.yaml"
sed 's/9/8/' "$RULES/api.yaml" > "$LAB/v2/api.yaml"
rm "$RULES/api.yaml"
ln -s "$LAB/v1" "$LAB/now"
ln -s "$LAB/now" "$RULES/linked"
check_true "rules behind a link" wait_for 5 limit_is 7
ln -sfn "$LAB/v2" "$LAB/now.new" && mv -T "$LAB/now.new" "$LAB/now"
check_true "which is swapped" wait_for 5 limit_is 8

# ---------------------------------------------------------------- metrics

check_is "decisions by verdict" "$(metric sluice_decisions_total domain=api rule=user verdict=over_limit)" 4
check "and their times" "$(metric sluice_decision_duration_seconds_count)" 20 200
check_is "requests by code" "$(metric sluice_http_requests_total api=other code=403)" 2
metrics | sed '1,/^$/d' > "$LAB/metrics"
check_true "promtool finds nothing" promtool check metrics < "$LAB/metrics"

# ---------------------------------------------------------------- the end

check "of 8 more" "$(http_passed 8 api user=bob)" 3 3
daemon_kill KILL
daemon_run
check_is "after kill -9 bob is still refused" "$(http_check api user=bob)" 429
exec 9<> /dev/tcp/127.0.0.1/8180
daemon_kill TERM
check_true "SIGTERM ends it though somebody is connected" [ ! -e "$LAB/http.sock" ]
daemon_run
check_is "and another one goes on" "$(http_check api user=bob)" 429
daemon_kill TERM

# ---------------------------------------------------------------- without root

if [ "$(id -u)" = 0 ]; then
	chown -R 65534 "$LAB"
	setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all -- \
		"$BIN/sluiced" -c "$CONFIG" >> "$LAB/daemon.log" 2>&1 &
	DAEMON_PID=$!
	disown $DAEMON_PID
	check_true "it starts as nobody" wait_for 10 ctl status
	check_is "and takes over what root left" "$(http_check api user=bob)" 429
	check_is "an interface it refuses" "$(ctl attach lo 2>&1 | grep -c 'without interfaces')" 1
	check_is "its filter holds" "$(awk '/^Seccomp:/ { print $2 }' "/proc/$DAEMON_PID/status")" 2
fi

lab_done
