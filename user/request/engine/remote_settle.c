// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * remote_settle.c - what becomes of a call's words when the store has answered, or has not.
 *
 *     lock all -> what was said -> the verdict, as decide_refused() has it -> each word -> unlock
 *
 * A bucket that passed there: its word is what the store says, and own is charged. One of a call
 * that is refused: what this node charged for it is taken back; what the store charged is marked
 * `back`. One that nobody answered for, and whose rule lets it through: owed, once it is known
 * that the store did not charge it, or that nobody will ever know; that may charge it twice, and
 * never lets more through than is due.
 */
#include "request/engine/remote_private.h"

/* ------------------------------------------------------------------ the store is away */

static bool is_log(const struct remote_bucket *b)
{
	return b->word->def.algo == HTTP_SLIDING_LOG;
}

/* Until this node's own requests fit into a share; they are in its log already, with this call's. */
static u64 own_log_wait(struct store *store, const struct remote_bucket *b, u32 permille,
			struct sl_now now)
{
	const struct store_ref *ref = b->word;
	u64 count = request_log_count(ref->word), most, wait_ns;

	if (!ref->spec)
		return 0;
	most = (ref->spec->capacity - b->hold) * permille / 1000;
	most += !most;
	if (count <= most)
		return 0;
	if (b->cost > most)
		return ~0ULL;
	wait_ns = request_log_wait(&store->logs, ref->spec, ref->word, now, count - most);
	return wait_ns ? wait_ns : 1;
}

/* By what this node has let through itself, of its share. A share that is none: by all it knows. */
static void judge_own(struct store *store, struct remote_bucket *b, struct sl_now now)
{
	struct spec_view view;
	struct sl_result took;

	if (is_log(b)) {
		b->result->wait_ns = own_log_wait(
			store, b, share_permille(store->shares, b->ref.key, now), now);
		b->over = b->result->wait_ns;
		return;
	}
	if (!b->own || !b->own->spec)
		return;
	spec_view_init(&view, b->own->spec, 0, b->hold_permille);
	took = spec_take(&view, b->own->word, now, b->cost);
	b->over = took.verdict == SL_OVER;
	b->result->wait_ns = took.wait_ns;
}

/*
 * It was over by what is known here, and asked whether that is still so: nobody said no. Without this
 * an offender would get through an open door once a second for each worker that has yet to notice
 * that the store is away.
 */
static void judge_again(struct remote *remote, struct remote_bucket *b, struct sl_now now)
{
	struct recall *recall = remote->worker->tier->shared->recall;
	struct spec_view view;

	b->over = true;
	if (is_log(b)) {
		u64 own_ns = own_log_wait(remote->worker->tier->store, b, 1000, now);

		b->result->wait_ns = recall_wait(recall, b->ref.key, b->cost, now.mono_ns);
		if (b->result->wait_ns < own_ns)
			b->result->wait_ns = own_ns;
	} else if (b->word->spec) {
		spec_view_init(&view, b->word->spec, 0, b->hold_permille);
		b->result->wait_ns = spec_take(&view, b->word->word, remote_time(remote, b, now),
					       b->cost).wait_ns;
	}
}

/* ------------------------------------------------------------------ the verdict */

static void judge(struct remote *remote, struct remote_bucket *b, struct sl_now now)
{
	struct recall *recall = remote->worker->tier->shared->recall;
	struct decide_result *result = b->result;

	if (b->ask->state == ASK_DONE) {
		result->told = is_log(b);
		result->told_used = b->asked->state.used;
		b->over = !b->ask->ask.passed && b->asked->over;
		result->wait_ns = b->asked->wait_ns;
		if (b->over && b->cost)
			recall_note(recall, b->ref.key, b->cost, b->asked->wait_ns, now.mono_ns);
		else if (b->retries)
			recall_forget(recall, b->ref.key);
	} else if (b->cost && b->retries) {
		judge_again(remote, b, now);
	} else if (b->cost) {
		result->away = true;
		b->failed = b->on_failure > STORE_FAILS_OPEN;
		if (b->on_failure == STORE_FAILS_LOCAL)
			judge_own(remote->worker->tier->store, b,
				  remote_time(remote, b, now));
	}
	result->over |= b->over;
	if (!b->over)
		result->wait_ns = 0;
}

