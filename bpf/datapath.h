/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datapath.h - a packet's way, on one screen: parse, classify, account, verdict. It has two
 * halves, each a program, because of the verifier's bounds: datapath() does what can be done
 * inline, which suffices for most packets, and jumps to datapath_account() for the rest.
 *
 * The order of the steps is a promise to users (docs/packet-walk.md):
 *   1 ARP and genuine neighbor discovery pass, within `essential`; if a limit names its type,
 * within that 2 the sessions of users logged in at apply time pass 3 exempt sources pass 4 failsafe
 * ports of this host pass, within failsafe_rate, unless narrowly blocked 5 blocked sources are
 * dropped 6 banned sources are dropped, push-downs of their source apply 7 limits; in their order,
 * those without a rate: match.h
 */
#ifndef SLUICE_BPF_DATAPATH_H
#define SLUICE_BPF_DATAPATH_H

#include "bpf/parse.h"
#include "bpf/list.h"
#include "bpf/session.h"
#include "bpf/refused.h"
#include "bpf/socket.h"
#include "bpf/push.h"
#include "bpf/match.h"
#include "bpf/meters.h"
#include "bpf/verdict.h"

#define ICMP_FRAG_NEEDED_TYPE 3
#define ICMP_FRAG_NEEDED_CODE 4
#define ICMPV6_PACKET_TOO_BIG 2
#define ICMP_ERROR_MAX 576    /* bytes of IPv4: RFC 1812, 4.3.2.3 */
#define ICMPV6_ERROR_MAX 1280 /* bytes of IPv6: RFC 4443, 2.4 (c) */
#define ND_FIRST 133	      /* router solicitation */
#define ND_SOLICITATION 135   /* of a neighbor, as the next one */
#define ND_ADVERTISEMENT 136
#define ND_LAST 137 /* redirect */

static __always_inline enum stage_result decide(struct packet *pkt, enum stage_result action,
						enum sl_reason reason)
{
	pkt->reason = reason;
	return action;
}

/*
 * RFC 4861, 6.1 and 7.1: hop limit 255 proves a neighbor; anything else is forged. RFC 6980:
 * a fragment header, even of a packet in one piece, is not a neighbor's.
 */
static __always_inline int is_neighbour_discovery(const struct packet *pkt)
{
	return pkt->proto == PROTO_ICMPV6 && (pkt->flags & PKT_L4) &&
	       !(pkt->flags & PKT_FRAG_HEADER) && pkt->hop_limit == 255 && pkt->icmp_code == 0 &&
	       pkt->icmp_type >= ND_FIRST && pkt->icmp_type <= ND_LAST;
}

/*
 * Path MTU discovery: without these, connections through a limited path hang. What is longer than
 * a router may send it, or in fragments, is a packet like any other.
 */
static __always_inline int is_path_mtu(const struct packet *pkt)
{
	u32 length = pkt->length - pkt->l3_offset;

	if (!(pkt->flags & PKT_L4) || (pkt->flags & PKT_FRAGMENT))
		return 0;
	if (pkt->proto == PROTO_ICMP)
		return pkt->icmp_type == ICMP_FRAG_NEEDED_TYPE &&
		       pkt->icmp_code == ICMP_FRAG_NEEDED_CODE && length <= ICMP_ERROR_MAX;
	return pkt->proto == PROTO_ICMPV6 && pkt->icmp_type == ICMPV6_PACKET_TOO_BIG &&
	       length <= ICMPV6_ERROR_MAX;
}

/* Step 1. */
static __always_inline enum stage_result essential(const struct sl_rules *rules,
						   struct evaluation *ev, enum sl_reason reason)
{
	return account_internal(rules, ev, SL_LIMIT_ESSENTIAL, reason);
}

static __always_inline int is_failsafe(const struct sl_rules *rules, const struct packet *pkt)
{
	const struct sl_pclass *pclass;

	if (!(rules->dims & SL_DIMS_LOCAL) || !(pkt->flags & PKT_L4) ||
	    !is_failsafe_port(rules, pkt->proto, pkt->dport))
		return 0;
	pclass = classify_class(rules, classify_prefix(rules, pkt, SL_PDIM_DST));
	return pclass && (pclass->flags & SL_PC_LOCAL);
}

