// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sim_lists.c - see sim_lists.h. A place never used ends a search; a deleted one does not. */
#include "packet/dataplane/sim_lists.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES (2 * SL_LISTED_MAX)

enum place { PLACE_FREE, PLACE_USED, PLACE_DELETED };

struct sim_lists {
	struct sl_list_filter filter;
	struct dp_listed *listed;	/* PLACES of them */
	u8 *place;			/* enum place, of each */
	size_t count;
};

struct sim_lists *sim_lists_new(void)
{
	struct sim_lists *lists = calloc(1, sizeof(*lists));

	if (!lists)
		return NULL;
	lists->listed = calloc(PLACES, sizeof(*lists->listed));
	lists->place = calloc(PLACES, 1);
	if (lists->listed && lists->place)
		return lists;
	sim_lists_free(lists);
	return NULL;
}

void sim_lists_free(struct sim_lists *lists)
{
	if (!lists)
		return;
	free(lists->listed);
	free(lists->place);
	free(lists);
}

struct sl_list_filter *sim_lists_filter(struct sim_lists *lists)
{
	return &lists->filter;
}

/* Where the key is, or PLACES. *ret_free: a place for it, or PLACES. */
static size_t find(const struct sim_lists *lists, const struct sl_list_key *key, size_t *ret_free)
{
	u64 at = (key->addr.hi ^ sl_rotl(key->addr.lo, 17) ^ key->len) * 0x9e3779b97f4a7c15ULL >> 32;

	*ret_free = PLACES;
	for (size_t i = 0; i < PLACES; i++) {
		size_t here = (at + i) % PLACES;

		if (lists->place[here] == PLACE_USED &&
		    !memcmp(&lists->listed[here].key, key, sizeof(*key)))
			return here;
		if (lists->place[here] != PLACE_USED && *ret_free == PLACES)
			*ret_free = here;
		if (lists->place[here] == PLACE_FREE)
			break;
	}
	return PLACES;
}

const struct sl_listed *sim_lists_get(struct sim_lists *lists, const struct sl_list_key *key)
{
	size_t free, at = find(lists, key, &free);

	return at < PLACES ? &lists->listed[at].listed : NULL;
}

int sim_lists_all(struct sim_lists *lists, struct dp_listed **ret, size_t *ret_count)
{
	struct dp_listed *all = calloc(lists->count + 1, sizeof(*all));
	size_t count = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; lists->count && i < PLACES; i++)
		if (lists->place[i] == PLACE_USED)
			all[count++] = lists->listed[i];
	*ret = all;
	*ret_count = count;
	return 0;
}

int sim_lists_put(struct sim_lists *lists, const struct dp_listed *listed, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t free, at = find(lists, &listed[i].key, &free);

		if (at == PLACES && (free == PLACES || lists->count == SL_LISTED_MAX))
			return -E2BIG;
		lists->count += at == PLACES;
		at = at < PLACES ? at : free;
		lists->listed[at] = listed[i];
		lists->place[at] = PLACE_USED;
	}
	return 0;
}

void sim_lists_del(struct sim_lists *lists, const struct sl_list_key *key, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t free, at = find(lists, &key[i], &free);

		if (at == PLACES)
			continue;
		lists->place[at] = PLACE_DELETED;
		lists->count--;
	}
}
