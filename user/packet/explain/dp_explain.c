// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dp_explain.c - the stages compiled for user space once more, over what is live: see
 * dp_explain.h.
 *
 * A dp_sim without a table stands for the live data plane: rules and prefix index are the
 * image's, state is copied, sets and leases come from explain_copy.h as they are reached.
 * Its counters are its own; the counter that the stages increased is the answer, as it would be
 * among the live ones.
 */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Waddress-of-packed-member"

#include <errno.h>
#include <stdlib.h>

#include "packet/explain/dp_explain.h"
#include "packet/dataplane/sim_stages.h"

/* Each try is at a time when something ends; a packet meets fewer such things than these. */
#define WAIT_TRIES 256

#define FRAME_PAD 2

struct explain {
	struct dp_sim sim;
	struct dp *dp;
	struct explain_copy *copy;
	u64 now_ns;
	u64 *leases; /* a bucket state for each CPU, for meter_leased() */
	/* Two bytes in front put the IP header on a multiple of four, as a driver does. */
	_Alignas(4) u8 frame[FRAME_PAD + EXPLAIN_FRAME_MAX];
};

int explain_new(struct dp *dp, const struct sl_image *image, u64 mono_ns, struct explain **ret,
		struct sl_err *err)
{
	struct explain *e = calloc(1, sizeof(*e));
	struct dp_sim *s;

	if (!e)
		return sl_err_set(err, ENOMEM, "out of memory");
	s = &e->sim;
	e->dp = dp;
	e->now_ns = mono_ns;
	s->cpus = dp->cpus;
	s->cpu = calloc(s->cpus, sizeof(*s->cpu));
	e->leases = calloc(s->cpus, sizeof(u64));
	e->copy = s->copy = explain_copy_new(dp);
	s->live = dp;
	s->ban_filter = *dp->ban_filter;
	s->push_now = *dp->push_now;
	s->push_now.flags &= ~SL_PUSH_WATCH;
	if (!s->cpu || !e->leases || !e->copy) {
		explain_free(e);
		return sl_err_set(err, ENOMEM, "out of memory");
	}
	s->sets = dp->table_sets;
	s->state = *dp->state;
	s->elastic = dp->elastic;
	/* Read only: the stages get all of these as pointers to const. */
	s->rules[0] = image->rules;
	s->prefixes[image->rules->pfx_slot] = (struct sim_prefixes){
		.v4_top = image->v4_top,
		.v4_line = image->v4_line,
		.v4_lines = image->v4_lines,
		.bucket = image->bucket,
		.overrides = image->overrides->bucket,
		.pclass = image->pclass,
		.pclass_count = image->pclass_count,
	};
	*ret = e;
	return 0;
}

void explain_free(struct explain *e)
{
	if (!e)
		return;
	explain_copy_free(e->copy);
	free(e->leases);
	free(e->sim.cpu);
	free(e);
}

void explain_set_link(struct explain *e, u32 iface_slot, enum sl_link link)
{
	e->sim.link[iface_slot % SL_IFACES_MAX] = link;
}

/* ------------------------------------------------------------------ running the stages */

/* Everything as it is live, for the next run on a CPU at a time. */
static int begin(struct explain *e, const struct explain_packet *packet, u32 cpu, u64 at_ns,
		 struct sim_frame *ret, struct sl_err *err)
{
	u32 length = explain_frame_length(packet), skipped = 0;

	if (cpu >= e->sim.cpus)
		return sl_err_set(err, EINVAL, "CPU %u of %u", cpu, e->sim.cpus);
	if (packet->length < explain_min_length(packet) || packet->length > EXPLAIN_LENGTH_MAX)
		return sl_err_set(err, EINVAL, "a length of %u bytes; such a packet has %u to %d",
				  packet->length, explain_min_length(packet), EXPLAIN_LENGTH_MAX);
	explain_frame(packet, e->frame + FRAME_PAD);
	explain_copy_rewind(e->copy);
	e->sim.mono_ns = at_ns;
	sim = &e->sim;
	sim_cpu = &e->sim.cpu[cpu];
	sim_iface = packet->interface;
	memset(sim_cpu, 0, sizeof(*sim_cpu));
	if (env_link() == SL_LINK_IP)
		skipped = explain_link_length(packet);
	*ret = (struct sim_frame){ .data = e->frame + FRAME_PAD + skipped,
				   .length = length - skipped,
				   .linear = length - skipped };
	return 0;
}

