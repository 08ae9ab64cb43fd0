// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dp_push.c - push-downs over any data plane's memory; see dp_push.h.
 *
 * The program only charges and counts them, so there is one writer, and one race: charges and
 * counts of some microseconds, between the look at an older push-down of a source and its
 * replacement, are lost. The bucket itself is passed on: else each renewal would grant a burst.
 *
 * Filter bits and lengths of a removed push-down stay until dp_pushes_expire() builds them again:
 * others may share them, and until then they cost a look-up.
 */
#include "packet/dataplane/dp_push.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "packet/compile/compile.h"

SL_STATIC_ASSERT((int)SL_PUSH_LIMIT == SL_PUSH_LIMIT && (int)SL_PUSH_TAG == SL_PUSH_TAG &&
			 (int)SL_PUSH_NO_NEW == SL_PUSH_NO_NEW &&
			 (int)SL_PUSH_DROP == SL_PUSH_DROP && (int)SL_PUSH_COUNT == SL_PUSH_COUNT,
		 "the same kinds");

static struct sl_push_key key_of(const struct sl_prefix *src)
{
	return (struct sl_push_key){ sl_addr_mask(src->addr, src->len), src->family, src->len };
}

/* ------------------------------------------------------------------ what is looked for */

/* The place of a length among those of a family, or a free one; NULL: none. */
static u8 *place_of(u8 lens[SL_PUSH_LENGTHS], u8 len)
{
	u8 *free = NULL;

	for (u32 i = 0; i < SL_PUSH_LENGTHS; i++) {
		if (lens[i] == len)
			return &lens[i];
		if (!lens[i] && !free)
			free = &lens[i];
	}
	return free;
}

static void add_length(u8 lens[SL_PUSH_LENGTHS], u8 len)
{
	u8 *place = place_of(lens, len);

	if (place)
		__atomic_store_n(place, len, __ATOMIC_RELEASE);
}

static void add_bit(struct sl_push_now *now, const struct sl_push_key *key)
{
	u32 bit = sl_ban_bit(key->addr, key->len);

	__atomic_fetch_or(&now->filter.w[bit / 64], 1ULL << (bit % 64), __ATOMIC_ACQ_REL);
}

static void set_flag(struct sl_push_now *now, u32 flag, bool on)
{
	if (on)
		__atomic_fetch_or(&now->flags, flag, __ATOMIC_ACQ_REL);
	else
		__atomic_fetch_and(&now->flags, ~flag, __ATOMIC_ACQ_REL);
}

/* Removes bits that no push-down needs. The others stay in place: packets read meanwhile. */
static int refilter(struct dp *dp)
{
	struct sl_push_now *now = dp->push_now;
	struct sl_push_now *wanted = calloc(1, sizeof(*wanted));
	struct dp_push_entry *entry;
	bool marks = false;
	size_t count;
	int rc = wanted ? dp->ops->hash_all(dp, DP_PUSHES, &entry, &count) : -ENOMEM;

	if (rc)
		goto out;
	for (u32 i = 0; i < SL_FAMILY_COUNT * SL_PUSH_LENGTHS; i++) {
		u32 family = i / SL_PUSH_LENGTHS, at = i % SL_PUSH_LENGTHS;
		bool used = false;

		for (size_t k = 0; k < count; k++)
			used |= entry[k].key.family == family &&
				entry[k].key.len == now->len[family][at];
		if (!used)
			__atomic_store_n(&now->len[family][at], 0, __ATOMIC_RELEASE);
	}
	for (size_t i = 0; i < count; i++) {
		add_bit(wanted, &entry[i].key);
		marks |= entry[i].push.kind == SL_PUSH_TAG;
	}
	free(entry);
	for (u32 i = 0; i < SL_BAN_FILTER_WORDS; i++)
		__atomic_store_n(&now->filter.w[i], wanted->filter.w[i], __ATOMIC_RELEASE);
	set_flag(now, SL_PUSH_MARKS, marks);
	set_flag(now, SL_PUSH_ON, count > 0);
out:
	free(wanted);
	return rc;
}

/* ------------------------------------------------------------------ setting them */

static int check(const struct dp_push *push)
{
	u32 most = push->src.family == SL_V4 ? 32 : 128;

	if (push->src.family >= SL_FAMILY_COUNT || !push->src.len || push->src.len > most ||
	    push->kind >= SL_PUSH_COUNT)
		return -EINVAL;
	if (push->kind == SL_PUSH_LIMIT && push->rate.unit != RATE_PACKETS)
		return -EINVAL;
	return 0;
}

