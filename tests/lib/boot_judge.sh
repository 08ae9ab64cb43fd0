#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# boot_judge.sh INTERFACE - run by the machine that boot_prepare.sh made, after its boot: waits until 2000 frames of the
# port without a limit came in, judges the other one and two restarts, and ends the machine.

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

# Requests on connections of their own during restarts, while a client holds half a request.
ask() {
	until [ -e /run/asked ]; do
		curl -s -m 4 -o /run/response -w '%{http_code}\n' http://127.0.0.1:8180/v1/check \
			-d '{"domain": "api", "descriptors": [{"entries": [{"key": "user", "value": "a"}]}]}'
	done > /run/asks
}
ask &
began=$(date +%s%3N)
for i in 1 2; do
	exec 3<> /dev/tcp/127.0.0.1/8180
	printf 'POST /v1/check HTTP/1.1\r\nHos' >&3
	systemctl restart sluiced || status=1
done
took=$(($(date +%s%3N) - began))
touch /run/asked
wait $!
check "$(grep -c 200 /run/asks) requests during two restarts are decided, and no other is there: $(grep -vc 200 /run/asks)" \
	'[ "$(grep -c 200 /run/asks)" -ge 20 ] && ! grep -qv 200 /run/asks'
check "no process of sluiced had to be killed, in $took ms" '! journalctl -b -u sluiced --no-pager | grep -qi "timed out\|killing"'
check "still exactly 10 passed" '[ "$(counted limited)" = 10 ]'
check "no ordering cycle" '! journalctl -b --no-pager | grep -i "ordering cycle"'
[ $status = 0 ] || { journalctl -b -u sluiced --no-pager | tail -20; systemctl --no-pager --failed; }
echo $status > /run/out/status
sync
systemctl poweroff -ff
