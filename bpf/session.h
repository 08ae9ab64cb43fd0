/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session.h - step 2: TCP connections of the users logged in when the rules were applied.
 *
 * Exact: remote address and port to local address and port. An administrator can
 * correct a mistake over the open connection. A forged packet needs all four values, and
 * then meets a socket that drops what is outside its window.
 *
 * The daemon's helper finds them; they are a small hash table in the rule set. For most packets
 * a bit shows that their source has no session, and that ends the look-up.
 */
#ifndef SLUICE_BPF_SESSION_H
#define SLUICE_BPF_SESSION_H

#include "bpf/packet.h"

static __always_inline const struct sl_session *session_at(const struct sl_rules *rules, u32 at)
{
	OPAQUE(at);
	return &rules->session[at & (SL_SESSION_TABLE - 1)];
}

/* Global: its paths times those of the rest would be too many. */
SL_GLOBAL int session_find(const struct sl_rules *rules, const struct packet *pkt)
{
	const struct sl_session *s;
	u32 i, at;

	if (!rules || !pkt)
		return 0;
	at = sl_session_at(packet_src(pkt), pkt->sport);
	for (i = 0; i < SL_SESSION_PROBES; i++) {
		s = session_at(rules, at + i);
		if (!s->used)
			return 0;
		if (s->used == pkt->family + 1U && s->sport == pkt->sport &&
		    s->dport == pkt->dport && s->src.hi == pkt->src.hi &&
		    s->src.lo == pkt->src.lo && s->dst.hi == pkt->dst.hi &&
		    s->dst.lo == pkt->dst.lo)
			return 1;
	}
	return 0;
}

/* Whether there is a session of this source, by one bit. */
static __always_inline int session_may_be(const struct sl_rules *rules, const struct packet *pkt)
{
	u32 bit = sl_session_source(packet_src(pkt)), word = bit / 64;

	OPAQUE(word);
	return rules->session_source[word & (SL_SESSION_SOURCES / 64 - 1)] >> (bit & 63) & 1;
}

static __always_inline int is_session(const struct sl_rules *rules, const struct packet *pkt)
{
	if (!(rules->dims & SL_DIMS_SESSIONS))
		return 0;
	if (pkt->proto != PROTO_TCP || !(pkt->flags & PKT_L4))
		return 0;
	return session_may_be(rules, pkt) && session_find(rules, pkt);
}

#endif
