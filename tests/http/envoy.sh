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

cp "$REPO"/docs/examples/rules.d/* "$RULES"
http_daemon <<'YAML'
  grpc: [127.0.0.1:8181]
YAML
utc_room 60 15	# 30 searches a minute
node "$REPO/tests/js/envoy.js" "$LAB/envoy.json" RUNNING || LAB_FAILED=1
daemon_kill TERM
for name in envoy envoy-closed; do
	node "$REPO/tests/js/envoy.js" "$LAB/$name.json" STOPPED || LAB_FAILED=1
done
lab_done
