#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# calendar.sh - limits of a month on two nodes with a real Redis, whose clock is set over the month's end. By the zone
# data of one node it ends an hour later: both nodes share the window that began first, and no budget is given twice.
# By each consistency.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin calendar "$@"

gcc -shared -fPIC -o "$LAB/clock.so" "$REPO/tests/lib/preload/clock.c" || not_ok "clock.c does not compile"
truncate -s 8 "$LAB/by"
# set_clock UTC: of Redis; a node reads it in the next reply.
set_clock() {
	python3 -c 'import datetime, struct, sys, time
us = int((datetime.datetime.fromisoformat(sys.argv[2] + "+00:00").timestamp() - time.time()) * 1e6)
open(sys.argv[1], "r+b").write(struct.pack("q", us))' "$LAB/by" "$1"
	check_is "$1: Redis has replied" "$(node a http_check api strict=clock; node b http_check api strict=clock)" 200200
}
MORTAL+=(env LD_PRELOAD="$LAB/clock.so" CLOCK_SET_BY="$LAB/by")
mkdir -p "$LAB/tz/Europe"
cp /usr/share/zoneinfo/Europe/Lisbon "$LAB/tz/Europe/Berlin"

http_rules api <<'YAML'
  - {key: strict, calendar: Europe/Berlin, limits: [200 requests/month], scope: cluster}
  - {key: lease, calendar: Europe/Berlin, limits: [200 requests/month], consistency: {lease: 1s}}
  - {key: back, calendar: Europe/Berlin, limits: [200 requests/month], consistency: {write_back: 100ms}}
YAML
NODE_HTTP='  workers: 1'
redis_start main
node_start a
TZDIR=$LAB/tz node_start b

KINDS="strict lease back"
# passed NODE COUNT USER: of so many requests to each kind.
passed() {
	local kind

	for kind in $KINDS; do
		node "$1" many "$2" api "$kind=$3"
	done
}
# Counts of a write_back are flushed; a lease is returned.
flushed() { sleep 2.5; }

set_clock 2026-06-30T21:50:00
check_is "in June, on one node" "$(passed a 100 bob | xargs)" "100 100 100"
flushed
check_is "the rest, on the other" "$(passed b 150 bob | xargs)" "100 100 100"
flushed
check_is "then none" "$(passed a 20 bob | xargs) $(passed b 20 bob | xargs)" "0 0 0 0 0 0"

set_clock 2026-06-30T22:00:30
flushed
check_is "July begins on one node" "$(passed a 100 bob | xargs)" "100 100 100"
flushed
check_is "and is July on the other, where June has an hour left" "$(passed b 150 bob | xargs)" "100 100 100"
flushed
check_is "then none" "$(passed a 20 bob | xargs) $(passed b 20 bob | xargs)" "0 0 0 0 0 0"
check_is "its neighbor" "$(passed b 20 al | xargs)" "20 20 20"

set_clock 2026-06-30T23:00:30
flushed
check_is "July begins on the other: nothing is given twice" "$(passed b 20 bob | xargs) $(passed a 20 bob | xargs)" "0 0 0 0 0 0"
set_clock 2026-07-31T21:59:00
flushed
check_is "to the end of July" "$(passed a 20 bob | xargs) $(passed b 20 bob | xargs)" "0 0 0 0 0 0"
lab_done
