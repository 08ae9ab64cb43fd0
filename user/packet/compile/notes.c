// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* notes.c - notes on a valid policy whose effect may surprise: `sluicectl check`. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "limiter/algorithm.h"
#include "config/cluster_def.h"
#include "config/model.h"
#include "lib/bitmap.h"
#include "lib/links.h"
#include "lib/units.h"
#include "packet/compile/compile.h"

struct notes {
	policy_note *add;
	void *arg;
};

static void note_error(struct notes *n, const struct limit_def *limit, u32 ppm)
{
	char text[160];

	if (!ppm)
		return;
	snprintf(text, sizeof(text),
		 "rounding changes its rate by up to %u.%04u %% (accepted: up "
		 "to 1 %%)",
		 ppm / 10000, ppm % 10000);
	n->add(n->arg, limit, text);
}

/* Notes a wider group with no higher limit than its parts: the limit of a part is never reached. */
static void note_prefix_hierarchy(struct notes *n, const struct limit_def *limit)
{
	char text[160];

	for (int family = 0; family < SL_FAMILY_COUNT; family++) {
		const u32 *scale = limit->prefix.scale[family];
		const u8 *prefix = limit->prefix.len[family];

		for (u8 i = 1; i < limit->prefix.count[family]; i++) {
			if (scale[i] > scale[i - 1])
				continue;
			snprintf(text, sizeof(text),
				 "a whole /%u has no higher limit than each /%u in it; set "
				 "prefix_scale.%s to give it a multiple",
				 prefix[i], prefix[i - 1], family == SL_V4 ? "ipv4" : "ipv6");
			n->add(n->arg, limit, text);
			break;
		}
	}
}

/* Sets of 100000 prefixes are not compared with each other. */
#define HIDING_MOST 4096

/* Notes a limit that meets no packet, since one without a rate before it decides about them all. */
static void note_hidden(struct notes *n, const struct policy *policy, size_t index)
{
	const struct limit_def *limit = &policy->limit[index];
	char text[160];

	for (size_t i = 0; i < index; i++) {
		const struct limit_def *before = &policy->limit[i];

		if (before->terms.rates.count || before->mode != SL_MODE_ENFORCE ||
		    before->action == SL_ACT_TAG || limit->mode == SL_MODE_OFF ||
		    before->match.src_count + before->match.dst_count > HIDING_MOST ||
		    limit->match.src_count + limit->match.dst_count > HIDING_MOST ||
		    !match_covers(&before->match, &limit->match))
			continue;
		snprintf(text, sizeof(text),
			 "no packet meets it: '%.63s' before it %s all that it matches",
			 before->name, before->action == SL_ACT_DROP ? "drops" : "passes");
		n->add(n->arg, limit, text);
		return;
	}
}

/* Notes a pass after which there is no limit that it could keep packets from. */
static void note_last_pass(struct notes *n, const struct policy *policy, size_t index)
{
	const struct limit_def *limit = &policy->limit[index];
	const char *before = NULL; /* the first that matches all of its packets, else the first */
	bool covers = false;
	char text[224];

	if (limit->terms.rates.count || limit->action != SL_ACT_PASS ||
	    limit->mode != SL_MODE_ENFORCE)
		return;
	for (size_t i = 0; i < policy->limit_count; i++) {
		if (i == index || policy->limit[i].mode == SL_MODE_OFF)
			continue;
		if (i > index)
			return;
		if (covers)
			continue;
		covers = match_covers(&policy->limit[i].match, &limit->match);
		if (!before || covers)
			before = policy->limit[i].name;
	}
	snprintf(text, sizeof(text),
		 "it has no effect: a pass keeps packets from the limits after it, and there "
		 "is none%s%.63s%s",
		 before ? ": put it before '" : "", before ? before : "",
		 before ? "' in the file" : "");
	n->add(n->arg, limit, text);
}

void policy_order_notes(const struct policy *policy, size_t from, policy_note *add, void *arg)
{
	struct notes n = { add, arg };

	for (size_t i = from; i < policy->limit_count; i++) {
		note_hidden(&n, policy, i);
		note_last_pass(&n, policy, i);
	}
}

