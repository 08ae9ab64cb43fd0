/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * override_move.h - overrides that change live: what their sources have used goes with them.
 */
#ifndef SLUICE_RUNNING_OVERRIDE_MOVE_H
#define SLUICE_RUNNING_OVERRIDE_MOVE_H

#include "control/running/running.h"
#include "packet/dataplane/dp_bucket.h"

/* A source whose bucket becomes another one. */
struct override_move {
	struct dp_bucket from, to;
	u64 bucket_state;		/* what it had in the first one */
};

struct override_moves {
	struct override_move *move;
	size_t count, room;
	struct sl_now then;
};

/*
 * Finds whose overrides differ between what is in force and what is to be (`policy`, compiled
 * as `image`), and carries what they have used to where it is to be: before image is applied.
 */
void override_moves_begin(struct running *run, const struct policy *policy,
			  const struct sl_image *image, struct override_moves *ret);
/* After it: what was charged in between goes along, too. */
void override_moves_end(struct running *run, struct override_moves *moves);
void override_moves_free(struct override_moves *moves);

#endif
