/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * push.h - step 6, behind bans: what the HTTP tier pushed down, carried out on a source's packets;
 * and the note of which sources are real, without which nothing is pushed down.
 *
 * All push-downs that cover a source apply, shorter and longer prefixes alike, until one drops the
 * packet. They are looked for as bans are: a filter bit for each of the lengths in
 * use, then the hash by exact address. Each ends by its own deadline; entries that have ended mean
 * nothing, and the daemon takes them out. So a daemon that died leaves nothing on for good.
 *
 * Where there are none, a packet pays for one load and one branch (sl_push_now.flags).
 */
#ifndef SLUICE_BPF_PUSH_H
#define SLUICE_BPF_PUSH_H

#include "bpf/ban.h"

#define PUSH_TRIES 8
#define PORT_QUIC 443

/* ---- which sources are real */

/*
 * Whether only a source that receives our replies sends such a packet: of TCP one with ACK and
 * without SYN or RST, of QUIC one with a short header (RFC 9000, 17.3: bits 0 and 1), which comes
 * after the handshake. It proves no more than its fields: anybody can forge one. What cannot be
 * forged blindly is the request that the proxy answered; this is the second witness, not the
 * first.
 */
static __always_inline int push_is_established(env_ctx *ctx, const struct packet *pkt)
{
	u32 at = pkt->l3_offset;
	u8 byte;

	if (!(pkt->flags & PKT_L4) || (pkt->flags & PKT_FRAGMENT))
		return 0;
	if (pkt->proto == PROTO_TCP)
		return (pkt->tcp_flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_ACK;
	if (pkt->proto != PROTO_UDP || pkt->dport != PORT_QUIC)
		return 0;
	/* QUIC is not sent behind IPv6 extension headers. */
	if (env_load_bytes(ctx, at, &byte, 1))
		return 0;
	at += pkt->family == SL_V4 ? (byte & 15) * 4 : 40;
	if (env_load_bytes(ctx, at + 8, &byte, 1))
		return 0;
	return (byte & 0xc0) == 0x40;
}

/* Notes the source in its set; at most once for each unit of time. */
SL_GLOBAL int push_note(const struct sl_rules *rules, struct packet *pkt)
{
	u32 tag, now, i, oldest = 0, age, oldest_age = 0;
	struct sl_established *set;

	if (!rules || !pkt)
		return 0;
	set = map_established(sl_established_at(pkt->src, pkt->family, rules->seed, &tag));
	if (!set)
		return 0;
	clock_read(pkt);
	now = sl_established_time(pkt->now.mono_ns);
	for (i = 0; i < SL_ESTABLISHED_WAYS; i++) {
		u64 way = set->way[i];

		if (way == ((u64)tag << 32 | now))
			return 0;
		age = way >> 32 == tag ? ~0U : now - (u32)way;
		if (age >= oldest_age) {
			oldest_age = age;
			oldest = i;
		}
	}
	OPAQUE(oldest);
	set->way[oldest & (SL_ESTABLISHED_WAYS - 1)] = (u64)tag << 32 | now;
	return 1;
}

/* ---- what was pushed down */

/* Whether the filter has the packet's source, at any length. */
static __always_inline int push_may_be(struct sl_push_now *now, const struct packet *pkt)
{
	u32 i, len, bit;
	u64 found = 0;

	for (i = 0; i < SL_PUSH_LENGTHS; i++) {
		len = now->len[pkt->family & 1][i];
		if (!len)
			continue;
		bit = sl_ban_bit(sl_addr_mask(packet_src(pkt), len), len);
		found |= *ban_filter_word(&now->filter, bit) >> (bit & 63);
	}
	return found & 1;
}

/* A deadline that has not passed, by a bound of the time where that is enough. */
static __always_inline int push_is_on(struct packet *pkt, const struct sl_push *push)
{
	u64 late = clock_bound_ns(pkt);

	if (late && late < push->until_ns)
		return 1;
	clock_read(pkt);
	return pkt->now.mono_ns < push->until_ns;
}

/* SL_PUSH_LIMIT: 1 the packet is within the source's bucket, and charged to it. */
SL_GLOBAL int push_charge(struct sl_push *push, struct packet *pkt)
{
	struct sl_result res;
	u64 bucket_state, late;
	u32 i;

	if (!push || !pkt)
		return 1;
	late = clock_bound_ns(pkt);
	if (late) {
		/* Over even then is over now. */
		res = sl_gcra_step(read_once(&push->bucket_state), &push->params, late, 1);
		if (res.verdict == SL_OVER)
			return 0;
		clock_read(pkt);
	}
	for (i = 0; i < PUSH_TRIES; i++) {
		bucket_state = read_once(&push->bucket_state);
		res = sl_gcra_step(bucket_state, &push->params, pkt->now.mono_ns, 1);
		if (res.verdict == SL_OVER)
			return 0;
		if (__sync_val_compare_and_swap(&push->bucket_state, bucket_state,
						res.bucket_state) == bucket_state)
			return 1;
	}
	return 0; /* contended: as over */
}

/* Applies one push-down: 1 drop, with the reason in pkt. */
static __always_inline int push_verdict_of(struct sl_push *push, struct packet *pkt)
{
	int refused = 1;

	pkt->not_cached = 1;
	if (push->kind == SL_PUSH_LIMIT)
		refused = !push_charge(push, pkt);
	else if (push->kind == SL_PUSH_NO_NEW)
		refused = may_be_syn(pkt);
	if (push->kind == SL_PUSH_TAG) {
		pkt->flags |= PKT_PUSH_TAG;
		refused = 0;
	}
	__sync_fetch_and_add(refused ? &push->refused : &push->passed, 1);
	if (!refused)
		return 0;
	pkt->reason = SL_R_PUSH_LIMIT + (push->kind & 3);
	return 1;
}

/* By exact look-up. */
SL_GLOBAL int push_holds(struct packet *pkt)
{
	struct sl_push_now *now = map_push_now();
	struct sl_push_key key;
	struct sl_push *push;
	u32 i;

	if (!pkt || !now)
		return 0;
	for (i = 0; i < SL_PUSH_LENGTHS; i++) {
		key.len = now->len[pkt->family & 1][i];
		if (!key.len)
			continue;
		key.family = pkt->family;
		key.addr = sl_addr_mask(packet_src(pkt), key.len);
		push = map_push(&key);
		if (push && push_is_on(pkt, push) && push_verdict_of(push, pkt))
			return 1;
	}
	return 0;
}

/* All of it; global, for its paths times those before it would be too many. */
SL_GLOBAL int push_meet(env_ctx *ctx, const struct sl_rules *rules, struct packet *pkt)
{
	struct sl_push_now *now = map_push_now();

	if (!rules || !pkt || !now)
		return 0;
	if ((now->flags & SL_PUSH_ON) && push_may_be(now, pkt) && push_holds(pkt))
		return 1;
	if ((now->flags & SL_PUSH_WATCH) && push_is_established(ctx, pkt))
		push_note(rules, pkt);
	return 0;
}

/* Step 6, of a packet whose addresses are known: 1 drop, with the reason in pkt. */
static __always_inline int is_pushed_down(env_ctx *ctx, const struct sl_rules *rules,
					  struct packet *pkt)
{
	const struct sl_push_now *now = map_push_now();

	return now && now->flags && push_meet(ctx, rules, pkt);
}

/* ---- tags */

/*
 * The tag of a push-down replaces those of limits, because push-downs come first in the order.
 * Returns the action.
 */
static __always_inline enum sl_action push_tag(struct packet *pkt, enum sl_action action)
{
	if (!(pkt->flags & PKT_PUSH_TAG) || action == SL_ACT_DROP)
		return action;
	if (action == SL_ACT_PASS)
		pkt->reason = SL_R_PUSH_TAG;
	pkt->tag = SL_TAG_DSCP | SL_TAG_MARK;
	pkt->dscp = SL_PUSH_DSCP;
	pkt->mark = SL_PUSH_MARK;
	return SL_ACT_TAG;
}

#endif
