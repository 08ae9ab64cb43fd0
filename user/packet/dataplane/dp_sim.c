/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_sim.c - the data plane in memory. The stages come unchanged from bpf/; this file has their
 * memory and implements the operations of dataplane.h over it.
 *
 * It does not simulate concurrency: packets are judged one after the other, on the CPU that the
 * caller names. tests/prop/ and tests/bpf/ test concurrency.
 */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Waddress-of-packed-member"

#include <errno.h>
#include <stdlib.h>

#include "lib/large_pages.h"
#include "packet/dataplane/sim_stages.h"

static struct dp_sim *sim_of(struct dp *dp)
{
	return (struct dp_sim *)dp;
}

static void drop_prefixes(struct sim_prefixes *p)
{
	free(p->v4_top);
	free(p->v4_line);
	free(p->bucket);
	free(p->overrides);
	free(p->pclass);
	memset(p, 0, sizeof(*p));
}

static void sim_close(struct dp *dp)
{
	struct dp_sim *s = sim_of(dp);
	u32 i;

	if (!s)
		return;
	for (i = 0; i < SL_PFX_SLOTS; i++)
		drop_prefixes(&s->prefixes[i]);
	free(s->rules[0]);
	free(s->rules[1]);
	for (i = 0; s->cpu && i < s->cpus; i++)
		free(s->cpu[i].lease);
	free(s->cpu);
	free(s->lease_key);
	free(s->elastic);
	free(s->seen);
	for (i = 0; i < DP_HASH_COUNT; i++)
		sim_hash_free(s->hash[i]);
	free(s->established);
	free(s->fragment);
	free(s->heavy);
	free(s->event);
	free(s->table);
	free(s);
}

static void *copy_of(const void *from, size_t size)
{
	void *to = from ? malloc(size) : NULL;

	if (to)
		memcpy(to, from, size);
	return to;
}

/* Every image has a slot for its prefixes, also if they equal those of another. */
static int copy_image(struct dp_sim *s, const struct sl_image *image, struct sl_rules **ret)
{
	u32 slot = dp_free_pfx_slot(s->rules[0], s->rules[1]);
	struct sim_prefixes *p = &s->prefixes[slot];
	struct sl_rules *rules = copy_of(image->rules, sizeof(*image->rules));

	drop_prefixes(p);
	p->bucket = copy_of(image->bucket, image->rules->pfx_buckets * sizeof(*image->bucket));
	p->overrides = copy_of(image->overrides->bucket,
			       image->overrides->buckets * sizeof(*p->overrides));
	p->pclass = copy_of(image->pclass, image->pclass_count * sizeof(*image->pclass));
	p->v4_top = copy_of(image->v4_top, sizeof(*image->v4_top));
	p->v4_line = copy_of(image->v4_line, image->v4_lines * sizeof(*image->v4_line));
	if (!rules || !p->bucket || !p->overrides || !p->pclass || !p->v4_top || !p->v4_line) {
		free(rules);
		return -ENOMEM;
	}
	p->pclass_count = image->pclass_count;
	p->v4_lines = image->v4_lines;
	rules->pfx_slot = slot;
	*ret = rules;
	return 0;
}

static int sim_confirm(struct dp *dp, struct sl_err *err)
{
	struct dp_sim *s = sim_of(dp);

	if (s->rules[0])
		s->rules[0]->revert_at_ns = 0;
	free(s->rules[1]);
	s->rules[1] = NULL;
	dp_epoch_raise(dp);
	return 0;
}

