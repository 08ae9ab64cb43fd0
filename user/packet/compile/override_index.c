// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * override_index.c - see override_index.h; prefix_hash.c makes and places the keys.
 *
 * A limit with several rates or prefix lengths has its overrides in the index once for each meter,
 * because the parameters differ; so each meter needs only one lookup. A step that is wider than an
 * override does not count the override's sources, which have their own budget. At the finest step,
 * which has to count them, such an override gets a bucket of its own.
 *
 * Placing 100000 overrides takes about 20 ms. An unrelated change does not repeat this: the index
 * is kept from image to image while its digest stays the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "lib/spare.h"
#include "packet/compile/override_index.h"
#include "packet/compile/prefix_hash.h"

static u64 serials;
static struct spare bucket_spare;
static u64 spare_serial; /* of the index whose buckets it has */

struct building {
	struct prefix_placing placing;
	const struct override_meters *meters;
	struct sl_rules *rules;
	struct prefix_nodes keys;
	const struct override_meter *of_meter[SL_METERS_MAX];
};

struct override_meter *override_meters_add(struct override_meters *meters,
					   const struct limit_def *def, u32 meter)
{
	struct sl_params *params = calloc(def->override_rates_count, sizeof(*params));

	if (!params ||
	    append(meters->meter, meters->count,
		   (struct override_meter){ .def = def, .meter = meter, .params = params })) {
		free(params);
		return NULL;
	}
	return &meters->meter[meters->count - 1];
}

void override_meters_free(struct override_meters *meters)
{
	for (size_t i = 0; i < meters->count; i++)
		free(meters->meter[i].params);
	free(meters->meter);
	meters->meter = NULL;
	meters->count = 0;
}

/* ------------------------------------------------------------------ entries */

/* The override in one meter. */
static struct sl_override entry_of(const struct override_meter *meter,
				   const struct override_def *def)
{
	const struct sl_params *params = &meter->params[def->rates];
	u32 flags = SL_OVERRIDE_USED, own = 0;

	if (def->src.len > meter->prefix[def->src.family])
		own = def->src.len;
	if (own && !meter->finest[def->src.family])
		flags |= SL_OVERRIDE_SKIP;
	return (struct sl_override){
		.mult = params->mult,
		.tau = params->tau,
		.rest = sl_override_rest(params->capacity, params->shift, own, flags),
	};
}

static struct sl_override entry_of_key(const struct building *b, const struct prefix_node *key)
{
	const struct override_meter *meter = b->of_meter[key->dim];

	if (!key->class)
		return (struct sl_override){ .rest = SL_OVERRIDE_USED | SL_OVERRIDE_NONE };
	return entry_of(meter, &meter->def->override[key->class - 1]);
}

/* ------------------------------------------------------------------ digest */

static struct sl_pfx_hash hash_of(const struct sl_prefix *src, u32 meter, struct sl_seed seed,
				  u32 buckets)
{
	return sl_override_hash(src->addr, src->len, src->family, meter, seed, buckets);
}

/* The digest is the sum of these: of all overrides in all meters, without the markers that follow
 * from them. */
static u64 digest_of_entry(u64 tag, const struct sl_override *entry)
{
	u64 x = tag;

	x = (x ^ entry->mult) * 0xff51afd7ed558ccdULL;
	x = (x ^ x >> 32 ^ entry->tau) * 0xc4ceb9fe1a85ec53ULL;
	x = (x ^ x >> 32 ^ (entry->rest & ~(u64)SL_OVERRIDE_SPILLED)) * 0x9e3779b97f4a7c15ULL;
	return x ^ x >> 32;
}

static u64 digest_of(const struct building *b)
{
	u64 sum = 0;

	for (size_t i = 0; i < b->meters->count; i++) {
		const struct override_meter *meter = &b->meters->meter[i];

		for (size_t k = 0; k < meter->def->override_count; k++) {
			const struct override_def *o = &meter->def->override[k];
			struct sl_override entry;

			if (o->removed || meter->prefix[o->src.family] == SL_PREFIX_NONE)
				continue;
			entry = entry_of(meter, o);
			sum += digest_of_entry(
				hash_of(&o->src, meter->meter, b->rules->seed, 1).tag, &entry);
		}
	}
	return sum;
}

