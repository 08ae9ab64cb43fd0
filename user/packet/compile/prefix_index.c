/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prefix_index.c - builds the prefix index: sort, sweep, place.
 *
 * 1. The statements are sorted by (dimension, family, address, length), so equal ones are
 *    adjacent and a prefix comes right before those inside it.
 * 2. One sweep with a stack of covering prefixes gives each distinct prefix its class: its
 *    own facts and all those of its stack. Equal classes are stored once.
 * 3. IPv4 prefixes become ranges of addresses: prefix_v4.c.
 * 4. For IPv6 a second sweep (prefix_hash.c) makes the keys of the hash: each prefix, and a marker
 *    at each shorter length from which the bisection must continue with longer ones. The class of
 *    a marker is that of the longest prefix covering it, so a bisection never goes back. Then the
 *    keys are placed in buckets.
 *
 * The index is a function of the statements, the base and the seed, so the digest covers only
 * these: a change that leaves them as they are shares the index of before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "lib/bitmap.h"
#include "packet/compile/prefix_hash.h"
#include "packet/compile/prefix_index.h"

#define INTERN_SLOTS 65536 /* a power of two, twice SL_PCLASS_MAX */
#define DEPTH_MAX 129	   /* nested prefixes: lengths 0..128 */

struct builder {
	struct prefix_index *index;
	struct prefix_nodes prefixes; /* distinct, sorted */
	struct prefix_nodes keys;     /* IPv6 */
	u32 *intern;		      /* open addressing: class + 1, 0 free */
};

/* ------------------------------------------------------------------ lists */

int prefix_list_add(struct prefix_list *list, const struct prefix_entry *entry)
{
	struct prefix_entry masked = *entry;

	masked.addr = sl_addr_mask(entry->addr, entry->len);
	return append(list->entry, list->count, masked);
}

void prefix_list_free(struct prefix_list *list)
{
	free(list->entry);
	memset(list, 0, sizeof(*list));
}

/* ------------------------------------------------------------------ 1. sort */

static int compare_u64(u64 a, u64 b)
{
	return (a > b) - (a < b);
}

static int compare_entries(const void *left, const void *right)
{
	const struct prefix_entry *a = left, *b = right;
	int order = (a->dim - b->dim) * 2 + (a->family - b->family);

	if (!order)
		order = compare_u64(a->addr.hi, b->addr.hi);
	if (!order)
		order = compare_u64(a->addr.lo, b->addr.lo);
	return order ? order : a->len - b->len;
}

static bool same_group(const struct prefix_node *a, const struct prefix_node *b)
{
	return a->dim == b->dim && a->family == b->family;
}

/* ------------------------------------------------------------------ 2. classes */

static u64 hash_class(const struct sl_pclass *pclass)
{
	struct sl_sip sip;

	sl_sip_start(&sip, (struct sl_seed){ 0 });
	for (size_t i = 0; i < SL_BITMAP_WORDS; i++)
		sl_sip_add(&sip, pclass->limits.w[i]);
	sl_sip_add(&sip, pclass->block_until);
	sl_sip_add(&sip, pclass->wide_block_until);
	sl_sip_add(&sip, pclass->exempt_until);
	sl_sip_add(&sip, pclass->flags);
	return sl_sip_finish(&sip);
}

/* The number of a class, which is added if new; -E2BIG for too many classes. */
static int intern_class(struct builder *b, const struct sl_pclass *pclass, u32 *ret)
{
	struct prefix_index *index = b->index;
	u64 slot = hash_class(pclass);

	for (;; slot++) {
		u32 *entry = &b->intern[slot & (INTERN_SLOTS - 1)];

		if (!*entry) {
			if (index->pclass_count == SL_PCLASS_MAX)
				return -E2BIG;
			index->pclass[index->pclass_count] = *pclass;
			*entry = ++index->pclass_count;
		} else if (memcmp(&index->pclass[*entry - 1], pclass, sizeof(*pclass))) {
			continue;
		}
		*ret = *entry - 1;
		return 0;
	}
}

