// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * compile_events.c - the image's data for steps 1, 2 and 6 of the order: the gateways, the login
 * sessions, the prefix lengths of the lookup of bans, and the sources that are exempt from bans.
 *
 * The lengths are those of the meters of limits that ban, and those of active bans of removed
 * limits, which stay until they end. The bans themselves are not part of an image; they are in a
 * map of their own, which the BPF program writes.
 */
#include <string.h>

#include "lib/bitmap.h"
#include "packet/compile/compile_events.h"

/* Puts a session in the first free slot of its probe sequence; false if that is too long. */
static bool add_session(struct sl_rules *rules, const struct sl_session *session)
{
	u32 at = sl_session_at(session->src, session->sport);

	for (u32 i = 0; i < SL_SESSION_PROBES; i++) {
		struct sl_session *place = &rules->session[(at + i) % SL_SESSION_TABLE];

		if (place->used)
			continue;
		*place = *session;
		rules->session_source[sl_session_source(session->src) / 64] |=
			SL_BIT(sl_session_source(session->src) % 64);
		return true;
	}
	return false;
}

static u32 add_sessions(const struct compile_env *env, struct sl_rules *rules)
{
	u32 added = 0;

	for (size_t i = 0; i < env->session_count && added < SL_SESSIONS_MAX; i++)
		added += add_session(rules, &env->session[i]);
	if (added)
		rules->dims |= SL_DIMS_SESSIONS;
	return added;
}

/* Adds a length for the lookup of bans, unless present; without a free entry it is left out. */
static void add_len(struct sl_rules *rules, u32 family, u8 len)
{
	u8 *lens = rules->ban_len[family];

	if (len == SL_PREFIX_NONE)
		return;
	for (u32 i = 0; i < SL_BAN_LENGTHS; i++) {
		if (lens[i] == len)
			return;
		if (lens[i] != SL_PREFIX_NONE)
			continue;
		lens[i] = len;
		rules->dims |= SL_DIMS_BANS;
		return;
	}
}

static void add_lens(const struct compile_env *env, struct sl_rules *rules)
{
	memset(rules->ban_len, SL_PREFIX_NONE, sizeof(rules->ban_len));
	for (u32 i = 0; i < rules->limits_count; i++) {
		bool bans = bitmap_has(&rules->dropping, i) && rules->limits[i].ban != SL_NO_METER;
		u32 meter = bans ? i : SL_NO_METER;

		for (; meter < SL_METERS_MAX; meter = rules->limits[meter].next)
			for (u32 family = 0; family < SL_FAMILY_COUNT; family++)
				add_len(rules, family, rules->limits[meter].prefix[family]);
	}
	for (u32 family = 0; family < SL_FAMILY_COUNT; family++)
		for (u32 i = 0; i < env->ban_len_count[family]; i++)
			add_len(rules, family, env->ban_len[family][i]);
}

static void add_gateways(const struct compile_env *env, struct sl_rules *rules)
{
	for (size_t i = 0; i < env->gateway_count; i++) {
		const struct sl_prefix *gateway = &env->gateway[i];
		u8 *count = &rules->gateways[gateway->family];

		if (*count < SL_GATEWAYS_MAX)
			rules->gateway[gateway->family][(*count)++] = gateway->addr;
	}
}

u32 events_compile(const struct compile_env *env, struct sl_rules *rules)
{
	add_lens(env, rules);
	add_gateways(env, rules);
	return add_sessions(env, rules);
}

int events_add_no_ban(const struct compile_env *env, struct sl_rules *rules,
		      struct prefix_list *list)
{
	if (!(rules->dims & SL_DIMS_BANS))
		return 0;
	for (size_t i = 0; i < env->no_ban_count; i++) {
		const struct sl_prefix *prefix = &env->no_ban[i];
		struct prefix_entry entry = {
			.addr = prefix->addr,
			.family = prefix->family,
			.len = prefix->len,
			.dim = SL_PDIM_SRC,
			.fact = PREFIX_NO_BAN,
		};
		int err = prefix_list_add(list, &entry);

		if (err)
			return err;
		rules->dims |= SL_DIMS_P(SL_PDIM_SRC);
	}
	return 0;
}
