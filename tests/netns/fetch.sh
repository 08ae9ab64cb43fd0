#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# fetch.sh - docs/examples/feeds/sluice-fetch over HTTPS and from a file, without privileges but the
# control group's: the listed source is dropped and its neighbor is not; an unchanged list is asked for
# conditionally and changes nothing; garbage, a list that shrinks, that is too large, cut or not there
# leaves the last good one in force, also over a restart and a lost set.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin fetch
lab_link 0

chmod 755 "$LAB"
CONTROL_MORE="group: nogroup"
daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
sets: {feed: []}
block: ['@feed']
limits: [{name: all, rate: 1M packets/s}]
YAML

mkdir -m 755 "$LAB/www"
install -d -o nobody -g nogroup "$LAB/fetched"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$LAB/key" -out "$LAB/cert" \
	-subj /CN=localhost -addext subjectAltName=DNS:localhost -days 2 2> /dev/null
chmod 644 "$LAB/cert"
"${IN_S[@]}" python3 - "$LAB" 8443 2> "$LAB/www.log" <<'PY' &
import http.server, os, ssl, sys

class Handler(http.server.SimpleHTTPRequestHandler):
	def do_GET(self):
		if self.path == "/cut":
			self.send_response(200)
			self.send_header("Content-Length", "1000")
			self.end_headers()
			self.wfile.write(b"10.1.9.0/24\n")
		elif self.path == "/plain":
			self.send_response(302)
			self.send_header("Location", "http://localhost:1/list")
			self.end_headers()
		else:
			super().do_GET()

os.chdir(sys.argv[1] + "/www")
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + "/cert", sys.argv[1] + "/key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
PY
started
disown
wait_for 10 on_server curl -so "$LAB/out" --cacert "$LAB/cert" https://localhost:8443/ || not_ok "no server"

# The programs may lie where other users have no access.
install -m 755 "$BIN/sluicectl" "$REPO/docs/examples/feeds/sluice-fetch" "$LAB"
# fetch SOURCE [OPTIONS]: as an unprivileged user; its exit status.
fetch() {
	on_server setpriv --reuid nobody --regid nogroup --clear-groups --bounding-set=-all \
		env SSL_CERT_FILE="$LAB/cert" python3 "$LAB/sluice-fetch" \
		--state "$LAB/fetched" --sluicectl "$LAB/sluicectl -s $SOCKET" feed "$@" > "$LAB/out" 2>&1
	echo $?
}
# says WORDS: the last fetch printed them.
says() { grep -qF "$1" "$LAB/out"; }
count() { ctl -o json set list | jq '.sets[] | select(.name == "feed") | .count'; }
arrivals_count
URL=https://localhost:8443

printf '# drop\n10.1.9.0/24 ; SBL1\n10.1.8.7\n2001:db8:bad::/48\n\n10.1.7.0/24\n' > "$LAB/www/list"
check_is "a fetch" "$(fetch $URL/list)" 0
check_is "the set" "$(count)" 4
check_is "a listed source" "$(of_ten 10.1.9.5)" 0
check_is "its neighbor" "$(of_ten 10.1.10.5)" 10

check_is "its source, and no failure" \
	"$(ctl -o json set list | jq -r '.sets[] | select(.name == "feed") | "\(.source) \(.error)"')" "$URL/list null"
check "its age, ms" "$(ctl -o json set list | jq '.sets[] | select(.name == "feed") | .age_ns / 1000000 | floor')" 0 60000

before=$(ctl -o json rollback list | jq '.changes | length')
check_is "again" "$(fetch $URL/list)" 0
check_is "was conditional" "$(grep -c '"GET /list HTTP/1.1" 304' "$LAB/www.log")" 1
check_is "and changed nothing" "$(ctl -o json rollback list | jq '.changes | length')" "$before"

