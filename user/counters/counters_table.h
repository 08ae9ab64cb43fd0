/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * counters_table.h - the layout of the counter table, for its own files, and the access of decide.c
 * to bucket states.
 *
 * A request lists its bucket states (struct counters_ref), and then calls
 *
 *     store_begin()   locks the two candidate sets of each key, in ascending order
 *     counters_look()    finds a bucket state, and converts it to the present limit
 *     counters_claim()   finds a place for a missing one
 *     counters_put()     writes
 *     counters_end()     unlocks
 *
 * so that between begin and end no other thread reads or changes any of them.
 */
#ifndef SLUICE_HTTP_COUNTERS_TABLE_H
#define SLUICE_HTTP_COUNTERS_TABLE_H

#include <pthread.h>

#include "limiter/request_log.h"
#include "counters/counters.h"

#define COUNTERS_WAYS 7
#define COUNTERS_CLASSES 65536	       /* class 0 is none */
#define COUNTERS_CLASSES_CALLER 1024   /* of limits in requests of one caller */
#define COUNTERS_CLASSES_CALLERS 32768 /* of all callers; the rest is for rules */

/*
 * Two cache lines. The keys are in the first line; the bucket states, except for that of the first
 * way, are in the second. key 0: the way is free.
 */
struct counters_set {
	u64 key[COUNTERS_WAYS];
	u64 bucket_state[COUNTERS_WAYS];
	u16 class[COUNTERS_WAYS];
	u16 pad;
};
SL_STATIC_ASSERT(sizeof(struct counters_set) == 128, "two cache lines, as docs/algorithms.md says");

/*
 * Bytes of table per user, of which a way takes 18.3: the table is then four fifths full, and of
 * a million keys 0.06 % find all ways of both their sets taken (docs/performance.md).
 */
#define COUNTERS_USER_BYTES 23

/* The first page of the file. `fixed` does not change during the life of the file. */
struct counters_header {
	struct counters_fixed {
		char magic[8];
		u32 version;
		u32 sets;
		u32 chunks;
		u32 classes;
		struct sl_seed seed;
		u64 check; /* of the above, to detect a damaged file */
	} fixed;
	struct counters_clock {
		char boot_id[40];
		u64 mono_base;	   /* added to CLOCK_BOOTTIME of that boot */
		u64 mono_promised; /* mono_ns was never returned above this... */
		u64 utc_promised;  /* ...at this UTC */
	} clock;
	u32 chunks_used; /* chunks from here on were never used */
	u32 pad;
};

/* Classes in memory: from a def to its number, from a number to its spec (counters_class.c). */
struct counters_classes {
	pthread_mutex_t lock;
	u32 *slot; /* open addressing; 0 free, SLOT_GONE, else a class */
	const struct spec *spec[COUNTERS_CLASSES]; /* NULL: the number is free */
	u8 state[COUNTERS_CLASSES];		   /* enum class_state */
	u8 touched[COUNTERS_CLASSES];		   /* looked up since the sweep began its round */
	u8 seen[COUNTERS_CLASSES];		   /* this round of the sweep found entries */
	u16 caller[COUNTERS_CLASSES];		   /* caller whose limit it is; 0: a rule's */
	u32 made_for[COUNTERS_CALLERS];		   /* classes of each caller; [0]: of all of them */
	u32 next;				   /* where to look for a free number */
	u32 in_slots;				   /* slots that are not 0 */
	u32 most;				   /* the highest number ever used */
};

struct counters {
	struct counters_header *head;
	struct spec_def *def;	    /* COUNTERS_CLASSES of them, in the file */
	struct block_checks checks; /* of the blocks of sets and chunks */
	struct counters_set *set;
	u32 sets;
	struct request_logs logs;
	u8 *lock; /* one for each set, see counters_table.c */
	struct counters_classes *classes;
	struct sl_seed seed;
	u64 users;
	void *map;
	size_t map_bytes;
	int fd;	    /* -1: private memory of this process */
	bool fresh; /* made by this process */
	char *path; /* path of the file; NULL: none */
	char boot_id[40];
	u8 clock_lock;
	char note[512];		     /* about the file, for the log; "" nothing */
	bool full_closed;	     /* on_full */
	bool shared;		     /* some limits have `scope: cluster` */
	struct sl_seed cluster_seed; /* of their keys */
	s64 cluster_utc_ns; /* atomic: the cluster store's clock, ahead of this machine's UTC */
	u64 evicted, evicted_units; /* atomic */
	u64 mono_base;		    /* head's */
	u64 promised;		    /* head's mono_promised, read without its cache line */
	pthread_mutex_t sweep_lock;
	u32 sweep_at;		      /* the next set */
	bool sweep_busy;	      /* requests came during the last round */
	bool sweep_rests;	      /* none came, and the table is empty */
	u32 shed_at;		      /* where the search for a log to evict continues; atomic */
	u64 count_now[SL_ALGO_COUNT]; /* entries of this round so far */
	u64 count[SL_ALGO_COUNT];     /* ... and of the last whole one */
};

