// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * decide_collect.c - descriptors of a request -> buckets.
 *
 * The key of a bucket is a keyed hash of:
 *
 *     the id of the rule (domain and path), each value, the name of the limit, the length in the
 *     prefix hierarchy, and the role of the state (the limit itself, its soft part, its grace,
 *     this node's own admissions of a limit of the cluster or of its soft part, or the ban of a
 * rule)
 *
 * Values are hashed with their lengths, so different lists of values never give the same bytes. If
 * the rule groups addresses, a value that is an address is hashed as its prefix; so "192.0.2.1" and
 * "::ffff:192.0.2.1" are one bucket, and so are all spellings of an IPv6 address.
 *
 * The rate is not in the key. A bucket state outlives the rate of its limit (counters_look()
 * converts it), and a user with a new override keeps their usage.
 *
 * Limits of the cluster use a seed that all nodes have, so their keys are the same on all nodes.
 * The hash of the parts before the name of the limit is their tag: limits of one key have one hash
 * slot.
 */
#include <string.h>

#include "lib/hash.h"
#include "lib/publish.h"
#include "request/engine/decide_private.h"
#include "request/engine/request_rules.h"
#include "request/rules/request_text.h"
#include "request/rules/override_value.h"

/* Roles of bucket states, and tags of the parts of a key. */
enum { ROLE_LIMIT, ROLE_SOFT, ROLE_GRACE, ROLE_OWN, ROLE_TAG, ROLE_BAN, ROLE_SOFT_OWN };
enum { TAG_BYTES = 1, TAG_ADDRESS, TAG_OWN_LIMIT };

struct level {
	struct sl_sip sip; /* with rule and values */
	u32 scale;
	u8 prefix_len; /* 0: no address in it */
};

/* ------------------------------------------------------------------ keys */

static void add_bytes(struct sl_sip *sip, struct bytes bytes)
{
	size_t at = 0;
	u64 word;

	sl_sip_add(sip, (u64)bytes.len << 8 | TAG_BYTES);
	for (; at + sizeof(word) <= bytes.len; at += sizeof(word)) {
		memcpy(&word, bytes.at + at, sizeof(word));
		sl_sip_add(sip, word);
	}
	if (at < bytes.len)
		sl_sip_add(sip, hash_tail(bytes.at + at, bytes.len - at));
}

static void add_address(struct sl_sip *sip, struct sl_addr addr, u8 family, u8 len)
{
	addr = sl_addr_mask(addr, len);
	sl_sip_add(sip, (u64)len << 16 | family << 8 | TAG_ADDRESS);
	sl_sip_add(sip, addr.hi);
	sl_sip_add(sip, addr.lo);
}

static u64 key_of(struct sl_sip sip, u32 level, u32 role)
{
	u64 key;

	sl_sip_add(&sip, (u64)level << 8 | role);
	key = sl_sip_finish(&sip);
	return key ? key : 1;
}

u64 decide_ban_key(struct sl_sip sip)
{
	return key_of(sip, 0, ROLE_BAN);
}

static u32 least_u32(u32 a, u32 b)
{
	return a < b ? a : b;
}

/* The hash of rule and values at each length of the prefix hierarchy; returns their number. */
static u32 levels_of(struct sl_seed seed, const struct rule *rule, const struct rule_match *match,
		     struct level *ret)
{
	struct {
		struct sl_addr addr;
		u8 family;
		bool is;
	} address[REQUEST_ENTRIES_MAX];
	u32 levels = 1;
	u8 family = SL_V4;
	bool any = false;

	for (u32 i = 0; i < match->count; i++) {
		address[i].is =
			(rule->prefix.count[SL_V4] || rule->prefix.count[SL_V6]) &&
			value_address(match->value[i], &address[i].addr, &address[i].family) &&
			rule->prefix.count[address[i].family];
		if (!address[i].is)
			continue;
		if (!any || rule->prefix.count[address[i].family] > levels)
			family = address[i].family;
		any = true;
		levels = rule->prefix.count[family];
	}
	for (u32 level = 0; level < levels; level++) {
		struct level *l = &ret[level];

		sl_sip_start(&l->sip, seed);
		sl_sip_add(&l->sip, rule->id);
		for (u32 i = 0; i < match->count; i++) {
			u32 last = address[i].is ? rule->prefix.count[address[i].family] - 1 : 0;

			if (match->entry)
				add_bytes(&l->sip, match->entry[i].key);
			if (address[i].is)
				add_address(&l->sip, address[i].addr, address[i].family,
					    rule->prefix.len[address[i].family]
							    [least_u32(level, last)]);
			else
				add_bytes(&l->sip, rule_value(rule, i, match->value[i]));
		}
		l->scale = any ? rule->prefix.scale[family][level] : 1;
		l->prefix_len = any ? rule->prefix.len[family][level] : 0;
	}
	return levels;
}

