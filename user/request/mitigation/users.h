/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * users.h - the users behind each source: a table of (source, user) pairs of a size fixed at start,
 * and a table of sources.
 *
 *     aggregate.c's notes -> users_note() ... users_pass() -> budget.c, push.c
 *
 * For one thread; the caller passes the time. A user is a keyed 64-bit hash (aggregate.c), a source
 * an address or the prefix it is grouped by.
 *
 * The choice of entries relies on properties that are expensive to forge. Only an allowed request
 * creates a pair. A pair with a second allowed request, a second or more after the first, is not
 * evicted while it is active; a pair seen once may be evicted. A source has at most max_users
 * pairs, and if more came within `active`, pairs seen once do not count: ten thousand invented
 * names do not raise a budget, and the existing users stay. At other sources they count for a
 * budget after a second.
 *
 * A pair is 28 bytes, in sets of 16 by the user's hash, so that all sources of one user are in one
 * set: users_pass() counts them without a lookup. At most USERS_SOURCES_MAX sources of one user are
 * kept; the user counts 1/k at each, and never as more than one user.
 */
#ifndef SLUICE_HTTP_USERS_H
#define SLUICE_HTTP_USERS_H

#include "lib/addr.h"
#include "sluice/key.h"

#define USERS_SOURCES_MAX 8 /* of one user */

struct users_options {
	u64 pairs, sources; /* room; rounded up to whole sets */
	struct sl_seed seed;
};

/* From the configuration; may change while the table lives. */
struct users_rules {
	u64 active_ns; /* at least a second */
	u32 max_users; /* behind one source */
};

struct users;

int users_new(const struct users_options *options, struct users **ret);
void users_free(struct users *users); /* NULL is fine */
void users_set_rules(struct users *users, const struct users_rules *rules);

/* The note of one request. */
struct user_note {
	struct sl_prefix group;	  /* the source, as it is grouped */
	struct sl_prefix address; /* the address itself */
	u64 user;		  /* 0: none that is counted */
	u32 rate_mrps;		  /* the user's smallest limit, thousandths of requests/s */
	bool allowed;
	bool own_refusal; /* refused because of this user (or source) */
	bool first;	  /* the first note of its request: counts the request */
};
void users_note(struct users *users, const struct user_note *note, u64 now_ns);

/*
 * Scans a part of the table, `share` of it (1: all, 4: a quarter): removes inactive pairs and
 * sums up the users behind each source. True if that ended a whole pass, and users_profile() and
 * users_sources() have new results.
 */
bool users_pass(struct users *users, u32 share, u64 now_ns);

/* A source's profile as of the last whole pass. */
struct source_profile {
	struct sl_prefix group, address; /* address: the last one seen */
	u32 users;			 /* that count: active, at most max_users */
	u32 good;			 /* active ones: allowed, not refused within `active` */
	u64 rate_urps;	    /* sum of the users' rates, 1/k each: millionths of requests/s */
	u64 good_rate_urps; /* of the good ones alone */
	u64 good_requests;  /* of good users, or without a user, in the last minute */
	u64 requests;	    /* all requests of the source in that time, up to now */
	u64 seen_ns;	    /* time of the last request */
	u64 as_of_ns;	    /* when that pass began: a later refusal may be missing in `good` */
};
/* False if the source is unknown: *ret is then zero except for `group`. */
bool users_profile(const struct users *users, const struct sl_prefix *group, u64 now_ns,
		   struct source_profile *ret);
/* Calls `each` for all sources that have users, in no order. */
void users_sources(const struct users *users, u64 now_ns,
		   void (*each)(const struct source_profile *profile, void *arg), void *arg);
/* Well-behaved requests of all sources in the last minute or so. */
u64 users_good_requests(const struct users *users);

struct users_stats {
	u64 pairs, sources; /* in use */
	u64 room;	    /* for pairs */
	u64 bytes;	    /* of both tables */
	u64 crowded;	    /* new users not admitted: max_users, or no room */
	u64 evicted;	    /* users seen once that were evicted */
};
void users_stats(const struct users *users, struct users_stats *ret);

#endif