# ---- what is refused: the set stays
refused() {
	check_is "$1: refused" "$(fetch "${@:3}")" 1
	check_true "$1: says why" says "$2"
	check_is "$1: the set stays" "$(count)" 4
}
touch_list() { touch -d "+$1 hours" "$LAB/www/list"; }
echo '10.1.9.0/24' > "$LAB/www/list"; touch_list 1
refused "shrinks" "it shrinks from 4 to 1 prefixes" $URL/list
: > "$LAB/www/list"; touch_list 2
refused "empty" "it has no prefix" $URL/list
printf '<html>\n<p>please log in</p>\n10.1.1.1\n' > "$LAB/www/list"; touch_list 3
refused "garbage" "2 of 3 lines are no prefixes" $URL/list
check_true "which lines" says "line 1: '<html>'"
{ cat "$LAB/fetched/feed.list"; seq -f '%g.0.0.0/8' 11 223; } > "$LAB/www/list"; touch_list 6
refused "grows to nearly all of IPv4" "it grows from 513 to 3573547521 IPv4 addresses" $URL/list
check_is "a neighbor in it" "$(of_ten 20.1.1.1)" 10
refused "not there" "status 404" $URL/none
refused "cut" "of 1000 bytes were received" $URL/cut
refused "a redirection to http" "not https" $URL/plain
refused "http" "accepted: a path, or https://" http://localhost:1/list
refused "a certificate of another name" "certificate" https://127.0.0.1:8443/list
seq -f '10.9.9.%g' 0 255 > "$LAB/www/list"; touch_list 4
refused "too large" "larger than 1000 bytes" $URL/list --max-bytes 1000
check_true "the last failure: set list" grep -q "^feed: FAILED .* ago: it is larger than 1000 bytes" <(ctl set list)
check_true "status" grep -q "^feed .* feed: FAILED .* ago: it is larger than 1000 bytes.* its 4 prefixes are" <(ctl status)
check_true "sluice-fetch --status names the failure" grep -q "^feed .* it is larger" \
	<(python3 "$REPO/docs/examples/feeds/sluice-fetch" --status --state "$LAB/fetched")

# ---- bad lines among good ones, a file, and a shrink that is allowed
{ seq -f '10.9.9.%g' 0 255; echo 10.1.9.1/24; echo 10.9.10.256; echo 2001:db8:bad::/48; echo 64.0.0.0/6; } > "$LAB/www/list"
touch_list 5
check_is "bad lines, and an accepted size" "$(fetch $URL/list --max-share 100000000)" 0
check_true "are named" says "line 257: '10.1.9.1/24'"
check_true "a prefix that sluice finds too wide, too" says "64.0.0.0/6 is wider than /8"
check_is "and left out" "$(count)" 257
check_is "a success ends the failure" "$(ctl status | grep -c FAILED)" 0
echo 10.1.6.0/24 > "$LAB/file"
chmod 644 "$LAB/file"
check_is "a file, a shrink that is allowed" "$(fetch "$LAB/file" --force)" 0
check_is "in force" "$(of_ten 10.1.6.1) $(of_ten 10.1.9.5)" "0 10"

# ---- the last good list over a restart, and after the set was lost
daemon_kill KILL
check_is "without a daemon" "$(fetch "$LAB/file")" 1
check_is "the list holds" "$(of_ten 10.1.6.1)" 0
daemon_run
check_is "and with the next one" "$(count)" 1
ctl set replace feed - <<< 10.5.0.0/16 > /dev/null
check_is "changed by others: restored" "$(fetch "$LAB/file") $(count) $(of_ten 10.1.6.1)" "0 1 0"

# ---- a feed's news of the last minute are written at exit
echo 10.1.5.5 | ctl block load --origin last - > /dev/null
daemon_kill TERM
daemon_run
check "an origin's age over a restart, ms" \
	"$(ctl -o json set list | jq '.origins[] | select(.name == "last") | .age_ns / 1000000 | floor')" 0 60000
lab_done
