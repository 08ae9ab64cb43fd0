// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * quota_table.c - entries of shares: found, placed, replaced.
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

#include "cluster/quota/quota_private.h"
#include "lib/spin.h"

#define ENTRIES_MIN 4096

int quotas_new(u64 entries, struct quotas **ret)
{
	struct quotas *quotas = calloc(1, sizeof(*quotas));

	if (!quotas)
		return -ENOMEM;
	entries = entries < ENTRIES_MIN ? ENTRIES_MIN : quota_min(entries, SL_BIT(31));
	quotas->sets = (entries + QUOTA_WAYS - 1) / QUOTA_WAYS;
	quotas->set = calloc(quotas->sets, sizeof(*quotas->set));
	quotas->due_ns = malloc(quotas->sets * sizeof(*quotas->due_ns));
	quotas->overshoot = calloc(OVERSHOOT_RULES, sizeof(*quotas->overshoot));
	pthread_mutex_init(&quotas->overshoot_lock, NULL);
	quotas->nodes = 1;
	quotas->next_ns = QUOTA_NEVER;
	if (!quotas->set || !quotas->due_ns || !quotas->overshoot) {
		quotas_free(quotas);
		return -ENOMEM;
	}
	for (u32 i = 0; i < quotas->sets; i++)
		quotas->due_ns[i] = QUOTA_NEVER;
	*ret = quotas;
	return 0;
}

void quotas_free(struct quotas *quotas)
{
	if (!quotas)
		return;
	pthread_mutex_destroy(&quotas->overshoot_lock);
	free(quotas->overshoot);
	free(quotas->due_ns);
	free(quotas->set);
	free(quotas);
}

/* ------------------------------------------------------------------ locks */

void quota_lock(u8 *lock)
{
	u32 turns = 0;

	while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
		spin_wait(&turns);
}

void quota_unlock(u8 *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------ entries */

static struct quota_set *set_of(const struct quotas *quotas, u64 key)
{
	return &quotas->set[(key >> 32) * quotas->sets >> 32];
}

static struct quota_entry *find_way(struct quota_set *set, u64 key)
{
	for (u32 way = 0; way < QUOTA_WAYS; way++)
		if (set->key[way] == key)
			return &set->entry[way];
	return NULL;
}

struct quota_entry *quota_find(const struct quotas *quotas, u64 key, struct quota_set **ret_set)
{
	struct quota_set *set = set_of(quotas, key);
	struct quota_entry *e;

	quota_lock(&set->lock);
	e = find_way(set, key ? key : 1);
	if (!e)
		quota_unlock(&set->lock);
	*ret_set = set;
	return e;
}

/* Nothing of it is anybody's business but this node's. */
static bool is_settled(const struct quota_entry *e)
{
	return !(e->unflushed | e->late | e->refunded | e->lost | e->restored | e->refunding |
		 e->requested | e->spent_sent | e->flushing | e->credit | e->spent) &&
	       !(e->flags & (QUOTA_FLUSHING | QUOTA_LEASING));
}

static struct quota_entry *entry_at(struct quota_set *set, u64 key)
{
	u32 best = QUOTA_WAYS;

	for (u32 way = 0; way < QUOTA_WAYS; way++) {
		if (!set->key[way]) {
			best = way;
			break;
		}
		if (is_settled(&set->entry[way]) &&
		    (best == QUOTA_WAYS || set->entry[way].used_ns < set->entry[best].used_ns))
			best = way;
	}
	if (best == QUOTA_WAYS)
		return NULL;
	set->key[best] = key;
	return &set->entry[best];
}

/* An entry as new, or of a limit that was changed: what was counted for another means nothing. */
static void begin(struct quota_entry *e, const struct quota_ref *ref, struct sl_now now)
{
	*e = (struct quota_entry){ .due_ns = QUOTA_NEVER, .used_ns = now.mono_ns };
	e->tag = ref->tag;
	e->def = *ref->def;
}

struct quota_entry *quota_claim(struct quotas *quotas, const struct quota_ref *ref,
				struct sl_now now, struct quota_set **ret_set)
{
	struct quota_set *set = set_of(quotas, ref->key);
	struct quota_entry *e;

	quota_lock(&set->lock);
	e = find_way(set, ref->key ? ref->key : 1);
	if (!e) {
		e = entry_at(set, ref->key ? ref->key : 1);
		if (!e) {
			quota_unlock(&set->lock);
			__atomic_fetch_add(&quotas->full, 1, __ATOMIC_RELAXED);
			return NULL;
		}
		begin(e, ref, now);
	} else if (memcmp(&e->def, ref->def, sizeof(e->def))) {
		if (e->def.algo != ref->def->algo || e->def.period_ns != ref->def->period_ns)
			begin(e, ref, now);
		/* When it is empty the store reckons anew, which is no loss. */
		if (quota_is_bucket(ref->def))
			e->own = 0;
		e->def = *ref->def;
	}
	e->every_ns = ref->every_ns;
	e->metric = ref->metric;
	e->consistency = ref->consistency;
	*ret_set = set;
	return e;
}

/* ------------------------------------------------------------------ when */

void quota_lower(u64 *at, u64 to)
{
	u64 old = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (to < old && !__atomic_compare_exchange_n(at, &old, to, true, __ATOMIC_RELEASE,
							__ATOMIC_RELAXED))
		;
}

void quota_schedule(struct quotas *quotas, struct quota_set *set, struct quota_entry *e, u64 at_ns)
{
	if (at_ns >= e->due_ns)
		return;
	e->due_ns = at_ns;
	if (e->flags & QUOTA_FLUSHING)
		return;
	quota_lower(&quotas->due_ns[set - quotas->set], at_ns);
	quota_lower(&quotas->next_ns, at_ns);
}

u64 quota_phase(u64 key, u64 every_ns, u64 now_ns)
{
	u64 phase = (key * 0x9e3779b97f4a7c15ULL) % every_ns;

	return now_ns + every_ns - (now_ns + every_ns - phase) % every_ns;
}

/* ------------------------------------------------------------------ measured */

void quotas_stats(const struct quotas *quotas, struct quotas_stats *ret)
{
	*ret = (struct quotas_stats){
		.room = (u64)quotas->sets * QUOTA_WAYS,
		.full = __atomic_load_n(&quotas->full, __ATOMIC_RELAXED),
		.lost = __atomic_load_n(&quotas->lost, __ATOMIC_RELAXED),
		.restored = __atomic_load_n(&quotas->restored, __ATOMIC_RELAXED),
	};
	for (u32 i = 0; i < quotas->sets; i++) {
		struct quota_set *set = &quotas->set[i];

		quota_lock(&set->lock);
		for (u32 way = 0; way < QUOTA_WAYS; way++) {
			const struct quota_entry *e = &set->entry[way];

			if (!set->key[way])
				continue;
			ret->entries++;
			ret->leases += e->credit > 0;
			ret->credit += e->credit;
			ret->unflushed +=
				e->unflushed + e->late + e->flushing + e->spent + e->spent_sent;
		}
		quota_unlock(&set->lock);
	}
}
