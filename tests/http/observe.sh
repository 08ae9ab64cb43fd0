#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What is published of decisions: the decision log (sampled, hashed, rotated), values in metrics, the
# scale of an elastic limit that follows a load signal; and that values stay hidden from all but the
# control socket.

. "$(dirname "$0")/../lib/http.sh"
http_begin observe "$@"

LOG=$LAB/decisions.json
http_rules api <<'YAML'
  - key: user
    rate_limit: {unit: day, requests_per_unit: 2}
  - key: seat
    limits: [2 requests/d, {name: small, rate: 1 requests/d, mode: shadow}]
  - {key: soft, limits: [10 requests/d], throttle: {soft: 30%}}
  - key: path
    rate_limit: {unit: day, requests_per_unit: 10}
    throttle: {elastic: 300%, while: {load_signal: 50%}}
YAML
sed -i 's/while: {load_signal: 50%}/while: {load_signal: api-load}/' "$RULES/api.yaml"
METRICS_LISTEN="127.0.0.1:9810, max_values: 10, token_file: $LAB/token"
echo 0123456789abcdef-lab > "$LAB/token"
http_daemon <<YAML
  workers: 1
  decision_log: {file: $LOG}
YAML

check_is "2 of 4 pass" "$(http_passed 4 api user=bob --source '"192.0.2.7"')" 2
http_check api 'user=bad "bytes" é' > /dev/null
lines() { [ "$(wc -l < "$LOG")" = "$1" ]; }
check_true "each decision is a line" wait_for 5 lines 5
all_json() { jq -es . "$LOG" > "$LAB/parsed"; }
check_true "each line is JSON" all_json
check_is "it has the code" "$(jq -rs '[.[].code] | join(" ")' "$LOG")" "OK OK OVER_LIMIT OVER_LIMIT OK"
check_is "the frontend" "$(jq -rs '.[0].api' "$LOG")" v1_check
check_is "the rule" "$(jq -rs '.[0].statuses[0].rule' "$LOG")" api/user
check_is "one value has one hash" "$(jq -rs '[.[:4][].statuses[0].entries[0][1]] | unique | length' "$LOG")" 1
check_is "which commands show" "hash:$(jq -rs '.[0].statuses[0].entries[0][1]' "$LOG")" \
	"$(ctl -o json user show api/user bob | jq -r .hash)"
check_is "the log does not contain the value" "$(grep -cE 'bob|192\.0\.2\.7|bytes' "$LOG")" 0
check_is "a candidate beside a limit does not decide" "$(http_passed 3 api seat=1)" 2
check_true "each of these is a line" wait_for 5 lines 8
check_is "with what the candidate would have done" \
	"$(jq -rs '[.[5:][].statuses[0] | .code, (.candidates[] | .limit, .code)] | join(" ")' "$LOG")" \
	"OK small OK OK small OVER_LIMIT OVER_LIMIT small OVER_LIMIT"

# Values that a terminal would obey (CSI as U+009B, an override of the direction), and that look alike.
for value in $'a\xc2\x9b31m\xe2\x80\xaeb' $'esc\x1b' 'esc\x1b'; do
	http_passed 3 api "user=$value"
done > /dev/null
for list in "user top" "user list" "events list" "-o json user top" "-o json events list"; do
	# shellcheck disable=SC2086
	ctl $list > "$LAB/shown"
	check_is "$list: nothing that a terminal obeys" \
		"$(tr -d '\n' < "$LAB/shown" | LC_ALL=C grep -c $'[\x01-\x1f\x7f]\|\xc2[\x80-\x9f]\|\xe2\x80\xae')" 0
	check_true "$list: the value" grep -qF 'a\u009b31m\u202eb' "$LAB/shown"
done
check_is "an escape, and its four characters typed" \
	"$(ctl user top | grep -oE 'esc[^ ]*' | sort | tr '\n' ' ')" 'esc\\x1b esc\x1b '

check_true "each of these is a line, too" wait_for 5 lines 17
mv "$LOG" "$LOG.1"
http_check api user=eve > /dev/null
rotated() { lines 1; }
check_true "a log file that is moved away is created again" wait_for 5 rotated

sed -i 's/decision_log: .*/decision_log: {file: '"${LOG//\//\\/}"', sample: 10, values: plain}/' "$CONFIG"
check_true "reload" ctl reload
rm "$LOG"
http_passed 50 api 'user=plain "bytes" é' > /dev/null
sampled() { lines 5; }
check_true "one of ten is logged" wait_for 5 sampled
check_true "with plain values it is JSON, too" all_json
check_is "a value is logged unchanged" "$(grep -c 'plain .u0022bytes.u0022 .u00c3.u00a9' "$LOG")" 5

