/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * active.h - the users with the most requests, in the window in progress and the one before: a
 * table of a fixed size (lib/heaviest.h). `user list` has one of all requests, over seconds, and
 * `user top` one of refusals, over minutes.
 *
 *     requests noted <= true number <= noted + missed,
 *
 * and every user with more than the 512th part of all requests of a window is in the table.
 * Allowed requests are samples (aggregate.h) and count for as many as they stand for.
 */
#ifndef SLUICE_HTTP_ACTIVE_H
#define SLUICE_HTTP_ACTIVE_H

#include "request/mitigation/aggregate.h"

#define ACTIVE_ROOM 512
#define ACTIVE_RULE_TEXT 128

struct active_count {
	u64 passed, refused, missed;
	u32 limits; /* bit i: of `refused`, some by the rule's i-th limit */
};

struct active_user {
	struct active_count now, before; /* of this window, and of the one before */
	u64 last_ns;
	char rule[ACTIVE_RULE_TEXT];
	char value[AGGREGATE_VALUE_MAX];
	u32 value_len; /* of value; `cut` if the full one is longer */
	bool cut;
};

struct active {
	u64 key[ACTIVE_ROOM];	 /* 0: free */
	u64 weight[ACTIVE_ROOM]; /* the sum of the counts */
	struct active_user user[ACTIVE_ROOM];
	u64 window_ns; /* length of a window; the caller sets it, all else begins as 0 */
	u64 begin_ns;  /* of this window; 0: nothing was noted yet */
	bool has_before;
};

/* Of rule "domain/path"; `refused` or allowed. */
void active_add(struct active *active, const struct refusal_note *note, bool refused,
		const char *rule, u64 now_ns);

/* Both windows together; in no order. Returns their number, and the time that they are of. */
u32 active_read(struct active *active, const struct active_user **ret, u64 *ret_span_ns,
		u64 now_ns);
/* Whether every request of these was noted, and every user has its place. */
bool active_is_exact(const struct active_user *const *user, u32 found, u64 span_ns);
struct active_count active_sum(const struct active_user *user);

#endif
