#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# start_errors.sh - a sluiced that cannot start names the cause and what mends it, exits with 1, and leaves
# nothing behind: no program on the interface, no pins, no socket, no process. Then one starts there.

. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/parts.sh"
lab_begin start
lab_link 0
mkdir -p "$LAB/state"
chmod 755 "$LAB"
install -m 755 "$BIN/sluiced" "$LAB/sluiced"
CONFIG_BODY="interfaces: [{name: s0, mode: native}]
limits: [{name: web, rate: 10 packets/s}]"
config_write "$CONFIG" <<< "$CONFIG_BODY"
chmod 644 "$CONFIG"

attached() { ip -n "$NS_S" -j link show s0 | jq '[.[] | select(.xdp)] | length'; }
pins() { find "$PIN" -mindepth 1 2> /dev/null | wc -l; }
# try NAME 'WORDS' COMMAND...: it ends with 1 and these words, in order, and what it found is as before.
try() {
	local name=$1 words=$2 before after

	before="$(attached) $(pins)"
	timeout 20 "${IN_S[@]}" "${@:3}" > "$LAB/out" 2>&1
	check_is "$name: exit" $? 1
	tr '\n' ' ' < "$LAB/out" > "$LAB/line"
	if grep -qE "$words" "$LAB/line"; then
		ok "$name: $(cut -c1-200 "$LAB/line")"
	else
		not_ok "$name: want $words, got: $(cut -c1-400 "$LAB/line")"
	fi
	after="$(attached) $(pins)"
	check_is "$name: programs and pins as before" "$after" "$before"
	check_true "$name: no socket" test ! -e "$SOCKET"
	check_is "$name: no process" "$(pgrep -cf "$LAB/sluiced")" 0
}
SLUICED=("$LAB/sluiced" -c "$CONFIG")

try "not root" 'needs root \(systemctl start sluiced, or sudo\)' \
	setpriv --reuid 65534 --regid 65534 --clear-groups "${SLUICED[@]}"
for cap in bpf perfmon net_admin sys_admin; do
	less=-$cap
	[ $cap = net_admin ] || less=-$cap,-sys_admin
	try "without CAP_${cap^^}" "lacks CAP_${cap^^} .*CapabilityBoundingSet=" \
		setpriv --bounding-set=$less --inh-caps=$less "${SLUICED[@]}"
done
# The request tier alone needs no root, but places of its user's.
mkdir "$LAB/rules.d" "$LAB/roots" "$LAB/mine"
chown 65534 "$LAB/mine"
for place in roots mine; do
	printf '%s\n' "state_dir: $LAB/$place/state" "control: {socket: $LAB/roots/new/control.sock}" \
		"http: {listen: [127.0.0.1:8180], rules: $LAB/rules.d}" > "$LAB/$place.yaml"
	chmod 644 "$LAB/$place.yaml"
done
AS_NOBODY=(setpriv --reuid 65534 --regid 65534 --clear-groups "$LAB/sluiced")
try "state_dir of root" "cannot make state_dir $LAB/roots/state: Permission denied; .*set state_dir to" "${AS_NOBODY[@]}" -c "$LAB/roots.yaml"
try "control.socket of root" "control.socket $LAB/roots/new/control.sock: Permission denied; .*set control.socket to" \
	"${AS_NOBODY[@]}" -c "$LAB/mine.yaml"
otherwise_build
try "an old kernel" 'kernel 5.10.0-33-amd64 is too old .*5.18 or newer' \
	"${OTHERWISE[@]}" OTHERWISE_RELEASE=5.10.0-33-amd64 "${SLUICED[@]}"
# As a container's seccomp filter, or a kernel without it, answers bpf(2); or lockdown, whose file a test writes.
REFUSE=("$REPO/tests/lib/refuse_call.py" bpf)
try "without bpf()" 'Function not implemented.*without bpf\(\): CONFIG_BPF_SYSCALL.*seccomp' "${REFUSE[@]}" ENOSYS "${SLUICED[@]}"
try "bpf() is forbidden" "Operation not permitted.*bpf\\(\\) is forbidden: by a container's seccomp profile.* lockdown is not" \
	"${REFUSE[@]}" EPERM "${SLUICED[@]}"
mkdir "$LAB/security"
# locked MODE COMMAND...: as a kernel with this lockdown.
locked() {
	echo "none integrity confidentiality" | sed "s/$1/[&]/" > "$LAB/security/lockdown"
	LOCKED=(unshare -m bash -c "mount --bind $LAB/security /sys/kernel/security; exec \"\$@\"" -)
}
locked confidentiality
try "lockdown" 'Operation not permitted.*locked down.*/sys/kernel/security/lockdown .*boot with lockdown=integrity' \
	"${LOCKED[@]}" "${REFUSE[@]}" EPERM "${SLUICED[@]}"
for mode in none integrity; do
	locked $mode
	try "lockdown: $mode" 'bpf\(\) is forbidden: .*seccomp.* lockdown is not' "${LOCKED[@]}" "${REFUSE[@]}" EPERM "${SLUICED[@]}"
done
mkdir "$LAB/empty"
try "without BTF" 'no /sys/kernel/btf/vmlinux: .*CONFIG_DEBUG_INFO_BTF' \
	unshare -m bash -c "mount --bind $LAB/empty /sys/kernel/btf; exec $LAB/sluiced -c $CONFIG"
