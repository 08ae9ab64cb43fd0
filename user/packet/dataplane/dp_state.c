// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* dp_state.c - see dp_state.h. All numbers are the machine's own: a file does not travel. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "packet/dataplane/dp_bucket.h"
#include "packet/dataplane/dp_state.h"

#define MAGIC "SLWORDS"
#define VERSION 2
#define RECORD_ROW 0xffffffffU	/* not a row: the entry is a record */
/* A clock that was wrong when they were written, or is now: nothing is made of it. */
#define AHEAD_NS (60 * SL_NS_PER_SEC)

struct head {
	char magic[8];
	u64 check;		/* of all that follows */
	u32 version, abi;
	u64 written_utc_ns;
	struct sl_seed seed;
	u64 sets;		/* of the table: a set's number means something in one as large */
	u64 meters, words;
};

struct meter {
	char name[SL_NAME_MAX];
	u64 kind;
	u64 tau;		/* of buckets on the limit's own rates: what a debt is a share of; else 0 */
	u64 slot;		/* it is part of what a fingerprint is made of */
};

struct saved_bucket {
	u32 meter, set;
	u64 hash;		/* of a record its key; its time is UTC, in both halves */
	u64 value;		/* the word; of a bucket when it is full again, in UTC */
};

_Static_assert(sizeof(struct head) % 8 == 0 && sizeof(struct meter) == 88 &&
	       sizeof(struct saved_bucket) == 24, "whole words, and DP_STATE_BYTES_MAX");

static struct meter *meters_of(const void *data)
{
	return (struct meter *)((char *)data + sizeof(struct head));
}

static struct saved_bucket *buckets_of(const void *data)
{
	const struct head *head = data;

	return (struct saved_bucket *)(meters_of(data) + head->meters);
}

/* ------------------------------------------------------------------ saving */

static bool is_long(const struct sl_params *p)
{
	if (sl_is_bucket(p))
		return p->tau / SL_TICKS_PER_NS >= DP_STATE_LONG_NS;
	return sl_is_window(p) && p->window_ns >= DP_STATE_LONG_NS;
}

/*
 * All rows, so that each has its slot again; returns how many, 0 where none is long. By slot, of
 * the long ones: their number in the file, from 1; 0: of no such row.
 */
static u32 find_meters(struct dp *dp, const struct sl_rules *rules, struct meter *ret, u16 *number)
{
	const struct sl_limit_id_info *slots = dp->ops->slots(dp);
	u32 count = 0, longs = 0;

	memset(number, 0, SL_LIMIT_IDS * sizeof(*number));
	for (u32 slot = 1; slot < SL_LIMIT_IDS; slot++) {
		u32 index = rules->limit_of_id[slot];
		const struct sl_limit *limit;

		if (index >= SL_METERS_MAX || slots[slot].state != SL_LIMIT_ID_BOUND)
			continue;
		limit = &rules->limits[index];
		memcpy(ret[count].name, slots[slot].name, SL_NAME_MAX);
		ret[count].kind = slots[slot].kind;
		ret[count].tau = limit->of_overrides ? 0 : limit->params.tau;
		ret[count++].slot = slot;
		if (!is_long(&limit->params))
			continue;
		number[slot] = (u16)count;
		longs++;
	}
	return longs ? count : 0;
}

/* The debt of a bucket, also what is beyond tau. */
static u64 debt_ns(u64 bucket_state, const struct sl_params *p, struct sl_now now)
{
	u64 ticks = now.mono_ns * SL_TICKS_PER_NS, full = bucket_state >> SL_GCRA_GEN_BITS;

	if ((bucket_state & SL_GCRA_GEN_MASK) != p->gen)
		return sl_gcra_debt(bucket_state, p, ticks) / SL_TICKS_PER_NS;
	return full > ticks ? (full - ticks) / SL_TICKS_PER_NS : 0;
}

/* Room for one more, which is so many sources'; NULL: it is full. */
static struct saved_bucket *add_entry(struct dp_saved_state *saved, u32 sources)
{
	struct head *head = saved->data;

	if (head->words == DP_STATE_MAX) {
		saved->left_out += sources;
		return NULL;
	}
	saved->words += sources;
	return &buckets_of(head)[head->words++];
}

