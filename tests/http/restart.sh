#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Listeners are handed over: 20 restarts under load, half of them by kill -9, refuse no connection;
# an orderly restart responds on every open connection. Behind real proxies no request is without a
# decision, whatever connections are open. Sockets of a socket unit are used; those of removed
# listeners are returned to the store.

. "$(dirname "$0")/../lib/http.sh"
http_begin restart "$@"
. "$REPO/tests/lib/proxy.sh"

http_rules api <<'YAML'
domain: api
descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]
YAML
http_config <<YAML
  listen: [127.0.0.1:8180, '[::1]:8180', 127.0.0.1:8280, unix:$UNIX]
  spoe: [127.0.0.1:8182]
YAML

mkfifo "$LAB/to" "$LAB/from"
mkdir -p "$LAB/state"
python3 "$REPO/tests/lib/supervisor.py" --unit=127.0.0.1:8280=web -- \
	"$BIN/sluiced" -c "$CONFIG" < "$LAB/to" > "$LAB/from" 2> "$LAB/daemon.log" &
started
SUPERVISOR=$!
exec 7> "$LAB/to" 8< "$LAB/from"
send_command() {
	echo "$*" >&7
	read -r -t 30 ANSWER <&8
}

# Each request on a connection of its own, and one connection that is kept, over TCP and the Unix
# socket. Counted are responses, refused connections, and connections that ended without a response.
cat > "$LAB/load.py" <<'PYTHON'
import http.client, json, socket, sys, threading, time

body = json.dumps({"domain": "api", "descriptors": [{"entries": [{"key": "user", "value": "a"}]}]})
counts = {"ok": 0, "refused": 0, "cut": 0, "kept_ok": 0, "kept_cut": 0, "other": 0}
lock, stop = threading.Lock(), threading.Event()

def count(name):
    with lock:
        counts[name] += 1

class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(sys.argv[1])

def connect(unix):
    return Unix("localhost") if unix else http.client.HTTPConnection("127.0.0.1", 8180, timeout=20)

def ask(connection, prefix):
    try:
        connection.request("POST", "/v1/check", body)
        reply = connection.getresponse()
        reply.read()
        count(prefix + "ok" if reply.status == 200 else "other")
        return True
    except (ConnectionRefusedError, FileNotFoundError):
        count("refused")
    except (ConnectionError, http.client.HTTPException, socket.timeout):
        count(prefix + "cut")
    connection.close()
    return False

def fresh(unix):
    while not stop.is_set():
        connection = connect(unix)
        ask(connection, "")
        connection.close()
        time.sleep(0.001)

def kept(unix):
    connection = connect(unix)
    while not stop.is_set():
        if not ask(connection, "kept_"):
            connection = connect(unix)
        time.sleep(0.001)

threads = [threading.Thread(target=run, args=(unix,)) for run in (fresh, kept) for unix in (False, True)]
for thread in threads:
    thread.start()
for line in sys.stdin:
    with lock:
        print(json.dumps(counts), flush=True)
        for name in counts:
            counts[name] = 0
stop.set()
for thread in threads:
    thread.join()
PYTHON

send_command start
check_is "sluiced is ready" "$ANSWER" ready
send_command store
check_is "it has put its sockets into the store" "$ANSWER" \
	"http-127.0.0.1_8180 http-127.0.0.1_8182 http-[__1]_8180 http-unix_${UNIX//:/_} web"
check_is "a socket unit's socket is served" "$(request http://127.0.0.1:8280/readyz)" 200
check_is "so is a socket of IPv6" "$(request 'http://[::1]:8180/readyz')" 200

mkfifo "$LAB/load-to"
python3 "$LAB/load.py" "$UNIX" < "$LAB/load-to" >> "$LAB/load" &
started
exec 6> "$LAB/load-to"
counts() {
	echo >&6
	wait_for 10 test -s "$LAB/load"
	COUNTS=$(cat "$LAB/load")
	: > "$LAB/load"
}
sleep 0.3

# ---------------------------------------------------------------- orderly restarts

