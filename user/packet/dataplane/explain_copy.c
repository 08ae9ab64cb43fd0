// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* explain_copy.c - see explain_copy.h. */
#include "packet/dataplane/explain_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHAINS 1024
/* A way whose key is being replaced is BUSY for some nanoseconds. */
#define BUSY_TRIES 1000

struct set_copy {
	struct set_copy *next;
	u32 index;
	struct sl_set before, now;
};

/* Bucket states: `before` of each CPU, then `now`. */
struct lease_copy {
	struct lease_copy *next;
	u64 key;
	bool there, there_before;
	u64 bucket_state[];
};

struct explain_copy {
	struct dp *dp;
	const struct sl_set *table;
	u32 sets, cpus;
	bool failed;
	struct set_copy *set[CHAINS];
	struct lease_copy *lease[CHAINS];
};

struct explain_copy *explain_copy_new(struct dp *dp)
{
	struct explain_copy *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->dp = dp;
	copy->table = dp->table;
	copy->sets = dp->table_sets;
	copy->cpus = dp->cpus;
	return copy;
}

void explain_copy_free(struct explain_copy *copy)
{
	for (u32 i = 0; copy && i < CHAINS; i++) {
		while (copy->set[i]) {
			struct set_copy *set = copy->set[i];

			copy->set[i] = set->next;
			free(set);
		}
		while (copy->lease[i]) {
			struct lease_copy *lease = copy->lease[i];

			copy->lease[i] = lease->next;
			free(lease);
		}
	}
	free(copy);
}

void explain_copy_rewind(struct explain_copy *copy)
{
	for (u32 i = 0; i < CHAINS; i++) {
		for (struct set_copy *set = copy->set[i]; set; set = set->next)
			set->now = set->before;
		for (struct lease_copy *lease = copy->lease[i]; lease; lease = lease->next) {
			memcpy(lease->bucket_state + copy->cpus, lease->bucket_state,
			       copy->cpus * sizeof(u64));
			lease->there = lease->there_before;
		}
	}
}

bool explain_copy_failed(const struct explain_copy *copy)
{
	return copy->failed;
}

/* A way, read between two changes. */
static void read_way(const struct sl_way *way, struct sl_way *ret)
{
	for (u32 i = 0; i < BUSY_TRIES; i++) {
		ret->key = __atomic_load_n(&way->key, __ATOMIC_ACQUIRE);
		ret->bucket_state = __atomic_load_n(&way->bucket_state, __ATOMIC_ACQUIRE);
		if (ret->bucket_state != SL_STATE_BUSY &&
		    __atomic_load_n(&way->key, __ATOMIC_ACQUIRE) == ret->key)
			return;
	}
}

struct sl_set *explain_copy_set(struct explain_copy *copy, u32 index)
{
	struct set_copy **chain = &copy->set[index % CHAINS], *set;

	for (set = *chain; set; set = set->next)
		if (set->index == index)
			return &set->now;
	set = index < copy->sets ? calloc(1, sizeof(*set)) : NULL;
	if (!set) {
		copy->failed = true;
		return NULL;
	}
	set->index = index;
	for (u32 i = 0; i < SL_WAYS; i++)
		read_way(&copy->table[index].way[i], &set->before.way[i]);
	set->now = set->before;
	set->next = *chain;
	*chain = set;
	return &set->now;
}

static struct lease_copy *fetch_lease(struct explain_copy *copy, u64 key)
{
	struct lease_copy **chain = &copy->lease[key % CHAINS], *lease;
	int rc;

	for (lease = *chain; lease; lease = lease->next)
		if (lease->key == key)
			return lease;
	lease = calloc(1, sizeof(*lease) + 2 * copy->cpus * sizeof(u64));
	rc = lease ? copy->dp->ops->lease(copy->dp, key, lease->bucket_state) : -ENOMEM;
	if (rc < 0 && rc != -ENOENT) {
		copy->failed = true;
		free(lease);
		return NULL;
	}
	lease->key = key;
	lease->there = lease->there_before = !rc;
	memcpy(lease->bucket_state + copy->cpus, lease->bucket_state, copy->cpus * sizeof(u64));
	lease->next = *chain;
	*chain = lease;
	return lease;
}

u64 *explain_copy_lease(struct explain_copy *copy, u64 key, u32 cpu)
{
	struct lease_copy *lease = fetch_lease(copy, key);

	return lease && lease->there && cpu < copy->cpus ? &lease->bucket_state[copy->cpus + cpu]
							 : NULL;
}

int explain_copy_lease_insert(struct explain_copy *copy, u64 key, u32 cpu, u64 bucket_state)
{
	struct lease_copy *lease = fetch_lease(copy, key);

	if (!lease || cpu >= copy->cpus)
		return -ENOMEM;
	lease->there = true;
	lease->bucket_state[copy->cpus + cpu] = bucket_state;
	return 0;
}