/* ------------------------------------------------------------------ buckets */

struct counters_ref *decide_add_ref(struct decision *d, u64 key)
{
	struct counters_ref *ref = &d->ref[d->ref_count++];

	/* Prefetches the sets while the next key is computed. */
	counters_prefetch(d->counters, key);
	ref->key = key;
	memset(&ref->def, 0, sizeof(ref->def));
	ref->caller = 0;
	return ref;
}

/* The bucket that the request already has for the key, or NULL. */
static struct bucket *bucket_is_known(struct decision *d, u64 key, u32 *ret_index)
{
	for (u32 i = 0; i < d->bucket_count; i++) {
		if (d->ref[d->bucket[i].ref].key != key)
			continue;
		*ret_index = i;
		return &d->bucket[i];
	}
	return NULL;
}

static void charge(struct bucket *b, const struct request_descriptor *descriptor, bool report)
{
	u64 hits = descriptor ? descriptor->hits : 0;

	if (hits > REQUEST_HITS_MAX) {
		hits = REQUEST_HITS_MAX;
		b->beyond |= !report;
	}
	if (descriptor && descriptor->refund)
		b->refund += hits;
	else
		b->cost += hits;
}

static struct bucket *add_bucket(struct decision *d, struct part *part, u64 key, bool candidate,
				 const struct request_descriptor *descriptor)
{
	u16 *number =
		candidate ? &part->candidate[part->candidates++] : &part->bucket[part->count++];
	u32 index;
	struct bucket *b = bucket_is_known(d, key, &index);

	d->candidates |= candidate;
	if (b) {
		*number = index;
		charge(b, descriptor, d->request->report);
		return NULL;
	}
	*number = d->bucket_count;
	b = &d->bucket[d->bucket_count++];
	memset(b, 0, offsetof(struct bucket, view));
	b->view.spec = NULL;
	b->rule = part->rule;
	b->candidate = candidate;
	b->ref = d->ref_count;
	b->refs = 1;
	charge(b, descriptor, d->request->report);
	decide_add_ref(d, key);
	return b;
}

static bool is_cluster_scope(const struct decision *d, const struct rule_limit *limit)
{
	return limit->terms.cluster && d->quotas;
}

static enum sl_algo algorithm_of(const struct rule_limit *limit)
{
	return algorithm_anchored(limit->terms.algorithm, limit->terms.first_request);
}

/* Only requests that do not know yet that the time has begun are counted: few of each node. */
#define BEGINS_MAX SL_BIT(16)

/*
 * `for`: on this node a time (include/sluice/algo_grace.h). Redis has windows only: one that begins
 * with the first request of the excess and lasts twice as long, and admits in its first half.
 */
static void add_grace(struct decision *d, struct bucket *b, u64 for_ns, struct sl_sip sip,
		      u32 level)
{
	struct counters_ref *ref = decide_add_ref(d, key_of(sip, level, ROLE_GRACE));

	ref->def.period_ns = b->cluster ? 2 * for_ns : for_ns;
	ref->def.count = b->cluster ? BEGINS_MAX : 0;
	ref->def.buckets = b->cluster ? 2 : 0;
	ref->def.scale = 1;
	ref->def.ceiling_percent = 100;
	ref->def.algo = b->cluster ? SL_ALGO_FIRST_REQUEST : SL_ALGO_GRACE;
	b->grace_ref = b->refs++;
}

static void add_own(struct decision *d, struct bucket *b, struct sl_sip sip, u32 level, u32 role)
{
	if (!b->has_own)
		return;
	decide_add_ref(d, key_of(sip, level, role));
	b->refs++;
}

