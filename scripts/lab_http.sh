#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# lab_http.sh - the HTTP tier to look at, and how the two work together: nginx with
# docs/examples/nginx.conf asks sluiced about each request. One user goes on after his 429s; each
# second shows what he gets, what another user gets, and what is done at the network card. About
# 20 s; everything is removed at the end. Exit 0 only where it held.

set -u
cd "$(dirname "$0")/.." || exit 1
if [ "$(id -u)" != 0 ]; then
	echo "run it as root: namespaces, veth and XDP need that" >&2
	exit 1
fi
. tests/lib/netns.sh
lab_begin lab-http
lab_link 0

bold= plain=
[ -t 1 ] && bold=$'\e[1m' plain=$'\e[0m'
title() {
	printf '\n%s== %s%s\n' "$bold" "$*" "$plain"
}

MALLORY=10.1.1.7 ALICE=10.1.2.1
for address in $MALLORY $ALICE; do
	ip -n "$NS_C" addr add $address/16 dev c0
done

title "rules.d/api.yaml: five requests a second for each user; who goes on is held back at the card"
mkdir "$LAB/rules.d"
tee "$LAB/rules.d/api.yaml" <<'YAML'
domain: api
descriptors:
  - key: user
    limits: ['5 requests/s']
    algorithm: token-bucket
    push_down: {after: 20 rejections/5s, steps: [limit 40 packets/s, drop], step: 3s, down: 3s, max: 1m}
YAML
daemon_start <<YAML
interfaces: [{name: s0}]
limits: [{name: per-source, rate: 10K packets/s}]
http:
  listen: [unix:$LAB/http.sock]
  rules: $LAB/rules.d
  push_down: {max_share: 100%}
YAML
echo
ctl status

# The example as it is, but for its paths, and the socket: who may push is asked for there.
printf '%s %s;\n' alice alice mallory mallory > "$LAB/keys.map"
sed "s|/etc/nginx/sluice/|$LAB/|; s|server 127.0.0.1:8180;|server unix:$LAB/http.sock;|; s|?domain=api&.*;|?domain=api\&d=user;|
	s|^http {|&\n\taccess_log off; client_body_temp_path $LAB/b; proxy_temp_path $LAB/p;\n\tfastcgi_temp_path $LAB/f; uwsgi_temp_path $LAB/u; scgi_temp_path $LAB/s;|" \
	docs/examples/nginx.conf > "$LAB/nginx.conf"
"${IN_S[@]}" python3 tests/http/application.py 8000 > /dev/null 2>&1 &
started
"${IN_S[@]}" nginx -p "$LAB" -c "$LAB/nginx.conf" -e "$LAB/nginx.log" \
	-g "daemon off; master_process off; pid $LAB/nginx.pid;" &
started

# asks WHO SOURCE PAUSE: goes on asking, each answer a line of its own.
asks() {
	"${IN_C[@]}" bash -c 'while :; do
		curl -s -o /dev/null -m 2 -w "%{http_code}\n" --interface "$2" -H "X-API-Key: $1" \
			http://10.1.0.1/; sleep "$3"; done' asks "$@" > "$LAB/$1" &
	started
	ASKING=$!
}
# got WHO STATUS: how many so far.
got() {
	grep -c "^$2" "$LAB/$1"
}
answers() {
	[ "$(on_client curl -s -o /dev/null -m 2 -w '%{http_code}' http://10.1.0.1/)" = 200 ]
}
step() {
	ctl -o json pushdowns list | jq -r --arg s $MALLORY \
		'[.pushdowns[] | select(.source == $s) | .step][0] // "-"'
}
at_step() {
	[ "$(step)" = "$1" ]
}
# show SECONDS STEP: a line each second, until that step is reached.
show() {
	local i ok refused alice drops before_ok before_refused before_alice before_drops

	printf '%s%14s %14s %14s %14s %14s%s\n' "$bold" "mallory 200/s" "mallory 429/s" \
		"alice 200/s" "push-down" "dropped/s" "$plain"
	for ((i = 0; i <= $1; i++)); do
		ok=$(got mallory 200) refused=$(got mallory 429) alice=$(got alice 200)
		drops=$(metric sluice_packets_total reason=push_drop)
		[ $i = 0 ] || printf '%14d %14d %14d %14s %14d\n' $((ok - before_ok)) \
			$((refused - before_refused)) $((alice - before_alice)) "$(step)" \
			$((${drops:-0} - ${before_drops:-0}))
		before_ok=$ok before_refused=$refused before_alice=$alice before_drops=$drops
		at_step "$2" && break
		sleep 1
	done
}

check_true "nginx answers" wait_for 10 answers
title "mallory asks as fast as he can, alice twice a second"
asks alice $ALICE 0.5
alice=$ASKING
asks mallory $MALLORY 0.02
mallory=$ASKING
show 20 drop
check_is "mallory is dropped at the card" "$(step)" drop
echo
ctl pushdowns list
title "he stops"
kill $mallory
wait $mallory 2> /dev/null
show 15 -
check_is "and is free again" "$(step)" -
kill $alice
wait $alice 2> /dev/null
check "mallory's requests that passed" "$(got mallory 200)" 5 200
check "those that were refused" "$(got mallory 429)" 20 100000
check "alice's requests" "$(got alice 200)" 5 1000
check_is "of them lost" "$(grep -vc '^200' "$LAB/alice")" 0
cat >> "${SLUICE_SEEN:-/dev/null}" <<SEEN
requests: mallory, limit 5 requests/s: $(got mallory 200) passed, $(got mallory 429) were refused with 429
         then its address was limited and dropped at the card: $(metric sluice_packets_total reason=push_drop) packets
         alice beside it: $(got alice 200) of $(wc -l < "$LAB/alice") passed
SEEN
title "cleaning up"
exec 2> /dev/null	# of the shell's words on each process that it ends
lab_done
