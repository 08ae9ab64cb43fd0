#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# After a power cut the file of the HTTP tier's counts is what it was at some instant, taken while the
# daemon wrote to it: a daemon that starts with such a copy continues its counts.

. "$(dirname "$0")/../lib/http.sh"
http_begin powercut "$@"

http_rules api <<'YAML'
domain: api
descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 10}}]
YAML
http_daemon < /dev/null
state=$(dirname "$(find "$LAB" -name http.state)")
passed=0
try() {
	local i

	passed=0
	for ((i = 0; i < $1; i++)); do
		[ "$(http_check api user="$2")" != 200 ] || passed=$((passed + 1))
	done
}
try 7 bob
check_is "seven of ten a day" $passed 7
cp "$state/http.state" "$LAB/copy"
try 3 bob
daemon_kill KILL
cp "$LAB/copy" "$state/http.state"
# As of another boot: its blocks are verified.
printf 'another boot' | dd of="$state/http.state" bs=1 seek=48 conv=notrunc 2> /dev/null
daemon_run
try 10 bob
check_is "the counts up to then hold: three more pass" $passed 3
try 12 eve
check_is "another user has ten" $passed 10
lab_done