static u64 later(u64 a, u64 b)
{
	return a > b ? a : b;
}

static void add_fact(struct sl_pclass *pclass, const struct prefix_entry *entry)
{
	switch (entry->fact) {
	case PREFIX_LIMIT:
		bitmap_set(&pclass->limits, entry->limit);
		break;
	case PREFIX_BLOCK:
		pclass->block_until = later(pclass->block_until, entry->until);
		break;
	case PREFIX_WIDE_BLOCK:
		pclass->wide_block_until = later(pclass->wide_block_until, entry->until);
		break;
	case PREFIX_EXEMPT:
		pclass->exempt_until = later(pclass->exempt_until, entry->until);
		break;
	case PREFIX_LOCAL:
		pclass->flags |= SL_PC_LOCAL;
		break;
	case PREFIX_NO_BAN:
		pclass->flags |= SL_PC_NO_BAN;
		break;
	}
}

/* Sorted statements -> distinct prefixes with their classes. */
static int sweep(struct builder *b, const struct prefix_list *list, const struct sl_bitmap *base)
{
	struct {
		struct prefix_node node;
		struct sl_pclass pclass;
	} stack[DEPTH_MAX + 1];
	u32 depth = 0;

	for (size_t i = 0; i < list->count;) {
		const struct prefix_entry *first = &list->entry[i];
		struct prefix_node node = {
			.addr = first->addr,
			.family = first->family,
			.len = first->len,
			.dim = first->dim,
		};
		struct sl_pclass pclass = { .limits = base[first->dim] };
		int err;

		while (depth && !(same_group(&stack[depth - 1].node, &node) &&
				  prefix_node_covers(&stack[depth - 1].node, &node)))
			depth--;
		if (depth)
			pclass = stack[depth - 1].pclass;
		for (; i < list->count && !compare_entries(&list->entry[i], first); i++)
			add_fact(&pclass, &list->entry[i]);

		err = intern_class(b, &pclass, &node.class);
		if (!err)
			err = prefix_nodes_add(&b->prefixes, &node);
		if (err)
			return err;
		stack[depth].node = node;
		stack[depth++].pclass = pclass;
	}
	return 0;
}

/* ------------------------------------------------------------------ 3., 4. ranges, keys */

static int index_groups(struct builder *b)
{
	const struct prefix_node *node = b->prefixes.node;
	size_t first, end;

	for (first = 0; first < b->prefixes.count; first = end) {
		int err;

		for (end = first + 1; end < b->prefixes.count; end++) {
			if (!same_group(&node[first], &node[end]))
				break;
		}
		if (node[first].family == SL_V4) {
			err = prefix_v4_build(&node[first], end - first, b->index->v4_top,
					      &b->index->v4);
		} else {
			struct sl_lengths *lengths = &b->index->lengths[node[first].dim];

			prefix_lengths(&node[first], end - first, lengths);
			err = prefix_keys_add(lengths, &node[first], end - first, &b->keys);
		}
		if (err)
			return err;
	}
	return 0;
}

/* ------------------------------------------------------------------ all of it */

u64 prefix_list_digest(const struct prefix_list *list, const struct sl_bitmap base[SL_PDIM_COUNT],
		       struct sl_seed seed)
{
	struct sl_sip sip;
	u64 sum = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct prefix_entry *entry = &list->entry[i];

		sl_sip_start(&sip, seed);
		sl_sip_add(&sip, entry->addr.hi);
		sl_sip_add(&sip, entry->addr.lo);
		sl_sip_add(&sip, (u64)entry->limit << 32 | entry->fact << 24 | entry->dim << 16 |
					 entry->family << 8 | entry->len);
		sl_sip_add(&sip, entry->until);
		sum += sl_sip_finish(&sip);
	}
	sl_sip_start(&sip, seed);
	for (u32 dim = 0; dim < SL_PDIM_COUNT; dim++)
		for (u32 word = 0; word < SL_BITMAP_WORDS; word++)
			sl_sip_add(&sip, base[dim].w[word]);
	sl_sip_add(&sip, sum);
	sl_sip_add(&sip, list->count);
	return sl_sip_finish(&sip);
}

