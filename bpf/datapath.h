/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datapath.h - a packet's way, on one screen: parse, classify, account, verdict. It has two
 * halves, each a program, because of what a verifier takes: datapath() does what can be done
 * inline, which is all for most packets, and jumps to datapath_account() for the rest.
 *
 * The order of the steps is a promise to users (docs/packet-walk.md):
 *   1 ARP and genuine neighbour discovery pass, within `essential`
 *   2 the sessions of who was logged in at apply time pass
 *   3 exempt sources pass
 *   4 failsafe ports of this host pass, within failsafe_rate, unless narrowly blocked
 *   5 blocked sources are dropped
 *   6 banned sources are dropped, pushed-down ones held to what was pushed down
 *   7 limits
 */
#ifndef SLUICE_BPF_DATAPATH_H
#define SLUICE_BPF_DATAPATH_H

#include "bpf/parse.h"
#include "bpf/classify.h"
#include "bpf/session.h"
#include "bpf/push.h"
#include "bpf/rows.h"
#include "bpf/verdict.h"

#define ICMP_FRAG_NEEDED_TYPE 3
#define ICMP_FRAG_NEEDED_CODE 4
#define ICMPV6_PACKET_TOO_BIG 2
#define ND_FIRST 133	/* router solicitation */
#define ND_LAST 137	/* redirect */

static __always_inline u32 decide(struct packet *pkt, u32 action, u32 reason)
{
	pkt->reason = reason;
	return action;
}

/*
 * RFC 4861, 6.1 and 7.1: hop limit 255 proves a neighbour; anything else is forged. RFC 6980:
 * a fragment header, even of a packet in one piece, is not a neighbour's.
 */
static __always_inline int is_neighbour_discovery(const struct packet *pkt)
{
	return pkt->proto == PROTO_ICMPV6 && (pkt->flags & PKT_L4) &&
	       !(pkt->flags & PKT_FRAG_HEADER) && pkt->hop_limit == 255 && pkt->icmp_code == 0 &&
	       pkt->icmp_type >= ND_FIRST && pkt->icmp_type <= ND_LAST;
}

/* Path MTU discovery: without these, connections through a limited path hang. */
static __always_inline int is_path_mtu(const struct packet *pkt)
{
	if (!(pkt->flags & PKT_L4))
		return 0;
	if (pkt->proto == PROTO_ICMP)
		return pkt->icmp_type == ICMP_FRAG_NEEDED_TYPE &&
		       pkt->icmp_code == ICMP_FRAG_NEEDED_CODE;
	return pkt->proto == PROTO_ICMPV6 && pkt->icmp_type == ICMPV6_PACKET_TOO_BIG;
}

/* Step 1. */
static __always_inline u32 essential(const struct sl_rules *rules, struct packet *pkt, u32 reason)
{
	return account_internal(rules, pkt, SL_LIMIT_ESSENTIAL, reason);
}

/* A deadline that has not passed. 0 never was, ~0 never passes. */
static __always_inline int is_on(struct packet *pkt, u64 until)
{
	if (!until || until == ~0ULL)
		return until != 0;
	clock_read(pkt);
	return pkt->now.mono_ns < until;
}

static __always_inline int is_failsafe(const struct sl_rules *rules, const struct packet *pkt)
{
	const struct sl_pclass *pclass;
	u32 byte = pkt->dport >> 3;
	u8 ports;

	if (!(rules->dims & SL_DIMS_LOCAL) || !(pkt->flags & PKT_L4))
		return 0;
	if (pkt->proto == PROTO_TCP)
		ports = rules->failsafe_tcp[byte & 8191];
	else if (pkt->proto == PROTO_UDP)
		ports = rules->failsafe_udp[byte & 8191];
	else
		return 0;
	if (!(ports & (1 << (pkt->dport & 7))))
		return 0;
	pclass = classify_class(rules, classify_prefix(rules, pkt, SL_PDIM_DST));
	return pclass && (pclass->flags & SL_PC_LOCAL);
}

/*
 * Steps 3 to 5; `src` is the source's class, or NULL. Returns 1 where one of them decided,
 * with the action in *ret_action.
 */
static __always_inline int lists(const struct sl_rules *rules, struct packet *pkt,
				 const struct sl_pclass *src, u32 *ret_action)
{
	int narrow = 0, wide = 0;

	if (src && is_on(pkt, src->exempt_until)) {
		*ret_action = decide(pkt, SL_ACT_PASS, SL_R_EXEMPT);
		return 1;
	}
	if (src) {
		narrow = is_on(pkt, src->block_until);
		wide = is_on(pkt, src->wide_block_until);
	}
	if (!narrow && is_failsafe(rules, pkt)) {
		*ret_action = account_internal(rules, pkt, SL_LIMIT_FAILSAFE, SL_R_FAILSAFE);
		return 1;
	}
	if (narrow || wide) {
		*ret_action = decide(pkt, SL_ACT_DROP, SL_R_BLOCK);
		return 1;
	}
	return 0;
}