sed "s|^pin_dir:.*|pin_dir: $LAB/nobpf/x|" "$CONFIG" > "$LAB/nobpf.yaml"
try "no BPF file system" "no BPF file system at $LAB/nobpf: mount one \(mount -t bpf" "$LAB/sluiced" -c "$LAB/nobpf.yaml"
READ_ONLY="mount --bind /sys/fs/bpf /sys/fs/bpf && mount -o remount,ro,bind /sys/fs/bpf"
try "a read-only one" 'is read-only: mount -o remount,rw' unshare -m bash -c "$READ_ONLY; exec $LAB/sluiced -c $CONFIG"
# A program that the verifier refuses: with a license that forbids it helpers.
LC_ALL=C sed 's/Dual BSD\/GPL/Proprietary!/g' "$LAB/sluiced" > "$LAB/sluiced-broken"
chmod 755 "$LAB/sluiced-broken"
cmp -s "$LAB/sluiced" "$LAB/sluiced-broken" && not_ok "nothing to break"
BROKEN="the kernel does not take the program: .*verifier refuses"
locked confidentiality
try "a part of it is locked down" 'does not take the program: .*locked down' "${LOCKED[@]}" "$LAB/sluiced-broken" -c "$CONFIG"
try "the verifier refuses" "created the maps .*$BROKEN.* was removed: programs and pins" "$LAB/sluiced-broken" -c "$CONFIG"

# ---- what another has
"${IN_S[@]}" python3 -c '
import socket, time
s = [socket.create_server(("127.0.0.1", p)) for p in (9811, 8180)]
time.sleep(600)' 2> "$LAB/held" &
started
disown
wait_for 5 on_server bash -c 'exec 3<> /dev/tcp/127.0.0.1/8180' 2> "$LAB/held" || not_ok "nobody has the ports"
sed 's/9810/9811/' "$CONFIG" > "$LAB/metrics.yaml"
try "the metrics port is in use" "metrics.listen: cannot bind 127.0.0.1:9811: .*another program has it \('ss -lnp'" \
	"$LAB/sluiced" -c "$LAB/metrics.yaml"
rules_empty
{ cat "$CONFIG"; echo "http: {listen: [127.0.0.1:8180], rules: $LAB/rules}"; } > "$LAB/http.yaml"
try "the HTTP port is in use, after the maps were made" \
	"created the maps .*cannot bind 127.0.0.1:8180: .*another program has it .* was removed: programs and pins" \
	"$LAB/sluiced" -c "$LAB/http.yaml"

# ---- another sluiced
daemon_run
BEFORE=$SOCKET
other() { # NAME SED: a configuration that differs from the running one by SED
	sed "$2" "$CONFIG" > "$LAB/$1.yaml"
	sed -i "s/9810/9812/" "$LAB/$1.yaml"
	echo "$LAB/$1.yaml"
}
SOCKET=$LAB/other.sock
try "the state of a running one" 'another sluiced is running with state_dir .* needs its own state_dir, pin_dir and control.socket' \
	"$LAB/sluiced" -c "$(other state "s|$BEFORE|$SOCKET|")"
try "the pins of a running one" 'another sluiced is running with pin_dir .* needs its own' \
	"$LAB/sluiced" -c "$(other pins "s|$BEFORE|$SOCKET|; s|^state_dir:.*|state_dir: $LAB/state2|")"
SOCKET=$BEFORE
check_is "the running one attends" "$(ctl -o json status | jq -r '.interfaces[0].state')" native
# A failed start of a successor takes nothing away.
daemon_kill TERM
rm -f "$SOCKET"
try "a successor that the verifier refuses" "reusing the maps .*$BROKEN.*limits stay in force" "$LAB/sluiced-broken" -c "$CONFIG"
check_is "its predecessor's limits are attached" "$(attached)" 1
daemon_run
daemon_kill TERM
"${IN_S[@]}" "$LAB/sluiced" -c "$CONFIG" --purge 2> "$LAB/out" || not_ok "purge: $(cat "$LAB/out")"
check_is "--purge leaves nothing" "$(attached) $(pins)" "0 0"

# ---- an interface that is taken
theirs_attach s0
try "another XDP program" "s0 has an XDP program already \\('theirs'\\).*take it off first.* was removed" "${SLUICED[@]}"
ip -n "$NS_S" link set dev s0 xdp off
daemon_run
SOCKET=$LAB/other.sock
try "a name that no BPF file system takes" 'takes no name with a dot' \
	"$LAB/sluiced" -c "$(other dot "s|$BEFORE|$SOCKET|; s|^pin_dir:.*|pin_dir: $PIN.x|; s|^state_dir:.*|state_dir: $LAB/state3|")"
sed "s|^pin_dir:.*|pin_dir: $PIN-other|; s|^state_dir:.*|state_dir: $LAB/state3|" "$(other stub "s|$BEFORE|$SOCKET|")" > "$LAB/second.yaml"
try "another sluiced's stub" "s0 has the stub of another sluiced, with another pin_dir: detach it there first.* was removed" \
	"$LAB/sluiced" -c "$LAB/second.yaml"
check_true "the second one's pins are gone" test ! -e "$PIN-other"
SOCKET=$BEFORE
check_is "the first one is attached" "$(ctl -o json status | jq -r '.interfaces[0].state')" native
lab_done
