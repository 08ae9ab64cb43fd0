#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A penalty of requests: a value with too many refusals is refused for a while, longer the second time,
# also over a kill -9, and until it is lifted by hand; a neighbor with fewer refusals is not.

. "$(dirname "$0")/../lib/http.sh"
http_begin ban "$@"

http_rules api <<'YAML'
  - key: login
    limits: [3 requests/10m]
    algorithm: token-bucket
    burst: 3
    ban: {after: 4 rejections/10m, for: 1h, factor: 2, max: 24h}
  - key: plan
    value: free
    descriptors:
      - key: user
        descriptors: [{key: seat, limits: [1 requests/h], ban: {after: 2 rejections/1h, for: 1h}}]
  - {key: short, limits: [1 requests/d], ban: {after: 1 rejections/1m, for: 2s, factor: 1}}
YAML
http_daemon <<YAML
  state: {users: 10K}
  decision_log: {file: $LAB/decisions.log}
YAML

# left WHO: seconds of the ban, rounded up; 0: none.
left() { ctl user show api/login "$1" -o json | jq '((.ban.left_ns // 0) / 1e9) | ceil'; }
level() { ctl user show api/login "$1" -o json | jq .ban.level; }

check_is "a neighbor: two refusals, no ban" "$(http_passed 5 api login=alice; left alice)" "3
0"
check_is "mallory: five, the last one begins it" "$(http_passed 8 api login=mallory)" 3
check "a ban of an hour" "$(left mallory)" 3590 3600
check_is "a request of it" "$(http_check api login=mallory)" 429
check "its Retry-After" "$(header retry-after)" 3585 3970	# with jitter
check_is "RateLimit: nothing left" "$(header ratelimit | cut -d';' -f1,2)" '"login";r=0'
check "... until then" "$(header ratelimit | sed 's/.*t=//')" 3585 3970
check "the response" "$(jq '.statuses[0].banned_ms' "$LAB/body")" 3585000 3600000
check_is "user show" "$(ctl user show api/login mallory | grep -c 'banned, level 0: 59m')" 1
check_is "ban list: who, and how long; not the neighbor" \
	"$(ctl ban list -o json | jq -r '.users[] | "\(.rule) \(.value) \(.level) \(.left_ns > 3580e9)"')" \
	"api/login mallory 0 true"
check_is "as text" "$(ctl ban list | grep -c '^api/login  mallory  59m')" 1
check_is "a metric of bans" "$(metric sluice_http_bans_total rule=login)" 1
check "... and of the decisions" "$(metric sluice_decisions_total rule=login verdict=banned)" 1 3
logged() { grep -c banned_ms "$LAB/decisions.log" > /dev/null; }
wait_for 5 logged && ok "the decision log" || not_ok "the decision log"
check_is "another neighbor passes" "$(http_check api login=bob)" 200

daemon_kill KILL
daemon_run
check_is "banned after kill -9" "$(http_check api login=mallory)" 429
check "for as long" "$(left mallory)" 3570 3600

check "a live change is for the next one" "$(ctl rule set api/login ban.for=2h > /dev/null; left mallory)" 3570 3600
check_is "unban" "$(ctl user unban api/login mallory)" "mallory is no longer banned by api/login"
check_is "only the limit refuses it now" "$(http_check api login=mallory; jq -c '.statuses[0] | [.code, .banned_ms]' "$LAB/body")" '429["OVER_LIMIT",null]'
check_is "unban of one that is not banned" "$(ctl user unban api/login alice)" "alice was not banned by api/login"
http_passed 4 api login=mallory > /dev/null
check "a first ban again, of the new time" "$(left mallory)" 7190 7200
check_is "it has level 0" "$(level mallory)" 0
check_is "user reset ends it, too" "$(ctl user reset api/login mallory > /dev/null; left mallory)" 0
check_is "save writes it" "$(ctl save > /dev/null; grep -c 'ban: {after: 4 rejections/10m, for: 2h, factor: 2, max: 24h}' "$RULES/api.yaml")" 1

check_is "the list has nobody now" "$(ctl ban list -o json | jq '.users | length')" 0
for user in alice,1 bob,2; do
	http_passed 4 api plan=free "user=${user%,*}" "seat=${user#*,}" > /dev/null
done
check_is "of several entries: all values" "$(ctl ban list -o json | jq -r '[.users[].value] | sort | join(" ")')" \
	"free,alice,1 free,bob,2"
check_is "as user unban takes them" "$(ctl user unban api/plan=free/user/seat alice,1)" \
	"free,alice,1 is no longer banned by api/plan=free/user/seat"
http_passed 3 api short=eve > /dev/null
check_is "a short one" "$(http_check api short=eve; ctl user show api/short eve -o json | jq -c '.ban.level')" "4290"
over() { [ "$(ctl user show api/short eve -o json | jq .ban)" = null ]; }
wait_for 10 over && ok "it ends" || not_ok "it ends"
lab_done
