#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The clients of docs/clients.md (docs/examples/clients): twenty of each language at once against 5
# requests a second, three requests each. All finish, with under 3 refusals for each success.

. "$(dirname "$0")/../lib/http.sh"
http_begin clients "$@"

http_rules clients <<'YAML'
  - {key: bash, limits: ['5 requests/s'], algorithm: token-bucket, burst: 5}
  - {key: python, limits: ['5 requests/s'], algorithm: token-bucket, burst: 5}
  - {key: javascript, limits: ['5 requests/s'], algorithm: token-bucket, burst: 5}
  - {key: never, limits: ['5 requests/s'], algorithm: token-bucket, burst: 5}
YAML
# And the rules that the proxies' examples use, unchanged.
cp "$REPO/docs/examples/rules.d/api.yaml" "$RULES/"
http_daemon < /dev/null
check_is "docs/examples/rules.d: an API key passes" "$(http_check api user=bob path=/search)" 200
check_is "its own rule applies" "$(header RateLimit-Policy)" '"user/path=/search";q=30;w=60'
http_check api user=bob > "$LAB/out"
check_is "another path has the rule of the key" "$(header RateLimit-Policy)" '"user";q=10;w=1, "hourly";q=5000;w=3600'

clients=$REPO/docs/examples/clients
address="$URL/forward-auth?domain=clients&d="
{ cat "$clients/api.sh"; echo 'for _ in 1 2 3; do api "$1" > /dev/null || exit 1; done'; } > "$LAB/bash"
{ cat "$clients/api.py"; printf 'import sys\nfor _ in range(3):\n    api(sys.argv[1]).read()\n'; } > "$LAB/python"

# all LANGUAGE COMMAND...: how many of twenty finish
all() {
	local language=$1 pids=() pid finished=0 _

	shift
	for _ in $(seq 20); do
		timeout 60 "$@" "$LAB/$language" "$address$language=all" 2>> "$LAB/$language.err" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" && finished=$((finished + 1)); done
	echo $finished > "$LAB/$language.finished"
}
# Twenty in one process: starting twenty processes of Node.js takes the machine longer than the test.
{
	cat "$clients/api.js"
	echo 'const one = async () => { for (let i = 0; i < 3; i++) if (!(await api(process.argv[2])).ok) return 0; return 1; };'
	echo 'Promise.all(Array.from({ length: 20 }, one)).then((all) => console.log(all.reduce((a, b) => a + b)));'
} > "$LAB/javascript"
all bash bash & started
all python python3 & started
timeout 60 node "$LAB/javascript" "$address"javascript=all > "$LAB/javascript.finished" 2> "$LAB/javascript.err" & started
wait "${LAB_PIDS[@]}"

for language in bash python javascript; do
	passed=$(metric sluice_decisions_total domain=clients "rule=$language" verdict=ok)
	refused=$(metric sluice_decisions_total domain=clients "rule=$language" verdict=over_limit)
	check_is "$language: clients that finish: $(head -c 200 "$LAB/$language.err")" "$(cat "$LAB/$language.finished")" 20
	check "$language: requests that passed" "$passed" 60 60
	check "$language: refusals for each" "$(calc "$refused / $passed")" 0.01 2.99
done

# A request that can never pass gets an error without a time to try again.
began=$SECONDS
bash "$LAB/bash" "${address}never=all&hits=6"
check_is "bash: a request that can never pass" $? 1
check "the client ends at once" $((SECONDS - began)) 0 3
lab_done
