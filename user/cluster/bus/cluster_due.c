// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_due.c - what this node owes the store, told in the background; see share.h.
 *
 * What is due is sorted by place, and each place's goes out in one ask. What the store answers
 * takes the place of the local word, with what was charged here meanwhile on top (quota_flushed()).
 */
#include "cluster/bus/cluster_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/quota/quota_apply.h"
#include "counters/store.h"

#define DUE_MAX SHARED_BUCKETS_MAX
#define ROUNDS_MAX 8			/* of them at a time: the rest waits for the next few milliseconds */
#define DEADLINE_NS SL_NS_PER_SEC	/* nobody waits for it */

struct due_group {
	struct cluster *cluster;
	struct shared_ask ask;
	struct shared_bucket bucket[DUE_MAX];
	struct share_due due[DUE_MAX];
};

static void tell(struct due_group *group, enum shared_outcome outcome)
{
	struct cluster *c = group->cluster;

	for (u32 i = 0; i < group->ask.count; i++) {
		struct share_due *due = &group->due[i];

		due->ref.def = &due->def;
		due->bucket = group->bucket[i];
		quota_flushed(c->store, c->shares, due, &group->ask, outcome, store_now(c->store));
	}
}

static void group_end(struct due_group *group, enum shared_outcome outcome)
{
	tell(group, outcome);
	group->cluster->asked--;
	free(group);
}

static void on_done(struct shared_ask *ask, enum shared_outcome outcome)
{
	if (outcome == SHARED_LATE)
		tell(ask->arg, outcome);
	else
		group_end(ask->arg, outcome);
}

static void on_late(struct shared_ask *ask, enum shared_outcome outcome)
{
	group_end(ask->arg, outcome);
}

/* One place's. */
static void ask_group(struct cluster *c, const struct share_due *due, u32 count)
{
	struct due_group *group = malloc(sizeof(*group));

	if (!group) {
		for (u32 i = 0; i < count; i++)
			quota_flushed(c->store, c->shares, &due[i], NULL, SHARED_DOWN,
				    store_now(c->store));
		return;
	}
	group->cluster = c;
	memcpy(group->due, due, count * sizeof(*due));
	for (u32 i = 0; i < count; i++)
		group->bucket[i] = due[i].bucket;
	group->ask = (struct shared_ask){ .bucket = group->bucket, .count = count,
					  .deadline_ns = DEADLINE_NS, .done = on_done,
					  .late = on_late, .arg = group };
	c->asked++;
	if (c->shared->ops->ask(c->shared, &group->ask) < 0)
		group_end(group, SHARED_DOWN);
}

struct placed {
	u32 place, index;
};

static int by_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return x->place < y->place ? -1 : x->place > y->place;
}

static void ask_all(struct cluster *c, struct share_due *due, u32 count)
{
	struct share_due *sorted = malloc(count * sizeof(*sorted));
	struct placed placed[DUE_MAX];
	u32 from = 0;

	for (u32 i = 0; i < count; i++)
		placed[i] = (struct placed){ c->shared->ops->place(c->shared, due[i].bucket.tag), i };
	qsort(placed, count, sizeof(placed[0]), by_place);
	for (u32 i = 0; sorted && i < count; i++) {
		sorted[i] = due[placed[i].index];
		sorted[i].ref.def = &sorted[i].def;
	}
	for (u32 i = 1; sorted && i <= count; i++) {
		if (i < count && placed[i].place == placed[from].place)
			continue;
		ask_group(c, &sorted[from], i - from);
		from = i;
	}
	/* Without memory to sort by: one by one. */
	for (u32 i = 0; !sorted && i < count; i++)
		ask_group(c, &due[i], 1);
	free(sorted);
}

void cluster_due(struct cluster *c)
{
	struct share_due *due = malloc(DUE_MAX * sizeof(*due));
	u32 count = DUE_MAX;

	for (u32 i = 0; due && i < ROUNDS_MAX && count == DUE_MAX; i++) {
		count = shares_due(c->shares, due, DUE_MAX, store_now(c->store));
		if (count)
			ask_all(c, due, count);
	}
	free(due);
}
