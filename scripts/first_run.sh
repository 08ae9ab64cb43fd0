#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# first_run.sh TEMPLATE FILE - the configuration of a fresh installation: TEMPLATE with the interface of the
# default route. An existing FILE stays as it is.

set -eu
template=$1
file=$2

[ ! -e "$file" ] || exit 0
# IPv4: destination 0, and up (flag 1). IPv6: ::/0, by an interface other than lo.
interface=$(awk 'NR > 1 && $2 == "00000000" && $4 ~ /[13579BDF]$/ { print $1; exit }' /proc/net/route 2> /dev/null || true)
[ -n "$interface" ] || interface=$(awk '$1 ~ /^0+$/ && $2 == "00" && $NF != "lo" { print $NF; exit }' \
	/proc/net/ipv6_route 2> /dev/null || true)
mkdir -p "$(dirname "$file")"
if [ -n "$interface" ]; then
	sed "s/^interfaces: .*/interfaces: [{name: $interface}]/" "$template" > "$file.new"
	echo "sluice: $file limits $interface in shadow mode: limits count what they would drop, and drop nothing."
	echo "sluice: to enforce one: sluicectl limit set per-source mode=enforce; sluicectl save"
else
	cp "$template" "$file.new"
	echo "sluice: there is no default route: name the interfaces to limit in $file"
fi
chmod 644 "$file.new"
mv "$file.new" "$file"
