// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* quota_apply.c - what Redis replied, brought into the counter table of this machine. */
#include "cluster/quota/quota_apply.h"

void quota_adopt(struct store *store, struct store_ref *ref, const struct shared_state *state,
		  u64 unsent, struct sl_now now)
{
	u64 word;

	if (!ref->spec || ref->spec->algo == HTTP_SLIDING_LOG)
		return;
	word = shared_word(ref->spec, state, unsent, now);
	if (!ref->present && !ref->claimed && (!word || !store_claim(store, ref, now)))
		return;
	store_put(store, ref, word);
}

void quota_discount(struct store *store, struct store_ref *ref, u64 cost, struct sl_now now)
{
	struct spec_view view;

	if (!ref->present || !ref->spec || !cost || ref->spec->algo == HTTP_SLIDING_LOG)
		return;
	spec_view_init(&view, ref->spec, 0, 0);
	store_put(store, ref, spec_refund(&view, ref->word, now, cost));
}

void quota_reply(struct store *store, const struct share_ref *ref,
		 const struct shared_bucket *bucket, const struct shared_ask *ask,
		 enum shared_outcome outcome, struct sl_now now)
{
	struct store_ref word = { .key = ref->key, .def = *ref->def };
	struct sl_now then = now;
	struct store_locks locks;
	bool old;

	then.utc_ns += shares_clock_offset_ns(store->shares);
	store_begin(store, &locks, &word, 1);
	store_look(store, &word, then);
	old = outcome == SHARED_DONE && bucket->kind == SHARED_TAKE &&
	      share_is_old(store->shares, ref->key, ask->now_us);
	share_answered(store->shares, ref, bucket, ask, outcome, now);
	if (old)
		quota_discount(store, &word, bucket->cost, then);
	else if (outcome == SHARED_DONE)
		quota_adopt(store, &word, &bucket->state,
			     share_unsent(store->shares, ref->key), then);
	store_end(&locks);
}

void quota_flushed(struct store *store, struct shares *shares, const struct share_due *due,
		 const struct shared_ask *ask, enum shared_outcome outcome, struct sl_now now)
{
	struct store_ref word = { .key = due->ref.key, .def = due->def };
	struct sl_now then = now;
	struct store_locks locks;
	u64 unsent;
	bool old;

	then.utc_ns += shares_clock_offset_ns(shares);
	store_begin(store, &locks, &word, 1);
	store_look(store, &word, then);
	old = outcome == SHARED_DONE && due->matter == SHARE_TELLS_NEW &&
	      share_is_old(shares, due->ref.key, ask->now_us);
	shares_told(shares, due, ask, outcome, now, &unsent);
	if (old)
		quota_discount(store, &word, due->bucket.cost, then);
	else if (outcome == SHARED_DONE)
		quota_adopt(store, &word, &due->bucket.state, unsent, then);
	store_end(&locks);
}
