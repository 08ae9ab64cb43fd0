#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# statsd.sh - statsd: what StatsD itself (of npm) receives is what happened, in lines of the protocol; the
# number of series stays after floods of sources and users.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin statsd
lab_link 0
STATSD_RULES=$LAB/rules
mkdir "$STATSD_RULES"
cat > "$STATSD_RULES/api.yaml" <<'YAML'
domain: api
descriptors:
  - {key: user, rate_limit: {unit: hour, requests_per_unit: 5}}
YAML

# Every line of a datagram as a line: its number of the datagram's size, then the line. Each datagram goes on to StatsD itself.
cat > "$LAB/server.py" <<'PY'
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
server.bind(("127.0.0.1", 8125))
with open(sys.argv[1], "w", buffering=1) as out:
    while True:
        data = server.recv(65536)
        server.sendto(data, ("127.0.0.1", 8126))
        for line in data.decode().split("\n"):
            out.write(f"{len(data)}\t{line}\n")
PY
"${IN_S[@]}" python3 "$LAB/server.py" "$LAB/received" &
started
disown
wait_for 5 test -e "$LAB/received"
cat > "$LAB/statsd.js" <<JS
{ port: 8126, address: "127.0.0.1", mgmt_port: 8127, mgmt_address: "127.0.0.1", flushInterval: 500,
  backends: ["$REPO/tests/js/statsd_sums.js"], sums_file: "$LAB/sums" }
JS
"${IN_S[@]}" node "$REPO/build/js/node_modules/statsd/stats.js" "$LAB/statsd.js" > "$LAB/statsd.log" 2>&1 &
started
disown
wait_for 10 test -s "$LAB/sums"
# by_statsd COUNTER: its sum by StatsD.
by_statsd() {
	jq -s --arg name "$1" 'map(.[$name] // 0) | add' "$LAB/sums"
}
is_by_statsd() {
	[ "$(by_statsd "$1")" = "$2" ]
}

daemon_start <<YAML
statsd: {address: 127.0.0.1:8125, interval: 1s}
interfaces: [{name: s0, mode: native}]
limits:
  - {name: web, match: {dport: 80}, rate: 10 packets/h, burst: 10}
http: {listen: [127.0.0.1:8180], rules: $STATSD_RULES}
YAML

# sum NAME TAGS: of all lines with that name and tags.
sum() {
	awk -F'\t' -v name="$1" -v tags="$2" '{
		n = split($2, part, "|"); split(part[1], value, ":")
		if (value[1] == name && (n < 3 || part[3] == "#" tags)) sum += value[2] }
		END { print sum + 0 }' "$LAB/received"
}
series() {
	cut -f2 "$LAB/received" | sed 's/:[^|]*|/|/' | sort -u | wc -l
}
# users FROM TO: a request of each.
users() {
	local urls=() i

	for ((i = $1; i <= $2; i++)); do
		urls+=(--next -s -o /dev/null -H 'Content-Type: application/json'
			-d "{\"domain\":\"api\",\"descriptors\":[{\"entries\":[{\"key\":\"user\",\"value\":\"u$i\"}]}]}"
			http://127.0.0.1:8180/v1/check)
	done
	on_server curl "${urls[@]:1}"
}
# domains COUNT: a request of each invented domain, by one connection.
domains() {
	on_server python3 - "$1" > "$LAB/out" <<'PY'
import http.client, json, sys
c = http.client.HTTPConnection("127.0.0.1", 8180)
for i in range(int(sys.argv[1])):
    c.request("POST", "/v1/check", json.dumps({"domain": "invented%d.example" % i, "descriptors": [
        {"entries": [{"key": "user", "value": "bob"}]}]}), {"Content-Type": "application/json"})
    c.getresponse().read()
PY
}
is_sum() {
	[ "$(sum "$1" "$2")" = "$3" ]
}

# The first scrape is what is compared with.
wait_for 5 grep -q rules_generation "$LAB/received"
blast "$LAB/sent" --dst $SERVER4 --src 10.1.1.1 --count 500 --pps 20000 --dport 80
users 1 3
check_true "the drops" wait_for 5 is_sum sluice.limit_packets limit:web,verdict:drop 490
check_true "the passes" wait_for 5 is_sum sluice.limit_packets limit:web,verdict:pass 10
check_true "the decisions" wait_for 5 is_sum sluice.decisions domain:api,rule:user,verdict:ok 3
check_true "StatsD has the same drops" wait_for 5 is_by_statsd 'sluice.limit_packets;limit=web;verdict=drop' 490
check_is "the same passes, decisions, and no line that it does not know" \
	"$(by_statsd 'sluice.limit_packets;limit=web;verdict=pass') $(by_statsd 'sluice.decisions;domain=api;rule=user;verdict=ok') $(by_statsd statsd.bad_lines_seen)" \
	"10 3 0"
check_is "each line is one of the protocol" "$(cut -f2 "$LAB/received" |
	grep -cvE '^[A-Za-z0-9_.-]+:-?[0-9][0-9.e+-]*\|[cg](\|#[^|]+)?$')" 0
