// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* entries.c - the entries of feeds; see entries.h. */
#include "control/running/entries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/config_text.h"
#include "control/running/entries_private.h"
#include "control/running/feeds.h"
#include "control/running/rules.h"
#include "lib/clock.h"
#include "packet/dataplane/dataplane.h"

SL_STATIC_ASSERT(ENTRIES_MAX < SL_LISTED_MAX, "room for live changes beside those of feeds");

#define REFILTER_FROM 1000 /* removals; of fewer, the next entries_expire() takes the bits out */

/* ------------------------------------------------------------------ feeds */

static int check_origin(const char *origin, struct sl_err *err)
{
	size_t length = strlen(origin);

	if (length && length < ENTRY_ORIGIN_MAX &&
	    strspn(origin, "abcdefghijklmnopqrstuvwxyz0123456789-_.:") == length)
		return 0;
	return sl_err_set(err, EINVAL,
			  "invalid origin '%.80s': accepted: 1 to %d characters of a-z, "
			  "0-9, '-', '_', '.' and ':'",
			  origin, ENTRY_ORIGIN_MAX - 1);
}

static int check_entry(const struct entry *entry, struct sl_err *err)
{
	char text[SL_PREFIX_TEXT];

	if (entry->list != LIST_BLOCK && entry->list != LIST_EXEMPT)
		return sl_err_set(err, EINVAL, "invalid list: accepted: block, exempt");
	if (memchr(entry->reason, 0, sizeof(entry->reason)) &&
	    config_text_printable(entry->reason, strlen(entry->reason)))
		return 0;
	return sl_err_set(err, EINVAL,
			  "%s: bad reason; accepted: up to 63 bytes of text on one line",
			  sl_prefix_format(&entry->prefix, text, sizeof(text)));
}

/* The table, and the number of an origin; with `make` a new one. */
static int find_origin(struct running *run, const char *origin, bool make, u32 *ret,
		       struct sl_err *err)
{
	int number = check_origin(origin, err);

	if (number < 0)
		return number;
	if (!run->entries)
		return sl_err_set(err, ENODEV, "there is no data plane yet");
	number = entry_table_origin(&run->entries->table, origin, make);
	if (number == -ENOSPC)
		return sl_err_set(err, ENOSPC, "too many origins: at most %d at a time",
				  ORIGINS_MAX - ORIGIN_FEEDS);
	*ret = number < 0 ? 0 : (u32)number;
	return number < 0 ? number : 0;
}

/* Those of `entry` that change something, into `change`; *result counts them. */
static size_t gather_new(struct entry_table *table, u32 origin, const struct entry *entry,
			 size_t count, struct entry_change *change, struct entries_result *result)
{
	u64 now_utc_ns = clock_utc_ns();
	size_t changes = 0;

	for (size_t i = 0; i < count; i++) {
		struct held *held =
			entry_table_find(table, origin, entry[i].list, &entry[i].prefix);

		if (entry[i].until_utc_ns && entry[i].until_utc_ns <= now_utc_ns)
			continue;
		if (held)
			held->mark = true;
		if (held && entry_is_same(held, &entry[i]))
			continue;
		result->added += !held;
		result->changed += held != NULL;
		change[changes++] = (struct entry_change){ .origin = origin, .entry = entry[i] };
	}
	return changes;
}

/* An origin's entries of a list (any: LIST_KIND_COUNT) without a mark, as removals. */
static size_t gather_unmarked(const struct entry_table *table, u32 origin, enum list_kind list,
			      struct entry_change *change)
{
	size_t changes = 0;

	for (u32 i = 0; i < table->count; i++) {
		const struct held *held = &table->held[i];

		if (held->used && held->origin == origin && !held->mark &&
		    (list == LIST_KIND_COUNT || held->list == list))
			change[changes++] = (struct entry_change){ .origin = origin,
								   .remove = true,
								   .entry = entry_of(held) };
	}
	return changes;
}

/* Commits changes of a feed and frees them. */
static int commit(struct running *run, struct entry_change *change, size_t count,
		  const struct entries_result *result, struct entries_result *ret,
		  struct sl_err *err)
{
	u32 live = run->entries->table.live;
	int r = 0;

	entry_table_unmark(&run->entries->table);
	if (result->added && live + result->added - result->removed > ENTRIES_MAX)
		r = sl_err_set(err, ENOSPC, "too many entries: %u are listed, at most %d at a time",
			       live, ENTRIES_MAX);
	else if (count)
		r = entries_change(run, change, count, true, err);
	free(change);
	if (r < 0)
		return r;
	if (result->removed >= REFILTER_FROM)
		entries_refilter(run);
	entries_file_tidy(run->entries, run->state_dir);
	if (result->added)
		rules_protect(run);
	if (ret)
		*ret = *result;
	return 0;
}

int entries_add(struct running *run, const char *origin, const struct entry *entry, size_t count,
		struct entries_result *ret, struct sl_err *err)
{
	struct entries_result result = { .added = 0 };
	struct entry_change *change;
	size_t changes;
	u32 number;
	int r = 0;

	for (size_t i = 0; !r && i < count; i++)
		r = check_entry(&entry[i], err);
	if (!r)
		r = find_origin(run, origin, true, &number, err);
	if (r < 0)
		return r;
	change = malloc((count + 1) * sizeof(*change));
	if (!change)
		return sl_err_no_memory(err);
	changes = gather_new(&run->entries->table, number, entry, count, change, &result);
	return commit(run, change, changes, &result, ret, err);
}

/*
 * For removals: the origin's number, and room for `most` of them. 1: it has no entries, and *ret is
 * set; or -errno.
 */
