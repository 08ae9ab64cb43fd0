#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The recipes of docs/recipes.md with their rules (docs/examples/rules) in a real daemon, under
# many clients at once. tests/prop/test_recipes.c tests what takes hours.

. "$(dirname "$0")/../lib/http.sh"
http_begin recipes "$@"

cp "$REPO"/docs/examples/rules/*.yaml "$RULES/"
http_daemon < /dev/null

# recipe_prints RECIPE EXPECTED LINES...
recipe_prints() {
	local recipe=$1 line

	shift
	python3 "$REPO/tests/http/recipes.py" "$recipe" $URL > "$LAB/said" 2>&1
	for line in "$@"; do
		if grep -qxF "$line" "$LAB/said"; then
			ok "$recipe: $line"
		else
			not_ok "$recipe: not '$line': $(tr '\n' ';' < "$LAB/said")"
		fi
	done
}

recipe_prints failures "of 50 wrong guesses at once pass: 3" "of 30 right ones: 30" "then wrong ones: 3"
recipe_prints login "of 1000 sources' guesses reached the application: 10" \
	"the owner was refused: 0 of some: True" \
	"another account from an unknown source: True" "one source, many accounts: 20" \
	"one account, one source: 5" "wait: 3 refused: 5"
gone() { [ "$(metric sluice_http_delayed domain=login rule=unknown)" = 0 ]; }
check_true "login: a client that disconnects leaves the queue" wait_for 5 gone
recipe_prints plans "free bob 10" "pro bob 200" "pro acme more than 200" "odd bob 10"
recipe_prints endpoints "/export 2" "/search 5" "/static/x 30" "/a 20" "/b 20"
recipe_prints hybrid "a user: 20" "elsewhere: 0" "an office: 100"
recipe_prints tokens "reported: 4" "charged by Envoy: 4" "larger than the budget: 1" "within it: 12"
recipe_prints priority "payments lost: 0 of 30" "analytics had work to do: True"

lab_done
