// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * entries_follow.c - the entries of the configuration: live blocks and exemptions, and blocks of
 * other nodes, as a policy has them; and their start and end.
 *
 * A rule set is swapped between two steps: entries_widen() adds what the new policy has, and
 * entries_narrow() removes what it has not. So what both have is in force throughout.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/running/entries_private.h"
#include "control/running/running.h"
#include "lib/array.h"
#include "lib/clock.h"
#include "lib/log.h"

/* What entries_widen() and entries_narrow() have to change. */
struct follow {
	struct entry_change *change;
	size_t count;
};

static bool follow_add(struct follow *f, const struct entry_change *change)
{
	return append(f->change, f->count, *change) == 0;
}

static bool is_later(u64 a_utc_ns, u64 b_utc_ns)
{
	return b_utc_ns && (!a_utc_ns || a_utc_ns > b_utc_ns);
}

static struct entry entry_of_list(enum list_kind list, const struct list_entry *listed)
{
	struct entry entry = { .list = list,
			       .prefix = listed->prefix,
			       .until_utc_ns = listed->until_utc_ns };

	memcpy(entry.reason, listed->reason, sizeof(entry.reason));
	return entry;
}

/* `exactly`: also what ends earlier now; and marks what the policy has. */
static bool follow_policy(struct follow *f, struct entry_table *table, const struct policy *policy,
			  bool exactly)
{
	for (enum list_kind list = LIST_BLOCK; list <= LIST_EXEMPT; list++) {
		for (size_t i = 0; i < policy->list[list].count; i++) {
			const struct list_entry *listed = &policy->list[list].entry[i];
			u32 origin = listed->derived ? ORIGIN_NODES : ORIGIN_LIVE;
			struct entry_change change = { .origin = origin };
			struct held *held;

			if (!list_entry_is_live(listed))
				continue;
			held = entry_table_find(table, origin, list, &listed->prefix);
			change.entry = entry_of_list(list, listed);
			if (held && exactly)
				held->mark = true;
			if (held && !held->from_ns &&
			    (exactly ? entry_is_same(held, &change.entry)
				     : !is_later(change.entry.until_utc_ns, held->until_utc_ns)))
				continue;
			if (!follow_add(f, &change))
				return false;
		}
	}
	return true;
}

int entries_widen(struct running *run, const struct policy *policy, struct sl_err *err)
{
	struct follow f = { .count = 0 };
	int r = 0;

	if (!run->entries)
		return sl_err_no_memory(err);
	if (!follow_policy(&f, &run->entries->table, policy, false))
		r = sl_err_no_memory(err);
	if (!r && f.count)
		r = entries_change(run, f.change, f.count, false, err);
	free(f.change);
	return r;
}

int entries_narrow(struct running *run, const struct policy *policy, u64 revert_at_ns,
		   struct sl_err *err)
{
	struct entry_table *table = &run->entries->table;
	struct follow f = { .count = 0 };
	bool ok = follow_policy(&f, table, policy, true);
	int r = 0;

	for (u32 i = 0; ok && i < table->count; i++) {
		const struct held *held = &table->held[i];
		struct entry_change change = { .origin = held->origin,
					       .remove = !revert_at_ns,
					       .from_ns = revert_at_ns };

		if (!held->used || held->origin >= ORIGIN_FEEDS || held->mark ||
		    (revert_at_ns && held->from_ns == revert_at_ns))
			continue;
		change.entry = entry_of(held);
		ok = follow_add(&f, &change);
	}
	entry_table_unmark(table);
	if (!ok)
		r = sl_err_no_memory(err);
	if (!r && f.count)
		r = entries_change(run, f.change, f.count, false, err);
	free(f.change);
	return r;
}

int entries_follow_one(struct running *run, enum list_kind list, const struct sl_prefix *prefix,
		       struct sl_err *err)
{
	struct entry_change change = { .origin = ORIGIN_LIVE,
				       .remove = true,
				       .entry = { .list = list, .prefix = *prefix } };
	const struct list_entry *listed = list_find_entry(&run->policy->list[list], prefix);

	if (listed && list_entry_is_live(listed) && !listed->derived) {
		change.remove = false;
		change.entry = entry_of_list(list, listed);
	}
	return entries_change(run, &change, 1, false, err);
}

/* ------------------------------------------------------------------ start and end */

static struct entries *entries_new(void)
{
	struct entries *entries = calloc(1, sizeof(*entries));

	if (!entries)
		return NULL;
	entry_table_init(&entries->table);
	entries->fd = -1;
	return entries;
}

int entries_start(struct running *run, struct sl_err *err)
{
	run->entries = entries_new();
	if (!run->entries)
		return sl_err_no_memory(err);
	/* Without a disk limits are in force, and changes of feeds are refused. */
	if (entries_file_open(run->entries, run->state_dir, err) < 0)
		log_error("%s: feeds cannot change their entries", err->message);
	return 0;
}

void entries_expire(struct running *run)
{
	struct entry_table *table = &run->entries->table;
	u64 now_utc_ns = clock_utc_ns();
	struct follow f = { .count = 0 };
	struct sl_err err;
	bool ok = true;

	for (u32 i = 0; ok && i < table->count; i++) {
		const struct held *held = &table->held[i];
		struct entry_change change = { .origin = held->origin, .remove = true };

		if (!held->used || held->origin < ORIGIN_FEEDS || !held->until_utc_ns ||
		    held->until_utc_ns > now_utc_ns)
			continue;
		change.entry = entry_of(held);
		ok = follow_add(&f, &change);
	}
	if (f.count && entries_change(run, f.change, f.count, true, &err) < 0)
		log_error("cannot remove entries that have ended: %s", err.message);
	free(f.change);
	if (run->entries->stale)
		entries_refilter(run);
	entries_file_tidy(run->entries, run->state_dir);
}

void entries_save(struct running *run)
{
	if (run->entries && run->entries->unsaved)
		entries_file_tidy(run->entries, run->state_dir);
}

const char *entries_unsaved_why(const struct running *run)
{
	return run->entries && run->entries->unsaved ? "state_dir/entries has no room" : NULL;
}

void entries_step(struct running *run, s64 step_ns)
{
	struct entry_table *table = &run->entries->table;

	for (u32 i = 0; i < table->count; i++)
		if (table->held[i].used && table->held[i].until_utc_ns)
			table->held[i].until_utc_ns += (u64)step_ns;
	run->entries->outdated = true;
	entries_file_tidy(run->entries, run->state_dir);
}

void entries_free(struct running *run)
{
	if (!run->entries)
		return;
	if (run->entries->fd >= 0)
		close(run->entries->fd);
	entry_table_free(&run->entries->table);
	free(run->entries);
	run->entries = NULL;
}
