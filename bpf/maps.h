/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * maps.h - every map of the packet tier, and the few ways the stages reach them.
 *
 * The stages call the map_*() functions below and nothing else, so the same stages compile
 * for user space over plain memory (user/packet/dataplane/dp_sim.c brings its own).
 *
 * All maps are pinned by the daemon under pin_dir, by name. Sizes marked "set by the daemon"
 * are changed before loading.
 */
#ifndef SLUICE_BPF_MAPS_H
#define SLUICE_BPF_MAPS_H

#include "sluice/abi.h"

/* Constants of this instance of the program: one instance per interface. */
const volatile struct sl_config config;

/* Functions that the verifier checks once, by themselves, however often they are called. */
#define SL_GLOBAL __attribute__((noinline))

/*
 * Inner maps give sizes, not types: reached through a pointer, clang 14 emits their structs
 * to BTF as forward declarations, and libbpf "can't determine value size for type".
 */

/*
 * ---- the rule set: one pointer, swapped whole; beside it the one to fall back to, of an
 * unconfirmed apply; and the prefix indices of these and of the next one
 */

struct rules_inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct sl_rules));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, u32);
	__array(values, struct rules_inner);
} rules_of SEC(".maps");

/* Of fixed size, so that a look-up is inlined: with BPF_F_INNER_MAP it is a call. */
struct v4_top_inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct sl_v4_top));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SL_PFX_SLOTS);
	__type(key, u32);
	__array(values, struct v4_top_inner);
} v4_top_of SEC(".maps");

/* BPF_F_INNER_MAP: as many elements as a rule set needs. BPF_F_MMAPABLE aligns them to 64. */
struct v4_line_inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct sl_v4_line));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SL_PFX_SLOTS);
	__type(key, u32);
	__array(values, struct v4_line_inner);
} v4_line_of SEC(".maps");

struct pfx_inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct sl_pfx_bucket));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SL_PFX_SLOTS);
	__type(key, u32);
	__array(values, struct pfx_inner);
} pfx_of SEC(".maps");

/* Of fixed size (2 MB) as well. */
struct pclass_inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SL_PCLASS_MAX + 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct sl_pclass));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SL_PFX_SLOTS);
	__type(key, u32);
	__array(values, struct pclass_inner);
} pclass_of SEC(".maps");

/* Of as many buckets as there are overrides, too. */
struct overrides_inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct sl_override_bucket));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SL_PFX_SLOTS);
	__type(key, u32);
	__array(values, struct overrides_inner);
} overrides_of SEC(".maps");

/* ---- buckets */

/* SL_TABLE_SETS(table.buckets) sets: set by the daemon, fixed for the table's life. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sl_set);
} table SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct sl_lease);
} lease SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sl_lease_hints);
} lease_hints SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 << SL_REFUSED_BITS);
	__type(key, u32);
	__type(value, struct sl_refused);
} refused SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 << SL_PASSED_BITS);
	__type(key, u32);
	__type(value, struct sl_passed);
} passed SEC(".maps");

/* ---- who sends */

/* By list and set. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SL_HEAVY_LISTS *SL_HEAVY_SETS);
	__type(key, u32);
	__type(value, struct sl_heavy_set);
} heavy SEC(".maps");

/* ---- lists */

/* Grows with what the administrator and feeds list, never with traffic. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SL_LISTED_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct sl_list_key);
	__type(value, struct sl_listed);
} listed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sl_list_filter);
} list_filter SEC(".maps");

/* ---- events for people */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, SL_RING_BYTES);
} events SEC(".maps");

/* Written by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sl_event_switch);
} event_switch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sl_event_stats);
} event_stats SEC(".maps");

/* ---- bans and fragments */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SL_BANS_MAX);
	__type(key, struct sl_ban_key);
	__type(value, struct sl_ban_state);
} bans SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sl_ban_filter);
} ban_filter SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SL_FRAG_SETS);
	__type(key, u32);
	__type(value, struct sl_frag_set);
} fragments SEC(".maps");

/* ---- push-downs */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SL_PUSHES_MAX);
	__type(key, struct sl_push_key);
	__type(value, struct sl_push);
} pushes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sl_push_now);
} push_now SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SL_ESTABLISHED_SETS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sl_established);
} established SEC(".maps");

/* ---- exchanged with the daemon */

/* By the slot of a limit's head meter: written by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SL_LIMIT_IDS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sl_elastic);
} elastic SEC(".maps");

/* Likewise: written here. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SL_LIMIT_IDS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sl_seen);
} shadow_seen SEC(".maps");

/* ---- time and identity */

#include "bpf/epoch.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sl_state);
} state SEC(".maps");

/* The program never looks here; it is kept beside the table it describes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SL_LIMIT_IDS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sl_limit_id_info);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sl_test_clock);
} test_clock SEC(".maps");

/* ---- the program's own parts: see enum sl_stage */

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, SL_STAGES_MAX);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} stages SEC(".maps");

/* ---- counters, all per CPU */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SL_IFACES_MAX);
	__type(key, u32);
	__type(value, struct sl_iface_stats);
} iface_stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SL_LIMIT_IDS);
	__type(key, u32);
	__type(value, struct sl_limit_stats);
} limit_stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sl_global_stats);
} global_stats SEC(".maps");

/* ---- how the stages reach them */