/* Step 7. */
static __always_inline u32 limits(const struct sl_rules *rules, struct packet *pkt,
				  const struct sl_pclass *src)
{
	u32 i;

	if (pkt->flags & PKT_FIRST_DROPPED)
		return decide(pkt, SL_ACT_DROP, SL_R_FRAGMENT);
	if ((pkt->flags & PKT_FRAGMENT) && rules->fragments != SL_FRAG_LIMIT)
		return decide(pkt,
			      rules->fragments == SL_FRAG_DROP ? SL_ACT_DROP : SL_ACT_PASS,
			      SL_R_FRAGMENT);
	if (!rules->limits_count && !is_path_mtu(pkt))
		return decide(pkt, SL_ACT_PASS, SL_R_NO_MATCH);
	classify(rules, pkt, src);
	if (is_path_mtu(pkt)) {
		u64 named = 0;

		/* Only limits that name an ICMP type may touch it; else `essential` does. */
		for (i = 0; i < SL_BITMAP_WORDS; i++) {
			pkt->match.w[i] &= ~rules->none8[SL_DIM_ICMP].w[i];
			named |= pkt->match.w[i];
		}
		if (!named)
			return essential(rules, pkt, SL_R_NO_MATCH);
	}
	return account(rules, pkt);
}

/* Returns enum sl_action, or ACCOUNT_ON. */
static __always_inline u32 judge(const struct sl_rules *rules, env_ctx *ctx, struct packet *pkt)
{
	enum parsed parsed = parse(ctx, pkt);
	const struct sl_pclass *src = NULL;
	u32 bad = pkt->reason, action;

	if (parsed == PARSED_ARP)
		return essential(rules, pkt, SL_R_ARP);
	if (parsed == PARSED_IP && is_neighbour_discovery(pkt))
		return essential(rules, pkt, SL_R_ND);
	fragment_meet(rules, pkt, parsed == PARSED_BAD);
	if (is_session(rules, pkt))
		return decide(pkt, SL_ACT_PASS, SL_R_SESSION);
	if ((pkt->flags & PKT_ADDR) && (rules->dims & SL_DIMS_P(SL_PDIM_SRC)))
		src = classify_class(rules, classify_prefix(rules, pkt, SL_PDIM_SRC));
	if ((pkt->flags & PKT_ADDR) && lists(rules, pkt, src, &action))
		return action;
	if ((pkt->flags & PKT_ADDR) && is_banned(rules, pkt, src))
		return decide(pkt, SL_ACT_DROP, SL_R_BAN);
	if ((pkt->flags & PKT_ADDR) && is_pushed_down(ctx, rules, pkt))
		return SL_ACT_DROP;
	if (parsed == PARSED_BAD)
		return decide(pkt, rules->on_parse_error, bad);
	if (parsed == PARSED_OTHER)
		return decide(pkt, SL_ACT_PASS, SL_R_NOT_IP);
	return limits(rules, pkt, src);
}

/* A program without a rule set is a bug or a moment at start: it must not cost a packet. */
static __always_inline u32 no_rules(env_ctx *ctx, struct packet *pkt)
{
	pkt->length = env_length(ctx);
	return decide(pkt, SL_ACT_PASS, SL_R_NO_RULES);
}

/* The same holds for a program without its other half. */
static __always_inline u32 no_stage(struct packet *pkt)
{
	count_map_error(SL_ME_STAGE_JUMP);
	return decide(pkt, SL_ACT_PASS, SL_R_NO_RULES);
}

/* The rules in force; from the deadline of an apply that nobody confirmed on, those before. */
static __always_inline const struct sl_rules *rules_in_force(struct packet *pkt)
{
	const struct sl_rules *rules = map_rules(0), *fallback;

	if (!rules || !rules->revert_at_ns)
		return rules;
	clock_read(pkt);
	if (pkt->now.mono_ns < rules->revert_at_ns)
		return rules;
	fallback = map_rules(1);
	return fallback ? fallback : rules;
}

static __always_inline int datapath(env_ctx *ctx)
{
	struct packet *pkt = env_packet();
	const struct sl_rules *rules;
	u32 action;

	if (!pkt)
		return ENV_PASS;
	packet_reset(pkt);
	rules = rules_in_force(pkt);
	if (!rules || !rules->generation)
		return verdict(ctx, pkt, no_rules(ctx, pkt));
	action = judge(rules, ctx, pkt);
	if (action == ACCOUNT_ON) {
		pkt->generation = rules->generation;
		env_jump(ctx, SL_STAGE_ACCOUNT);
		action = no_stage(pkt);
	}
	return verdict(ctx, pkt, action);
}

/*
 * The second half, by the same rule set or not at all: limits are known by their number in
 * it. Where it was swapped in between, the packet begins again.
 */
static __always_inline int datapath_account(env_ctx *ctx)
{
	const struct sl_rules *rules = map_rules(0);
	struct packet *pkt = env_packet();

	if (!pkt)
		return ENV_PASS;
	if (rules && rules->generation != pkt->generation)
		rules = map_rules(1);
	if (rules && rules->generation == pkt->generation)
		return verdict(ctx, pkt, rows(rules, pkt));
	env_jump(ctx, SL_STAGE_AGAIN);
	return verdict(ctx, pkt, no_stage(pkt));
}

#endif