slowest=0
for _ in {1..10}; do
	send_command stop TERM
	[[ $ANSWER == "ended 0 "* ]] || not_ok "it ended otherwise: $ANSWER"
	slowest=$(awk -v a="$slowest" -v b="${ANSWER##* }" 'BEGIN { print (a > b ? a : b) }')
	send_command start
	[ "$ANSWER" = ready ] || not_ok "not ready: $ANSWER"
	sleep 0.1
done
counts
check "10 orderly restarts: responses" "$(jq .ok <<< "$COUNTS")" 20 1000000
check_is "no connection refused" "$(jq .refused <<< "$COUNTS")" 0
check_is "no connection cut off" "$(jq .cut <<< "$COUNTS")" 0
check_is "no other response" "$(jq .other <<< "$COUNTS")" 0
check "responses on connections that were kept" "$(jq .kept_ok <<< "$COUNTS")" 20 1000000
check_is "each kept connection ends with Connection: close" "$(jq .kept_cut <<< "$COUNTS")" 0
check "the slowest stop, seconds" "$slowest" 0 4

# ---------------------------------------------------------------- behind proxies

# Clients of proxies that refuse a request without a decision by 503, three a port, each busy. "early" are those
# that a proxy refused before its time was over: HAProxy waits half a second, the others, if they got no CPU
# meanwhile, 50 ms for a connection and half a second for a decision. "late" are the others. "gap"
# is the longest time without an answer of sluiced, and "idle" the same in seconds of a machine without other
# load: while n processes are ready to run on each CPU, a second counts as 1/n.
cat > "$LAB/clients.py" <<'PYTHON'
import collections, http.client, os, sys, threading, time

lock, counts, longest = threading.Lock(), collections.Counter(), {"gap": 0, "idle": 0}

