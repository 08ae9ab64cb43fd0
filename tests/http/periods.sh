#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Periods other than a minute or an hour: ten requests each 100 ms, of a client that never stops.

. "$(dirname "$0")/../lib/http.sh"
http_begin periods "$@"

http_rules api <<'YAML'
  - {key: user, limits: [10 requests/100ms]}
YAML
http_daemon <<'YAML'
  workers: 1
YAML

python3 - > "$LAB/out" <<'PYTHON'
import http.client, json, time
from collections import Counter
connection = http.client.HTTPConnection("127.0.0.1", 8180)
body = json.dumps({"domain": "api", "descriptors": [{"entries": [{"key": "user", "value": "bob"}]}]})
answers, passed, end, policy = Counter(), 0, time.time() + 2, set()
while time.time() < end:
    connection.request("POST", "/v1/check", body)
    answer = connection.getresponse()
    answer.read()
    answers[int(time.time() * 10)] += 1
    passed += answer.status == 200
    policy.add(answer.getheader("RateLimit-Policy"))
# Each window with an answer, and the one before the first, may have passed ten; one of twenty answers has.
full = sum(count >= 20 for count in answers.values())
print("most", passed <= 10 * (max(answers) - min(answers) + 2))
print("least", full >= 3 and passed >= 10 * full)
print("policy", policy)
print("#", passed, "passed,", full, "full windows of", len(answers))
PYTHON
check_is "no window passes more than ten" "$(grep most "$LAB/out")" "most True"
check_is "each that has twenty requests passes ten" "$(grep least "$LAB/out")" "least True"
check_is "the header's window is a whole second, not 0" "$(grep policy "$LAB/out")" "policy {'\"user\";q=10;w=1'}"
tail -n 1 "$LAB/out"
check_is "a period below 10 ms is refused" "$(printf 'domain: b\ndescriptors:\n  - {key: k, limits: [1 requests/5ms]}\n' > "$LAB/b.yaml"
	"$BIN/sluicectl" rule test -c "$LAB/b.yaml" --domain b --entries k=1 2>&1 | grep -c 'b.yaml:3:23.*period too short; accepted: 10ms or more')" 1

lab_done