/* ------------------------------------------------------------------ keys */

/* The prefix lengths in use, for each limit with overrides. */
static void find_lengths(const struct building *b)
{
	for (size_t i = 0; i < b->meters->count; i++) {
		const struct limit_def *def = b->meters->meter[i].def;
		u32 limit = b->rules->limits[b->meters->meter[i].meter].head;
		bool used[SL_FAMILY_COUNT][SL_LENGTHS_MAX] = { { false } };

		for (size_t k = 0; k < def->override_count; k++)
			if (!def->override[k].removed)
				used[def->override[k].src.family][def->override[k].src.len] = true;
		for (u32 family = 0; family < SL_FAMILY_COUNT; family++) {
			struct sl_lengths *lengths = &b->rules->override_lengths[limit][family];

			lengths->count = 0;
			for (u32 len = 0; len < SL_LENGTHS_MAX; len++)
				if (used[family][len])
					lengths->len[lengths->count++] = len;
		}
	}
}

/* The overrides of one family in one meter; class is the override's number + 1. */
static int list_nodes(const struct override_meter *meter, u32 family, struct prefix_nodes *ret)
{
	ret->count = 0;
	for (size_t i = 0; i < meter->def->override_count; i++) {
		const struct override_def *o = &meter->def->override[i];
		struct prefix_node node = {
			.addr = o->src.addr,
			.class = i + 1,
			.dim = meter->meter,
			.family = family,
			.len = o->src.len,
		};

		if (o->removed || o->src.family != family)
			continue;
		if (prefix_nodes_add(ret, &node))
			return -ENOMEM;
	}
	return 0;
}

static int make_keys(struct building *b)
{
	struct prefix_nodes nodes = { 0 };
	int err = 0;

	for (size_t i = 0; i < b->meters->count && !err; i++) {
		const struct override_meter *meter = &b->meters->meter[i];
		u32 limit = b->rules->limits[meter->meter].head;

		b->of_meter[meter->meter] = meter;
		for (u32 family = 0; family < SL_FAMILY_COUNT && !err; family++) {
			if (meter->prefix[family] == SL_PREFIX_NONE)
				continue;
			err = list_nodes(meter, family, &nodes);
			if (!err)
				err = prefix_keys_add(&b->rules->override_lengths[limit][family],
						      nodes.node, nodes.count, &b->keys);
		}
	}
	free(nodes.node);
	return err;
}

/* ------------------------------------------------------------------ buckets */

static struct sl_pfx_hash hash_key(const struct prefix_placing *placing, u32 key)
{
	const struct building *b = (const struct building *)placing;
	const struct prefix_node *node = &b->keys.node[key];

	return sl_override_hash(node->addr, node->len, node->family, node->dim, b->rules->seed,
				placing->buckets);
}

static void write_buckets(const struct building *b, struct sl_override_bucket *bucket)
{
	memset(bucket, 0, b->placing.buckets * sizeof(*bucket));
	for (u32 way = 0; way < b->placing.buckets * SL_OVERRIDE_WAYS; way++) {
		u32 at = way / SL_OVERRIDE_WAYS, key = b->placing.owner[way];
		struct sl_override *to = &bucket[at].e[way % SL_OVERRIDE_WAYS], entry;
		struct sl_pfx_hash h;

		if (!key)
			continue;
		h = hash_key(&b->placing, key - 1);
		entry = entry_of_key(b, &b->keys.node[key - 1]);
		entry.tag = h.tag;
		entry.rest |= to->rest; /* in addition to the flag */
		*to = entry;
		if (h.bucket[0] != at)
			bucket[h.bucket[0]].e[0].rest |= SL_OVERRIDE_SPILLED;
	}
}

