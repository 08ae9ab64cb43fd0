// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * entries_change.c - changes of entries, all or none: in the table, then in the data plane: one map
 * update for each prefix, of what all origins together list there. Changes of feeds are written to
 * state_dir/entries; those of the configuration are in live.json, or come from other nodes again.
 * Whatever fails but a full disk, the change is undone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/running/entries_private.h"
#include "control/running/running.h"
#include "lib/clock.h"
#include "lib/file.h"
#include "lib/log.h"
#include "packet/dataplane/dp_list.h"

/* ------------------------------------------------------------------ into the data plane */

/* What is to be done about each touched prefix. */
struct batch {
	struct dp_listed *put;
	struct sl_list_key *del;
	size_t puts, dels;
};

static int batch_make(size_t count, struct batch *ret)
{
	ret->puts = ret->dels = 0;
	ret->put = malloc((count + 1) * sizeof(*ret->put));
	ret->del = malloc((count + 1) * sizeof(*ret->del));
	return ret->put && ret->del ? 0 : -ENOMEM;
}

static void batch_free(struct batch *batch)
{
	free(batch->put);
	free(batch->del);
}

static void batch_add(struct batch *batch, const struct entries *entries,
		      const struct sl_prefix *prefix, u64 now_utc_ns)
{
	struct dp_listed listed = { .key = dp_list_key(prefix) };

	if (entry_table_value(&entries->table, prefix, clock_utc_offset_ns(), now_utc_ns,
			      &listed.listed))
		batch->put[batch->puts++] = listed;
	else
		batch->del[batch->dels++] = listed.key;
}

static int batch_run(struct running *run, const struct batch *batch)
{
	struct dp *dp = run->packets->dp;
	int r = batch->puts ? dp_list_put(dp, batch->put, batch->puts) : 0;

	if (!r && batch->dels)
		r = dp_list_del(dp, batch->del, batch->dels);
	run->entries->stale |= batch->dels != 0;
	return r;
}

/* Puts in force what the table has at these prefixes. */
static int put_in_force(struct running *run, const struct entry_change *change, size_t count)
{
	u64 now_utc_ns = clock_utc_ns();
	struct batch batch;
	int r = batch_make(count, &batch);

	for (size_t i = 0; !r && i < count; i++)
		batch_add(&batch, run->entries, &change[i].entry.prefix, now_utc_ns);
	if (!r)
		r = batch_run(run, &batch);
	batch_free(&batch);
	return r;
}

/* ------------------------------------------------------------------ a change */

/* Makes one change in the table; *ret_undo would reverse it. */
static int change_one(struct entry_table *table, const struct entry_change *change,
		      struct entry_change *ret_undo)
{
	const struct entry *entry = &change->entry;
	struct held *held = entry_table_find(table, change->origin, entry->list, &entry->prefix);

	*ret_undo = (struct entry_change){ .origin = change->origin,
					   .remove = !held,
					   .entry = held ? entry_of(held) : *entry,
					   .from_ns = held ? held->from_ns : 0 };
	if (!change->remove)
		return entry_table_put(table, change->origin, entry, change->from_ns);
	if (held)
		entry_table_del(table, held);
	return 0;
}

/* Backward, since a change may name an entry twice. Memory was there when it was made. */
static void undo(struct entry_table *table, const struct entry_change *undo, size_t count)
{
	struct entry_change ignored;

	while (count--)
		change_one(table, &undo[count], &ignored);
}

int entries_change(struct running *run, const struct entry_change *change, size_t count, bool feed,
		   struct sl_err *err)
{
	struct entry_change *before = malloc((count + 1) * sizeof(*before));
	struct entry_table *table = &run->entries->table;
	size_t done = 0;
	int r = before ? 0 : -ENOMEM;

	while (!r && done < count) {
		r = change_one(table, &change[done], &before[done]);
		done += !r;
	}
	if (!r)
		r = put_in_force(run, change, count);
	if (r < 0)
		sl_err_set(err, -r, "cannot put the entries in force: %s", strerror(-r));
	else if (feed)
		r = entries_file_append(run->entries, change, count, err);
	/* The change is in force, and is written with all others once there is room. */
	if (feed && r < 0 && file_is_no_room(-r)) {
		if (!run->entries->unsaved)
			log_error("%s: entries are in force, and saved once it can be written",
				  err->message);
		run->entries->unsaved = run->entries->outdated = true;
		r = 0;
	}
	if (r < 0 && before) {
		undo(table, before, done);
		if (put_in_force(run, change, done) < 0)
			log_error("cannot restore the entries of before");
	}
	free(before);
	return r;
}

/* ------------------------------------------------------------------ all of them */

void entries_refilter(struct running *run)
{
	struct sl_list_filter *wanted = calloc(1, sizeof(*wanted));
	const struct entry_table *table = &run->entries->table;

	if (!wanted)
		return;
	for (u32 i = 0; i < table->count; i++) {
		struct sl_list_key key = dp_list_key(&table->held[i].prefix);

		if (table->held[i].used)
			dp_list_filter_add(wanted, &key);
	}
	dp_list_refilter(run->packets->dp, wanted);
	free(wanted);
	run->entries->stale = false;
}

void entries_settle(struct running *run)
{
	struct entries *entries = run->entries;
	struct dp *dp = run->packets->dp;
	u64 now_utc_ns = clock_utc_ns();
	struct dp_listed *old = NULL;
	struct batch batch;
	size_t count = 0;
	int r = dp->ops->hash_all(dp, DP_LISTED, &old, &count);

	if (!r)
		r = batch_make(entries->table.live + count, &batch);
	if (r < 0)
		goto out;
	for (u32 i = 0; i < entries->table.count; i++)
		if (entries->table.held[i].used)
			batch_add(&batch, entries, &entries->table.held[i].prefix, now_utc_ns);
	for (size_t i = 0; i < count; i++) {
		struct sl_prefix prefix = { old[i].key.addr, (u8)old[i].key.family,
					    (u8)old[i].key.len };
		struct sl_listed ignored;

		if (!entry_table_value(&entries->table, &prefix, clock_utc_offset_ns(), now_utc_ns,
				       &ignored))
			batch.del[batch.dels++] = old[i].key;
	}
	r = batch_run(run, &batch);
	batch_free(&batch);
	entries_refilter(run);
out:
	free(old);
	if (r < 0)
		log_error("cannot bring blocks in line with those before the start: %s",
			  strerror(-r));
}
