// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* refused.c - see refused.h. */
#include "request/mitigation/refused.h"

#include <stdio.h>
#include <string.h>

#define HALVE_NS (60 * SL_NS_PER_SEC)

static void halve(struct refused *refused, u64 now_ns)
{
	u64 times;

	if (!refused->halved_ns)
		refused->halved_ns = now_ns;
	times = (now_ns - refused->halved_ns) / HALVE_NS;
	if (!times)
		return;
	refused->halved_ns += times * HALVE_NS;
	for (u32 i = 0; i < REFUSED_ROOM; i++)
		refused->weight[i] = times < 32 ? refused->weight[i] >> times : 0;
}

static u32 place_of(const struct refused *refused, u64 who)
{
	u32 least = 0;

	for (u32 i = 0; i < REFUSED_ROOM; i++)
		if (refused->key[i] == who)
			return i;
	for (u32 i = 1; i < REFUSED_ROOM; i++)
		if (refused->weight[i] < refused->weight[least])
			least = i;
	return least;
}

void refused_add(struct refused *refused, const struct refusal_note *note, const char *rule,
		 u64 now_ns)
{
	struct refused_user *user;
	u32 place;

	halve(refused, now_ns);
	place = place_of(refused, note->who);
	user = &refused->user[place];
	if (refused->key[place] != note->who) {
		*user = (struct refused_user){ .who = note->who };
		refused->key[place] = note->who;
		snprintf(user->rule, sizeof(user->rule), "%s", rule);
		user->cut = note->value_len > sizeof(user->value);
		user->value_len = user->cut ? sizeof(user->value) : note->value_len;
		memcpy(user->value, note->value, user->value_len);
	}
	user->refused++;
	user->last_ns = now_ns;
	if (refused->weight[place] < ~0U)
		refused->weight[place]++;
}

u32 refused_top(struct refused *refused, const struct refused_user **ret, u32 count, u64 now_ns)
{
	bool taken[REFUSED_ROOM] = { false };
	u32 found = 0;

	halve(refused, now_ns);
	while (found < count && found < REFUSED_ROOM) {
		u32 most = REFUSED_ROOM;

		for (u32 i = 0; i < REFUSED_ROOM; i++)
			if (refused->weight[i] && !taken[i] &&
			    (most == REFUSED_ROOM || refused->weight[i] > refused->weight[most]))
				most = i;
		if (most == REFUSED_ROOM)
			break;
		taken[most] = true;
		ret[found++] = &refused->user[most];
	}
	return found;
}
