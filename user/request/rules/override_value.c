// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * override_value.c - see override_value.h. Two tables are searched: `overrides` and live ones,
 * then the overrides_file. Each is open addressing over keyed hashes; at a million values 25
 * bytes each, and one cache miss per lookup.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "lib/publish.h"
#include "request/rules/override_private.h"
#include "request/rules/request_text.h"
#include "request/rules/rule_values.h"

bool override_table_find(const struct override_table *table, u64 hash, u32 *ret)
{
	return table && numbers_find(&table->values, hash, ret);
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
	int rc = 0;

	if (!copy)
		return NULL;
	copy->base = table->base ? table->base : table;
	copy->base->users++;
	copy->base->copies++;
	copy->limits = array_copy(table->limits, table->limits_count, sizeof(*table->limits), &rc);
	copy->limits_count = table->limits_count;
	copy->nets = table->nets;
	if (!rc && !numbers_copy(&table->values, &copy->values) &&
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
	int rc = 0;

	if (!copy)
		return NULL;
	copy->rule_hash = from ? from->rule_hash : 0;
	copy->own = from ? override_table_copy(from->own) : override_table_new();
	copy->own_count = from ? from->own_count : 0;
	if (from)
		copy->own_list =
			array_copy(from->own_list, copy->own_count, sizeof(*copy->own_list), &rc);
	if (from && from->file_text)
		copy->file_text = strdup(from->file_text);
	if (from && from->file) {
		copy->file = from->file;
		copy->file->users++;
	}
	if (copy->own && !rc && !copy->file_text == !(from && from->file_text))
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

int override_table_add(struct override_table *table, const struct override_key *key, u32 number)
{
	if (key->is_net)
		net_lengths_add(&table->nets, key->family, key->len);
	return numbers_add(&table->values, key->hash, number);
}

static bool groups_family(const struct rule *rule, u8 family)
{
	return rule->prefix.count[family];
}

static u64 hash_net(struct sl_addr addr, u8 family, u8 len)
{
	struct {
		struct sl_addr addr;
		u64 family;
	} group = { sl_addr_mask(addr, len), family };

	return hash_bytes(hash_seed(), (u64)len << 8 | 2, &group, sizeof(group));
}

static u64 hash_text(struct bytes value)
{
	return hash_bytes(hash_seed(), 1, value.at, value.len);
}

/* The number of entries without a value of the rule's own; *ret_first is the first of them. */
static u32 open_entries(const struct rule *rule, u32 *ret_first)
{
	u32 open = 0;

	for (u32 i = rule->depth; i-- > 0;)
		if (!rule->entry[i].fixed) {
			*ret_first = i;
			open++;
		}
	return open;
}

/* Of several values, or none. */
static u64 hash_values(const struct rule *rule, const struct bytes *value)
{
	struct sl_addr addr;
	u64 hash = 3;
	u8 family;

	for (u32 i = 0; i < rule->depth; i++) {
		u64 one;

		if (rule->entry[i].fixed)
			continue;
		one = value_address(value[i], &addr, &family) && groups_family(rule, family)
			      ? hash_net(addr, family, rule->prefix.len[family][0])
			      : hash_text(rule_value(rule, i, value[i]));
		hash = hash_bytes(hash_seed(), hash, &one, sizeof(one));
	}
	return hash;
}

static int read_one(const struct rule *rule, struct bytes value, struct override_key *ret,
		    struct sl_err *err)
{
	const char *reason = NULL;
	struct sl_prefix net;
	int rc;

	if (!value.len)
		return sl_err_set(err, EINVAL, "found an empty value; accepted: 1 byte or more");
	rc = value_network(value, &net, &reason);
	if (rc == -EINVAL)
		return sl_err_set(err, EINVAL, "found %s", reason);
	if (rc || !groups_family(rule, net.family)) {
		*ret = (struct override_key){ .hash = hash_text(value) };
		return 0;
	}
	if (net.len > rule->prefix.len[net.family][0]) {
		if (net.len != (net.family == SL_V4 ? 32 : 128))
			return sl_err_set(
				err, EINVAL,
				"found a network that is narrower than the rule's first "
				"prefix, by which addresses are grouped; accepted: an address, or a network "
				"of that length or wider");
		net.len = rule->prefix.len[net.family][0];
	}
	*ret = (struct override_key){
		.hash = hash_net(net.addr, net.family, net.len),
		.family = net.family,
		.len = net.len,
		.is_net = net.len < rule->prefix.len[net.family][0],
	};
	return 0;
}

/* A network would have to be tried at each length together with all other values. */
static int read_several(const struct rule *rule, const struct bytes *value,
			struct override_key *ret, struct sl_err *err)
{
	const char *reason;
	struct sl_prefix net;

	for (u32 i = 0; i < rule->depth; i++)
		if (!rule->entry[i].fixed && memchr(value[i].at, '/', value[i].len) &&
		    !value_network(value[i], &net, &reason) && groups_family(rule, net.family))
			return sl_err_set(
				err, EINVAL,
				"found a network beside other values; accepted: an address");
	*ret = (struct override_key){ .hash = hash_values(rule, value) };
	return 0;
}

int override_key_read(const struct rule *rule, struct bytes text, struct override_key *ret,
		      struct sl_err *err)
{
	struct bytes value[REQUEST_ENTRIES_MAX];
	struct rule_values values;
	u32 first = 0;
	int rc;

	if (rule->place != RULE_OF_DESCRIPTOR)
		return sl_err_set(
			err, EINVAL,
			"found limits of one value; accepted: those of a rule with a key");
	rc = rule_values_read(rule, text, &values, err);
	for (u32 i = 0; !rc && i < rule->depth; i++)
		value[i] = values.descriptor.entry[i].value;
	if (!rc)
		rc = open_entries(rule, &first) == 1
			     ? read_one(rule, rule_value(rule, first, value[first]), ret, err)
			     : read_several(rule, value, ret, err);
	rule_values_free(&values);
	return rc;
}

/* Live ones and those of the rule file precede those of the overrides_file. */
static bool find_limits(const struct override_index *index, u64 hash,
			const struct override_limits **ret)
{
	u32 number;

	if (override_table_find(index->own, hash, &number))
		*ret = index->own_list[number].limits;
	else if (override_table_find(index->file, hash, &number))
		*ret = index->file->limits[number];
	else
		return false;
	return true;
}

static int longer(int a, int b)
{
	return a > b ? a : b;
}

static int next_length(const struct override_index *index, u8 family, int len)
{
	return longer(index->own && index->own->nets.any
			      ? net_lengths_longest(&index->own->nets, family, len)
			      : -1,
		      index->file && index->file->nets.any
			      ? net_lengths_longest(&index->file->nets, family, len)
			      : -1);
}

const struct override_limits *override_value_find(const struct rule *rule,
						  const struct bytes *value)
{
	const struct override_index *index = publish_get(&rule->overrides);
	const struct override_limits *limits = NULL;
	struct sl_addr addr;
	u32 first = 0;
	int len;
	u8 family;

	if (!index)
		return NULL;
	if (open_entries(rule, &first) != 1) {
		find_limits(index, hash_values(rule, value), &limits);
		return limits;
	}
	if (!value_address(value[first], &addr, &family) || !groups_family(rule, family)) {
		find_limits(index, hash_text(rule_value(rule, first, value[first])), &limits);
		return limits;
	}
	for (len = rule->prefix.len[family][0]; len >= 0; len = next_length(index, family, len - 1))
		if (find_limits(index, hash_net(addr, family, len), &limits))
			break;
	return limits;
}

void override_value_where(const struct rule *rule, struct bytes value, bool *ret_in_file,
			  bool *ret_live, bool *ret_other_text)
{
	const struct override_index *index = rule->overrides;
	const struct override_own *own;
	struct override_key key;
	u32 number;

	*ret_in_file = *ret_live = *ret_other_text = false;
	if (!index || override_key_read(rule, value, &key, NULL))
		return;
	*ret_in_file = override_table_find(index->file, key.hash, &number);
	if (!override_table_find(index->own, key.hash, &number))
		return;
	own = &index->own_list[number];
	*ret_in_file |= own->in_file;
	*ret_live = own->live;
	*ret_other_text = own->other_text || strlen(own->value) != value.len ||
			  memcmp(own->value, value.at, value.len);
}

u64 override_values(const struct rule *rule)
{
	const struct override_index *index = rule->overrides;
	u64 count = index && index->file ? index->file->values.count : 0;
	struct override_key key;
	u32 number;

	for (u32 i = 0; index && i < index->own_count; i++) {
		const struct override_own *own = &index->own_list[i];
		bool hides =
			!override_key_read(rule, (struct bytes){ own->value, strlen(own->value) },
					   &key, NULL) &&
			override_table_find(index->file, key.hash, &number);

		if (own->limits)
			count += !hides;
		else
			count -= hides;
	}
	return count;
}
