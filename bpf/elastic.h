/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * elastic.h - a limit that grows while resources are free, and shrinks while they are not.
 *
 * The daemon watches the resources and writes a scale, and until when it holds: a second or
 * two. So the scales of a dead daemon end by themselves. A bucket state is valid under any scale
 * (see sl_scale_params()), so nothing is converted when the scale changes.
 */
#ifndef SLUICE_BPF_ELASTIC_H
#define SLUICE_BPF_ELASTIC_H

#include "bpf/clock.h"
#include "bpf/observe.h"

/* Makes ev->meter.params those of `meter` times its limit's current scale, where that is not 1. */
static __always_inline void elastic_look(const struct sl_rules *rules, struct evaluation *ev,
					 const struct sl_limit *meter)
{
	const struct sl_limit *head = limit_at(rules, meter->head);
	const struct sl_elastic *elastic;
	u32 scale, inverse;
	u64 both;

	if (!head)
		return;
	elastic = map_elastic(head->slot);
	if (!elastic) {
		count_map_error(SL_ME_ELASTIC_LOOKUP);
		return;
	}
	both = *(const volatile u64 *)elastic; /* scale and inverse of one reading */
	scale = both;
	inverse = both >> 32;
	if (scale == SL_ELASTIC_ONE || scale < SL_SCALE_MIN || scale > SL_SCALE_MAX)
		return;
	clock_read(&ev->pkt);
	if (ev->pkt.now.mono_ns >= *(const volatile u64 *)&elastic->valid_until_ns)
		return;
	if (!ev->meter.own_params)
		ev->meter.params = meter->params;
	sl_scale_params(&ev->meter.params, scale, inverse,
			meter->unit == SL_UNIT_BYTES ? SL_FRAME_LARGE : 1);
	ev->meter.own_params = 1;
}

#endif
