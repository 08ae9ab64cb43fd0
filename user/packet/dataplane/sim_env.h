/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sim_env.h - bpf/env.h and bpf/maps.h for user space: the same names over plain memory. Only
 * dp_sim.c and dp_explain.c include it, before the stages.
 *
 * dp_explain.c runs the stages for another, live data plane: its dp_sim uses the rules and state of
 * that one, and `copy` in place of a table and of leases.
 */
#ifndef SLUICE_SIM_ENV_H
#define SLUICE_SIM_ENV_H

#include <arpa/inet.h>
#include <string.h>

#include "bpf/evaluation.h"
#include "packet/dataplane/dp_sim.h"
#include "packet/dataplane/explain_copy.h"
#include "packet/dataplane/sim_hash.h"

#define SL_GLOBAL static

struct sim_cpu {
	struct sl_iface_stats iface[SL_IFACES_MAX];
	struct sl_limit_stats limit[SL_LIMIT_IDS];
	struct sl_global_stats global;
	struct sl_lease_hints hints;
	struct sl_refused refused[1 << SL_REFUSED_BITS];
	struct sl_passed passed[1 << SL_PASSED_BITS];
	u64 *lease; /* lease_entries of them */
	struct sl_event_stats events;
};

#define SIM_EVENTS 1024

/* The prefix index of an image. */
struct sim_prefixes {
	struct sl_v4_top *v4_top;
	struct sl_v4_line *v4_line;
	u32 v4_lines;
	struct sl_pfx_bucket *bucket;
	struct sl_override_bucket *overrides;
	struct sl_pclass *pclass;
	u32 pclass_count;
};

struct dp_sim {
	struct dp dp;
	struct sl_state state;
	struct sl_epoch epoch;
	struct sl_limit_id_info slots[SL_LIMIT_IDS];
	struct sl_set *table;
	u32 sets;
	u32 cpus, lease_entries;
	u32 linear; /* of each frame; 0: all */
	bool no_refusal_cache;
	u8 link[SL_IFACES_MAX]; /* enum sl_link */
	u64 *lease_key;		/* lease_entries of them */
	struct sim_cpu *cpu;
	struct sl_event_switch event_switch;
	struct sl_event *event; /* SIM_EVENTS of them; with `copy` NULL */
	u32 event_count;
	struct sl_heavy_set
		*heavy; /* SL_HEAVY_LISTS * SL_HEAVY_SETS for each CPU; with `copy` NULL */
	u64 mono_ns;
	struct explain_copy *copy;	      /* NULL: a data plane of its own */
	struct sim_hash *hash[DP_HASH_COUNT]; /* with `copy` NULL */
	struct sl_list_filter list_filter;
	struct sl_ban_filter ban_filter;
	struct sl_push_now push_now;	    /* with `copy`: of the live one, not watching */
	struct sl_established *established; /* SL_ESTABLISHED_SETS of them; with `copy` NULL */
	struct sl_frag_set *fragment;	    /* SL_FRAG_SETS of them; with `copy` NULL */
	struct dp *live;		    /* with `copy`: has the bans and push-downs */
	struct sl_listed live_listed;	    /* what was looked up there last */
	struct sl_ban_state live_ban;
	struct sl_push live_push;

	const struct sim_socket *socket; /* of env_socket(); not owned */
	u32 socket_count;

	struct sl_elastic *elastic; /* SL_LIMIT_IDS of them; with `copy` those of the live one */
	struct sl_seen *seen;	    /* SL_LIMIT_IDS of them; with `copy` NULL */

	struct sl_rules *rules[2]; /* in force, and the fallback */
	struct sim_prefixes prefixes[SL_PFX_SLOTS];
};

/* The data plane, CPU and interface that the stages run for; set by dp_sim_packet(). */
static __thread struct dp_sim *sim;
static __thread struct sim_cpu *sim_cpu;
static __thread u32 sim_iface;

typedef struct sim_frame {
	u8 *data;
	u32 length;
	u32 linear; /* readable without env_load_bytes() */
	struct sim_verdict verdict;
} env_ctx;

enum { ENV_PASS, ENV_DROP };

#define env_ntohs(x) ntohs(x)
#define env_ntohl(x) ntohl(x)

static inline u32 env_hz(void)
{
	return 250;
}

static inline u32 env_iface_slot(void)
{
	return sim_iface;
}

static inline u32 env_link(void)
{
	return sim->link[sim_iface % SL_IFACES_MAX];
}

