/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * counters_table.h - the inside of the store: what its own files share, and how decide.c gets at
 * bucket states.
 *
 * A call names its bucket states (struct counters_ref), and then
 *
 *     store_begin()   locks the two candidate sets of each key, in ascending order
 *     counters_look()    finds a bucket state, and makes it one of the limit that holds now
 *     counters_claim()   finds a place for one that is not there
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
#define COUNTERS_CLASSES 65536		/* class 0 is none */
#define COUNTERS_CLASSES_CALLER 1024	/* of limits that one caller's requests bring */
#define COUNTERS_CLASSES_CALLERS 32768	/* of all callers; the rest is for rules */

/*
 * Two cache lines. A key is looked for in the first; a bucket state that is found is, but for the
 * first way's, in the second. key 0: the way is free.
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
 * a million keys 0.06 % find all ways of both their sets taken (docs/bench.md).
 */
#define COUNTERS_USER_BYTES 23

/* The file's first page, and its last. What is in `fixed` never changes while the file lives. */
struct counters_header {
	struct counters_fixed {
		char magic[8];
		u32 version;
		u32 sets;
		u32 chunks;
		u32 classes;
		struct sl_seed seed;
		u64 check;		/* of the above, to detect a damaged file */
	} fixed;
	struct counters_clock {
		char boot_id[40];
		u64 mono_base;		/* added to CLOCK_BOOTTIME of that boot */
		u64 mono_promised;	/* mono_ns has never been given out beyond this... */
		u64 utc_promised;	/* ...while UTC was this */
	} clock;
	u32 chunks_used;		/* chunks from here on were never used */
	u32 clock_check;		/* of `clock` */
};

/* A second copy of a class, so that no single damage takes it. */
struct counters_def_copy {
	struct spec_def def;
	u32 check;
	u32 pad;
};

/* Classes in memory: from a def to its number, from a number to its spec (counters_class.c). */
struct counters_classes {
	pthread_mutex_t lock;
	u32 *slot;			/* open addressing; 0 free, SLOT_GONE, else a class */
	const struct spec *spec[COUNTERS_CLASSES];	/* NULL: the number is free */
	u8 state[COUNTERS_CLASSES];	/* enum class_state */
	u8 touched[COUNTERS_CLASSES];	/* looked up since the sweep began its round */
	u8 seen[COUNTERS_CLASSES];		/* this round of the sweep found entries */
	u16 caller[COUNTERS_CLASSES];	/* whose limit it was made for; 0: a rule's */
	u32 made_for[COUNTERS_CALLERS];	/* classes of each caller; [0]: of all of them */
	u32 next;			/* where to look for a free number */
	u32 in_slots;			/* slots that are not 0 */
	u32 most;			/* the highest number that ever was */
};

struct counters {
	struct counters_header *head, *tail;	/* the first page, and its copy at the end */
	struct spec_def *def;		/* COUNTERS_CLASSES of them, in the file */
	struct counters_def_copy *def_copy;
	struct block_checks checks;	/* of the blocks of sets and chunks */
	struct counters_set *set;
	u32 sets;
	struct request_logs logs;
	u8 *lock;			/* one for each set, see counters_table.c */
	struct counters_classes *classes;
	struct sl_seed seed;
	u64 users;
	void *map;
	size_t map_bytes;
	int fd;				/* -1: memory of this process alone */
	bool fresh;			/* made by this process */
	char *path;			/* where the file is, or is to be; NULL: there is none */
	u8 clock_lock;
	u64 placed;			/* times the file was written anew; atomic */
	char note[512];			/* about the file, for the log; "" nothing */
	bool full_closed;		/* on_full */
	bool shared;			/* some limits are shared between nodes */
	struct sl_seed cluster_seed;	/* of their keys */
	s64 cluster_utc_ns;		/* atomic: the cluster store's clock, ahead of this machine's UTC */
	u64 evicted, evicted_units;		/* atomic */
	u64 mono_base;			/* head's */
	u64 promised;			/* head's mono_promised, read without its cache line */
	pthread_mutex_t sweep_lock;
	u32 sweep_at;			/* the next set */
	u32 shed_at;			/* where the next log is looked for that may go; atomic */
	u64 count_now[SL_ALGO_COUNT];	/* entries of this round so far */
	u64 count[SL_ALGO_COUNT];	/* ... and of the last whole one */
};

