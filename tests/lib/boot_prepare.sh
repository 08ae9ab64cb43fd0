#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# boot_prepare.sh INTERFACE - makes what is at / boot as a real machine does, with the unit as it is installed (from
# /run/out/installed), systemd-networkd, and INTERFACE, which gets 192.0.2.2/24. A flood comes from before the
# boot to two UDP ports: one with a limit, and one without, which shows from when on frames come in.
# nftables, loaded before the network is up, counts both behind the limiter. boot_judge.sh judges, writes to
# /run/out/said and /run/out/status, and ends the machine. The first process goes on as `systemd
# --unit=boot.target`. For a root of its own only (tests/vm/boot.sh, tests/netns/boot_systemd.sh).

set -e
interface=$1
judge=$(dirname "$(readlink -f "$0")")/boot_judge.sh
[ -d /run/out/installed ] || { echo "boot_prepare.sh: not in a root of its own" >&2; exit 1; }
cp -a /run/out/installed/. /
mkdir -p /etc/sluice /etc/systemd/network /var/lib/sluice /var/log/sluice
rm -rf /etc/systemd/system/* /etc/systemd/network/*
ln -s /dev/null /etc/systemd/system/getty.target
# /tmp is another machine's: nothing to be cleaned.
ln -sf /dev/null /etc/tmpfiles.d/tmp.conf
cat > /etc/sluice/sluice.yaml << END
interfaces: [{name: $interface}]
limits:
  - {name: web, match: {proto: udp, dport: 9}, rate: 10 packets/h, burst: 10}
# An address that comes with the network: it can be listened on before.
metrics: {listen: 192.0.2.2:9190}
http: {listen: [127.0.0.1:8180], rules: /etc/sluice/rules.d}
END
mkdir -p /etc/sluice/rules.d
echo '{domain: api, descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]}' \
	> /etc/sluice/rules.d/api.yaml
printf '[Match]\nName=%s\n[Network]\nAddress=192.0.2.2/24\nLinkLocalAddressing=no\n' "$interface" \
	> /etc/systemd/network/wire.network
cat > /etc/count.nft << 'END'
table inet count {
	counter limited {}
	counter free {}
	chain seen {
		type filter hook prerouting priority raw;
		udp dport 9 counter name limited
		udp dport 10 counter name free
	}
}
END
cat > /etc/systemd/system/count.service << 'END'
[Unit]
DefaultDependencies=no
Before=network-pre.target sluiced.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f /etc/count.nft
END
# The verifier may need longer than the unit allows: software emulation, a machine that tests in parallel.
mkdir -p /etc/systemd/system/sluiced.service.d
printf '[Service]\nTimeoutStartSec=300\nWatchdogSec=0\n' > /etc/systemd/system/sluiced.service.d/slow.conf
cat > /etc/systemd/system/judge.service << END
[Unit]
After=sluiced.service systemd-networkd.service
[Service]
Type=oneshot
StandardOutput=append:/run/out/said
StandardError=append:/run/out/said
ExecStart=/bin/bash $judge $interface
END
cat > /etc/systemd/system/boot.target << 'END'
[Unit]
Requires=basic.target
Wants=count.service sluiced.service systemd-networkd.service judge.service
END
