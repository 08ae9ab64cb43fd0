// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * override_value.c - see override_value.h. Two tables are searched: `overrides` and live ones,
 * then the overrides_file. Each is open addressing over keyed hashes; at a million values 25
 * bytes each, and one cache miss per lookup.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/publish.h"
#include "request/rules/override_private.h"

bool override_table_find(const struct override_table *table, u64 hash, u32 *ret)
{
	return table && numbers_find(&table->values, hash, ret);
}

void *override_array_copy(const void *array, u32 count, size_t size)
{
	u32 room = 1;
	void *copy;

	while (room < count)
		room *= 2;
	copy = calloc(room, size);
	if (copy && count)
		memcpy(copy, array, count * size);
	return copy;
}

struct override_table *override_table_new(void)
{
	struct override_table *table = calloc(1, sizeof(*table));

	if (table)
		table->users = 1;
	return table;
}

struct override_table *override_table_copy(struct override_table *table)
{
	struct override_table *copy = override_table_new();

	if (!copy)
		return NULL;
	copy->base = table->base ? table->base : table;
	copy->base->users++;
	copy->base->copies++;
	copy->limits = override_array_copy(table->limits, table->limits_count, sizeof(*table->limits));
	copy->limits_count = table->limits_count;
	if (copy->limits && !numbers_copy(&table->values, &copy->values) &&
	    !numbers_copy(&table->made, &copy->made))
		return copy;
	override_table_drop(copy);
	return NULL;
}

void override_table_drop(struct override_table *table)
{
	if (!table || --table->users)
		return;
	override_table_drop(table->base);
	arena_free(&table->arena);
	numbers_free(&table->made);
	numbers_free(&table->values);
	free(table->limits);
	free(table->path);
	free(table);
}

struct override_index *override_index_copy(const struct override_index *from)
{
	struct override_index *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->rule_hash = from ? from->rule_hash : 0;
	copy->own = from ? override_table_copy(from->own) : override_table_new();
	copy->own_count = from ? from->own_count : 0;
	copy->own_list = override_array_copy(from ? from->own_list : NULL, copy->own_count,
					     sizeof(*copy->own_list));
	if (from && from->file_text)
		copy->file_text = strdup(from->file_text);
	if (from && from->file) {
		copy->file = from->file;
		copy->file->users++;
	}
	if (copy->own && copy->own_list && !copy->file_text == !(from && from->file_text))
		return copy;
	override_index_free(copy);
	return NULL;
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
	u8 family;

	if ((rule->prefix.count[SL_V4] || rule->prefix.count[SL_V6]) &&
	    value_address(value, &group.addr, &family) && rule->prefix.count[family]) {
		group.addr = sl_addr_mask(group.addr, rule->prefix.len[family][0]);
		group.family = family;
		return hash_bytes(hash_seed(), 2, &group, sizeof(group));
	}
	return hash_bytes(hash_seed(), 1, value.at, value.len);
}

const struct override_limits *override_value_find(const struct rule *rule, struct bytes value)
{
	const struct override_index *index = publish_get(&rule->overrides);
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
	u64 count = index && index->file ? index->file->values.count : 0;
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
