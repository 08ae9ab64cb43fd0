#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# polls.sh - load signals that the daemon polls, from a real Prometheus and a JSON document: values,
# what is no value, endpoints that hang or are gone. Meanwhile requests are decided and commands
# answered; a value that is no longer confirmed expires, and the limit returns to its rate.

. "$(dirname "$0")/../lib/http.sh"
http_begin polls "$@"

BAD="not-json text other negative nan infinite deep empty large hang trickle close garbage head moved"
POLLED=http://127.0.0.1:8000

http_rules api <<'YAML'
  - key: user
    limits: [1000 requests/h]
    throttle: {elastic: 100%, floor: 10%, while: {load_signal: {queue: 50%}}}
  - {key: other, limits: [1000 requests/h],
     throttle: {elastic: 300%, while: {load_signal: {from-json: 50%}}}}
YAML

HTTP_TOP="load_signals:
  - {name: queue, prometheus: 'http://127.0.0.1:9090/', query: max(queue_used), full: 500, every: 500ms}
  - {name: many, prometheus: 'http://127.0.0.1:9090', query: queue_of, every: 500ms}
  - {name: wrong, prometheus: 'http://127.0.0.1:9090', query: 'queue_of{', every: 500ms}
  - {name: scalar, prometheus: 'http://127.0.0.1:9090', query: scalar(queue_used) / 1e3, every: 500ms}
  - {name: from-json, json: '$POLLED/json?x=1', path: pools.1.busy, full: 500, every: 500ms}
  - {name: nowhere, json: 'http://127.0.0.1:1/', path: a, every: 500ms}
  - {name: no-name, json: 'http://no.such.name.invalid/', path: a, every: 500ms, timeout: 1s}
  - {name: no-tls, json: 'https://127.0.0.1:8000/json', path: pools.1.busy, every: 500ms}"
for bad in $BAD; do
	HTTP_TOP+="
  - {name: $bad, json: '$POLLED/$bad', path: queue.used, every: 500ms, timeout: 1s}"
done

echo 100 > "$LAB/number"
python3 "$REPO/tests/http/polled.py" 8000 "$LAB/number" > "$LAB/polled.log" 2>&1 &
polled=$!
started
cat > "$LAB/prometheus.yml" <<YAML
global: {scrape_interval: 500ms, scrape_timeout: 400ms}
scrape_configs:
  - {job_name: queue, static_configs: [{targets: ['127.0.0.1:8000']}]}
YAML
prometheus_run() {
	prometheus --config.file="$LAB/prometheus.yml" --storage.tsdb.path="$LAB/tsdb" \
		--web.listen-address=127.0.0.1:9090 --log.level=error > "$LAB/prometheus.log" 2>&1 &
	prometheus=$!
	started
}
prometheus_run
http_daemon < /dev/null

# of NAME MEMBER
of() {
	ctl -o json load-signal list | jq -r ".load_signals[] | select(.name == \"$1\") | .$2"
}
is() {
	awk -v v="$(of "$1" value)" -v l="$2" -v m="$3" 'BEGIN { exit !(v != "null" && v >= l && v <= m) }'
}
scale_is() {
	awk -v v="$(metrics | awk '/^sluice_http_elastic_scale_ratio.*rule="'"$1"'"/ { print $2 }')" \
		-v l="$2" -v m="$3" 'BEGIN { exit !(v != "" && v >= l && v <= m) }'
}

check_true "a value of Prometheus" wait_for 30 is queue 0.2 0.2
check_true "a scalar" wait_for 10 is scalar 0.1 0.1
check_true "a value of a JSON document" wait_for 10 is from-json 0.2 0.2
check_true "nothing is over: up to the ceiling" wait_for 20 scale_is other 3 3
check_is "no signal can be set that is polled" "$(ctl load-signal set queue 0.5 2> /dev/null; echo $?)" 1

# ---------------------------------------------------------------- no values

# Failures are counted, with a reason, and the signal is not set.
fails() {
	[ "$(of "$1" failures)" -ge 2 ] && [ "$(of "$1" value)" = null ] && [ "$(of "$1" polls)" -ge 2 ] &&
		of "$1" error | grep -q "$2"
}
while read -r name reason; do
	check_true "$name: $reason" wait_for 20 fails "$name" "$reason"
done <<'ROWS'
many the query's result has 2 values
wrong status 400
nowhere no response
no-name within the timeout\|no response
no-tls no response
not-json not JSON
text no number at queue.used
other no number at queue.used
negative the value is -1
nan the value is
infinite the value is inf
deep not JSON
empty not JSON
large no response
hang within the timeout
trickle within the timeout
close no response
garbage no response
head no response
moved status 302
ROWS
check_true "status names them" grep -q '^load signal   not-json: [0-9]* of [0-9]* polls failed, the last: the response' \
	<(ctl status)
check_is "and only them" "$(ctl status | grep -c '^load signal   \(queue\|from-json\|scalar\):')" 0
check "the metric counts them" "$(metrics | awk '/^sluice_load_signal_polls_total.signal="hang",result="failed"/ { print $2 }')" \
	2 1000
check "the longest of 50 requests, in seconds" "$(for _ in $(seq 50); do
	curl -s -o /dev/null -w '%{time_total}\n' -d "$(check_body api user=bob)" "$URL/v1/check"
done | sort -n | tail -1)" 0 0.5

# ---------------------------------------------------------------- follows the values

echo 400 > "$LAB/number"
check_true "Prometheus: over its threshold" wait_for 10 is queue 0.8 0.8
check_true "the limit shrinks" wait_for 15 scale_is user 0.1 0.7
check_true "the other one is at its rate" wait_for 5 scale_is other 1 1
stand_still $prometheus
check_true "a Prometheus that stands still: the value expires" wait_for 10 fails queue 'within the timeout'
check_true "and the limit returns to its rate" wait_for 15 scale_is user 1 1
kill -CONT $prometheus
check_true "it is used again" wait_for 15 is queue 0.8 0.8
kill $polled
check_true "the document is gone: its value expires" wait_for 10 fails from-json 'no response'

# ---------------------------------------------------------------- live

sed -i "s|, path: pools.1.busy, full: 500|&0|; /name: nowhere/d" "$CONFIG"
ctl reload > /dev/null
python3 "$REPO/tests/http/polled.py" 8000 "$LAB/number" >> "$LAB/polled.log" 2>&1 &
started
check_true "a changed definition holds" wait_for 10 is from-json 0.08 0.08
check_is "a signal that is gone is not listed" "$(of nowhere name)" ""
check_true "one that stayed continued" test "$(of hang failures)" -ge 3
lab_done