/* The answer is the program's only if all that it read was there. */
static int end(struct explain *e, struct sl_err *err)
{
	struct sl_global_stats stats = sim_cpu->global;

	if (explain_copy_failed(e->copy))
		return sl_err_set(err, ENOMEM,
				  "out of memory for the buckets that the packet reaches");
	for (u32 i = 0; i < SL_ME_COUNT; i++)
		if (stats.errors[i] && i != SL_ME_META_ADJUST && i != SL_ME_TAG_STORE)
			return sl_err_set(err, EIO, "the rule set misses a part of itself");
	return 0;
}

/* Without a default: the compiler names a reason that is missing here. */
static u8 step_of(enum sl_reason reason)
{
	switch (reason) {
	case SL_R_ARP:
	case SL_R_ND:
	case SL_R_ESSENTIAL_OVER:
		return 1;
	case SL_R_SESSION:
		return 2;
	case SL_R_EXEMPT:
		return 3;
	case SL_R_FAILSAFE:
	case SL_R_FAILSAFE_OVER:
		return 4;
	case SL_R_BLOCK:
		return 5;
	case SL_R_BAN:
	case SL_R_PUSH_LIMIT:
	case SL_R_PUSH_TAG:
	case SL_R_PUSH_NO_NEW:
	case SL_R_PUSH_DROP:
		return 6;
	case SL_R_NO_MATCH:
	case SL_R_WITHIN:
	case SL_R_OVER:
	case SL_R_SOFT:
	case SL_R_TABLE_FULL:
	case SL_R_CONTENDED:
	case SL_R_TOO_MANY_LIMITS:
	case SL_R_FRAGMENT:
	case SL_R_PATH_MTU:
	case SL_R_PATH_MTU_OVER:
	case SL_R_MATCH:
		return 7;
	case SL_R_NOT_IP:
	case SL_R_VLAN_DEPTH:
	case SL_R_TRUNCATED:
	case SL_R_MALFORMED:
	case SL_R_EXTHDR:
	case SL_R_NO_RULES:
	case SL_R_COUNT:
		break;
	}
	return 0;
}

/* The limit whose counter of drops went up; without a rate, that of passes or tags. */
static u16 deciding_limit(const struct sl_rules *rules, const struct explain_result *result)
{
	for (u32 slot = 1; slot < SL_LIMIT_IDS; slot++) {
		const u64 *packets = sim_cpu->limit[slot].packets;
		u16 index = rules->limit_of_id[slot];
		bool by_match = index < SL_LIMITS_MAX && rules->limits[index].by_match;

		if (packets[SL_LV_DROP] ||
		    (result->reason == SL_R_MATCH && by_match &&
		     packets[result->action == SL_ACT_TAG ? SL_LV_TAG : SL_LV_PASS]))
			return index;
	}
	return SL_NO_LIMIT;
}

static int ask_at(struct explain *e, const struct explain_packet *packet, u32 cpu, u64 at_ns,
		  struct explain_result *ret, struct sl_err *err)
{
	const struct sl_iface_stats *counted;
	struct sim_frame ctx;
	int rc = begin(e, packet, cpu, at_ns, &ctx, err);

	if (rc < 0)
		return rc;
	datapath(&ctx);
	rc = end(e, err);
	if (rc < 0)
		return rc;
	counted = &sim_cpu->iface[packet->interface % SL_IFACES_MAX];
	memset(ret, 0, sizeof(*ret));
	for (u32 reason = 0; reason < SL_R_COUNT; reason++) {
		for (u32 action = 0; action < SL_ACT_COUNT; action++) {
			if (!counted->packets[reason][action])
				continue;
			ret->reason = reason;
			ret->action = action;
		}
	}
	ret->step = step_of(ret->reason);
	ret->limit = deciding_limit(e->sim.rules[0], ret);
	if (ret->action == SL_ACT_TAG) {
		ret->tag = env_evaluation()->pkt.tag;
		ret->dscp = env_evaluation()->pkt.dscp;
		ret->mark = env_evaluation()->pkt.mark;
	}
	return 0;
}

