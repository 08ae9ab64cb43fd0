#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# vmtest.sh [VERSION...] - tests/vm/{attach,vlan,tunnels,hotplug,boot}.sh under Debian's kernels (the
# newest 6.1 and 6.12, or those named): that the verifier accepts the programs there; attaching beside
# others behind libxdp's dispatcher, which needs a kernel with freplace; tagged frames to real 802.1Q
# devices; packets behind WireGuard, GRE and other tunnels; CPUs that go offline and come back; and a
# real boot of systemd under a flood. About twelve minutes.

set -u
cd "$(dirname "$0")/.." || exit 1

if [ "$(id -u)" != 0 ]; then
	echo "skip - vmtest: needs root (it downloads kernels with apt)"
	exit 0
fi
kernels=$(tests/vm/setup.sh "$@") || exit 1
failed=0
for kernel in $kernels; do
	echo "== ${kernel##*/}"
	for script in attach vlan tunnels hotplug boot; do
		if SMP=$([ $script != hotplug ] || echo 4) BOOT=$([ $script != boot ] || echo tests/vm/boot_flood.sh) \
			tests/vm/run.sh "$kernel" tests/vm/$script.sh; then
			echo "ok - $script under ${kernel##*/}"
		else
			echo "not ok - $script under ${kernel##*/}"
			failed=1
		fi
	done
done
exit $failed
