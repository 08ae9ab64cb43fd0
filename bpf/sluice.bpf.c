/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sluice.bpf.c - the entry of the packet tier. Read on in datapath.h.
 *
 * One instance is loaded for each interface (config.iface_slot); all share the pinned maps.
 * What is attached is the stub (stub.bpf.c), which tail-calls the instance: so a new program
 * replaces a running one atomically. It jumps on to its second half in the same way, through
 * an array of its own (`stages`): see enum sl_stage.
 */
#include <stddef.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/env.h"
#include "bpf/datapath.h"

SEC("xdp.frags")
int sluice(struct xdp_md *ctx)
{
	return datapath(ctx);
}

SEC("xdp.frags")
int sluice_account(struct xdp_md *ctx)
{
	return datapath_account(ctx);
}

/* The helpers used are not GPL-only, but the kernel requires a known license. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";
