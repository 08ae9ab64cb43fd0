#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# One computer has a huge number of IPv6 addresses: 5000 requests from 5000 of the 65536 /64 of a /48, under a
# rule that names no prefix. Neighbours in IPv4 and in another /48 keep their limits; what a /64 used under
# another setting stays used.

. "$(dirname "$0")/../lib/http.sh"
http_begin addresses "$@"

OLD='{key: client, limits: [10 requests/d], prefix: {ipv4: 32, ipv6: 64}}'
http_rules api <<YAML
  - {key: source, limits: [10 requests/d]}
  - {key: alone, limits: [10 requests/d], prefix: {ipv6: 64}}
  - $OLD
YAML
http_daemon <<'YAML'
  workers: 1
YAML

# passed KEY FORMAT COUNT: how many of COUNT addresses pass, one request of each.
passed() {
	python3 - "$@" <<'PYTHON'
import json, socket, sys
key, form, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
connection = socket.create_connection(("127.0.0.1", 8180))
answers = connection.makefile("rb")
passed = 0
for first in range(0, count, 20):
    bodies = [json.dumps({"domain": "api", "descriptors": [{"entries": [{"key": key, "value": form % n}]}]})
              for n in range(first, min(first + 20, count))]
    connection.sendall("".join("POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body), body) for body in bodies).encode())
    for _ in bodies:
        passed += answers.readline().split()[1] == b"200"
        length = 0
        while (line := answers.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                length = int(line.split()[1])
        answers.read(length)
print(passed)
PYTHON
}
entries() {
	"${IN_S[@]}" curl -s http://127.0.0.1:9810/metrics | awk '/^sluice_http_state_entries{/ { sum += $2 } END { print sum + 0 }'
}

check_is "IPv4: each address has its limit" "$(passed source '192.0.2.%d' 250)" 250
check_is "one /64: its limit, whatever its last 64 bits" "$(passed source '2001:db8:1:1::%x' 50)" 10
placed() { [ "$(entries)" = 253 ]; }
check_true "an IPv4 address has one place in the table, an IPv6 address three" wait_for 15 placed
check_is "one /56: twice the limit" "$(passed source '2001:db8:2:ff%02x::1' 200)" 20
check_is "5000 addresses of one /48: four times" "$(passed source '2001:db8:3:%x::1' 5000)" 40
check_is "rule test shows it" "$("$BIN/sluicectl" rule test -c "$CONFIG" --domain api --entries source=2001:db8:3::1 | grep '^counted')" \
	"counted by  source=2001:db8:3::/64
counted by  source=2001:db8:3::/56, 2 times the limit
counted by  source=2001:db8:3::/48, 4 times the limit"
check_is "the refusal names the prefix" "$(request -d "$(check_body api source=2001:db8:3:eeee::1)" /v1/check) $(header RateLimit-Policy | cut -d, -f1)" \
	'429 "source/48";q=40;w=86400'
check_is "another /48" "$(passed source '2001:db8:4::%x' 20)" 10
check_is "with prefix: {ipv6: 64} each /64 is alone" "$(passed alone '2001:db8:3:%x::1' 300)" 300

# ---- what was used stays used

check_is "a /64 under the old setting" "$(passed client '2001:db8:5:1::%x' 20)" 10
sed -i "s/, prefix: {ipv4: 32, ipv6: 64}//" "$RULES/api.yaml"
ctl reload > /dev/null || not_ok "reload"
check_is "after a reload to the default it has none left" "$(passed client '2001:db8:5:1::%x' 20)" 0
check_is "others of its /48 have" "$(passed client '2001:db8:5:%x00::1' 100)" 40
daemon_kill KILL
daemon_run
check_is "nor after kill -9" "$(passed client '2001:db8:5:1::%x' 20) $(passed source '2001:db8:3:%x::2' 100)" "0 0"
ctl rule set api/source prefix.ipv6=64 > /dev/null || not_ok "rule set"
check_is "live: each /64 alone" "$(passed source '2001:db8:3:a%03x::1' 50)" 50
ctl rule set api/source prefix= > /dev/null || not_ok "rule set"
check_is "live: the default again, its /48 still used up" "$(passed source '2001:db8:3:b%03x::1' 50)" 0

lab_done
