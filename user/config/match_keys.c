// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* match_keys.c - the table of match keys, and what works for the values of any of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/model.h"
#include "config/read.h"

const struct match_key match_keys[MATCH_KEY_COUNT] = {
#define ROW(id, field, type, packet, ...)                                                          \
	[MATCH_##id] = { .name = #field,                                                           \
			 .values = offsetof(struct match_def, field),                              \
			 .count = offsetof(struct match_def, field##_count),                       \
			 .size = sizeof(type),                                                     \
			 __VA_ARGS__ },
	MATCH_KEYS(ROW)
#undef ROW
};

const struct match_key *match_key_of(u32 dims)
{
	const struct match_key *key = match_keys;

	while (!(key->dims & dims))
		key++;
	return key;
}

/* ---- arrays at an offset ---- */

static void *get_array(const struct match_def *match, size_t at)
{
	void *array;

	memcpy(&array, (const char *)match + at, sizeof(array));
	return array;
}

static void set_array(struct match_def *match, size_t at, const void *array)
{
	memcpy((char *)match + at, &array, sizeof(array));
}

static size_t get_count(const struct match_def *match, size_t at)
{
	size_t count;

	memcpy(&count, (const char *)match + at, sizeof(count));
	return count;
}

size_t match_count(const struct match_def *match, const struct match_key *key)
{
	return get_count(match, key->count);
}

const void *match_values(const struct match_def *match, const struct match_key *key,
			 size_t *ret_count)
{
	*ret_count = match_count(match, key);
	return get_array(match, key->values);
}

int match_append(struct match_def *match, const struct match_key *key, const void *value)
{
	size_t count = match_count(match, key);
	char *grown = array_grow(get_array(match, key->values), count, key->size);

	if (!grown)
		return -ENOMEM;
	memcpy(grown + count * key->size, value, key->size);
	set_array(match, key->values, grown);
	count++;
	memcpy((char *)match + key->count, &count, sizeof(count));
	return 0;
}

bool match_names_set(const struct match_def *match, const char *name)
{
	for (size_t k = 0; k < ARRAY_SIZE(match->sets); k++)
		for (size_t i = 0; i < match->sets[k].count; i++)
			if (!strcmp(match->sets[k].name[i], name))
				return true;
	return false;
}

/* ---- values ---- */

bool match_needs_met(enum match_needs needs, enum sl_family family, u8 proto)
{
	switch (needs) {
	case MATCH_NEEDS_IP:
		break;
	case MATCH_NEEDS_PORTS:
		return proto == PROTO_TCP || proto == PROTO_UDP || proto == PROTO_UDPLITE ||
		       proto == PROTO_SCTP;
	case MATCH_NEEDS_TCP:
		return proto == PROTO_TCP;
	case MATCH_NEEDS_ICMP:
		return proto == (family == SL_V4 ? PROTO_ICMP : PROTO_ICMPV6);
	}
	return true;
}

static bool value_holds(const void *value, enum match_kind kind, enum sl_family family, u32 number)
{
	const struct u16_range *range = value;
	const struct tcp_flags_cond *flags = value;
	const struct icmp_type_cond *icmp = value;

	switch (kind) {
	case MATCH_PROTOS:
		return *(const u8 *)value == number;
	case MATCH_RANGES:
		return range->first <= number && number <= range->last;
	case MATCH_FLAGS:
		return (number & flags->set) == flags->set && !(number & flags->clear);
	case MATCH_ICMP_TYPES:
		return icmp->family == family && icmp->type == number;
	case MATCH_PREFIXES:
	case MATCH_INTERFACES:
		break;
	}
	return false;
}

static bool values_equal(const struct match_key *key, const char *a, const char *b, size_t count)
{
	if (key->kind != MATCH_PREFIXES)
		return !count || !memcmp(a, b, count * key->size);
	for (size_t i = 0; i < count; i++)
		if (!sl_prefix_equal((const struct sl_prefix *)a + i,
				     (const struct sl_prefix *)b + i))
			return false;
	return true;
}

bool match_holds(const struct match_def *match, const struct match_key *key, enum sl_family family,
		 u32 value)
{
	size_t count;
	const char *values = match_values(match, key, &count);

	for (size_t i = 0; i < count; i++)
		if (value_holds(values + i * key->size, key->kind, family, value))
			return true;
	return false;
}

/* ---- the rows of the keys: of a type of their own, `most` is the key's number ---- */

/* The sets that the values may be of, or NULL. */
static struct match_sets *sets_of(const struct key *row, const void *match)
{
	struct match_def *of = (struct match_def *)match;

	return match_keys[row->most].kind == MATCH_PREFIXES ? &of->sets[row->most] : NULL;
}

void match_values_clear(const struct key *row, void *match)
{
	const struct match_key *key = &match_keys[row->most];
	struct match_sets *sets = sets_of(row, match);

	free(get_array(match, key->values));
	set_array(match, key->values, NULL);
	memset((char *)match + key->count, 0, sizeof(size_t));
	if (!sets)
		return;
	free(sets->name);
	memset(sets, 0, sizeof(*sets));
}

void match_values_copy(const struct key *row, void *match, int *rc)
{
	const struct match_key *key = &match_keys[row->most];
	struct match_sets *sets = sets_of(row, match);

	set_array(match, key->values,
		  array_copy(get_array(match, key->values), get_count(match, key->count), key->size,
			     rc));
	if (sets)
		sets->name = array_copy(sets->name, sets->count, SL_NAME_MAX, rc);
}

bool match_values_equal(const struct key *row, const void *a, const void *b)
{
	const struct match_sets *x = sets_of(row, a), *y = sets_of(row, b);
	const struct match_key *key = &match_keys[row->most];
	size_t count = match_count(a, key) - (x ? x->prefixes : 0);

	if (count != match_count(b, key) - (y ? y->prefixes : 0) || (x && x->count != y->count) ||
	    !values_equal(key, get_array(a, key->values), get_array(b, key->values), count))
		return false;
	for (size_t i = 0; x && i < x->count; i++)
		if (strcmp(x->name[i], y->name[i]))
			return false;
	return true;
}

/* ---- one match within another */

/* Whether a value of a key holds all that another does. */
static bool value_covers(enum match_kind kind, const void *outer, const void *inner, size_t size)
{
	const struct u16_range *x = outer, *y = inner;
	const struct tcp_flags_cond *a = outer, *b = inner;

	switch (kind) {
	case MATCH_PREFIXES:
		return sl_prefix_contains(outer, inner);
	case MATCH_RANGES:
		return x->first <= y->first && y->last <= x->last;
	case MATCH_FLAGS:
		return !(a->set & ~b->set) && !(a->clear & ~b->clear);
	case MATCH_INTERFACES:
		return !strcmp(outer, inner);
	case MATCH_PROTOS:
	case MATCH_ICMP_TYPES:
		break;
	}
	return !memcmp(outer, inner, size);
}

static bool key_covers(const struct match_def *outer, const struct match_def *inner,
		       const struct match_key *key)
{
	size_t many, count, k;
	const char *of = match_values(outer, key, &many), *value = match_values(inner, key, &count);

	if (!many || !count)
		return !many;
	for (size_t i = 0; i < count; i++) {
		for (k = 0; k < many; k++)
			if (value_covers(key->kind, of + k * key->size, value + i * key->size,
					 key->size))
				break;
		if (k == many)
			return false;
	}
	return true;
}

bool match_covers(const struct match_def *outer, const struct match_def *inner)
{
	for (size_t i = 0; i < MATCH_KEY_COUNT; i++)
		if (!key_covers(outer, inner, &match_keys[i]))
			return false;
	return true;
}
