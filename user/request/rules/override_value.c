// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * override_value.c - see override_value.h. Two tables are searched: `overrides` and live ones,
 * then the overrides_file. Each is open addressing over keyed hashes; at a million values 25
 * bytes each, and one cache miss per lookup.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "request/rules/override_private.h"

#define SIZE_MIN 16

static void table_put(struct override_table *table, u64 hash, u32 number)
{
	u32 at = hash & (table->size - 1);

	while (table->hash[at])
		at = (at + 1) & (table->size - 1);
	table->hash[at] = hash;
	table->number[at] = number;
}

static int table_grow(struct override_table *table)
{
	struct override_table old = *table;

	table->size = old.size ? 2 * old.size : SIZE_MIN;
	table->hash = calloc(table->size, sizeof(*table->hash));
	table->number = calloc(table->size, sizeof(*table->number));
	if (!table->hash || !table->number) {
		free(table->hash);
		free(table->number);
		*table = old;
		return -ENOMEM;
	}
	for (u32 i = 0; i < old.size; i++)
		if (old.hash[i])
			table_put(table, old.hash[i], old.number[i]);
	free(old.hash);
	free(old.number);
	return 0;
}

int override_table_add(struct override_table *table, u64 hash, u32 number)
{
	/* At most two thirds full: a miss looks at three places on average. */
	if (3 * ((u64)table->count + 1) > 2 * (u64)table->size && table_grow(table))
		return -ENOMEM;
	table_put(table, hash, number);
	table->count++;
	return 0;
}

bool override_table_find(const struct override_table *table, u64 hash, u32 *ret)
{
	if (!table || !table->size)
		return false;
	for (u32 at = hash & (table->size - 1); table->hash[at]; at = (at + 1) & (table->size - 1)) {
		if (table->hash[at] != hash)
			continue;
		*ret = table->number[at];
		return true;
	}
	return false;
}

struct override_table *override_table_new(void)
{
	struct override_table *table = calloc(1, sizeof(*table));

	if (table)
		table->users = 1;
	return table;
}

void override_table_drop(struct override_table *table)
{
	if (!table || --table->users)
		return;
	arena_free(&table->arena);
	index_free(&table->made);
	free(table->hash);
	free(table->number);
	free(table->limits);
	free(table->path);
	free(table);
}

void override_index_free(struct override_index *index)
{
	if (!index)
		return;
	override_table_drop(index->file);
	override_table_drop(index->own);
	free(index->file_text);
	free(index->own_list);
	free(index);
}

u64 override_hash(const struct rule *rule, struct bytes value)
{
	struct { struct sl_addr addr; u64 family; } group = { 0 };
	u64 hash;
	u8 family;

	if ((rule->prefix.count[SL_V4] || rule->prefix.count[SL_V6]) &&
	    value_address(value, &group.addr, &family) && rule->prefix.count[family]) {
		group.addr = sl_addr_mask(group.addr, rule->prefix.len[family][0]);
		group.family = family;
		hash = hash_bytes(hash_seed(), 2, &group, sizeof(group));
	} else {
		hash = hash_bytes(hash_seed(), 1, value.at, value.len);
	}
	return hash ? hash : 1;
}

const struct override_limits *override_value_find(const struct rule *rule, struct bytes value)
{
	const struct override_index *index = rule->overrides;
	u64 hash;
	u32 number;

	if (!index)
		return NULL;
	hash = override_hash(rule, value);
	if (override_table_find(index->own, hash, &number))
		return index->own_list[number].limits;
	if (override_table_find(index->file, hash, &number))
		return index->file->limits[number];
	return NULL;
}

void override_value_where(const struct rule *rule, struct bytes value, bool *ret_in_file,
			  bool *ret_live)
{
	const struct override_index *index = rule->overrides;
	u64 hash = override_hash(rule, value);
	u32 number;

	*ret_in_file = index && override_table_find(index->file, hash, &number);
	*ret_live = false;
	if (!index || !override_table_find(index->own, hash, &number))
		return;
	*ret_in_file |= index->own_list[number].in_file;
	*ret_live = index->own_list[number].live;
}

u64 override_values(const struct rule *rule)
{
	const struct override_index *index = rule->overrides;
	u64 count = index && index->file ? index->file->count : 0;
	u32 number;

	for (u32 i = 0; index && i < index->own_count; i++) {
		const struct override_own *own = &index->own_list[i];
		struct bytes value = { own->value, strlen(own->value) };
		bool hides = override_table_find(index->file, override_hash(rule, value), &number);

		if (own->limits)
			count += !hides;
		else
			count -= hides;
	}
	return count;
}
