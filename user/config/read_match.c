// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * read_match.c - a limit's `match:`. Each key takes a value or a list of values; conditions that
 * contradict each other, so that no packet can match, are refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/read.h"

/* An address or a set's name; match_expand() adds the prefixes of the set. */
static int read_address(struct reader *r, const struct yaml_node *node,
			struct sl_prefix *ret_prefix, const struct set_def **ret_set)
{
	int rc = read_prefix_or_set(r, node, ret_prefix, ret_set);

	/* An empty set would leave the dimension empty, which matches everything. */
	if (!rc && *ret_set && !(*ret_set)->count)
		rc = read_fail(r, node, EINVAL, "the set %s is empty, so no packet could match; "
			       "accepted: a set with addresses, or mode: off", read_found(r, node));
	return rc;
}

/* Appends a set's name to names; NULL where there is no memory. */
static void *append_name(char (*names)[SL_NAME_MAX], size_t *count, const struct set_def *set)
{
	char (*grown)[SL_NAME_MAX] = array_grow(names, *count, sizeof(*names));

	if (grown)
		memcpy(grown[(*count)++], set->name, sizeof(set->name));
	return grown;
}

#define ADDRESS_OF(dim)                                                                  \
	static int item_##dim(struct reader *r, const struct yaml_node *node, void *into)     \
	{                                                                                \
		struct match_def *m = into;                                              \
		const struct set_def *set;                                               \
		struct sl_prefix prefix;                                                 \
		int rc = read_address(r, node, &prefix, &set);                           \
		void *grown;                                                             \
											 \
		if (rc)                                                                  \
			return rc;                                                       \
		if (!set)                                                                \
			return append(m->dim, m->dim##_count, prefix) ? read_no_memory(r) : 0; \
		grown = append_name(m->dim##_set, &m->dim##_set_count, set);             \
		if (!grown)                                                              \
			return read_no_memory(r);                                        \
		m->dim##_set = grown;                                                    \
		return 0;                                                                \
	}
ADDRESS_OF(src)
ADDRESS_OF(dst)

static int item_proto(struct reader *r, const struct yaml_node *node, void *into)
{
	const struct name *name = name_find(proto_names, node->text);
	struct match_def *m = into;
	u64 number;
	int rc = 0;

	if (name)
		number = name->value;
	else
		rc = read_number(r, node, 255, "tcp, udp, icmp, icmpv6, sctp, or 0 to 255",
				 &number);
	if (!rc && append(m->proto, m->proto_count, number))
		rc = read_no_memory(r);
	return rc;
}

#define PORTS "a port or a range of them, 0 to 65535, as 443 or 8000-8010"

static int item_dport(struct reader *r, const struct yaml_node *node, void *into)
{
	struct match_def *m = into;
	struct u16_range range;
	int rc = read_range(r, node, 65535, PORTS, &range);

	if (!rc && append(m->dport, m->dport_count, range))
		rc = read_no_memory(r);
	return rc;
}

static int item_sport(struct reader *r, const struct yaml_node *node, void *into)
{
	struct match_def *m = into;
	struct u16_range range;
	int rc = read_range(r, node, 65535, PORTS, &range);

	if (!rc && append(m->sport, m->sport_count, range))
		rc = read_no_memory(r);
	return rc;
}

static int item_length(struct reader *r, const struct yaml_node *node, void *into)
{
	struct match_def *m = into;
	struct u16_range range;
	int rc = read_range(r, node, 65535, "the length that IP states, in bytes, or a range of "
			    "them, 0 to 65535, as 0-128", &range);

	if (!rc && append(m->length, m->length_count, range))
		rc = read_no_memory(r);
	return rc;
}

static int item_vlan(struct reader *r, const struct yaml_node *node, void *into)
{
	struct match_def *m = into;
	struct u16_range range;
	int rc = read_range(r, node, 4095, "a VLAN id or a range of them, 0 to 4095", &range);

	if (!rc && append(m->vlan, m->vlan_count, range))
		rc = read_no_memory(r);
	return rc;
}

#define FLAGS "flags that are set or, after '!', clear, as syn,!ack; fin, syn, rst, psh, ack, " \
	"urg, ece, cwr"

static int item_tcp_flags(struct reader *r, const struct yaml_node *node, void *into)
{
	struct tcp_flags_cond cond = { 0, 0 };
	struct match_def *m = into;
	const char *p = node->text;

	if (node->kind != YAML_TEXT)
		return read_refuse(r, node, FLAGS);
	for (;;) {
		size_t len = strcspn(p + (*p == '!'), ",");
		const char *word = p + (*p == '!');
		const struct name *flag;
		char copy[4] = "";

		if (len < sizeof(copy))
			memcpy(copy, word, len);
		flag = name_find(tcp_flag_names, copy);
		if (!flag)
			return read_refuse(r, node, FLAGS);
		if ((cond.set | cond.clear) & flag->value)
			return read_fail(r, node, EINVAL, "found %s; accepted: each flag once",
					 read_found(r, node));
		if (*p == '!')
			cond.clear |= flag->value;
		else
			cond.set |= flag->value;
		if (!word[len])
			break;
		p = word + len + 1;
		p += strspn(p, " ");
	}
	return append(m->tcp_flags, m->tcp_flags_count, cond) ? read_no_memory(r) : 0;
}

/* A name stands for the type of that name in each family that has it, a number for both. */
static int item_icmp_type(struct reader *r, const struct yaml_node *node, void *into)
{
	const struct name *v4 = name_find(icmp_names, node->text);
	const struct name *v6 = name_find(icmpv6_names, node->text);
	struct icmp_type_cond cond4 = { SL_V4, 0 }, cond6 = { SL_V6, 0 };
	struct match_def *m = into;
	int rc = 0;
	u64 number;

	if (v4 || v6) {
		cond4.type = v4 ? v4->value : 0;
		cond6.type = v6 ? v6->value : 0;
	} else {
		rc = read_number(r, node, 255, "a type's name as nft has it (echo-request, "
				 "echo-reply, destination-unreachable, time-exceeded, "
				 "packet-too-big, nd-neighbor-solicit...), or 0 to 255", &number);
		if (rc)
			return rc;
		cond4.type = cond6.type = number;
	}
	if (v4 || !v6)
		rc = append(m->icmp_type, m->icmp_type_count, cond4);
	if (!rc && (v6 || !v4))
		rc = append(m->icmp_type, m->icmp_type_count, cond6);
	return rc ? read_no_memory(r) : 0;
}

static int item_interface(struct reader *r, const struct yaml_node *node, void *into)
{
	struct match_def *m = into;
	char name[16], (*grown)[16];
	int rc = read_interface_name(r, node, name);

	if (rc)
		return rc;
	grown = array_grow(m->interface, m->interface_count, sizeof(name));
	if (!grown)
		return read_no_memory(r);
	m->interface = grown;
	memcpy(m->interface[m->interface_count++], name, sizeof(name));
	return 0;
}

/* An empty list could mean everything or nothing, so it is refused. */
static int read_values(struct reader *r, const struct yaml_node *node,
		       int (*item)(struct reader *r, const struct yaml_node *item, void *into),
		       void *into)
{
	if (node->kind == YAML_LIST && !node->count)
		return read_fail(r, node, EINVAL, "found an empty list; accepted: one or more "
				 "values, and no key at all to match any");
	return read_each(r, node, item, into);
}

#define VALUES_OF(dim)                                                                   \
	static int read_##dim(struct reader *r, const struct yaml_node *node, void *into)     \
	{                                                                                \
		return read_values(r, node, item_##dim, into);                           \
	}
VALUES_OF(src)
VALUES_OF(dst)
VALUES_OF(proto)
VALUES_OF(dport)
VALUES_OF(sport)
VALUES_OF(vlan)
VALUES_OF(tcp_flags)
VALUES_OF(icmp_type)
VALUES_OF(length)
VALUES_OF(interface)

static const struct key match_keys[] = {
	{ "src", read_src }, { "dst", read_dst }, { "proto", read_proto },
	{ "dport", read_dport }, { "sport", read_sport }, { "vlan", read_vlan },
	{ "tcp_flags", read_tcp_flags }, { "icmp_type", read_icmp_type },
	{ "length", read_length }, { "interface", read_interface },
};

static bool lists_proto(const struct match_def *m, u8 proto)
{
	return !m->proto_count || memchr(m->proto, proto, m->proto_count);
}

static bool lists_icmp_of(const struct match_def *m, enum sl_family family)
{
	size_t i;

	for (i = 0; i < m->icmp_type_count; i++)
		if (m->icmp_type[i].family == family)
			return true;
	return false;
}

static bool has_family(const struct sl_prefix *prefix, size_t count, enum sl_family family)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (prefix[i].family == family)
			return true;
	return !count;
}

bool match_possible_family(const struct match_def *m, enum sl_family family)
{
	return has_family(m->src, m->src_count, family) &&
	       has_family(m->dst, m->dst_count, family);
}

bool match_possible_proto(const struct match_def *m, enum sl_family family, u8 proto)
{
	if (!lists_proto(m, proto))
		return false;
	if ((m->dport_count || m->sport_count) && proto != PROTO_TCP && proto != PROTO_UDP &&
	    proto != PROTO_SCTP)
		return false;
	if (m->tcp_flags_count && proto != PROTO_TCP)
		return false;
	return !m->icmp_type_count || (proto == (family == SL_V4 ? PROTO_ICMP : PROTO_ICMPV6) &&
				       lists_icmp_of(m, family));
}

bool match_possible(const struct match_def *m, enum sl_family family, u8 proto)
{
	return match_possible_family(m, family) && match_possible_proto(m, family, proto);
}

static bool match_possible_at_all(const struct match_def *m)
{
	int family, proto;

	for (family = 0; family < SL_FAMILY_COUNT; family++) {
		if (!match_possible_family(m, family))
			continue;
		for (proto = 0; proto < 256; proto++)
			if (match_possible_proto(m, family, proto))
				return true;
	}
	return false;
}

static int check_contradictions(struct reader *r, const struct yaml_node *map,
				const struct match_def *m)
{
	bool ports = lists_proto(m, PROTO_TCP) || lists_proto(m, PROTO_UDP) ||
		     lists_proto(m, PROTO_SCTP);
	bool icmp = (lists_proto(m, PROTO_ICMP) && lists_icmp_of(m, SL_V4)) ||
		    (lists_proto(m, PROTO_ICMPV6) && lists_icmp_of(m, SL_V6));
	const struct yaml_node *dport = yaml_node_find(map, "dport"),
			       *sport = yaml_node_find(map, "sport");

	if ((dport || sport) && !ports)
		return read_fail(r, dport ? dport : sport, EINVAL, "%s is given, but none of the "
				 "protocols in proto has ports; accepted with it: tcp, udp, sctp",
				 dport ? "dport" : "sport");
	if (m->tcp_flags_count && !lists_proto(m, PROTO_TCP))
		return read_fail(r, yaml_node_find(map, "tcp_flags"), EINVAL,
				 "tcp_flags is given, but "
				 "proto leaves tcp out; accepted with it: tcp");
	if (m->icmp_type_count && !icmp)
		return read_fail(r, yaml_node_find(map, "icmp_type"), EINVAL,
				 "icmp_type is given, but "
				 "proto leaves out the protocol that has it; accepted with it: %s",
				 lists_icmp_of(m, SL_V4)
					 ? lists_icmp_of(m, SL_V6) ? "icmp, icmpv6" : "icmp"
					 : "icmpv6");
	if (!match_possible_at_all(m))
		return read_fail(r, map, EINVAL, "no packet can meet these conditions together; "
				 "accepted: addresses of one family in src and dst, and only one "
				 "of ports, tcp_flags and icmp_type unless a protocol has both");
	return 0;
}

int read_match(struct reader *r, const struct yaml_node *node, void *into)
{
	struct match_def *match = &((struct limit_def *)into)->match;
	int rc;

	if (yaml_node_is_null(node))
		return 0;
	rc = read_map(r, node, match_keys, ARRAY_SIZE(match_keys), match);
	if (!rc && match_expand(r->policy, match))
		rc = read_no_memory(r);
	return rc ? rc : check_contradictions(r, node, match);
}