/*
 * Step 4: what opens a connection is held to failsafe_rate. The rest of TCP is held per source,
 * and where it has no socket here in sum, too: that of a connection no flood can use up.
 */
static __always_inline enum stage_result failsafe(const struct sl_rules *rules, env_ctx *ctx,
						  struct evaluation *ev)
{
	const struct sl_limit *limit = limit_at(rules, SL_LIMIT_FAILSAFE);
	u32 index = SL_LIMIT_FAILSAFE;

	if (limit && !charge_cost_at(limit, &ev->pkt, index))
		index = socket_of(ctx, &ev->pkt) > SOCKET_BOUND ? SL_LIMIT_FAILSAFE_SOCKET
								: SL_LIMIT_FAILSAFE_TCP;
	return account_internal(rules, ev, index, SL_R_FAILSAFE);
}

/*
 * Steps 3 to 5; `src` is the source's class, or NULL. Returns 1 where one of them decided,
 * with the action in *ret_action.
 */
static __always_inline int lists(const struct sl_rules *rules, env_ctx *ctx, struct evaluation *ev,
				 const struct sl_pclass *src, enum stage_result *ret_action)
{
	u32 on = list_find(&ev->pkt);

	if (src && is_on(&ev->pkt, src->exempt_until))
		on |= LISTED_EXEMPT;
	if (on & LISTED_EXEMPT) {
		*ret_action = decide(&ev->pkt, STAGE_PASS, SL_R_EXEMPT);
		return 1;
	}
	if (src && is_on(&ev->pkt, src->block_until))
		on |= LISTED_BLOCK;
	if (src && is_on(&ev->pkt, src->wide_block_until))
		on |= LISTED_WIDE_BLOCK;
	FORGET(&ev->pkt, on);
	if (!(on & LISTED_BLOCK) && !(ev->pkt.flags & PKT_FIRST_DROPPED) &&
	    is_failsafe(rules, &ev->pkt) && !ev->failsafe_spent) {
		*ret_action = failsafe(rules, ctx, ev);
		return 1;
	}
	if (on) {
		*ret_action = decide(&ev->pkt, STAGE_DROP, SL_R_BLOCK);
		return 1;
	}
	return 0;
}

/* Leaves in ev->match only limits that name an ICMP type. Returns 0 if no limit does. */
static __always_inline int limits_of_type(const struct sl_rules *rules, struct evaluation *ev)
{
	u64 named = 0;
	u32 i;

	for (i = 0; i < SL_BITMAP_WORDS; i++) {
		ev->match.w[i] &= ~rules->none8[SL_DIM_ICMP].w[i];
		named |= ev->match.w[i];
	}
	return named != 0;
}

/* Step 7. */
static __always_inline enum stage_result limits(const struct sl_rules *rules, env_ctx *ctx,
						struct evaluation *ev, const struct sl_pclass *src)
{
	enum stage_result action;

	if (ev->pkt.flags & PKT_FIRST_DROPPED)
		return decide(&ev->pkt, STAGE_DROP, SL_R_FRAGMENT);
	if ((ev->pkt.flags & PKT_FRAGMENT) && rules->fragments != SL_FRAG_LIMIT)
		return decide(&ev->pkt, rules->fragments == SL_FRAG_DROP ? STAGE_DROP : STAGE_PASS,
			      SL_R_FRAGMENT);
	if (!rules->limits_count && !is_path_mtu(&ev->pkt))
		return decide(&ev->pkt, STAGE_PASS, SL_R_NO_MATCH);
	classify(rules, ev, src);
	/* Only limits that name an ICMP type may touch it; else the order's own do. */
	if (is_path_mtu(&ev->pkt) && !limits_of_type(rules, ev))
		return account_internal(rules, ev, path_mtu_limit(ctx, &ev->pkt), SL_R_PATH_MTU);
	if (rules->by_match && match_is_final(rules, ev, match_decide(rules, ev), &action))
		return action;
	return account(rules, ev);
}

/*
 * A packet that could not be read is dropped with `on_parse_error: drop`, else it meets
 * every limit that it could belong to. Without a source there is none: such frames pass, because
 * no receiver accepts them; frames behind more tags than are read are dropped.
 */
static __always_inline int drops_unread(const struct sl_rules *rules, const struct packet *pkt)
{
	return rules->on_parse_error == SL_ACT_DROP || pkt->unread == SL_R_VLAN_DEPTH;
}

