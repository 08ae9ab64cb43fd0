#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# crowdsec.sh - docs/examples/feeds/sluice-crowdsec with CrowdSec's local API (LAPI), as Debian has it, offline:
# decisions become blocks with deadline and scenario, are withdrawn when they are deleted, and are the same
# after a loss on either side; a block by hand of the same source stays. Then a hundred thousand, from a
# stand-in for the LAPI, which itself takes a minute to import as many.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin crowdsec
lab_link 0

daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
limits: [{name: all, rate: 1M packets/s}]
YAML

# ---- the LAPI: not installed, its processors of logs are not wanted here
CROWDSEC=$REPO/build/crowdsec
if [ ! -x "$CROWDSEC/usr/bin/crowdsec" ]; then
	mkdir -p "$CROWDSEC"
	(cd "$LAB" && apt-get -qq -o APT::Sandbox::User=root download crowdsec && dpkg -x crowdsec_*.deb "$CROWDSEC" &&
		rm crowdsec_*.deb) > "$LAB/apt" 2>&1 || {
		skip "Debian's crowdsec cannot be downloaded"
		lab_done
		exit 0
	}
fi
mkdir -p "$LAB"/lapi/{data,hub,notifications,plugins}
cp "$CROWDSEC"/etc/crowdsec/{profiles,simulation}.yaml "$LAB/lapi/"
echo '{}' > "$LAB/lapi/hub/.index.json"
touch "$LAB/lapi/login.yaml"
cat > "$LAB/lapi/config.yaml" <<YAML
common: {daemonize: false, log_media: stdout, working_dir: .}
config_paths:
  config_dir: $LAB/lapi
  data_dir: $LAB/lapi/data
  simulation_path: $LAB/lapi/simulation.yaml
  hub_dir: $LAB/lapi/hub
  index_path: $LAB/lapi/hub/.index.json
  notification_dir: $LAB/lapi/notifications
  plugin_dir: $LAB/lapi/plugins
cscli: {output: human}
db_config: {type: sqlite, db_path: $LAB/lapi/data/crowdsec.db, use_wal: true}
plugin_config: {user: nobody, group: nogroup}
api:
  client: {credentials_path: $LAB/lapi/login.yaml}
  server: {listen_uri: '127.0.0.1:8080', profiles_path: $LAB/lapi/profiles.yaml}
