/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * judge.h - one configuration that judges what is replayed: the product's own compile, simulated
 * data plane and decision core, with the input's time.
 */
#ifndef SLUICE_REPLAY_JUDGE_H
#define SLUICE_REPLAY_JUDGE_H

#include "config/policy.h"
#include "packet/dataplane/dp_sim.h"
#include "replay/tally.h"

/* Monotonic time of the first packet or request: every algorithm can look back from it. */
#define JUDGE_BEGIN_NS (7 * 86400 * SL_NS_PER_SEC)

/* A limit of packets, or a rule of requests: its counters. */
struct judge_limit {
	const char *name;
	char *rate;	  /* as it is written; to be freed */
	const char *mode; /* enforce, shadow, off */
	u64 count[OUTCOME_COUNT];
	u64 soft; /* of those that passed */
	u64 bans;
};

/* ------------------------------------------------------------------ packets */

struct packet_judge {
	struct policy *policy;
	struct sl_image *image;
	struct dp *dp;
	u32 iface_slot;
	u64 utc_offset_ns;
	u64 swept_ns;		 /* when expired buckets and bans were removed */
	u64 bans[SL_LIMITS_MAX]; /* of bans that are removed */
};

/* `policy` is the caller's. `interface` NULL: the first of the configuration. */
int packet_judge_open(struct policy *policy, const char *interface, enum sl_link link, u64 utc_ns,
		      struct packet_judge **ret, struct sl_err *err);
void packet_judge_close(struct packet_judge *judge); /* NULL is fine */
/* Judges a frame, which it may change; `mono_ns` never goes back. */
struct sim_verdict packet_judge_frame(struct packet_judge *judge, u64 mono_ns, u8 *frame,
				      u32 length);
/*
 * How much of a limit per source the source has in use: the largest share, and the limit's number.
 * Limits that count per more than the source are left out.
 */
float packet_judge_used(struct packet_judge *judge, const struct sl_prefix *source, u64 mono_ns,
			u32 *ret_limit);
/* The policy's limits in their order, an array to be freed by judge_limits_free(). */
int packet_judge_limits(struct packet_judge *judge, struct judge_limit **ret, u32 *ret_count);
void judge_limits_free(struct judge_limit *limit, u32 count);
/* What it cannot know, or judges otherwise than a daemon: calls `add` for each. */
void packet_judge_notes(const struct packet_judge *judge, void (*add)(void *arg, const char *text),
			void *arg);

#endif
