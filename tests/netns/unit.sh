#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# unit.sh - the unit file: its score by systemd-analyze, and sluiced works within its restrictions: the
# system calls, capabilities, address families and read-only files that they leave. There may be
# no systemd to run it, so tests/netns/sandbox.c stands in.

. "$(dirname "$0")/../lib/netns.sh"
if ! command -v systemd-analyze > /dev/null; then
	skip "needs systemd-analyze"
	exit 0
fi
lab_begin unit
lab_link 0

UNIT=$LAB/sluiced.service
sed "s|@PREFIX@|/usr|; s|@SYSCONFDIR@|/etc|g" "$REPO/scripts/sluiced.service" > "$UNIT"
score=$(SYSTEMD_COLORS=0 systemd-analyze security --offline=true "$UNIT" 2> /dev/null |
	sed -n 's/.*Overall exposure level[^:]*: \([0-9.]*\).*/\1/p')
check "systemd-analyze security" "${score:-none}" 0 4.0
check_is "no core dumps, and of /sys only the pins are written" \
	"$(grep -E '^(LimitCORE|ReadOnlyPaths)=' "$UNIT" | tr '\n' ' ')" "LimitCORE=0 ReadOnlyPaths=/proc/sys /sys "
check_is "a reload needs no kill" "$(grep -c '^ExecReload=.*kill' "$UNIT")" 0

# ---------------------------------------------------------------- how it is built

# A build with sanitizers has checks of its own.
for program in $([ -n "${SLUICE_BUILD:-}" ] || echo sluiced sluicectl); do
	readelf -hdlW "$BIN/$program" > "$LAB/elf"
	readelf -sW "$BIN/$program" > "$LAB/symbols"
	check_true "$program: PIE" grep -qE 'Type: +DYN' "$LAB/elf"
	check_true "$program: RELRO" grep -q GNU_RELRO "$LAB/elf"
	check_true "$program: bound at start" grep -qE 'BIND_NOW|Flags:.* NOW' "$LAB/elf"
	check_true "$program: no executable stack" grep -qE 'GNU_STACK.* RW ' "$LAB/elf"
	check_true "$program: stack protector" grep -q __stack_chk_fail "$LAB/symbols"
	check_true "$program: FORTIFY" grep -qE '__(memcpy|snprintf|vsnprintf|printf|fprintf)_chk' "$LAB/symbols"
done

# ---------------------------------------------------------------- sluiced within its restrictions

python3 "$REPO/tests/lib/unit_calls.py" "$UNIT" > "$LAB/calls"
check "allowed system calls" "$(wc -l < "$LAB/calls")" 250 400
caps=$(sed -n 's/^CapabilityBoundingSet=//p' "$UNIT" | tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g')
real=$BIN/sluiced
mkdir "$LAB/bin" "$LAB/rules"
ln -s "$BIN/sluicectl" "$LAB/bin"
cat > "$LAB/bin/sluiced" <<SH
#!/bin/bash
# Files are read-only but for those of the lab (as ReadWritePaths=) and /dev, /proc, /sys.
exec unshare -m -- bash -c 'mount --bind "$LAB" "$LAB" && mount --bind / / 2> /dev/null
	mount -o remount,bind,ro / || echo "not read-only"
	umask 0027
	exec "$TOOLS/netns/sandbox" "$LAB/calls" /usr/bin/setpriv --bounding-set -all,$caps "$real" "\$@"' sluiced "\$@"
SH
chmod +x "$LAB/bin/sluiced"
BIN=$LAB/bin
cat > "$LAB/rules/api.yaml" <<'YAML'
domain: api
descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 3}}]
YAML
HTTP="http: {listen: [127.0.0.1:8180, 'unix:$LAB/http.sock'], rules: $LAB/rules, decision_log: {file: $LAB/decisions}}"
daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
limits:
  - {name: flood, match: {src: 10.1.1.0/24}, rate: 100 packets/s, burst: 100}
$HTTP
YAML
check_is "it is attached" "$(metric sluice_interface_info interface=s0 mode=native)" 1
status=$(grep -E '^(Seccomp|CapBnd|CapEff):' "/proc/$DAEMON_PID/status" | tr '\t\n' ' ')
echo "# $status"
sink_start s0
blast_bg "$LAB/flood" --src 10.1.1.2 --dst "$SERVER4" --pps 2000 --time 3
dropping() { [ "$(metric sluice_limit_packets_total limit=flood verdict=drop)" -gt 500 ]; }
check_true "packets over the limit are dropped" wait_for 10 dropping
ask() {
	on_server curl -s -o /dev/null -w '%{http_code} ' "$@" -d \
		'{"domain":"api","descriptors":[{"entries":[{"key":"user","value":"bob"}]}]}'
}
check_is "requests are decided" "$(for _ in 1 2 3 4; do ask http://127.0.0.1:8180/v1/check; done)" \
	"200 200 200 429 "
check_is "on the Unix socket, too" "$(ask --unix-socket "$LAB/http.sock" http://s/v1/check)" "429 "
check_true "a limit is changed" ctl limit set flood rate='200 packets/s'
check_true "the change is saved" ctl save
check_is "it is in the file" "$(grep -c '200 packets/s' "$CONFIG")" 1
# What ExecReload= runs, with the lab's socket.
sed -i 's|200 packets/s|300 packets/s|' "$CONFIG"
check_true "a reload by sluicectl" "$BIN/sluicectl" -s "$SOCKET" $(sed -n 's|^ExecReload=[^ ]*||p' "$UNIT")
check_is "the reload is in force" "$(ctl limit show flood | grep -c '300 packets/s')" 1
check_true "it detaches" ctl detach s0
check_true "and attaches" ctl attach s0
logged() { [ -s "$LAB/decisions" ]; }
check_true "it writes its log" wait_for 5 logged
daemon_kill TERM
daemon_run
check_is "a new daemon has the same attachment" "$(metric sluice_interface_info interface=s0 mode=native)" 1

# ---------------------------------------------------------------- its helper

helper=$(pgrep -P "$DAEMON_PID")
check_is "the helper was run, not only forked" "$(tr '\0' ' ' < "/proc/$helper/cmdline")" "sluiced-attach $PIN "
# The first address of the program, which an address space of the same fork would share.
base() { head -n 1 "/proc/$1/maps"; }
check_true "in an address space of its own" test "$(base "$helper")" != "$(base "$DAEMON_PID")"
links() { readlink "/proc/$1"/fd/* | grep -E '^(socket|/)' | sort -u; }
check_is "with no descriptor of the daemon but the log" "$(comm -12 <(links "$helper") <(links "$DAEMON_PID") |
	grep -vE "^(/dev/null|$(readlink "/proc/$DAEMON_PID/fd/0" "/proc/$DAEMON_PID/fd/1" "/proc/$DAEMON_PID/fd/2" | paste -sd'|'))$")" ""
stand_still "$helper"
daemon_kill TERM
check_is "sluiced ends no earlier than its helper" "$(kill -0 "$helper" 2>&1 | grep -c 'No such process')" 1
check_is "nothing was refused" "$(grep -ciE 'not permitted|read-only|not read-only|denied' "$LAB/daemon.log")" 0

lab_done
