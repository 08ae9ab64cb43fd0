/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * undecided.h - requests that got an error in place of a decision: their number, the last one, and
 * the log.
 *
 * Most proxies let a request pass when they get an error, so a wrong query switches its limit off.
 * That must be seen; but its text may have a client's bytes, and a client may send many. So memory
 * is fixed, and of each kind (frontend, reason, text) the first of a minute is logged: at most
 * UNDECIDED_KINDS of them, beside one of each frontend and reason, which other texts cannot keep
 * out.
 */
#ifndef SLUICE_HTTP_UNDECIDED_H
#define SLUICE_HTTP_UNDECIDED_H

#include <pthread.h>

#include "request/rules/request.h"

/* Its label in sluice_http_undecided_total{reason}. */
#define UNDECIDED_REASONS(X)                                                                       \
	X(UNDECIDED_UNREADABLE, "unreadable") /* its query, body or message */                     \
	X(UNDECIDED_CALLER, "caller")	      /* who may not check */                              \
	X(UNDECIDED_PATH, "path")	      /* no such path or method */                         \
	X(UNDECIDED_MEMORY, "memory")	      /* there is none */

enum undecided_reason {
#define UNDECIDED_REASON(id, label) id,
	UNDECIDED_REASONS(UNDECIDED_REASON)
#undef UNDECIDED_REASON
		UNDECIDED_COUNT,
};

#define UNDECIDED_KINDS 16
#define UNDECIDED_DETAIL 256

struct undecided_kind {
	u64 text;  /* a hash */
	u64 at_ns; /* monotonic; 0: never */
	u64 more;  /* since then, not logged */
};

struct undecided_seen {
	u64 count[API_COUNT][UNDECIDED_COUNT];
	u64 at_ns; /* of the last one, monotonic; 0: there was none */
	enum request_api api;
	enum undecided_reason reason;
	char detail[UNDECIDED_DETAIL]; /* may have a client's bytes */
};

/* Zeroed at first; for any thread. */
struct undecided {
	pthread_mutex_t lock; /* taken for errors only */
	struct undecided_kind first[API_COUNT][UNDECIDED_COUNT + 1], other[UNDECIDED_KINDS];
	struct undecided_seen seen;
};

struct engine_thread;

/* A frontend replies with an error in place of a decision: counts and logs it. */
void undecided_note(struct engine_thread *thread, enum request_api api,
		    enum undecided_reason reason, const char *detail);
/*
 * Only logs it, and returns whether: if it is the first of its kind in a minute before now_ns.
 * `reason`: UNDECIDED_COUNT for what was decided after all.
 */
bool undecided_log(struct undecided *undecided, enum request_api api, u32 reason, const char *words,
		   const char *detail, u64 now_ns);
void undecided_read(struct undecided *undecided, struct undecided_seen *ret);
const char *undecided_name(enum undecided_reason reason);

#endif