check "no datagram is larger than a frame holds" "$(cut -f1 "$LAB/received" | sort -n | tail -n 1)" 100 1432
check_is "a counter that stands still is not sent again" "$(sum sluice.limit_packets limit:web,verdict:drop)" 490

# ---- floods of sources, of users and of domains: not one series more
before=$(series)
scraped=$(metrics | grep -cv '^#')
domains 3000
check "series on /metrics after 3000 domains" "$(metrics | grep -cv '^#')" 1 $((scraped + 2))
check_is "which are counted, as requests without a rule" "$(metric sluice_decisions_total domain= verdict=no_rule)" 3000
blast "$LAB/sent" --dst $SERVER4 --src 10.1.0.0/16 --count 20000 --pps 100000 --dport 80
users 100 400
check_true "they were counted" wait_for 5 is_sum sluice.decisions domain:api,rule:user,verdict:ok 304
count=$(metrics | grep -cv '^#')
sleep 1.2
check "series after the floods, of $before before" "$(series)" 1 $((before + 12))
check "no more than on /metrics" "$(series)" 1 $((count + 20))
check_is "no source, user or domain in any of them" "$(grep -cE '10\.1\.[0-9]+\.[0-9]+|u[0-9]{3}|invented' "$LAB/received")" 0

# ---- a server that is not there
kill "${LAB_PIDS[0]}"
sleep 1.2
check_is "the daemon goes on without it" "$(ctl status -o json | jq .packet_tier)" true
daemon_kill KILL

# ---- format: plain, after kill -9: the counters of pinned maps are not sent again
: > "$LAB/received"
"${IN_S[@]}" python3 "$LAB/server.py" "$LAB/received" &
started
disown
sed -i 's/interval: 1s}/interval: 1s, prefix: edge.one, format: plain}/' "$CONFIG"
daemon_run
wait_for 5 grep -q rules_generation "$LAB/received"
before=$(metric sluice_limit_packets_total limit=web verdict=drop)
blast "$LAB/sent" --dst $SERVER4 --src 10.1.1.1 --count 100 --pps 20000 --dport 80
check_true "only what is new: 100, of $before before" wait_for 5 is_sum edge.one.limit_packets.web.drop '' 100
check_is "no tags" "$(grep -c '#' "$LAB/received")" 0
daemon_kill TERM
sed 's/address: 127.0.0.1:8125/address: nowhere/' "$CONFIG" > "$LAB/wrong.yaml"
"$BIN/sluicectl" check "$LAB/wrong.yaml" > "$LAB/out" 2>&1
check_true "an address that is none has its place" grep -q 'wrong.yaml:5:.*statsd.address' "$LAB/out"
lab_done
