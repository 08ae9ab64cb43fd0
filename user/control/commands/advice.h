/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* advice.h - one sentence about a limit, from its numbers; of `analyze`. */
#ifndef SLUICE_COMMANDS_ADVICE_H
#define SLUICE_COMMANDS_ADVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "sluice/types.h"

struct limit_numbers {
	const char *unit;     /* "packets", "requests": of the next two */
	u64 passed, refused;  /* since the counters began; `shadow`: would have been refused */
	bool shadow;	      /* refuses nothing */
	bool tags;	      /* `refused` were tagged, and passed */
	bool is_window;	      /* fixed windows: two limits can pass around an edge */
	const char *who;      /* "sources", "users" */
	u64 live, over, near; /* with a bucket now; of these over; within, but 80% used */
	bool no_buckets;      /* live and over are not known */
	bool no_values;	      /* it is not known who was refused */
	bool common;	      /* one bucket for all of them */
	/* Of those refused lately, by limit_numbers_add(): */
	u64 seen;	  /* that are known */
	u64 compared;	  /* of these, whose own rate is known */
	u64 within;	  /* sent no more than the rate gives: a burst was refused */
	u64 just_above;	  /* up to 1.5 times as much */
	u64 far_above;	  /* more than twice */
	double most_just; /* the largest of `just_above`, in times the rate */
	u64 burst;	  /* with which a token bucket would have refused none of `within`, ... */
	bool no_burst;	  /* ... if another limit did not */
	const char *burst_unit; /* " bytes"; NULL: of `unit` */
	bool estimated;		/* their counts are of a sample */
	u64 period_ns;		/* what they sent was in at least so long */
	u64 refusing;		/* how many share the next two */
	u64 heaviest;		/* refusals of the one with most of them, ... */
	u64 all;		/* ... of so many */
};

/* A source or user that was refused: what it sent in a period, and its limit. */
struct refused_one {
	u64 period_ns;
	double given; /* units that the rate gives in the period; 0: unknown */
	double sent;  /* in the period: refused and passed */
	/* The burst is computed from all that is known, which may be two periods: */
	u64 sent_known, refused_known;
	u64 capacity;	/* 0: a larger burst alone may not be enough */
	bool is_bucket; /* no more than capacity + time x rate passes: windows pass twice as much */
};
/*
 * Adds it to those refused lately. A token bucket of the same rate whose burst is larger by what
 * was refused refuses nothing: at any time it has at least as much more than the other as is still
 * to be refused. One whose burst is all that was sent refuses nothing, either.
 */
void limit_numbers_add(struct limit_numbers *n, const struct refused_one *one);

/* Into buf; returns buf. */
const char *advice(const struct limit_numbers *n, char *buf, size_t size);

#endif
