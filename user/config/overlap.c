// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * overlap.c - can one packet match more than SL_MATCHES_MAX limits, or be charged to more than
 * SL_CHARGES_MAX of their meters? The first is the second with weight one for each limit.
 *
 * A limit matches a box: in each dimension (source, port, ...) a set of values. Which limits
 * share a point is decided dimension by dimension: the values of one dimension fall into
 * classes, a class being the limits that one value matches; a packet picks one class in each,
 * and matches the limits that are in all of them. So: for each family and protocol (which
 * decide what other fields there are), a depth-first search over classes that gives up a
 * branch once the rest of it weighs no more than allowed.
 *
 * It refuses only with an example: a point that too many limits share. The search is
 * exponential in the worst case (it is maximum clique of boxes), so its effort is bounded,
 * and a rule set that exhausts it is let through: should such a packet exist, the data path
 * charges as many as it can and counts it under the reason too_many_limits.
 *
 * Costs O(n log n) in the number of prefixes and values, and nothing if all limits together weigh
 * no more than allowed for one packet.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bitmap.h"
#include "config/model.h"

#define EFFORT_MAX 2000000 /* classes looked at: some 20 ms */

/* A value, or a change at a value, of one limit's condition. */
struct mark {
	u64 hi, lo; /* sort key: the value */
	u8 len;	    /* prefixes: shorter, that is outer, first */
	bool end;   /* ranges: one past the last value */
	u16 limit;
};

/* The distinct classes of one dimension; none where no limit has a condition in it. */
struct dim {
	struct sl_bitmap *class;
	size_t count;
};

struct search {
	const struct limit_def *limit;
	size_t count;
	overlap_weight *weight;
	u32 most;
	enum sl_family family;
	u8 proto;
	u32 weights[SL_LIMITS_MAX];	 /* in the family */
	struct sl_bitmap active;	 /* limits that count and can match the family */
	struct dim dim[MATCH_KEY_COUNT]; /* of the family; none of proto */
	u64 effort;
	struct sl_bitmap found;
};

/* Whether these limits together exceed what one packet may match. */
static bool is_heavy(const struct search *s, const struct sl_bitmap *map)
{
	u32 sum = 0;

	for (u32 i = 0; i < SL_BITMAP_WORDS; i++)
		for (u64 word = map->w[i]; word; word &= word - 1)
			sum += s->weights[i * 64 + __builtin_ctzll(word)];
	return sum > s->most;
}

static struct sl_bitmap bitmap_and(const struct sl_bitmap *a, const struct sl_bitmap *b)
{
	struct sl_bitmap both;
	int i;

	for (i = 0; i < SL_BITMAP_WORDS; i++)
		both.w[i] = a->w[i] & b->w[i];
	return both;
}

static int compare_marks(const void *va, const void *vb)
{
	const struct mark *a = va, *b = vb;

	if (a->hi != b->hi)
		return a->hi < b->hi ? -1 : 1;
	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	return (int)b->end - (int)a->end; /* a range that ends here before one that begins */
}

static int compare_classes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct sl_bitmap));
}

/* ---- the marks of a dimension, gathered from all limits ---- */

struct marks {
	struct mark *mark;
	size_t count;
};

static int mark_prefixes(struct marks *marks, const struct sl_prefix *prefix, size_t count,
			 enum sl_family family, u16 limit)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (prefix[i].family != family)
			continue;
		if (append(marks->mark, marks->count,
			   (struct mark){ prefix[i].addr.hi, prefix[i].addr.lo, prefix[i].len,
					  false, limit }))
			return -1;
	}
	return 0;
}

static int mark_ranges(struct marks *marks, const struct u16_range *range, size_t count, u16 limit)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (append(marks->mark, marks->count,
			   (struct mark){ range[i].first, 0, 0, false, limit }) ||
		    append(marks->mark, marks->count,
			   (struct mark){ range[i].last + 1, 0, 0, true, limit }))
			return -1;
	return 0;
}

static int mark_value(struct marks *marks, u64 hi, u64 lo, u16 limit)
{
	return append(marks->mark, marks->count, (struct mark){ hi, lo, 0, false, limit });
}

/* A name of up to 15 bytes as a value. */
static int mark_interface(struct marks *marks, const char name[16], u16 limit)
{
	u64 word[2];

	memcpy(word, name, sizeof(word));
	return mark_value(marks, word[0], word[1], limit);
}

/* Each of the 256 values of a byte that satisfies the condition. */
static int mark_bytes(struct marks *marks, const struct match_key *key, enum sl_family family,
		      const struct match_def *m, u16 limit)
{
	if (!match_count(m, key))
		return 0;
	for (u32 value = 0; value < 256; value++)
		if (match_holds(m, key, family, value) && mark_value(marks, value, 0, limit))
			return -1;
	return 0;
}

