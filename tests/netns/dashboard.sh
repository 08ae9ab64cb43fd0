#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# dashboard.sh - docs/examples/grafana.json with a real Prometheus: every query of every panel returns data of a
# daemon under traffic.

. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/parts.sh"
lab_begin dashboard
command -v prometheus > /dev/null || {
	skip "prometheus is not installed"
	lab_done
}
lab_link 0
rules_of_users
head -c 32 /dev/urandom | base64 > "$LAB/secret"
chmod 600 "$LAB/secret"
daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
limits:
  - {name: web, match: {dport: 80}, rate: 10 packets/h, burst: 10}
  - {name: dns, match: {dport: 53}, rate: 10 packets/h, burst: 10, mode: shadow}
http: {listen: [127.0.0.1:8180], rules: $LAB/rules}
cluster: {redis: {urls: ['redis://127.0.0.1:6390']}, node: a, secret_file: $LAB/secret}
YAML
cat > "$LAB/prometheus.yml" <<'YAML'
global: {scrape_interval: 1s}
scrape_configs: [{job_name: sluice, static_configs: [{targets: ["127.0.0.1:9810"]}]}]
YAML
"${IN_S[@]}" prometheus --config.file="$LAB/prometheus.yml" --storage.tsdb.path="$LAB/tsdb" \
	--web.listen-address=127.0.0.1:9090 --log.level=error > "$LAB/prometheus.log" 2>&1 &
started
disown
blast_bg "$LAB/web" --dst $SERVER4 --dport 80 --src 10.1.1.1 --count 1000000 --pps 5000
blast_bg "$LAB/dns" --dst $SERVER4 --dport 53 --src 10.1.1.2 --count 1000000 --pps 5000
for _ in 1 2 3 4 5 6 7; do
	on_server curl -s -o /dev/null -H 'Content-Type: application/json' \
		-d '{"domain": "api", "descriptors": [{"entries": [{"key": "user", "value": "bob"}]}]}' \
		http://127.0.0.1:8180/v1/check
done

# values QUERY: how many series it returns.
values() {
	on_server curl -s --data-urlencode "query=$1" http://127.0.0.1:9090/api/v1/query | jq '.data.result | length'
}
has_values() {
	[ "$(values "$1")" -gt 0 ]
}
while IFS=$'\t' read -r title query; do
	case $query in
	*sluice_peer_lag*) continue ;;		# there is no other node
	esac
	query=${query//'$instance'/.*}
	check_true "$title" wait_for 15 has_values "${query//'$__rate_interval'/10s}"
done < <(jq -r '.panels[] | .title as $title | .targets[] | [$title, .expr] | @tsv' "$REPO/docs/examples/grafana.json")
rate() {
	on_server curl -s --data-urlencode "query=sum(rate(sluice_limit_packets_total{limit=\"$1\",verdict=\"$2\"}[10s]))" \
		http://127.0.0.1:9090/api/v1/query | jq -r '.data.result[0].value[1] // 0'
}
check "what is sent is what it shows" "$(rate web drop)" 100 7000
check_is "the innocent verdict" "$(rate web tag)" 0
blast_stop
daemon_kill TERM
lab_done
