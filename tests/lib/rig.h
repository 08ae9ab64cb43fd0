/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rig.h - a data plane with limits given as structs, for tests that send millions of frames.
 *
 * A frame is one flat template whose few fields that matter are patched in place: building
 * each from a description would take longer than judging it.
 */
#ifndef TESTS_LIB_RIG_H
#define TESTS_LIB_RIG_H

#include "packet/dataplane/dp_sim.h"

struct rig {
	struct dp *dp;
	int prog_fd; /* of the BPF program; -1: dp_sim */
	u32 cpus;    /* that leases are divided by */
	struct sl_now now;
	u64 utc_offset_ns;
	u64 generation;
	u32 slot[SL_LIMITS_MAX]; /* of each limit, after rig_apply() */
	struct list_def block;	 /* goes into the next rig_apply() */
	char pin_dir[64];
};

void rig_open_sim(struct rig *rig, u64 buckets, u32 cpus, u32 lease_entries);
/*
 * The BPF program, by a fake clock or the kernel's. Where that is not possible, the test is skipped
 * with the reason; under CI=true it fails. `lease_entries` 0: as shipped.
 */
void rig_open_bpf(struct rig *rig, u64 buckets, bool fake_clock, u32 lease_entries);
/* From now on each packet is judged in full. Of the BPF program, with a fake clock. */
void rig_no_refusal_cache(struct rig *rig);
void rig_close(struct rig *rig);

/* Monotonic time and the offset to UTC from now on; of no use with the kernel's clock. */
void rig_set_time(struct rig *rig, u64 mono_ns, u64 utc_offset_ns);
/* The kernel's clock into rig->now. */
void rig_read_time(struct rig *rig);

/* These limits, and for the rest what files have. */
struct policy rig_policy(struct rig *rig, struct limit_def *limit, size_t count);
/* Compiles and applies. The image is the caller's. */
struct sl_image *rig_install(struct rig *rig, const struct policy *policy);
/* Both, and sweeps, as the daemon does. */
void rig_apply(struct rig *rig, struct limit_def *limit, size_t count);
struct sl_limit_stats rig_limit_stats(struct rig *rig, u32 limit);
struct sl_global_stats rig_global_stats(struct rig *rig);
/* The stored bucket state of limit number `index` for an IPv4 source; 0 where there is none. */
u64 rig_bucket_state(struct rig *rig, u32 index, u32 src);
const struct sl_limit *rig_limit(struct rig *rig, u32 index);

/* A limit per source, enforced, exact; the test changes the fields that it needs. */
struct limit_def rig_limit_def(const char *name, struct rate rate, u64 burst, enum sl_algo algo);

#define RIG_FRAME_MAX 1536
struct rig_frame {
	u8 ip_align[2]; /* the IP header is at a multiple of 4 */
	u8 data[RIG_FRAME_MAX];
	u32 length;
};

struct rig_packet {
	bool v6;
	u64 src;     /* IPv4: the address; IPv6: the top half, under 2001:db8::/32 */
	u64 src_low; /* IPv6: the lower half */
	u8 proto;    /* 6 or 17 */
	u16 dport;
	u8 tcp_flags;
	u32 length; /* of the frame, 74..RIG_FRAME_MAX */
};

void rig_frame_make(struct rig_frame *frame, const struct rig_packet *packet);
/* Changes the source of an IPv4 frame. */
void rig_frame_src(struct rig_frame *frame, u32 src);

/* Judges one frame on one CPU (dp_sim) or this one (BPF). True: it passed. */
bool rig_passes(struct rig *rig, u32 cpu, struct rig_frame *frame);
/* BPF: the same, `repeat` times by one system call: only the counters have the verdicts. */
void rig_repeat(struct rig *rig, struct rig_frame *frame, u32 repeat);

#endif
