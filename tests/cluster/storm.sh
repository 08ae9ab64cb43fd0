#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# No storm when Redis is back: two nodes that let thousands of users through without it flush what they
# counted a little at a time, all of it, and once.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin storm "$@"

USERS=3000

http_rules api <<'YAML'
  - {key: user, limits: 100 requests/d, scope: cluster, on_store_failure: local}
YAML
utc_room 86400 120

# "SECONDS KEYS", often, from its first moment on.
cat > "$LAB/watch.py" <<'PYTHON'
import socket, sys, time

def connect():
    while True:
        try:
            return socket.create_connection(("10.90.0.1", int(sys.argv[1])))
        except ConnectionRefusedError:
            time.sleep(0.01)

print("ready", file=sys.stderr, flush=True)
redis = connect()
replies = redis.makefile("rb")
while True:
    redis.sendall(b"DBSIZE\r\n")
    keys = replies.readline().decode().strip()[1:]
    print(time.monotonic(), keys, flush=True)
    time.sleep(0.02)
PYTHON

redis_start main
for name in a b; do
	node_start $name "deadline: 20ms"
	check_is "$name responds" "$(node $name http_check api user=first)" 200
done
redis_kill main
gone() {
	for name in a b; do
		[ "$(node $name http_check api user=gone) $(node $name metric sluice_store_up)" = "200 0" ] || return
	done
}
check_true "both nodes notice that Redis is gone" wait_for 10 gone
load_bg 1 api user=u 1 $USERS
load_wait
check_is "all pass without it" "$(load_lines | awk '{ print $2 }' | sort | uniq -c | xargs)" "$((2 * USERS)) 200"

python3 "$LAB/watch.py" "${REDIS_PORT[main]}" > "$LAB/watched" 2> "$LAB/watch" &
started
wait_for 10 grep -q ready "$LAB/watch"
redis_again main
flushed() {
	for name in a b; do
		# Each worker connects by itself.
		[ "$(node $name metric sluice_store_breaker_open)" = 0 ] && node $name ctl -o json cluster show | jq -e '.quota.unflushed == 0' > /dev/null || return
	done
}
check_true "all counts are flushed" wait_for 20 flushed
kill "${LAB_PIDS[-2]}"
check "keys" "$(redis main dbsize)" $USERS $((USERS + 100))
calls=$(redis main info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p')
check "$((2 * USERS)) flushes took so many commands" "$calls" 10 $((2 * USERS / 5))
# At first a hundred users a second of each node, and twice as many every tenth of a second.
awk -v end=0.3 '$2 < 10 { began = $1 } $1 - began <= end { keys = $2 } END { print keys + 0 }' \
	"$LAB/watched" > "$LAB/soon"
check "flushed in the first 0.3 s, of $USERS" "$(cat "$LAB/soon")" 1 $((USERS / 2))
[ $LAB_FAILED = 0 ] || tail -n 3 "$LAB/watch" "$LAB/watched"
for user in u1 u2 u$((USERS / 2)) u$USERS; do
	node a request -d "$(check_body api user=$user --peek true)" /v1/check > /dev/null
	check_is "$user is charged once for each request" "$(jq .statuses[0].remaining "$HUB/a/body")" 98
done
lab_done
