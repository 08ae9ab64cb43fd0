/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* names.c - the names of the data plane's enums in metrics and the CLI. */
#include "packet/dataplane/dataplane.h"

#define NAME_OF(table, index)                                                                      \
	((index) < sizeof(table) / sizeof((table)[0]) ? (table)[index] : "unknown")

static const char *const reasons[] = {
	[SL_R_NO_MATCH] = "no_match",
	[SL_R_WITHIN] = "within",
	[SL_R_OVER] = "over",
	[SL_R_SOFT] = "soft",
	[SL_R_ARP] = "arp",
	[SL_R_ND] = "nd",
	[SL_R_ESSENTIAL_OVER] = "essential_over",
	[SL_R_SESSION] = "session",
	[SL_R_EXEMPT] = "exempt",
	[SL_R_FAILSAFE] = "failsafe",
	[SL_R_FAILSAFE_OVER] = "failsafe_over",
	[SL_R_BLOCK] = "block",
	[SL_R_BAN] = "ban",
	[SL_R_TABLE_FULL] = "table_full",
	[SL_R_CONTENDED] = "contended",
	[SL_R_TOO_MANY_LIMITS] = "too_many_limits",
	[SL_R_NOT_IP] = "not_ip",
	[SL_R_VLAN_DEPTH] = "vlan_depth",
	[SL_R_TRUNCATED] = "truncated",
	[SL_R_MALFORMED] = "malformed",
	[SL_R_EXTHDR] = "exthdr",
	[SL_R_FRAGMENT] = "fragment",
	[SL_R_NO_RULES] = "no_rules",
	[SL_R_PUSH_LIMIT] = "push_limit",
	[SL_R_PUSH_TAG] = "push_tag",
	[SL_R_PUSH_NO_NEW] = "push_no_new",
	[SL_R_PUSH_DROP] = "push_drop",
	[SL_R_PATH_MTU] = "path_mtu",
	[SL_R_PATH_MTU_OVER] = "path_mtu_over",
	[SL_R_MATCH] = "match",
};
SL_STATIC_ASSERT(sizeof(reasons) / sizeof(reasons[0]) == SL_R_COUNT, "a name for each");

static const char *const actions[] = {
	[SL_ACT_PASS] = "pass",
	[SL_ACT_DROP] = "drop",
	[SL_ACT_TAG] = "tag",
};
SL_STATIC_ASSERT(sizeof(actions) / sizeof(actions[0]) == SL_ACT_COUNT, "a name for each");

static const char *const limit_verdicts[] = {
	[SL_LV_PASS] = "pass",	   [SL_LV_DROP] = "drop", [SL_LV_TAG] = "tag",
	[SL_LV_SHADOW] = "shadow", [SL_LV_SOFT] = "soft",
};
SL_STATIC_ASSERT(sizeof(limit_verdicts) / sizeof(limit_verdicts[0]) == SL_LV_COUNT,
		 "a name for each");

static const char *const push_kinds[] = {
	[SL_PUSH_LIMIT] = "limit",
	[SL_PUSH_TAG] = "tag",
	[SL_PUSH_NO_NEW] = "no-new",
	[SL_PUSH_DROP] = "drop",
};
SL_STATIC_ASSERT(sizeof(push_kinds) / sizeof(push_kinds[0]) == SL_PUSH_COUNT, "a name for each");

static const struct {
	const char *map, *op;
} map_errors[] = {
	[SL_ME_PREFIX_LOOKUP] = { "pfx_of", "lookup" },
	[SL_ME_CLASS_LOOKUP] = { "pclass_of", "lookup" },
	[SL_ME_ELASTIC_LOOKUP] = { "elastic", "lookup" },
	[SL_ME_OVERRIDE_LOOKUP] = { "overrides_of", "lookup" },
	[SL_ME_TABLE_LOOKUP] = { "table", "lookup" },
	[SL_ME_LEASE_UPDATE] = { "lease", "update" },
	[SL_ME_STATS_LOOKUP] = { "stats", "lookup" },
	[SL_ME_STATE_LOOKUP] = { "state", "lookup" },
	[SL_ME_META_ADJUST] = { "packet", "adjust_meta" },
	[SL_ME_TAG_STORE] = { "packet", "store" },
	[SL_ME_STAGE_JUMP] = { "stages", "tail_call" },
	[SL_ME_BAN_UPDATE] = { "bans", "update" },
	[SL_ME_FRAGMENT_UPDATE] = { "fragments", "update" },
};
SL_STATIC_ASSERT(sizeof(map_errors) / sizeof(map_errors[0]) == SL_ME_COUNT, "a name for each");

const char *reason_name(enum sl_reason reason)
{
	return NAME_OF(reasons, reason);
}

const char *action_name(enum sl_action action)
{
	return NAME_OF(actions, action);
}

const char *limit_verdict_name(enum sl_limit_verdict verdict)
{
	return NAME_OF(limit_verdicts, verdict);
}

const char *push_kind_name(u32 kind)
{
	return NAME_OF(push_kinds, kind);
}

void map_error_name(enum sl_map_error error, const char **ret_map, const char **ret_op)
{
	*ret_map = error < SL_ME_COUNT ? map_errors[error].map : "unknown";
	*ret_op = error < SL_ME_COUNT ? map_errors[error].op : "unknown";
}

const char *limit_mode_name(enum sl_mode mode)
{
	switch (mode) {
	case SL_MODE_ENFORCE:
		return "enforce";
	case SL_MODE_SHADOW:
		return "shadow";
	default:
		return "off";
	}
}