/*
 * Steps 5 and 6 for ::ffff:a.b.c.d, from where Linux takes UDP: blocks and bans of a.b.c.d hold for
 * it, too. 1: dropped, with the reason in pkt. Global, for it is rare.
 */
SL_GLOBAL int mapped_lists(const struct sl_rules *rules, struct packet *pkt)
{
	const struct sl_pclass *src = NULL;
	struct sl_addr was;
	int drop = 1;

	if (!rules || !pkt)
		return 0;
	was = pkt->src;
	pkt->src.hi = was.lo << 32;
	pkt->src.lo = 0;
	pkt->family = SL_V4;
	if (rules->dims & SL_DIMS_P(SL_PDIM_SRC))
		src = classify_class(rules, classify_prefix(rules, pkt, SL_PDIM_SRC));
	if ((list_find(pkt) & (LISTED_BLOCK | LISTED_WIDE_BLOCK)) ||
	    (src && (is_on(pkt, src->block_until) || is_on(pkt, src->wide_block_until))))
		pkt->reason = SL_R_BLOCK;
	else if (is_banned(rules, pkt, src))
		pkt->reason = SL_R_BAN;
	else
		drop = 0;
	pkt->src = was;
	pkt->family = SL_V6;
	return drop;
}

/* Whether a limit names this ICMPv6 type. */
static __always_inline int is_type_named(const struct sl_rules *rules, u8 type)
{
	u64 named = 0;
	u32 i;

	if (!(rules->dims & SL_DIMS_8(SL_DIM_ICMPV6)))
		return 0;
	for (i = 0; i < SL_BITMAP_WORDS; i++)
		named |= rules->dim8[SL_DIM_ICMPV6][type].w[i] & ~rules->none8[SL_DIM_ICMPV6].w[i];
	return named != 0;
}

/*
 * Step 1, neighbor discovery: by the limits that name its type, else within `essential`. What
 * changes this host's routes (messages of routers, redirects) is dropped from a source that is
 * banned, or has a block that shuts failsafe ports, too. What neighbors say of their addresses
 * never is: without it the administrator is locked out. Global, for it is rare.
 */
SL_GLOBAL enum stage_result neighbour_discovery(const struct sl_rules *rules, struct evaluation *ev)
{
	const struct sl_pclass *src = NULL;
	enum stage_result action;
	int address, named;
	u32 on;

	if (!rules || !ev)
		return STAGE_PASS;
	address = ev->pkt.icmp_type == ND_SOLICITATION || ev->pkt.icmp_type == ND_ADVERTISEMENT;
	named = is_type_named(rules, ev->pkt.icmp_type);
	if (address && !named)
		return essential(rules, ev, SL_R_ND);
	if (rules->dims & SL_DIMS_P(SL_PDIM_SRC))
		src = classify_class(rules, classify_prefix(rules, &ev->pkt, SL_PDIM_SRC));
	on = list_find(&ev->pkt);
	if ((on & LISTED_EXEMPT) || (src && is_on(&ev->pkt, src->exempt_until)))
		return essential(rules, ev, SL_R_ND);
	if (!address && ((on & LISTED_BLOCK) || (src && is_on(&ev->pkt, src->block_until))))
		return decide(&ev->pkt, STAGE_DROP, SL_R_BLOCK);
	if (!address && is_banned(rules, &ev->pkt, src))
		return decide(&ev->pkt, STAGE_DROP, SL_R_BAN);
	if (!named)
		return essential(rules, ev, SL_R_ND);
	classify(rules, ev, src);
	if (!limits_of_type(rules, ev))
		return essential(rules, ev, SL_R_ND);
	if (rules->by_match && match_is_final(rules, ev, match_decide(rules, ev), &action))
		return action;
	ev->single = SL_NO_METER;
	return STAGE_JUMP;
}

static __always_inline enum stage_result judge(const struct sl_rules *rules, env_ctx *ctx,
					       struct evaluation *ev, enum parsed parsed)
{
	const struct sl_pclass *src = NULL;
	enum stage_result action;

