/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * evaluation.h - one packet under evaluation: the packet, and the scratch of the stages that
 * judge it.
 *
 * Each CPU has one (env_evaluation()), which both programs use. A stage that needs only facts
 * takes the packet; a stage that classifies or charges takes the evaluation. Scratch is not
 * cleared between packets: each stage writes its part before it reads it.
 */
#ifndef SLUICE_BPF_EVALUATION_H
#define SLUICE_BPF_EVALUATION_H

#include "bpf/packet.h"

/* A meter that the packet is charged to: meters.h. */
struct charged {
	u16 meter; /* its number in the rule set */
	u8 match;  /* which of the limits: matches.limit[match] */
	u8 taken;  /* enum meter_charged */
	u64 key;   /* of its bucket */
};

/* The limits that match, in file order, and their meters. */
struct matches {
	u16 limit[SL_MATCHES_MAX];
	u32 meters[SL_MATCHES_MAX]; /* of each limit: bit i for meter[i] */
	struct charged meter[SL_CHARGES_MAX];
	u32 limits, charges; /* how many */
	u32 dropping;	     /* bits: meters of limits that drop */
	u32 soft;	     /* bits: the meter refused, and its soft meter did not */
	u32 own;	     /* bits: stepped with other parameters than the meter's */
	u32 full;	     /* bits: no room in the table, and the packet passes */
	u32 refused;	     /* the meter that refused last: meter[refused] */
	u32 too_many;	     /* 1: not all that matched could be charged */
};

/* The meter that is charged now: charge_prepare(). */
struct meter_in_hand {
	u64 key, cost;
	u64 bucket_state;	     /* of a key that is not in the table: to be installed */
	struct sl_override override; /* the one found last; a bisection's own */
	struct sl_params params;     /* own_params: instead of the meter's */
	u64 wait_ns;		     /* of a refusal by charge_quickly(); 0: not known */
	u64 probe_tag;		     /* the override that is looked up: override_seek() */
	u32 probe_second;	     /* its second bucket */
	u32 lease;		     /* the most units that this CPU may hold; 0: no lease */
	u32 taken;		     /* of a new lease: its units */
	u32 size;		     /* and how often it was doubled */
	u8 own_rates;		     /* 1: an override holds for the source */
	u8 own_len;		     /* own_rates: as sl_override_own() */
	u8 own_params;		     /* 1: the meter is stepped with `params` */
};

/* What the last packet of this CPU suggests about the next. A wrong hint costs only time. */
struct hints {
	u8 own_rates; /* its meter_in_hand.own_rates */
};

/* A bucket as it is and as it is to be: passed.h. */
struct bucket_step {
	u64 old, new;
	u32 counted; /* 1: for a lease, lease_count() */
};

struct evaluation {
	struct packet pkt;
	struct sl_bitmap match;		 /* classify: limits that match */
	u64 generation;			 /* of the rule set that judges the packet */
	u32 epoch;			 /* as the packet began: refused.h */
	u32 single;			 /* the only meter to be charged, or SL_NO_METER */
	u16 refused_head, refused_meter; /* PKT_NOTE_DROP: the limit, and its meter */
	/*
	 * 1: failsafe_rate is used up, and the packet begins again with the rest of the order.
	 * Kept until the verdict.
	 */
	u8 failsafe_spent;
	u16 limit_id; /* SL_R_OVER, SL_R_MATCH: of the limit */
	/* What this packet changed, until the verdict: event.h. */
	u8 news; /* bits: enum sl_event_kind */
	u8 ban_prefix_len;
	u16 news_limit, ban_limit; /* limit_ids */
	u64 news_key;
	u32 weight; /* of the last sample: of so many packets, heavy.h */
	struct matches matches;
	struct meter_in_hand meter;
	struct hints hints;
	struct bucket_step step[SL_PASSED_METERS];
	u32 charged; /* bits: which of them were, or a lease instead */
	struct sl_heavy_sampling sampling[SL_HEAVY_LISTS]; /* kept between packets: heavy.h */
};

/* The parameters that the meter in hand is stepped with. */
static __always_inline const struct sl_params *meter_params(const struct sl_limit *meter,
							    const struct evaluation *ev)
{
	return ev->meter.own_params ? &ev->meter.params : &meter->params;
}

#endif