int explain_run(struct explain *e, const struct explain_packet *packet, u32 cpu,
		struct explain_result *ret, struct sl_err *err)
{
	return ask_at(e, packet, cpu, e->now_ns, ret, err);
}

/* ------------------------------------------------------------------ limits and their meters */

/* The bucket state of a key in the copies, also of one that was evicted; 0 where there is none. */
static u64 state_of(const struct packet *pkt, u64 key, const struct sl_params *params)
{
	const struct sl_way *way = table_find(key, NULL);
	u64 left_ns = way ? 0 : table_recorded(pkt, key);

	if (way)
		return way->bucket_state;
	return left_ns ? sl_spent(params, pkt->now, left_ns) : 0;
}

/* Units that CPUs hold of a key and have not spent. */
static u64 meter_leased(struct explain *e, const struct sl_limit *meter,
			const struct evaluation *ev)
{
	const struct sl_rules *rules = e->sim.rules[0];
	u32 batch = meter ? lease_batch(rules, meter, ev) : 0;
	u64 sum = 0;

	if (!batch || e->dp->ops->lease(e->dp, ev->meter.key, e->leases) < 0)
		return 0;
	for (u32 cpu = 0; cpu < e->sim.cpus && cpu < rules->lease_cpus; cpu++)
		sum += lease_units(meter_params(meter, ev), &ev->pkt, e->leases[cpu],
				   lease_tag(ev->meter.key, meter), batch);
	return sum;
}

/* The step of all link-local sources' bucket, where there is one; leaves the source's own
 * prepared. */
static struct sl_result link_step(struct evaluation *ev, const struct sl_limit *meter, u32 index,
				  struct sl_result step)
{
	if (!charge_link(sim->rules[0], ev, index))
		return step;
	step = sl_step(state_of(&ev->pkt, ev->meter.key, meter_params(meter, ev)),
		       meter_params(meter, ev), ev->pkt.now, ev->meter.cost);
	charge_prepare(sim->rules[0], ev, index);
	return step;
}

static void explain_one_meter(struct explain *e, struct evaluation *ev, u32 index, u32 role,
			      struct explain_limit *ret)
{
	const struct sl_rules *rules = e->sim.rules[0];
	const struct sl_limit *meter = limit_at(rules, index);
	struct explain_meter *out = &ret->meter[ret->meter_count];
	const struct sl_params *params;
	struct sl_result step;
	u64 bucket_state;

	if (!meter || meter->by_match || ret->meter_count == EXPLAIN_METERS_MAX ||
	    meter->prefix[ev->pkt.family & 1] == SL_PREFIX_NONE)
		return;
	charge_prepare(rules, ev, index);
	/* A source with rates of its own does not count at wider steps of the prefix hierarchy. */
	if (!ev->meter.cost)
		return;
	ret->meter_count++;
	clock_read(&ev->pkt);
	params = meter_params(meter, ev);
	bucket_state = state_of(&ev->pkt, ev->meter.key, params);
	step = sl_step(bucket_state, params, ev->pkt.now, ev->meter.cost);
	if (step.verdict == SL_PASS)
		step = link_step(ev, meter, index, step);
	*out = (struct explain_meter){
		.meter = index,
		.role = role,
		.over = step.verdict == SL_OVER,
		.overridden = ev->meter.own_rates,
		.key = ev->meter.key,
		.cost = ev->meter.cost,
		.used = sl_used(bucket_state, params, ev->pkt.now),
		.capacity = params->capacity,
		.leased = meter_leased(e, charge_meter(rules, ev, index), ev),
		.wait_ns = step.verdict == SL_OVER ? step.wait_ns : 0,
	};
	if (out->used > out->capacity)
		out->used = out->capacity;
}

