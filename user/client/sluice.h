/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sluice.h - libsluice: sluice's rate limiter within a program. See libsluice(3).
 *
 * A limiter is one bucket: a capacity, so many units each interval, and the threads that wait for
 * them. It is the limiter of sluiced: the same step functions, so the same verdicts. All functions
 * may be called by any thread at any time, except sluice_limiter_free()
 * and sluice_client_close(). They return 0 or a negative
 * errno value. A client asks a sluiced over its Unix socket, for limits that programs share.
 */
#ifndef SLUICE_H
#define SLUICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* docs/algorithms.md of sluice describes them and derives their bounds. */
enum sluice_algorithm {
	SLUICE_TOKEN_BUCKET,   /* `burst` at once, refilled continuously */
	SLUICE_LEAKY_BUCKET,   /* evenly spaced: no burst */
	SLUICE_FIXED_WINDOW,   /* `units` in each interval, aligned to UTC */
	SLUICE_SLIDING_WINDOW, /* two aligned windows, the previous one weighted */
	SLUICE_SLIDING_LOG,    /* exact: the time of each unit is kept, 8 to 16 bytes for each */
	SLUICE_FIRST_REQUEST,  /* a window that begins with its first unit */
	SLUICE_INTERVAL_BUCKET = 7, /* `burst`, refilled by all `units` at once, aligned to UTC */
	SLUICE_WINDOW_COUNTERS,	    /* a count for each of `buckets` parts of the interval */
};

/* Flags. */
#define SLUICE_COUNT_ALL 1u /* what sluice_try() refuses counts, too */
#define SLUICE_ROUND_UP 2u  /* a sliding window's estimate is rounded up, not down */

/*
 * Each struct begins with its size: sizeof() of it. Set all other fields to 0 first: later versions
 * add some at the end. A library that does not know a field returns -E2BIG unless it is 0.
 */
struct sluice_config {
	size_t size;
	enum sluice_algorithm algorithm;
	uint32_t flags;
	uint64_t units;	      /* 1 or more, each interval */
	uint64_t interval_ns; /* 10^7 (10 ms) to 2^56 (2.2 years) */
	uint64_t burst;	   /* of buckets; 0: one second's worth, at least 1; of an interval bucket
			      `units` */
	uint32_t buckets;  /* of window counters: 2 to 240; 0: 60 */
	uint32_t reserved; /* 0 */
};

struct sluice_result {
	size_t size;  /* set by the caller */
	int admitted; /* 1: charged; 0: refused, nothing is charged */
	uint32_t reserved;
	uint64_t remaining; /* units that fit now */
	uint64_t reset_ns;  /* until the whole limit fits again */
	/* until these units fit, if no others are taken; UINT64_MAX: never */
	uint64_t retry_after_ns;
};

struct sluice_limiter;

/*
 * Makes a limiter. -EINVAL: a field is out of its range; -E2BIG; -ERANGE: the algorithm cannot
 * represent the rate; -ENOMEM. `why`, if it is not NULL, gets a message of less than `why_size`
 * bytes, or "".
 */
int sluice_limiter_new(const struct sluice_config *config, struct sluice_limiter **ret, char *why,
		       size_t why_size);
/* Frees a limiter that no thread uses or waits for; NULL is fine. */
void sluice_limiter_free(struct sluice_limiter *limiter);

/*
 * Takes `units` (1 or more) if they fit now and no thread waits. 0, or -EAGAIN if they do not, or
 * -ERANGE if they never do: more than the capacity; -EINVAL: the size of `ret`, which may be NULL.
 * Does not wait.
 */
int sluice_try(struct sluice_limiter *limiter, uint64_t units, struct sluice_result *ret);
/*
 * Takes `units`, waiting for them until `deadline_ns` of CLOCK_MONOTONIC. Threads are served in the
 * order in which they came, also if an earlier one needs more units than a later one. 0;
 * -ETIMEDOUT: nothing was taken, also at once if the first in the queue cannot get its units by
 * its deadline; -EINTR: nothing was taken, and a signal handler ran (also one with SA_RESTART);
 * -ERANGE as above.
 */
