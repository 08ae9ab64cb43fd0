#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# first_run.sh TEMPLATE FILE - the configuration of a fresh installation: TEMPLATE with the interface of the
# default route, the web server's group, and an empty rules.d beside FILE. An existing FILE stays as it is.

set -eu
template=$1
file=$2

[ ! -e "$file" ] || exit 0
# IPv4: destination 0, and up (flag 1). IPv6: ::/0, by an interface other than lo.
interface=$(awk 'NR > 1 && $2 == "00000000" && $4 ~ /[13579BDF]$/ { print $1; exit }' /proc/net/route 2> /dev/null || true)
[ -n "$interface" ] || interface=$(awk '$1 ~ /^0+$/ && $2 == "00" && $NF != "lo" { print $NF; exit }' \
	/proc/net/ipv6_route 2> /dev/null || true)
dir=$(cd "$(dirname "$file")" 2> /dev/null && pwd || echo "$(dirname "$file")")
mkdir -p "$dir/rules.d"
# Debian's www-data, or what others have; without one only root may ask.
group=
for name in www-data nginx http apache; do
	! getent group $name > /dev/null || { group=", group: $name"; break; }
done
http="s|, group: www-data|$group|; s|/etc/sluice/rules.d|$dir/rules.d|"
if [ -n "$interface" ]; then
	sed "s/^interfaces: .*/interfaces: [{name: $interface}]/; $http" "$template" > "$file.new"
	echo "sluice: $file limits $interface in shadow mode: limits count what they would drop, and drop nothing."
	echo "sluice: to enforce one: sluicectl limit set per-source mode=enforce; sluicectl save"
else
	sed "$http" "$template" > "$file.new"
	echo "sluice: there is no default route: name the interfaces to limit in $file"
fi
chmod 644 "$file.new"
mv "$file.new" "$file"
