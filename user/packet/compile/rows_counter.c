// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rows_counter.c - of limits that nodes have in common: how much this node let pass.
 *
 * A bucket's word does not tell: a time at which it is full again moves on by itself while it is
 * full, so of a source below its limit nobody could say whether it used a tenth of it or all.
 * So beside the rows of one prefix and unit stands one more that is charged with them, all or
 * none, and refuses nothing: a fixed window as large as there can be. Its key has the hash of
 * theirs, in a slot of its own, and overridden sources have theirs apart as in those rows.
 *
 * The window is a minute: what was counted between the last look at it and its end is lost to
 * the others, of a minute as much as between two looks. Longer ones would keep places in the table for
 * sources that are long gone.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "packet/compile/rows.h"

#define COUNTER_WINDOW_NS (60 * SL_NS_PER_SEC)

static const struct sl_params counter_params = {
	.algo = SL_ALGO_FIXED_WINDOW,
	.capacity = SL_WINDOW_COUNT_MASK,
	.window_ns = COUNTER_WINDOW_NS,
};

static u32 take_row(struct rows *rows)
{
	if (rows->next < SL_ROWS_MAX)
		return rows->next++;
	snprintf(rows->reason, sizeof(rows->reason),
		 "scope: cluster takes a row for each unit at each prefix, and all %d rows are taken",
		 SL_ROWS_MAX - SL_ROW_FURTHER);
	return 0;
}

/* "web" -> "web#1c", "web#2" -> "web#2c". */
static void name_row(struct rows *rows, u32 index, u32 of, const char *role)
{
	const char *name = rows->name[of], *number = strchr(name, '#');
	size_t length = number ? (size_t)(number - name) : strlen(name), room;
	char tag[24];

	snprintf(tag, sizeof(tag), "%.16s%s", number ? number : "#1", role);
	room = SL_NAME_MAX - 1 - strlen(tag);
	length = length < room ? length : room;
	memcpy(rows->name[index], name, length);
	strcpy(rows->name[index] + length, tag);
}

static void fill_row(struct rows *rows, u32 index, u32 of)
{
	struct sl_limit *row = &rows->row[index];

	*row = rows->row[of];
	row->params = counter_params;
	row->counter = 1;
	row->lease = 0;
	row->plain = 0;
	row->elastic = 0;
	row->next = row->soft = row->full = row->overridden = row->ban = SL_NO_ROW;
}

static const struct override_row *overrides_of(const struct rows *rows, u32 row)
{
	for (size_t i = 0; i < rows->overrides.count; i++)
		if (rows->overrides.row[i].row == row)
			return &rows->overrides.row[i];
	return NULL;
}

/* What counts those that row `of` has other rates for. */
static int add_overridden(struct rows *rows, const struct limit_def *def, u32 counter, u32 of)
{
	const struct override_row *from;
	struct override_row *to;
	u32 index;

	if (rows->row[of].overridden == SL_NO_ROW)
		return 0;
	index = take_row(rows);
	if (!index)
		return -E2BIG;
	name_row(rows, index, of, "co");
	fill_row(rows, index, of);
	rows->row[index].of_overrides = 1;
	rows->row[counter].overridden = index;
	to = override_rows_add(&rows->overrides, def, counter);
	from = overrides_of(rows, of);
	if (!to || !from) {
		snprintf(rows->reason, sizeof(rows->reason), "no memory for its overrides");
		return -ENOMEM;
	}
	memcpy(to->prefix, from->prefix, sizeof(to->prefix));
	memcpy(to->finest, from->finest, sizeof(to->finest));
	for (size_t i = 0; i < def->override_rates_count; i++)
		to->params[i] = counter_params;
	return 0;
}

static bool counts_for(const struct sl_limit *counter, const struct sl_limit *row)
{
	return counter->counter && counter->unit == row->unit &&
	       !memcmp(counter->prefix, row->prefix, sizeof(row->prefix));
}

int rows_add_counters(struct rows *rows, const struct limit_def *def, u32 head)
{
	u32 last = head;

	while (rows->row[last].next != SL_NO_ROW)
		last = rows->row[last].next;
	for (u32 of = head; of != SL_NO_ROW && !rows->row[of].counter; of = rows->row[of].next) {
		u32 have = head, index;
		int err;

		while (have != SL_NO_ROW && !counts_for(&rows->row[have], &rows->row[of]))
			have = rows->row[have].next;
		if (have != SL_NO_ROW)
			continue;
		index = take_row(rows);
		if (!index)
			return -E2BIG;
		name_row(rows, index, of, "c");
		fill_row(rows, index, of);
		rows->row[last].next = index;
		last = index;
		err = add_overridden(rows, def, index, of);
		if (err)
			return err;
	}
	return 0;
}

/* Packets, connections, and bytes for bytes and bits. */