/* ---- from marks to classes ---- */

static int add_class(struct dim *dim, const struct sl_bitmap *class)
{
	/* neighbors are often equal; finish_dim() removes the other duplicates */
	if (dim->count && bitmap_equal(&dim->class[dim->count - 1], class))
		return 0;
	return append(dim->class, dim->count, *class);
}

/* Ranges: swept from the left; a limit's own ranges may overlap, so its open ones are counted. */
static int classes_of_ranges(const struct marks *marks, const struct sl_bitmap *any,
			     struct dim *dim)
{
	u32 open[SL_LIMITS_MAX] = { 0 };
	struct sl_bitmap now = *any;
	size_t i;

	for (i = 0; i < marks->count; i++) {
		const struct mark *m = &marks->mark[i];

		if (m->end && !--open[m->limit])
			now.w[m->limit / 64] &= ~SL_BIT(m->limit % 64);
		else if (!m->end && !open[m->limit]++)
			bitmap_set(&now, m->limit);
		/* largest just before something ends */
		if (!m->end && (i + 1 == marks->count || marks->mark[i + 1].end) &&
		    add_class(dim, &now))
			return -1;
	}
	return 0;
}

/* Single values: equal values are neighbors. */
static int classes_of_values(const struct marks *marks, const struct sl_bitmap *any,
			     struct dim *dim)
{
	struct sl_bitmap now = *any;
	size_t i;

	for (i = 0; i < marks->count; i++) {
		bitmap_set(&now, marks->mark[i].limit);
		if (i + 1 < marks->count && !compare_marks(&marks->mark[i], &marks->mark[i + 1]))
			continue;
		if (add_class(dim, &now))
			return -1;
		now = *any;
	}
	return 0;
}

static bool mark_contains(const struct mark *outer, const struct mark *inner)
{
	struct sl_addr masked = sl_addr_mask((struct sl_addr){ inner->hi, inner->lo }, outer->len);

	return outer->len <= inner->len && masked.hi == outer->hi && masked.lo == outer->lo;
}

/*
 * Prefixes: in order of address, outer before inner, those around the current one are a stack
 * of at most 129 different lengths; a class is the stack at a prefix that holds no other.
 */
static int classes_of_prefixes(const struct marks *marks, const struct sl_bitmap *any,
			       struct dim *dim)
{
	struct {
		const struct mark *mark;
		struct sl_bitmap class;
	} stack[SL_LENGTHS_MAX];
	size_t i, depth = 0;

	for (i = 0; i < marks->count; i++) {
		const struct mark *m = &marks->mark[i];

		while (depth && !mark_contains(stack[depth - 1].mark, m))
			depth--;
		if (!depth || stack[depth - 1].mark->len != m->len) {
			stack[depth].class = depth ? stack[depth - 1].class : *any;
			stack[depth++].mark = m;
		}
		bitmap_set(&stack[depth - 1].class, m->limit);
		if ((i + 1 == marks->count || !mark_contains(m, &marks->mark[i + 1])) &&
		    add_class(dim, &stack[depth - 1].class))
			return -1;
	}
	return 0;
}

/* Sorts and removes duplicates. */
static void finish_dim(struct dim *dim)
{
	size_t i, kept = 1;

	qsort(dim->class, dim->count, sizeof(*dim->class), compare_classes);
	for (i = 1; i < dim->count; i++)
		if (!bitmap_equal(&dim->class[i], &dim -> class[kept - 1]))
			dim->class[kept++] = dim->class[i];
	dim->count = kept;
}

static int mark_limit(struct marks *marks, const struct match_key *key, enum sl_family family,
		      const struct match_def *m, u16 limit)
{
	size_t count;
	const void *values = match_values(m, key, &count);
	int rc = 0;

	switch (key->kind) {
	case MATCH_PREFIXES:
		return mark_prefixes(marks, values, count, family, limit);
	case MATCH_RANGES:
		return mark_ranges(marks, values, count, limit);
	case MATCH_INTERFACES:
		for (size_t i = 0; i < count && !rc; i++)
			rc = mark_interface(marks, ((const match_interface *)values)[i], limit);
		return rc;
	case MATCH_FLAGS:
	case MATCH_ICMP_TYPES:
		return mark_bytes(marks, key, family, m, limit);
	case MATCH_PROTOS: /* searched one by one */
		break;
	}
	return 0;
}

static int make_classes(enum match_kind kind, const struct marks *marks,
			const struct sl_bitmap *any, struct dim *dim)
{
	qsort(marks->mark, marks->count, sizeof(*marks->mark), compare_marks);
	switch (kind) {
	case MATCH_PREFIXES:
		return classes_of_prefixes(marks, any, dim);
	case MATCH_RANGES:
		return classes_of_ranges(marks, any, dim);
	default:
		return classes_of_values(marks, any, dim);
	}
}

