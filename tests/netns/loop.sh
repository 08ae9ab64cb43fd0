#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# loop.sh - what the HTTP tier counts of users reaches the packet tier and back:
# a client that goes on after its 429s is paced, then dropped by XDP, and free again when it
# has stopped. Forty users behind one address, one of them abusive: the abuser gets 429s, the
# others lose no request, their address is not dropped and has room for all of them. The same
# abuser behind a proxy in never_push_down causes no push-down, and ten thousand invented users
# raise no budget. Candidates in shadow mode beside both limits see what these see, also while the
# push-down drops. Real nginx, real TCP, counters of the packet tier.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin loop
lab_link 0
HAMMER=10.1.1.7 OFFICE=10.1.2.1 PROXY=10.1.3.1 INVENTOR=10.1.4.1 OTHER=10.1.5.1
for address in $HAMMER $OFFICE $PROXY $INVENTOR $OTHER; do
	ip -n "$NS_C" addr add $address/16 dev c0
done

mkdir "$LAB/rules.d"
cat > "$LAB/rules.d/api.yaml" <<'YAML'
domain: api
descriptors:
  - key: user
    limits: ['30 requests/m', {name: laxer, rate: 60 requests/m, mode: shadow}]
    push_down: {after: 10 rejections/5s, steps: [limit 30 packets/s, drop], step: 3s, down: 3s, max: 2m}
YAML
# What docs/pushdown.md limits, with rates of this test.
match=$(sed -n 's/.*{name: per-source, \(match: {[^}]*}\), .*/\1/p' "$REPO/docs/pushdown.md")
udp=$(sed -n 's/^ *- {name: udp, \(.*\)} .*/\1/p' "$REPO/docs/pushdown.md")
daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
limits:
  - {name: per-source, $match, rate: 400 packets/s, burst: 800, accounting: exact}
  - {name: stricter, $match, rate: 5 packets/s, burst: 5, accounting: exact, mode: shadow}
  - {name: udp, $udp}
http:
  listen: [{address: 'unix:$LAB/http.sock', mode: 0666}]
  rules: $LAB/rules.d
  never_push_down: [10.1.3.0/24]
  push_down: {mode: enforce, max_share: 100%}
  source_budget: {limit: per-source, user: [api/user], active: 60s, base: 200 packets/s,
                  packets_per_request: 40, max: 20000 packets/s, max_users: 500}
YAML

cat > "$LAB/nginx.conf" <<NGINX
daemon off; worker_processes 1; pid $LAB/nginx.pid; error_log $LAB/nginx.log error;
events { worker_connections 1024; }
http {
	access_log off; client_body_temp_path $LAB/b; proxy_temp_path $LAB/p;
	fastcgi_temp_path $LAB/f; uwsgi_temp_path $LAB/u; scgi_temp_path $LAB/s;
	upstream sluice { server unix:$LAB/http.sock; keepalive 16; }
	server {
		listen 10.1.0.1:80;
		location / {
			auth_request /_sluice;
			error_page 403 =429 @limited;
			root $LAB/www;
		}
		location @limited { return 429; }
		location = /_sluice {
			internal;
			proxy_pass http://sluice/nginx/check?domain=api&d=user;
			proxy_http_version 1.1;
			proxy_pass_request_headers off; proxy_pass_request_body off;
			proxy_set_header Connection "";
			proxy_set_header Host localhost;
			proxy_set_header X-Sluice-V-User \$http_x_user;
			proxy_set_header X-Sluice-Source \$realip_remote_addr;
		}
	}
}
NGINX
mkdir "$LAB/www"
echo hello > "$LAB/www/index.html"
# nginx drops root: its workers need access to the lab.
chmod 755 "$LAB" "$LAB/www"
"${IN_S[@]}" nginx -c "$LAB/nginx.conf" -p "$LAB" > /dev/null 2>&1 &
started