def client(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    while True:
        began = time.monotonic()
        connection.request("GET", "/", headers={"X-API-Key": "a"})
        reply = connection.getresponse()
        reply.read()
        with lock:
            counts["%d %d" % (port, reply.status)] += 1
            if reply.status != 200:
                took = time.monotonic() - began
                counts["early" if took < (0.45 if port == 8092 else 0.05) else "late"] += 1
                print("%d %d after %.3f s" % (port, reply.status, took), file=sys.stderr, flush=True)

def ready_on_each_cpu():
    with open("/proc/loadavg") as load:
        return max(1, int(load.read().split()[3].split("/")[0]) / os.cpu_count())

def measure_gap():
    while True:
        began, ready = time.monotonic(), ready_on_each_cpu()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", 8180, timeout=20)
            connection.request("GET", "/readyz")
            connection.getresponse().read()
            connection.close()
        except OSError:
            pass
        took = time.monotonic() - began
        with lock:
            longest["gap"] = max(longest["gap"], took)
            longest["idle"] = max(longest["idle"], took * 2 / (ready + ready_on_each_cpu()))
        time.sleep(0.005)

for port in sys.argv[1:]:
    for _ in range(3):
        threading.Thread(target=client, args=(int(port),), daemon=True).start()
threading.Thread(target=measure_gap, daemon=True).start()
for line in sys.stdin:
    with lock:
        print(" ".join("%s %s" % item for item in [*sorted(counts.items()), *longest.items()]), flush=True)
        counts.clear()
        longest.update(gap=0, idle=0)
PYTHON

application_start
nginx_start nginx-closed.conf 8090
caddy_start Caddyfile-closed 8091
haproxy_start haproxy-closed.cfg 8092
mkfifo "$LAB/clients-to" "$LAB/clients-from"
python3 "$LAB/clients.py" 8090 8091 8092 < "$LAB/clients-to" > "$LAB/clients-from" 2>> "$LAB/clients.err" &
started
exec 9> "$LAB/clients-to" 5< "$LAB/clients-from"

# Connections that nobody ends: without a byte, and in the middle of a request or a frame.
hang() {
	exec {IDLE}<> /dev/tcp/127.0.0.1/8180 {HALF}<> /dev/tcp/127.0.0.1/8180
	exec {QUIET}<> /dev/tcp/127.0.0.1/8182 {PIECE}<> /dev/tcp/127.0.0.1/8182
	printf 'POST /v1/check HTTP/1.1\r\nHos' >&"$HALF"
	printf '\0\0\1' >&"$PIECE"
}
hang_up() {
	exec {IDLE}>&- {HALF}>&- {QUIET}>&- {PIECE}>&-
}

field_of() {
	sed -n "s/.*\<$1 \([0-9.]*\).*/\1/p" <<< "$ANSWER"
}
# decided WORDS: each client was answered, and only by decisions.
decided() {
	local port

	echo >&9
	read -r -t 30 ANSWER <&5
	for port in 8090 8091 8092; do
		check "$1: port $port passed" "$(sed -n "s/.*\<$port 200 \([0-9]*\).*/\1/p" <<< "$ANSWER")" 20 1000000
	done
	check_is "$1: none is refused before its proxy has waited" "$(field_of early)" ""
	[ -z "$(field_of early)" ] || sed 's/^/# /' "$LAB/clients.err"
	: > "$LAB/clients.err"
	# A machine may be so busy that the proxies' half second is over.
	if [ "$(field_of late)" ]; then
		check "$1: $(field_of late) had to wait longer for an answer" "$(field_of gap)" 0.45 100
	fi
	check "$1: seconds without an answer, if the machine were idle" "$(field_of idle)" 0 0.45
}

slowest=0
for _ in 1 2; do
	hang
	sleep 0.2
	send_command stop TERM
	[[ $ANSWER == "ended 0 "* ]] || not_ok "it ended otherwise: $ANSWER"
	slowest=$(awk -v a="$slowest" -v b="${ANSWER##* }" 'BEGIN { print (a > b ? a : b) }')
	send_command start
	[ "$ANSWER" = ready ] || not_ok "not ready: $ANSWER"
	hang_up
done
decided "restarts with idle and half-open connections"
check "the slowest stop, seconds" "$slowest" 0 4

# ---------------------------------------------------------------- kill -9

for _ in {1..10}; do
	send_command stop KILL
	send_command start
	[ "$ANSWER" = ready ] || not_ok "not ready: $ANSWER"
done
counts
check "10 times kill -9: responses" "$(jq .ok <<< "$COUNTS")" 20 1000000
check_is "no connection refused" "$(jq .refused <<< "$COUNTS")" 0
check_is "no other response" "$(jq .other <<< "$COUNTS")" 0
check "at most one connection cut off each time and each client" "$(jq .cut <<< "$COUNTS")" 0 20
exec 6>&-

# ---------------------------------------------------------------- other listeners

sed -i "s/127.0.0.1:8180, '\[::1\]:8180'/127.0.0.1:8180/" "$CONFIG"
send_command stop TERM
send_command start
send_command store
check_is "the socket of a removed listener is not kept" "$ANSWER" \
	"http-127.0.0.1_8180 http-127.0.0.1_8182 http-unix_${UNIX//:/_} web"
check_is "nothing listens there" "$(request 'http://[::1]:8180/readyz')" 000
check_is "the other listeners go on" "$(request /readyz)" 200

echo quit >&7
wait "$SUPERVISOR"

# ---------------------------------------------------------------- without a service manager

refuses() {
	"$BIN/sluiced" -c "$CONFIG" 2>&1 | grep -q 'another sluiced is running with state_dir'
}
daemon_run
check_true "a second sluiced is refused" refuses
# HAProxy repeats a refused connect() after a second, and a request may wait for it that long.
again() {
	sleep 1.2
	: > "$LAB/clients.err"
	echo >&9
	read -r -t 30 ANSWER <&5 && [[ $ANSWER == *"8092 200"* && $ANSWER != *" 503 "* ]]
}
check_true "the proxies find sluiced again" wait_for 20 again
for _ in 1 2; do
	hang
	sleep 0.2
	BEFORE=$DAEMON_PID
	"$BIN/sluiced" -c "$CONFIG" --replace 2>> "$LAB/daemon.log" &
	DAEMON_PID=$!
	disown $DAEMON_PID
	is_replaced() { ! kill -0 "$BEFORE" && ctl -o json status | jq -e ".pid == $DAEMON_PID"; }
	check_true "sluiced --replace takes its place" wait_for 20 is_replaced
	hang_up
done
decided "sluiced --replace with idle and half-open connections"
check_is "its Unix socket is served" "$(request --unix-socket "$UNIX" /readyz)" 200
daemon_kill TERM
check_is "and removed at the end" "$(ls "$UNIX" "$LAB/state/handover.sock" 2> /dev/null)" ""
lab_done