static int sim_apply(struct dp *dp, const struct sl_image *image, struct sl_err *err)
{
	struct dp_sim *s = sim_of(dp);
	struct sl_rules *rules;

	if (copy_image(s, image, &rules) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	free(s->rules[0]);
	s->rules[0] = rules;
	return sim_confirm(dp, err);
}

static int sim_apply_until(struct dp *dp, const struct sl_image *image, u64 revert_at_ns,
			   struct sl_err *err)
{
	struct dp_sim *s = sim_of(dp);
	struct sl_rules *rules;

	if (!s->rules[0])
		return sl_err_set(err, EINVAL, "there are no rules to fall back to");
	if (copy_image(s, image, &rules) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	rules->revert_at_ns = revert_at_ns;
	if (s->rules[1])
		free(s->rules[0]);
	else
		s->rules[1] = s->rules[0];
	s->rules[0] = rules;
	dp_fallback_rescale(dp, s->rules[1], rules);
	dp_epoch_raise(dp);
	return 0;
}

static const struct sl_rules *sim_rules(struct dp *dp)
{
	return sim_of(dp)->rules[0];
}

static const struct sl_rules *sim_fallback(struct dp *dp)
{
	return sim_of(dp)->rules[1];
}

/* All counters are u64, so any of the structs is summed as an array of them. */
static void add_counters(void *sum, const void *one, size_t size)
{
	const u64 *from = one;
	u64 *to = sum;
	size_t i;

	for (i = 0; i < size / sizeof(u64); i++)
		to[i] += from[i];
}

static int sim_iface_stats(struct dp *dp, u32 slot, struct sl_iface_stats *ret)
{
	struct dp_sim *s = sim_of(dp);
	u32 i;

	if (slot >= SL_IFACES_MAX)
		return -EINVAL;
	memset(ret, 0, sizeof(*ret));
	for (i = 0; i < s->cpus; i++)
		add_counters(ret, &s->cpu[i].iface[slot], sizeof(*ret));
	return 0;
}

static int sim_limit_stats(struct dp *dp, u32 slot, struct sl_limit_stats *ret)
{
	struct dp_sim *s = sim_of(dp);
	u32 i;

	if (slot >= SL_LIMIT_IDS)
		return -EINVAL;
	memset(ret, 0, sizeof(*ret));
	for (i = 0; i < s->cpus; i++)
		add_counters(ret, &s->cpu[i].limit[slot], sizeof(*ret));
	return 0;
}

static int sim_limit_stats_clear(struct dp *dp, u32 slot)
{
	struct dp_sim *s = sim_of(dp);
	u32 i;

	if (slot >= SL_LIMIT_IDS)
		return -EINVAL;
	for (i = 0; i < s->cpus; i++)
		memset(&s->cpu[i].limit[slot], 0, sizeof(s->cpu[i].limit[slot]));
	memset(&s->seen[slot], 0, sizeof(s->seen[slot]));
	return 0;
}

static int sim_global_stats(struct dp *dp, struct sl_global_stats *ret)
{
	struct dp_sim *s = sim_of(dp);
	u32 i;

	memset(ret, 0, sizeof(*ret));
	for (i = 0; i < s->cpus; i++)
		add_counters(ret, &s->cpu[i].global, sizeof(*ret));
	return 0;
}

static int sim_heavy(struct dp *dp, u32 index, struct sl_heavy_set *ret)
{
	const u32 sets = SL_HEAVY_LISTS * SL_HEAVY_SETS;
	struct dp_sim *s = sim_of(dp);

	if (index >= sets)
		return -EINVAL;
	for (u32 cpu = 0; cpu < s->cpus; cpu++)
		ret[cpu] = s->heavy[cpu * sets + index];
	return 0;
}

static int sim_events(struct dp *dp, dp_event_fn *each, void *arg)
{
	struct dp_sim *s = sim_of(dp);
	u32 count = s->event_count;

	for (u32 i = 0; i < count; i++)
		each(arg, &s->event[i]);
	s->event_count = 0;
	return (int)count;
}

static int sim_event_stats(struct dp *dp, struct sl_event_stats *ret)
{
	struct dp_sim *s = sim_of(dp);

	memset(ret, 0, sizeof(*ret));
	for (u32 i = 0; i < s->cpus; i++)
		add_counters(ret, &s->cpu[i].events, sizeof(*ret));
	return 0;
}

static int sim_lease(struct dp *dp, u64 key, u64 *ret)
{
	struct dp_sim *s = sim_of(dp);
	u32 i, at;

	sim = s;
	at = sim_lease_slot(key);
	for (i = 0; i < s->cpus; i++) {
		const struct sl_lease_hint *hint = &s->cpu[i].hints.hint[sl_lease_hint_at(key)];

		ret[i] = hint->key == key	   ? hint->lease
			 : s->lease_key[at] == key ? s->cpu[i].lease[at]
						   : 0;
	}
	return 0;
}

static const size_t sim_entry_size[DP_HASH_COUNT] = {
	sizeof(struct dp_listed),
	sizeof(struct dp_ban),
	sizeof(struct dp_push_entry),
};

static int sim_all(struct dp *dp, enum dp_hash which, void *ret, size_t *ret_count)
{
	return sim_hash_all(sim_of(dp)->hash[which], ret, ret_count);
}

static int sim_get(struct dp *dp, enum dp_hash which, const void *key, void *ret)
{
	const void *value = sim_hash_get(sim_of(dp)->hash[which], key);

	if (!value)
		return -ENOENT;
	memcpy(ret, value, sim_entry_size[which] - sizeof(struct sl_list_key));
	return 0;
}

static int sim_put(struct dp *dp, enum dp_hash which, const void *entries, size_t count)
{
	const char *entry = entries;
	int rc = 0;

	for (; count && !rc; count--, entry += sim_entry_size[which])
		rc = sim_hash_put(sim_of(dp)->hash[which], entry,
				  entry + sizeof(struct sl_list_key));
	return rc;
}

static int sim_del(struct dp *dp, enum dp_hash which, const void *keys, size_t count)
{
	int rc = 0;

	for (size_t i = 0; i < count; i++)
		rc = sim_hash_del(sim_of(dp)->hash[which], (const struct sl_list_key *)keys + i);
	return count == 1 ? rc : 0;
}

static const struct dp_ops sim_ops = {
	.name = "sim",
	.close = sim_close,
	.apply = sim_apply,
	.apply_until = sim_apply_until,
	.confirm = sim_confirm,
	.rules = sim_rules,
	.fallback = sim_fallback,
	.iface_stats = sim_iface_stats,
	.limit_stats = sim_limit_stats,
	.heavy = sim_heavy,
	.events = sim_events,
	.event_stats = sim_event_stats,
	.global_stats = sim_global_stats,
	.limit_stats_clear = sim_limit_stats_clear,
	.lease = sim_lease,
	.hash_all = sim_all,
	.hash_get = sim_get,
	.hash_put = sim_put,
	.hash_del = sim_del,
};

int dp_sim_open(u64 table_buckets, u32 cpus, u32 lease_entries, struct dp **ret)
{
	struct dp_sim *s = calloc(1, sizeof(*s));
	u32 i;

	if (!s)
		return -ENOMEM;
	s->sets = SL_TABLE_SETS(table_buckets);
	s->cpus = cpus;
	s->lease_entries = lease_entries ? lease_entries : 1;
	s->table = aligned_alloc(64, s->sets * sizeof(*s->table));
	s->cpu = calloc(cpus, sizeof(*s->cpu));
	s->lease_key = calloc(s->lease_entries, sizeof(u64));
	s->elastic = calloc(SL_LIMIT_IDS, sizeof(*s->elastic));
	s->seen = calloc(SL_LIMIT_IDS, sizeof(*s->seen));
	s->hash[DP_LISTED] = sim_hash_new(sim_entry_size[DP_LISTED], SL_LISTED_MAX);
	s->hash[DP_BANS] = sim_hash_new(sim_entry_size[DP_BANS], SL_BANS_MAX);
	s->hash[DP_PUSHES] = sim_hash_new(sim_entry_size[DP_PUSHES], SL_PUSHES_MAX);
	s->established = aligned_alloc(64, SL_ESTABLISHED_SETS * sizeof(*s->established));
	s->fragment = calloc(SL_FRAG_SETS, sizeof(*s->fragment));
	s->heavy = calloc((size_t)cpus * SL_HEAVY_LISTS * SL_HEAVY_SETS, sizeof(*s->heavy));
	s->event = calloc(SIM_EVENTS, sizeof(*s->event));
	if (!s->table || !s->event || !s->cpu || !s->lease_key || !s->hash[DP_LISTED] ||
	    !s->hash[DP_BANS] || !s->hash[DP_PUSHES] || !s->fragment || !s->elastic || !s->seen ||
	    !s->established || !s->heavy)
		goto out;
	large_pages(s->table, s->sets * sizeof(*s->table));
	memset(s->table, 0, s->sets * sizeof(*s->table));
	memset(s->established, 0, SL_ESTABLISHED_SETS * sizeof(*s->established));
	for (i = 0; i < cpus; i++) {
		s->cpu[i].lease = calloc(s->lease_entries, sizeof(u64));
		if (!s->cpu[i].lease)
			goto out;
	}
	s->mono_ns = SL_NS_PER_SEC;
	s->state.abi_version = SL_ABI_VERSION;
	s->state.table_sets = s->sets;
	s->state.seed = (struct sl_seed){ 0x5eed, 0xface };
	s->dp = (struct dp){
		.ops = &sim_ops,
		.cpus = cpus,
		.state = &s->state,
		.epoch = &s->epoch,
		.slots = s->slots,
		.table = s->table,
		.table_sets = s->sets,
		.elastic = s->elastic,
		.shadow_seen = s->seen,
		.list_filter = &s->list_filter,
		.ban_filter = &s->ban_filter,
		.push_now = &s->push_now,
		.established = s->established,
		.event_switch = &s->event_switch,
	};
	*ret = &s->dp;
	return 0;
out:
	sim_close(&s->dp);
	return -ENOMEM;
}

void dp_sim_set_sockets(struct dp *dp, const struct sim_socket *socket, u32 count)
{
	sim_of(dp)->socket = socket;
	sim_of(dp)->socket_count = count;
}

void dp_sim_set_time(struct dp *dp, u64 mono_ns)
{
	sim_of(dp)->mono_ns = mono_ns;
}

void dp_sim_set_link(struct dp *dp, u32 iface_slot, enum sl_link link)
{
	sim_of(dp)->link[iface_slot % SL_IFACES_MAX] = link;
}

void dp_sim_set_linear(struct dp *dp, u32 bytes)
{
	sim_of(dp)->linear = bytes;
}

static void report_facts(const struct evaluation *ev, struct sim_verdict *ret)
{
	const struct packet *pkt = &ev->pkt;

	ret->action = ret->drop ? SL_ACT_DROP : pkt->tag ? SL_ACT_TAG : SL_ACT_PASS;
	ret->reason = (enum sl_reason)pkt->reason;
	ret->limit_id = pkt->reason == SL_R_OVER ? ev->limit_id : 0;
	ret->has_source = pkt->flags & PKT_ADDR;
	ret->family = pkt->family;
	ret->source = pkt->src;
}

void dp_sim_refusal_cache(struct dp *dp, bool on)
{
	sim_of(dp)->no_refusal_cache = !on;
}

struct sim_verdict dp_sim_packet(struct dp *dp, u32 cpu, u32 iface_slot, u8 *frame, u32 length)
{
	struct sim_frame ctx = { .data = frame, .length = length };

	sim = sim_of(dp);
	ctx.linear = sim->linear && sim->linear < length ? sim->linear : length;
	sim_cpu = &sim->cpu[cpu % sim->cpus];
	sim_iface = iface_slot;
	ctx.verdict.drop = datapath(&ctx) == ENV_DROP;
	report_facts(env_evaluation(), &ctx.verdict);
	return ctx.verdict;
}
