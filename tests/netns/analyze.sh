#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# analyze.sh - is a limit effective: a source just above it, one far above, a candidate in shadow mode beside
# it, a limit that nothing meets; and a rule of the HTTP tier. The numbers are those of the traffic. Limits
# that are too strict, a flash sale, a flood, one bucket for all.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin analyze
lab_link 0
mkdir "$LAB/rules"
cat > "$LAB/rules/api.yaml" <<'YAML'
domain: api
descriptors:
  - {key: user, limits: ['10 requests/h'], algorithm: fixed-window}
  - {key: app, limits: ['10 requests/h'], algorithm: sliding-window}
  - key: plan
    limits: [10 requests/h, {name: laxer, rate: 15 requests/h, mode: shadow}]
    ban: {after: 100 rejections/1h, for: 1h}
  - {key: tenant, limits: ['10 requests/h'], algorithm: fixed-window, detailed_metric: true}
  - key: sale
    detailed_metric: true
    algorithm: token-bucket
    limits:
      - {rate: 2 requests/s, burst: 2}
      - {name: six, rate: 2 requests/s, burst: 6, mode: shadow}
      - {name: three, rate: 2 requests/s, burst: 3, mode: shadow}
  - {key: flooded, limits: [{rate: 2 requests/s, burst: 2}], algorithm: token-bucket, detailed_metric: true}
  - {key: all, value: x, limits: ['10 requests/h'], algorithm: fixed-window, detailed_metric: true}
YAML
utc_room 3600 60
daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
# Looked over at each reading: of a large one a burst may be over before its source is in the sample.
table: {buckets: 4096}
http: {listen: [unix:$LAB/http.sock], rules: $LAB/rules}
limits:
  - {name: web, match: {dport: 80}, rate: 1000 packets/s, burst: 100}
  - {name: stricter, match: {dport: 80}, rate: 500 packets/s, burst: 100, mode: shadow}
  - {name: idle, match: {dport: 81}, rate: 10 packets/s}
  - {name: quiet, match: {dport: 82}, rate: 1000 packets/h, burst: 1000}
  - {name: sale, match: {dport: 86}, rate: 2 packets/s, burst: 2}
  - {name: sale6, match: {dport: 87}, rate: 2 packets/s, burst: 6}
  - {name: sale4, match: {dport: 88}, rate: 2 packets/s, burst: 4}
  - {name: common, match: {dport: 89}, per: [], rate: 2 packets/s, burst: 2}
YAML
of() {
	jq -r --arg name "$1" ".limits[] | select(.name == \$name) | $2" "$LAB/analysis"
}

