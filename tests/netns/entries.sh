#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# entries.sh - blocks that change one by one, with real frames: how long from the command to the first
# packet that is judged by it (printed; the bound has slack for a busy machine); 100000 blocks loaded
# and withdrawn without a gap for others; what was acknowledged survives kill -9.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin entries
lab_link 0
ROUNDS=60 PPS=5000 MANY=100000

daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
limits: [{name: far, match: {dport: 1}, rate: 10 packets/s}]
YAML
sink_start s0
blast_bg "$LAB/one" --src 10.1.5.2 --dst $SERVER4 --pps $PPS --time 60
blast_bg "$LAB/neighbor" --src 10.1.5.3 --dst $SERVER4 --pps 500 --time 60
blast_bg "$LAB/blocked" --src 10.1.6.2 --dst $SERVER4 --pps 500 --time 60
sees() { [ "$(packets_passed s0 "$1")" -gt 100 ]; }
check_true "frames arrive" wait_for 10 sees 10.1.5.2

cat > "$LAB/client.py" <<'PY'
import json, socket, sys, time
path, rounds = sys.argv[1], int(sys.argv[2])
sock = socket.socket(socket.AF_UNIX)
sock.connect(path)
reader = sock.makefile("r")

def run(command, **args):
    begin = time.clock_gettime(time.CLOCK_MONOTONIC)
    sock.sendall((json.dumps({"command": command, "args": args}) + "\n").encode())
    answer = json.loads(reader.readline())
    assert answer["ok"], answer
    return begin, time.clock_gettime(time.CLOCK_MONOTONIC)

for _ in range(rounds):
    begin, end = run("block add", prefix="10.1.5.2")
    time.sleep(0.03)
    del_begin, _ = run("block del", prefix="10.1.5.2")
    print(f"{begin:.6f} {end:.6f} {del_begin:.6f}")
    time.sleep(0.03)
PY
python3 "$LAB/client.py" "$SOCKET" $ROUNDS > "$LAB/rounds" || not_ok "block add and del"

# What is listed while 100000 others come and go, and while the daemon is killed.
ctl block add 10.1.6.2 > /dev/null || not_ok "block add"
gap_from=$(calc "$(now) + 0.01")
awk -v n=$MANY 'BEGIN { print "10.1.6.2"; for (i = 0; i < n; i++)
	printf "10.%d.%d.%d\n", 64 + int(i / 65536), int(i / 256) % 256, i % 256 }' > "$LAB/many"
begin=$(date +%s.%N)
ctl block load --origin feed --for 1h "$LAB/many" > "$LAB/load" || not_ok "block load"
loaded=$(date +%s.%N)
ctl limit set far 'rate=20 packets/s' > /dev/null || not_ok "limit set beside them"
daemon_kill KILL
daemon_run
check "all are listed after kill -9" "$(ctl -o json status | jq .block)" $((MANY + 2)) $((MANY + 2))
ctl explain 10.64.3.4 > "$LAB/explain"
check_true "explain names the origin" grep -q 'blocked  10.64.3.4, feed, until' "$LAB/explain"
withdraw_begin=$(date +%s.%N)
ctl block withdraw feed > "$LAB/withdraw" || not_ok "block withdraw"
withdrawn=$(date +%s.%N)
gap_to=$(now)
check_is "what another listed stays" "$(ctl -o json block list | jq -r '.entries[].prefix')" "10.1.6.2"
echo "# load of $MANY: $(calc "$loaded - $begin") s, withdrawal: $(calc "$withdrawn - $withdraw_begin") s, with the CLI"
check "seconds to load" "$(calc "$loaded - $begin")" 0 10
check "seconds to withdraw" "$(calc "$withdrawn - $withdraw_begin")" 0 10
# A line has a duration and a reason of its own; a file of prefixes withdraws those alone.
printf '%s\n' '# feed' '10.1.9.1 90s brute force' '10.1.9.2 2h' 10.1.9.3 | ctl block load --origin feed --for 1d --reason abuse - \
	> "$LAB/load"
check_is "each line's end and reason" "$(ctl -o json block list | jq -r '.entries[] | select(.origin == "feed") |
	"\(.prefix) \((.left_ns / 1e9 + 1) / 60 | floor) \(.reason)"' | sort | paste -sd,)" \
	"10.1.9.1 1 brute force,10.1.9.2 120 abuse,10.1.9.3 1440 abuse"
check_is "a bad duration is named, and the others hold" "$(printf '10.1.9.4\n\n10.1.9.5 soon # x\n' | ctl block load --origin feed - 2>&1 |
	grep -c "^skipped 1 of 2 lines:$\|^  line 3: invalid duration 'soon'") $(ctl -o json block list | jq '.entries | length')" "2 5"
printf '10.1.9.4\n' | ctl block withdraw feed - > "$LAB/withdraw"
check_is "all of IPv4, in parts" "$(seq -f '%g.0.0.0/8' 0 255 | ctl block load --origin all - 2>&1 | grep -c 'add --force') $(ctl -o json block list |
	jq '.entries | length')" "1 4"
printf '10.1.9.1\n10.1.9.3\n' | ctl block withdraw feed - > "$LAB/withdraw"
check_is "two are withdrawn" "$(ctl -o json block list | jq -r '.entries[] | select(.origin == "feed").prefix')" 10.1.9.2
ctl block withdraw feed > "$LAB/withdraw"
blast_stop
sink_stop s0

cat > "$LAB/judge.py" <<'PY'
import sys
log, rounds, begin, end = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
seen = {"10.1.5.2": [], "10.1.5.3": [], "10.1.6.2": []}
for line in open(log):
    word = line.split()
    if len(word) > 1 and word[1] in seen:
        seen[word[1]].append(float(word[0]))
def within(src, a, b):
    return sum(a <= t < b for t in seen[src])
late, after, total = [], 0, 0
for line in open(rounds):
    began, acknowledged, del_begin = map(float, line.split())
    total += 1
    last = [t for t in seen["10.1.5.2"] if began <= t < del_begin]
    late.append((max(last) - began) * 1e3 if last else 0)
    after += within("10.1.5.2", acknowledged + 0.001, del_begin)
late.sort()
middle, high = late[len(late) // 2], late[int(len(late) * .99)]
print(f"# from the command to the last packet before it holds: median {middle:.2f} ms, p99 {high:.2f} ms")
def report(good, what):
    print(("ok" if good else "not ok") + " - " + what)
report(total > 0 and after == 0, f"no packet passes once a block is acknowledged ({after})")
report(middle < 20, f"a block holds within 20 ms ({middle:.2f}, p99 {high:.2f})")
gap = within("10.1.6.2", begin, end)
report(gap == 0, f"a blocked source never passes through load, kill -9 and withdrawal ({gap})")
report(within("10.1.5.3", begin, end) > 100 * (end - begin), "its neighbor passes throughout")
PY
python3 "$LAB/judge.py" "$LAB/sink.s0" "$LAB/rounds" "$gap_from" "$gap_to" > "$LAB/judged"
grep '^#' "$LAB/judged"
results <(grep -v '^#' "$LAB/judged")
lab_done