/* One bucket state of a request. */
struct counters_ref {
	u64 key;
	struct spec_def def;
	u16 caller; /* caller with the limit in its request, below COUNTERS_CALLERS; 0: a rule */
	/* From counters_look(): */
	const struct spec *spec; /* NULL: no room for its class */
	u64 bucket_state;	 /* of `spec`; 0 none. A sliding log: see request_log.h */
	u32 set;		 /* where it is, or was claimed */
	u16 class;
	u8 way;
	bool present; /* it is in the table */
	bool claimed; /* a way of the table is reserved for it */
	u32 chunk;    /* of a sliding log, allocated for it; 0: none */
};

#define COUNTERS_REFS_MAX 2706

struct counters_locks {
	struct counters *counters;
	u32 count;
	u32 set[2 * COUNTERS_REFS_MAX]; /* ascending */
};

/* `now` by the cluster store's clock: for windows of limits with `scope: cluster`. */
static inline struct sl_now counters_shared_now(const struct counters *counters, struct sl_now now)
{
	now.utc_ns += __atomic_load_n(&counters->cluster_utc_ns, __ATOMIC_RELAXED);
	return now;
}

void store_begin(struct counters *counters, struct counters_locks *locks,
		 const struct counters_ref *ref, u32 count);
void counters_end(struct counters_locks *locks);
void counters_look(struct counters *counters, struct counters_ref *ref, struct sl_now now);
/* Reserves a way for a bucket state that is not present. False: no way may be evicted. */
bool counters_claim(struct counters *counters, struct counters_ref *ref, struct sl_now now);
/*
 * For an exhausted pool of logs: evicts a log below half of its limit, as counters_claim() evicts
 * entries, but not one of the request. False: none was found in a bounded search.
 */
bool counters_shed_log(struct counters *counters, struct sl_now now);
/* A bucket state of 0 removes the entry. Present or claimed only. */
void counters_put(struct counters *counters, struct counters_ref *ref, u64 bucket_state);
/* Removes an entry, with its log. Present only. */
void counters_forget(struct counters *counters, struct counters_ref *ref);
/* The same by the key only, for any limit; the entry may be missing. Between begin and end. */
void counters_forget_key(struct counters *counters, u64 key);
/*
 * Releases a unit of a concurrency that was taken at `then`; false: none of that time is in flight.
 * Between begin and end.
 */
bool counters_release(struct counters *counters, u64 key, struct sl_now then, struct sl_now now);
/* Prefetches the sets of a bucket state. */
void counters_prefetch(const struct counters *counters, u64 key);

/* Call it before each write to a set. */
static inline void counters_touch(struct counters *counters, const struct counters_set *set)
{
	block_touch(&counters->checks,
		    (u32)((size_t)(set - counters->set) * sizeof(*set) / BLOCK_BYTES));
}

/* ---- counters_class.c */
int counters_classes_open(struct counters *counters, struct sl_err *err);
void counters_classes_close(struct counters *counters);
/*
 * The class of a def, created for a caller (0: a rule) if missing; 0: no room. With the sets
 * locked.
 */
u16 counters_class(struct counters *counters, const struct spec_def *def, u16 caller,
		   const struct spec **ret_spec);
/* Whether any was looked up since the sweep began its round. */
bool counters_classes_touched(const struct counters *counters);
/* Frees unused numbers at the end of a round of the sweep; false if none were in use. */
bool counters_classes_reclaim(struct counters *counters);

static inline const struct spec *counters_spec(const struct counters *counters, u16 class)
{
	return __atomic_load_n(&counters->classes->spec[class], __ATOMIC_ACQUIRE);
}

/* ---- counters_table.c, for the sweep */
void counters_lock_set(struct counters *counters, u32 set);
void counters_unlock_set(struct counters *counters, u32 set);
/* The utilization of a way, 0: expired. Its set is locked. */
u32 counters_way_utilization(struct counters *counters, const struct counters_set *set, u32 way,
			     struct sl_now now);
/* Empties a way; its chunks of the log return to the pool. */
void counters_way_free(struct counters *counters, struct counters_set *set, u32 way);

#endif