/* Evicted offenders, with their record's time in UTC. */
static void save_record(struct sl_way way, u32 set, struct sl_now now, struct dp_saved_state *ret)
{
	u64 left = sl_record_left(way.key, way.bucket_state, now.mono_ns), units;
	struct saved_bucket *out;
	u32 prints = 0;

	if (!left || way.bucket_state == SL_STATE_BUSY)
		return;
	for (u32 n = 0; n < SL_PRINTS_HALF; n++)
		prints += !!sl_print_at(way.key, n) + !!sl_print_at(way.bucket_state, n);
	ret->digest += (way.key ^ sl_rotl(way.bucket_state, 29)) * 0x9e3779b97f4a7c15ULL;
	out = add_entry(ret, prints);
	if (!out)
		return;
	units = sl_record_units(sl_record_left_ns(left, now.mono_ns), now.utc_ns);
	way = sl_record_ends(way, units < SL_RECORD_AHEAD ? units : SL_RECORD_AHEAD, now.utc_ns);
	*out = (struct saved_bucket){
		.meter = RECORD_ROW, .set = set, .hash = way.key, .value = way.bucket_state};
}

static void save_buckets(struct dp *dp, const struct sl_rules *rules, const u16 *number,
			 struct sl_now now, struct dp_saved_state *ret)
{
	struct saved_bucket *out;
	u32 sets;
	const struct sl_set *table = dp->ops->table(dp, &sets);

	for (u64 i = 0; i < (u64)sets * SL_WAYS; i++) {
		const struct sl_way *way = &table[i / SL_WAYS].way[i % SL_WAYS];
		u64 key = __atomic_load_n(&way->key, __ATOMIC_ACQUIRE), bucket_state;
		u32 slot = sl_key_limit_id(key);
		const struct sl_params *p;

		if (sl_key_is_record(key)) {
			bucket_state = __atomic_load_n(&way->bucket_state, __ATOMIC_ACQUIRE);
			if (__atomic_load_n(&way->key, __ATOMIC_ACQUIRE) == key)
				save_record((struct sl_way){ key, bucket_state }, (u32)(i / SL_WAYS), now, ret);
			continue;
		}
		if (!key || slot >= SL_LIMIT_IDS || !number[slot])
			continue;
		bucket_state = __atomic_load_n(&way->bucket_state, __ATOMIC_ACQUIRE);
		p = &rules->limits[rules->limit_of_id[slot]].params;
		if (!bucket_state || bucket_state == SL_STATE_BUSY ||
		    sl_expired(bucket_state, p, now) ||
		    __atomic_load_n(&way->key, __ATOMIC_ACQUIRE) != key)
			continue;
		ret->digest += (key ^ sl_rotl(bucket_state, 29)) * 0x9e3779b97f4a7c15ULL;
		out = add_entry(ret, 1);
		if (!out)
			continue;
		*out = (struct saved_bucket){
			.meter = number[slot] - 1U,
			.set = (u32)(i / SL_WAYS),
			.hash = key & (SL_KEY_HASH_MASK | SL_KEY_REFUSED),
			.value = sl_is_bucket(p) ? now.utc_ns + debt_ns(bucket_state, p, now)
						 : bucket_state,
		};
	}
}

int dp_state_save(struct dp *dp, struct sl_now now, struct dp_saved_state *ret)
{
	const struct sl_rules *rules = dp_rules_at(dp, now.mono_ns);
	struct meter *meters = calloc(SL_LIMIT_IDS, sizeof(*meters));
	u16 number[SL_LIMIT_IDS];
	struct head *head;
	u32 count, sets;
	u64 room;

	memset(ret, 0, sizeof(*ret));
	count = meters && rules ? find_meters(dp, rules, meters, number) : 0;
	dp->ops->table(dp, &sets);
	room = (u64)sets * SL_WAYS < DP_STATE_MAX ? (u64)sets * SL_WAYS : DP_STATE_MAX;
	/* Memory that is not touched costs nothing. */
	head = count ? malloc(sizeof(*head) + count * sizeof(*meters) +
			      room * sizeof(struct saved_bucket))
		     : NULL;
	if (head) {
		*head = (struct head){ .magic = MAGIC, .version = VERSION, .abi = SL_ABI_VERSION,
				       .written_utc_ns = now.utc_ns,
				       .seed = rules->seed, .sets = sets, .meters = count };
		memcpy(meters_of(head), meters, count * sizeof(*meters));
		ret->data = head;
		save_buckets(dp, rules, number, now, ret);
		ret->size = (char *)(buckets_of(head) + head->words) - (char *)head;
	}
	free(meters);
	return meters && (head || !count) ? 0 : -ENOMEM;
}

