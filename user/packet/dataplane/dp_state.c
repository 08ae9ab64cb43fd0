// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* dp_state.c - see dp_state.h. Numbers are in the machine's byte order: a file is not portable. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "packet/dataplane/dp_bucket.h"
#include "packet/dataplane/dp_state.h"

#define MAGIC "SLWORDS"
#define VERSION 2
#define RECORD_METER 0xffffffffU /* not a meter: the entry is a record */
/* A file from further in the future is ignored: the clock was wrong then, or is now. */
#define AHEAD_NS (60 * SL_NS_PER_SEC)

struct head {
	char magic[8];
	u64 check; /* of all that follows */
	u32 version, abi;
	u64 written_utc_ns;
	struct sl_seed seed;
	u64 sets; /* of the table: set numbers are valid in a table of the same size */
	u64 meters, buckets;
};

struct meter {
	char name[SL_NAME_MAX];
	u64 kind;
	u64 tau;  /* of buckets at the limit's own rates, to scale a debt; else 0 */
	u64 slot; /* fingerprints are computed with it */
};

struct saved_bucket {
	u32 meter, set;
	u64 hash;  /* of a record: its key; both halves have the time in UTC */
	u64 value; /* the bucket state; of a GCRA bucket the UTC time at which it is full */
};

_Static_assert(sizeof(struct head) % 8 == 0 && sizeof(struct meter) == 88 &&
		       sizeof(struct saved_bucket) == 24,
	       "whole words, and DP_STATE_BYTES_MAX");

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
	return p->algo != SL_ALGO_GRACE && sl_window_full_ns(p) >= DP_STATE_LONG_NS;
}

/* The state of a window from the first packet, its end moved by `by_ns` to another clock. */
static u64 moved(u64 bucket_state, const struct sl_params *p, u64 by_ns)
{
	u64 mask = SL_BIT(64 - p->quantum) - 1;
	u64 end = (bucket_state >> p->quantum) + (by_ns >> p->shift);

	return (end & mask) << p->quantum | (bucket_state & (SL_BIT(p->quantum) - 1));
}

/*
 * All meters, so that each gets its slot again; returns their number, 0 if none is long. `number`
 * has, by slot, the number of a long meter in the file, from 1; 0: none.
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

/* The debt of a bucket, including any beyond tau. */
static u64 debt_ns(u64 bucket_state, const struct sl_params *p, struct sl_now now)
{
	u64 ticks = now.mono_ns * SL_TICKS_PER_NS, full = bucket_state >> SL_GCRA_GEN_BITS;

	if ((bucket_state & SL_GCRA_GEN_MASK) != p->gen)
		return sl_gcra_debt(bucket_state, p, ticks) / SL_TICKS_PER_NS;
	return full > ticks ? (full - ticks) / SL_TICKS_PER_NS : 0;
}

/* Room for one more entry, of this many sources; NULL: full. */
static struct saved_bucket *add_entry(struct dp_saved_state *saved, u32 sources)
{
	struct head *head = saved->data;

	if (head->buckets == DP_STATE_MAX) {
		saved->left_out += sources;
		return NULL;
	}
	saved->words += sources;
	return &buckets_of(head)[head->buckets++];
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
		.meter = RECORD_METER, .set = set, .hash = way.key, .value = way.bucket_state
	};
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
				save_record((struct sl_way){ key, bucket_state },
					    (u32)(i / SL_WAYS), now, ret);
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
		if (sl_algo_is_anchored(p->algo))
			bucket_state = moved(bucket_state, p, now.utc_ns - now.mono_ns);
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
	/* Untouched memory costs nothing, so allocate for the worst case. */
	head = count ? malloc(sizeof(*head) + count * sizeof(*meters) +
			      room * sizeof(struct saved_bucket))
		     : NULL;
	if (head) {
		*head = (struct head){ .magic = MAGIC,
				       .version = VERSION,
				       .abi = SL_ABI_VERSION,
				       .written_utc_ns = now.utc_ns,
				       .seed = rules->seed,
				       .sets = sets,
				       .meters = count };
		memcpy(meters_of(head), meters, count * sizeof(*meters));
		ret->data = head;
		save_buckets(dp, rules, number, now, ret);
		ret->size = (char *)(buckets_of(head) + head->buckets) - (char *)head;
	}
	free(meters);
	return meters && (head || !count) ? 0 : -ENOMEM;
}

/* Detects torn writes, not forgery: only root can write the file. */
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
		return "is not a state file of sluice";
	if (head->version != VERSION || head->abi != SL_ABI_VERSION)
		return "has another version";
	if (head->meters > SL_LIMIT_IDS || head->buckets > DP_STATE_MAX ||
	    size != sizeof(*head) + head->meters * sizeof(struct meter) +
			    head->buckets * sizeof(struct saved_bucket))
		return "was truncated or extended";
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

/* The meter bound to this name and kind now, or SL_NO_METER. */
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