static inline u32 env_cpu(void)
{
	return sim_cpu - sim->cpu;
}

static inline u32 env_table_sets(void)
{
	return sim->sets;
}

/* Not with `copy`: what explain reports is judged in full. */
static inline u32 env_refusal_cache(void)
{
	return !sim->no_refusal_cache && !sim->copy;
}

static inline u32 env_fake_clock(void)
{
	return 0;
}

static inline u32 env_length(env_ctx *ctx)
{
	return ctx->length;
}

static inline u32 env_linear_length(env_ctx *ctx)
{
	return ctx->linear;
}

static inline void *env_data(env_ctx *ctx, u32 offset, u32 len)
{
	return (u64)offset + len <= ctx->linear ? ctx->data + offset : NULL;
}

static inline int env_load_bytes(env_ctx *ctx, u32 offset, void *to, u32 len)
{
	if ((u64)offset + len > ctx->length)
		return -1;
	memcpy(to, ctx->data + offset, len);
	return 0;
}

static inline int env_store_bytes(env_ctx *ctx, u32 offset, void *from, u32 len)
{
	if ((u64)offset + len > ctx->length)
		return -1;
	memcpy(ctx->data + offset, from, len);
	return 0;
}

/* The other parts of the program, after the stages: sim_stages.h. */
static int sim_stage(env_ctx *ctx, enum sl_stage stage);
#define env_jump(ctx, stage) return sim_stage(ctx, stage)

static inline u64 env_mono_ns(void)
{
	return sim->mono_ns;
}

