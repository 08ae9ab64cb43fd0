/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ban_outbox.h - refusals and bans of values of cluster limits, from workers to the main thread,
 * which publishes them to the other nodes (control/replication/user_bans.h).
 *
 * A fixed table under one lock, which only refusals of rules with `ban` take. If it is full, what
 * does not fit is lost: the other nodes then count less, and this one as before.
 */
#ifndef SLUICE_BAN_OUTBOX_H
#define SLUICE_BAN_OUTBOX_H

#include "request/rules/rule.h"

struct ban_outbox;

struct ban_outbox_item {
	u64 key; /* of the ban; 0: free */
	u64 rule_id;
	u32 rule_index;
	u32 offenses;
	u64 state; /* of a ban that began (limiter/ban.h); 0: none */
};

struct ban_outbox *ban_outbox_new(void);	 /* NULL: no memory */
void ban_outbox_free(struct ban_outbox *outbox); /* NULL is fine */
/* Any thread. */
void ban_outbox_add(struct ban_outbox *outbox, const struct rule *rule, u64 key, u32 offenses,
		    u64 state);
/* Takes all out; main thread. Returns their number; *ret is valid until the next call. */
u32 ban_outbox_take(struct ban_outbox *outbox, const struct ban_outbox_item **ret);

#endif
