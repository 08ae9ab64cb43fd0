/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * refused.h - the users with the most refusals, for `user top`: a table of a fixed size
 * (Metwally, Agrawal, El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data
 * Streams", 2005). A user that replaces another starts with that one's count, which bounds the
 * error: every user with more than the 256th part of all refusals is in the table.
 *
 * The order is by recent refusals: counts are halved each minute.
 */
#ifndef SLUICE_HTTP_REFUSED_H
#define SLUICE_HTTP_REFUSED_H

#include "request/mitigation/aggregate.h"

#define REFUSED_ROOM 256
#define REFUSED_RULE_TEXT 128

struct refused_user {
	u64 who;
	u64 refused; /* since the user entered the table */
	u64 last_ns;
	char rule[REFUSED_RULE_TEXT];
	char value[AGGREGATE_VALUE_MAX];
	u32 value_len; /* of value; `cut` if the full one is longer */
	bool cut;
};

struct refused {
	u64 key[REFUSED_ROOM]; /* 0: free */
	u32 weight[REFUSED_ROOM];
	struct refused_user user[REFUSED_ROOM];
	u64 halved_ns;
};

/* `rule` as "domain/path". */
void refused_add(struct refused *refused, const struct refusal_note *note, const char *rule,
		 u64 now_ns);
/* At most `count` of them, most refusals first; returns their number. */
u32 refused_top(struct refused *refused, const struct refused_user **ret, u32 count, u64 now_ns);

#endif