static enum call_code worse(enum call_code a, enum call_code b)
{
	return a == CALL_ERROR || b == CALL_ERROR ? CALL_ERROR : a > b ? a : b;
}

static void judge_part(struct remote *remote, struct remote_part *part)
{
	for (u32 i = 0; i < part->count; i++) {
		const struct remote_bucket *b = &remote->bucket[part->bucket[i]];

		part->over |= b->over;
		if (b->failed)
			part->failed = worse(part->failed, b->on_failure == STORE_FAILS_ERROR ?
								   CALL_ERROR : CALL_CLOSED);
	}
}

/* A refusal, else error, else closed, else what is let through. */
static enum call_code verdict(struct remote *remote)
{
	enum call_code failed = CALL_OK, quota_failed = CALL_OK;
	bool refused = false, quota = false, quota_fits = false, quota_over = false;

	for (u32 i = 0; i < remote->part_count; i++) {
		struct remote_part *part = &remote->part[i];

		judge_part(remote, part);
		if (part->shadow)
			continue;
		if (part->quota) {
			quota = true;
			quota_over |= part->over;
			quota_fits |= !part->over && part->failed == CALL_OK;
			quota_failed = worse(quota_failed, part->failed);
			continue;
		}
		refused |= part->over;
		failed = worse(failed, part->failed);
	}
	if (quota && !quota_fits) {
		refused |= quota_over;
		failed = worse(failed, quota_failed);
	}
	return refused ? CALL_OVER_LIMIT : failed;
}

/* Whether one of its parts is let through, and so it is charged. */
static bool is_kept(const struct remote *remote, u32 bucket)
{
	for (u32 i = 0; i < remote->part_count; i++) {
		const struct remote_part *part = &remote->part[i];

		if (part->over || (part->quota && part->failed != CALL_OK))
			continue;
		for (u32 k = 0; k < part->count; k++)
			if (part->bucket[k] == bucket)
				return true;
	}
	return false;
}

/* ------------------------------------------------------------------ words; they are locked */

/* What was charged here when the call was made is not any more. */
static void take_back(struct remote *remote, struct remote_bucket *b, struct sl_now now)
{
	struct store *store = remote->worker->tier->store;
	struct store_ref *ref = b->word;
	bool done = b->asks && b->ask->state == ASK_DONE;
	struct spec_view view;

	if (!(ref->present || ref->claimed) || !ref->spec || !b->cost)
		return;
	if (is_log(b)) {
		store_put(store, ref, request_log_remove(&store->logs, ref->word, b->cost));
		return;
	}
	/* It did not fit, so it was not charged here; the store's own word has it. */
	if (b->retries && !done)
		return;
	spec_view_init(&view, ref->spec, 0, 0);
	store_put(store, ref, spec_take_back(&view, ref->word, now,
					     remote_time(remote, b, remote->now), b->cost));
}

static void charge_own(struct store *store, struct remote_bucket *b, struct sl_now now)
{
	struct store_ref *own = b->own;
	struct spec_view view;

	if (!own || !own->spec || !b->cost || (!own->present && !store_claim(store, own, now)))
		return;
	spec_view_init(&view, own->spec, 0, 0);
	store_put(store, own, spec_force(&view, own->word, now, b->cost));
}

static void keep(struct remote *remote, struct remote_bucket *b, struct sl_now now)
{
	struct store *store = remote->worker->tier->store;

	if (!b->shared || !b->cost)
		return;
	charge_own(store, b, remote_time(remote, b, now));
	if (!b->asks)
		return;
	/* Where it was done and did not pass, another part of the call was refused with it. */
	b->owed = b->ask->state != ASK_DONE || !b->ask->ask.passed;
	if (b->owed && b->ask->state != ASK_LATE) {
		share_owe(store->shares, &b->ref, b->cost, now);
		b->owed = false;
	}
	/* What an open door lets through is not to close it. */
	if (b->ask->state != ASK_DONE && b->on_failure != STORE_FAILS_LOCAL && !is_log(b))
		take_back(remote, b, remote_time(remote, b, now));
}

