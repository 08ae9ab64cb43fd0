#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# boot_judge.sh INTERFACE - run by the machine that boot_prepare.sh made, after its boot: waits until 2000 frames of the
# port without a limit came in, judges the other one, and ends the machine.

counted() {
	nft -j list counter inet count "$1" | sed -E 's/.*"packets": ([0-9]+).*/\1/'
}
property() {
	systemctl show "$1" -p "$2" --value
}
status=0
check() {
	local result=ok

	eval "$2" || { result="not ok" status=1; }
	echo "$result - boot: $1"
}

for ((i = 0; i < 120; i++)); do
	# A start that failed is tried again: the first failure is enough.
	[ "$(property sluiced.service NRestarts)" = 0 ] || break
	free=$(counted free)
	[ "${free:-0}" -lt 2000 ] || break
	sleep 0.5
done
limited=$(counted limited)
check "sluiced runs ($(property sluiced.service ActiveState))" '[ "$(property sluiced.service ActiveState)" = active ]'
check "frames come in from the network's first moment: $free on the port without a limit" '[ "$free" -ge 2000 ]'
check "of the limit of 10 an hour exactly 10 passed: $limited" '[ "$limited" = 10 ]'
up=$(property systemd-networkd.service ExecMainStartTimestampMonotonic)
limits=$(property sluiced.service ActiveEnterTimestampMonotonic)
check "limits were in force $(((up - limits) / 1000)) ms before systemd-networkd was started" '[ "$limits" -le "$up" ]'
check "$1 is limited in native mode" "sluicectl status | grep -q '^$1 .*native'"
check "metrics are served on an address that came with the network" \
	'curl -sf http://192.0.2.2:9190/metrics | grep -q ^sluice_build_info'
check "no ordering cycle" '! journalctl -b --no-pager | grep -i "ordering cycle"'
[ $status = 0 ] || { journalctl -b -u sluiced --no-pager | tail -20; systemctl --no-pager --failed; }
echo $status > /run/out/status
sync
systemctl poweroff -ff