/* The bucket state that counts the drops of a limit that bans, as ban_prepare() finds it. */
static void explain_trigger(struct explain *e, struct evaluation *ev, struct explain_limit *ret)
{
	const struct sl_rules *rules = e->sim.rules[0];
	u32 ban = rules->limits[ret->index].ban, refusing = 0;
	const struct sl_limit *meter, *trigger;
	struct explain_meter *out = &ret->meter[ret->meter_count];
	struct sl_result step;
	u64 bucket_state;
	u32 len;

	if (ban >= SL_LIMITS_MAX || !ret->meter_count || ret->meter_count == EXPLAIN_METERS_MAX)
		return;
	while (refusing + 1 < ret->meter_count && !ret->meter[refusing].over)
		refusing++;
	meter = limit_at(rules, ret->meter[ret->meter[refusing].over ? refusing : 0].meter);
	trigger = limit_at(rules, rules->ban[ban].trigger);
	len = meter ? meter->prefix[ev->pkt.family & 1] : SL_PREFIX_NONE;
	if (!trigger || len == SL_PREFIX_NONE || sl_link_own(meter, ev->pkt.family, ev->pkt.src))
		return;
	ret->meter_count++;
	*out = (struct explain_meter){ .meter = rules->ban[ban].trigger,
				       .role = EXPLAIN_METER_BAN,
				       .cost = 1,
				       .capacity = trigger->params.capacity };
	out->key = sl_ban_trigger_key(rules, trigger, sl_addr_mask(ev->pkt.src, len),
				      ev->pkt.family, len);
	bucket_state = state_of(&ev->pkt, out->key, &trigger->params);
	step = sl_step(bucket_state, &trigger->params, ev->pkt.now, 1);
	out->over = step.verdict == SL_OVER;
	out->wait_ns = out->over ? step.wait_ns : 0;
	out->used = sl_used(bucket_state, &trigger->params, ev->pkt.now);
}

/* The limit's own meters in the order of their charge, each with what may stand in for it. */
static void explain_meters(struct explain *e, struct evaluation *ev, struct explain_limit *ret)
{
	const struct sl_limit *meter, *soft;
	u32 index = ret->index;

	for (u32 i = 0; i < EXPLAIN_METERS_MAX; i++) {
		meter = limit_at(e->sim.rules[0], index);
		if (!meter || meter->counter)
			return;
		explain_one_meter(e, ev, index, EXPLAIN_METER_LIMIT, ret);
		soft = limit_at(e->sim.rules[0], meter->soft);
		if (soft) {
			explain_one_meter(e, ev, meter->soft, EXPLAIN_METER_SOFT, ret);
			explain_one_meter(e, ev, soft->next, EXPLAIN_METER_GRACE, ret);
		}
		index = meter->next;
	}
}

/* Parses, and leaves in ev->match the limits that match. False: limits see no such packet. */
static bool match_limits(const struct sl_rules *rules, struct sim_frame *ctx, struct evaluation *ev)
{
	const struct sl_pclass *src = NULL;

	packet_reset(&ev->pkt);
	if (parse(ctx, &ev->pkt) != PARSED_IP ||
	    (is_neighbour_discovery(&ev->pkt) && !is_type_named(rules, ev->pkt.icmp_type)))
		return false;
	if (rules->dims & SL_DIMS_P(SL_PDIM_SRC))
		src = classify_class(rules, classify_prefix(rules, &ev->pkt, SL_PDIM_SRC));
	if ((ev->pkt.flags & PKT_FRAGMENT) && rules->fragments != SL_FRAG_LIMIT)
		return false;
	classify(rules, ev, src);
	if (is_path_mtu(&ev->pkt) || is_neighbour_discovery(&ev->pkt))
		limits_of_type(rules, ev);
	if (rules->by_match)
		match_decide(rules, ev);
	return true;
}

