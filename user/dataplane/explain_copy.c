// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* explain_copy.c - see explain_copy.h. */
#include "dataplane/explain_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Two sets a key, and a packet has SL_WORDS_MAX keys, each perhaps with a few other rows. */
#define SETS_MAX 1024
#define LEASES_MAX 512
/* A way that changes hands is BUSY for some nanoseconds. */
#define BUSY_TRIES 1000

struct set_copy {
	u32 index;
	struct sl_set before, now;
};

struct lease_copy {
	u64 key;
	bool there, there_before;
	u64 *before, *now;	/* a word for each CPU */
};

struct explain_copy {
	struct dp *dp;
	const struct sl_set *table;
	u32 sets, cpus;
	bool failed;
	u32 set_count, lease_count;
	struct set_copy set[SETS_MAX];
	struct lease_copy lease[LEASES_MAX];
};

struct explain_copy *explain_copy_new(struct dp *dp)
{
	struct explain_copy *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->dp = dp;
	copy->table = dp->ops->table(dp, &copy->sets);
	copy->cpus = dp->ops->cpus(dp);
	return copy;
}

void explain_copy_free(struct explain_copy *copy)
{
	if (!copy)
		return;
	for (u32 i = 0; i < copy->lease_count; i++) {
		free(copy->lease[i].before);
		free(copy->lease[i].now);
	}
	free(copy);
}

void explain_copy_rewind(struct explain_copy *copy)
{
	for (u32 i = 0; i < copy->set_count; i++)
		copy->set[i].now = copy->set[i].before;
	for (u32 i = 0; i < copy->lease_count; i++) {
		struct lease_copy *lease = &copy->lease[i];

		memcpy(lease->now, lease->before, copy->cpus * sizeof(u64));
		lease->there = lease->there_before;
	}
}

bool explain_copy_failed(const struct explain_copy *copy)
{
	return copy->failed;
}

/* A way as it is between two changes. */
static void read_way(const struct sl_way *way, struct sl_way *ret)
{
	for (u32 i = 0; i < BUSY_TRIES; i++) {
		ret->key = __atomic_load_n(&way->key, __ATOMIC_ACQUIRE);
		ret->word = __atomic_load_n(&way->word, __ATOMIC_ACQUIRE);
		if (ret->word != SL_WORD_BUSY &&
		    __atomic_load_n(&way->key, __ATOMIC_ACQUIRE) == ret->key)
			return;
	}
}

struct sl_set *explain_copy_set(struct explain_copy *copy, u32 index)
{
	struct set_copy *set;

	for (u32 i = 0; i < copy->set_count; i++)
		if (copy->set[i].index == index)
			return &copy->set[i].now;
	if (copy->set_count == SETS_MAX || index >= copy->sets) {
		copy->failed = true;
		return NULL;
	}
	set = &copy->set[copy->set_count++];
	set->index = index;
	for (u32 i = 0; i < SL_WAYS; i++)
		read_way(&copy->table[index].way[i], &set->before.way[i]);
	set->now = set->before;
	return &set->now;
}

static struct lease_copy *fetch_lease(struct explain_copy *copy, u64 key)
{
	struct lease_copy *lease;
	int rc;

	for (u32 i = 0; i < copy->lease_count; i++)
		if (copy->lease[i].key == key)
			return &copy->lease[i];
	if (copy->lease_count == LEASES_MAX)
		goto failed;
	lease = &copy->lease[copy->lease_count];
	lease->key = key;
	lease->before = calloc(copy->cpus, sizeof(u64));
	lease->now = calloc(copy->cpus, sizeof(u64));
	copy->lease_count++;
	if (!lease->before || !lease->now)
		goto failed;
	rc = copy->dp->ops->lease(copy->dp, key, lease->before);
	if (rc < 0 && rc != -ENOENT)
		goto failed;
	lease->there = lease->there_before = !rc;
	memcpy(lease->now, lease->before, copy->cpus * sizeof(u64));
	return lease;
failed:
	copy->failed = true;
	return NULL;
}

u64 *explain_copy_lease(struct explain_copy *copy, u64 key, u32 cpu)
{
	struct lease_copy *lease = fetch_lease(copy, key);

	return lease && lease->there && cpu < copy->cpus ? &lease->now[cpu] : NULL;
}

int explain_copy_lease_insert(struct explain_copy *copy, u64 key, u32 cpu, u64 word)
{
	struct lease_copy *lease = fetch_lease(copy, key);

	if (!lease || cpu >= copy->cpus)
		return -ENOMEM;
	lease->there = true;
	lease->now[cpu] = word;
	return 0;
}
