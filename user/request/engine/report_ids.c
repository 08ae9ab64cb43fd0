// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * report_ids.c - see report_ids.h.
 *
 * Sets of eight entries in a cache line. An entry is 44 bits of hash and 20 bits of seconds,
 * which wrap after twelve days: an entry that old counts as young only if its hash occurs again
 * within just those five minutes, one chance in 2^44. With the set's number 61 bits of the hash
 * are compared. Sets share 64 locks.
 */
#include "request/engine/report_ids.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "lib/hash.h"

#define SETS (1U << 17)
#define WAYS 8
#define LOCKS 64
#define TIME_BITS 20
#define TIME_MASK ((1U << TIME_BITS) - 1)

struct report_ids {
	struct sl_seed seed;
	pthread_mutex_t lock[LOCKS];
	u64 set[SETS][WAYS];
};

struct report_ids *report_ids_new(void)
{
	/* Pages that were never written use no memory. */
	struct report_ids *ids = mmap(NULL, sizeof(*ids), PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	if (ids == MAP_FAILED)
		return NULL;
	if (getrandom(&ids->seed, sizeof(ids->seed), 0) != sizeof(ids->seed)) {
		munmap(ids, sizeof(*ids));
		return NULL;
	}
	for (i = 0; i < LOCKS; i++)
		pthread_mutex_init(&ids->lock[i], NULL);
	return ids;
}

void report_ids_free(struct report_ids *ids)
{
	int i;

	if (!ids)
		return;
	for (i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&ids->lock[i]);
	munmap(ids, sizeof(*ids));
}

bool report_ids_first(struct report_ids *ids, struct bytes domain, struct bytes id, u64 now_s)
{
	u64 hash, tag, *way, *oldest;
	u32 age, most = 0, set;
	bool first = true;
	int i;

	hash = hash_bytes(ids->seed, 0, domain.at, domain.len);
	hash = hash_bytes(ids->seed, hash, id.at, id.len);
	set = hash % SETS;
	tag = hash >> TIME_BITS;
	way = oldest = ids->set[set];

	pthread_mutex_lock(&ids->lock[set % LOCKS]);
	for (i = 0; i < WAYS && first; i++) {
		age = way[i] ? (now_s - way[i]) & TIME_MASK : TIME_MASK + 1;
		if (way[i] && way[i] >> TIME_BITS == tag && age < REPORT_IDS_S)
			first = false;
		if (age > most) {
			most = age;
			oldest = &way[i];
		}
	}
	if (first)
		*oldest = tag << TIME_BITS | (now_s & TIME_MASK);
	pthread_mutex_unlock(&ids->lock[set % LOCKS]);
	return first;
}