static int removal_begin(struct running *run, const char *origin, size_t most, u32 *ret_number,
			 struct entry_change **ret_change, struct entries_result *ret,
			 struct sl_err *err)
{
	int r = find_origin(run, origin, false, ret_number, err);

	if (r == -ENOENT) {
		if (ret)
			*ret = (struct entries_result){ .added = 0 };
		return 1;
	}
	if (r < 0)
		return r;
	*ret_change = malloc((most + 1) * sizeof(**ret_change));
	return *ret_change ? 0 : sl_err_no_memory(err);
}

int entries_del(struct running *run, const char *origin, const struct entry *entry, size_t count,
		struct entries_result *ret, struct sl_err *err)
{
	struct entries_result result = { .added = 0 };
	struct entry_change *change;
	u32 number;
	int r = removal_begin(run, origin, count, &number, &change, ret, err);

	if (r)
		return r < 0 ? r : 0;
	for (size_t i = 0; i < count; i++)
		if (entry_table_find(&run->entries->table, number, entry[i].list, &entry[i].prefix))
			change[result.removed++] = (struct entry_change){ .origin = number,
									  .remove = true,
									  .entry = entry[i] };
	return commit(run, change, result.removed, &result, ret, err);
}

int entries_replace(struct running *run, const char *origin, enum list_kind list,
		    const struct entry *entry, size_t count, struct entries_result *ret,
		    struct sl_err *err)
{
	struct entries_result result = { .added = 0 };
	struct entry_change *change;
	struct entry_table *table;
	size_t changes;
	u32 number;
	int r = 0;

	for (size_t i = 0; !r && i < count; i++)
		r = entry[i].list == list ? check_entry(&entry[i], err)
					  : sl_err_set(err, EINVAL, "an entry of another list");
	if (!r)
		r = find_origin(run, origin, true, &number, err);
	if (r < 0)
		return r;
	table = &run->entries->table;
	change = malloc((count + table->of_origin[number][list] + 1) * sizeof(*change));
	if (!change)
		return sl_err_no_memory(err);
	changes = gather_new(table, number, entry, count, change, &result);
	result.removed = gather_unmarked(table, number, list, change + changes);
	return commit(run, change, changes + result.removed, &result, ret, err);
}

int entries_withdraw(struct running *run, const char *origin, struct entries_result *ret,
		     struct sl_err *err)
{
	struct entries_result result = { .added = 0 };
	struct entry_change *change;
	u32 number;
	int r = removal_begin(run, origin, run->entries ? run->entries->table.live : 0, &number,
			      &change, ret, err);

	if (r)
		return r < 0 ? r : 0;
	result.removed = gather_unmarked(&run->entries->table, number, LIST_KIND_COUNT, change);
	return commit(run, change, result.removed, &result, ret, err);
}

/* ------------------------------------------------------------------ looking */

void entries_walk(const struct running *run, const char *origin, entries_each *each, void *arg)
{
	const struct entry_table *table = run->entries ? &run->entries->table : NULL;
	u64 now_utc_ns = clock_utc_ns();

	for (u32 i = 0; table && i < table->count; i++) {
		const struct held *held = &table->held[i];
		struct entry entry;

		if (!held->used || held->origin < ORIGIN_FEEDS ||
		    (held->until_utc_ns && held->until_utc_ns <= now_utc_ns) ||
		    (origin && strcmp(table->name[held->origin], origin) != 0))
			continue;
		entry = entry_of(held);
		each(arg, table->name[held->origin], &entry);
	}
}

size_t entries_count(const struct running *run, enum list_kind list)
{
	size_t count = 0;

	for (u32 i = ORIGIN_FEEDS; run->entries && i < run->entries->table.names; i++)
		count += run->entries->table.of_origin[i][list];
	return count;
}

static size_t listed_by(const struct entry_table *table, u32 origin)
{
	return (size_t)table->of_origin[origin][LIST_BLOCK] + table->of_origin[origin][LIST_EXEMPT];
}

size_t entries_of_origin(const struct running *run, const char *origin)
{
	int number =
		run->entries ? entry_table_origin(&run->entries->table, origin, false) : -ENOENT;

	return number < 0 ? 0 : listed_by(&run->entries->table, (u32)number);
}

bool entries_have(const struct running *run, const char *origin, enum list_kind list,
		  const struct sl_prefix *prefix)
{
	int number =
		run->entries ? entry_table_origin(&run->entries->table, origin, false) : -ENOENT;

	return number >= 0 && entry_table_find(&run->entries->table, (u32)number, list, prefix);
}

void entries_origins(const struct running *run, void (*each)(void *arg, const char *origin),
		     void *arg)
{
	const struct entry_table *table = run->entries ? &run->entries->table : NULL;

	for (u32 i = ORIGIN_FEEDS; table && i < table->names; i++)
		if (listed_by(table, i))
			each(arg, table->name[i]);
}

bool entries_longest(const struct running *run, enum list_kind list, const struct sl_prefix *source,
		     struct entry *ret, const char **ret_origin)
{
	const struct entry_table *table = &run->entries->table;
	u64 now_utc_ns = clock_utc_ns();

	for (u32 len = source->len + 1U; len-- > 0;) {
		struct sl_prefix prefix = { sl_addr_mask(source->addr, len), source->family,
					    (u8)len };

		for (u32 origin = ORIGIN_FEEDS; origin < table->names; origin++) {
			const struct held *held = entry_table_find(table, origin, list, &prefix);

			if (!held || (held->until_utc_ns && held->until_utc_ns <= now_utc_ns))
				continue;
			*ret = entry_of(held);
			*ret_origin = table->name[origin];
			return true;
		}
	}
	return false;
}
