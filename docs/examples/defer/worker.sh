#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# worker.sh NAME COMMAND... - runs COMMAND with the reference of each request that sluice releases, one at a
# time. Any number of workers, each with another NAME, share the requests. It must not ask sluice again: the
# release was charged.
#
# The request is acknowledged if COMMAND succeeds. Else, or if this dies, the next worker that is free takes it
# over after RETRY (as `retry` of the rule); so COMMAND may see a reference twice.
#
#     REDIS         how to reach Redis: redis-cli and options; REDISCLI_AUTH has a password
#     QUEUE         the rule: DOMAIN/PATH

name=$1
shift
read -ra redis <<< "${REDIS:-redis-cli}"
stream="sluice:defer:{${QUEUE:-api/report}}:released"
retry_ms=$((${RETRY:-60} * 1000))

# An entry has the lines: stream or cursor, id, "ticket", TICKET, "reference", REFERENCE, "until", time in ms.
while :; do
	mapfile -t entry < <("${redis[@]}" --raw XAUTOCLAIM "$stream" workers "$name" $retry_ms 0 COUNT 1)
	[ "${entry[2]:-}" = ticket ] ||
		mapfile -t entry < <("${redis[@]}" --raw XREADGROUP GROUP workers "$name" COUNT 1 BLOCK 2000 STREAMS "$stream" '>')
	if [ "${entry[2]:-}" != ticket ]; then
		sleep 0.1		# no entry, or no Redis
	elif "$@" "${entry[5]}"; then
		"${redis[@]}" XACK "$stream" workers "${entry[1]}" > /dev/null
	fi
done
