/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * compile.h - policy -> image: the memory a rule set is, ready to be copied into maps.
 *
 * Pure: what it needs of the world (time, slots, interfaces, addresses) is in the
 * environment. It knows no BPF; dp_sim runs the image as it is.
 */
#ifndef SLUICE_COMPILE_H
#define SLUICE_COMPILE_H

#include "limiter/params.h"
#include "packet/compile/override_index.h"

struct compile_env {
	u64 mono_ns;			/* CLOCK_MONOTONIC now */
	u64 utc_offset_ns;		/* UTC - monotonic time */
	u32 cpus;			/* possible CPUs: what leases are divided by */
	u32 max_frame;			/* bytes: least burst of a byte limit; 0: 9018 */
	struct sl_seed seed;
	u64 generation;
	/* Interface names by slot, "" where free: what `match.interface` is compiled against. */
	const char (*iface)[16];	/* SL_IFACES_MAX of them; NULL: none */
	const struct sl_prefix *local;	/* this host's addresses, for failsafe */
	size_t local_count;
	/*
	 * TCP connections of login sessions, which nothing may drop; `used` is 1 + the family. Of
	 * more than SL_SESSIONS_MAX the first ones.
	 */
	const struct sl_session *session;
	size_t session_count;
	/* Sources that no limit's ban touches: gateways, the sessions' peers. */
	const struct sl_prefix *no_ban;
	size_t no_ban_count;
	/*
	 * Prefix lengths of bans that are on, whether or not a limit still bans by them. Beyond
	 * SL_BAN_LENGTHS with those of the limits the last ones are left out.
	 */
	u8 ban_len[SL_FAMILY_COUNT][SL_BAN_LENGTHS];
	u8 ban_len_count[SL_FAMILY_COUNT];
	/*
	 * SL_LIMIT_IDS of them, in/out: the bindings now, changed by a successful compile to what
	 * this image needs (new bindings, DRAINING for limits that are gone, a new generation
	 * and tau where a rate changed). Untouched on error. Give a copy; store it when the
	 * image is applied.
	 */
	struct sl_limit_id_info *slots;
	/* An image to share what is the same with; NULL: none. */
	const struct sl_image *before;
};

struct sl_image {
	struct sl_rules *rules;
	/* The prefix index; shared between images where the prefixes are the same. */
	struct sl_v4_top *v4_top;
	struct sl_v4_line *v4_line;
	u32 v4_lines;			/* at least 1 */
	struct sl_pfx_bucket *bucket;	/* rules->pfx_buckets of them, at least 1 */
	struct sl_pclass *pclass;
	u32 pclass_count;		/* at least 1: class 0 is "in no prefix" */
	struct override_index *overrides;
	u64 pfx_digest;			/* equal digests: equal prefix index and overrides */
	u32 sessions;			/* how many of the environment's went in */
};

/* 0 with *ret to be freed, or -errno and err. */
int image_compile(const struct policy *policy, struct compile_env *env, struct sl_image **ret,
		  struct sl_err *err);
void image_free(struct sl_image *image);

/* The order's own limits, enum sl_internal_limit: "@failsafe", or NULL for other numbers. */
const char *internal_limit_name(u32 index);
struct rate internal_limit_rate(const struct policy *policy, u32 index);

/*
 * What it takes to fill a table of so many sets with forged sources under a limit: docs/
 * algorithms.md, "Price of a full table". packets 0: no source can be forged to that end.
 */
struct table_price {
	u64 sources, packets;
	u64 within_ns;	/* by when the first of them have recovered */
	bool is_low;	/* below 1M packets/s */
};
struct table_price table_price(u64 sets, const struct sl_limit *head);

/* What is noted of a policy that compiled to `rules`: calls `add` for each; of no limit: NULL. */
typedef void policy_note(void *arg, const struct limit_def *limit, const char *words);
void policy_notes(const struct policy *policy, const struct sl_rules *rules, policy_note *add,
		  void *arg);

/* Look-ups in an image, the same code as the data path's: for source show and tests. */
u32 image_pclass(const struct sl_image *image, enum sl_pdim dim, const struct sl_prefix *addr);

#endif
