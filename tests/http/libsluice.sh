#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# libsluice's client and a daemon, from Python: admitted, refused, retried when the daemon says, reports, a
# child of fork(), the example of libsluice(3), a daemon that is killed and started again, one that hangs. tests/unit/client/test_client.c has each response.

. "$(dirname "$0")/../lib/http.sh"
http_begin libsluice "$@"

http_rules api <<'YAML'
  - {key: user, limits: ['5 requests/h'], algorithm: sliding-log}
  - {key: user, value: fast, limits: ['1 requests/s'], algorithm: token-bucket, burst: 1}
  - {key: user, value: both, limits: ['100 requests/h'], algorithm: sliding-log}
  - {key: user, value: both-child, limits: ['100 requests/h'], algorithm: sliding-log}
  - {key: user, value: queued, limits: ['2 requests/s'], algorithm: token-bucket, burst: 1, on_limit: {wait: 20s, queue: 10}}
YAML
http_daemon < /dev/null

coproc PYTHON { python3 "$REPO/tests/http/libsluice.py" "$REPO/build/client/libsluice.so.0" "$UNIX"; }
started $PYTHON_PID
# call COMMAND...: sets code, admitted, left, after, took
call() {
	echo "$*" >&"${PYTHON[1]}"
	read -r -t 60 code admitted left after took <&"${PYTHON[0]}" || code=silent
}

for n in 4 3 2 1 0; do
	call check bob 1 5
	check_is "admitted, $n left" "$code $admitted $left" "0 1 $n"
done
call check bob 1 5
check_is "refused" "$code $admitted" "EAGAIN 0"
check "the daemon's Retry-After, with its jitter" "$after" 3500 3961
call check bob 6 5
check_is "more than the limit never fits" "$code $admitted" "ERANGE 0"
call check "$(printf '%5000000s' | tr ' ' x)" 1 20
check_is "a value of 5 MB is refused, not an error" "$code $admitted $left" "ERANGE 0 0"
call check ann 2 5
check_is "another user, two hits" "$code $admitted $left" "0 1 3"

call report ann 3
check_is "a report" "$code" 0
call check ann 1 5
check_is "it is charged" "$code" EAGAIN
call report ann -1
call check ann 1 5
check_is "a refund" "$code" 0

call check fast 1 20
call check fast 1 20 retry
check_is "refused, retried, admitted" "$code $admitted" "0 1"
check "not before Retry-After" "$took" 1 15
call check fast 1 0.3 retry
check_is "no time for a retry: refused at once" "$code" EAGAIN
call check queued 1 20
call check queued 1 20
check_is "the daemon delays its response" "$code $admitted" "0 1"
call both eve
check_is "a limiter here and the daemon" "$code" 0
check "three units of ten a second" "$admitted" 0.19 15

# Each has connections of its own, and ids of reports: with the parent's one report would be taken for the other.
call fork both 100
check_is "parent and child get their own answers" "$code $admitted" "100 100"
call check forked 1 5
check_is "both reports are charged" "$code $left" "0 2"

awk '/^\.Bd -literal/ { show = ++seen == 2; next } /^\.Ed/ { show = 0 } show { gsub(/\\en/, "\\n"); print }' \
	"$REPO/docs/man/libsluice.3" | sed "s|/run/sluice/http.sock|$UNIX|; s|\"auth\"|\"api\"|" > "$LAB/example.c"
cc -Wall -Werror -I"$REPO/user/client" -o "$LAB/example" "$LAB/example.c" "$REPO/build/client/libsluice.so.0" || exit 1
for n in 4 3 2 1 0; do
	check_is "the manual's example" "$(LD_LIBRARY_PATH=$REPO/build/client "$LAB/example" tom)" "yes, $n left"
done
check_is "refused" "$(LD_LIBRARY_PATH=$REPO/build/client "$LAB/example" tom)" "no"
sed 's/"user"/"nothing"/' "$LAB/example.c" > "$LAB/none.c"
cc -Wall -Werror -I"$REPO/user/client" -o "$LAB/none" "$LAB/none.c" "$REPO/build/client/libsluice.so.0" || exit 1
check_is "without a limit" "$(LD_LIBRARY_PATH=$REPO/build/client "$LAB/none" tom)" "yes, no limit was met"

# Killed: where nobody listens a client that fails open does not wait; one that fails closed retries.
kill -KILL "$DAEMON_PID"
wait_for 10 daemon_gone
call check eve 1 2
check_is "no daemon: no decision, fails open" "$code $admitted" "ECONNREFUSED 1"
check "at once" "$took" 0 0.3
echo "check eve 1 60 closed" >&"${PYTHON[1]}"
sleep 0.3
daemon_run
read -r -t 60 code admitted left after took <&"${PYTHON[0]}"
check_is "the daemon is back within the retries" "$code $admitted" "0 1"
call check bob 1 5
check_is "who was refused still is" "$code $admitted" "EAGAIN 0"

# A daemon that hangs.
stand_still "$DAEMON_PID"
call check eve 1 0.5
check_is "a daemon that hangs: fails open" "$code $admitted" "ETIMEDOUT 1"
check "at the deadline" "$took" 0.5 10
call check eve 1 5
check_is "the next call" "$code $admitted" "ETIMEDOUT 1"
check "does not wait for its own" "$took" 0 0.3
kill -CONT "$DAEMON_PID"
goes_on() {
	call check eve 1 20
	[ "$code $admitted" = "0 1" ]
}
check_true "and goes on" wait_for 5 goes_on
exec {PYTHON[1]}>&-
lab_done
