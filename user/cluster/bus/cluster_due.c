// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_due.c - flushes charges to Redis in the background; see quota.h.
 *
 * Due charges are sorted by hash slot, and those of one slot are sent in one command. The reply
 * replaces the local bucket state, plus the charges made here in the meantime (quotas_flushed()).
 */
#include "cluster/bus/cluster_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/quota/quota_apply.h"
#include "counters/counters.h"

#define DUE_MAX CLUSTER_STORE_BUCKETS_MAX
#define ROUNDS_MAX 8		  /* in one call: the rest follows a few milliseconds later */
#define DEADLINE_NS SL_NS_PER_SEC /* no client waits for it */

struct due_group {
	struct cluster *cluster;
	struct cluster_store_request request;
	struct cluster_store_bucket bucket[DUE_MAX];
	struct quota_due due[DUE_MAX];
};

static void flush(struct due_group *group, enum cluster_store_outcome outcome)
{
	struct cluster *c = group->cluster;

	for (u32 i = 0; i < group->request.count; i++) {
		struct quota_due *due = &group->due[i];

		due->ref.def = &due->def;
		due->bucket = group->bucket[i];
		quota_flushed(c->counters, c->quotas, due, &group->request, outcome,
			      counters_now(c->counters));
	}
}

static void group_end(struct due_group *group, enum cluster_store_outcome outcome)
{
	flush(group, outcome);
	group->cluster->pending--;
	free(group);
}

static void on_done(struct cluster_store_request *request, enum cluster_store_outcome outcome)
{
	if (outcome == CLUSTER_STORE_LATE)
		flush(request->arg, outcome);
	else
		group_end(request->arg, outcome);
}

static void on_late(struct cluster_store_request *request, enum cluster_store_outcome outcome)
{
	group_end(request->arg, outcome);
}

/* The charges of one hash slot. */
static void request_group(struct cluster *c, const struct quota_due *due, u32 count)
{
	struct due_group *group = malloc(sizeof(*group));

	if (!group) {
		for (u32 i = 0; i < count; i++)
			quota_flushed(c->counters, c->quotas, &due[i], NULL, CLUSTER_STORE_DOWN,
				      counters_now(c->counters));
		return;
	}
	group->cluster = c;
	memcpy(group->due, due, count * sizeof(*due));
	for (u32 i = 0; i < count; i++)
		group->bucket[i] = due[i].bucket;
	group->request = (struct cluster_store_request){ .bucket = group->bucket,
							 .count = count,
							 .deadline_ns = DEADLINE_NS,
							 .done = on_done,
							 .late = on_late,
							 .arg = group };
	c->pending++;
	if (c->store->ops->send(c->store, &group->request) < 0)
		group_end(group, CLUSTER_STORE_DOWN);
}

struct placed {
	u32 slot, index;
};

static int by_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static void request_all(struct cluster *c, struct quota_due *due, u32 count)
{
	struct quota_due *sorted = malloc(count * sizeof(*sorted));
	struct placed placed[DUE_MAX];
	u32 from = 0;

	for (u32 i = 0; i < count; i++)
		placed[i] =
			(struct placed){ c->store->ops->slot_of(c->store, due[i].bucket.tag), i };
	qsort(placed, count, sizeof(placed[0]), by_place);
	for (u32 i = 0; sorted && i < count; i++) {
		sorted[i] = due[placed[i].index];
		sorted[i].ref.def = &sorted[i].def;
	}
	for (u32 i = 1; sorted && i <= count; i++) {
		if (i < count && placed[i].slot == placed[from].slot)
			continue;
		request_group(c, &sorted[from], i - from);
		from = i;
	}
	/* No memory to sort: send one by one. */
	for (u32 i = 0; !sorted && i < count; i++)
		request_group(c, &due[i], 1);
	free(sorted);
}

void cluster_due(struct cluster *c)
{
	struct quota_due *due = malloc(DUE_MAX * sizeof(*due));
	u32 count = DUE_MAX;

	for (u32 i = 0; due && i < ROUNDS_MAX && count == DUE_MAX; i++) {
		count = quotas_due(c->quotas, due, DUE_MAX, counters_now(c->counters));
		if (count)
			request_all(c, due, count);
	}
	free(due);
}