static void undo(struct remote *remote, struct remote_bucket *b, struct sl_now now)
{
	struct store *store = remote->worker->tier->store;

	b->back = b->asks && b->cost &&
		  (b->ask->state == ASK_LATE || (b->ask->state == ASK_DONE && b->ask->ask.passed));
	if (b->covered)
		share_untake(store->shares, &b->ref, b->cost);
	/* The store's word of what it refused is without it. */
	if (b->asks && b->ask->state == ASK_DONE && !b->ask->ask.passed && !is_log(b))
		return;
	take_back(remote, b, remote_time(remote, b, now));
}

static void look(struct remote *remote, struct sl_now now)
{
	struct store *store = remote->worker->tier->store;

	for (u32 i = 0; i < remote->bucket_count; i++) {
		struct remote_bucket *b = &remote->bucket[i];

		store_look(store, b->word, remote_time(remote, b, now));
		if (b->own)
			store_look(store, b->own, remote_time(remote, b, now));
	}
}

/* Of this node's requests no more than there are in all: others were given back, or it was reset. */
static void trim_log(struct store *store, struct remote_bucket *b)
{
	u64 count = request_log_count(b->word->word);
	u64 most = b->asked->state.used + share_unsent(store->shares, b->ref.key);

	if (count > most)
		store_put(store, b->word,
			  request_log_remove(&store->logs, b->word->word, count - most));
}

static void hear(struct remote *remote, struct remote_bucket *b, struct sl_now now)
{
	struct store *store = remote->worker->tier->store;
	bool done = b->ask->state == ASK_DONE, old;

	if (b->ask->state == ASK_LATE)
		return;
	old = done && share_is_old(store->shares, b->ref.key, b->ask->ask.now_us);
	share_answered(store->shares, &b->ref, b->asked, &b->ask->ask,
		       done ? SHARED_DONE : SHARED_DOWN, now);
	if (old)
		quota_discount(store, b->word, b->cost, remote_time(remote, b, now));
	else if (done)
		quota_adopt(store, b->word, &b->asked->state,
			     share_unsent(store->shares, b->ref.key), remote_time(remote, b, now));
	if (done && is_log(b) && b->retries && b->ask->ask.passed)
		trim_log(store, b);
}

enum call_code remote_settle(struct remote *remote, struct sl_now now)
{
	struct store *store = remote->worker->tier->store;
	struct store_locks locks;
	enum call_code code;

	store_begin(store, &locks, remote->word, remote->word_count);
	look(remote, now);
	for (u32 i = 0; i < remote->bucket_count; i++) {
		struct remote_bucket *b = &remote->bucket[i];

		if (!b->asks)
			continue;
		judge(remote, b, now);
		hear(remote, b, now);
	}
	code = verdict(remote);
	remote->through = code == CALL_OK && remote->call && !remote->peek;
	for (u32 i = 0; i < remote->bucket_count && !remote->peek; i++) {
		if (remote->through && is_kept(remote, i))
			keep(remote, &remote->bucket[i], now);
		else
			undo(remote, &remote->bucket[i], now);
	}
	store_end(&locks);
	/* What is late comes back marked by remote_settle_late(), when it is known. */
	remote->settled = true;
	return code;
}

/* ------------------------------------------------------------------ one by one */

void remote_settle_late(struct remote *remote, struct remote_ask *ask, enum shared_outcome outcome,
			struct sl_now now)
{
	struct store *store = remote->worker->tier->store;
	bool charged = outcome == SHARED_DONE && ask->ask.passed;

	for (u32 i = 0; i < remote->bucket_count; i++) {
		struct remote_bucket *b = &remote->bucket[i];

		if (b->ask != ask)
			continue;
		quota_reply(store, &b->ref, b->asked, &ask->ask, outcome, now);
		b->back &= charged;
		if (b->owed && !charged)
			share_owe(store->shares, &b->ref, b->cost, now);
		b->owed = false;
	}
}
