#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# docs/examples/defer as it stands: real nginx, Redis with an append-only file and the worker. What is over the
# limit is accepted, reaches the application later, in order and at the limit's rate, and can be looked up and
# cancelled; a client cannot write into the queue where the example does not say so.

. "$(dirname "$0")/../lib/redis_servers.sh"
http_begin defer "$@"
. "$REPO/tests/lib/proxy.sh"

redis_start main --appendonly yes --appendfsync always
(umask 077 && head -c 32 /dev/urandom | base64 > "$LAB/cluster.key")
cp docs/examples/defer/rules.d/api.yaml "$RULES/"
sed "s|/etc/sluice/rules.d|$RULES|; s|/etc/sluice/|$LAB/|; s|6379|${REDIS_PORT[main]}|" \
	docs/examples/defer/sluice.yaml | config_write "$CONFIG"
sed -i "s|^cluster:|&\n  deadline: 1s|" "$CONFIG"
daemon_run
application_start
nginx_start defer/nginx.conf 8080
ready() { [ "$(metric sluice_store_up)" = 1 ]; }
check_true "the store is up" wait_for 10 ready

cat > "$LAB/job" <<'SH'
#!/bin/bash
curl -fsS -o /dev/null -H 'X-Api-Key: worker' "http://127.0.0.1:8000$1" && date +%s%3N >> "$LAB/done" && echo "$1" >> "$LAB/order"
SH
chmod +x "$LAB/job"
export LAB
REDIS="redis-cli -p ${REDIS_PORT[main]}" QUEUE=api/report "${MORTAL[@]}" \
	bash docs/examples/defer/worker.sh one "$LAB/job" > "$LAB/worker.log" 2>&1 &
started

check_is "the first report passes" "$(through 8080 alice /report/0)" 200
for i in 1 2 3 4 5 6; do
	check_is "report $i is for later" "$(through 8080 alice "/report/$i")" 202
	jq -r .ticket "$LAB/body" >> "$LAB/tickets"
done
check "its position" "$(jq .position "$LAB/body")" 3 6
check_is "another user passes" "$(through 8080 bob /report/7)" 200
last=$(tail -n 1 "$LAB/tickets")
check_is "looked up through nginx" "$(request "http://127.0.0.1:8080/later/$last"; jq -r .state "$LAB/body")" "200waiting"
check_is "cancelled through nginx" "$(request -X DELETE "http://127.0.0.1:8080/later/$last"; jq -r .state "$LAB/body")" "200cancelled"
check_is "nobody's ticket" "$(request "http://127.0.0.1:8080/later/${last:0:40}00000000")" 404

all_done() { [ "$(wc -l < "$LAB/order" 2> /dev/null)" = 5 ]; }
check_true "the worker makes the others" wait_for 10 all_done
check_is "in order, without the one that was cancelled" "$(xargs < "$LAB/order")" \
	"/report/1 /report/2 /report/3 /report/4 /report/5"
# Processes begin late here; tests/cluster/defer.sh has the rate of releases.
check "no more than 2 a second" $(($(tail -n 1 "$LAB/done") - $(head -n 1 "$LAB/done"))) 1800 9000
first=$(head -n 1 "$LAB/tickets")
is_done() { [ "$(request "http://127.0.0.1:8080/later/$first"; jq -r .state "$LAB/body")" = "200done" ]; }
check_true "the first one is done" wait_for 5 is_done

# Without defer=on the header is not read: a client that gets its own through cannot defer anything.
body() { request -H 'X-Sluice-V-report: eve' -H 'X-Sluice-Reference: /evil' "$@"; }
body '/nginx/check?domain=api&d=report' > /dev/null
check_is "without defer=on it is refused" "$(body '/nginx/check?domain=api&d=report'; grep -ci x-sluice-ticket "$LAB/headers")" "4030"
check_is "with it there is a ticket" "$(body '/nginx/check?domain=api&d=report&defer=on'; grep -ci x-sluice-ticket "$LAB/headers")" "4031"
check_is "defer=off is unknown" "$(body '/nginx/check?domain=api&d=report&defer=off')" 500
# A path beyond 256 bytes is no reference.
check_is "a reference that is too long" "$(through 8080 alice /report/0 > /dev/null; through 8080 alice "/report/$(printf 'x%.0s' $(seq 300))")" 429
# gRPC, /json and /forward-auth have no reference: they refuse.
check_is "/json refuses" "$(request -H 'X-Sluice-Reference: r' -d '{"domain":"api","descriptors":[{"entries":[{"key":"report","value":"eve"}]}]}' /json > /dev/null; request -H 'X-Sluice-Reference: r' -d '{"domain":"api","descriptors":[{"entries":[{"key":"report","value":"eve"}]}]}' /json)" 429
lab_done
