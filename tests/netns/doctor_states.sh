#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# doctor_states.sh - each of doctor's checks is provoked: in a mount namespace, with less rights, by what happens
# to a daemon, or where this machine has no such thing as another one answers (tests/lib/preload/otherwise.c); it
# warns with the command that mends it, and the others stay as they are. doctor.sh has those of a new host.

. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/parts.sh"
lab_begin doctor_states
lab_link 0
lab_link 1
cat > "$CONFIG" <<'YAML'
interfaces: [{name: s0}]
limits: [{name: web, match: {dport: 80}, rate: 10 packets/s}]
YAML
FILE=$CONFIG
mkdir "$LAB/empty" "$LAB/security"
echo 0 > "$LAB/zero"
echo jiffies > "$LAB/jiffies"
otherwise_build
# Whether this machine's clock is synchronized is not ours to say.
export OTHERWISE_NTP="0 1"
AS=()

# doctor [COMMAND...]: as COMMAND runs it, all checks into $LAB/json; their levels, a line each, but of capabilities.
doctor() {
	"${AS[@]}" "${OTHERWISE[@]}" "$@" "$BIN/sluicectl" -s "$SOCKET" doctor -c "$FILE" -o json > "$LAB/json" 2> "$LAB/err"
	jq -r '.checks[] | select(.check != "capabilities") | "\(.check) \(.interface // "") \(.level)"' "$LAB/json"
}
# level CHECK [INTERFACE]; found, mend: likewise.
of() {
	jq -r --arg of "$1" --arg check "$2" --arg interface "${3:-}" \
		'[.checks[] | select(.check == $check and (.interface // "") == $interface) | .[$of]][0] // "none"' "$LAB/json"
}
level() { of level "$@"; }
found() { of found "$@"; }
mend() { of mend "$@"; }
# provoke CHECK[:INTERFACE] LEVEL 'MEND' COMMAND...: only this check changes.
provoke() {
	local check=${1%%:*} interface= level=$2 mend=$3

	[ "$1" = "$check" ] || interface=${1#*:}
	doctor "${@:4}" > "$LAB/levels"
	check_is "$1: level" "$(level "$check" $interface)" "$level"
	check_true "$1: what mends it" grep -qE -- "$mend" <<< "$(mend "$check" $interface)"
	check_is "$1: the others are as before" "$(diff "$LAB/before" "$LAB/levels" | grep -c "^> " )" "${OTHERS:-1}"
}
# mended CHECK[:INTERFACE] LEVEL: by the command that it names.
mended() {
	on_server $(mend "${1%%:*}" "${1#*:}") > "$LAB/out" 2>&1
	doctor > "$LAB/levels"
	check_is "$1: mended" "$(level "${1%%:*}" "${1#*:}")" "$2"
}

# ---- the host
doctor > "$LAB/before"
in_mounts() { # FILE PLACE
	echo "mount --bind $1 $2; exec \"\$@\""
}
provoke kernel bad 'newer kernel' env OTHERWISE_RELEASE=5.10.0-33-amd64
provoke BTF bad CONFIG_DEBUG_INFO_BTF unshare -m bash -c "$(in_mounts "$LAB/empty" /sys/kernel/btf)" -
provoke JIT bad 'sysctl -w net.core.bpf_jit_enable=1' unshare -m bash -c "$(in_mounts "$LAB/zero" /proc/sys/net/core/bpf_jit_enable)" -
provoke bpffs bad 'mount -t bpf bpf /sys/fs/bpf' unshare -m bash -c "$(in_mounts "$LAB/empty" /sys/fs/bpf)" -
provoke "clock source" warn clocksource unshare -m bash -c "$(in_mounts "$LAB/jiffies" \
	/sys/devices/system/clocksource/clocksource0/current_clocksource)" -
OTHERS=0 provoke capabilities bad 'CAP_NET_ADMIN|CapabilityBoundingSet|cap-add' setpriv --bounding-set=-net_admin
provoke NTP warn 'apt-get install chrony' env OTHERWISE_NTP="5 64"
provoke "bpf()" bad 'CONFIG_BPF_SYSCALL' "$REPO/tests/lib/refuse_call.py" bpf ENOSYS
check_is "it names the error" "$(found 'bpf()')" "Function not implemented"
echo 'none integrity [confidentiality]' > "$LAB/security/lockdown"
provoke "bpf()" bad 'without lockdown=confidentiality' "$REPO/tests/lib/refuse_call.py" bpf EPERM \
	unshare -m bash -c "$(in_mounts "$LAB/security" /sys/kernel/security)" -
check_is "lockdown is named" "$(found 'bpf()')" "Operation not permitted; lockdown: none integrity [confidentiality]"

# ---- an interface with a program, and one of the file alone
AS=("${IN_S[@]}")
daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
table: {buckets: 100}
limits: [{name: slow, match: {proto: udp}, rate: 10 packets/h, burst: 10, algorithm: token-bucket}]
YAML
sed 's/{name: s0, mode: native}/{name: s0, mode: native}, {name: s1}/' "$CONFIG" > "$LAB/both.yaml"
FILE=$LAB/both.yaml
doctor > "$LAB/before"
check_is "what s0 and the table are" "$(level attached s0) $(level 'other programs' s0) $(level 'VLAN stripping' s0)" "ok ok ok"
OTHERS=2 provoke driver:s0 warn 'mode: generic works' env OTHERWISE_DRIVER=e1000
OTHERS=2 provoke "LRO, GRO:s0" warn 'ethtool -K s0 lro off' env OTHERWISE_LRO=1
OTHERS=2 provoke losses:s0 warn 'ethtool -g s0' env OTHERWISE_LOST=7
check_is "how many" "$(found losses s0)" "7 frames lost by the card before XDP"
on_server ethtool -K s0 rxvlan on
provoke "VLAN stripping:s0" bad 'ethtool -K s0 rxvlan off'
mended "VLAN stripping:s0" ok
theirs_attach s1
provoke "other programs:s1" warn 'ip link set dev s1 xdp off'
check_true "it has its number" grep -q 'a program is attached (id [1-9][0-9]*)' <<< "$(found 'other programs' s1)"
check_is "sluice's own is none" "$(level 'other programs' s0)" ok
ip -n "$NS_S" link set dev s1 xdp off

# ---- the table: forged sources fill it
check_true "what fills the table is foreseen" grep -q 'limit slow: full after [0-9]* packets from forged sources' <<< "$(found table)"
check_is "before" "$(level table)" warn
blast "$LAB/sent" --src 11.0.0.0/16 --sequential 1000 --dst $SERVER4 --count 11000
full() { doctor > "$LAB/levels"; [ "$(level table)" = bad ]; }
check_true "a full table" wait_for 10 full
check_true "is mended by a larger one" grep -qE '^table: \{buckets: [0-9]+K\} \([0-9]+ MB\), then restart sluiced$' <<< "$(mend table)"

# ---- the attach helper has exited
check_is "pins" "$(level pins)" ok
helper=$(pgrep -P "$(ctl status -o json | jq .pid)")
kill -KILL $helper
exited() { doctor > "$LAB/levels"; [ "$(level pins)" = bad ]; }
check_true "without its helper the daemon attaches nothing" wait_for 5 exited
check_is "which is said" "$(found pins), $(mend pins)" "the attach helper has exited, systemctl restart sluiced"
daemon_kill TERM
FILE=$CONFIG
doctor > "$LAB/levels"
check_is "without the daemon limits hold where the program is attached" "$(level interfaces)" ok
daemon_purge
doctor > "$LAB/levels"
check_is "and nowhere without it" "$(level interfaces): $(found interfaces)" \
	"bad: no program is attached to s0: its packets meet none of the 1 limits"

# ---- a listener that proxies do not reach, and a cluster's store
rules_empty
head -c 32 /dev/urandom | base64 > "$LAB/secret"
chmod 600 "$LAB/secret"
FILE=$CONFIG
daemon_start <<YAML
interfaces: []
http: {listen: [127.0.0.1:8180], rules: $LAB/rules}
cluster: {node: a, secret_file: $LAB/secret, redis: {urls: ['redis://127.0.0.1:6399']}}
YAML
doctor > "$LAB/levels"
check_is "a listener" "$(level listener)" ok
check_is "a store that is not there" "$(level cluster): $(found cluster), $(mend cluster)" \
	"bad: the store is unavailable, sluicectl cluster show has the error of each server"
AS=("${IN_C[@]}")
doctor > "$LAB/levels"
check_is "the listener from another network namespace" "$(level listener): $(found listener)" \
	"bad: 127.0.0.1:8180 does not accept: Connection refused"
lab_done
