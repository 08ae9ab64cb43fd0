/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verdict.h - the last stage: tags are put on, and one XDP action is picked, only here.
 *
 * A tag that cannot be put on is counted and the packet passes without it.
 */
#ifndef SLUICE_BPF_VERDICT_H
#define SLUICE_BPF_VERDICT_H

#include "bpf/event.h"
#include "bpf/fragment.h"
#include "bpf/heavy.h"
#include "bpf/observe.h"
#include "bpf/push.h"

/*
 * Sets the DSCP and leaves ECN alone. IPv4: the header checksum is updated incrementally,
 * HC' = ~(~HC + ~m + m') (RFC 1624, equation 3), over the 16-bit word that holds TOS.
 */
static __always_inline int tag_dscp(env_ctx *ctx, const struct packet *pkt)
{
	u32 offset = pkt->l3_offset, sum;
	u8 head[12];
	u16 before, after, check;

	if (env_load_bytes(ctx, offset, head, sizeof(head)))
		return -1;
	before = head[0] << 8 | head[1];
	if (pkt->family == SL_V6) {
		/* version 4 bits, traffic class 8, flow label 20 */
		after = (before & 0xf03f) | pkt->dscp << 6;
	} else {
		after = (before & 0xff03) | pkt->dscp << 2;
		check = head[10] << 8 | head[11];
		sum = (u16)~check + (u16)~before + after;
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		check = ~sum;
		head[10] = check >> 8;
		head[11] = check;
	}
	/*
	 * Without an Ethernet header the kernel takes these bytes for one: if the bit of group
	 * addresses in the first one changes, it reads the protocol anew, and the packet would be
	 * lost.
	 */
	if (env_link() == SL_LINK_IP && ((head[0] ^ after >> 8) & 1))
		return -1;
	head[0] = after >> 8;
	head[1] = after;
	return env_store_bytes(ctx, offset, head, sizeof(head));
}

static __always_inline void put_tags(env_ctx *ctx, const struct packet *pkt)
{
	if ((pkt->tag & SL_TAG_DSCP) && tag_dscp(ctx, pkt))
		count_map_error(SL_ME_TAG_STORE);
	if ((pkt->tag & SL_TAG_MARK) && env_put_mark(ctx, pkt->mark))
		count_map_error(SL_ME_META_ADJUST);
}

/* The reason of a packet that no limit stopped: that it could not be read. */
static __always_inline void note_unread(struct packet *pkt)
{
	if (pkt->reason == SL_R_NO_MATCH || pkt->reason == SL_R_WITHIN)
		pkt->reason = pkt->unread;
}

/* Returns enum xdp_action. */
static __always_inline int verdict(env_ctx *ctx, struct evaluation *ev, enum sl_action action)
{
	if (ev->pkt.flags & PKT_UNREAD)
		note_unread(&ev->pkt);
	ev->failsafe_spent = 0;
	action = push_tag(&ev->pkt, action);
	count_packet(&ev->pkt, action);
	event_verdict(ctx, ev, action, heavy_is_due(ev, action) && heavy_note(ev, action));
	if (fragment_is_noted(&ev->pkt))
		fragment_note(&ev->pkt, action == SL_ACT_DROP);
	if (action == SL_ACT_DROP)
		return ENV_DROP;
	if (action == SL_ACT_TAG)
		put_tags(ctx, &ev->pkt);
	return ENV_PASS;
}

/*
 * Counts a packet that is like an earlier one (refused.h, passed.h), as verdict() would: it is
 * whole, no fragment, and gets no tag. Returns 0 if the packet is a sample or has news, which
 * only verdict() handles. `reason` and `action` are constants.
 */
static __always_inline int verdict_again(struct evaluation *ev, enum sl_reason reason,
					 enum sl_action action)
{
	struct sl_heavy_sampling *sampling = &ev->sampling[heavy_list(action)];
	struct sl_iface_stats *stats = map_iface_stats();

	ev->pkt.reason = reason;
	if (!stats || !sampling->left || ev->news || ev->failsafe_spent)
		return 0;
	sampling->left--;
	stats->packets[reason][action]++;
	stats->bytes[action] += ev->pkt.length;
	return 1;
}

#endif
