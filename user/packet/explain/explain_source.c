// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* explain_source.c - the bans and push-downs of a packet's source; see dp_explain.h. */
#include <errno.h>
#include <string.h>

#include "packet/explain/dp_explain.h"

int explain_bans(struct dp *dp, const struct sl_rules *rules, const struct explain_packet *packet,
		 u64 mono_ns, struct explain_ban *ret, struct sl_err *err)
{
	const u8 *len = rules->ban_len[packet->family & 1];

	memset(ret, 0, sizeof(*ret));
	for (u32 i = 0; i < SL_BAN_LENGTHS && len[i] != SL_PREFIX_NONE; i++) {
		struct explain_ban ban = { .known = true };
		int rc;

		ban.key = (struct sl_ban_key){ sl_addr_mask(packet->src, len[i]), packet->family,
					       len[i] };
		rc = dp->ops->hash_get(dp, DP_BANS, &ban.key, &ban.state);
		if (rc == -ENOENT)
			continue;
		if (rc < 0)
			return sl_err_set(err, -rc, "cannot look up bans: %s", strerror(-rc));
		ban.on = mono_ns < ban.state.until_ns;
		if (!ret->known || ban.state.until_ns > ret->state.until_ns)
			*ret = ban;
	}
	return 0;
}

int explain_pushes(struct dp *dp, const struct explain_packet *packet, u64 mono_ns,
		   struct explain_push ret[SL_PUSH_LENGTHS], struct sl_err *err)
{
	const u8 *len = dp->push_now->len[packet->family & 1];
	int count = 0;

	for (u32 i = 0; i < SL_PUSH_LENGTHS; i++) {
		struct explain_push *push = &ret[count];
		int rc;

		if (!len[i])
			continue;
		push->key = (struct sl_push_key){ sl_addr_mask(packet->src, len[i]), packet->family,
						  len[i] };
		rc = dp->ops->hash_get(dp, DP_PUSHES, &push->key, &push->push);
		if (rc == -ENOENT)
			continue;
		if (rc < 0)
			return sl_err_set(err, -rc, "cannot look up push-downs: %s", strerror(-rc));
		push->on = mono_ns < push->push.until_ns;
		count++;
	}
	return count;
}