/* A limit's verdict on the packet were it the only one: the counter that it increases. */
static int limit_says(struct explain *e, const struct explain_packet *packet, u32 cpu,
		      struct explain_limit *ret, struct sl_err *err)
{
	const struct sl_rules *rules = e->sim.rules[0];
	const struct sl_limit_stats *stats = &sim_cpu->limit[rules->limits[ret->index].slot];
	struct evaluation *ev = env_evaluation();
	struct sim_frame ctx;
	int rc = begin(e, packet, cpu, e->now_ns, &ctx, err);

	if (rc < 0)
		return rc;
	match_limits(rules, &ctx, ev);
	memset(&ev->match, 0, sizeof(ev->match));
	ev->match.w[ret->index / 64] = SL_BIT(ret->index % 64);
	ret->counts = charge_cost(&rules->limits[ret->index], &ev->pkt) != 0;
	if (!ret->counts)
		return 0;
	if (account(rules, ev) == STAGE_JUMP)
		meters(&ctx, rules, ev);
	for (u32 verdict = 0; verdict < SL_LV_COUNT; verdict++)
		if (stats->packets[verdict])
			ret->verdict = verdict;
	explain_copy_rewind(e->copy);
	explain_meters(e, ev, ret);
	explain_trigger(e, ev, ret);
	return end(e, err);
}

int explain_limits(struct explain *e, const struct explain_packet *packet, u32 cpu,
		   struct explain_limit *ret, u32 room, struct sl_err *err)
{
	const struct sl_rules *rules = e->sim.rules[0];
	struct sl_bitmap match;
	struct sim_frame ctx;
	int rc = begin(e, packet, cpu, e->now_ns, &ctx, err);
	u32 count = 0;

	if (rc < 0)
		return rc;
	if (!match_limits(rules, &ctx, env_evaluation()))
		return 0;
	match = env_evaluation()->match;
	for (u32 i = 0; i < rules->limits_count && count < room; i++) {
		if (!(match.w[i / 64] & SL_BIT(i % 64)))
			continue;
		memset(&ret[count], 0, sizeof(ret[count]));
		ret[count].index = i;
		rc = limit_says(e, packet, cpu, &ret[count], err);
		if (rc < 0)
			return rc;
		count++;
	}
	return count;
}

/* ------------------------------------------------------------------ when it passes */

/* The soonest time after now_ns at which something that may refuse the packet ends; ~0 none. */
struct soonest {
	u64 now_ns, at_ns;
};

static void consider(struct soonest *s, u64 at_ns)
{
	if (at_ns > s->now_ns && at_ns < s->at_ns)
		s->at_ns = at_ns;
}

static void consider_meter(struct soonest *s, struct evaluation *ev, u32 index)
{
	const struct sl_limit *meter = limit_at(sim->rules[0], index);
	struct sl_result step;

	if (!meter || meter->by_match || meter->prefix[ev->pkt.family & 1] == SL_PREFIX_NONE)
		return;
	charge_prepare(sim->rules[0], ev, index);
	clock_read(&ev->pkt);
	step = sl_step(state_of(&ev->pkt, ev->meter.key, meter_params(meter, ev)),
		       meter_params(meter, ev), ev->pkt.now, ev->meter.cost);
	if (step.verdict == SL_PASS)
		step = link_step(ev, meter, index, step);
	if (step.verdict == SL_OVER && step.wait_ns != ~0ULL)
		consider(s, s->now_ns + step.wait_ns);
}

/* All the meters that a limit may use. */
static void consider_limit(struct soonest *s, struct evaluation *ev, u32 index)
{
	const struct sl_limit *meter, *soft;

	for (u32 i = 0; i < EXPLAIN_METERS_MAX; i++) {
		meter = limit_at(sim->rules[0], index);
		if (!meter || meter->counter)
			return;
		consider_meter(s, ev, index);
		consider_meter(s, ev, meter->full);
		soft = limit_at(sim->rules[0], meter->soft);
		if (soft) {
			consider_meter(s, ev, meter->soft);
			consider_meter(s, ev, soft->next);
		}
		index = meter->next;
	}
}

