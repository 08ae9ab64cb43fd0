// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* active.c - see active.h. */
#include "request/mitigation/active.h"

#include <stdio.h>
#include <string.h>

#include "lib/heaviest.h"

static u64 total(const struct active_count *count)
{
	return count->passed + count->refused + count->missed;
}

struct active_count active_sum(const struct active_user *user)
{
	return (struct active_count){ user->now.passed + user->before.passed,
				      user->now.refused + user->before.refused,
				      user->now.missed + user->before.missed,
				      user->now.limits | user->before.limits };
}

/* So many allowed ones a second are all noted: less than half of what a worker notes. */
bool active_is_exact(const struct active_user *const *user, u32 found, u64 span_ns)
{
	u64 passed = 0;

	for (u32 i = 0; i < found; i++) {
		struct active_count sum = active_sum(user[i]);

		if (sum.missed)
			return false;
		passed += sum.passed;
	}
	return found < ACTIVE_ROOM && passed < AGGREGATE_SAMPLES / 2 * (span_ns / SL_NS_PER_SEC);
}

/* Ends windows that are over; a user without requests in both loses its place. */
static void turn(struct active *active, u64 now_ns)
{
	u64 windows;

	if (!active->begin_ns)
		active->begin_ns = now_ns;
	windows = (now_ns - active->begin_ns) / active->window_ns;
	if (!windows)
		return;
	active->begin_ns += windows * active->window_ns;
	active->has_before = windows == 1;
	for (u32 i = 0; i < ACTIVE_ROOM; i++) {
		struct active_user *user = &active->user[i];

		user->before = windows == 1 ? user->now : (struct active_count){ 0 };
		user->now = (struct active_count){ 0 };
		active->weight[i] = total(&user->before);
		if (!active->weight[i])
			active->key[i] = 0;
	}
}

void active_add(struct active *active, const struct refusal_note *note, bool refused,
		const char *rule, u64 now_ns)
{
	struct active_user *user;
	bool is_new;
	u32 place;

	turn(active, now_ns);
	place = heaviest_place(active->key, active->weight, ACTIVE_ROOM, note->who | 1, &is_new);
	user = &active->user[place];
	if (is_new) {
		*user = (struct active_user){ .now.missed = active->weight[place] };
		snprintf(user->rule, sizeof(user->rule), "%s", rule);
		user->cut = note->value_len > sizeof(user->value);
		user->value_len = user->cut ? sizeof(user->value) : note->value_len;
		memcpy(user->value, note->value, user->value_len);
	}
	if (refused) {
		user->now.refused += note->stands_for;
		user->now.limits |= note->limits;
	} else {
		user->now.passed += note->stands_for;
	}
	active->weight[place] += note->stands_for;
	user->last_ns = now_ns;
}

u32 active_read(struct active *active, const struct active_user **ret, u64 *ret_span_ns, u64 now_ns)
{
	u32 found = 0;

	turn(active, now_ns);
	for (u32 i = 0; i < ACTIVE_ROOM; i++)
		if (active->key[i])
			ret[found++] = &active->user[i];
	*ret_span_ns = now_ns - active->begin_ns + (active->has_before ? active->window_ns : 0);
	/* A rate over less than a second says little. */
	if (*ret_span_ns < SL_NS_PER_SEC)
		*ret_span_ns = SL_NS_PER_SEC;
	return found;
}
