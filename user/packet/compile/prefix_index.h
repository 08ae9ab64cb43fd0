/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prefix_index.h - compiles statements about prefixes to the index (abi.h) in which the data path
 * looks up a packet's addresses. The result is a class: all facts stated for the prefixes that
 * cover the address.
 */
#ifndef SLUICE_POLICY_PREFIX_INDEX_H
#define SLUICE_POLICY_PREFIX_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/addr.h"
#include "lib/err.h"
#include "packet/compile/prefix_v4.h"
#include "sluice/abi.h"

enum prefix_fact {
	PREFIX_NOTHING,	   /* the prefix only matches, without a fact */
	PREFIX_LIMIT,	   /* `limit` matches on it */
	PREFIX_BLOCK,	   /* until `until` */
	PREFIX_WIDE_BLOCK, /* until `until`; wider than /8 or /16 */
	PREFIX_EXEMPT,	   /* until `until` */
	PREFIX_LOCAL,	   /* an address of this host */
	PREFIX_NO_BAN,	   /* exempt from bans */
};

/* One statement. A prefix may have any number of them. */
struct prefix_entry {
	struct sl_addr addr; /* masked */
	u8 family;	     /* enum sl_family */
	u8 len;
	u8 dim;	   /* enum sl_pdim */
	u8 fact;   /* enum prefix_fact */
	u16 limit; /* 0..SL_LIMITS_MAX-1 */
	u64 until; /* CLOCK_MONOTONIC ns; ~0: no end */
};

struct prefix_list {
	struct prefix_entry *entry;
	size_t count;
};

/* 0 or -ENOMEM. The list is freed with prefix_list_free(), also after an error. */
int prefix_list_add(struct prefix_list *list, const struct prefix_entry *entry);
void prefix_list_free(struct prefix_list *list);

/*
 * The same for the same statements in any order, and else different: the index is a function of
 * them, the base and the seed. Computed in a tenth of the time that building takes.
 */
u64 prefix_list_digest(const struct prefix_list *list, const struct sl_bitmap base[SL_PDIM_COUNT],
		       struct sl_seed seed);

struct prefix_index {
	u32 refs; /* of images that share it */
	struct sl_v4_top *v4_top;
	struct v4_lines v4;			  /* at least 1 */
	struct sl_lengths lengths[SL_PDIM_COUNT]; /* IPv6, as the buckets */
	struct sl_pfx_bucket *bucket;
	u32 buckets; /* at least 1 */
	struct sl_seed seed;
	struct sl_pclass *pclass;
	u32 pclass_count; /* at least 1 */
	u64 digest;
};

/*
 * Builds the index of `list`, which is reordered (and may grow). base[dim]: the limits without
 * a condition on that dimension; they are in every class, so a packet's limits are the AND of the
 * results of its lookups. 0 with *ret to be freed; -E2BIG with a message for more than
 * SL_PCLASS_MAX classes; -ENOMEM.
 */
int prefix_index_build(struct prefix_list *list, const struct sl_bitmap base[SL_PDIM_COUNT],
		       struct sl_seed seed, struct prefix_index *ret, struct sl_err *err);
void prefix_index_free(struct prefix_index *index);

/*
 * `before`, where it is of the same statements (NULL: there is none), else a new one. To be
 * returned by prefix_index_put(), which takes NULL.
 */
int prefix_index_share(struct prefix_index *before, struct prefix_list *list,
		       const struct sl_bitmap base[SL_PDIM_COUNT], struct sl_seed seed,
		       struct prefix_index **ret, struct sl_err *err);
void prefix_index_put(struct prefix_index *index);

/* ------------------------------------------------------------------ looking up */

/* The parts of an index that a lookup reads, for one dimension and family. */
struct prefix_view {
	const struct sl_v4_top *v4_top;
	const struct sl_v4_line *v4_line;
	const struct sl_lengths *lengths;
	const struct sl_pfx_bucket *bucket;
	u32 buckets;
	u32 dim, family;
	struct sl_seed seed;
};

static inline struct prefix_view prefix_index_view(const struct prefix_index *index, u32 dim,
						   u32 family)
{
	return (struct prefix_view){
		.v4_top = index->v4_top,
		.v4_line = index->v4.line,
		.lengths = &index->lengths[dim],
		.bucket = index->bucket,
		.buckets = index->buckets,
		.dim = dim,
		.family = family,
		.seed = index->seed,
	};
}

/* Whether the prefix addr/len is in the hash; then *ret_class is the best match up to len. */
static inline bool prefix_hash_probe(const struct prefix_view *view, struct sl_addr addr, u32 len,
				     u32 *ret_class)
{
	struct sl_pfx_hash h =
		sl_pfx_hash(sl_addr_mask(addr, len), len, view->dim, view->seed, view->buckets);

	for (int which = 0; which < 2; which++) {
		const struct sl_pfx_entry *e = view->bucket[h.bucket[which]].e;

		for (int way = 0; way < SL_PFX_WAYS; way++) {
			if (e[way].tag == h.tag && e[way].tag2 == h.tag2) {
				*ret_class = e[way].class & SL_PFX_CLASS_MASK;
				return true;
			}
		}
		if (!(e[0].class & SL_PFX_SPILLED))
			break;
	}
	return false;
}

/* The class of an address (left-aligned, all its bits): the reference for the data path. */
static inline u32 prefix_index_lookup(const struct prefix_view *view, struct sl_addr addr)
{
	u32 lo = 0, hi = view->lengths->count;
	u32 class = 0;

	if (view->family == SL_V4)
		return prefix_v4_lookup(view->v4_top, view->v4_line, view->dim, addr.hi >> 32);
	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (prefix_hash_probe(view, addr, view->lengths->len[mid], &class))
			lo = mid + 1;
		else
			hi = mid;
	}
	return class;
}

#endif