static void consider_lists(struct soonest *s, struct packet *pkt)
{
	const struct sl_pclass *src;
	u32 longest = pkt->family == SL_V4 ? 32 : 128;

	if (!(pkt->flags & PKT_ADDR))
		return;
	for (u32 len = 0; map_list_filter()->count && len <= longest; len++) {
		struct sl_list_key key = { sl_addr_mask(pkt->src, len), pkt->family, len };
		const struct sl_listed *listed = map_listed(&key);

		if (listed)
			consider(s, listed->block.until_ns);
	}
	if (!(sim->rules[0]->dims & SL_DIMS_P(SL_PDIM_SRC)))
		return;
	src = classify_class(sim->rules[0], classify_prefix(sim->rules[0], pkt, SL_PDIM_SRC));
	if (!src)
		return;
	consider(s, src->block_until);
	consider(s, src->wide_block_until);
}

static void consider_bans(struct soonest *s, const struct packet *pkt)
{
	const u8 *len = sim->rules[0]->ban_len[pkt->family & 1];

	for (u32 i = 0; i < SL_BAN_LENGTHS && len[i] != SL_PREFIX_NONE; i++) {
		struct sl_ban_key key = { sl_addr_mask(pkt->src, len[i]), pkt->family, len[i] };
		const struct sl_ban_state *ban = map_ban(&key);

		if (ban)
			consider(s, ban->until_ns);
	}
}

static void consider_pushes(struct soonest *s, struct packet *pkt)
{
	const u8 *len = sim->push_now.len[pkt->family & 1];

	for (u32 i = 0; i < SL_PUSH_LENGTHS; i++) {
		struct sl_push_key key = { sl_addr_mask(pkt->src, len[i]), pkt->family, len[i] };
		const struct sl_push *push = len[i] ? map_push(&key) : NULL;
		struct sl_result step;

		if (!push)
			continue;
		consider(s, push->until_ns);
		if (push->kind != SL_PUSH_LIMIT)
			continue;
		step = sl_gcra_step(push->bucket_state, &push->params, s->now_ns, 1);
		if (step.verdict == SL_OVER)
			consider(s, s->now_ns + step.wait_ns);
	}
}

/* ~0: it is never. */
static int next_change(struct explain *e, const struct explain_packet *packet, u32 cpu, u64 now_ns,
		       u64 *ret_ns, struct sl_err *err)
{
	struct soonest s = { .now_ns = now_ns, .at_ns = ~0ULL };
	struct evaluation *ev = env_evaluation();
	struct sl_bitmap match;
	struct sim_frame ctx;
	int rc = begin(e, packet, cpu, now_ns, &ctx, err);

	if (rc < 0)
		return rc;
	if (match_limits(e->sim.rules[0], &ctx, ev)) {
		match = ev->match;
		for (u32 i = 0; i < e->sim.rules[0]->limits_count; i++)
			if (match.w[i / 64] & SL_BIT(i % 64))
				consider_limit(&s, ev, i);
	}
	for (u32 i = SL_LIMITS_MAX; i < SL_METER_FURTHER; i++)
		consider_meter(&s, ev, i);
	consider_lists(&s, &ev->pkt);
	consider_bans(&s, &ev->pkt);
	consider_pushes(&s, &ev->pkt);
	*ret_ns = s.at_ns;
	return end(e, err);
}

/*
 * Runs the packet again at each time when a refusal ends, soonest first: the first at which the
 * packet passes is the answer, as nothing changes in its favor between them.
 */
int explain_wait(struct explain *e, const struct explain_packet *packet, u32 cpu, u64 *ret_ns,
		 struct sl_err *err)
{
	u64 at_ns = e->now_ns;

	for (u32 i = 0; i < WAIT_TRIES; i++) {
		struct explain_result answer;
		int rc = ask_at(e, packet, cpu, at_ns, &answer, err);

		if (!rc && answer.action == SL_ACT_DROP)
			rc = next_change(e, packet, cpu, at_ns, &at_ns, err);
		if (rc < 0)
			return rc;
		if (answer.action != SL_ACT_DROP || at_ns == ~0ULL)
			break;
	}
	*ret_ns = at_ns == ~0ULL ? ~0ULL : at_ns - e->now_ns;
	return 0;
}