/*
 * Class 0 is the class of addresses in no prefix and can hold the base of one dimension. If the
 * base of `dst` differs from that of `src`, prefixes of length 0 put every address of `dst` in a
 * prefix.
 */
static int add_dst_base(struct prefix_list *list)
{
	for (u32 family = 0; family < SL_FAMILY_COUNT; family++) {
		int err = prefix_list_add(list, &(struct prefix_entry){
							.family = family,
							.dim = SL_PDIM_DST,
							.fact = PREFIX_NOTHING,
						});

		if (err)
			return err;
	}
	return 0;
}

static int build(struct builder *b, struct prefix_list *list, const struct sl_bitmap *base)
{
	struct prefix_index *index = b->index;
	struct sl_pclass none = { .limits = base[SL_PDIM_SRC] };
	u32 class0;
	int err;

	b->intern = calloc(INTERN_SLOTS, sizeof(*b->intern));
	index->pclass = aligned_alloc(64, SL_PCLASS_MAX * sizeof(*index->pclass));
	index->v4_top = calloc(1, sizeof(*index->v4_top));
	/* Line 0 is unused, because a map needs at least one element. */
	index->v4 = (struct v4_lines){ calloc(1, sizeof(*index->v4.line)), .count = 1, .room = 1,
				       .used = SL_V4_RANGES };
	if (!b->intern || !index->pclass || !index->v4_top || !index->v4.line)
		return -ENOMEM;
	if (!bitmap_equal(&base[SL_PDIM_SRC], &base[SL_PDIM_DST])) {
		err = add_dst_base(list);
		if (err)
			return err;
	}
	if (list->count)
		qsort(list->entry, list->count, sizeof(*list->entry), compare_entries);
	err = intern_class(b, &none, &class0);
	if (!err)
		err = sweep(b, list, base);
	if (!err)
		err = index_groups(b);
	if (!err)
		err = prefix_hash_build(b->keys.node, b->keys.count, index->seed, &index->bucket,
					&index->buckets);
	return err;
}

int prefix_index_build(struct prefix_list *list, const struct sl_bitmap base[SL_PDIM_COUNT],
		       struct sl_seed seed, struct prefix_index *ret, struct sl_err *err)
{
	struct prefix_index index = { .seed = seed,
				      .digest = prefix_list_digest(list, base, seed) };
	struct builder b = { .index = &index };
	int ret_code = build(&b, list, base);

	free(b.intern);
	free(b.prefixes.node);
	free(b.keys.node);
	if (ret_code) {
		prefix_index_free(&index);
		if (ret_code == -E2BIG)
			return sl_err_set(
				err, E2BIG,
				"the prefixes of limits, block and exempt form more than %d different combinations of limits and deadlines",
				SL_PCLASS_MAX);
		return sl_err_set(err, -ret_code, "no memory for the prefix index");
	}
	*ret = index;
	return 0;
}

void prefix_index_free(struct prefix_index *index)
{
	free(index->v4_top);
	free(index->v4.line);
	free(index->bucket);
	free(index->pclass);
	memset(index, 0, sizeof(*index));
}

int prefix_index_share(struct prefix_index *before, struct prefix_list *list,
		       const struct sl_bitmap base[SL_PDIM_COUNT], struct sl_seed seed,
		       struct prefix_index **ret, struct sl_err *err)
{
	struct prefix_index *index;
	int rc;

	if (before && before->digest == prefix_list_digest(list, base, seed)) {
		before->refs++;
		*ret = before;
		return 0;
	}
	index = calloc(1, sizeof(*index));
	if (!index)
		return sl_err_set(err, ENOMEM, "no memory for the prefix index");
	rc = prefix_index_build(list, base, seed, index, err);
	if (rc) {
		free(index);
		return rc;
	}
	index->refs = 1;
	*ret = index;
	return 0;
}

void prefix_index_put(struct prefix_index *index)
{
	if (!index || --index->refs)
		return;
	prefix_index_free(index);
	free(index);
}
