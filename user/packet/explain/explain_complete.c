// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * explain_complete.c - completes a packet of which only some fields are given, so that it meets
 * a certain condition of the rules; see explain.h.
 *
 * There are too many packets to try them all. But only a limit's match, a failsafe port or a
 * fragment can change what happens to one, so a representative of each is enough: the fields
 * that were given stay, the others become what that condition requires.
 */
#include <string.h>

#include "packet/explain/explain.h"
#include "config/model.h"

#define FLAG_SYN 0x02
#define FLAG_ACK 0x10

bool completion_set(struct completion *c, u32 field)
{
	if (c->query.given & 1U << field)
		return false;
	c->added |= 1U << field;
	return true;
}

static bool holds_source(const struct completion *c, const struct match_def *match)
{
	const struct explain_packet *p = &c->query.packet;
	struct sl_prefix src = { p->src, p->family, p->family == SL_V4 ? 32 : 128 };

	for (size_t i = 0; i < match->src_count; i++)
		if (sl_prefix_contains(&match->src[i], &src))
			return true;
	return !match->src_count;
}

static bool complete_dst(struct completion *c, const struct match_def *match)
{
	struct explain_packet *p = &c->query.packet;
	struct sl_prefix dst = { p->dst, p->family, p->family == SL_V4 ? 32 : 128 };
	const struct sl_prefix *other = NULL;

	for (size_t i = 0; i < match->dst_count; i++) {
		if (sl_prefix_contains(&match->dst[i], &dst))
			return true;
		if (!other && match->dst[i].family == p->family)
			other = &match->dst[i];
	}
	if (!match->dst_count)
		return true;
	if (!other || !completion_set(c, MATCH_DST))
		return false;
	p->dst = other->addr;
	return true;
}

/* One of the ranges holds the value, or it may become a value of one that is `least` or more. */
static bool complete_range(struct completion *c, u32 field, const struct match_def *match,
			   u32 least)
{
	const struct match_key *key = &match_keys[field];
	const struct u16_range *other = NULL;
	size_t count;
	const struct u16_range *range = match_values(match, key, &count);

	if (!count || match_holds(match, key, SL_V4, query_number(&c->query.packet, field)))
		return true;
	for (size_t i = 0; i < count && !other; i++)
		if (range[i].last >= least)
			other = &range[i];
	if (!other || !completion_set(c, field))
		return false;
	query_set_number(&c->query.packet, field, other->first > least ? other->first : least);
	return true;
}

static bool complete_interface(struct completion *c, const struct match_def *match)
{
	u32 other = SL_IFACES_MAX;

	for (size_t i = 0; i < match->interface_count; i++) {
		for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
			if (strcmp(c->scene->iface[slot].name, match->interface[i]) != 0)
				continue;
			if (slot == c->query.packet.interface)
				return true;
			other = slot;
		}
	}
	if (!match->interface_count)
		return true;
	if (other == SL_IFACES_MAX || !completion_set(c, MATCH_INTERFACE))
		return false;
	c->query.packet.interface = other;
	return true;
}

static bool complete_proto(struct completion *c, const struct match_def *match, bool connections)
{
	static const u8 usual[] = { PROTO_TCP, PROTO_UDP, PROTO_ICMP, PROTO_ICMPV6 };
	struct explain_packet *p = &c->query.packet;
	const u8 *try = match->proto_count ? match->proto : usual;
	size_t count = match->proto_count ? match->proto_count : ARRAY_SIZE(usual);
	bool now = !match->proto_count;

	for (size_t i = 0; i < match->proto_count; i++)
		now |= match->proto[i] == p->proto;
	if (now && match_possible_proto(match, p->family, p->proto) &&
	    (!connections || p->proto == PROTO_TCP))
		return true;
	for (size_t i = 0; i < count; i++) {
		if (!match_possible_proto(match, p->family, try[i]) ||
		    (connections && try[i] != PROTO_TCP))
			continue;
		if (!completion_set(c, MATCH_PROTO))
			return false;
		p->proto = try[i];
		return true;
	}
	return false;
}