prometheus: {enabled: false}
YAML
cscli() {
	"${IN_S[@]}" "$CROWDSEC/usr/bin/cscli" -c "$LAB/lapi/config.yaml" "$@" >> "$LAB/cscli.log" 2>&1 || {
		not_ok "cscli $*"
		tail -n 2 "$LAB/cscli.log"
	}
}
answers() { on_server curl -s -o /dev/null http://127.0.0.1:8080/; }
lapi_start() {
	"${IN_S[@]}" "$CROWDSEC/usr/bin/crowdsec" -c "$LAB/lapi/config.yaml" -no-cs >> "$LAB/lapi.log" 2>&1 &
	started
	LAPI=$!
	disown
	wait_for 20 answers || not_ok "no LAPI"
}
# decide HOW VALUE DURATION SCENARIO [TYPE]
decide() { cscli decisions add "--$1" "$2" --duration "$3" --reason "$4" --type "${5:-ban}"; }
cscli machines add --auto -f "$LAB/lapi/login.yaml"
cscli bouncers add sluice -k secret
echo secret > "$LAB/key"
bouncer_start() {
	"${IN_S[@]}" python3 "$REPO/docs/examples/feeds/sluice-crowdsec" --key-file "$LAB/key" --every 0.3 \
		--sluicectl "$BIN/sluicectl -s $SOCKET" >> "$LAB/bouncer.log" 2>&1 &
	started
	BOUNCER=$!
	disown
}
# Not in the middle of a command, which would outlive it and load an old list after its successor's.
bouncer_kill() {
	stand_still $BOUNCER
	wait_for 20 eval '! pgrep -P $BOUNCER > /dev/null' || not_ok "a command of the bouncer does not end"
	kill -KILL $BOUNCER
}
entry() { ctl -o json block list | jq -c --arg p "$1" '.entries[] | select(.prefix == $p)'; }
blocked() { [ -n "$(entry "$1")" ]; }
gone() { ! blocked "$1"; }
arrivals_count

lapi_start
decide ip 10.1.1.1 3h59m56s crowdsecurity/ssh-bf
decide range 10.1.2.0/24 23m crowdsecurity/http-probing
decide ip 2001:db8:70:1::2 4h crowdsecurity/ssh-bf
decide ip 10.1.4.1 4h crowdsecurity/http-crawl captcha
cscli decisions add --scope Country --value DE --duration 4h --reason x
decide range 64.0.0.0/2 4h x
decide ip 10.1.9.9 876000h "for good"
bouncer_start
check_true "a decision is a block" wait_for 20 blocked 10.1.1.1
check_true "of a range" wait_for 20 blocked 10.1.2.0/24
check_true "of IPv6" wait_for 20 blocked 2001:db8:70:1::2
check_is "their packets" "$(of_ten 10.1.1.1) $(of_ten 10.1.2.9) $(of_ten 2001:db8:70:1::2 --dst $SERVER6)" "0 0 0"
check_is "no ban, or not of an address: not blocked" "$(of_ten 10.1.4.1) $(of_ten 10.1.3.1)" "10 10"
check_true "a hundred years" wait_for 20 blocked 10.1.9.9
check "are ten, and the others hold, days" "$(entry 10.1.9.9 | jq '.left_ns / 86400e9')" 3649 3650
check_is "the reason is the scenario" "$(entry 10.1.1.1 | jq -r .reason)" crowdsecurity/ssh-bf
check "the deadline" "$(entry 10.1.1.1 | jq '.left_ns / 1e9 | floor')" 14300 14397
check_true "others are counted (the LAPI does not send the country)" grep -q '; 2 ignored' "$LAB/bouncer.log"

# ---- deltas; a block by hand of the same source stays
ctl block add 10.1.1.1 --reason "by hand" > /dev/null
cscli decisions delete --ip 10.1.1.1
decide ip 10.1.7.1 1h crowdsecurity/ssh-bf
check_true "a new decision" wait_for 20 blocked 10.1.7.1
only_by_hand() { [ "$(entry 10.1.1.1 | jq -r .reason)" = "by hand" ]; }
check_true "a deleted one is withdrawn, and not the block by hand" wait_for 20 only_by_hand
check_is "which holds" "$(of_ten 10.1.1.1) $(of_ten 10.1.2.9)" "0 0"

# ---- losses: the LAPI, sluiced, the bouncer
kill -KILL $LAPI
check_true "without the LAPI" wait_for 20 grep -q 'the blocks stay until their deadlines' "$LAB/bouncer.log"
# Refused, or reset where it died while it answered.
origin_failed() { ctl set list | grep -q '^crowdsec: FAILED .* ago: http://127.0.0.1:8080: '; }
check_true "set list has the failure of the feed" wait_for 10 origin_failed
check_is "blocks hold" "$(of_ten 10.1.7.1)" 0
stand_still $BOUNCER
lapi_start
cscli decisions delete --ip 10.1.7.1
kill -CONT $BOUNCER
check_true "what was deleted meanwhile" wait_for 20 gone 10.1.7.1
check_is "its packets" "$(of_ten 10.1.7.1) $(of_ten 10.1.2.9)" "10 0"
daemon_kill KILL
daemon_run
check_is "after a restart of sluiced" "$(of_ten 10.1.2.9) $(of_ten 10.1.3.9)" "0 10"
bouncer_kill
cscli decisions delete --range 10.1.2.0/24
decide ip 10.1.8.1 1h crowdsecurity/ssh-bf
decide ip 10.1.8.1 3s crowdsecurity/http-probing
bouncer_start
check_true "after one of the bouncer" wait_for 20 gone 10.1.2.0/24
check_is "nothing is left of the old ones" "$(ctl -o json block list | jq -r '.entries[].prefix' | sort | xargs)" \
	"10.1.1.1 10.1.8.1 10.1.9.9 2001:db8:70:1::2"
cscli bouncers add look -k look
short_one_gone() {
	[ "$(on_server curl -s -H 'X-Api-Key: look' 'http://127.0.0.1:8080/v1/decisions?ip=10.1.8.1' | jq length)" = 1 ]
}
check_true "of two decisions the shorter has ended" wait_for 20 short_one_gone
check_is "and the longer holds" "$(of_ten 10.1.8.1)" 0

# ---- a hundred thousand, and none, from a stand-in that says what a LAPI says
kill -KILL $LAPI
wait_for 10 bash -c "! kill -0 $LAPI 2> /dev/null"
cat > "$LAB/lapi.py" <<'PY'
# The decisions are in decisions.json; a poll without startup gets the difference to the last one. Instead, if they
# are there: what is in raw, or a redirection to what is in redirect.
import http.server, json, os, sys

last = {}
class Handler(http.server.BaseHTTPRequestHandler):
	def do_GET(self):
		global last
		if os.path.exists("redirect"):
			self.send_response(302)
			self.send_header("Location", open("redirect").read().strip())
			return self.end_headers()
		if os.path.exists("raw"):
			return self.reply(open("raw", "rb").read())
		now = {d["id"]: d for d in json.load(open(sys.argv[1]))}
		startup = "startup=true" in self.path
		body = json.dumps({
			"new": [d for i, d in now.items() if startup or i not in last] or None,
			"deleted": None if startup else [d for i, d in last.items() if i not in now],
		}).encode()
		last = now
		self.reply(body)
	def reply(self, body):
		self.send_response(200)
		self.send_header("Content-Length", str(len(body)))
		self.end_headers()
		self.wfile.write(body)
	def log_message(self, *args):
		pass

os.chdir(os.path.dirname(sys.argv[1]))
http.server.HTTPServer(("127.0.0.1", 8080), Handler).serve_forever()
PY
python3 - "$LAB/decisions.json" <<'PY'
import json, sys
json.dump([{"id": 1000 + i, "type": "ban", "scope": "Ip", "duration": "%dm30s" % (60 + i % 3 * 60),
	    "value": "20.%d.%d.%d" % (i >> 16, i >> 8 & 255, i & 255), "scenario": "s%d" % (i % 5)}
	   for i in range(100000)], open(sys.argv[1] + ".new", "w"))
PY
mv "$LAB/decisions.json.new" "$LAB/decisions.json"
"${IN_S[@]}" python3 "$LAB/lapi.py" "$LAB/decisions.json" 2> "$LAB/lapi.log" &
started
disown
check_true "a hundred thousand" wait_for 60 grep -q '^100000 decisions' "$LAB/bouncer.log"
# How soon is not tested: alone 0.6 to 1.2 s, of which a half is Python's.
echo "# $(grep '^100000 decisions' "$LAB/bouncer.log" | head -n 1)"
check_is "the first and the last" "$(of_ten 20.0.0.0) $(of_ten 20.1.134.159) $(of_ten 20.1.134.160)" "0 0 10"
echo "[]" > "$LAB/none.json"
mv "$LAB/none.json" "$LAB/decisions.json"
check_true "all withdrawn" wait_for 60 grep -q '^0 decisions' "$LAB/bouncer.log"
check_is "the first and the last again" "$(of_ten 20.0.0.0) $(of_ten 20.1.134.159)" "10 10"
check_is "the block by hand is still there" "$(ctl -o json block list | jq '.entries | length')" 1

# ---- anything may be in a response, also all of IPv4: it is named, and the others are in force
python3 - "$LAB/raw" <<'PY'
import json, sys
def ban(id, value, duration="1h", **more):
	return {"id": id, "type": "ban", "scope": "Ip", "value": value, "duration": duration, "scenario": "s", **more}
bad = ["text", 7, None, [], [[]], ban([1], "10.1.11.1"), ban({"a": 1}, "10.1.11.2"), ban(11, 5), ban(12, "10.1.11.3", 60),
	ban(13, "10.1.11.4", "soon"), ban(14, "10.1.11.5", scenario=["s"]), ban(15, "10.1.300.1"), ban(16, "10.1.11.6\0"),
	ban(17, "\ud800"), ban(18, None), ban(19, "10.1.11.7", "1h" + "9" * 500 + "x")]
good = [ban(20, "10.1.12.1", "9" * 400 + "h"), ban(21, "10.1.12.2"), ban(22, "10.1.12.3", "876000h0m0s"), ban(23, "2001:db8::7", scenario="caf\u00e9 \ud800")]
wide = [ban(1000 + i, "%d.0.0.0/8" % i, scope="Range") for i in range(224)]
hosts = [ban(2000 + i, "20.7.%d.%d" % (i >> 8, i & 255)) for i in range(300)]
text = json.dumps({"new": bad + good + wide + hosts, "deleted": ["text", None]})
open(sys.argv[1] + ".new", "w").write(text.replace('"id": 22,', '"id": %s,' % ("9" * 5000)))
PY
mv "$LAB/raw.new" "$LAB/raw"
check_true "bad decisions among good ones" wait_for 20 blocked 10.1.12.3
check_is "the good ones" "$(ctl -o json block list | jq -r '.entries[] | select(.origin == "crowdsec") | .prefix' | grep -vc '^20.7')" 4
check_is "their packets, and those of all others" "$(of_ten 10.1.12.1) $(of_ten 20.7.1.1) $(of_ten 10.1.11.1) $(of_ten 30.1.1.1)" "0 0 10 10"
check "the bad ones are named" "$(grep '^ignored: ' "$LAB/bouncer.log" | sort -u | wc -l)" 3 5

# ---- the key goes nowhere else
"${IN_S[@]}" python3 -m http.server --bind 127.0.0.1 8081 > "$LAB/other.log" 2>&1 &
started
disown
echo http://localhost:8081/ > "$LAB/redirect"
check_true "a redirection is a failure" wait_for 20 grep -q '127.0.0.1:8080: HTTP Error 302' "$LAB/bouncer.log"
check_is "and is not followed" "$(grep -c GET "$LAB/other.log")" 0
kill -0 $BOUNCER || not_ok "the bouncer has ended"
for url in http://localhost.evil.example http://127.0.0.1.evil.example http://127.0.0.1@evil.example \
	'http://[::1]evil.example' http://10.1.0.1:8080 ftp://localhost; do
	timeout 5 python3 "$REPO/docs/examples/feeds/sluice-crowdsec" --key-file "$LAB/key" --url "$url" > "$LAB/out" 2>&1
	check_is "refused: $url" $? 2
done
lab_done
