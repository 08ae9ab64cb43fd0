/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fragment_memory.h - where first fragments are remembered: an array of sets of eight, each with a
 * lock for writers. Entries end by themselves, none is evicted. fragment.h has the rules.
 */
#ifndef SLUICE_BPF_FRAGMENT_MEMORY_H
#define SLUICE_BPF_FRAGMENT_MEMORY_H

#include "bpf/clock.h"

/*
 * Its chain of headers is not read on, too long or in an order that Linux reads in two ways: it may
 * be a first fragment of any id.
 */
static __always_inline int fragment_is_hidden(const struct packet *pkt)
{
	return pkt->unread == SL_R_EXTHDR;
}

static __always_inline void fragment_key(const struct packet *pkt, struct sl_frag_key *key)
{
	key->src = pkt->src;
	key->dst = pkt->dst;
	key->id = pkt->frag_id;
	key->proto = pkt->family == SL_V4 ? pkt->proto : 0;
	key->family = pkt->family;
	key->pad = 0;
	if (fragment_is_hidden(pkt)) {
		key->id = 0;
		key->proto = SL_FRAG_ANY_ID;
	}
}

static __always_inline struct sl_frag_set *fragment_set(const struct sl_frag_key *key)
{
	const struct sl_state *state = map_state();

	return state ? map_fragment_set(sl_frag_set_at(key, state->seed)) : NULL;
}

/* 1 where x is not 0. Without a branch: eight ways would be eight times the paths behind them. */
static __always_inline u64 fragment_is_set(u64 x)
{
	x |= -x;
	OPAQUE(x);
	return x >> 63;
}

/* 1 where a time of monotonic ns is before another. */
static __always_inline u64 fragment_is_before(u64 a, u64 b)
{
	a -= b;
	OPAQUE(a);
	return a >> 63;
}

/*
 * The way of a first that lives at `now`, or ended less than `grace_ns` ago, or SL_FRAG_WAYS.
 * Read without the lock: the time comes first, and a live entry's key does not change.
 */
static __always_inline u32 fragment_find(const struct sl_frag_set *set,
					 const struct sl_frag_key *key, u64 now, u64 grace_ns)
{
	u32 i, found = SL_FRAG_WAYS;

	for (i = 0; i < SL_FRAG_WAYS; i++) {
		const struct sl_frag_first *way = &set->way[i];
		u64 until = *(volatile const u64 *)&way->until_ns, differs;

		differs = (way->key.src.hi ^ key->src.hi) | (way->key.src.lo ^ key->src.lo) |
			  (way->key.dst.hi ^ key->dst.hi) | (way->key.dst.lo ^ key->dst.lo) |
			  (way->key.id ^ key->id) | (way->key.proto ^ key->proto) |
			  (way->key.family ^ key->family);
		/* At most one way has the key. */
		found -= (SL_FRAG_WAYS - i) *
			 (fragment_is_before(now, until + grace_ns) & ~fragment_is_set(differs));
	}
	return found;
}

/*
 * "R9 unbounded memory access, make sure to bounds check any such access": the compiler makes the
 * address first and checks later. Without it no rule set loads.
 */
static __always_inline struct sl_frag_first *fragment_way(struct sl_frag_set *set, u32 i)
{
	if (i >= SL_FRAG_WAYS)
		return NULL;
	OPAQUE(i);
	return &set->way[i & (SL_FRAG_WAYS - 1)];
}

static __always_inline u64 fragment_life_ns(const struct packet *pkt)
{
	return pkt->family == SL_V4 ? SL_FRAG_V4_NS : SL_FRAG_V6_NS;
}

/* Protocol, ports, flags and type of a first. */
static __always_inline u64 fragment_fields(const struct sl_frag_first *first)
{
	return (u64)first->sport << 48 | (u64)first->dport << 32 | (u32)first->tcp_flags << 24 |
	       first->icmp_type << 16 | first->icmp_code << 8 | first->proto;
}

/* Those of a packet. */
static __always_inline u64 fragment_own_fields(const struct packet *pkt)
{
	return (u64)pkt->sport << 48 | (u64)pkt->dport << 32 | (u32)pkt->tcp_flags << 24 |
	       pkt->icmp_type << 16 | pkt->icmp_code << 8 | pkt->proto;
}

/* Whether both have the same. */
static __always_inline int fragment_agrees(const struct sl_frag_first *first,
					   const struct packet *pkt)
{
	return !(pkt->flags & PKT_UNREAD) && fragment_fields(first) == fragment_own_fields(pkt);
}

