#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# docs/examples/envoy*.yaml: the requests Envoy would send, played by tests/js/envoy.js (there
# is no Envoy here); with the daemon stopped each fails as its comments state.

. "$(dirname "$0")/../lib/http.sh"
http_begin envoy "$@"

for name in envoy envoy-closed; do
	python3 -c 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)' \
		< "$REPO/docs/examples/$name.yaml" > "$LAB/$name.json" || not_ok "$name.yaml is no YAML"
done
# Only the behavior without a response differs.
check_is "the two differ in their failure mode alone" \
	"$(diff <(grep -v '^ *#' "$REPO/docs/examples/envoy.yaml") \
		<(grep -v '^ *#' "$REPO/docs/examples/envoy-closed.yaml") | grep '^[<>]' |
		sed 's/^[<>] *//; s/:.*//' | sort -u | xargs)" "failure_mode_deny status_on_error"

# failover/envoy.yaml replaces parts of both: the same cluster with two servers.
python3 - "$REPO/docs/examples/failover/envoy.yaml" "$LAB/envoy.json" > "$LAB/failover" <<'PYTHON'
import json, sys, yaml

failover, envoy = yaml.safe_load(open(sys.argv[1])), json.load(open(sys.argv[2]))
two, = failover["clusters"]
one = next(c for c in envoy["static_resources"]["clusters"] if c["name"] == two["name"])
endpoints = [e["endpoint"]["address"]["socket_address"]["port_value"] for l in two["load_assignment"]["endpoints"]
             for e in l["lb_endpoints"]]
health = two["health_checks"][0]["grpc_health_check"]["service_name"]
for cluster in (one, two):
    cluster["load_assignment"].pop("endpoints")
for key in ("health_checks", "outlier_detection"):
    two.pop(key)
print(one == two, failover["grpc_service"]["envoy_grpc"]["cluster_name"] == two["name"], endpoints, health)
PYTHON
check_is "failover/envoy.yaml has the same cluster" "$(cut -d' ' -f1-4 "$LAB/failover")" "True True [8181, 8281]"

cp "$REPO"/docs/examples/rules.d/* "$RULES"
http_daemon <<'YAML'
  grpc: [127.0.0.1:8181]
YAML
check_is "and asks for a health that is there" "$(node -e '
	const { Client } = require(process.argv[1]), client = new Client("127.0.0.1:8181");
	client.call("health", "Check", { service: process.argv[2] }, { deadline: Date.now() + 10000 }).then((answer) => {
		console.log(answer.error || answer.status);
		client.close();
	})' "$REPO/tests/js/rls" "$(cut -d' ' -f5 "$LAB/failover")")" SERVING
utc_room 60 15	# 30 searches a minute
node "$REPO/tests/js/envoy.js" "$LAB/envoy.json" RUNNING || LAB_FAILED=1
daemon_kill TERM
for name in envoy envoy-closed; do
	node "$REPO/tests/js/envoy.js" "$LAB/$name.json" STOPPED || LAB_FAILED=1
done
lab_done
