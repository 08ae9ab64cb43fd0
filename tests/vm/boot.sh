#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# boot.sh - run by run.sh as the first process (BOOT=1): a real boot of systemd, with the unit as it is installed,
# systemd-networkd, and a flood (boot_flood.sh) that comes from before the machine starts. Two UDP ports: one with
# a limit, and one without, which shows from when on frames come in. nftables, loaded before the network is up,
# counts both behind the limiter.

if [ $$ != 1 ]; then
	echo "boot.sh: not the first process" >&2
	exit 1
fi
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
cp -a /run/out/installed/. /
mkdir -p /etc/sluice /etc/systemd/network /var/lib/sluice /var/log/sluice
rm -rf /etc/systemd/system/* /etc/systemd/network/*
ln -s /dev/null /etc/systemd/system/getty.target
# /tmp is this machine's: nothing to be cleaned.
ln -sf /dev/null /etc/tmpfiles.d/tmp.conf
cat > /etc/sluice/sluice.yaml << 'END'
interfaces: [{name: eth0}]
limits:
  - {name: web, match: {proto: udp, dport: 9}, rate: 10 packets/h, burst: 10}
# An address that comes with the network: it can be listened on before.
metrics: {listen: 192.0.2.2:9190}
END
printf '[Match]\nName=eth0\n[Network]\nAddress=192.0.2.2/24\nLinkLocalAddressing=no\n' \
	> /etc/systemd/network/eth.network
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
# Software emulation needs longer for the verifier than the unit allows.
mkdir -p /etc/systemd/system/sluiced.service.d
printf '[Service]\nTimeoutStartSec=300\nWatchdogSec=0\n' > /etc/systemd/system/sluiced.service.d/slow.conf
cat > /etc/systemd/system/judge.service << END
[Unit]
After=sluiced.service systemd-networkd.service
[Service]
Type=oneshot
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
ExecStart=/bin/bash $PWD/tests/vm/boot_judge.sh
END
cat > /etc/systemd/system/boot.target << 'END'
[Unit]
Requires=basic.target
Wants=count.service sluiced.service systemd-networkd.service judge.service
END
for module in nf_tables virtio_net; do
	"$vm_here/kmod.sh" modprobe "$module"
done
exec /lib/systemd/systemd --unit=boot.target