/* Against tearing, not against forging: whoever can write the file is root. */
static u64 check_of(const void *data, size_t size)
{
	const u64 *at = data;
	struct sl_sip sip;

	sl_sip_start(&sip, (struct sl_seed){ 0x776f726473, VERSION });
	for (size_t i = offsetof(struct head, version) / sizeof(*at); i < size / sizeof(*at); i++)
		sl_sip_add(&sip, at[i]);
	sl_sip_add(&sip, size);
	return sl_sip_finish(&sip);
}

void dp_state_seal(void *data, size_t size)
{
	((struct head *)data)->check = check_of(data, size);
}

/* ------------------------------------------------------------------ restoring */

const char *dp_state_check(const void *data, size_t size)
{
	const struct head *head = data;

	if (size < sizeof(*head) || memcmp(head->magic, MAGIC, sizeof(head->magic)) != 0)
		return "is not one of sluice's";
	if (head->version != VERSION || head->abi != SL_ABI_VERSION)
		return "is of another version";
	if (head->meters > SL_LIMIT_IDS || head->words > DP_STATE_MAX ||
	    size != sizeof(*head) + head->meters * sizeof(struct meter) +
			    head->words * sizeof(struct saved_bucket))
		return "has been cut or extended";
	if (head->check != check_of(data, size))
		return "is damaged";
	return NULL;
}

struct sl_seed dp_state_seed(const void *data)
{
	return ((const struct head *)data)->seed;
}

void dp_state_bind(struct dp *dp, const void *data)
{
	struct sl_limit_id_info *slots = dp->ops->slots(dp);
	const struct head *head = data;

	for (u64 i = 0; i < head->meters; i++) {
		const struct meter *meter = &meters_of(data)[i];

		if (meter->slot < 1 || meter->slot >= SL_LIMIT_IDS ||
		    slots[meter->slot].state != SL_LIMIT_ID_FREE)
			continue;
		memcpy(slots[meter->slot].name, meter->name, SL_NAME_MAX);
		slots[meter->slot].name[SL_NAME_MAX - 1] = '\0';
		slots[meter->slot].kind = meter->kind;
		slots[meter->slot].state = SL_LIMIT_ID_DRAINING;
	}
}

/* The row that is bound to this name and kind now, or SL_NO_METER. */
static u32 find_meter(struct dp *dp, const struct sl_rules *rules, const struct meter *meter)
{
	const struct sl_limit_id_info *slots = dp->ops->slots(dp);

	for (u32 slot = 1; slot < SL_LIMIT_IDS; slot++)
		if (slots[slot].state == SL_LIMIT_ID_BOUND && slots[slot].kind == meter->kind &&
		    !strncmp(slots[slot].name, meter->name, SL_NAME_MAX) &&
		    rules->limit_of_id[slot] < SL_METERS_MAX)
			return rules->limit_of_id[slot];
	return SL_NO_METER;
}

/* The word as it is now; 0: over. */
static u64 state_now(const struct saved_bucket *bucket_state, const struct meter *meter,
		     const struct sl_limit *limit, u64 written_utc_ns, struct sl_now now)
{
	const struct sl_params *p = &limit->params;
	unsigned __int128 debt;

	if (!sl_is_bucket(p)) {
		/* Windows are numbered modulo a power of two: an old one might read as this one. */
		if (now.utc_ns > written_utc_ns && (now.utc_ns - written_utc_ns) / 2 >= p->window_ns)
			return 0;
		return sl_expired(bucket_state->value, p, now) ? 0 : bucket_state->value;
	}
	if (bucket_state->value <= now.utc_ns)
		return 0;
	debt = (unsigned __int128)(bucket_state->value - now.utc_ns) * SL_TICKS_PER_NS;
	if (meter->tau && meter->tau != p->tau)
		debt = debt * p->tau / meter->tau;
	/* Beyond tau there is at most as much again: dp_bucket_charge(). */
	if (!limit->of_overrides && debt > 2 * (unsigned __int128)p->tau)
		debt = 2 * (unsigned __int128)p->tau;
	return debt < SL_BIT(61) ? sl_gcra_state(p, now.mono_ns * SL_TICKS_PER_NS, (u64)debt) : 0;
}

