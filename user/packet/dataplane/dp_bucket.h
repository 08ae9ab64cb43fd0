/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_bucket.h - which bucket a source is charged to by a meter, overrides and all; and how what
 * it has used goes with it into another one.
 */
#ifndef SLUICE_DP_BUCKET_H
#define SLUICE_DP_BUCKET_H

#include "packet/dataplane/dataplane.h"

struct dp_bucket {
	u64 key;
	struct sl_params params;	/* what its bucket state is stepped with */
};

/*
 * The bucket of a source (with the rest of `per` 0) in meter `index` of an image. Overrides longer
 * than `longest` are left aside: those of single sources, where `source` stands for a group.
 * False where the meter does not count the source.
 */
bool dp_bucket_of(const struct sl_image *image, u32 index, const struct sl_prefix *source,
		  u32 longest, struct dp_bucket *ret);

/*
 * Sees to it that `to` has used no less of its capacity than `from` has, for the source whose
 * bucket is to be another one: call it before the change. The two may be one key.
 * *ret_word, in what `from` had, for the second part.
 */
void dp_bucket_carry(struct dp *dp, const struct dp_bucket *from, const struct dp_bucket *to,
		     struct sl_now now, u64 *ret_word);
/* After the change: what `from` was charged since, at `then`, is charged to `to` as well. */
void dp_bucket_carry_rest(struct dp *dp, const struct dp_bucket *from,
			  const struct dp_bucket *to, struct sl_now then, struct sl_now now,
			  u64 bucket_state);

/*
 * What has been let through elsewhere from `since` to `until`, forced: of a bucket `ticks`, of a window
 * `units`, as if they had come evenly, each into its window. A count goes no further than twice
 * the capacity, a debt than tau and `beyond_ns`. A key that is not there takes a free place;
 * where there is none nothing is charged.
 */
struct dp_charge {
	u64 units, ticks;
	struct sl_now since, until;
	u64 beyond_ns;
};
void dp_bucket_charge(struct dp *dp, const struct dp_bucket *to, const struct dp_charge *charge,
		      struct sl_now now);

/* A bucket state for a key that has none. False: it has, or there is no free place. */
bool dp_bucket_put(struct dp *dp, u64 key, u64 bucket_state, struct sl_now now);
/* Any way, into this set. False: none of its ways is free. */
bool dp_bucket_put_at(struct dp *dp, u32 set, struct sl_way way, struct sl_now now);

#endif
