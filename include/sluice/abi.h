/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abi.h - what the daemon and the XDP program share: every map's key and value, every enum. It is
 * in parts, each with a subject; this is the only one that others include.
 *
 * The layout of pinned maps is pinned with static_asserts: a newer program meets the state
 * that an older one left. Change one of them and SL_ABI_VERSION goes up.
 */
#ifndef SLUICE_ABI_H
#define SLUICE_ABI_H

#include "algo.h"
#include "epoch.h"
#include "events.h"
#include "heavy.h"
#include "key.h"
#include "limit.h"
#include "list.h"
#include "prefix.h"
#include "push.h"
#include "ring.h"
#include "rules.h"
#include "sizes.h"
#include "stats.h"
#include "table.h"
#include "types.h"

#define SL_ABI_VERSION 6

/* ------------------------------------------------------------------ the mark's way to skb->mark */

/* XDP metadata before the frame; bpf/mark.bpf.c turns it into skb->mark. */
struct sl_meta {
	u32 magic;
	u32 mark;
};
#define SL_META_MAGIC 0x736c7563U

/* ------------------------------------------------------------------ the program's own constants */

/* The link header of an interface's frames. */
enum sl_link {
	SL_LINK_ETHERNET,
	SL_LINK_IP, /* no link header: tun, WireGuard, PPP, tunnels */
};

/* Read-only data of the program, set per interface before it is loaded. */
struct sl_config {
	u32 iface_slot;
	u32 fake_clock; /* tests: take the time from the map test_clock */
	u32 table_sets;
	u32 parity;	      /* 0 or 1: which of its slot's two places in `stages` */
	u32 no_refusal_cache; /* tests: each packet is judged in full (bpf/refused.h) */
	u32 link;	      /* enum sl_link */
};

/*
 * `stages`: the programs that an instance jumps to by itself. An interface slot has two places
 * for each, and an instance is put into those that the running one does not use: the packet
 * in hand is in memory of the instance's own, so one must never run into the other's.
 */
enum sl_stage {
	SL_STAGE_ACCOUNT, /* the second half of a packet's way */
	SL_STAGE_AGAIN,	  /* the first: the rules were swapped between the halves */
	SL_STAGE_COUNT,
};
#define SL_STAGES_MAX (SL_STAGE_COUNT * 2 * SL_IFACES_MAX)

static __always_inline u32 sl_stage_at(u32 stage, u32 iface_slot, u32 parity)
{
	return (stage * 2 + parity) * SL_IFACES_MAX + iface_slot;
}

/* test_clock: what sl_config.fake_clock makes the program read. */
struct sl_test_clock {
	u64 mono_ns;
};

#endif
