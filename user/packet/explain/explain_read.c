// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* explain_read.c - the fields of a packet as texts; see explain.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/model.h"
#include "packet/explain/explain.h"

static bool read_number(const char *text, u32 most, u32 *ret)
{
	unsigned long value;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (*end || errno || value > most)
		return false;
	*ret = value;
	return true;
}

static int read_dst(const char *text, struct explain_packet *packet, const char **ret_accepted)
{
	struct sl_prefix dst;

	*ret_accepted = "an address of the source's family is accepted";
	if (sl_prefix_parse(text, &dst, ret_accepted) < 0)
		return -EINVAL;
	if (dst.family != packet->family || dst.len != (dst.family == SL_V4 ? 32 : 128))
		return -EINVAL;
	packet->dst = dst.addr;
	return 0;
}

static int read_proto(const char *text, struct explain_packet *packet, const char **ret_accepted)
{
	const struct name *name = name_find(proto_names, text);
	u32 value;

	*ret_accepted = "tcp, udp, icmp, icmpv6, sctp, udplite or a number up to 255 is accepted";
	if (!name && !read_number(text, 255, &value))
		return -EINVAL;
	packet->proto = name ? (u32)name->value : value;
	return 0;
}

/* "syn,ack"; "syn,!ack", as in a match: a flag that is not named is not set anyway. */
static int read_tcp_flags(const char *text, struct explain_packet *packet,
			  const char **ret_accepted)
{
	char word[8];
	u8 flags = 0;

	*ret_accepted = "flags such as syn,ack, or none, are accepted: fin, syn, rst, psh, ack, "
			"urg, ece, cwr";
	while (*text && strcmp(text, "none") != 0) {
		size_t length = strcspn(text, ",");
		bool clear = text[0] == '!';
		const struct name *flag;

		if (length - clear >= sizeof(word))
			return -EINVAL;
		memcpy(word, text + clear, length - clear);
		word[length - clear] = '\0';
		flag = name_find(tcp_flag_names, word);
		if (!flag)
			return -EINVAL;
		flags |= clear ? 0 : flag->value;
		text += length + (text[length] == ',');
	}
	packet->tcp_flags = flags;
	return 0;
}

static int read_icmp_type(const char *text, struct explain_packet *packet,
			  const char **ret_accepted)
{
	const struct name *name =
		name_find(packet->family == SL_V4 ? icmp_names : icmpv6_names, text);
	u32 value;

	*ret_accepted = "a type of the source's family is accepted, such as echo-request, or its "
			"number";
	if (!name && !read_number(text, 255, &value))
		return -EINVAL;
	packet->icmp_type = name ? (u32)name->value : value;
	return 0;
}

static int read_interface(const struct explain_scene *scene, const char *text,
			  struct explain_packet *packet, const char **ret_accepted)
{
	*ret_accepted = "a configured or attached interface is accepted: sluicectl status shows "
			"them";
	for (u32 slot = 0; text[0] && slot < SL_IFACES_MAX; slot++) {
		if (strcmp(scene->iface[slot].name, text) != 0)
			continue;
		packet->interface = slot;
		return 0;
	}
	return -EINVAL;
}

static int read_fragment(const char *text, struct explain_packet *packet, const char **ret_accepted)
{
	*ret_accepted = "first, later or none is accepted";
	packet->fragment = !strcmp(text, "first")   ? EXPLAIN_FIRST
			   : !strcmp(text, "later") ? EXPLAIN_LATER
						    : EXPLAIN_WHOLE;
	return packet->fragment || !strcmp(text, "none") ? 0 : -EINVAL;
}

static int read_range(u32 field, const char *text, struct explain_packet *packet,
		      const char **ret_accepted)
{
	const struct match_key *key = &match_keys[field];
	u32 value = key->none;

	*ret_accepted = key->one;
	if (!(key->none && !strcmp(text, "none")) && !read_number(text, key->most, &value))
		return -EINVAL;
	query_set_number(packet, field, value);
	return 0;
}

int query_parse(const struct explain_scene *scene, u32 field, const char *text,
		struct explain_packet *packet, const char **ret_accepted)
{
	if (field == QUERY_FRAGMENT)
		return read_fragment(text, packet, ret_accepted);
	switch (match_keys[field].kind) {
	case MATCH_PREFIXES:
		return read_dst(text, packet, ret_accepted);
	case MATCH_PROTOS:
		return read_proto(text, packet, ret_accepted);
	case MATCH_RANGES:
		return read_range(field, text, packet, ret_accepted);
	case MATCH_FLAGS:
		return read_tcp_flags(text, packet, ret_accepted);
	case MATCH_ICMP_TYPES:
		return read_icmp_type(text, packet, ret_accepted);
	case MATCH_INTERFACES:
		return read_interface(scene, text, packet, ret_accepted);
	}
	return -EINVAL;
}