# get SOURCE USER [SECONDS]: prints the status.
get() {
	on_client curl -s -o /dev/null -m "${3:-10}" -w '%{http_code}\n' --interface "$1" \
		-H "X-User: $2" http://10.1.0.1/
}
# hammer_on SOURCE USER: sends without pause, whatever the response, three at once; statuses to a file.
hammer_on() {
	for n in 1 2 3; do
		"${IN_C[@]}" bash -c 'while :; do curl -s -o /dev/null -m 1 -w "%{http_code}\n" \
			--interface '"$1"' -H "X-User: '"$2"'" http://10.1.0.1/; sleep 0.02; done' \
			> "$LAB/hammer.$1.$n" &
		started
		HAMMERS+=($!)
	done
}
hammer_off() {
	kill "${HAMMERS[@]}" 2> /dev/null
	wait "${HAMMERS[@]}" 2> /dev/null
	HAMMERS=()
}
HAMMERS=()
statuses() {
	cat "$LAB/hammer.$1."* | grep -c "^$2"
}
# step SOURCE: its push-down's action.
step() {
	ctl -o json pushdowns list | jq -r --arg s "$1" '.pushdowns[] | select(.source == $s) | .step'
}
is_at() {
	[ "$(step "$1")" = "$2" ]
}
# budget SOURCE: its automatic override in the limit.
budget() {
	ctl -o json override list per-source | jq -r --arg s "$1" \
		'.overrides[] | select(.src == $s and .derived) | .rate' | grep -o '^[0-9]*'
}
has_budget() {
	[ "$(budget "$1")" = "$2" ]
}

answers() {
	[ "$(get $OTHER ann)" = 200 ]
}
check_true "nginx answers" wait_for 10 answers

# ---------------------------------------------------------------- a source that does not stop

hammer_on $HAMMER mallory
check_true "it is paced" wait_for 10 is_at $HAMMER limit
check_true "it goes on, and is dropped" wait_for 15 is_at $HAMMER drop
check "push-downs in metrics" "$(metric sluice_pushdowns_active step=drop)" 1 1
check_is "source show has the push-down" "$(ctl -o json source show $HAMMER | jq -r .http.push_down.step)" drop
check "its requests with a 429" "$(statuses $HAMMER 429)" 10 100000
check "its requests that passed" "$(statuses $HAMMER 200)" 1 60
drops=$(metric sluice_packets_total reason=push_drop)
check_true "its packets are dropped by XDP" wait_for 3 eval \
	'[ "$(metric sluice_packets_total reason=push_drop)" -gt '"$drops"' ]'
# analysis FILE: both tiers'; of FILE LIMIT: what it decided, what its candidate did, what that would refuse.
analysis() {
	ctl analyze -o json > "$LAB/$1"
}
of() {
	jq -r --arg name "$2" '.limits[] | select(.name == $name) | .candidates[0] as $c |
		"\(.passed + .refused) \($c.passed + $c.refused) \($c.refused)"' "$LAB/$1"
}
dropped_more() {
	[ "$(metric sluice_packets_total reason=push_drop)" -gt $((drops + 5)) ]
}
# Requests that were on their way when the drop began are judged by both.
both_rest() {
	analysis first
	drops=$(metric sluice_packets_total reason=push_drop)
	wait_for 10 dropped_more
	analysis second
	[ "$(of first per-source) $(of first api/user)" = "$(of second per-source) $(of second api/user)" ]
}
check_true "while the push-down drops, limits and candidates count nothing more" wait_for 20 both_rest
for limit in per-source api/user; do
	read -r decided beside refused < <(of second $limit)
	check_is "$limit: its candidate judged as many, none that the push-down dropped" "$beside" "$decided"
done
check "the stricter candidate of packets would refuse some" "$(of second per-source | cut -d' ' -f3)" 1 100000
check_is "the laxer one of requests fewer than the limit, by up to 30 a minute" \
	"$(jq '.limits[] | select(.name == "api/user") | .refused - .candidates[0].refused |
		. >= 10 and . <= 60' "$LAB/second")" true
check_is "a neighbour gets its response" "$(get $OTHER ann)" 200
check "audit lines of it" "$(grep -c '"command": *"push-down"' "$LAB/state/audit.log")" 2 10
# Without the daemon the push-down stays; the next daemon takes it over.
daemon_kill KILL
drops=$(calc "$(on_client curl -s -o /dev/null -m 1 -w '%{http_code}' --interface $HAMMER http://10.1.0.1/) + 0")
check "its responses without a daemon" "$drops" 0 0
daemon_run
check_true "the next daemon took it over" grep -q "restored 1 push-downs" "$LAB/daemon.log"
check_true "it has the rule" wait_for 3 eval '[ "$(ctl -o json pushdowns list | jq -r ".pushdowns[0].rule")" = api/user ]'
hammer_off
check_true "it is free again when it has stopped" wait_for 12 is_at $HAMMER ''
check_is "another user behind it gets a response" "$(get $HAMMER carol)" 200

# ---------------------------------------------------------------- forty at the office

for user in $(seq 39); do
	get $OFFICE "user$user"