int sluice_wait(struct sluice_limiter *limiter, uint64_t units, uint64_t deadline_ns);
/* The same without a deadline. */
int sluice_acquire(struct sluice_limiter *limiter, uint64_t units);
/* Refunds units that were taken and not used. */
void sluice_refund(struct sluice_limiter *limiter, uint64_t units);
/* Threads that wait now. */
unsigned int sluice_waiting(struct sluice_limiter *limiter);

/* ------------------------------------------------------------------ a client of sluiced */

/* Flags of a client. */
/*
 * Where no decision is made: refused, and retried before that. Without it: admitted, at once if the
 * daemon is not there.
 */
#define SLUICE_FAIL_CLOSED 1u

struct sluice_client_config {
	size_t size;
	const char *address; /* "unix:/PATH", of http.listen */
	const char *token;   /* of http.callers; NULL: none */
	uint32_t flags;
	uint32_t retry_percent; /* retries for each 100 calls, up to 100; 0: 10 */
	uint32_t retry_burst;	/* retries before the first calls, and at most saved up; 0: 10 */
	uint32_t reserved;	/* 0 */
	uint64_t timeout_ns;	/* of a call without a deadline; 0: 10^9 (a second) */
	uint64_t backoff_ns;	/* before the first retry; 0: 50 ms. Doubles up to 32 times it */
	uint64_t breaker_ns;	/* most that calls fail at once after one that failed; 0: 10^9 */
};

/* All elements of an array have one size. */
struct sluice_entry {
	size_t size;
	const char *key;
	const char *value; /* any bytes */
	size_t value_size; /* 0: up to its NUL */
};

struct sluice_descriptor {
	size_t size;
	const struct sluice_entry *entries;
	size_t entry_count;
	int64_t hits; /* 0 to 1099511627776, 0 charges nothing; in a report below 0: refunds */
};

/* Flags of a request; sluice_client_check() alone. */
#define SLUICE_PEEK 1u /* nothing is charged */
/* a refusal is retried when the daemon says, up to the deadline   \ */
#define SLUICE_RETRY_REFUSED 2u

struct sluice_request {
	size_t size;
	const char *domain;
	const struct sluice_descriptor *descriptors;
	size_t descriptor_count; /* 1 or more */
	const char *source;	 /* an address; NULL: none */
	uint64_t deadline_ns;	 /* of CLOCK_MONOTONIC; 0: after the client's timeout */
	uint32_t flags;
	uint32_t status;     /* reports: of the application's response; 0: none */
	uint64_t latency_ns; /* reports: of the application's response; 0: none */
	const char *id;	     /* reports: charged once; NULL: one for each call */
};

struct sluice_client;

/*
 * Does not connect: the daemon may come later. -EINVAL: a field is out of its range, or the address
 * has another form; -E2BIG; -ENAMETOOLONG: the path; -ENOMEM. What `config` points to is copied.
 */
int sluice_client_open(const struct sluice_client_config *config, struct sluice_client **ret);
/* Frees a client that no thread uses; NULL is fine. */
void sluice_client_close(struct sluice_client *client);

/*
 * Asks whether a request may pass. Returns by the deadline, and at once for a while after a call
 * that found no daemon, or one that does not reply, with the error of that call (libsluice(3)). 0:
 * admitted; -EAGAIN: refused; -ERANGE: refused, and never fits. Others: no decision: -ETIMEDOUT;
 * -EBUSY: the daemon cannot decide; -EINVAL: it does not understand the request; -EACCES: it does
 * not know the caller, or gives it no right; -EPROTO; -E2BIG; those of connect(2), as -ECONNREFUSED
 * and -ENOENT; -ENOMEM. Whatever it returns, `ret->admitted` says what to do; without a decision
 * what the client's flags say. `ret->remaining` is UINT64_MAX where no limit was met;
 * `ret->retry_after_ns` is the daemon's Retry-After, in whole seconds. `ret` may be NULL.
 */
int sluice_client_check(struct sluice_client *client, const struct sluice_request *request,
			struct sluice_result *ret);
/* Reports a request that has happened. 0, or as above; -EINVAL also if the daemon rejects it. */
int sluice_client_report(struct sluice_client *client, const struct sluice_request *request);

#ifdef __cplusplus
}
#endif

#endif
