/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * override_index.h - compiles the overrides of all limits to a hash (abi.h). The data path looks up
 * a packet's source in it once for each charged meter.
 */
#ifndef SLUICE_POLICY_OVERRIDE_INDEX_H
#define SLUICE_POLICY_OVERRIDE_INDEX_H

#include "config/policy.h"

/* A meter that overrides apply to. */
struct override_meter {
	const struct limit_def *def;
	u32 meter;
	struct sl_params *params;     /* of each of def->override_rates, in this meter */
	u8 prefix[SL_FAMILY_COUNT];   /* as in struct sl_limit */
	bool finest[SL_FAMILY_COUNT]; /* the finest step of the prefix hierarchy */
};

struct override_meters {
	struct override_meter *meter;
	size_t count;
};

/* Appends a meter and allocates its parameters; NULL: out of memory. */
struct override_meter *override_meters_add(struct override_meters *meters,
					   const struct limit_def *def, u32 meter);
void override_meters_free(struct override_meters *meters);

#define OVERRIDE_CHANGES 64

/* Shared by images with the same overrides. */
struct override_index {
	u32 users;
	u32 buckets; /* at least 1 */
	u32 keys;    /* the ways in use */
	u64 digest;  /* equal digests: the same is found */
	struct sl_override_bucket *bucket;
	u64 serial; /* equal ones: the same buckets; 0: of none that is built here */
	/* The last changes, the newest at (changes - 1) % OVERRIDE_CHANGES. */
	struct {
		u64 from;   /* the serial until then */
		u32 bucket; /* the one that was written to */
	} changed[OVERRIDE_CHANGES];
	u32 changes;
};

/*
 * Builds the index, and its fields in `rules`: override_lengths and override_buckets. `before` (may
 * be NULL) is used again if unchanged: *ret is then `before`, with one more user. 0, -ENOMEM, or
 * -E2BIG for too many overrides.
 */
int override_index_build(const struct override_meters *meters, struct override_index *before,
			 struct sl_rules *rules, struct override_index **ret);
/*
 * The index with one override changed, as it is now (`removed`: there is none): a copy of `before`
 * in which the same is found as in one that is built. `meters` are its limit's, with the parameters
 * of its rates; of `rules`, override_lengths may change. 1: it is to be built, for the limit has
 * overrides of several lengths in this family (a change of one may change markers), or the buckets
 * are too full.
 */
int override_index_change(const struct override_meters *meters, const struct override_def *changed,
			  const struct override_index *before, struct sl_rules *rules,
			  struct override_index **ret);
/*
 * Brings a copy of the buckets of `serial` up to date. False: it is older than the changes that are
 * known, or of another index: it is to be copied whole.
 */
bool override_index_follow(const struct override_index *index, u64 serial,
			   struct sl_override_bucket *copy);
/*
 * The override that applies to a source in meter `meter`, of those up to `longest` bits, by the
 * lookup of the data path. NULL: none.
 */
const struct sl_override *override_index_find(const struct override_index *index,
					      const struct sl_rules *rules, u32 meter,
					      struct sl_addr source, u32 family, u32 longest);
void override_index_put(struct override_index *index); /* NULL is fine */

#endif
