// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * value_series.c - see value_series.h. One writer, its worker; who scrapes sees an entry when it is
 * complete, and nothing ever leaves: the bound is the table's size.
 */
#include "request/engine/value_series.h"

#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/value_hash.h"

struct value_entry {
	u32 metric;
	char label[VALUE_LABEL_MAX + 1];
	struct value_series series;
};

struct value_table {
	u32 max, count;	      /* count: written last, so that readers see whole entries */
	struct numbers index; /* of entries, by rule and label; only the worker reads it */
	struct value_entry *entry;
};

struct value_table *value_table_new(u32 max)
{
	struct value_table *table = calloc(1, sizeof(*table));

	if (table) {
		table->max = max;
		table->entry = calloc((size_t)max + 1, sizeof(*table->entry));
	}
	if (!table || !table->entry) {
		value_table_free(table);
		return NULL;
	}
	return table;
}

void value_table_free(struct value_table *table)
{
	if (!table)
		return;
	numbers_free(&table->index);
	free(table->entry);
	free(table);
}

static size_t add_value(char *label, size_t len, struct bytes value)
{
	for (size_t i = 0; i < value.len && len < VALUE_LABEL_MAX; i++) {
		unsigned char c = (unsigned char)value.at[i];

		label[len++] = c >= ' ' && c < 127 ? (char)c : '?';
	}
	return len;
}

static void make_label(const struct rule *rule, const struct request_descriptor *descriptor,
		       char *label)
{
	char hash[VALUE_HASH_TEXT];
	struct bytes value;
	size_t len = 0;
	bool any = false;

	for (u32 i = 0; i < descriptor->count && len < VALUE_LABEL_MAX; i++) {
		if (!rule->detailed_metric && !(rule->value_to_metric >> i & 1))
			continue;
		if (any)
			label[len++] = '/';
		any = true;
		value = rule_value(rule, i, descriptor->entry[i].value);
		if (!rule->values_plain)
			value = (struct bytes){ value_hash(value.at, value.len, hash),
						strlen(hash) };
		len = add_value(label, len, value);
	}
	label[len] = '\0';
}

struct value_series *value_series(struct value_table *table, const struct rule *rule,
				  const struct request_descriptor *descriptor)
{
	char label[VALUE_LABEL_MAX + 1];
	struct value_entry *entry;
	u64 hash;
	u32 at;

	make_label(rule, descriptor, label);
	hash = hash_bytes(hash_seed(), rule->metric, label, strlen(label));
	if (numbers_find(&table->index, hash, &at))
		return &table->entry[at].series;
	if (table->count == table->max || numbers_add(&table->index, hash, table->count))
		return NULL;
	entry = &table->entry[table->count];
	entry->metric = rule->metric;
	memcpy(entry->label, label, sizeof(label));
	__atomic_store_n(&table->count, table->count + 1, __ATOMIC_RELEASE);
	return &entry->series;
}

void value_table_each(const struct value_table *table, value_series_fn each, void *arg)
{
	u32 count = table ? __atomic_load_n(&table->count, __ATOMIC_ACQUIRE) : 0;

	for (u32 i = 0; i < count; i++)
		each(arg, i, table->entry[i].metric, table->entry[i].label,
		     &table->entry[i].series);
}

/* ------------------------------------------------------------------ lately */

#define LATELY_LEAST_NS (60 * SL_NS_PER_SEC) /* the shortest period */

/* Who reads a value that set() wrote then reads what was written before it, too. */
static u64 get(const u64 *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static void set(u64 *at, u64 value)
{
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
}

/* While the counts move to another period its number is 0. */
static void turn(struct observe_lately *lately, u64 period_ns, u64 number)
{
	bool next = lately->period_ns == period_ns && lately->number + 1 == number;

	set(&lately->number, 0);
	set(&lately->passed[1], next ? lately->passed[0] : 0);
	set(&lately->refused[1], next ? lately->refused[0] : 0);
	set(&lately->passed[0], 0);
	set(&lately->refused[0], 0);
	set(&lately->period_ns, period_ns);
	set(&lately->number, number);
}

/* One period for all limits of a rule: whichever of them binds. */
static u64 period_of(const struct rule *rule)
{
	u64 period_ns = LATELY_LEAST_NS;

	for (u32 i = 0; i < rule->limit_count; i++)
		if (rule->limit[i].mode == SL_MODE_ENFORCE &&
		    rule->limit[i].terms.rates.rate[0].period_ns > period_ns)
			period_ns = rule->limit[i].terms.rates.rate[0].period_ns;
	return period_ns;
}

void value_series_note(struct value_series *series, const struct response_status *status,
		       bool refused, u64 hits, u64 utc_ns)
{
	struct observe_lately *lately = &series->lately;
	u64 period_ns = period_of(status->rule), number = utc_ns / period_ns;
	u64 *count = refused ? &lately->refused[0] : &lately->passed[0];

	if (lately->number != number || lately->period_ns != period_ns)
		turn(lately, period_ns, number);
	set(count, *count + hits);
	if (!refused)
		return;
	set(&lately->requests, status->requests);
	set(&lately->window_ns, status->window_ns);
	set(&lately->capacity, status->capacity);
}

void value_series_lately(const struct value_series *series, u64 utc_ns, struct observe_lately *ret)
{
	const struct observe_lately *from = &series->lately;
	u64 number, behind;

	do {
		number = get(&from->number);
		*ret = (struct observe_lately){
			.period_ns = get(&from->period_ns),
			.passed = { get(&from->passed[0]), get(&from->passed[1]) },
			.refused = { get(&from->refused[0]), get(&from->refused[1]) },
			.requests = get(&from->requests),
			.window_ns = get(&from->window_ns),
			.capacity = get(&from->capacity),
		};
	} while (number != get(&from->number));
	if (!number) {
		*ret = (struct observe_lately){ .period_ns = 0 };
		return;
	}
	ret->number = utc_ns / ret->period_ns;
	behind = ret->number - number; /* after the clock was set back, a huge one */
	if (!behind)
		return;
	ret->passed[1] = behind == 1 ? ret->passed[0] : 0;
	ret->refused[1] = behind == 1 ? ret->refused[0] : 0;
	ret->passed[0] = ret->refused[0] = 0;
}