int dp_push_put(struct dp *dp, const struct dp_push *push)
{
	struct sl_push_now *now = dp->push_now;
	struct dp_push_entry entry = { .key = key_of(&push->src) };
	struct sl_push before = { 0 };
	const char *reason;
	int rc = check(push);

	if (!rc && push->kind == SL_PUSH_LIMIT)
		rc = params_compile(SL_ALGO_TOKEN_BUCKET, &push->rate,
				    params_default_burst(&push->rate, 0), 0, &entry.push.params,
				    &reason);
	if (!rc && !place_of(now->len[push->src.family], push->src.len))
		rc = -E2BIG;
	if (rc)
		return rc;
	rc = dp->ops->hash_get(dp, DP_PUSHES, &entry.key, &before);
	if (rc && rc != -ENOENT)
		return rc;
	entry.push.bucket_state = before.bucket_state;
	entry.push.passed = before.passed;
	entry.push.refused = before.refused;
	entry.push.until_ns = push->until_ns;
	entry.push.count = push->rate.count;
	entry.push.period_ns = push->rate.period_ns;
	entry.push.note = push->note;
	entry.push.kind = push->kind;
	rc = dp->ops->hash_put(dp, DP_PUSHES, &entry, 1);
	if (rc)
		return rc;
	add_bit(now, &entry.key);
	add_length(now->len[push->src.family], push->src.len);
	set_flag(now, SL_PUSH_ON, true);
	if (push->kind == SL_PUSH_TAG)
		set_flag(now, SL_PUSH_MARKS, true);
	dp_epoch_raise(dp);
	return 0;
}

int dp_push_del(struct dp *dp, const struct sl_prefix *src)
{
	struct sl_push_key key = key_of(src);

	int rc = dp->ops->hash_del(dp, DP_PUSHES, &key, 1);

	dp_epoch_raise(dp);
	return rc;
}

int dp_pushes_expire(struct dp *dp, u64 mono_ns)
{
	struct dp_push_entry *entry;
	size_t count;
	int gone = 0, rc;

	if (!(__atomic_load_n(&dp->push_now->flags, __ATOMIC_ACQUIRE) & SL_PUSH_ON))
		return 0;
	rc = dp->ops->hash_all(dp, DP_PUSHES, &entry, &count);
	if (rc)
		return rc;
	for (size_t i = 0; i < count; i++)
		if (entry[i].push.until_ns <= mono_ns &&
		    !dp->ops->hash_del(dp, DP_PUSHES, &entry[i].key, 1))
			gone++;
	free(entry);
	rc = refilter(dp);
	return rc ? rc : gone;
}

/* ------------------------------------------------------------------ reading */

static void push_of(const struct dp_push_entry *entry, struct dp_push *ret)
{
	const struct sl_push *push = &entry->push;

	*ret = (struct dp_push){
		.src = { entry->key.addr, (u8)entry->key.family, (u8)entry->key.len },
		.kind = (enum sl_push_kind)push->kind,
		.rate = { push->count, push->period_ns, RATE_PACKETS },
		.until_ns = push->until_ns,
		.note = push->note,
		.packets = push->passed + push->refused,
		.refused = push->refused,
	};
}

int dp_push_get(struct dp *dp, const struct sl_prefix *src, struct dp_push *ret)
{
	struct dp_push_entry entry = { .key = key_of(src) };
	int rc = dp->ops->hash_get(dp, DP_PUSHES, &entry.key, &entry.push);

	if (!rc)
		push_of(&entry, ret);
	return rc;
}

int dp_pushes(struct dp *dp, struct dp_push **ret, size_t *ret_count)
{
	struct dp_push_entry *entry;
	struct dp_push *push;
	size_t count;
	int rc = dp->ops->hash_all(dp, DP_PUSHES, &entry, &count);

	if (rc)
		return rc;
	push = calloc(count + 1, sizeof(*push));
	for (size_t i = 0; push && i < count; i++)
		push_of(&entry[i], &push[i]);
	free(entry);
	if (!push)
		return -ENOMEM;
	*ret = push;
	*ret_count = count;
	return 0;
}

/* ------------------------------------------------------------------ who was met */

bool dp_push_seen(struct dp *dp, const struct sl_prefix *src, u64 now_ns, u64 within_ns)
{
	u32 tag, at = sl_established_at(src->addr, src->family, dp->state->seed, &tag);
	const struct sl_established *set = &dp->established[at];

	for (u32 i = 0; i < SL_ESTABLISHED_WAYS; i++) {
		u64 way = __atomic_load_n(&set->way[i], __ATOMIC_RELAXED);
		/* The latest time that it can mean. */
		u64 last_ns = ((way & 0xffffffff) + 1) << SL_ESTABLISHED_SHIFT;

		if (way && way >> 32 == tag && now_ns < last_ns + within_ns)
			return true;
	}
	return false;
}

int dp_push_watch(struct dp *dp, bool on)
{
	struct sl_push_now *now = dp->push_now;
	bool was = now->flags & SL_PUSH_WATCH;

	/* Notes of an earlier time are not valid for packets since. */
	if (on && !was)
		memset(dp->established, 0, SL_ESTABLISHED_SETS * sizeof(struct sl_established));
	set_flag(now, SL_PUSH_WATCH, on);
	dp_epoch_raise(dp);
	return 0;
}