jq -nc '{domain: "api", descriptors: [range(32) | {entries: [{key: "user", value: ("\u0001" * 250)}]}]}' > "$LAB/long"
for _ in {1..10}; do request -d "@$LAB/long" /v1/check; done > /dev/null
long() { lines 6; }
check_true "a client's values do not keep a decision out" wait_for 5 long
check_is "they are hashed in a line that would be too long" \
	"$(tail -n 1 "$LOG" | jq -c '[(.statuses | length), (.statuses[31].entries[0][1] | test("^[0-9a-f]{16}$"))]')" '[32,true]'

# ---------------------------------------------------------------- values in metrics

http_rules named <<'YAML'
  - {key: plan, detailed_metric: true, values: plain, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: secret, value_to_metric: true, rate_limit: {unit: day, requests_per_unit: 2}}
YAML
plan() { http_check named plan=free --peek true && [ "$(jq .statuses[0].limit "$LAB/body")" = 2 ]; }
check_true "a rule with detailed_metric" wait_for 5 plan
http_passed 3 named plan=free > /dev/null
http_check named 'plan=a"b\c é' > /dev/null
check_is "its values are a label" "$(metric sluice_decisions_total rule=plan value=free verdict=over_limit)" 1
http_check named secret=my-api-key > /dev/null
check_is "values that are not plain are hashes there" \
	"$(metrics | grep -oE 'rule="secret",verdict="ok",value="hash:[0-9a-f]{16}"' | wc -l)" 1
check_is "and nowhere clear" "$(metrics | grep -c my-api-key)" 0
for i in {1..12}; do http_check named "plan=number-$i"; done > /dev/null
check "their number is bounded" "$(metrics | grep -c '^sluice_decisions_total{.*value=')" 8 16
check_is "decisions of other values are counted, too" "$(metric sluice_decisions_total rule=plan verdict=ok)" 15
metrics | sed '1,/^$/d' > "$LAB/metrics"
check_true "promtool finds nothing" promtool check metrics < "$LAB/metrics"
# Each page that is built has other seconds of CPU. A page takes a fifth of the main thread at most, so that most
# of many scrapes get the page of the one before.
scrapes() {
	"${IN_S[@]}" bash -c 'exec 3<> /dev/tcp/127.0.0.1/9810
		{ printf "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n%.0s" {1..199}
		printf "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"; } >&3
		timeout 20 cat <&3' | grep -a ^process_cpu_seconds_total > "$LAB/scrapes"
	wc -l < "$LAB/scrapes"
}
check_is "200 scrapes in one write are answered" "$(scrapes)" 200
check "by fewer pages" "$(sort -u "$LAB/scrapes" | wc -l)" 1 100

# ---------------------------------------------------------------- values are not shown to others

http_rules keys <<'YAML'
  - {key: token, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: team, values: plain, rate_limit: {unit: day, requests_per_unit: 2}}