/* The worst rate of a limit. `meter` is its head; the meters of the first step come first. */
static u32 worst_error(const struct limit_def *limit, const struct sl_rules *rules,
		       const struct sl_limit *meter)
{
	u32 worst = 0;

	/*
	 * The multipliers of a prefix hierarchy scale rate and capacity alike: the first step is
	 * worst.
	 */
	for (u8 k = 0; k < limit->terms.rates.count; k++) {
		u32 ppm = params_error_ppm(&meter->params, &limit->terms.rates.rate[k]);

		worst = ppm > worst ? ppm : worst;
		if (meter->next < SL_METERS_MAX)
			meter = &rules->limits[meter->next];
	}
	return worst;
}

/* The usual frame size, assumed for the packets of limits in bytes. */
#define PRICE_FRAME 1514
#define PRICE_LOW_PPS 1e6

struct table_price table_price(u64 sets, const struct sl_limit *head)
{
	u64 each = head->params.capacity;
	struct table_price price = {
		.sources = (sets - sl_table_kept((u32)sets)) * (SL_RECORDS * SL_PRINTS + 1),
	};

	if (!(head->per & SL_PER_SOURCE) || head->mode == SL_MODE_OFF)
		return price;
	if (head->unit == SL_UNIT_BYTES)
		each = (each + PRICE_FRAME - 1) / PRICE_FRAME;
	price.packets = price.sources * (each + 1);
	price.within_ns = sl_is_bucket(&head->params) ? head->params.tau / SL_TICKS_PER_NS
						      : sl_window_full_ns(&head->params);
	price.is_low = price.packets < PRICE_LOW_PPS * ((double)price.within_ns / SL_NS_PER_SEC);
	return price;
}

static void note_price(struct notes *n, const struct limit_def *limit, u64 buckets,
		       const struct sl_limit *head)
{
	struct table_price price = table_price(SL_TABLE_SETS(buckets), head);
	char text[200], within[32];

	if (!price.packets || !price.is_low)
		return;
	snprintf(text, sizeof(text),
		 "%.3gM packets within %s, from %.3gM forged sources, fill the "
		 "table (table.buckets); then on_full applies to new sources",
		 (double)price.packets / 1e6,
		 duration_format(price.within_ns, within, sizeof(within)),
		 (double)price.sources / 1e6);
	n->add(n->arg, limit, text);
}

/* Notes what a set's file has that is not in force, and one that blocks more than set replace would
 * accept. */
static void note_set(struct notes *n, const struct policy *policy, const struct set_def *set)
{
	struct block_sum sum = { .shortest = { 0 } };
	char text[256];
	struct sl_err err;
	int r = 0;

	if (set->skipped) {
		snprintf(text, sizeof(text),
			 "set %s: skipped %zu of %zu lines of its file, the first is line %d",
			 set->name, set->skipped, set->lines, set->skipped_first);
		n->add(n->arg, NULL, text);
	}
	if (!list_find_set(&policy->list[LIST_BLOCK], set->name))
		return;
	for (size_t i = 0; i < set->count; i++)
		block_sum_add(&sum, &set->prefix[i]);
	block_sum_fit(&sum);
	for (size_t i = 0; !r && i < set->count; i++)
		r = block_sum_check(&sum, &set->prefix[i], &err);
	if (r < 0) {
		snprintf(text, sizeof(text),
			 "set %s: it is blocked, with more addresses than %d times a /8 "
			 "(IPv4) or a /16 (IPv6)",
			 set->name, BLOCK_SUM);
		n->add(n->arg, NULL, text);
	}
}

/* Limits that one packet may match, and their meters. */
struct together {
	u32 limits, meters;
};

/* `port` is 0 where the protocol has none. */
static void count_together(const struct policy *policy, const struct sl_rules *rules,
			   const struct sl_bitmap *of, enum sl_family family, u8 proto, u32 port,
			   struct together *most)
{
	const struct match_key *dport = &match_keys[MATCH_DPORT];
	struct together sum = { 0 };

