#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vlan.sh - run by run.sh: tagged frames to real 802.1Q devices, one in the other. Linux delivers what is
# for them, and none of it that is over a limit (tests/escape, classes tags and vlan).
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
for module in 8021q nf_tables nft_ct; do
	tests/vm/kmod.sh modprobe $module || exit 1
done
status=0
for class in tags vlan; do
	ESCAPE_ARGS="--class $class" bash tests/escape/escape.sh 2>&1 | tee "/tmp/$class"
	grep -q '^not ok' "/tmp/$class" && status=1
	[ "$(grep -c '^ok' "/tmp/$class")" -ge 2 ] || status=1
done
# Without devices no frame of the class is delivered, and nothing is compared.
grep -qE ' [1-9][0-9]* delivered' /tmp/vlan || { echo "not ok - Linux delivered no tagged frame"; status=1; }
exit $status
