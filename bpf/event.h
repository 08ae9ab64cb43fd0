/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * event.h - events for people, sluice/ring.h. Sent from verdict() alone: stages only note in
 * ev->news what changed. Off, it costs a look at the switch for each sample of heavy.h, and for
 * the others a test of two bytes.
 */
#ifndef SLUICE_BPF_EVENT_H
#define SLUICE_BPF_EVENT_H

#include "bpf/table.h"
#include "bpf/evaluation.h"

/* A limit refuses a source whose bucket is not marked as refused yet. */
static __always_inline void event_note_over(struct evaluation *ev, const struct sl_way *way,
					    u64 key, u32 slot)
{
	if (read_once(&way->key) & SL_KEY_REFUSED)
		return;
	ev->news |= SL_BIT(SL_EVENT_OVER);
	ev->news_key = key;
	ev->news_limit = slot;
}

static __always_inline void event_note_ban(struct evaluation *ev, u32 slot, u32 len)
{
	ev->news |= SL_BIT(SL_EVENT_BAN);
	ev->ban_limit = slot;
	ev->ban_prefix_len = len;
}

static __always_inline void event_fill(struct sl_event *event, const struct evaluation *ev,
				       enum sl_event_kind kind, enum sl_action action)
{
	const struct packet *pkt = &ev->pkt;

	__builtin_memset(event, 0, __builtin_offsetof(struct sl_event, frame));
	event->source.hi = pkt->src.hi;
	event->source.lo = pkt->src.lo;
	event->dst.hi = pkt->dst.hi;
	event->dst.lo = pkt->dst.lo;
	event->mono_ns = pkt->now.mono_ns;
	event->length = pkt->length;
	event->weight = 1;
	event->limit_id = pkt->reason == SL_R_OVER ? ev->limit_id : 0;
	event->kind = kind;
	event->family = pkt->family;
	event->reason = pkt->reason;
	event->action = action;
	event->iface_slot = env_iface_slot();
	event->link = env_link();
	if (pkt->flags & PKT_PROTO)
		event->proto = pkt->proto;
	if (pkt->flags & PKT_L4) {
		event->sport = pkt->sport;
		event->dport = pkt->dport;
	}
	if (kind == SL_EVENT_DROP) {
		event->weight = ev->weight;
	} else if (kind == SL_EVENT_OVER) {
		event->limit_id = ev->news_limit;
		event->bucket_key = ev->news_key;
	} else {
		event->limit_id = ev->ban_limit;
		event->len = ev->ban_prefix_len;
	}
}

/* Sends an event of the packet in hand. Global: verified once. */
SL_GLOBAL int event_send(env_ctx *ctx, struct evaluation *ev, u32 kind, enum sl_action action)
{
	const struct sl_event_switch *on = map_event_switch();
	struct sl_event_stats *stats;
	struct sl_event *event;
	u32 length;

	if (!ev || !on || !on->per_turn)
		return 0;
	stats = map_event_stats();
	OPAQUE(kind);
	if (!stats || kind >= SL_EVENT_KINDS)
		return 0;
	clock_read(&ev->pkt);
	if (!sl_event_fits(stats, (enum sl_event_kind)kind, ev->pkt.now.mono_ns, on->per_turn))
		return 0;
	event = map_event_reserve();
	if (!event) {
		stats->lost[kind]++;
		return 0;
	}
	event_fill(event, ev, (enum sl_event_kind)kind, action);
	length = ev->pkt.length;
	if (length > SL_RING_FRAME)
		length = SL_RING_FRAME;
	/* 1 to SL_RING_FRAME for 6.1, too: of a comparison it keeps no least ("R3 min value is
	 * outside of the allowed memory range"). Test: tests/vm/attach.sh. */
	length--;
	OPAQUE(length);
	length = (length & (SL_RING_FRAME - 1)) + 1;
	if (!env_load_bytes(ctx, 0, event->frame, length))
		event->captured = length;
	stats->sent[kind]++;
	map_event_submit(event);
	return 1;
}

/* `sampled`: heavy.h counted the packet. */
static __always_inline void event_verdict(env_ctx *ctx, struct evaluation *ev,
					  enum sl_action action, int sampled)
{
	u32 news = ev->news;

	if (sampled && action == SL_ACT_DROP)
		event_send(ctx, ev, SL_EVENT_DROP, action);
	if (!news)
		return;
	ev->news = 0;
	if (news & SL_BIT(SL_EVENT_OVER))
		event_send(ctx, ev, SL_EVENT_OVER, action);
	if (news & SL_BIT(SL_EVENT_BAN))
		event_send(ctx, ev, SL_EVENT_BAN, action);
}

#endif
