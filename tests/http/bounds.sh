#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What one caller may use of what all share: limits that its requests carry (classes of the counters'
# file), series of values, and what a scrape of the most of them costs.

. "$(dirname "$0")/../lib/http.sh"
http_begin bounds "$@"

echo 0123456789abcdef-one > "$LAB/one"
echo 0123456789abcdef-two > "$LAB/two"
http_rules api <<'YAML'
  - {key: user, rate_limit: {unit: hour, requests_per_unit: 2}}
  - {key: named, detailed_metric: true, values: plain, rate_limit: {unit: hour, requests_per_unit: 2}}
YAML
METRICS_LISTEN='127.0.0.1:9810, max_values: 100K'
http_daemon <<YAML
  workers: 1
  callers:
    - {name: one, token_file: $LAB/one, may: [check, report]}
    - {name: two, token_file: $LAB/two, may: [check, report]}
YAML

python3 - > "$LAB/out" <<'PYTHON'
import http.client, json

def post(path, token, body):
    connection.request("POST", path, json.dumps(body), {"X-Sluice-Token": "0123456789abcdef-" + token})
    answer = connection.getresponse()
    answer.read()
    return answer.status

def limited(token, numbers, unit):
    return post("/json", token, {"domain": "own", "descriptors": [
        {"entries": [{"key": "k", "value": "v%d" % n}], "limit": {"requestsPerUnit": n, "unit": unit}}
        for n in numbers]})

connection = http.client.HTTPConnection("127.0.0.1", 8180)
for first in range(1, 70000, 32):
    limited("one", range(first, first + 32), "DAY")
print("two", [limited("two", [3], "YEAR") for _ in range(5)])
print("rule", [post("/v1/check", "two", {"domain": "api", "descriptors": [
    {"entries": [{"key": "user", "value": "bob"}]}]}) for _ in range(4)])
for first in range(0, 100000, 5000):
    post("/v1/report", "one", [{"domain": "api", "descriptors": [
        {"entries": [{"key": "named", "value": "value-%d" % n}]}]} for n in range(first, first + 5000)])
PYTHON
check_is "one caller's 70000 limits leave another its own" "$(grep two "$LAB/out")" "two [200, 200, 200, 429, 429]"
check_is "rules keep their limits" "$(grep rule "$LAB/out")" "rule [200, 200, 429, 429]"
check_true "a scrape of 100K values ends" "${IN_S[@]}" curl -s -m 20 -o "$LAB/scrape" http://127.0.0.1:9810/metrics
check_is "it has each of them" "$(grep -c 'sluice_decisions_total.*value="value-' "$LAB/scrape")" 100000
check_is "each once" "$(grep -o 'value="value-[0-9]*"' "$LAB/scrape" | sort -u | wc -l)" 100000

lab_done
