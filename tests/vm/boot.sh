#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# boot.sh - run by run.sh as the first process (BOOT=1): a real boot of systemd while a flood (boot_flood.sh) comes in,
# as tests/netns/boot_systemd.sh does it here, under another kernel and with a virtio card.

if [ $$ != 1 ]; then
	echo "boot.sh: not the first process" >&2
	exit 1
fi
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
bash tests/lib/boot_prepare.sh eth0 || exit 1
# Without udevd systemd-networkd waits for it, unless /sys is read-only.
mount -o remount,ro /sys
for module in nf_tables virtio_net; do
	"$vm_here/kmod.sh" modprobe "$module"
done
"$vm_here/kmod.sh" modprobe -q nft_objref	# named counters; later kernels have it within nf_tables
exec /lib/systemd/systemd --unit=boot.target