done > "$LAB/office.0"
# 200 + 39 users x 0.5 requests/s x 40
check_true "the office has room for all of them" wait_for 10 has_budget $OFFICE 980

# ---------------------------------------------------------------- one of them floods other services

# With UDP, and TCP's SYNs to another port.
for proto in udp tcp; do
	"${IN_C[@]}" "$TOOLS/netns/blast" --interface c0 --src $OFFICE --proto $proto --pps 20000 --time 60 > "$LAB/blast" &
	started
done
floods() {
	[ "$(metric sluice_limit_packets_total limit=udp verdict=drop)" -gt "$1" ]
}
check_true "a flood of UDP from the office is limited" wait_for 10 floods 2000
for user in $(seq 39); do
	get $OFFICE "user$user" 3
done > "$LAB/flooded"
check_is "each of its users has a response" "$(sort "$LAB/flooded" | uniq -c | xargs)" "39 200"
floods=$(metric sluice_limit_packets_total limit=udp verdict=drop)
check_true "while the flood goes on" wait_for 5 floods $((floods + 1000))
kill "${LAB_PIDS[-1]}" "${LAB_PIDS[-2]}"

# ---------------------------------------------------------------- one of them does not stop

hammer_on $OFFICE eve
for round in 1 2 3 4 5 6; do
	for user in $(seq 39); do
		get $OFFICE "user$user" 20
	done > "$LAB/office.$round" &
	started
	wait $!
	is_at $OFFICE drop && not_ok "the office was dropped"
done
check_true "the abuser gets 429s" test "$(statuses $OFFICE 429)" -ge 10
check_is "requests of the thirty-nine with a response" "$(cat "$LAB"/office.* | grep -c 200)" 273
check_is "none of them was lost" "$(cat "$LAB"/office.* | grep -vc 200)" 0
is_at $OFFICE drop && not_ok "the office was dropped"
ok "the office's step: $(step $OFFICE)"
rate=$(ctl -o json pushdowns list | jq -r --arg s $OFFICE '.pushdowns[] | select(.source == $s) | .rate' |
	grep -o '^[0-9]*')
check "packets a second it may send at least" "${rate:-980}" 900 100000
check "users, in source show" "$(ctl -o json source show $OFFICE | jq -r .http.users)" 39 40
hammer_off

# ---------------------------------------------------------------- behind a trusted proxy

refused=$(metric sluice_pushdowns_refused_total reason=protected)
hammer_on $PROXY mallory2
check_true "behind the proxy the abuser is refused" wait_for 10 eval '[ "$(statuses '$PROXY' 429)" -ge 30 ]'
check_true "it is not pushed down, and that is counted" wait_for 5 eval \
	'[ "$(metric sluice_pushdowns_refused_total reason=protected)" -gt '"$refused"' ]'
check_is "the proxy's step" "$(step $PROXY)" ""
check_is "others behind the proxy get responses" "$(get $PROXY ann2)" 200
hammer_off

# ---------------------------------------------------------------- ten thousand invented users

cat > "$LAB/invent.lua" <<'LUA'
local n = 0
request = function()
	n = n + 1
	return wrk.format("GET", "/", { ["X-User"] = "invented" .. n })
end
LUA
# A source of its own for wrk, which has no option for one.
ip -n "$NS_C" route replace 10.1.0.1 dev c0 src $INVENTOR
invented() {
	[ "$(metric sluice_decisions_total domain=api rule=user verdict=ok)" -ge $((before + 10000)) ]
}
before=$(metric sluice_decisions_total domain=api rule=user verdict=ok)
ctl limit set per-source rate='40000 packets/s' burst=40000 > /dev/null
"${IN_C[@]}" wrk -t 1 -c 8 -d 30 -s "$LAB/invent.lua" http://10.1.0.1/ > "$LAB/wrk" 2>&1 &
started
WRK=$!
check_true "ten thousand invented users were allowed" wait_for 28 invented
kill $WRK
ctl limit set per-source rate='400 packets/s' burst=800 > /dev/null
# wrk may send a few of them twice.
read -r users pps < <(ctl -o json source show $INVENTOR | jq -r '.http | "\(.users) \(.budget_pps)"')
check "users counted there" "$users" 0 3
check_is "its budget is the minimum, and theirs" "$pps" $((200 + users * 20))
check_is "it has no override, as the limit is higher" "$(budget $INVENTOR)" ""
check_true "the office still has its budget" test "$(budget $OFFICE)" -ge 900
check_is "live changes: none, the limit is as in the file again" "$(ctl -o json status | jq -r .live_changes)" 0
lab_done