static void add_soft(struct decision *d, struct bucket *b, const struct throttle_def *throttle,
		     struct sl_sip sip, u32 level)
{
	struct counters_ref *ref = decide_add_ref(d, key_of(sip, level, ROLE_SOFT));

	ref->def = d->ref[b->ref].def;
	ref->def.soft_permille = throttle->soft_permille;
	b->soft_ref = b->refs++;
	add_own(d, b, sip, level, ROLE_SOFT_OWN);
	if (throttle->soft_for_ns)
		add_grace(d, b, throttle->soft_for_ns, sip, level);
}

/* A sliding log has only this node's own requests, as the times of the others are unknown. */
static void add_cluster(struct decision *d, struct bucket *b, struct sl_sip sip, struct sl_sip tag,
			u32 level)
{
	d->cluster_count++;
	b->cluster = true;
	b->tag = key_of(tag, level, ROLE_TAG);
	/* What a candidate admits while Redis is unavailable is no admission. */
	b->has_own = !algorithm_is_log(d->ref[b->ref].def.algo) && !b->candidate;
	add_own(d, b, sip, level, ROLE_OWN);
}

/* Rounded down, at least one. */
static u64 times(u64 count, u32 scale)
{
	u64 scaled = (unsigned __int128)count * scale / SL_ELASTIC_ONE;

	return scaled ? scaled : 1;
}

/*
 * An elastic limit of the cluster: this node charges at the rate of its own scale, as after a live
 * change. The script keeps the used part of a bucket and the count of a window, so that all nodes
 * together admit no more than the limit at the largest of their scales.
 */
static void scale_def(const struct decision *d, const struct rule_limit *limit,
		      struct spec_def *def)
{
	u32 scale = decide_scale(d, limit);

	if (!scale || scale == SL_ELASTIC_ONE)
		return;
	def->count = times(def->count, scale);
	if (def->burst)
		def->burst = times(def->burst, scale);
}

static void add_limit(struct decision *d, struct part *part, const struct rule_limit *limit,
		      const struct level *l, u32 level, bool prefix_hierarchy,
		      const struct request_descriptor *descriptor)
{
	struct sl_sip sip = l->sip;
	struct spec_def *def;
	struct bucket *b;

	add_bytes(&sip, (struct bytes){ limit->name, strlen(limit->name) });
	b = add_bucket(d, part, key_of(sip, level, ROLE_LIMIT), limit->mode == SL_MODE_SHADOW,
		       descriptor);
	if (!b)
		return;
	b->limit = limit;
	b->none = limit->none;
	b->debt = limit->terms.count == COUNT_DEBT;
	b->in_flight = limit->terms.algorithm == SL_ALGO_CONCURRENCY;
	d->debts |= b->debt;
	b->prefix_len = prefix_hierarchy ? l->prefix_len : 0;
	def = &d->ref[b->ref].def;
	def->count = limit->none ? 1 : limit->terms.rates.rate[0].count;
	def->period_ns = limit->terms.rates.rate[0].period_ns;
	if (limit->terms.calendar) {
		def->period_ns = limit->terms.calendar->window_ns;
		def->calendar = limit->terms.calendar->id;
	}
	def->burst = limit->none ? 0 : limit->terms.rates.burst[0];
	def->scale = l->scale;
	def->ceiling_percent = limit->terms.throttle.kind == THROTTLE_ELASTIC
				       ? limit->terms.throttle.ceiling_percent
				       : 100;
	def->algo = algorithm_of(limit);
	def->buckets = limit->terms.buckets;
	def->round_up = limit->terms.round_up;
	if (is_cluster_scope(d, limit) && !limit->none)
		scale_def(d, limit, def);
	if (is_cluster_scope(d, limit) && !limit->none)
		add_cluster(d, b, sip, l->sip, level);
	if (limit->terms.throttle.kind == THROTTLE_SOFT && !limit->none)
		add_soft(d, b, &limit->terms.throttle, sip, level);
}