/* xorshift32: Marsaglia, 2003. */
static inline u32 env_random(void)
{
	static __thread u32 state = 1;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

/* Ticks of 4 ms, so that the lazy clock is exercised as in the kernel. */
static inline u64 env_jiffies(void)
{
	return sim->mono_ns / 4000000;
}

static inline int env_put_mark(env_ctx *ctx, u32 mark)
{
	ctx->verdict.marked = true;
	ctx->verdict.mark = mark;
	return 0;
}

#include "packet/dataplane/sim_socket.h"

static inline const struct sl_rules *map_rules(u32 which)
{
	return sim->rules[which];
}

static inline const struct sl_v4_top *map_v4_top(u32 pfx_slot)
{
	return sim->prefixes[pfx_slot].v4_top;
}

static inline const struct sl_v4_line *map_v4_line(u32 pfx_slot, u32 index)
{
	const struct sim_prefixes *p = &sim->prefixes[pfx_slot];

	return index < p->v4_lines ? &p->v4_line[index] : NULL;
}

static inline void *map_pfx(u32 pfx_slot)
{
	return sim->prefixes[pfx_slot].bucket;
}

static inline const struct sl_pfx_bucket *map_pfx_bucket(void *pfx, u32 index)
{
	return (struct sl_pfx_bucket *)pfx + index;
}

static inline void *map_overrides(u32 pfx_slot)
{
	return sim->prefixes[pfx_slot].overrides;
}

static inline const struct sl_override_bucket *map_override_bucket(void *index, u32 bucket)
{
	return (struct sl_override_bucket *)index + bucket;
}

static inline const struct sl_pclass *map_pclass(u32 pfx_slot, u32 index)
{
	const struct sim_prefixes *p = &sim->prefixes[pfx_slot];

	return index < p->pclass_count ? &p->pclass[index] : NULL;
}

static inline struct sl_set *map_table_set(u32 index)
{
	if (sim->copy)
		return explain_copy_set(sim->copy, index);
	return index < sim->sets ? &sim->table[index] : NULL;
}

static inline const struct sl_elastic *map_elastic(u32 slot)
{
	return slot < SL_LIMIT_IDS ? &sim->elastic[slot] : NULL;
}

/* NULL with `copy`: explain keeps no fragments. */
static inline struct sl_seen *map_seen(u32 slot)
{
	return sim->seen && slot < SL_LIMIT_IDS ? &sim->seen[slot] : NULL;
}

static inline u32 sim_lease_slot(u64 key)
{
	/* Also a hash of its slot: a source has the same hash in all meters of a limit. */
	return sl_key_set(key, 0, sim->lease_entries);
}

static inline u64 *map_lease(u64 key)
{
	u32 at;

	if (sim->copy)
		return explain_copy_lease(sim->copy, key, sim_cpu - sim->cpu);
	at = sim_lease_slot(key);
	return sim->lease_key[at] == key ? &sim_cpu->lease[at] : NULL;
}

static inline int map_lease_insert(u64 key, u64 bucket_state)
{
	u32 at, i;

	if (sim->copy)
		return explain_copy_lease_insert(sim->copy, key, sim_cpu - sim->cpu, bucket_state);
	at = sim_lease_slot(key);
	for (i = 0; i < sim->cpus; i++)
		sim->cpu[i].lease[at] = 0;
	sim->lease_key[at] = key;
	sim_cpu->lease[at] = bucket_state;
	return 0;
}

static inline struct sl_lease_hints *map_lease_hints(void)
{
	return &sim_cpu->hints;
}

static inline struct sl_refused *map_refused(u32 index)
{
	return &sim_cpu->refused[index];
}

static inline struct sl_passed *map_passed(u32 index)
{
	return &sim_cpu->passed[index];
}

/* The value of a key, or NULL; with `copy` that of the live one, in *live. */
static inline void *sim_look_up(enum dp_hash which, const void *key, void *live)
{
	if (!sim->copy)
		return sim_hash_get(sim->hash[which], key);
	return sim->live->ops->hash_get(sim->live, which, key, live) ? NULL : live;
}

static inline const struct sl_listed *map_listed(const struct sl_list_key *key)
{
	return sim_look_up(DP_LISTED, key, &sim->live_listed);
}

static inline const struct sl_list_filter *map_list_filter(void)
{
	return sim->copy ? sim->live->list_filter : &sim->list_filter;
}

static inline struct sl_ban_state *map_ban(const struct sl_ban_key *key)
{
	return sim_look_up(DP_BANS, key, &sim->live_ban);
}

static inline int map_ban_update(const struct sl_ban_key *key, const struct sl_ban_state *ban)
{
	return sim->copy ? 0 : sim_hash_put(sim->hash[DP_BANS], key, ban);
}

static inline struct sl_ban_filter *map_ban_filter(void)
{
	return &sim->ban_filter;
}

static inline struct sl_heavy_set *map_heavy(u32 index)
{
	size_t cpu = sim_cpu - sim->cpu;

	if (!sim->heavy || index >= SL_HEAVY_LISTS * SL_HEAVY_SETS)
		return NULL;
	return &sim->heavy[cpu * SL_HEAVY_LISTS * SL_HEAVY_SETS + index];
}

/* NULL with `copy`: explain is no event. */
static inline const struct sl_event_switch *map_event_switch(void)
{
	return sim->copy ? NULL : &sim->event_switch;
}

static inline struct sl_event_stats *map_event_stats(void)
{
	return &sim_cpu->events;
}

static inline struct sl_event *map_event_reserve(void)
{
	return sim->event_count < SIM_EVENTS ? &sim->event[sim->event_count] : NULL;
}

static inline void map_event_submit(struct sl_event *event)
{
	(void)event;
	sim->event_count++;
}

static inline struct sl_push *map_push(const struct sl_push_key *key)
{
	return sim_look_up(DP_PUSHES, key, &sim->live_push);
}

static inline struct sl_push_now *map_push_now(void)
{
	return &sim->push_now;
}

static inline struct sl_established *map_established(u32 index)
{
	return sim->established && index < SL_ESTABLISHED_SETS ? &sim->established[index] : NULL;
}

static inline struct sl_frag_set *map_fragment_set(u32 index)
{
	return sim->copy || index >= SL_FRAG_SETS ? NULL : &sim->fragment[index];
}

/* One thread at a time runs a dp_sim. */
static inline void map_fragment_lock(struct sl_frag_set *set)
{
	(void)set;
}

static inline void map_fragment_unlock(struct sl_frag_set *set)
{
	(void)set;
}

static inline const struct sl_state *map_state(void)
{
	return &sim->state;
}

static inline u64 map_epoch(void)
{
	return sim->epoch.count;
}

static inline void map_epoch_raise(void)
{
	sim->epoch.count += SL_EPOCH_STEP;
}

static inline struct sl_iface_stats *map_iface_stats(void)
{
	return sim_iface < SL_IFACES_MAX ? &sim_cpu->iface[sim_iface] : NULL;
}

static inline struct sl_limit_stats *map_limit_stats(u32 slot)
{
	return slot < SL_LIMIT_IDS ? &sim_cpu->limit[slot] : NULL;
}

static inline struct sl_global_stats *map_global_stats(void)
{
	return &sim_cpu->global;
}

static inline struct evaluation *env_evaluation(void)
{
	static __thread struct evaluation ev;

	return &ev;
}

#endif
