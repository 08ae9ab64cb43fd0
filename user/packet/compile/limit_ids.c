/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit_ids.c - binds the meters of limits to limit_ids.
 *
 * A limit_id is bound to a name and a kind. A limit whose kind changes gets another one, since the
 * old bucket states would have another meaning under the new rule. The old limit_id drains beside
 * it under the same name, so a name has to be looked up among the BOUND ones. If a limit returns
 * unchanged (after a rollback), its draining limit_id is bound again and its bucket states
 * continue.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "packet/compile/compile.h"
#include "packet/compile/limit_ids.h"

u64 limit_kind(const struct sl_limit *limit)
{
	bool by_source = limit->per & SL_PER_SOURCE;
	bool by_dst =
		(limit->per & SL_PER_DST) && (limit->dst_prefix[SL_V4] || limit->dst_prefix[SL_V6]);
	struct sl_sip sip;

	sl_sip_start(&sip, (struct sl_seed){ 0 });
	sl_sip_add(&sip, limit->params.algo);
	sl_sip_add(&sip, limit->unit);
	sl_sip_add(&sip, limit->per);
	sl_sip_add(&sip, by_source ? limit->prefix[SL_V4] : 0);
	sl_sip_add(&sip, by_source ? limit->prefix[SL_V6] : 0);
	if (by_dst)
		sl_sip_add(&sip,
			   1 << 16 | limit->dst_prefix[SL_V4] << 8 | limit->dst_prefix[SL_V6]);
	if (limit->by_match)
		sl_sip_add(&sip, 2 << 16);
	sl_sip_add(&sip, limit->params.window_ns); /* 0 except for windows and grace */
	sl_sip_add(&sip, limit->params.quantum);   /* 0 except for large sliding windows */
	return sl_sip_finish(&sip);
}

u64 limit_kind_of(u64 kind, const char *limit)
{
	u64 bucket_state[SL_NAME_MAX / sizeof(u64)] = { 0 };
	struct sl_sip sip;

	memcpy(bucket_state, limit, strnlen(limit, sizeof(bucket_state)));
	sl_sip_start(&sip, (struct sl_seed){ 0 });
	sl_sip_add(&sip, kind);
	for (size_t i = 0; i < sizeof(bucket_state) / sizeof(*bucket_state); i++)
		sl_sip_add(&sip, bucket_state[i]);
	return sl_sip_finish(&sip);
}

/* The limit_id that a claim already has, or 0. */
static u32 find_own(const struct sl_limit_id_info *slots, const struct limit_id_claim *claim)
{
	for (u32 slot = 1; slot < SL_LIMIT_IDS; slot++) {
		if (slots[slot].state != SL_LIMIT_ID_FREE && slots[slot].kind == claim->kind &&
		    !strncmp(slots[slot].name, claim->name, SL_NAME_MAX))
			return slot;
	}
	return 0;
}

static u32 find_free(const struct sl_limit_id_info *slots, bool kept)
{
	for (u32 slot = kept ? SL_LIMIT_ID_KEPT : 1;
	     slot < (kept ? SL_LIMIT_IDS : SL_LIMIT_ID_KEPT); slot++) {
		if (slots[slot].state == SL_LIMIT_ID_FREE)
			return slot;
	}
	return 0;
}

int limit_ids_claim(struct sl_limit_id_info *slots, struct limit_id_claim *claim, size_t count)
{
	for (size_t i = 0; i < count; i++)
		claim[i].slot = find_own(slots, &claim[i]);
	for (u32 slot = 1; slot < SL_LIMIT_IDS; slot++) {
		if (slots[slot].state == SL_LIMIT_ID_BOUND)
			slots[slot].state = SL_LIMIT_ID_DRAINING;
	}
	for (size_t i = 0; i < count; i++) {
		struct sl_limit_id_info *info;

		if (!claim[i].slot) {
			u32 free_slot = find_free(slots, claim[i].kept);

			/* Places are kept for the first 256 meters for prefixes only. */
			if (!free_slot && claim[i].kept)
				free_slot = find_free(slots, false);
			if (!free_slot)
				return -ENOSPC;
			claim[i].slot = free_slot;
			info = &slots[free_slot];
			memset(info, 0, sizeof(*info));
			strncpy(info->name, claim[i].name, SL_NAME_MAX - 1);
			info->kind = claim[i].kind;
		}
		slots[claim[i].slot].state = SL_LIMIT_ID_BOUND;
	}
	return 0;
}

/*
 * The debt in a bucket state is a fraction of its tau. If a rate and its burst change in proportion
 * and tau stays, as for each rate with the default burst of one second, the bucket states need no
 * rescaling and the limit_id no new generation.
 */
void limit_id_set_params(struct sl_limit_id_info *slot, struct sl_params *params)
{
	if (!sl_is_bucket(params))
		return;
	if (slot->tau[slot->gen & SL_GCRA_GEN_MASK] &&
	    slot->tau[slot->gen & SL_GCRA_GEN_MASK] != params->tau)
		slot->gen++;
	slot->gen &= SL_GCRA_GEN_MASK;
	slot->tau[slot->gen] = params->tau;
	params->gen = slot->gen;
	params_rescale(params, slot);
}
