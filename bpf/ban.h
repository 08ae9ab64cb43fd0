/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ban.h - step 6, bans: of sources that go on sending after they were refused.
 *
 * A limit with `ban` counts its drops of each source in a bucket of the table, under the trigger
 * meter: a sliding window of `within` whose capacity is `after`. The drop that no longer fits
 * bans the source. The program does all of this: bans begin and end without a daemon.
 *
 * A ban is of a source at the prefix length of the meter that refused: of a /48 where the /48 of a
 * prefix hierarchy was over. It lasts dur_ns[level]. The next one's level is one up; but for each
 * length of a ban that passed since its end, one down. So an entry of the hash `bans` counts for a
 * while after its end; the daemon deletes those that no longer do.
 *
 * Looking: first a filter, a bit for each ban that may be (a Bloom filter of one hash), for
 * each of the at most four lengths in use; then the hash. With the 65536 bans that fit the
 * filter is 40% full, and so many innocent packets pay for a look-up, which costs time only.
 * The hash is looked up by exact address. When it is full, there are no new bans; the limit
 * stays in force.
 */
#ifndef SLUICE_BPF_BAN_H
#define SLUICE_BPF_BAN_H

#include "bpf/charge.h"
#include "bpf/socket.h"

/* Length number i of this family's bans; SL_PREFIX_NONE ends them. */
static __always_inline u32 ban_len(const struct sl_rules *rules, const struct packet *pkt, u32 i)
{
	return rules->ban_len[pkt->family & 1][i & (SL_BAN_LENGTHS - 1)];
}

static __always_inline u64 *ban_filter_word(struct sl_ban_filter *filter, u32 bit)
{
	u32 word = bit / 64;

	OPAQUE(word);
	return &filter->w[word & (SL_BAN_FILTER_WORDS - 1)];
}

/* Whether the filter has the packet's source, at any length. */
static __always_inline int ban_may_be(const struct sl_rules *rules, const struct packet *pkt)
{
	struct sl_ban_filter *filter = map_ban_filter();
	u32 i, len, bit;
	u64 found = 0;

	if (!filter)
		return 0;
	for (i = 0; i < SL_BAN_LENGTHS; i++) {
		len = ban_len(rules, pkt, i);
		if (len == SL_PREFIX_NONE)
			break;
		bit = sl_ban_bit(sl_addr_mask(packet_src(pkt), len), len);
		found |= *ban_filter_word(filter, bit) >> (bit & 63);
	}
	return found & 1;
}

/* A ban that is on: a bound of the time is enough for that. */
static __always_inline int ban_is_on(struct packet *pkt, const struct sl_ban_state *ban)
{
	u64 late = clock_bound_ns(pkt);

	if (late && late < ban->until_ns)
		return 1;
	clock_read(pkt);
	return pkt->now.mono_ns < ban->until_ns;
}

/* Whether the packet's source is banned, by exact look-up; and then it is counted there. */
SL_GLOBAL int ban_holds(const struct sl_rules *rules, struct packet *pkt)
{
	struct sl_ban_state *ban;
	struct sl_ban_key key;
	u32 i;

	if (!rules || !pkt)
		return 0;
	for (i = 0; i < SL_BAN_LENGTHS; i++) {
		key.len = ban_len(rules, pkt, i);
		if (key.len == SL_PREFIX_NONE)
			break;
		key.family = pkt->family;
		key.addr = sl_addr_mask(packet_src(pkt), key.len);
		ban = map_ban(&key);
		if (ban && ban_is_on(pkt, ban)) {
			ban->drops++;
			return 1;
		}
	}
	return 0;
}

/* Step 6; `src` is the source's class, or NULL. */
static __always_inline int is_banned(const struct sl_rules *rules, struct packet *pkt,
				     const struct sl_pclass *src)
{
	if (!(rules->dims & SL_DIMS_BANS))
		return 0;
	if (src && (src->flags & SL_PC_NO_BAN)) {
		pkt->flags |= PKT_NO_BAN;
		return 0;
	}
	return ban_may_be(rules, pkt) && ban_holds(rules, pkt);
}

/* ---- setting them */

/* A meter of a limit refused the packet as over: ban_note_drop() counts that. */
static __always_inline void ban_refused(const struct sl_limit *limit, struct evaluation *ev,
					u32 head, u32 meter)
{
	if (limit->ban == SL_NO_METER || (ev->pkt.flags & PKT_NO_BAN))
		return;
	ev->refused_head = head;
	ev->refused_meter = meter;
	ev->pkt.flags |= PKT_NOTE_DROP;
}

/* What a packet's limit bans by, NULL where it does not. */
static __always_inline const struct sl_ban *ban_of(const struct sl_rules *rules,
						   const struct evaluation *ev)
{
	const struct sl_limit *head = limit_at(rules, ev->refused_head);
	u32 index;

	if (!head)
		return NULL;
	index = head->ban;
	if (index >= SL_LIMITS_MAX)
		return NULL;
	OPAQUE(index);
	return &rules->ban[index & (SL_LIMITS_MAX - 1)];
}

