#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# smoke.sh - the whole once, in seconds: programs loaded and attached to a veth, packets counted and
# dropped, requests decided over HTTP, limits that hold without the daemon and continue
# after it. For systems where the other tests are not run (scripts/distro.sh).

. "$(dirname "$0")/../lib/netns.sh"
lab_begin smoke
lab_link 0

mkdir "$LAB/rules"
chmod 755 "$LAB" "$LAB/rules"
cat > "$LAB/rules/api.yaml" <<'YAML'
domain: api
descriptors:
  - {key: user, limits: ['3 requests/d'], algorithm: token-bucket, burst: 3}
YAML
utc_room 3600 60
daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
limits:
  - {name: web, match: {proto: udp, dport: 80}, rate: 100 packets/h, algorithm: fixed-window}
  - {name: bucket, match: {src: 10.1.9.0/24}, rate: 1 packets/h, burst: 20}
http: {listen: [127.0.0.1:8180], rules: $LAB/rules}
YAML
check_true "the programs are attached, native" grep -q 's0: attached, native' "$LAB/daemon.log"

sink_start s0
send() {
	blast "$LAB/sent" --dst $SERVER4 "$@"
}
send --src 10.1.1.2 --dport 80 --count 150 --pps 2000
send --src 10.1.2.2 --dport 80 --count 30 --pps 2000
send --src 10.1.9.2 --dport 81 --count 50 --pps 2000
send --src 10.1.1.2 --dport 81 --count 40 --pps 2000
sink_stop s0
check_is "of a source over its limit 100 and 40 pass" "$(packets_passed s0 10.1.1.2)" 140
check_is "all of its neighbour's pass" "$(packets_passed s0 10.1.2.2)" 30
check_is "of a bucket its burst passes" "$(packets_passed s0 10.1.9.2)" 20
check_is "the limit counted its drops" \
	"$(metric sluice_limit_packets_total limit=web verdict=drop)" 50
check_is "it counted the passed packets" "$(metric sluice_limit_packets_total limit=web verdict=pass)" 130
check_is "so did the bucket" "$(metric sluice_limit_packets_total limit=bucket verdict=drop)" 30

asked() {
	on_server curl -s -m 20 -o /dev/null -w '%{http_code} ' -d "{\"domain\": \"api\",
		\"descriptors\": [{\"entries\": [{\"key\": \"user\", \"value\": \"$1\"}]}]}" \
		http://127.0.0.1:8180/v1/check
}
check_is "requests over HTTP" "$(for _ in 1 2 3 4 5; do asked ann; done)" "200 200 200 429 429 "
check_is "requests of another user" "$(asked bob)" "200 "

# Without a daemon the limits hold; the next daemon continues the counts.
daemon_kill KILL
sink_start s0
send --src 10.1.1.2 --dport 80 --count 50 --pps 2000
sink_stop s0
check_is "packets pass over the limit without a daemon" "$(packets_passed s0 10.1.1.2)" 0
daemon_run
check_is "the next daemon has the drops" \
	"$(metric sluice_limit_packets_total limit=web verdict=drop)" 100
check_is "and the counts of requests" "$(asked ann)" "429 "
daemon_kill TERM
check_true "--purge removes everything" on_server "$BIN/sluiced" -c "$CONFIG" --purge
lab_done