static void add_rule(struct decision *d, struct part *part, const struct rule_match *match,
		     const struct request_descriptor *descriptor)
{
	const struct rule *rule = match->rule;
	const struct rule_limit *limit = rule->limit;
	const struct override_limits *own = NULL;
	struct level level[2][PREFIX_HIERARCHY_MAX]; /* with this node's seed, with the cluster's */
	u32 limits = rule->limit_count, levels = 0, cluster_limits = 0, enforced = 0;
	bool cluster_ban = false;

	if (publish_get(&rule->overrides) && match->count)
		own = override_value_find(rule, match->value);
	if (own) {
		limit = own->limit;
		limits = own->limit_count;
	}
	part->unlimited = own ? own->unlimited : rule->unlimited;
	if (part->unlimited || !limits)
		return;
	for (u32 k = 0; k < limits; k++) {
		bool counts = limit[k].mode == SL_MODE_ENFORCE;

		cluster_limits += is_cluster_scope(d, &limit[k]);
		cluster_ban |= counts && is_cluster_scope(d, &limit[k]);
		enforced += counts;
	}
	if (cluster_limits < limits)
		levels = levels_of(d->counters->seed, rule, match, level[0]);
	if (cluster_limits)
		levels = levels_of(d->counters->cluster_seed, rule, match, level[1]);
	/*
	 * An override applies to the narrowest prefix only: the wider ones have other addresses,
	 * too.
	 */
	for (u32 i = 0; i < (own ? 1 : levels); i++)
		for (u32 k = 0; k < limits; k++)
			add_limit(d, part, &limit[k], &level[is_cluster_scope(d, &limit[k])][i], i,
				  levels > 1, descriptor);
	part->narrow = (u8)enforced;
	if (rule->ban.after)
		decide_ban_collect(d, part, level[cluster_ban][0].sip, cluster_ban);
}

/* ------------------------------------------------------------------ limits in the request */

/* Envoy sends them, and they are in the queries of a proxy's administrator; others need the
 * right. */
static bool brings_limit(const struct request *request, const struct request_descriptor *descriptor)
{
	return descriptor->limit_unit != REQUEST_UNIT_UNKNOWN &&
	       (request->api == API_GRPC || request->api == API_JSON || request->api == API_NGINX ||
		request->api == API_FORWARD_AUTH || (request->rights & MAY_OVERRIDE));
}

/*
 * It counts per domain, entries and unit: a fixed window, as in envoyproxy/ratelimit. A rule that
 * matches stays its rule, for all but its limits.
 */
static void add_own_limit(struct decision *d, struct part *part, struct bytes domain,
			  const struct request_descriptor *descriptor)
{
	struct spec_def *def;
	struct sl_sip sip;
	struct bucket *b;

	sl_sip_start(&sip, d->counters->seed);
	sl_sip_add(&sip, TAG_OWN_LIMIT | (u64)descriptor->limit_unit << 8);
	add_bytes(&sip, domain);
	for (u32 i = 0; i < descriptor->count; i++) {
		add_bytes(&sip, descriptor->entry[i].key);
		add_bytes(&sip, descriptor->entry[i].value);
	}
	part->shadow = part->quota = part->unlimited = false;
	if (!part->rule && d->ledger->request_rules)
		part->rule = request_rule_of(d->ledger->request_rules, domain, descriptor);
	add_bucket(d, part, key_of(sip, 0, ROLE_LIMIT), false, descriptor);
	b = &d->bucket[part->bucket[0]];
	b->limit = part->rule && part->rule->index & REQUEST_RULE_BIT ? part->rule->limit : NULL;
	b->none |= !descriptor->limit_requests;
	def = &d->ref[b->ref].def;
	/* Of two for the same entries and unit both hold. */
	if (!def->count || descriptor->limit_requests < def->count)
		def->count = descriptor->limit_requests + !descriptor->limit_requests;
	d->ref[b->ref].caller = d->request->caller;
	def->period_ns =
		request_units[descriptor->limit_unit < REQUEST_UNIT_COUNT ? descriptor->limit_unit
									  : REQUEST_UNIT_SECOND]
			.ns;
	def->scale = 1;
	def->ceiling_percent = 100;
	def->algo = SL_ALGO_FIXED_WINDOW;
}

/* ------------------------------------------------------------------ a whole request */

static bool replaces(const struct rule *by, const struct rule *rule)
{
	for (u32 i = 0; by && rule->name && i < by->replaces_count; i++)
		if (!strcmp(by->replaces[i], rule->name))
			return true;
	return false;
}

/*
 * A rule that a limit in the request overrides replaces no other rule, and an unlimited one cannot
 * be replaced: as in envoyproxy/ratelimit.
 */