	for (size_t i = 0; i < policy->limit_count; i++) {
		const struct match_def *match = &policy->limit[i].match;

		if (!bitmap_has(of, i) || !match_possible_proto(match, family, proto) ||
		    (match_count(match, dport) && !match_holds(match, dport, family, port)))
			continue;
		sum.limits++;
		for (u32 at = i; at < SL_METERS_MAX; at = rules->limits[at].next)
			sum.meters += rules->limits[at].prefix[family] != SL_PREFIX_NONE;
	}
	most->limits = sum.limits > most->limits ? sum.limits : most->limits;
	most->meters = sum.meters > most->meters ? sum.meters : most->meters;
}

/*
 * The most limits of `of` that family, protocol and destination port do not keep apart: a bound.
 * A packet may match fewer, because of addresses and other conditions, but not more. Ranges of
 * ports that share one share the first port of one of them.
 */
static struct together most_together(const struct policy *policy, const struct sl_rules *rules,
				     const struct sl_bitmap *of)
{
	struct together most = { 0 };

	for (int family = 0; family < SL_FAMILY_COUNT; family++) {
		struct sl_bitmap possible = *of;

		for (size_t i = 0; i < policy->limit_count; i++)
			if (!match_possible_family(&policy->limit[i].match, family))
				bitmap_put(&possible, i, false);
		for (u32 proto = 0; proto < 256; proto++) {
			count_together(policy, rules, &possible, family, proto, 0, &most);
			for (size_t i = 0; match_needs_met(MATCH_NEEDS_PORTS, family, proto) &&
					   i < policy->limit_count;
			     i++)
				for (size_t k = 0; k < policy->limit[i].match.dport_count; k++)
					count_together(policy, rules, &possible, family, proto,
						       policy->limit[i].match.dport[k].first,
						       &most);
		}
	}
	return most;
}

/* Notes more limits than a packet can be charged to: bpf/meters.h. */
static void note_together(struct notes *n, const struct policy *policy,
			  const struct sl_rules *rules)
{
	struct together all, dropping;
	struct sl_bitmap charged = rules->all;
	char text[300];

	/* What is dropped by its match alone is charged nowhere. */
	for (u32 i = 0; i < SL_BITMAP_WORDS; i++)
		charged.w[i] &= ~rules->refusing.w[i];
	all = most_together(policy, rules, &charged);
	if (all.limits <= SL_MATCHES_MAX && all.meters <= SL_CHARGES_MAX)
		return;
	dropping = most_together(policy, rules, &rules->dropping);
	if (dropping.limits > SL_MATCHES_MAX || dropping.meters > SL_CHARGES_MAX)
		snprintf(
			text, sizeof(text),
			"one packet may match up to %u limits that drop, with %u meters, which neither "
			"protocol nor dport keeps apart: it is charged to at most %d limits and %d meters, the "
			"first in the file, and the others do not limit it",
			dropping.limits, dropping.meters, SL_MATCHES_MAX, SL_CHARGES_MAX);
	else
		snprintf(
			text, sizeof(text),
			"one packet may match up to %u limits, with %u meters, which neither protocol nor "
			"dport keeps apart: it is charged to at most %d limits and %d meters, first of those that "
			"drop, and the last of the others do not count it",
			all.limits, all.meters, SL_MATCHES_MAX, SL_CHARGES_MAX);
	n->add(n->arg, NULL, text);
}

void policy_notes(const struct policy *policy, const struct sl_rules *rules, policy_note *add,
		  void *arg)
{
	struct notes n = { add, arg };

	if (!policy->interface_count && policy->limit_count)
		add(arg, NULL, "interfaces is empty: no packet meets its limits");
	if (policy->cluster && redis_tls_unused(&policy->cluster->redis))
		add(arg, NULL, REDIS_TLS_UNUSED);
	note_together(&n, policy, rules);
	for (size_t i = 0; i < policy->set_count; i++)
		note_set(&n, policy, &policy->set[i]);
	for (size_t i = 0; i < policy->limit_count; i++) {
		const struct limit_def *limit = &policy->limit[i];

		note_hidden(&n, policy, i);
		note_last_pass(&n, policy, i);
		if (!limit->terms.rates.count)
			continue;
		note_error(&n, limit, worst_error(limit, rules, &rules->limits[i]));
		note_prefix_hierarchy(&n, limit);
		note_price(&n, limit, policy->table_buckets, &rules->limits[i]);
		if (limit->terms.cluster && !policy->cluster)
			add(arg, limit,
			    "scope is cluster, but no cluster is configured: the limit "
			    "counts on this node alone");
	}
}