YAML
token_rule() { http_check keys token=peek --peek true && [ "$(jq .statuses[0].limit "$LAB/body")" = 2 ]; }
check_true "rules of tokens" wait_for 5 token_rule
http_passed 4 keys token=sk-secret-1 > /dev/null
http_passed 4 keys team=open-team-1 > /dev/null
page() { curl -s -H 'X-Sluice-Token: 0123456789abcdef-lab' http://127.0.0.1:9810/status.json > "$LAB/page" && grep -q open-team-1 "$LAB/page"; }
check_true "the status page has a value that is plain" wait_for 5 page
hash=$(ctl -o json user show keys/token sk-secret-1 | jq -r .hash)
check_true "and of the other its hash" grep -q "$hash" "$LAB/page"
check_is "the socket has the value: by its hash" "$(ctl -o json user show keys/token "$hash" | jq -r .value)" sk-secret-1
check_true "in lists, too" grep -q sk-secret-1 <(ctl user top)
check_true "and in events" grep -q sk-secret-1 <(ctl events list)
check_true "limits of its own, by the hash" ctl user set keys/token "$hash" rate='5 requests/d'
check_is "are those of the value" "$(http_passed 9 keys token=sk-secret-1)" 3
check_true "and are lifted" ctl user unset keys/token "$hash"
check_is "a hash that nobody has" "$(ctl user show keys/token hash:0123456789abcdef 2>&1 | grep -c 'accepted: the value itself')" 1
ctl user set keys/token sk-secret-1 rate=none > "$LAB/out" 2>&1
page
daemon_kill TERM
daemon_run
check_is "the history has it by its value" "$(ctl -o json why keys/token sk-secret-1 | jq -r '.events[0].value')" "$hash"
check_is "and by its hash" "$(ctl -o json why keys/token "$hash" | jq '.events | length')" 1
check_is "which is the same after a restart" "$(ctl -o json user show keys/token sk-secret-1 | jq -r .hash)" "$hash"
check_is "what is plain, by its value" "$(ctl -o json why keys/team open-team-1 | jq -r '.events[0].value')" open-team-1
check_is "nothing but root's live changes has the value" \
	"$(grep -rlaF sk-secret-1 "$LAB/state" "$LAB/daemon.log" "$LAB/page" | grep -v 'live.json\|/history/')" ""
check_is "and those are root's" "$(find "$LAB/state" \( -name live.json -o -path '*/history/*' -o -name values.key \) -type f -perm /077)" ""

# ---------------------------------------------------------------- what a value lost lately

http_rules lossy <<'YAML'
  - {key: user, limits: [{rate: 3 requests/d, name: daily}, {rate: 1000 requests/d, name: wide}]}
YAML
lossy_rule() { http_check lossy user=peek --peek true && [ "$(jq .statuses[0].limit "$LAB/body")" = 3 ]; }
check_true "a rule to lose by" wait_for 5 lossy_rule
http_passed 20 lossy user=bob > /dev/null
http_check lossy user=al > /dev/null
lately() { ctl -o json user show lossy/user "$1" | jq -c '.lately | [.refused, .passed, .estimate, (.by // [] | map(.limit) | join(" "))]'; }
check_is "user show: 85 % of its requests, and the limit" "$(lately bob)" '[17,3,false,"daily"]'
check_is "... of a neighbor" "$(lately al) $(lately eve)" '[0,1,false,""] [0,0,false,""]'
check_true "as text" grep -qE '^lately   85\.0% lost in the last [0-9]+ s: 17 refused, 3 passed, by limit daily$' <(ctl user show lossy/user bob)
check_true "of the neighbor" grep -qE '^lately   nothing lost: 1 passed in the last [0-9]+ s$' <(ctl user show lossy/user al)

# ---------------------------------------------------------------- elastic

signal() {
	curl -s -o /dev/null -X PUT -H 'X-Sluice-Token: 0123456789abcdef-lab' -d "{\"value\": $1, \"for\": \"60s\"}" http://127.0.0.1:9810/v1/load-signals/api-load
}
limit_is() { http_check api path=/peek --peek true && [ "$(jq .statuses[0].limit "$LAB/body")" = "$1" ]; }
check_is "without a load signal the plain limit holds" "$(http_passed 15 api path=/a)" 10
signal 0.1
check_true "while the signal is low, the limit grows to its ceiling" wait_for 12 limit_is 30
check_is "metrics have the scale" "$(metric sluice_http_elastic_scale_ratio rule=path)" 3
check_is "the ceiling passes" "$(http_passed 40 api path=/b)" 30
signal 1
check_true "it falls when the signal is high" wait_for 5 limit_is 10
check_is "then 10 hold again" "$(http_passed 15 api path=/c)" 10

http_passed 15 api soft=bob > /dev/null
check_is "of a soft limit what is above it has a verdict of its own" "$(metric sluice_decisions_total rule=soft verdict=soft)" 3
# ---------------------------------------------------------------- out of descriptors

soft=$(awk '/^Max open files/ { print $4 }' "/proc/$DAEMON_PID/limits")
prlimit --pid "$DAEMON_PID" --nofile="$(ls "/proc/$DAEMON_PID/fd" | wc -l):"
for _ in 1 2 3; do
	"${IN_S[@]}" bash -c 'exec 3<> /dev/tcp/127.0.0.1/9810; sleep 2' &
	started
done
sleep 0.3
cpu() { awk '{ print $14 + $15 }' "/proc/$DAEMON_PID/task/$DAEMON_PID/stat"; }
before=$(cpu)
sleep 1
check "with no descriptor left the main loop waits: ticks of CPU in a second" $(($(cpu) - before)) 0 40
prlimit --pid "$DAEMON_PID" --nofile="$soft:"
check_true "and then accepts again" wait_for 5 metrics
lab_done
