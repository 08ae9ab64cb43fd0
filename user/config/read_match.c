// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * read_match.c - a limit's `match:`. Each key takes a value or a list of values; conditions that
 * contradict each other, so that no packet can match, are refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/keys.h"

/* An address or a set's name; match_expand() adds the prefixes of the set. */
static int read_address(struct reader *r, const char *text, struct sl_prefix *ret_prefix,
			const struct set_def **ret_set)
{
	int rc = read_prefix_or_set(r, text, ret_prefix, ret_set);

	/* An empty set would leave the dimension empty, which matches everything. */
	if (!rc && *ret_set && !(*ret_set)->count)
		rc = read_fail(r, r->at, EINVAL,
			       "the set %s is empty, so no packet could match; "
			       "accepted: a set with addresses, or mode: off",
			       read_found(r, r->at));
	return rc;
}

/* Where the values of a key go. */
struct into_key {
	struct match_def *match;
	const struct match_key *key;
};

static int append_value(struct reader *r, const struct into_key *into, const void *value)
{
	return match_append(into->match, into->key, value) ? read_no_memory(r) : 0;
}

/* A set's name instead of its prefixes. */
static int append_set(struct reader *r, const struct into_key *into, const struct set_def *set)
{
	struct match_sets *sets = &into->match->sets[into->key - match_keys];
	char(*grown)[SL_NAME_MAX] = array_grow(sets->name, sets->count, SL_NAME_MAX);

	if (!grown)
		return read_no_memory(r);
	sets->name = grown;
	memcpy(grown[sets->count++], set->name, sizeof(set->name));
	return 0;
}

static int item_prefix(struct reader *r, const char *text, const struct into_key *into)
{
	const struct set_def *set;
	struct sl_prefix prefix;
	int rc = read_address(r, text, &prefix, &set);

	if (rc)
		return rc;
	return set ? append_set(r, into, set) : append_value(r, into, &prefix);
}

#define PROTOS "tcp, udp, icmp, icmpv6, sctp, udplite, or 0 to 255"

static int item_proto(struct reader *r, const char *text, const struct into_key *into)
{
	const struct name *name = name_find(proto_names, text);
	u64 number;
	int rc = 0;

	if (name)
		number = name->value;
	else
		rc = read_number(r, text, 255, PROTOS, &number);
	return rc ? rc : append_value(r, into, &(u8){ number });
}

static int item_range(struct reader *r, const char *text, const struct into_key *into)
{
	u32 first, last;
	int rc = read_range(r, text, into->key->most, into->key->accepted, &first, &last);

	return rc ? rc : append_value(r, into, &(struct u16_range){ first, last });
}

#define FLAGS                                                                                      \
	"flags that are set or, after '!', clear, as syn,!ack; fin, syn, rst, psh, ack, "          \
	"urg, ece, cwr"

static int item_flags(struct reader *r, const char *text, const struct into_key *into)
{
	struct tcp_flags_cond cond = { 0, 0 };
	const char *p = text;

	for (;;) {
		size_t len = strcspn(p + (*p == '!'), ",");
		const char *word = p + (*p == '!');
		const struct name *flag;
		char copy[4] = "";

		if (len < sizeof(copy))
			memcpy(copy, word, len);
		flag = name_find(tcp_flag_names, copy);
		if (!flag)
			return text_refuse(r, FLAGS);
		if ((cond.set | cond.clear) & flag->value)
			return text_refuse(r, "each flag once");
		if (*p == '!')
			cond.clear |= flag->value;
		else
			cond.set |= flag->value;
		if (!word[len])
			break;
		p = word + len + 1;
		p += strspn(p, " ");
	}
	return append_value(r, into, &cond);
}

#define ICMP_TYPES                                                                                 \
	"a type's name as nft has it (echo-request, echo-reply, destination-unreachable, "         \
	"time-exceeded, packet-too-big, nd-neighbor-solicit...), or 0 to 255"

/* A name stands for the type of that name in each family that has it, a number for both. */
static int item_icmp_type(struct reader *r, const char *text, const struct into_key *into)
{
	const struct name *v4 = name_find(icmp_names, text);
	const struct name *v6 = name_find(icmpv6_names, text);
	struct icmp_type_cond cond4 = { SL_V4, 0 }, cond6 = { SL_V6, 0 };
	int rc = 0;
	u64 number;

	if (v4 || v6) {
		cond4.type = v4 ? v4->value : 0;
		cond6.type = v6 ? v6->value : 0;
	} else {
		rc = read_number(r, text, 255, ICMP_TYPES, &number);
		if (rc)
			return rc;
		cond4.type = cond6.type = number;
	}
	if (v4 || !v6)
		rc = append_value(r, into, &cond4);
	if (!rc && (v6 || !v4))
		rc = append_value(r, into, &cond6);
	return rc;
}

static int item_interface(struct reader *r, const char *text, const struct into_key *into)
{
	match_interface name;
	int rc = read_interface_name(r, text, name);

	return rc ? rc : append_value(r, into, &name);
}

/* `most` of a row is its key. An empty list could mean everything or nothing. */
static int values_begin(struct reader *r, size_t count, const struct key *key, void *section)
{
	return count ? 0
		     : read_fail(r, r->at, EINVAL,
				 "found an empty list; accepted: one or more "
				 "values, and no key at all to match any");
}