static bool limit_is_for(const struct limit_def *limit, const char *ifname)
{
	for (size_t i = 0; i < limit->match.interface_count; i++)
		if (!strcmp(limit->match.interface[i], ifname))
			return limit->mode != SL_MODE_OFF;
	return !limit->match.interface_count && limit->mode != SL_MODE_OFF;
}

static bool one_limit_for_both(const struct policy *policy, const char *a, const char *b)
{
	for (size_t i = 0; i < policy->limit_count; i++)
		if (limit_is_for(&policy->limit[i], a) && limit_is_for(&policy->limit[i], b))
			return true;
	return false;
}

static void note_stacked(const struct policy *policy, const struct links *links,
			 const struct link *upper, policy_link_note *add, void *arg)
{
	char text[160];

	for (size_t i = 0; i < policy->interface_count; i++) {
		const char *lower = policy->interface[i].name;
		const struct link *link = links_by_name(links, lower);

		if (!link || !links_is_above(links, upper->ifindex, link->ifindex) ||
		    !one_limit_for_both(policy, upper->name, lower))
			continue;
		snprintf(
			text, sizeof(text),
			"stands on %s: a packet through both is charged on each; configure one of them",
			lower);
		add(arg, upper->name, text);
	}
}

static void note_untagged(const struct policy *policy, const char *ifname, policy_link_note *add,
			  void *arg)
{
	char text[256];

	for (size_t i = 0; i < policy->limit_count; i++) {
		if (!policy->limit[i].match.vlan_count || !limit_is_for(&policy->limit[i], ifname))
			continue;
		snprintf(
			text, sizeof(text),
			"is a VLAN device, whose packets have lost its tag: vlan of limit \"%s\" matches none there, or a second tag",
			policy->limit[i].name);
		add(arg, ifname, text);
	}
}

void policy_link_notes(const struct policy *policy, const struct links *links,
		       policy_link_note *add, void *arg)
{
	for (size_t i = 0; i < policy->interface_count; i++) {
		const struct link *link = links_by_name(links, policy->interface[i].name);

		if (!link)
			continue;
		note_stacked(policy, links, link, add, arg);
		if (!strcmp(link->kind, "vlan"))
			note_untagged(policy, link->name, add, arg);
	}
}

/* Why a limit with accounting percpu has no leases; NULL: it has, or is to be counted exactly. */
static const char *exact_reason(const struct limit_def *limit, const struct sl_limit *head)
{
	const struct limit_terms *terms = &limit->terms;
	const char *words;

	if (!terms->rates.count || limit->accounting == ACCOUNTING_EXACT || head->lease)
		return NULL;
	words = params_percpu_note(algorithm_anchored(terms->algorithm, terms->first_request));
	if (words)
		return words;
	return terms->count == COUNT_ALL ? "refused packets count, which is not divided among CPUs"
					 : "it is too small to be divided among so many CPUs";
}

json_t *exact_limits(const struct policy *policy, const struct sl_rules *rules)
{
	json_t *groups = json_array();

	for (size_t i = 0; i < policy->limit_count; i++) {
		const char *why = exact_reason(&policy->limit[i], &rules->limits[i]);
		json_t *group = NULL;
		size_t at;

		if (!why)
			continue;
		json_array_foreach(groups, at, group)
			if (!strcmp(json_string_value(json_object_get(group, "why")), why))
				break;
		if (at == json_array_size(groups)) {
			group = json_pack("{s:s, s:[]}", "why", why, "limits");
			json_array_append_new(groups, group);
		}
		json_array_append_new(json_object_get(group, "limits"),
				      json_string(policy->limit[i].name));
	}
	return groups;
}
