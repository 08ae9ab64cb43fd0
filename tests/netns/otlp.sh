#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# otlp.sh - docs/examples/otel/sluice-otlp: what a receiver of OTLP gets is what /metrics has, judged by the messages
# of OpenTelemetry's own npm package (tests/js/otlp_receiver.js). Debian has no collector, and its Prometheus
# is built without the receiver.

. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/parts.sh"
lab_begin otlp
lab_link 0
rules_of_users
daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
limits:
  - {name: web, match: {dport: 80}, rate: 10 packets/h, burst: 10}
http: {listen: [127.0.0.1:8180], rules: $LAB/rules}
YAML
TO=http://127.0.0.1:4318/v1/metrics
receiver() {
	"${IN_S[@]}" node "$REPO/tests/js/otlp_receiver.js" 4318 "$LAB/got" > "$LAB/receiver.log" 2>&1 &
	started
	RECEIVER=$!
	disown
	wait_for 10 on_server bash -c 'exec 3<> /dev/tcp/127.0.0.1/4318' 2> "$LAB/err"
}
otlp() { # URL [OPTIONS]
	on_server python3 "$REPO/docs/examples/otel/sluice-otlp" --metrics http://127.0.0.1:9810/metrics --to "$@"
}
# point NAME LABEL=VALUE...: its value in the last request.
point() {
	local labels

	labels=$(printf '%s\n' "${@:2}" | jq -Rn '[inputs | select(. != "") | split("=") | {key: .[0], value: {stringValue: .[1]}}]')
	tail -n 1 "$LAB/got" | jq -r --arg name "$1" --argjson labels "$labels" '
		[.resourceMetrics[0].scopeMetrics[0].metrics[] | select(.name == $name) | (.sum // .gauge).dataPoints[]
			| select(((.attributes // []) | sort_by(.key)) == ($labels | sort_by(.key))) | .asInt // .asDouble][0]'
}

receiver
blast "$LAB/sent" --dst $SERVER4 --src 10.1.1.1 --count 500 --pps 20000 --dport 80
on_server curl -s -o /dev/null -H 'Content-Type: application/json' \
	-d '{"domain":"api","descriptors":[{"entries":[{"key":"user","value":"bob"}]}]}' http://127.0.0.1:8180/v1/check
otlp $TO --once > "$LAB/out" 2>&1
check_is "it is taken" "$?, $(cat "$LAB/out")" "0, "
check_is "drops" "$(point sluice_limit_packets limit=web verdict=drop)" 490
check_is "passes" "$(point sluice_limit_packets limit=web verdict=pass)" 10
check_is "a gauge" "$(point sluice_rules_generation)" "$(metric sluice_rules_generation)"
check_is "decisions" "$(point sluice_decisions domain=api rule=user verdict=ok)" 1
# Each series of /metrics is a point, a histogram is one.
on_server curl -s http://127.0.0.1:9810/metrics > "$LAB/text"
check_is "as many points as series" "$(tail -n 1 "$LAB/got" | jq '[.resourceMetrics[0].scopeMetrics[0].metrics[] |
	(.sum // .gauge // {dataPoints: []}).dataPoints[]] | length')" \
	"$(grep -v '^#' "$LAB/text" | grep -cvE '_(bucket|sum|count)[ {]')"
histogram=$(awk '$1 == "#" && $2 == "TYPE" && $4 == "histogram" { print $3; exit }' "$LAB/text")
check_is "the buckets of a histogram sum up to its count" "$(tail -n 1 "$LAB/got" | jq --arg name "$histogram" '
	.resourceMetrics[0].scopeMetrics[0].metrics[] | select(.name == $name) | .histogram.dataPoints[0] |
	(.bucketCounts | map(tonumber) | add) == ((.count // "0") | tonumber) and
	(.bucketCounts | length) == (.explicitBounds | length) + 1')" true
check_is "counters are cumulative and only rise" "$(tail -n 1 "$LAB/got" | jq '[.resourceMetrics[0].scopeMetrics[0].metrics[] |
	select(.sum) | .sum | "\(.aggregationTemporality) \(.isMonotonic)"] | unique | join(",")')" '"2 true"'

# ---- again and again; a receiver that is away for a while loses nothing
"${IN_S[@]}" python3 "$REPO/docs/examples/otel/sluice-otlp" --metrics http://127.0.0.1:9810/metrics --to $TO --every 0.2 \
	> "$LAB/log" 2>&1 &
started
disown
sends() { [ "$(wc -l < "$LAB/got")" -gt "$1" ]; }
check_true "each interval" wait_for 10 sends 3
check_is "a series begins once" "$(tail -n 2 "$LAB/got" | jq -r '.resourceMetrics[0].scopeMetrics[0].metrics[] |
	select(.name == "sluice_limit_packets") | .sum.dataPoints[0].startTimeUnixNano' | uniq | wc -l)" 1
kill "$RECEIVER"
check_true "a failure is reported" wait_for 10 grep -q "^$TO: " "$LAB/log"
blast "$LAB/sent" --dst $SERVER4 --src 10.1.1.1 --count 100 --pps 20000 --dport 80
receiver
check_true "and its end" wait_for 10 grep -q 'sending again' "$LAB/log"
is_590() { [ "$(point sluice_limit_packets limit=web verdict=drop)" = 590 ]; }
check_true "nothing was lost" wait_for 5 is_590
check_is "one line for each" "$(wc -l < "$LAB/log")" 2

# ---- what is refused
otlp http://127.0.0.1:4318/other --once > "$LAB/out" 2>&1
check_is "a receiver that refuses" "$?" 1
check_true "is named with its status" grep -q 'status 400' "$LAB/out"
for to in 10.1.0.1:4318 localhost.evil.example 127.0.0.1.evil.example 127.0.0.1@evil.example '[::1]evil.example'; do
	otlp "http://$to/v1/metrics" --header-file "$LAB/rules/api.yaml" --once > "$LAB/out" 2>&1
	check_is "no token in plain text over a network: $to" $? 2
done
lab_done
