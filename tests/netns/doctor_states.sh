#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# doctor_states.sh - each of doctor's checks of the host is provoked: in a mount namespace, with less rights, or
# as another kernel names itself; it warns with the command that mends it, and the others stay as they are.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin doctor_states
lab_link 0
cat > "$CONFIG" <<'YAML'
interfaces: [{name: s0}]
limits: [{name: web, match: {dport: 80}, rate: 10 packets/s}]
YAML
mkdir "$LAB/empty"
echo 0 > "$LAB/zero"
echo jiffies > "$LAB/jiffies"
cat > "$LAB/uname.c" <<'C'
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
int uname(struct utsname *name)
{
	int r = (int)syscall(SYS_uname, name);
	strcpy(name->release, "5.10.0-33-amd64");
	return r;
}
C
gcc -shared -fPIC -o "$LAB/uname.so" "$LAB/uname.c"

# doctor [COMMAND...]: as COMMAND runs it; the levels of the host's checks, a line each.
doctor() {
	"$@" "$BIN/sluicectl" -s "$SOCKET" doctor -c "$CONFIG" -o json > "$LAB/json" 2> "$LAB/err"
	jq -r '.checks[] | select(.check != "capabilities") | "\(.check) \(.interface // "") \(.level)"' "$LAB/json"
}
# provoke CHECK LEVEL 'MEND' COMMAND...: only this check changes.
provoke() {
	local check=$1 level=$2 mend=$3

	doctor "${@:4}" > "$LAB/levels"
	check_is "$check: level" "$(jq -r --arg c "$check" '[.checks[] | select(.check == $c) | .level][0]' "$LAB/json")" "$level"
	check_true "$check: what mends it" grep -qE "$mend" \
		<(jq -r --arg c "$check" '.checks[] | select(.check == $c) | .mend' "$LAB/json")
	check_is "$check: the others are as before" "$(diff "$LAB/before" "$LAB/levels" | grep -c "^> " )" "${OTHERS:-1}"
}
doctor > "$LAB/before"
in_mounts() { # FILE PLACE
	echo "mount --bind $1 $2; exec \"\$@\""
}
provoke kernel bad 'newer kernel' env LD_PRELOAD="$LAB/uname.so"
provoke BTF bad CONFIG_DEBUG_INFO_BTF unshare -m bash -c "$(in_mounts "$LAB/empty" /sys/kernel/btf)" -
provoke JIT bad 'sysctl -w net.core.bpf_jit_enable=1' unshare -m bash -c "$(in_mounts "$LAB/zero" /proc/sys/net/core/bpf_jit_enable)" -
provoke bpffs bad 'mount -t bpf bpf /sys/fs/bpf' unshare -m bash -c "$(in_mounts "$LAB/empty" /sys/fs/bpf)" -
provoke "clock source" warn clocksource unshare -m bash -c "$(in_mounts "$LAB/jiffies" \
	/sys/devices/system/clocksource/clocksource0/current_clocksource)" -
OTHERS=0 provoke capabilities bad 'CAP_NET_ADMIN|CapabilityBoundingSet|cap-add' setpriv --bounding-set=-net_admin
lab_done