static int build(struct building *b, struct override_index *index)
{
	int err = prefix_hash_place(&b->placing);

	if (err)
		return err;
	index->bucket = spare_take(&bucket_spare, b->placing.buckets * sizeof(*index->bucket));
	index->buckets = b->placing.buckets;
	index->keys = b->placing.count;
	index->serial = ++serials;
	if (index->bucket)
		write_buckets(b, index->bucket);
	free(b->placing.owner);
	return index->bucket ? 0 : -ENOMEM;
}

/* ------------------------------------------------------------------ all of it */

int override_index_build(const struct override_meters *meters, struct override_index *before,
			 struct sl_rules *rules, struct override_index **ret)
{
	struct building b = {
		.placing = { .ways = SL_OVERRIDE_WAYS, .hash = hash_key },
		.meters = meters,
		.rules = rules,
	};
	struct override_index *index = calloc(1, sizeof(*index));
	int err = 0;

	if (!index)
		return -ENOMEM;
	index->users = 1;
	index->digest = digest_of(&b);
	find_lengths(&b);
	if (before && before->digest == index->digest) {
		free(index);
		index = before;
		index->users++;
	} else {
		err = make_keys(&b);
		b.placing.count = b.keys.count;
		if (!err)
			err = build(&b, index);
		free(b.keys.node);
	}
	if (err) {
		override_index_put(index);
		return err;
	}
	rules->override_buckets = index->buckets;
	*ret = index;
	return 0;
}

/* ------------------------------------------------------------------ one override */

/* A way of either bucket with this tag; 0: a free one. */
static struct sl_override *find_way(struct override_index *index, const struct sl_pfx_hash *h,
				    u64 tag)
{
	for (u32 n = 0; n < 2 * SL_OVERRIDE_WAYS; n++) {
		struct sl_override *way =
			&index->bucket[h->bucket[n / SL_OVERRIDE_WAYS]].e[n % SL_OVERRIDE_WAYS];

		if (way->tag == tag)
			return way;
	}
	return NULL;
}

static void note_change(struct override_index *index, const struct sl_override *way)
{
	u32 at = index->changes++ % OVERRIDE_CHANGES;

	index->changed[at].from = index->serial;
	index->changed[at].bucket = (u32)((way - index->bucket->e) / SL_OVERRIDE_WAYS);
	index->serial = ++serials;
}

/* Of the last changes. */
static u32 place_of_change(const struct override_index *index, u32 back)
{
	return (index->changes - 1 - back) % OVERRIDE_CHANGES;
}

bool override_index_follow(const struct override_index *index, u64 serial,
			   struct sl_override_bucket *copy)
{
	u32 known = index->changes < OVERRIDE_CHANGES ? index->changes : OVERRIDE_CHANGES,
	    behind = 0;
	u64 at = index->serial;

	for (; at != serial && behind < known; behind++)
		at = index->changed[place_of_change(index, behind)].from;
	if (!serial || at != serial)
		return false;
	while (behind--) {
		u32 bucket = index->changed[place_of_change(index, behind)].bucket;

		copy[bucket] = index->bucket[bucket];
	}
	return true;
}

static void write_way(struct override_index *index, struct sl_override *way,
		      struct sl_override entry)
{
	if (way->tag)
		index->digest -= digest_of_entry(way->tag, way);
	if (entry.tag)
		index->digest += digest_of_entry(entry.tag, &entry);
	index->keys += !!entry.tag - !!way->tag;
	entry.rest |= way->rest & SL_OVERRIDE_SPILLED;
	*way = entry;
	note_change(index, way);
}

/* False: there is no room, or so little that it is time for more buckets. */
static bool put_key(struct override_index *index, const struct sl_pfx_hash *h,
		    struct sl_override entry)
{
	struct sl_override *way = find_way(index, h, h->tag),
			   *first = index->bucket[h->bucket[0]].e;

	entry.tag = h->tag;
	if (!way) {
		way = find_way(index, h, 0);
		if (!way || (u64)index->keys * 8 >= (u64)index->buckets * SL_OVERRIDE_WAYS * 5)
			return false;
		if (way < first || way >= first + SL_OVERRIDE_WAYS) {
			first->rest |= SL_OVERRIDE_SPILLED;
			note_change(index, first);
		}
	}
	write_way(index, way, entry);
	return true;
}

