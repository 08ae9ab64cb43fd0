/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_bucket.h - which bucket a meter charges for a source, with overrides; and how its use moves
 * into another bucket.
 */
#ifndef SLUICE_DP_BUCKET_H
#define SLUICE_DP_BUCKET_H

#include "packet/dataplane/dataplane.h"

struct dp_bucket {
	u64 key;
	struct sl_params params; /* parameters of its steps */
};

/*
 * The bucket of a source (with the rest of `per` 0) in meter `index` of an image. Overrides with
 * prefixes longer than `longest` are ignored: they are of single sources, and `source` may stand
 * for a group. False if the meter does not count the source.
 */
bool dp_bucket_of(const struct sl_image *image, u32 index, const struct sl_prefix *source,
		  u32 longest, struct dp_bucket *ret);

/*
 * Raises `to` to at least the share of its capacity that `from` has used, for a source whose bucket
 * is about to change: call it before the change. The two may be one key. *ret_word has the bucket
 * state of `from`, for the second call.
 */
void dp_bucket_carry(struct dp *dp, const struct dp_bucket *from, const struct dp_bucket *to,
		     struct sl_now now, u64 *ret_word);
/* After the change: charges `to` with the charges of `from` since then, as of `then`. */
void dp_bucket_carry_rest(struct dp *dp, const struct dp_bucket *from, const struct dp_bucket *to,
			  struct sl_now then, struct sl_now now, u64 bucket_state);

/*
 * Charges, forced, what passed elsewhere from `since` to `until`: `ticks` to a bucket, `units` to a
 * window, as if they had come evenly, each in its window. A count is at most twice the capacity, a
 * debt tau and `beyond_ns`. A new key takes a free place; without one nothing is charged.
 *
 * `refused`: what was refused elsewhere, of a limit that counts that. A count is at most the
 * capacity. A bucket was empty at `since`, and has `beyond_ns` as its largest debt beyond tau.
 */
struct dp_charge {
	u64 units, ticks;
	struct sl_now since, until;
	u64 beyond_ns;
	bool refused;
};
void dp_bucket_charge(struct dp *dp, const struct dp_bucket *to, const struct dp_charge *charge,
		      struct sl_now now);

#endif
