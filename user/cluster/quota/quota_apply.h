/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * quota_apply.h - what Redis replied, brought into the counter table of this machine.
 *
 * A bucket's state here and what is known of it in share.h change together, with the set of the
 * bucket locked. Any thread.
 */
#ifndef SLUICE_QUOTA_APPLY_H
#define SLUICE_QUOTA_APPLY_H

#include "cluster/quota/share.h"
#include "counters/store_table.h"

/*
 * Redis' state of the bucket becomes the state here, with `unsent`, which Redis does not know yet.
 * The bucket is locked and was looked up; now is Redis' time.
 */
void quota_adopt(struct store *store, struct store_ref *ref, const struct shared_state *state,
		 u64 unsent, struct sl_now now);
/*
 * A reply that is older than one that was applied (share_is_old()): the newer one has what it
 * charged. Its cost, which stood in the state as on its way, is taken out. Locked as above.
 */
void quota_discount(struct store *store, struct store_ref *ref, u64 cost, struct sl_now now);
/* The reply for one bucket outside of a request: share_answered(), and the state here follows. */
void quota_reply(struct store *store, const struct share_ref *ref,
		 const struct shared_bucket *bucket, const struct shared_ask *ask,
		 enum shared_outcome outcome, struct sl_now now);
/* The reply to a flush (`due->bucket` has it): shares_told(), and the state here follows. */
void quota_flushed(struct store *store, struct shares *shares, const struct share_due *due,
		   const struct shared_ask *ask, enum shared_outcome outcome, struct sl_now now);

#endif