static bool is_replaced(const struct request *request, const struct rule_match *match,
			const struct rule *rule)
{
	for (u32 i = 0; rule->name && !rule->unlimited && i < request->count; i++)
		if (match[i].rule && match[i].rule != rule && replaces(match[i].rule, rule) &&
		    !brings_limit(request, &request->descriptor[i]))
			return true;
	return false;
}

static void part_init(struct part *part, const struct rule *rule)
{
	part->rule = rule;
	part->unlimited = false;
	part->shadow = rule && rule->shadow;
	/* A rule without a limit has no quota, as in envoyproxy/ratelimit. */
	part->quota = rule && rule->quota_mode && !rule->unlimited;
	part->over = part->ban_began = false;
	part->ban_ref = 0;
	part->count = part->narrow = part->candidates = 0;
}

/* Of all rules that state one. */
static enum priority lowest_priority(const struct rule *domain, const struct rule_match *match,
				     u32 count)
{
	bool stated = domain && domain->has_priority;
	enum priority lowest = stated ? domain->priority : PRIORITY_CRITICAL;

	for (u32 i = 0; i < count; i++) {
		if (!match[i].rule || !match[i].rule->has_priority)
			continue;
		stated = true;
		if (match[i].rule->priority > lowest)
			lowest = match[i].rule->priority;
	}
	return stated ? lowest : PRIORITY_NORMAL;
}

void decide_collect_one(struct decision *d, const struct rule *rule, const struct rule_match *match)
{
	part_init(&d->part[0], rule);
	d->part_count = 1;
	d->priority = rule->has_priority ? rule->priority : PRIORITY_NORMAL;
	add_rule(d, &d->part[0], match, NULL);
}

void decide_collect_request(struct decision *d, const struct rule *rule,
			    struct request_descriptor *descriptor)
{
	part_init(&d->part[0], rule);
	d->part_count = 1;
	d->priority = PRIORITY_NORMAL;
	descriptor->hits = 0;
	descriptor->limit_unit = rule->unit;
	descriptor->limit_requests =
		__atomic_load_n(&rule->limit->terms.rates.rate[0].count, __ATOMIC_RELAXED);
	add_own_limit(d, &d->part[0], (struct bytes){ rule->domain, strlen(rule->domain) },
		      descriptor);
}

/*
 * The rule that every request of the domain meets, as one more part: it is charged once, the hits
 * of the descriptor that has the most. A report that only refunds is a refund.
 */
static void collect_domain(struct decision *d, const struct rule *rule,
			   const struct rule_match *match)
{
	struct part *part = &d->part[d->part_count++];
	struct request_descriptor all;
	bool refunds = d->request->count;

	for (u32 i = 0; i < d->request->count; i++)
		refunds &= d->request->descriptor[i].refund;
	all.count = 0;
	all.hits = !d->request->count;
	all.refund = refunds;
	for (u32 i = 0; i < d->request->count; i++) {
		const struct request_descriptor *one = &d->request->descriptor[i];

		if (one->refund == refunds && one->hits > all.hits)
			all.hits = one->hits;
	}
	d->has_domain = true;
	if (is_replaced(d->request, match, rule))
		rule = NULL;
	part_init(part, rule);
	if (rule)
		add_rule(d, part, &(struct rule_match){ .rule = rule }, &all);
}

void decide_collect(struct decision *d, const struct ruleset *rules)
{
	const struct request *request = d->request;
	const struct match_node *root = ruleset_domain(rules, request->domain);
	const struct rule *domain = ruleset_domain_rule(root);
	struct rule_match *match = d->match;

	d->part_count = request->count;
	for (u32 i = 0; i < request->count; i++)
		ruleset_match_in(rules, root, &request->descriptor[i], &match[i]);
	d->priority = lowest_priority(domain, match, request->count);
	for (u32 i = 0; i < request->count; i++) {
		const struct request_descriptor *descriptor = &request->descriptor[i];
		const struct rule *rule = match[i].rule;

		if (rule && is_replaced(request, match, rule))
			rule = NULL;
		part_init(&d->part[i], rule);
		if (brings_limit(request, descriptor))
			add_own_limit(d, &d->part[i], request->domain, descriptor);
		else if (rule)
			add_rule(d, &d->part[i], &match[i], descriptor);
	}
	if (domain)
		collect_domain(d, domain, match);
}
