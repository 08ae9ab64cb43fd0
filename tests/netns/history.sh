#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# history.sh - why was it refused: first refusals, bans and changes on disk, over kill -9 and a restart,
# of sources and of values of rules; the same as fields to journald.

. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/parts.sh"
lab_begin history
lab_link 0

rules_of_users "2 requests/h"

# A journald of the test's own, where this machine has none.
JOURNAL=/run/systemd/journal/socket
if [ ! -e $JOURNAL ]; then
	mkdir -p ${JOURNAL%/*}
	python3 - "$JOURNAL" > "$LAB/journal" <<'PY' &
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    sys.stdout.write(s.recv(65536).decode(errors="replace").replace("\n", "\t") + "\n")
    sys.stdout.flush()
PY
	LAB_PIDS+=($!)
	wait_for 5 test -S $JOURNAL
	OWN_JOURNAL=1
fi

start() {
	daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
history: {size: 8M, age: 2d}
limits:
  - {name: web, match: {dport: 80}, rate: 10 packets/h, burst: 10, ban: {after: 100 drops/10s, for: 1h, spoofable: yes}}
  - {name: few, match: {dport: 82}, rate: 10 packets/h, burst: 10}
  - {name: flood, match: {dport: 83}, rate: 10 packets/h, burst: 10}
http: {listen: [127.0.0.1:8180], rules: $LAB/rules}
YAML
}
why() {
	ctl why -o json "$@" > "$LAB/why"
}
# Whether the answer has such an event.
has() {
	why "${@:2}" && jq -e "[.events[], .in_force[] | select($1)] | length > 0" "$LAB/why" > "$LAB/has"
}

start
blast "$LAB/sent" --dst $SERVER4 --src 10.1.1.1 --count 20 --pps 2000 --dport 80
blast "$LAB/sent" --dst $SERVER4 --src 10.1.2.1 --count 300 --pps 2000 --dport 80
blast "$LAB/sent" --dst $SERVER4 --src 10.1.3.1 --count 5 --pps 2000 --dport 80
request() {
	on_server curl -s -o /dev/null -d "{\"domain\": \"api\", \"descriptors\": [{\"entries\": [{\"key\": \"user\", \"value\": \"$1\"}]}]}" \
		http://127.0.0.1:8180/v1/check
}
for _ in 1 2 3; do
	request bob
done
request eve
check_true "the first refusal of a source" wait_for 5 has '.kind == "over" and .limit == "web"' 10.1.1.1
check_true "a ban" wait_for 5 has '.kind == "ban" and .limit == "web"' 10.1.2.1
check_true "a value of a rule" wait_for 5 has '.kind == "refused" and .rule == "api/user"' api/user bob
why 10.1.3.1
check_is "nothing of a source within its limit; of the last day, the history has but the end" \
	"$(jq -r '"\(.events | length) \(.nothing) \(.not_recorded | .[:18])"' "$LAB/why")" "0 true the history begins"
why api/user eve
check_is "nor of a value that was not refused" "$(jq '.events | length' "$LAB/why")" 0
ctl block add 198.51.100.0/24 --reason test > /dev/null
# More values at a time than are recorded: the answer is not that they were not refused.
on_server python3 - > "$LAB/out" <<'PY'
import http.client, json
c = http.client.HTTPConnection("127.0.0.1", 8180)
for i in range(400):
    c.request("POST", "/v1/check", json.dumps({"domain": "api", "descriptors": [
        {"hits": 3, "entries": [{"key": "user", "value": "user%d" % i}]}]}), {"Content-Type": "application/json"})
    c.getresponse().read()
PY
lost() { why api/user user399 && jq -re '.not_recorded' "$LAB/why" | grep -qE 'at most 100 values a second are, and [0-9]+ refusals by this rule were lost'; }
check_true "a value that was not recorded: so many of its rule were lost" wait_for 5 lost
check_is "not: it was not refused" "$(ctl why api/user user399 | grep -c 'was not refused')" 0
# Rows are committed each second, in their order.
on_disk() {
	python3 -c 'import sqlite3, sys
sys.exit(not sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM event WHERE len = 24").fetchone()[0])' "$LAB/state/events.db"
}
check_true "all is on disk" wait_for 5 on_disk

daemon_kill KILL
start
at=$(date +%H:%M)
check_true "after kill -9: the first refusal" has '.kind == "over"' 10.1.1.1
check_true "the ban" has '.kind == "ban"' 10.1.2.1 --at today
check_true "the block of its prefix" has '.kind == "block" and .source == "198.51.100.0/24"' 198.51.100.7
why 10.1.1.1 --at "yesterday $at"
check_true "yesterday: before the history begins" grep -q "history begins" "$LAB/why"
ctl why 10.1.1.1 > "$LAB/out"
check_true "as text" grep -qE '^20[^ ]* over 10\.1\.1\.1 by limit web \(over\)' "$LAB/out"
# Asked in a zone, answered in it: local time, or one that is given.
moment=$(ctl why 10.1.1.1 -o json | jq '.events[] | select(.kind == "over") | .at_ns / 1e9 | floor')
in_zone() { # ZONE [AT]: the moment of the first refusal as answered, and its text
	TZ=$1 ctl why 10.1.1.1 ${2:+--at "$2"} | awk '$2 == "over" && $3 == "10.1.1.1" { print $1; exit }'
}
check_is "in local time" "$(in_zone IST-5:30)" "$(TZ=IST-5:30 date -d @$moment +%FT%T+05:30)"
check_is "a minute of local time" "$(in_zone IST-5:30 "$(TZ=IST-5:30 date -d @$moment '+%F %H:%M')")" \
	"$(TZ=IST-5:30 date -d @$moment +%FT%T+05:30)"
check_is "a minute west of Greenwich, elsewhere" "$(in_zone IST-5:30 "$(TZ=NST3:30 date -d @$moment +%FT%H:%M-03:30)")" \
	"$(TZ=NST3:30 date -d @$moment +%FT%T-03:30)"
check_is "a minute of UTC, elsewhere" "$(in_zone IST-5:30 "$(date -u -d @$moment +%FT%H:%MZ)")" "$(date -u -d @$moment +%FT%TZ)"
check_true "what is not recorded, too" grep -q 'begins at 20[0-9T:-]*+05:30' <(TZ=IST-5:30 ctl why 10.1.1.1)
ctl why 10.1.1.1 --at 25:99 > "$LAB/out" 2>&1
check_true "a time that is none names those that are" grep -q "accepted: 14:03" "$LAB/out"
# Known numbers of packets: some, a flood above events.rate and the sampling in another second, and one that passes.
utc_room 60 10
blast "$LAB/6" --dst $SERVER4 --src 10.1.6.1 --count 200 --pps 300 --dport 82
sleep 2.1
blast_bg "$LAB/5" --dst $SERVER4 --src 10.1.5.1 --count 60000 --pps 30000 --dport 83
blast_bg "$LAB/4" --dst $SERVER4 --src 10.1.4.1 --count 400 --pps 200 --dport 81
blast_wait
# The window of who sends is over after at most 4.3 s, and looked at each second.
sleep 5.5
# The minute in progress ends with the daemon.
daemon_kill TERM
start
check_true "a heavy source, also one that passed" has '.kind == "traffic" and .source == "10.1.4.1" and .estimated' 10.1.4.1
check_is "which was not refused" "$(jq .nothing "$LAB/why")" true
ctl top --at today -o json | jq '[.sources[] | select(.source | test("10.1.[456].1"))]' > "$LAB/top"
check_is "who was heavy, the heaviest first, and by what" "$(jq -r '[.[] | "\(.source) \(.by)"] | join(", ")' "$LAB/top")" \
	"10.1.5.1 flood, 10.1.6.1 few, 10.1.4.1 null"
# Of the flood some were events, which stand for all: to the packet, as one limit dropped them all, and no other.
check_is "drops, as sent, in all minutes" "$(jq -c '[.[].dropped]' "$LAB/top")" "[59990,190,0]"
check_is "the flood's are marked as estimated" "$(jq -c '[.[:2][].estimated]' "$LAB/top")" "[true,false]"
check "what passed, of sources that send long enough" "$(jq '.[2].passed' "$LAB/top")" 390 410
drops_by() { # JQ: of the flood's rows in `why`
	ctl why 10.1.5.1 -o json | jq "[.events[] | select(.kind == \"$1\") | $2] | add"
}
check "why has the same" "$(drops_by drop .packets)" 59990 59990
check "and so has who sent, rounded" "$(drops_by traffic '(.detail | capture("(?<d>[0-9]+) dropped").d | tonumber)')" 59800 60200
check_true "as text an estimate is one" grep -qE ' drop 10\.1\.5\.1 by limit flood \(over\), ~60.0k packets$' <(ctl why 10.1.5.1)
check_true "and a count is none" grep -qE ' drop 10\.1\.6\.1 by limit few \(over\), [0-9]+ packets$' <(ctl why 10.1.6.1)
check_is "by passes the one that no limit refused" "$(ctl top --at today --by passes --count 1 -o json |
	jq -r '[.sources[] | "\(.source) \(.passed > 100)"] | join(", ")')" "10.1.4.1 true"
check_true "as text, without a terminal" grep -qE '^10\.1\.5\.1 +~60.0k .* flood$' <(ctl top --at today)
check_true "of a time before the history" grep -q 'not recorded: the history begins later' <(ctl top --at "yesterday $at")
check_true "lost ones of minutes that are over" lost
check_is "only root reads the file" "$(stat -c %a "$LAB/state/events.db")" 600

if [ -n "${OWN_JOURNAL:-}" ]; then
	check_true "journald gets fields" grep -qP 'SLUICE_EVENT=ban\t.*SLUICE_SOURCE=10\.1\.2\.1\t.*SLUICE_LIMIT=web' "$LAB/journal"
	check_is "drops are not sent there" "$(grep -c 'SLUICE_EVENT=drop' "$LAB/journal")" 0
	rm -f $JOURNAL
fi
lab_done
