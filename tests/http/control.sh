#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The control socket under users who occupy its places: other users, members of control.group and
# root still get responses. And which files a member's configuration may name.

. "$(dirname "$0")/../lib/http.sh"
http_begin control "$@"
if [ "$(id -u)" != 0 ] || ! setpriv --reuid 65533 --regid 65534 --clear-groups true; then
	skip "needs root (other users)"
	exit 0
fi
READERS=$(getent group 65534 | cut -d: -f1) MEMBERS=$(getent group 1 | cut -d: -f1)
CONTROL_MORE="group: $MEMBERS, read_group: $READERS"
http_rules api <<'YAML'
domain: api
descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 10}}]
YAML
# Files of root elsewhere; root's own configuration names two of them.
FAR=$(mktemp -d "${TMPDIR:-/tmp}/sluice-far.XXXXXX") || exit 1
trap 'rm -rf "$FAR"; http_end' EXIT
chmod 755 "$FAR"
echo top-secret | tee "$FAR/secret" "$LAB/secret" > "$FAR/victim"
chmod 600 "$FAR/secret" "$FAR/victim" "$LAB/secret"
ln -s "$FAR/secret" "$LAB/link"
echo 192.0.2.1 | tee "$FAR/roots" > "$LAB/own"
HTTP_TOP="sets: {roots: {file: $FAR/roots}}
block: ['@roots']"
http_daemon <<YAML
  decision_log: {file: $FAR/log}
YAML

# as UID GID COMMAND...
as() { setpriv --reuid "$1" --regid "$2" --clear-groups "${@:3}"; }
# hold UID GID N: N connections that send nothing; prints how many have a place.
hold() {
	# shellcheck disable=SC2016
	setpriv --reuid "$1" --regid "$2" --clear-groups python3 -c '
import socket, sys, time
held = []
for _ in range(int(sys.argv[2])):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.settimeout(0.01)
    held.append(s)
def stays(s):
    try:
        return s.recv(4096) is None
    except socket.timeout:
        return True
    except OSError:
        return False
print(sum(map(stays, held)), flush=True)
time.sleep(600)' "$SOCKET" "$3" > "$LAB/held-$1" &
	echo $! >> "$LAB/holders"
	started
	wait_for 20 test -s "$LAB/held-$1"
	cat "$LAB/held-$1"
}
asks() { as "$1" "$2" "$BIN/sluicectl" -s "$SOCKET" status > "$LAB/out" 2>&1; }
refused() { ! asks "$@"; }
ctl_quiet() { ctl status > "$LAB/out"; }

check_is "one reader holds 16 of 100" "$(hold 65531 65534 100)" 16
check_true "another reader gets a response" asks 65533 65534
check_is "a user without rights gets no place" "$(hold 65530 65530 40)" 0
check_is "two readers" "$(hold 65532 65534 100)" 16
check_true "together they hold all places of readers" refused 65533 65534
check_true "the error names the reason" grep -q "too many clients" "$LAB/out"
check_true "a member of control.group gets a response" asks 65533 1
check_is "a member holds 16" "$(hold 65529 1 100)" 16
check_true "those are the last places of members" refused 65533 1
check_true "root gets a response" ctl_quiet

# ---------------------------------------------------------------- readers who ask for much

xargs kill < "$LAB/holders"
free() { asks 65533 1; }
check_true "places are free again" wait_for 10 free
seq 250000 | awk '{ printf "10.%d.%d.%d\n", $1 / 65536, $1 / 256 % 256, $1 % 256 }' > "$LAB/long"
ctl block load "$LAB/long" > "$LAB/out"
check_is "a list of 250,000 is whole, in pages" "$(as 65531 65534 "$BIN/sluicectl" -s "$SOCKET" -o json block list |
	jq '[.entries[].prefix] | [length, (unique | length)] | join(" ")')" '"250001 250001"'
# 12 readers, each with 300 requests in one piece, which read what comes.
setpriv --reuid 65531 --regid 65534 --clear-groups python3 -c '
import socket, sys, threading
ask = b"{\"command\": \"block list\"}\n{\"command\": \"history sources\", \"args\": {\"from\": 1, \"to\": 80000}}\n"
def run():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(ask * 150)
    while s.recv(1 << 20):
        pass
for _ in range(12):
    threading.Thread(target=run, daemon=True).start()
print(flush=True)
threading.Event().wait()' "$SOCKET" > "$LAB/greedy" &
started
wait_for 10 test -s "$LAB/greedy"
for i in {1..10}; do
	from=$(now)
	asks 65533 1 || not_ok "a member gets no response"
	calc "$(now) - $from"
	echo
done > "$LAB/waited"
check "meanwhile a member waits at most (seconds)" "$(sort -n "$LAB/waited" | tail -1)" 0 2
check_is "and requests are decided" "$(http_check api user=meanwhile)" 200
kill "${LAB_PIDS[-1]}"
ctl block withdraw file > "$LAB/out"

