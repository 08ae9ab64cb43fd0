/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * refused.h - the refusal cache: a packet like one that was just refused is refused at once, before
 * rules, lists and limits are looked at.
 *
 * A source that floods is refused for thousands of its packets in a row, each time by the same
 * steps with the same result. So each CPU remembers refusals, by source, in a direct-mapped table.
 * An entry's only result is that one refusal. It holds for a packet
 *
 *   - that equals the refused one in every field that was read on its way (like_reads()), came
 *     in by the same interface, and is as long or longer;
 *   - that could be read whole, without fragments and extension headers;
 *   - while the epoch is the same: nothing that verdicts are read from was written
 * (sluice/epoch.h);
 *   - until the earliest time at which the way could be another: room in the limit, as its step
 *     computed; the end of an elastic scale, of an unconfirmed apply; 100 ms.
 *
 * Within these bounds a refusal cannot turn into something else: what other packets are charged
 * only makes it last longer. The exception are refunds (a packet that a later limit refused): they
 * are seen by the end of the entry. Of several limits only the first that refuses is counted; so a
 * refusal is remembered only where no limit before it can take that place (meters.h).
 *
 * What a refused packet counts is counted as without the cache: under its limit here, the rest by
 * verdict(). What would need more than that is never remembered: refusals that count for a ban, of
 * limits with `count: all`, and of sources that a push-down applies to.
 *
 * tests/bpf/test_refused.c compares all verdicts, reasons and counters with those of a program
 * without it.
 */
#ifndef SLUICE_BPF_REFUSED_H
#define SLUICE_BPF_REFUSED_H

#include "bpf/clock.h"
#include "bpf/lease.h"
#include "bpf/like.h"
#include "bpf/observe.h"

#define REFUSED_MAX_NS 100000000ULL
/* A refusal that ends sooner costs more to remember than it saves. */
#define REFUSED_MIN_NS 2000ULL

static __always_inline struct sl_refused *refused_at(u64 src_hi)
{
	return map_refused((src_hi * 0x9e3779b97f4a7c15ULL) >> (64 - SL_REFUSED_BITS));
}

/* A packet that like_applies() to: 1, it is refused by an earlier refusal, and counted under its
 * limit. */
static __always_inline int refused_before(struct evaluation *ev)
{
	struct packet *pkt = &ev->pkt;
	const struct sl_refused *r;
	u64 late;

	r = refused_at(pkt->src.hi);
	if (!r || !like_is(&r->like, pkt, ev->epoch) || pkt->length < r->least)
		return 0;
	late = clock_bound_ns(pkt);
	/* Of the clock only this number is needed: clock_read() would cost as much again. */
	if (late ? late >= r->like.until_ns && env_mono_ns() >= r->like.until_ns
		 : pkt->now.mono_ns >= r->like.until_ns)
		return 0;
	ev->limit_id = r->limit_id;
	count_limit(r->limit_id, SL_LV_DROP, pkt->length);
	return 1;
}

/* Remembers that meter `index` refused this packet, until `until_ns` at most. */
SL_GLOBAL int refused_store(const struct sl_rules *rules, struct evaluation *ev, u32 index,
			    u64 until_ns)
{
	const struct sl_limit *meter, *head;
	const struct sl_push_now *push = map_push_now();
	struct sl_refused *r;
	u64 until;

	if (!rules || !ev || !push || !like_may_be_kept(rules, ev, push) || ev->pkt.length > 0xffff)
		return 0;
	meter = limit_at(rules, index);
	head = meter ? limit_at(rules, meter->head) : NULL;
	if (!head || head->ban != SL_NO_METER || meter->count_all)
		return 0;
	clock_read(&ev->pkt);
	until = like_until(rules, push, &ev->pkt,
			   earlier_ns(ev->pkt.now.mono_ns + REFUSED_MAX_NS, until_ns));
	if (until < ev->pkt.now.mono_ns + REFUSED_MIN_NS)
		return 0;
	r = refused_at(ev->pkt.src.hi);
	if (!r)
		return 0;
	like_store(&r->like, ev, like_reads(rules, &ev->pkt, index));
	r->least = meter->unit == SL_UNIT_BYTES ? ev->pkt.length : 0;
	r->limit_id = head->slot;
	r->like.until_ns = until;
	return 1;
}

#endif