static void remove_key(struct override_index *index, const struct sl_pfx_hash *h)
{
	struct sl_override *way = find_way(index, h, h->tag);

	if (way)
		write_way(index, way, (struct sl_override){ .tag = 0 });
}

static bool change_meter(struct override_index *index, const struct override_meter *meter,
			 const struct override_def *changed, struct sl_rules *rules)
{
	u32 family = changed->src.family;
	struct sl_lengths *lengths =
		&rules->override_lengths[rules->limits[meter->meter].head][family];
	struct sl_pfx_hash h = hash_of(&changed->src, meter->meter, rules->seed, index->buckets);

	/* After the last of a length is removed it stays, and finds nothing. */
	if (!lengths->count)
		*lengths = (struct sl_lengths){ .len = { changed->src.len }, .count = 1 };
	if (lengths->count > 1 || lengths->len[0] != changed->src.len)
		return false;
	if (meter->prefix[family] == SL_PREFIX_NONE)
		return true;
	if (!changed->removed)
		return put_key(index, &h, entry_of(meter, changed));
	remove_key(index, &h);
	return true;
}

int override_index_change(const struct override_meters *meters, const struct override_def *changed,
			  const struct override_index *before, struct sl_rules *rules,
			  struct override_index **ret)
{
	size_t size = before->buckets * sizeof(*before->bucket);
	struct override_index *index = malloc(sizeof(*index));
	u64 serial = bucket_spare.block ? spare_serial : 0;
	bool made = index && meters->count;

	if (!index)
		return 1;
	*index = *before;
	index->users = 1;
	index->bucket = spare_take(&bucket_spare, size);
	if (!index->bucket)
		made = false;
	else if (!override_index_follow(before, serial, index->bucket))
		memcpy(index->bucket, before->bucket, size);
	for (size_t i = 0; made && i < meters->count; i++)
		made = change_meter(index, &meters->meter[i], changed, rules);
	if (made)
		*ret = index;
	else
		override_index_put(index);
	return !made;
}

/* ------------------------------------------------------------------ finding */

static const struct sl_override *probe(const struct override_index *index,
				       const struct sl_rules *rules, u32 meter,
				       struct sl_addr source, u32 family, u32 len)
{
	struct sl_pfx_hash h = sl_override_hash(sl_addr_mask(source, len), len, family, meter,
						rules->seed, index->buckets);

	for (u32 which = 0; which < 2; which++) {
		const struct sl_override *e = index->bucket[h.bucket[which]].e;

		for (u32 way = 0; way < SL_OVERRIDE_WAYS; way++)
			if (e[way].tag == h.tag)
				return &e[way];
		if (!(e[0].rest & SL_OVERRIDE_SPILLED))
			break;
	}
	return NULL;
}

/* The bisection follows the order in which the markers were made, regardless of `longest`. */
const struct sl_override *override_index_find(const struct override_index *index,
					      const struct sl_rules *rules, u32 meter,
					      struct sl_addr source, u32 family, u32 longest)
{
	const struct sl_lengths *lengths;
	const struct sl_override *best = NULL, *entry;
	u32 lo = 0, hi;

	if (rules->limits[meter].overridden >= SL_METERS_MAX)
		return NULL;
	lengths = &rules->override_lengths[rules->limits[meter].head][family];
	hi = lengths->count;
	while (lo < hi) {
		u32 mid = (lo + hi) / 2, len = lengths->len[mid];

		entry = len > longest ? NULL : probe(index, rules, meter, source, family, len);
		if (entry) {
			best = entry;
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return best && !(best->rest & SL_OVERRIDE_NONE) ? best : NULL;
}

void override_index_put(struct override_index *index)
{
	if (!index || --index->users)
		return;
	if (index->bucket)
		spare_serial = index->serial;
	spare_put(&bucket_spare, index->bucket, index->buckets * sizeof(*index->bucket));
	free(index);
}