/* One bucket state of a call. */
struct counters_ref {
	u64 key;
	struct spec_def def;
	u16 caller; /* who brought the limit, below COUNTERS_CALLERS; 0: a rule */
	/* From counters_look(): */
	const struct spec *spec;	/* NULL: there is no room for its class */
	u64 bucket_state;		/* of `spec`; 0 none. A sliding log: see request_log.h */
	u32 set;			/* where it is, or was claimed */
	u16 class;
	u8 way;
	bool present;			/* it is in the table */
	bool claimed;			/* a way of the table is kept for it */
	u32 chunk;			/* of a sliding log, got for it; 0 none */
};

#define COUNTERS_REFS_MAX 1536

struct counters_locks {
	struct counters *counters;
	u32 count;
	u32 set[2 * COUNTERS_REFS_MAX];	/* ascending */
};

/* `now` by the cluster store's clock: for windows of limits that nodes share. */
static inline struct sl_now counters_shared_now(const struct counters *counters, struct sl_now now)
{
	now.utc_ns += __atomic_load_n(&counters->cluster_utc_ns, __ATOMIC_RELAXED);
	return now;
}

void store_begin(struct counters *counters, struct counters_locks *locks,
		 const struct counters_ref *ref, u32 count);
void counters_end(struct counters_locks *locks);
void counters_look(struct counters *counters, struct counters_ref *ref, struct sl_now now);
/* False where the table has no place that may be taken. Only for one that is not present. */
bool counters_claim(struct counters *counters, struct counters_ref *ref, struct sl_now now);
/*
 * The pool of logs is used up: has a log go that is below half of its limit, as counters_claim()
 * has entries go; the call's own bucket states stay. False: none was found in a bounded search.
 */
bool counters_shed_log(struct counters *counters, struct sl_now now);
/* `bucket state` 0 takes the entry out. Present or claimed only. */
void counters_put(struct counters *counters, struct counters_ref *ref, u64 bucket_state);
/* Takes an entry out, with all that it holds. Present only. */
void counters_forget(struct counters *counters, struct counters_ref *ref);
/* The same by its key alone, whatever its limit is; where there is one. Between begin and end. */
void counters_forget_key(struct counters *counters, u64 key);
/* Has the bucket state in its place and sets be fetched while there is something else to do. */
void counters_prefetch(const struct counters *counters, u64 key);

/* Before anything of a set is written. */
static inline void counters_touch(struct counters *counters, const struct counters_set *set)
{
	block_touch(&counters->checks,
		    (u32)((size_t)(set - counters->set) * sizeof(*set) / BLOCK_BYTES));
}

/* ---- counters_class.c */
int counters_classes_open(struct counters *counters, struct sl_err *err);
void counters_classes_close(struct counters *counters);
/* Keeps others from making classes; for a copy of the file. */
void counters_classes_lock(struct counters *counters, bool locked);
/*
 * The class of a def, made for a caller (0: a rule) where there is none; 0: no room. With the sets
 * locked.
 */
u16 counters_class(struct counters *counters, const struct spec_def *def, u16 caller,
		   const struct spec **ret_spec);
/* At the end of a round of the sweep: numbers that nothing uses any more become free. */
void counters_classes_reclaim(struct counters *counters);

static inline const struct spec *counters_spec(const struct counters *counters, u16 class)
{
	return __atomic_load_n(&counters->classes->spec[class], __ATOMIC_ACQUIRE);
}

/* ---- counters_table.c, for the sweep */
void counters_lock_set(struct counters *counters, u32 set);
void counters_unlock_set(struct counters *counters, u32 set);
/* The share of its limit that a way has used, 0 dead. Its set is locked. */
u32 counters_way_utilization(struct counters *counters, const struct counters_set *set, u32 way,
			     struct sl_now now);
/* Empties a way; its chunks of the log return to the pool. */
void counters_way_free(struct counters *counters, struct counters_set *set, u32 way);

#endif