static __always_inline void fragment_note_new(struct sl_frag_first *first,
					      const struct sl_frag_key *key,
					      const struct packet *pkt, u32 flags)
{
	first->key = *key;
	first->link = pkt->frag_link;
	first->vlans = pkt->frag_vlans;
	first->sport = pkt->sport;
	first->dport = pkt->dport;
	first->tcp_flags = pkt->tcp_flags;
	first->icmp_type = pkt->icmp_type;
	first->icmp_code = pkt->icmp_code;
	first->proto = pkt->proto;
	first->l4 = (pkt->flags & PKT_L4) != 0;
	first->flags = flags;
	*(volatile u64 *)&first->until_ns = pkt->now.mono_ns + fragment_life_ns(pkt);
}

/*
 * A way for a new first: one that has ended, also for a CPU that may still be reading it. Dropped
 * firsts get only half of them: a flood that is over its limit does not close the set. There the
 * newest replaces the oldest of those that no receiver has: a CPU that still reads that one drops a
 * fragment of a datagram whose first was dropped.
 */
static __always_inline u32 fragment_free(const struct sl_frag_set *set, u64 now, u32 dropped)
{
	u64 none = 1, free, oldest = now + (1ULL << 62), older;
	u32 i, found = SL_FRAG_WAYS, way = SL_FRAG_WAYS;

	for (i = 0; i < SL_FRAG_WAYS; i++) {
		if (dropped && i >= SL_FRAG_WAYS / 2)
			break;
		free = none & ~fragment_is_before(now, set->way[i].until_ns + SL_FRAG_STEP_NS);
		found -= (SL_FRAG_WAYS - i) * free;
		none ^= free;
		older = fragment_is_before(set->way[i].until_ns, oldest) &
			~fragment_is_set(set->way[i].flags ^
					 (SL_FRAG_DROPPED | SL_FRAG_UNDELIVERED));
		way += (i - way) * (u32)older;
		oldest += (set->way[i].until_ns - oldest) * older;
	}
	return dropped && none ? way : found;
}

/*
 * Two IPv6 addresses have an entry of their own, for packets that may be a first of any id
 * (fragment_is_hidden()). UNSURE: such a one passed, and receivers may have it.
 * USED: later fragments were judged by a first, so such a one may not pass any more.
 */
static __always_inline struct sl_frag_set *fragment_pair_set(const struct packet *pkt,
							     struct sl_frag_key *key)
{
	key->src = pkt->src;
	key->dst = pkt->dst;
	key->id = 0;
	key->proto = SL_FRAG_ANY_ID;
	key->family = SL_V6;
	key->pad = 0;
	return fragment_set(key);
}

/* Its flags now. */
static __always_inline u32 fragment_pair(const struct packet *pkt)
{
	const struct sl_frag_first *pair;
	struct sl_frag_set *set;
	struct sl_frag_key key;
	u32 flags;

	if (pkt->family != SL_V6)
		return 0;
	set = fragment_pair_set(pkt, &key);
	if (!set)
		return 0;
	pair = fragment_way(set, fragment_find(set, &key, pkt->now.mono_ns, 0));
	flags = pair ? pair->flags : 0;
	/* It may be the one that found no room. What is USED has room: fragment_pair_use(). */
	return pkt->now.mono_ns < set->closed_until_ns ? flags | SL_FRAG_UNSURE : flags;
}

/* Sets USED; 0 where it is UNSURE. */
SL_GLOBAL int fragment_pair_use(const struct packet *pkt)
{
	u32 before = SL_FRAG_UNSURE, full = 0;
	struct sl_frag_first *pair;
	struct sl_frag_set *set;
	struct sl_frag_key key;
	u64 now, until;

	if (!pkt)
		return 0;
	now = pkt->now.mono_ns;
	until = now + fragment_life_ns(pkt);
	set = fragment_pair_set(pkt, &key);
	if (!set)
		return 0;
	map_fragment_lock(set);
	pair = fragment_way(set, fragment_find(set, &key, now, SL_FRAG_STEP_NS));
	if (pair) {
		before = pair->flags;
		pair->flags |= SL_FRAG_USED;
		if (pair->until_ns < until)
			pair->until_ns = until;
	} else {
		pair = fragment_way(set, fragment_free(set, now, 0));
		if (pair && now >= set->closed_until_ns)
			before = 0;
		if (pair) {
			fragment_note_new(pair, &key, pkt, before | SL_FRAG_USED);
		} else {
			set->closed_until_ns = until;
			full = 1;
		}
	}
	map_fragment_unlock(set);
	if (full)
		count_map_error(SL_ME_FRAGMENT_UPDATE);
	return !(before & SL_FRAG_UNSURE);
}

#endif