static int value_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	static int (*const item[])(struct reader * r, const char *text,
				   const struct into_key *into) = {
		[MATCH_PREFIXES] = item_prefix,	     [MATCH_PROTOS] = item_proto,
		[MATCH_RANGES] = item_range,	     [MATCH_FLAGS] = item_flags,
		[MATCH_ICMP_TYPES] = item_icmp_type, [MATCH_INTERFACES] = item_interface,
	};
	struct into_key into = { section, &match_keys[key->most] };

	return item[into.key->kind](r, text, &into);
}

static const char *value_accepted(const struct key *key, char *buf, size_t size)
{
	static const char *const accepted[] = {
		[MATCH_PREFIXES] = ADDRESSES,
		[MATCH_PROTOS] = PROTOS,
		[MATCH_FLAGS] = FLAGS,
		[MATCH_ICMP_TYPES] = ICMP_TYPES,
		[MATCH_INTERFACES] = INTERFACE_NAMES,
	};
	const struct match_key *of = &match_keys[key->most];

	return of->kind == MATCH_RANGES ? of->accepted : accepted[of->kind];
}

static const struct key_type type_values = {
	.name = "list",
	.items = values_begin,
	.text = value_read,
	.accepted = value_accepted,
	.lines = match_values_lines,
	.copy = match_values_copy,
	.clear = match_values_clear,
	.equal = match_values_equal,
};

/* clang-format off */
#define ROW(id, name, ...) \
	{ #name, .type = &type_values, .most = MATCH_##id, .flags = MATCH_##id == MATCH_TCP_FLAGS ? KEY_COMMAS : 0 },
/* clang-format on */
static const struct key match_rows[] = { MATCH_KEYS(ROW) };
const struct keys limit_match_keys = KEYS(struct match_def, match_rows);

bool match_equal(const struct match_def *a, const struct match_def *b)
{
	return keys_equal(&limit_match_keys, a, b);
}

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
	return has_family(m->src, m->src_count, family) && has_family(m->dst, m->dst_count, family);
}

bool match_possible_proto(const struct match_def *m, enum sl_family family, u8 proto)
{
	if (!lists_proto(m, proto))
		return false;
	for (size_t i = 0; i < MATCH_KEY_COUNT; i++)
		if (match_count(m, &match_keys[i]) &&
		    !match_needs_met(match_keys[i].needs, family, proto))
			return false;
	return !m->icmp_type_count || lists_icmp_of(m, family);
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

/* A key that only some protocols have, and `proto` lists none of them. */
static int check_needs(struct reader *r, const struct yaml_node *map, const struct match_def *m,
		       const struct match_key *key)
{
	const struct yaml_node *at = yaml_node_find(map, key->name);
	bool v4 = lists_icmp_of(m, SL_V4), v6 = lists_icmp_of(m, SL_V6);

	switch (key->needs) {
	case MATCH_NEEDS_IP:
		break;
	case MATCH_NEEDS_PORTS:
		if (!lists_proto(m, PROTO_TCP) && !lists_proto(m, PROTO_UDP) &&
		    !lists_proto(m, PROTO_UDPLITE) && !lists_proto(m, PROTO_SCTP))
			return read_fail(
				r, at, EINVAL,
				"%s is given, but none of the protocols "
				"in proto has ports; accepted with it: tcp, udp, sctp, udplite",
				key->name);
		break;
	case MATCH_NEEDS_TCP:
		if (!lists_proto(m, PROTO_TCP))
			return read_fail(r, at, EINVAL,
					 "%s is given, but proto leaves tcp out; "
					 "accepted with it: tcp",
					 key->name);
		break;
	case MATCH_NEEDS_ICMP:
		if (!(v4 && lists_proto(m, PROTO_ICMP)) && !(v6 && lists_proto(m, PROTO_ICMPV6)))
			return read_fail(r, at, EINVAL,
					 "%s is given, but proto leaves out the "
					 "protocol that has it; accepted with it: %s",
					 key->name, v4 ? v6 ? "icmp, icmpv6" : "icmp" : "icmpv6");
		break;
	}
	return 0;
}

static int check_contradictions(struct reader *r, const struct yaml_node *map,
				const struct match_def *m)
{
	int rc = 0;

	for (size_t i = 0; i < MATCH_KEY_COUNT && !rc; i++)
		if (match_count(m, &match_keys[i]))
			rc = check_needs(r, map, m, &match_keys[i]);
	if (!rc && !match_possible_at_all(m))
		return read_fail(r, map, EINVAL,
				 "no packet can meet these conditions together; "
				 "accepted: addresses of one family in src and dst, and only one "
				 "of ports, tcp_flags and icmp_type unless a protocol has both");
	return rc;
}

int read_match(struct reader *r, const struct yaml_node *node, void *into)
{
	struct match_def *match = &((struct limit_def *)into)->match;
	int rc;

	if (yaml_node_is_null(node))
		return 0;
	rc = keys_read(r, node, &limit_match_keys, match);
	if (!rc && match_expand(r->model, match))
		rc = read_no_memory(r);
	return rc ? rc : check_contradictions(r, node, match);
}