/* A record as it is now; its word is 0 where it has ended. */
static struct sl_way record_now(const struct saved_bucket *bucket_state, u64 written_utc_ns,
				struct sl_now now)
{
	u64 left = sl_record_left(bucket_state->hash, bucket_state->value, written_utc_ns), left_ns, passed_ns, units;
	struct sl_way way = { bucket_state->hash, bucket_state->value };

	left_ns = left ? sl_record_left_ns(left, written_utc_ns) : 0;
	passed_ns = now.utc_ns > written_utc_ns ? now.utc_ns - written_utc_ns : 0;
	if (!sl_key_is_record(bucket_state->hash) || left_ns <= passed_ns)
		return (struct sl_way){ 0 };
	units = sl_record_units(left_ns - passed_ns, now.mono_ns);
	return sl_record_ends(way, units < SL_RECORD_AHEAD ? units : SL_RECORD_AHEAD, now.mono_ns);
}

static bool restore_record(struct dp *dp, const struct saved_bucket *bucket_state,
			   const struct head *head, struct sl_now now)
{
	struct sl_way way = record_now(bucket_state, head->written_utc_ns, now);

	return way.bucket_state && dp_bucket_put_at(dp, bucket_state->set, way, now);
}

static bool restore_word(struct dp *dp, const struct saved_bucket *bucket_state, const struct sl_limit *limit, u64 is,
			 bool same_table, struct sl_now now)
{
	u64 key = sl_key(limit->slot, bucket_state->hash) | (bucket_state->hash & SL_KEY_REFUSED);
	u64 single_meter = key & ~SL_KEY_REFUSED;
	u32 sets;

	if (!is)
		return false;
	dp->ops->table(dp, &sets);
	/* Where it was there is room for it, and for all others that were there. */
	if (same_table &&
	    (sl_table_set(single_meter, 0, sets) == bucket_state->set ||
	     sl_table_set(single_meter, 1, sets) == bucket_state->set) &&
	    !dp_bucket_state(dp, single_meter) &&
	    dp_bucket_put_at(dp, bucket_state->set, (struct sl_way){key, is}, now))
		return true;
	return dp_bucket_put(dp, key, is, now);
}

struct dp_state_restored dp_state_restore(struct dp *dp, const void *data, struct sl_now now)
{
	const struct sl_rules *rules = dp->ops->rules(dp);
	const struct head *head = data;
	const struct saved_bucket *bucket_state = buckets_of(data);
	struct dp_state_restored ret = { 0 };
	u32 index[SL_LIMIT_IDS], sets;
	bool same_table;

	if (!rules || head->written_utc_ns > now.utc_ns + AHEAD_NS) {
		ret.gone = head->words;
		return ret;
	}
	dp->ops->table(dp, &sets);
	same_table = sets == head->sets;
	for (u64 i = 0; i < head->meters; i++)
		index[i] = find_meter(dp, rules, &meters_of(data)[i]);
	for (u64 i = 0; i < head->words; i++, bucket_state++) {
		const struct sl_limit *limit;
		bool put;

		if (bucket_state->meter == RECORD_ROW) {
			put = same_table && bucket_state->set < sets &&
			      restore_record(dp, bucket_state, head, now);
			ret.records += put;
			ret.gone += !put;
			continue;
		}
		if (bucket_state->meter >= head->meters ||
		    index[bucket_state->meter] >= SL_METERS_MAX) {
			ret.gone++;
			continue;
		}
		limit = &rules->limits[index[bucket_state->meter]];
		put = restore_word(dp, bucket_state, limit,
				   state_now(bucket_state, &meters_of(data)[bucket_state->meter],
					     limit, head->written_utc_ns, now),
				   same_table, now);
		ret.put += put;
		ret.gone += !put;
	}
	return ret;
}