blast "$LAB/quiet" --dst $SERVER4 --dport 82 --src 10.1.5.1 --count 100 --pps 5000
ask() { # KEY VALUE COUNT
	local url=()

	for _ in $(seq "$3"); do
		url+=(http://x/v1/check)
	done
	on_server curl -s --unix-socket "$LAB/http.sock" "${url[@]}" -d \
		"{\"domain\": \"api\", \"descriptors\": [{\"entries\": [{\"key\": \"$1\", \"value\": \"$2\"}]}]}" \
		> /dev/null
}
ask user bob 25
ask app x 25
ask plan free 25
ask plan paid 3
ask tenant alice 12
ask tenant dave 13
ask tenant mallory 40
ask tenant carol 5
# Everybody at once, once.
for i in $(seq 30); do ask sale "buyer$i" 6; done
ask sale early 2
ask flooded mallory 600
ask flooded ann 2
ask all x 40
# So few packets are all counted: 30 sources with six in a tenth of a second.
for port in 86 87 88 89; do
	blast "$LAB/sale$port" --dst $SERVER4 --dport $port --src 10.1.$port.0/24 --sequential 30 --count 180 --pps 1800
done
blast "$LAB/early" --dst $SERVER4 --dport 86 --src 10.1.5.1 --count 2 --pps 1000
ctl analyze -o json > "$LAB/analysis"
check "a flash sale: refused" "$(of sale .refused)" 90 120
check_is "30 were refused; each sent less than the rate gives; the neighbor is in none" \
	"$(of sale '"\(.refused_lately) \(.within_rate) \(.just_above) \(.far_above)"')" "30 30 0 0"
check_true "the advice is a burst: $(of sale .advice)" grep -q \
	"^30 of 30 .* than the rate gives: it refuses bursts; a token bucket with a burst of [56] would have refused none.$" \
	<(of sale .advice)
check_is "with a burst of 6 none was refused" "$(of sale6 .refused)" 0
check "with 4 two of each, or one after half a second" "$(of sale4 .refused)" 1 60
check_true "one bucket for all: $(of common .advice)" grep -q "one bucket for all.* per: source" <(of common .advice)
# Last: who was refused lately is known for some seconds.
blast_bg "$LAB/a" --dst $SERVER4 --dport 80 --src 10.1.1.1 --count 3000 --pps 1200
blast_bg "$LAB/b" --dst $SERVER4 --dport 80 --src 10.1.2.1 --count 24000 --pps 10000
blast_wait
ctl analyze -o json > "$LAB/analysis"
COLUMNS=80 ctl analyze > "$LAB/text"
ctl stats web -o json > "$LAB/stats"
check_is "refused: as stats has it" "$(of web .refused)" "$(jq '.limits[0].packets.drop' "$LAB/stats")"
check_is "refused and passed: all that were sent" "$(of web '.refused + .passed')" 27000
check_is "two sources were refused lately" "$(of web .refused_lately)" 2
# It sent for less time than is looked at.
check_is "one of them sent less in that time than the rate gives" "$(of web .within_rate)" 1
check_is "one far above" "$(of web .far_above)" 1
check_true "one of them has most of the refusals, and the advice says so: $(of web .advice)" \
	grep -q "One of the sources has 9[0-9]%" <(of web .advice)
check_is "the candidate" "$(of web '.candidates[0].name')" stricter
check_is "would refuse of what web passed: as its own counter" "$(of web '.candidates[0].refused')" \
	"$(of stricter .refused)"
check "half of it or so" "$(of stricter .refused)" 500 "$(of web .passed)"
check_true "a limit that nothing met: $(of idle .advice)" grep -q "No packets have met it" <(of idle .advice)
check_true "one that refused nothing: $(of quiet .advice)" grep -q "none of 100 packets" <(of quiet .advice)
check_is "a rule: passed and refused requests" "$(of api/user '"\(.passed) \(.refused)"')" "10 15"
check_is "those that left 80% used" "$(of api/user .near)" 3
check_is "tenants refused, just above, far above; the neighbor within it is in none" \
	"$(of api/tenant '"\(.refused_lately) \(.just_above) \(.far_above)"')" "3 2 1"
check_is "tenants: passed and refused" "$(of api/tenant '"\(.passed) \(.refused)"')" "35 35"
check_true "two were just above, and the advice says so: $(of api/tenant .advice)" \
	grep -q "^2 of 3 refused users .* 1.5 times what the rate gives in 1h, the most 1.30 times" <(of api/tenant .advice)
check_is "a flash sale of 30 users" "$(of api/sale '"\(.refused_lately) \(.within_rate) \(.burst_for_none)"')" "30 30 6"
check_true "the advice names a burst: $(of api/sale .advice)" grep -q \
	"^30 of 30 .* sent no more in 1m than .* bursts; a token bucket with a burst of 6 would have refused none.$" \
	<(of api/sale .advice)
check_is "as a bucket with that burst beside it" "$(of api/sale '.candidates[] | select(.name == "six") | .refused')" 0
check "and not one with half of it" "$(of api/sale '.candidates[] | select(.name == "three") | .refused')" 30 90
check_true "a flood, of one alone: $(of api/flooded .advice)" grep -q \
	"^1 of 1 refused users sent more than twice what the rate gives in 1m: it is stopping floods" <(of api/flooded .advice)
check_true "one bucket for all: $(of api/all=x .advice)" grep -q "one bucket for all.* a key without a value" \
	<(of api/all=x .advice)
check_is "without values counted it is not known by how much" "$(of api/user .refused_lately)" 0
check_true "and the advice says so: $(of api/app .advice)" grep -q "is not known: detailed_metric" \
	<(of api/app .advice)
check_is "a rule's candidate, also of what the enforced limit refused; the neighbor fits" \
	"$(of api/plan '.candidates[] | "\(.name) \(.passed) \(.refused)"')" "laxer 18 10"
check_is "the enforced limit decides" "$(of api/plan '"\(.passed) \(.refused)"')" "13 15"
check_true "as text" grep -q "^laxer: in shadow mode, would refuse 10 of 28 requests in place of" "$LAB/text"
check_is "metrics have it" "$(metrics | grep -c "^sluice_candidate_decisions_total.*over_limit\"} 10$")" 1
check_is "user show: what it has left" \
	"$(ctl user show api/plan paid -o json | jq -r '.limits[] | "\(.limit) \(.remaining) \(.shadow)"')" \
	"$(printf 'plan 7 null\nlaxer 12 true')"
check_is "as text it fits 80 columns, the sentences apart" \
	"$(awk '/^$/ { exit } length > 80' "$LAB/text" | wc -l)" 0
check_true "with the candidate's line" grep -q "^stricter: in shadow mode beside it" "$LAB/text"
# A limit that tags refuses nothing: what is above it passes.
ctl limit set quiet action=tag tag.dscp=cs1 > /dev/null
blast "$LAB/quiet" --dst $SERVER4 --dport 82 --src 10.1.5.2 --count 5000 --pps 50000
ctl analyze quiet -o json > "$LAB/analysis"
check_is "one that tags has refused none, as a share too" "$(of quiet '.refused == 0 and .refused_share == 0')" true
check "tagged" "$(of quiet .tagged)" 1000 5000
check_true "and its advice: $(of quiet .advice)" grep -q tagged <(of quiet .advice)
check_is "as text" "$(ctl analyze quiet | awk 'NR <= 2 { printf "%s %s ", $2, $3 }')" "REFUSED TAGGED - $(ctl analyze quiet |
	awk 'NR == 2 { print $3 }') "
passed_and_dropped() {
	ctl stats --sort LIMIT -o wide | awk '$1 == "LIMIT" && !n++ { for (i in h) delete h[i]
	for (i = 1; i <= NF; i++) h[i] = $i } $1 == "quiet" { print $(NF - 4), $(NF - 2) }'
}
# Rates are of the last second.
without_rates() { [ "$(passed_and_dropped)" = "5,100 0" ]; }
wait_for 5 without_rates
check_is "stats: passed are all, dropped none" "$(passed_and_dropped)" "5,100 0"
check_is "one of them" "$(ctl analyze quiet -o json | jq '.limits | length')" 1
ctl analyze nix > "$LAB/out" 2>&1
check_true "an unknown one is named" grep -q "there is no limit or rule 'nix'" "$LAB/out"
daemon_kill TERM
lab_done
