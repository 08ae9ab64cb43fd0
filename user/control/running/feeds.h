/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * feeds.h - where lists come from and how old they are: of each set, and of each origin of blocks
 * (entries.h), when it last changed, when its program last looked, and why that failed.
 *
 * The time of a change is noted here as it is made; the rest is what programs report (`feed
 * report`). FEEDS_MAX of them are kept, in state_dir/feeds.json; of more, those with the latest
 * news.
 *
 * Knows: names and times. Does not know: prefixes. On the main thread; run->feeds NULL is fine.
 */
#ifndef SLUICE_RUNNING_FEEDS_H
#define SLUICE_RUNNING_FEEDS_H

#include "config/policy.h"

struct running;

#define FEEDS_MAX 64

enum feed_kind {
	FEED_SET,
	FEED_ORIGIN,
	FEED_KINDS,
};

struct feed {
	enum feed_kind kind;
	char name[SL_NAME_MAX];
	u64 changed_utc_ns; /* its prefixes; 0, here and below: not yet */
	u64 checked_utc_ns; /* the last success of its program */
	u64 failed_utc_ns;  /* its last failure, where no success came after it */
	char source[160];   /* a path or URL; "": not reported */
	char error[200];    /* of that failure */
};

void feeds_start(struct running *run);
void feeds_free(struct running *run); /* writes what is not written yet */
/* Each minute: writes changes to disk. A crash loses a minute of them, never a report. */
void feeds_tick(struct running *run);

/* The clock was set: ages stay what they are. */
void feeds_step(struct running *run, s64 step_ns);

const char *feed_kind_name(enum feed_kind kind);

/* Its prefixes changed, or all were withdrawn. */
void feeds_changed(struct running *run, enum feed_kind kind, const char *name);
void feeds_forget(struct running *run, enum feed_kind kind, const char *name);
/*
 * Its program succeeded (`error` NULL), or failed. `source` NULL: as before. -EINVAL with err: a
 * name or text that is none.
 */
int feeds_report(struct running *run, enum feed_kind kind, const char *name, const char *source,
		 const char *error, struct sl_err *err);

/* NULL: nothing is known of it. Valid until the next change. */
const struct feed *feeds_find(const struct running *run, enum feed_kind kind, const char *name);
size_t feeds_count(const struct running *run);
const struct feed *feeds_at(const struct running *run, size_t at);
/* Prefixes that it has now. */
size_t feed_prefixes(const struct running *run, const struct feed *feed);

#endif
