// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * share_table.c - entries of shares: found, placed, replaced.
 *
 * A key has one set of seven. One that finds it full takes the place of the entry that was used
 * least lately of those that owe nothing; what such a one knew (how much of it is this node's,
 * how often it is asked) is learnt again. Where all seven owe something the key has no entry: its
 * calls ask the store each time.
 *
 * What is due is found by a walk over one number for each set, its earliest entry's time: 8 bytes
 * each, so a table of a million users (125000 entries) is walked in a few microseconds, and not at
 * all before the earliest of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/quota/share_private.h"
#include "lib/spin.h"

#define ENTRIES_MIN 4096

int shares_new(u64 entries, struct shares **ret)
{
	struct shares *shares = calloc(1, sizeof(*shares));

	if (!shares)
		return -ENOMEM;
	entries = entries < ENTRIES_MIN ? ENTRIES_MIN : share_min(entries, SL_BIT(31));
	shares->sets = (entries + SHARE_WAYS - 1) / SHARE_WAYS;
	shares->set = calloc(shares->sets, sizeof(*shares->set));
	shares->due_ns = malloc(shares->sets * sizeof(*shares->due_ns));
	shares->overshoot = calloc(OVERSHOOT_RULES, sizeof(*shares->overshoot));
	pthread_mutex_init(&shares->overshoot_lock, NULL);
	shares->nodes = 1;
	shares->next_ns = SHARE_NEVER;
	if (!shares->set || !shares->due_ns || !shares->overshoot) {
		shares_free(shares);
		return -ENOMEM;
	}
	for (u32 i = 0; i < shares->sets; i++)
		shares->due_ns[i] = SHARE_NEVER;
	*ret = shares;
	return 0;
}

void shares_free(struct shares *shares)
{
	if (!shares)
		return;
	pthread_mutex_destroy(&shares->overshoot_lock);
	free(shares->overshoot);
	free(shares->due_ns);
	free(shares->set);
	free(shares);
}

/* ------------------------------------------------------------------ locks */

void share_lock(u8 *lock)
{
	u32 turns = 0;

	while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
		spin_wait(&turns);
}

void share_unlock(u8 *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------ entries */

static struct share_set *set_of(const struct shares *shares, u64 key)
{
	return &shares->set[(key >> 32) * shares->sets >> 32];
}

static struct share_entry *find_way(struct share_set *set, u64 key)
{
	for (u32 way = 0; way < SHARE_WAYS; way++)
		if (set->key[way] == key)
			return &set->entry[way];
	return NULL;
}

struct share_entry *share_find(const struct shares *shares, u64 key, struct share_set **ret_set)
{
	struct share_set *set = set_of(shares, key);
	struct share_entry *e;

	share_lock(&set->lock);
	e = find_way(set, key ? key : 1);
	if (!e)
		share_unlock(&set->lock);
	*ret_set = set;
	return e;
}

/* Nothing of it is anybody's business but this node's. */
static bool owes_nothing(const struct share_entry *e)
{
	return !(e->unsent | e->late | e->back | e->lost | e->restored | e->backing | e->asked |
		 e->said | e->told | e->credit | e->spent) && !(e->flags & (SHARE_TELLING | SHARE_WANTING));
}

static struct share_entry *place(struct share_set *set, u64 key)
{
	u32 best = SHARE_WAYS;

	for (u32 way = 0; way < SHARE_WAYS; way++) {
		if (!set->key[way]) {
			best = way;
			break;
		}
		if (owes_nothing(&set->entry[way]) &&
		    (best == SHARE_WAYS || set->entry[way].used_ns < set->entry[best].used_ns))
			best = way;
	}
	if (best == SHARE_WAYS)
		return NULL;
	set->key[best] = key;
	return &set->entry[best];
}

/* An entry as new, or of a limit that was changed: what was counted for another means nothing. */
static void begin(struct share_entry *e, const struct share_ref *ref, struct sl_now now)
{
	*e = (struct share_entry){ .due_ns = SHARE_NEVER, .used_ns = now.mono_ns };
	e->tag = ref->tag;
	e->def = *ref->def;
}

struct share_entry *share_claim(struct shares *shares, const struct share_ref *ref,
				struct sl_now now, struct share_set **ret_set)
{
	struct share_set *set = set_of(shares, ref->key);
	struct share_entry *e;

	share_lock(&set->lock);
	e = find_way(set, ref->key ? ref->key : 1);
	if (!e) {
		e = place(set, ref->key ? ref->key : 1);
		if (!e) {
			share_unlock(&set->lock);
			__atomic_fetch_add(&shares->full, 1, __ATOMIC_RELAXED);
			return NULL;
		}
		begin(e, ref, now);
	} else if (memcmp(&e->def, ref->def, sizeof(e->def))) {
		if (e->def.algo != ref->def->algo || e->def.period_ns != ref->def->period_ns)
			begin(e, ref, now);
		e->def = *ref->def;
	}
	e->every_ns = ref->every_ns;
	e->metric = ref->metric;
	e->consistency = ref->consistency;
	*ret_set = set;
	return e;
}

/* ------------------------------------------------------------------ when */

void share_lower(u64 *at, u64 to)
{
	u64 old = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (to < old && !__atomic_compare_exchange_n(at, &old, to, true, __ATOMIC_RELEASE,
							__ATOMIC_RELAXED))
		;
}

void share_schedule(struct shares *shares, struct share_set *set, struct share_entry *e, u64 at_ns)
{
	if (at_ns >= e->due_ns)
		return;
	e->due_ns = at_ns;
	if (e->flags & SHARE_TELLING)
		return;
	share_lower(&shares->due_ns[set - shares->set], at_ns);
	share_lower(&shares->next_ns, at_ns);
}

u64 share_phase(u64 key, u64 every_ns, u64 now_ns)
{
	u64 phase = (key * 0x9e3779b97f4a7c15ULL) % every_ns;

	return now_ns + every_ns - (now_ns + every_ns - phase) % every_ns;
}

/* ------------------------------------------------------------------ measured */

void shares_stats(const struct shares *shares, struct shares_stats *ret)
{
	*ret = (struct shares_stats){
		.room = (u64)shares->sets * SHARE_WAYS,
		.full = __atomic_load_n(&shares->full, __ATOMIC_RELAXED),
		.lost = __atomic_load_n(&shares->lost, __ATOMIC_RELAXED),
		.put_back = __atomic_load_n(&shares->put_back, __ATOMIC_RELAXED),
	};
	for (u32 i = 0; i < shares->sets; i++) {
		struct share_set *set = &shares->set[i];

		share_lock(&set->lock);
		for (u32 way = 0; way < SHARE_WAYS; way++) {
			const struct share_entry *e = &set->entry[way];

			if (!set->key[way])
				continue;
			ret->entries++;
			ret->leases += e->credit > 0;
			ret->credit += e->credit;
			ret->unsent += e->unsent + e->late + e->told + e->spent + e->said;
		}
		share_unlock(&set->lock);
	}
}
