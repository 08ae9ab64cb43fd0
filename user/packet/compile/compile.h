/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * compile.h - policy -> image: a rule set in the layout of the maps, ready to be copied.
 *
 * Pure: its inputs from outside (time, limit_ids, interfaces, addresses) are in the environment.
 * It does not use BPF; dp_sim runs the image as it is.
 */
#ifndef SLUICE_COMPILE_H
#define SLUICE_COMPILE_H

#include <jansson.h>

#include "limiter/params.h"
#include "packet/compile/override_index.h"

struct compile_env {
	u64 mono_ns;	   /* CLOCK_MONOTONIC now */
	u64 utc_offset_ns; /* UTC - monotonic time */
	u32 cpus;	   /* those before this number may have leases */
	u32 max_frame;	   /* bytes: least burst of a byte limit; 0: 9018 */
	struct sl_seed seed;
	u64 generation;
	/* Interface names by slot, "" where free: what `match.interface` is compiled against. */
	const char (*iface)[16];       /* SL_IFACES_MAX of them; NULL: none */
	const struct sl_prefix *local; /* this host's addresses, for failsafe */
	size_t local_count;
	/*
	 * TCP connections of login sessions, which nothing may drop; `used` is 1 + the family. Of
	 * more than SL_SESSIONS_MAX the first ones.
	 */
	const struct sl_session *session;
	size_t session_count;
	/* This host's gateways; of more than SL_GATEWAYS_MAX of a family the first ones. */
	const struct sl_prefix *gateway;
	size_t gateway_count;
	/* Sources exempt from bans of limits: gateways, the sessions' peers. */
	const struct sl_prefix *no_ban;
	size_t no_ban_count;
	/*
	 * Prefix lengths of active bans, also of limits that no longer ban by them. If they and
	 * those of the limits are more than SL_BAN_LENGTHS, the last ones are left out.
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
	/* An earlier image, whose unchanged parts are shared; NULL: none. */
	const struct sl_image *before;
};

struct prefix_index;

struct sl_image {
	struct sl_rules *rules;
	/* The prefix index; shared between images with the same prefixes. The members behind it are
	 * its. */
	struct prefix_index *prefixes;
	struct sl_v4_top *v4_top;
	struct sl_v4_line *v4_line;
	u32 v4_lines;		      /* at least 1 */
	struct sl_pfx_bucket *bucket; /* rules->pfx_buckets of them, at least 1 */
	struct sl_pclass *pclass;
	u32 pclass_count; /* at least 1: class 0 is for addresses in no prefix */
	struct override_index *overrides;
	u64 pfx_digest; /* equal digests: in both indexes the same is found, in as many buckets */
	u32 sessions;	/* number of sessions in the image */
};

/* 0 with *ret to be freed, or -errno and err. */
int image_compile(const struct policy *policy, struct compile_env *env, struct sl_image **ret,
		  struct sl_err *err);
u64 image_pfx_digest(const struct sl_image *image);
/* compile_limit.c: an image's rules, of any content; NULL: no memory. image_free() frees those of
 * an image. */
struct sl_rules *image_rules_new(void);
void image_rules_free(struct sl_rules *rules);
/*
 * compile_limit.c: an image that differs from env->before in the values of the limit `index`, which
 * is `def` now (limit_revalue()), or in one of its overrides (`changed`, as it is now; `removed`:
 * there is none. NULL: in none): its meters are compiled, the rest is copied or shared. Of `env`
 * also cpus, max_frame, generation and slots are read. 1 where more depends on the change, or it is
 * not valid: image_compile() decides, and env->slots is of no use.
 */
int image_change_limit(const struct limit_def *def, u32 index, const struct override_def *changed,
		       bool counters, struct compile_env *env, struct sl_image **ret);
void image_free(struct sl_image *image);

/* The name of a built-in limit, enum sl_internal_limit: "@failsafe"; NULL for other numbers. */
const char *internal_limit_name(u32 index);
struct rate internal_limit_rate(const struct policy *policy, u32 index);

/*
 * What it takes to fill a table of so many sets with forged sources under a limit: docs/
 * algorithms.md, "Price of a full table". packets 0: no source can be forged to that end.
 */
struct table_price {
	u64 sources, packets;
	u64 within_ns; /* time after which the first of them have recovered */
	bool is_low;   /* below 1M packets/s */
};
struct table_price table_price(u64 sets, const struct sl_limit *head);

/*
 * Calls `add` for each note on a policy that compiled to `rules`; limit NULL: for no single limit.
 */
typedef void policy_note(void *arg, const struct limit_def *limit, const char *words);
void policy_notes(const struct policy *policy, const struct sl_rules *rules, policy_note *add,
		  void *arg);
/* Of these only the notes on limits from index `from` on that have no effect where they are in the
 * order. */
void policy_order_notes(const struct policy *policy, size_t from, policy_note *add, void *arg);
/* The same for its interfaces as this host has them: which stand on others, and which are VLAN
 * devices. */
struct links;
typedef void policy_link_note(void *arg, const char *ifname, const char *words);
void policy_link_notes(const struct policy *policy, const struct links *links,
		       policy_link_note *add, void *arg);
/*
 * The limits with accounting percpu that have no leases on env->cpus CPUs, so that all CPUs count
 * in one bucket: a new [{"why": TEXT, "limits": [NAME...]}...], by reason.
 */
json_t *exact_limits(const struct policy *policy, const struct sl_rules *rules);

/* Lookups in an image, with the code of the data path: for source show and tests. */
u32 image_pclass(const struct sl_image *image, enum sl_pdim dim, const struct sl_prefix *addr);

#endif
