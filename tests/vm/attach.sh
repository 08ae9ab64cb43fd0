#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# attach.sh - run by run.sh: the verifier accepts the program within its budget, it attaches, also at MTU
# 9000 and below a bridge, it outlives its process, works beside others behind libxdp's dispatcher, and marks
# reach nft: before Linux 6.6 through a tc filter.
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
status=0
build/tests/bpf/test_budget 2>&1 || status=1
tests/vm/kmod.sh modprobe bridge || exit 1
for test in test_native_and_off_again test_jumbo test_below_a_bridge; do
	build/tests/bpf/test_attach "$test" 2>&1 || status=1
done
build/tests/bpf/test_takeover test_survives_kill 2>&1 || status=1
build/tests/bpf/test_dispatcher 2>&1 || status=1
tests/vm/kmod.sh modprobe nf_tables
tests/vm/kmod.sh modprobe -q nft_objref	# named counters; later kernels have it within nf_tables
bash tests/netns/mark.sh || status=1
exit $status
