/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_sim.h - the packet tier in memory: the stages of bpf/, compiled for user space.
 *
 * No root, no kernel; the caller sets the time and the number of CPUs. Tests run the same scenarios
 * on it and on dp_bpf.
 */
#ifndef SLUICE_DP_SIM_H
#define SLUICE_DP_SIM_H

#include "bpf/packet.h"
#include "packet/dataplane/dataplane.h"

/*
 * `lease_entries`: size of the lease cache. It is direct-mapped: a newer key evicts an older one on
 * all CPUs, as an LRU map under pressure does.
 */
int dp_sim_open(u64 table_buckets, u32 cpus, u32 lease_entries, struct dp **ret);

void dp_sim_set_time(struct dp *dp, u64 mono_ns);

/* The host's sockets from now on, as found by the program's look-ups. Not copied. */
struct sim_socket {
	struct socket_tuple tuple;
	enum socket_state state;
	u32 rcv_nxt, rcv_wnd; /* TCP, connected: next sequence number, window */
};
void dp_sim_set_sockets(struct dp *dp, const struct sim_socket *socket, u32 count);

/* What the frames of an interface slot begin with; SL_LINK_ETHERNET at first. */
void dp_sim_set_link(struct dp *dp, u32 iface_slot, enum sl_link link);

/* The length of a frame's linear part, the rest is in fragments; 0: all is linear. */
void dp_sim_set_linear(struct dp *dp, u32 bytes);

/* Without it each packet is judged in full, which must make no difference. */
void dp_sim_refusal_cache(struct dp *dp, bool on);

struct sim_verdict {
	bool drop;
	bool marked;
	u32 mark;
	/* What the stages found out on the way: */
	enum sl_action action;
	enum sl_reason reason;
	u16 limit_id; /* SL_R_OVER: of the limit */
	u8 family;    /* enum sl_family */
	bool has_source;
	struct sl_addr source;
};

/*
 * Judges one frame of `length` bytes on one CPU and interface slot; it may be changed (DSCP). Its
 * IP header is at a multiple of 4: with an Ethernet header `frame` is two bytes behind one.
 */
struct sim_verdict dp_sim_packet(struct dp *dp, u32 cpu, u32 iface_slot, u8 *frame, u32 length);

#endif