/*
 * Returns the prefix length of the meter that refused. SL_PREFIX_NONE if no meter refused, or if it
 * counts link-local sources by address: bans of that length are not looked up.
 */
static __always_inline u32 ban_refused_len(const struct sl_rules *rules,
					   const struct evaluation *ev)
{
	const struct sl_limit *meter = limit_at(rules, ev->refused_meter);

	if (!meter || sl_link_own(meter, ev->pkt.family, packet_src(&ev->pkt)))
		return SL_PREFIX_NONE;
	return meter->prefix[ev->pkt.family & 1];
}

/*
 * Prepares key and cost of a drop in the limit's trigger meter. Returns it, or SL_NO_METER
 * where there is nothing to count. A function of its own: its stack is not under the charge's.
 */
SL_GLOBAL u32 ban_prepare(const struct sl_rules *rules, struct evaluation *ev)
{
	const struct sl_limit *trigger;
	const struct sl_ban *ban;
	u32 len, meter;

	if (!rules || !ev)
		return SL_NO_METER;
	ban = ban_of(rules, ev);
	len = ban_refused_len(rules, ev);
	if (!ban || len == SL_PREFIX_NONE)
		return SL_NO_METER;
	meter = ban->trigger;
	trigger = limit_at(rules, meter);
	if (!trigger)
		return SL_NO_METER;
	ev->meter.cost = 1;
	ev->meter.lease = 0; /* the drops are counted one by one */
	ev->meter.own_rates = 0;
	ev->meter.own_params = 0;
	ev->meter.key = sl_ban_trigger_key(rules, trigger, sl_addr_mask(packet_src(&ev->pkt), len),
					   ev->pkt.family, len);
	return meter;
}

/* The level of a ban that begins now, after `last`, which has ended. */
static __always_inline u32 ban_next_level(const struct sl_ban_state *last, u64 now_ns)
{
	u64 length = last->until_ns - last->since_ns;
	u64 behaved = length ? (now_ns - last->until_ns) / length : SL_BAN_LEVELS;

	return last->level + 1 > behaved ? last->level + 1 - behaved : 0;
}

/*
 * Bans the packet's source. The entry comes before its bit: the daemon, rebuilding the filter at
 * the same time, clears bits and then reads the entries.
 */
SL_GLOBAL int ban_set(const struct sl_rules *rules, struct evaluation *ev)
{
	const struct sl_limit *head;
	const struct sl_ban_state *last;
	struct sl_ban_filter *filter = map_ban_filter();
	struct sl_ban_state new = {};
	struct sl_ban_key key = {};
	const struct sl_ban *ban;
	u32 bit;

	if (!rules || !ev || !filter)
		return 0;
	ban = ban_of(rules, ev);
	head = limit_at(rules, ev->refused_head);
	if (!ban || !head)
		return 0;
	clock_read(&ev->pkt);
	key.len = ban_refused_len(rules, ev);
	key.family = ev->pkt.family;
	key.addr = sl_addr_mask(packet_src(&ev->pkt), key.len);
	last = map_ban(&key);
	if (last) {
		if (ev->pkt.now.mono_ns < last->until_ns)
			return 0; /* another CPU was faster */
		new.level = ban_next_level(last, ev->pkt.now.mono_ns);
		if (new.level >= ban->levels)
			new.level = ban->levels - 1;
	}
	new.slot = head->slot;
	new.since_ns = ev->pkt.now.mono_ns;
	new.until_ns = new.since_ns + ban->dur_ns[new.level &(SL_BAN_LEVELS - 1)];
	if (map_ban_update(&key, &new)) {
		count_map_error(SL_ME_BAN_UPDATE);
		return 0;
	}
	bit = sl_ban_bit(key.addr, key.len);
	__sync_fetch_and_or(ban_filter_word(filter, bit), 1ULL << (bit & 63));
	map_epoch_raise();
	event_note_ban(ev, new.slot, key.len);
	return 1;
}

/*
 * Counts a drop that ban_refused() noted, after the limit has counted it. Packets that could be
 * forged count only where the limit has `spoofable`. A drop that cannot be counted (a full table)
 * leads to no ban.
 */
static __always_inline void ban_note_drop(env_ctx *ctx, const struct sl_rules *rules,
					  struct evaluation *ev)
{
	const struct sl_ban *ban;
	u8 news = ev->news;
	u32 meter;
	int bans;

	if (!(ev->pkt.flags & PKT_NOTE_DROP))
		return;
	ban = ban_of(rules, ev);
	if (!ban || (!ban->spoofable && !socket_proves(ctx, &ev->pkt)))
		return;
	meter = ban_prepare(rules, ev);
	bans = meter != SL_NO_METER && charge_limit(rules, ev, meter, CHARGE_COMMIT) == CHARGE_OVER;
	ev->news = news; /* that the trigger is over is no news */
	if (bans)
		ban_set(rules, ev);
}

#endif
