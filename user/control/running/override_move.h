/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * override_move.h - live changes of overrides keep the used part of the sources' buckets.
 */
#ifndef SLUICE_RUNNING_OVERRIDE_MOVE_H
#define SLUICE_RUNNING_OVERRIDE_MOVE_H

#include "control/running/running.h"
#include "packet/dataplane/dp_bucket.h"

/* A source whose bucket gets another key. */
struct override_move {
	struct dp_bucket from, to;
	u64 bucket_state; /* of the old bucket */
};

struct override_moves {
	struct override_move *move;
	size_t count;
	struct sl_now then;
};

/*
 * Finds sources whose overrides differ between the rules in force and `policy` (compiled as
 * `image`), and copies their use to the new buckets. Before image is applied.
 */
void override_moves_begin(struct running *run, const struct policy *policy,
			  const struct sl_image *image, struct override_moves *ret);
/* The same of one override, that of the limit `head` for `src`. */
void override_move_begin(struct running *run, u32 head, const struct sl_prefix *src,
			 const struct sl_image *image, struct override_moves *ret);
/* After image is applied: adds what was charged in between. */
void override_moves_end(struct running *run, struct override_moves *moves);
void override_moves_free(struct override_moves *moves);

#endif