/* `which`: 0 the rules in force, 1 those to fall back to. */
static __always_inline const struct sl_rules *map_rules(u32 which)
{
	void *inner = bpf_map_lookup_elem(&rules_of, &which);
	u32 zero = 0;

	return inner ? bpf_map_lookup_elem(inner, &zero) : NULL;
}

static __always_inline const struct sl_v4_top *map_v4_top(u32 pfx_slot)
{
	void *inner = bpf_map_lookup_elem(&v4_top_of, &pfx_slot);
	u32 zero = 0;

	return inner ? bpf_map_lookup_elem(inner, &zero) : NULL;
}

static __always_inline const struct sl_v4_line *map_v4_line(u32 pfx_slot, u32 index)
{
	void *inner = bpf_map_lookup_elem(&v4_line_of, &pfx_slot);

	return inner ? bpf_map_lookup_elem(inner, &index) : NULL;
}

static __always_inline void *map_pfx(u32 pfx_slot)
{
	return bpf_map_lookup_elem(&pfx_of, &pfx_slot);
}

static __always_inline const struct sl_pfx_bucket *map_pfx_bucket(void *pfx, u32 index)
{
	return bpf_map_lookup_elem(pfx, &index);
}

static __always_inline const struct sl_pclass *map_pclass(u32 pfx_slot, u32 index)
{
	void *inner = bpf_map_lookup_elem(&pclass_of, &pfx_slot);

	return inner ? bpf_map_lookup_elem(inner, &index) : NULL;
}

static __always_inline void *map_overrides(u32 pfx_slot)
{
	return bpf_map_lookup_elem(&overrides_of, &pfx_slot);
}

static __always_inline const struct sl_override_bucket *map_override_bucket(void *index, u32 bucket)
{
	return bpf_map_lookup_elem(index, &bucket);
}

static __always_inline struct sl_set *map_table_set(u32 index)
{
	return bpf_map_lookup_elem(&table, &index);
}

static __always_inline const struct sl_elastic *map_elastic(u32 slot)
{
	return bpf_map_lookup_elem(&elastic, &slot);
}

static __always_inline struct sl_seen *map_seen(u32 slot)
{
	return bpf_map_lookup_elem(&shadow_seen, &slot);
}

static __always_inline u64 *map_lease(u64 key)
{
	return bpf_map_lookup_elem(&lease, &key);
}

static __always_inline int map_lease_insert(u64 key, u64 word)
{
	return bpf_map_update_elem(&lease, &key, &word, BPF_NOEXIST);
}

static __always_inline struct sl_lease_hints *map_lease_hints(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&lease_hints, &zero);
}

static __always_inline struct sl_refused *map_refused(u32 index)
{
	return bpf_map_lookup_elem(&refused, &index);
}

static __always_inline struct sl_passed *map_passed(u32 index)
{
	return bpf_map_lookup_elem(&passed, &index);
}

static __always_inline struct sl_heavy_set *map_heavy(u32 index)
{
	return bpf_map_lookup_elem(&heavy, &index);
}

static __always_inline const struct sl_listed *map_listed(const struct sl_list_key *key)
{
	return bpf_map_lookup_elem(&listed, key);
}

static __always_inline const struct sl_list_filter *map_list_filter(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&list_filter, &zero);
}

static __always_inline const struct sl_event_switch *map_event_switch(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&event_switch, &zero);
}

static __always_inline struct sl_event_stats *map_event_stats(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&event_stats, &zero);
}

static __always_inline struct sl_event *map_event_reserve(void)
{
	return bpf_ringbuf_reserve(&events, sizeof(struct sl_event), 0);
}

/* Wakes nobody: the daemon looks by itself. */
static __always_inline void map_event_submit(struct sl_event *event)
{
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

static __always_inline struct sl_ban_state *map_ban(const struct sl_ban_key *key)
{
	return bpf_map_lookup_elem(&bans, key);
}

static __always_inline int map_ban_update(const struct sl_ban_key *key,
					  const struct sl_ban_state *ban)
{
	return bpf_map_update_elem(&bans, key, ban, BPF_ANY);
}

static __always_inline struct sl_ban_filter *map_ban_filter(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&ban_filter, &zero);
}

static __always_inline struct sl_push *map_push(const struct sl_push_key *key)
{
	return bpf_map_lookup_elem(&pushes, key);
}

static __always_inline struct sl_push_now *map_push_now(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&push_now, &zero);
}

static __always_inline struct sl_established *map_established(u32 index)
{
	return bpf_map_lookup_elem(&established, &index);
}

static __always_inline struct sl_frag_set *map_fragment_set(u32 index)
{
	return bpf_map_lookup_elem(&fragments, &index);
}

static __always_inline void map_fragment_lock(struct sl_frag_set *set)
{
	bpf_spin_lock(&set->lock);
}

static __always_inline void map_fragment_unlock(struct sl_frag_set *set)
{
	bpf_spin_unlock(&set->lock);
}

static __always_inline const struct sl_state *map_state(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&state, &zero);
}

static __always_inline struct sl_iface_stats *map_iface_stats(void)
{
	u32 slot = config.iface_slot;

	return bpf_map_lookup_elem(&iface_stats, &slot);
}

static __always_inline struct sl_limit_stats *map_limit_stats(u32 slot)
{
	return bpf_map_lookup_elem(&limit_stats, &slot);
}

static __always_inline struct sl_global_stats *map_global_stats(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&global_stats, &zero);
}

#endif