static bool complete_flags(struct completion *c, const struct match_def *match, bool connections)
{
	const struct tcp_flags_cond any = { 0 };
	const struct tcp_flags_cond *cond = match->tcp_flags_count ? match->tcp_flags : &any;
	size_t count = match->tcp_flags_count ? match->tcp_flags_count : 1;
	u8 set = connections ? FLAG_SYN : 0, clear = connections ? FLAG_ACK : 0;
	u8 *flags = &c->query.packet.tcp_flags;
	size_t i;

	if (!match->tcp_flags_count && !connections)
		return true;
	for (i = 0; i < count; i++)
		if ((*flags & (cond[i].set | set)) == (cond[i].set | set) &&
		    !(*flags & (cond[i].clear | clear)))
			return true;
	for (i = 0; i < count; i++)
		if (!((cond[i].set | set) & (cond[i].clear | clear)))
			break;
	if (i == count || !completion_set(c, MATCH_TCP_FLAGS))
		return false;
	*flags = cond[i].set | set;
	return true;
}

static bool complete_icmp(struct completion *c, const struct match_def *match)
{
	struct explain_packet *p = &c->query.packet;
	const struct icmp_type_cond *other = NULL;

	for (size_t i = 0; i < match->icmp_type_count; i++) {
		if (match->icmp_type[i].family != p->family)
			continue;
		other = &match->icmp_type[i];
		if (other->type == p->icmp_type)
			return true;
	}
	if (!match->icmp_type_count)
		return true;
	if (!other || !completion_set(c, MATCH_ICMP_TYPE))
		return false;
	p->icmp_type = other->type;
	return true;
}

/* A later fragment does not have its L4 fields, and meets whatever they could be. */
static bool complete_key(struct completion *c, u32 field, const struct match_def *match,
			 bool connections)
{
	if (match_keys[field].needs && c->query.packet.fragment == EXPLAIN_LATER)
		return true;
	switch (match_keys[field].kind) {
	case MATCH_PREFIXES:
		return field == MATCH_SRC ? holds_source(c, match) : complete_dst(c, match);
	case MATCH_PROTOS:
		return complete_proto(c, match, connections);
	case MATCH_RANGES:
		return complete_range(c, field, match, 0);
	case MATCH_FLAGS:
		return complete_flags(c, match, connections);
	case MATCH_ICMP_TYPES:
		return complete_icmp(c, match);
	case MATCH_INTERFACES:
		return complete_interface(c, match);
	}
	return false;
}

bool complete_for_limit(struct completion *c, const struct limit_def *def)
{
	bool connections = def->terms.rates.rate[0].unit == RATE_CONNECTIONS;

	if (def->mode == SL_MODE_OFF)
		return false;
	for (u32 field = 0; field < MATCH_KEY_COUNT; field++)
		if (field != MATCH_LENGTH && !complete_key(c, field, &def->match, connections))
			return false;
	/* Last: how long the packet is at least depends on its other fields. */
	query_default_length(&c->query);
	return complete_range(c, MATCH_LENGTH, &def->match, explain_min_length(&c->query.packet));
}

bool complete_for_failsafe(struct completion *c, const struct failsafe_port *port)
{
	struct explain_packet *p = &c->query.packet;
	struct sl_prefix dst = { p->dst, p->family, p->family == SL_V4 ? 32 : 128 };
	bool local = false;

	for (size_t i = 0; i < c->scene->local_count; i++)
		local |= sl_prefix_equal(&c->scene->local[i], &dst);
	if (!local &&
	    (!completion_set(c, MATCH_DST) || !query_default_dst(c->scene, p->family, &p->dst)))
		return false;
	if (p->proto != port->proto && !completion_set(c, MATCH_PROTO))
		return false;
	p->proto = port->proto;
	if (p->dport != port->port && !completion_set(c, MATCH_DPORT))
		return false;
	p->dport = port->port;
	query_default_length(&c->query);
	return p->fragment != EXPLAIN_LATER;
}

bool complete_for_session(struct completion *c, const struct sl_session *session)
{
	struct explain_packet *p = &c->query.packet;

	if (session->used != p->family + 1U || session->src.hi != p->src.hi ||
	    session->src.lo != p->src.lo || p->fragment == EXPLAIN_LATER)
		return false;
	if ((session->dst.hi != p->dst.hi || session->dst.lo != p->dst.lo) &&
	    !completion_set(c, MATCH_DST))
		return false;
	if (p->proto != PROTO_TCP && !completion_set(c, MATCH_PROTO))
		return false;
	if (p->sport != session->sport && !completion_set(c, MATCH_SPORT))
		return false;
	if (p->dport != session->dport && !completion_set(c, MATCH_DPORT))
		return false;
	p->dst = session->dst;
	p->proto = PROTO_TCP;
	p->sport = session->sport;
	p->dport = session->dport;
	query_default_length(&c->query);
	return true;
}
