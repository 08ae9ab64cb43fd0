/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* epoch.h - the map `epoch` (sluice/epoch.h): a part of maps.h. */
#ifndef SLUICE_BPF_EPOCH_H
#define SLUICE_BPF_EPOCH_H

#include "sluice/abi.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sl_epoch);
} epoch SEC(".maps");

static __always_inline u64 map_epoch(void)
{
	u32 zero = 0;
	const struct sl_epoch *now = bpf_map_lookup_elem(&epoch, &zero);

	return now ? *(const volatile u64 *)&now->count : 0;
}

static __always_inline void map_epoch_raise(void)
{
	u32 zero = 0;
	struct sl_epoch *now = bpf_map_lookup_elem(&epoch, &zero);

	if (now)
		__sync_fetch_and_add(&now->count, SL_EPOCH_STEP);
}

#endif
