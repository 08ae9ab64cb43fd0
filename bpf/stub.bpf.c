/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stub.bpf.c - what is attached to an interface, while sluice protects it.
 *
 * It only jumps to its interface's instance of `sluice` through the pinned array `progs`, so a
 * new program replaces the old one by one array update, with libxdp's dispatcher or without
 * (libxdp 1.3.1 can attach and detach, not replace). docs/decisions/0001-stub-and-tail-call.md
 * has what this costs.
 *
 * The slot is read-only data: the verifier sees a constant index, and the JIT emits a direct
 * jump that the kernel patches when the array changes. An empty slot passes everything.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "sluice/abi.h"

const volatile u32 slot;

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, SL_IFACES_MAX);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} progs SEC(".maps");

SEC("sluice/stub")
int sluice_stub(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &progs, slot);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