# ---------------------------------------------------------------- files that a member's configuration may name

# tries WHO SED: the configuration, changed so; applied by a member (or root). The output is in $LAB/out.
tries() {
	sed "$2" "$CONFIG" > "$FAR/new.yaml"
	chmod 644 "$FAR/new.yaml"
	if [ "$1" = root ]; then
		ctl apply "${3:-$FAR/new.yaml}" > "$LAB/out" 2>&1
	else
		as 65533 1 "$BIN/sluicectl" -s "$SOCKET" apply "${3:-$FAR/new.yaml}" > "$LAB/out" 2>&1
	fi
}
# is_refused WORDS SED
is_refused() {
	check_true "$1" refuses member "$2"
	check_true "the error names the path, and quotes nothing of it" \
		grep -qE "accepted: regular files, not links, below|is not accepted; sluicectl check|only root's configuration may" "$LAB/out"
	check_is "no content of a file is printed, or logged" \
		"$(cat "$LAB/out" "$LAB/daemon.log" | grep -c top-secret)" 0
}
refuses() { ! tries "$@"; }
check_true "a member may apply a file that names root's files elsewhere" tries member ""
check_true "a member may name a set below the configuration" tries member "s|^sets: {|&own: {file: $LAB/own}, |"
is_refused "a set elsewhere" "s|$FAR/roots|$FAR/secret|"
is_refused "a link to it" "s|$FAR/roots|$LAB/link|"
is_refused "a way round to it" "s|$FAR/roots|$LAB/../${FAR##*/}/secret|"
is_refused "no set, below the configuration" "s|$FAR/roots|$LAB/secret|"
is_refused "a decision log elsewhere" "s|$FAR/log|$FAR/victim|"
is_refused "another file than root named" "s|$FAR/log|$LAB/secret|"
is_refused "a decision log that is new, below the configuration" "s|$FAR/log|$LAB/new.log|"
is_refused "a token of the metrics listener" "s|^metrics: {|&token_file: $FAR/secret, |"
is_refused "rules elsewhere" "s|rules: .*|rules: $FAR|"
is_refused "a token elsewhere" "s|^http:|&\n  callers: [{name: a, token_file: $FAR/secret, may: check}]|"
check_true "root may: a decision log elsewhere" tries root "s|$FAR/log|$FAR/other|"
ctl reload > "$LAB/out"
http_check api user=bob > "$LAB/out"
logged() { [ -s "$FAR/log" ]; }
check_true "root's log is written" wait_for 5 logged
check_is "the other file is unchanged" "$(cat "$FAR/victim")" top-secret
overrides() {
	! as 65533 1 "$BIN/sluicectl" -s "$SOCKET" limit add name=x rate='1 packets/s' \
		"overrides={file: $FAR/secret}" > "$LAB/out" 2>&1
}
check_true "a member's limit set live may not name it either" overrides
check_is "no content of it is printed" "$(grep -c top-secret "$LAB/out")" 0
differs() { ! as 65533 1 "$BIN/sluicectl" -s "$SOCKET" diff "$FAR/new.yaml" > "$LAB/out" 2>&1; }
sed "s|$FAR/roots|$FAR/secret|" "$CONFIG" > "$FAR/new.yaml"
check_true "a member's diff may not name it either" differs
check_is "no content of it is printed, by the third way" "$(grep -c top-secret "$LAB/out")" 0
check_true "the error says who may name it" grep -q "only root's configuration may name it" "$LAB/out"
sed "s|^  listen: .*|  listen: [127.0.0.1:8180, {address: 'unix:$FAR/opened', mode: '0666'}]|" "$CONFIG" > "$FAR/new.yaml"
check_true "a member applies other listeners" as 65533 1 "$BIN/sluicectl" -s "$SOCKET" apply "$FAR/new.yaml"
saves() { as "$1" "$2" "$BIN/sluicectl" -s "$SOCKET" save > "$LAB/out" 2>&1; }
check_true "they may not save them" eval '! saves 65533 1'
check_true "the error names the key" grep -q "http.listen: only root's configuration may change it" "$LAB/out"
daemon_kill TERM
daemon_run
check_true "the applied text is in force after a restart" grep -q "$FAR/new.yaml" <(ctl status)
check_true "its listener is not opened" [ ! -e "$FAR/opened" ]
check_is "root's is" "$(http_check api user=eve)" 200
check_true "a member may save a text with root's settings" tries member ""
check_true "... and does" saves 65533 1
check_true "root returns to the file" ctl reload

# ---------------------------------------------------------------- what a reload cannot change

sed -i 's|listen: \[127.0.0.1:8180|listen: [{address: 127.0.0.1:8180, max_wait: 0s}|' "$CONFIG"
check_true "max_wait: 0s is not the same as none: a reload notes it" eval \
	'ctl reload | grep -q "^note: http.listen has changed: it takes effect when"'

lab_done
