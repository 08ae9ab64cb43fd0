#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# load_signal.sh - docs/examples/load-signal.service: its loop, as it stands, sets load signals from a
# real Prometheus. Results that are not one number set none; without Prometheus a value expires, and
# the limit returns to its rate.

. "$(dirname "$0")/../lib/http.sh"
http_begin load_signal "$@"
command -v prometheus > /dev/null || {
	skip "prometheus is not installed"
	lab_done
}

http_rules api <<'YAML'
  - key: user
    limits: [1000 requests/h]
    throttle: {elastic: 100%, floor: 10%, while: {load_signal: {queue: 50%}}}
  - {key: many, limits: [1000 requests/h], throttle: {elastic: 200%, while: {load_signal: many}}}
  - {key: nan, limits: [1000 requests/h], throttle: {elastic: 200%, while: {load_signal: nan}}}
YAML
UNIT=$REPO/docs/examples/load-signal.service

queue_used() {
	echo "queue_used $1" > "$LAB/www/metrics.txt"
}
mkdir "$LAB/www"
queue_used 100
python3 -m http.server --bind 127.0.0.1 --directory "$LAB/www" 8000 > "$LAB/www.log" 2>&1 &
started
cat > "$LAB/prometheus.yml" <<YAML
global: {scrape_interval: 500ms, scrape_timeout: 400ms}
scrape_configs:
  - {job_name: queue, metrics_path: /metrics.txt, static_configs: [{targets: ['127.0.0.1:8000']}]}
YAML
prometheus --config.file="$LAB/prometheus.yml" --storage.tsdb.path="$LAB/tsdb" \
	--web.listen-address=127.0.0.1:9090 --log.level=error > "$LAB/prometheus.log" 2>&1 &
prometheus=$!
started
http_daemon < /dev/null

# What systemd runs for ExecStart: lines joined, $$ for $, the text in quotes as one argument of sh.
loop=$(sed -n '/^ExecStart=/,/^done/{s/\\$//;p}' "$UNIT" | tr -d '\n' | sed "s/[$][$]/$/g; s/^ExecStart=.*sh -c '//; s/'$//")
mkdir "$LAB/bin"
printf '#!/bin/sh\nexec "%s" -s "%s" "$@"\n' "$BIN/sluicectl" "$SOCKET" > "$LAB/bin/sluicectl"
chmod +x "$LAB/bin/sluicectl"
# loop_of NAME QUERY
loop_of() {
	env PATH="$LAB/bin:$PATH" NAME="$1" URL=http://127.0.0.1:9090 QUERY="$2" FULL=500 \
		/bin/sh -c "$loop" > "$LAB/loop-$1.log" 2>&1 &
	started
}
loop_of queue 'max(queue_used)'
loop_of many '{__name__=~"queue_used|up"}'
loop_of nan '0 / (max(queue_used) * 0)'

# is NAME LEAST MOST
is() {
	ctl -o json load-signal list | jq -e --arg name "$1" ".load_signals[] | select(.name == \$name) |
		.value != null and .value >= $2 and .value <= $3" > /dev/null
}
is_unset() {
	ctl -o json load-signal list | jq -e --arg name "$1" \
		'.load_signals[] | select(.name == $name) | .value == null' > /dev/null
}
scale_is() {
	awk -v v="$(metrics | awk '/^sluice_http_elastic_scale_ratio.*rule="user"/ { print $2 }')" \
		-v l="$1" -v m="$2" 'BEGIN { exit !(v != "" && v >= l && v <= m) }'
}

check_true "Prometheus' value is the load signal" wait_for 30 is queue 0.2 0.2
check_true "one that is no number is refused" wait_for 20 grep -q . "$LAB/loop-nan.log"
check_true "and sets nothing" is_unset nan
check_true "nor does a result of two" is_unset many
queue_used 400
check_true "over the threshold" wait_for 20 is queue 0.8 0.8
check_true "the limit shrinks" wait_for 20 scale_is 0.1 0.7
stand_still $prometheus
check_true "a Prometheus that stands still: the value expires" wait_for 30 is_unset queue
check_true "and the limit returns to its rate" wait_for 20 scale_is 1 1
kill -CONT $prometheus
check_true "it is used again" wait_for 20 is queue 0.8 0.8
lab_done
