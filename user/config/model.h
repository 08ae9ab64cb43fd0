/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* model.h - shared by the files of the rule model. */
#ifndef SLUICE_MODEL_H
#define SLUICE_MODEL_H

#include "conf/name.h"
#include "config/policy.h"
#include "lib/array.h"

#define TCP_ACK 16
#define PROTO_ICMP 1
#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_ICMPV6 58
#define PROTO_SCTP 132
#define PROTO_UDPLITE 136

extern const struct name interface_mode_names[], on_removed_names[], algorithm_names[],
	accounting_names[], limit_action_names[], limit_mode_names[], on_full_names[],
	on_parse_error_names[], fragments_names[], scope_names[], count_names[], http_count_names[],
	per_names[], window_names[], rounding_names[], proto_names[], port_proto_names[],
	dscp_names[], tcp_flag_names[], icmp_names[], icmpv6_names[];

/* The defaults. 0 or -ENOMEM. */
int policy_new(const char *path, struct policy **ret);

/* The largest scale of its rates, in percent; 100: not elastic. */
static inline u32 limit_ceiling(const struct limit_def *limit)
{
	const struct throttle_def *throttle = &limit->terms.throttle;

	return throttle->kind == THROTTLE_ELASTIC ? throttle->ceiling_percent : 100;
}

/* Frees what a limit holds, not the struct itself. */
void limit_clear(struct limit_def *limit);

/* The default of a ban's `max`: a day, but no less than the first ban. */
u64 ban_default_max(u64 for_ns);

/* src and dst, or a list, with the prefixes of the sets they name. 0 or -ENOMEM. */
int match_expand(const struct policy *policy, struct match_def *match);
int list_expand(const struct policy *policy, struct list_def *list);
/* Entries from `from` on, behind those that list_find_entry() finds: it finds these, too. 0 or
 * -ENOMEM. */
int list_index(struct list_def *list, size_t from);

/* ---- questions ---- */

/*
 * Whether a packet of this family and protocol can meet the conditions at all: ports need
 * TCP, UDP, UDP-Lite or SCTP, flags TCP, an ICMP type the family's ICMP.
 */
bool match_possible(const struct match_def *match, enum sl_family family, u8 proto);
/* Its two parts: evaluate the one for addresses, whose lists may be long, only once. */
bool match_possible_family(const struct match_def *match, enum sl_family family);
bool match_possible_proto(const struct match_def *match, enum sl_family family, u8 proto);

#endif