	if (parsed == PARSED_ARP)
		return essential(rules, ev, SL_R_ARP);
	if (parsed == PARSED_IP && is_neighbour_discovery(&ev->pkt))
		return neighbour_discovery(rules, ev);
	fragment_meet(ctx, rules, ev);
	if (is_session(rules, &ev->pkt))
		return decide(&ev->pkt, STAGE_PASS, SL_R_SESSION);
	if ((ev->pkt.flags & PKT_ADDR) && (rules->dims & SL_DIMS_P(SL_PDIM_SRC)))
		src = classify_class(rules, classify_prefix(rules, &ev->pkt, SL_PDIM_SRC));
	if ((ev->pkt.flags & PKT_ADDR) && lists(rules, ctx, ev, src, &action))
		return action;
	if ((ev->pkt.flags & PKT_V4_MAPPED) && mapped_lists(rules, &ev->pkt))
		return STAGE_DROP;
	if ((ev->pkt.flags & PKT_ADDR) && is_banned(rules, &ev->pkt, src))
		return decide(&ev->pkt, STAGE_DROP, SL_R_BAN);
	if ((ev->pkt.flags & PKT_ADDR) && is_pushed_down(ctx, rules, &ev->pkt))
		return STAGE_DROP;
	if (parsed == PARSED_BAD && drops_unread(rules, &ev->pkt))
		return decide(&ev->pkt, STAGE_DROP, ev->pkt.unread);
	if (parsed == PARSED_BAD && !(ev->pkt.flags & PKT_ADDR))
		return decide(&ev->pkt, STAGE_PASS, ev->pkt.unread);
	if (parsed == PARSED_OTHER)
		return decide(&ev->pkt, STAGE_PASS, SL_R_NOT_IP);
	return limits(rules, ctx, ev, src);
}

/* A program without a rule set is a bug or a moment at start: it must not cost a packet. */
static __always_inline enum sl_action no_rules(struct packet *pkt)
{
	return (enum sl_action)decide(pkt, STAGE_PASS, SL_R_NO_RULES);
}

/* The same holds for a program without its other half. */
static __always_inline enum sl_action no_stage(struct packet *pkt)
{
	count_map_error(SL_ME_STAGE_JUMP);
	return (enum sl_action)decide(pkt, STAGE_PASS, SL_R_NO_RULES);
}

/* The rules in force; after the deadline of an unconfirmed apply, those before. */
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
	struct evaluation *ev = env_evaluation();
	const struct sl_rules *rules;
	enum stage_result action;
	enum parsed parsed;

	if (!ev)
		return ENV_PASS;
	packet_reset(&ev->pkt);
	ev->epoch = map_epoch();
	parsed = parse(ctx, &ev->pkt);
	if (env_refusal_cache() && like_applies(&ev->pkt)) {
		if (refused_before(ev))
			return verdict_again(ev, SL_R_OVER, SL_ACT_DROP)
				       ? ENV_DROP
				       : verdict(ctx, ev, SL_ACT_DROP);
		if (passed_before(ev))
			return verdict_again(ev, SL_R_WITHIN, SL_ACT_PASS)
				       ? ENV_PASS
				       : verdict(ctx, ev, SL_ACT_PASS);
	}
	rules = rules_in_force(&ev->pkt);
	if (!rules || !rules->generation)
		return verdict(ctx, ev, no_rules(&ev->pkt));
	action = judge(rules, ctx, ev, parsed);
	if (action == STAGE_JUMP) {
		ev->generation = rules->generation;
		env_jump(ctx, SL_STAGE_ACCOUNT);
		return verdict(ctx, ev, no_stage(&ev->pkt));
	}
	return verdict(ctx, ev, (enum sl_action)action);
}

/*
 * The second half, by the same rule set or not at all: limits are known by their number in
 * it. Where it was swapped in between, the packet begins again; and also where failsafe_rate
 * is used up, to take the rest of the order.
 */
static __always_inline int datapath_account(env_ctx *ctx)
{
	const struct sl_rules *rules = map_rules(0);
	struct evaluation *ev = env_evaluation();
	enum stage_result action;

	if (!ev)
		return ENV_PASS;
	if (rules && rules->generation != ev->generation)
		rules = map_rules(1);
	if (rules && rules->generation == ev->generation) {
		action = meters(ctx, rules, ev);
		if (action != STAGE_JUMP)
			return verdict(ctx, ev, (enum sl_action)action);
		ev->failsafe_spent = 1;
	}
	env_jump(ctx, SL_STAGE_AGAIN);
	return verdict(ctx, ev, no_stage(&ev->pkt));
}

#endif