/* The bucket state as of now; 0: expired. */
static u64 state_now(const struct saved_bucket *saved, const struct meter *meter,
		     const struct sl_limit *limit, u64 written_utc_ns, struct sl_now now)
{
	const struct sl_params *p = &limit->params;
	u64 value = saved->value;
	unsigned __int128 debt;

	if (!sl_is_bucket(p)) {
		/* Windows are numbered modulo a power of two: an old one might read as this one. */
		if (now.utc_ns > written_utc_ns &&
		    (now.utc_ns - written_utc_ns) / 2 >= sl_window_full_ns(p))
			return 0;
		if (sl_algo_is_anchored(p->algo))
			value = moved(value, p,
				      -((now.utc_ns - now.mono_ns) >> p->shift << p->shift));
		return sl_expired(value, p, now) ? 0 : value;
	}
	if (saved->value <= now.utc_ns)
		return 0;
	debt = (unsigned __int128)(saved->value - now.utc_ns) * SL_TICKS_PER_NS;
	if (meter->tau && meter->tau != p->tau)
		debt = debt * p->tau / meter->tau;
	/* Beyond tau there is at most as much again: dp_bucket_charge(). */
	if (!limit->of_overrides && debt > 2 * (unsigned __int128)p->tau)
		debt = 2 * (unsigned __int128)p->tau;
	return debt < SL_BIT(61) ? sl_gcra_state(p, now.mono_ns * SL_TICKS_PER_NS, (u64)debt) : 0;
}

/* A record as of now; its bucket state is 0 if it has ended. */
static struct sl_way record_now(const struct saved_bucket *saved, u64 written_utc_ns,
				struct sl_now now)
{
	u64 left = sl_record_left(saved->hash, saved->value, written_utc_ns), left_ns, passed_ns,
	    units;
	struct sl_way way = { saved->hash, saved->value };

	left_ns = left ? sl_record_left_ns(left, written_utc_ns) : 0;
	passed_ns = now.utc_ns > written_utc_ns ? now.utc_ns - written_utc_ns : 0;
	if (!sl_key_is_record(saved->hash) || left_ns <= passed_ns)
		return (struct sl_way){ 0 };
	units = sl_record_units(left_ns - passed_ns, now.mono_ns);
	return sl_record_ends(way, units < SL_RECORD_AHEAD ? units : SL_RECORD_AHEAD, now.mono_ns);
}

static bool restore_record(struct dp *dp, const struct saved_bucket *saved, const struct head *head,
			   struct sl_now now)
{
	struct sl_way way = record_now(saved, head->written_utc_ns, now);

	return way.bucket_state && dp_bucket_put_at(dp, saved->set, way, now);
}

static bool restore_bucket(struct dp *dp, const struct saved_bucket *saved,
			   const struct sl_limit *limit, u64 is, bool same_table, struct sl_now now)
{
	u64 key = sl_key(limit->slot, saved->hash) | (saved->hash & SL_KEY_REFUSED);
	u64 plain_key = key & ~SL_KEY_REFUSED;
	u32 sets;

	if (!is)
		return false;
	dp->ops->table(dp, &sets);
	/* Its old set has room for it and for all others that it had. */
	if (same_table &&
	    (sl_table_set(plain_key, 0, sets) == saved->set ||
	     sl_table_set(plain_key, 1, sets) == saved->set) &&
	    !dp_bucket_state(dp, plain_key) &&
	    dp_bucket_put_at(dp, saved->set, (struct sl_way){ key, is }, now))
		return true;
	return dp_bucket_put(dp, key, is, now);
}

struct dp_state_restored dp_state_restore(struct dp *dp, const void *data, struct sl_now now)
{
	const struct sl_rules *rules = dp->ops->rules(dp);
	const struct head *head = data;
	const struct saved_bucket *saved = buckets_of(data);
	struct dp_state_restored ret = { 0 };
	u32 index[SL_LIMIT_IDS], sets;
	bool same_table;

	if (!rules || head->written_utc_ns > now.utc_ns + AHEAD_NS) {
		ret.gone = head->buckets;
		return ret;
	}
	dp->ops->table(dp, &sets);
	same_table = sets == head->sets;
	for (u64 i = 0; i < head->meters; i++)
		index[i] = find_meter(dp, rules, &meters_of(data)[i]);
	for (u64 i = 0; i < head->buckets; i++, saved++) {
		const struct sl_limit *limit;
		bool put;

		if (saved->meter == RECORD_METER) {
			put = same_table && saved->set < sets &&
			      restore_record(dp, saved, head, now);
			ret.records += put;
			ret.gone += !put;
			continue;
		}
		if (saved->meter >= head->meters || index[saved->meter] >= SL_METERS_MAX) {
			ret.gone++;
			continue;
		}
		limit = &rules->limits[index[saved->meter]];
		put = restore_bucket(dp, saved, limit,
				     state_now(saved, &meters_of(data)[saved->meter], limit,
					       head->written_utc_ns, now),
				     same_table, now);
		ret.put += put;
		ret.gone += !put;
	}
	return ret;
}