static int build_dim(struct search *s, const struct match_key *key)
{
	struct dim *dim = &s->dim[key - match_keys];
	struct sl_bitmap any = { { 0 } }; /* limits without a condition */
	struct marks marks = { NULL, 0 };
	int rc = 0;
	size_t i;

	free(dim->class);
	*dim = (struct dim){ NULL, 0 };
	for (i = 0; i < s->count && !rc; i++) {
		size_t before = marks.count;

		rc = mark_limit(&marks, key, s->family, &s->limit[i].match, i);
		if (marks.count == before)
			bitmap_set(&any, i);
	}
	if (!rc && marks.count)
		rc = make_classes(key->kind, &marks, &any, dim);
	free(marks.mark);
	if (dim->count)
		finish_dim(dim);
	return rc;
}

/* ---- the search ---- */

/* Whether packets of the current protocol have that field and some limit matches on it. */
static bool dim_counts(const struct search *s, u32 id)
{
	return s->dim[id].count && match_needs_met(match_keys[id].needs, s->family, s->proto);
}

/* True with s->found where a choice of classes from key `id` on leaves too many of `set`. */
static bool descend(struct search *s, struct sl_bitmap set, u32 id)
{
	const struct dim *dim;
	size_t i;

	if (!is_heavy(s, &set))
		return false;
	while (id < MATCH_KEY_COUNT && !dim_counts(s, id))
		id++;
	if (id == MATCH_KEY_COUNT) {
		s->found = set;
		return true;
	}
	dim = &s->dim[id];
	for (i = 0; i < dim->count; i++) { /* a class with all of them is the best */
		struct sl_bitmap left = bitmap_and(&set, &dim->class[i]);

		if (bitmap_equal(&left, &set))
			return descend(s, set, id + 1);
	}
	for (i = 0; i < dim->count && s->effort < EFFORT_MAX; i++) {
		s->effort++;
		if (descend(s, bitmap_and(&set, &dim->class[i]), id + 1))
			return true;
	}
	return false;
}

static struct sl_bitmap possible_limits(const struct search *s)
{
	struct sl_bitmap set = { { 0 } };
	size_t i;

	for (i = 0; i < s->count; i++)
		if (bitmap_has(&s->active, i) &&
		    match_possible_proto(&s->limit[i].match, s->family, s->proto))
			bitmap_set(&set, i);
	return set;
}

static struct sl_bitmap active_limits(const struct search *s)
{
	struct sl_bitmap set = { { 0 } };
	size_t i;

	for (i = 0; i < s->count; i++)
		if (s->limit[i].mode != SL_MODE_OFF &&
		    match_possible_family(&s->limit[i].match, s->family))
			bitmap_set(&set, i);
	return set;
}

/* All protocols of a family; those with the same set of limits are searched once. */
static bool search_family(struct search *s)
{
	struct sl_bitmap seen[256];
	size_t i, seen_count = 0;
	int proto;

	for (proto = 0; proto < 256; proto++) {
		bool own_fields =
			proto == PROTO_TCP || proto == PROTO_ICMP || proto == PROTO_ICMPV6;
		struct sl_bitmap set;

		s->proto = proto;
		set = possible_limits(s);
		for (i = 0; i < seen_count && !bitmap_equal(&seen[i], &set); i++)
			;
		if (i < seen_count && !own_fields)
			continue;
		if (!own_fields)
			seen[seen_count++] = set;
		if (descend(s, set, 0))
			return true;
	}
	return false;
}

int overlap_find(const struct limit_def *limit, size_t count, overlap_weight *weight, u32 most,
		 bool *ret_found, struct sl_bitmap *ret)
{
	struct search s = { .limit = limit, .count = count, .weight = weight, .most = most };
	bool found = false;
	int rc = 0, family, id;

	for (family = 0; family < SL_FAMILY_COUNT && !found && !rc; family++) {
		s.family = family;
		s.active = active_limits(&s);
		for (size_t i = 0; i < count; i++)
			s.weights[i] = weight(&limit[i], family);
		if (!is_heavy(&s, &s.active))
			continue;
		for (id = 0; id < MATCH_KEY_COUNT && !rc; id++)
			rc = build_dim(&s, &match_keys[id]);
		if (!rc)
			found = search_family(&s);
	}
	for (id = 0; id < MATCH_KEY_COUNT; id++)
		free(s.dim[id].class);
	if (rc)
		return -ENOMEM;
	*ret_found = found;
	*ret = s.found;
	return 0;
}
