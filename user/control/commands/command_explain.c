// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_explain.c - explain: parses the packet of the query; explain.c evaluates it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/commands/commands.h"
#include "packet/explain/explain.h"
#include "config/model.h"

/* Parses a field's text into the query; 0, or -EINVAL with the accepted values in *ret_accepted. */
typedef int (*field_fn)(const struct explain_scene *scene, const char *text,
			struct explain_packet *packet, const char **ret_accepted);

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

static bool read_u16(const char *text, u32 most, u16 *ret)
{
	u32 value;

	if (!read_number(text, most, &value))
		return false;
	*ret = value;
	return true;
}

static int read_dst(const struct explain_scene *scene, const char *text,
		    struct explain_packet *packet, const char **ret_accepted)
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

static int read_proto(const struct explain_scene *scene, const char *text,
		      struct explain_packet *packet, const char **ret_accepted)
{
	const struct name *name = name_find(proto_names, text);
	u32 value;

	*ret_accepted = "tcp, udp, icmp, icmpv6, sctp or a number up to 255 is accepted";
	if (!name && !read_number(text, 255, &value))
		return -EINVAL;
	packet->proto = name ? (u32)name->value : value;
	return 0;
}

static int read_sport(const struct explain_scene *scene, const char *text,
		      struct explain_packet *packet, const char **ret_accepted)
{
	*ret_accepted = "a port, 0 to 65535, is accepted";
	return read_u16(text, 65535, &packet->sport) ? 0 : -EINVAL;
}

static int read_dport(const struct explain_scene *scene, const char *text,
		      struct explain_packet *packet, const char **ret_accepted)
{
	*ret_accepted = "a port, 0 to 65535, is accepted";
	return read_u16(text, 65535, &packet->dport) ? 0 : -EINVAL;
}

static int read_vlan(const struct explain_scene *scene, const char *text,
		     struct explain_packet *packet, const char **ret_accepted)
{
	*ret_accepted = "a VLAN id, 0 to 4095, or none is accepted";
	packet->vlan = SL_VLAN_NONE;
	return !strcmp(text, "none") || read_u16(text, 4095, &packet->vlan) ? 0 : -EINVAL;
}

/* "syn,ack"; "syn,!ack", as in a match: a flag that is not named is not set anyway. */
static int read_tcp_flags(const struct explain_scene *scene, const char *text,
			  struct explain_packet *packet, const char **ret_accepted)
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

static int read_icmp_type(const struct explain_scene *scene, const char *text,
			  struct explain_packet *packet, const char **ret_accepted)
{
	const struct name *name = name_find(packet->family == SL_V4 ? icmp_names : icmpv6_names,
					    text);
	u32 value;

	*ret_accepted = "a type of the source's family is accepted, such as echo-request, or its "
			"number";
	if (!name && !read_number(text, 255, &value))
		return -EINVAL;
	packet->icmp_type = name ? (u32)name->value : value;
	return 0;
}

static int read_length(const struct explain_scene *scene, const char *text,
		       struct explain_packet *packet, const char **ret_accepted)
{
	*ret_accepted = "the length that IP states in bytes, up to 65535, is accepted";
	return read_number(text, EXPLAIN_LENGTH_MAX, &packet->length) ? 0 : -EINVAL;
}

static int read_interface(const struct explain_scene *scene, const char *text,
			  struct explain_packet *packet, const char **ret_accepted)
{
	*ret_accepted = "a configured or attached interface is accepted: sluicectl status shows "
			"them";
	for (u32 slot = 0; text[0] && slot < SL_IFACES_MAX; slot++) {
		if (strcmp(scene->iface[slot].name, text) != 0)
			continue;
		packet->iface = slot;
		return 0;
	}
	return -EINVAL;
}

static int read_fragment(const struct explain_scene *scene, const char *text,
			 struct explain_packet *packet, const char **ret_accepted)
{
	*ret_accepted = "first, later or none is accepted";
	packet->fragment = !strcmp(text, "first") ? EXPLAIN_FIRST :
			   !strcmp(text, "later") ? EXPLAIN_LATER :
						    EXPLAIN_WHOLE;
	return packet->fragment || !strcmp(text, "none") ? 0 : -EINVAL;
}

static const field_fn read_field[QUERY_FIELD_COUNT] = {
	[QUERY_DST] = read_dst,
	[QUERY_PROTO] = read_proto,
	[QUERY_SPORT] = read_sport,
	[QUERY_DPORT] = read_dport,
	[QUERY_VLAN] = read_vlan,
	[QUERY_TCP_FLAGS] = read_tcp_flags,
	[QUERY_ICMP_TYPE] = read_icmp_type,
	[QUERY_LENGTH] = read_length,
	[QUERY_INTERFACE] = read_interface,
	[QUERY_FRAGMENT] = read_fragment,
};

/* Refuses combinations of fields that no packet can have. */
static int check_query(const struct explain_query *query, struct sl_err *err)
{
	const struct explain_packet *p = &query->packet;
	u32 least = explain_min_length(p);

	for (u32 field = 0; field < QUERY_FIELD_COUNT; field++)
		if ((query->given & 1U << field) && !query_has(p, field))
			return sl_err_set(err, EINVAL, "'%s': %s", query_field_name[field],
					  p->fragment == EXPLAIN_LATER ?
					  "a later fragment does not have this field" :
					  "a packet of that protocol does not have this field; set proto "
					  "to another protocol");
	if (p->length < least)
		return sl_err_set(err, EINVAL, "'length' is too small: such a packet has at least %u bytes",
				  least);
	return 0;
}

static int arg_query(const struct explain_scene *scene, const struct command_request *request,
		     struct explain_query *ret, struct sl_err *err)
{
	struct explain_query query = { 0 };
	struct sl_prefix source;
	int r = arg_source(request, &source, err);

	if (r < 0)
		return r;
	query.packet.src = source.addr;
	query.packet.family = source.family;
	for (u32 field = 0; field < QUERY_FIELD_COUNT; field++) {
		const char *text = arg_text(request, query_field_name[field]), *accepted;

		if (!text)
			continue;
		if (read_field[field](scene, text, &query.packet, &accepted) < 0)
			return sl_err_set(err, EINVAL, "%s '%.80s': %s", query_field_name[field],
					  text, accepted);
		query.given |= 1U << field;
	}
	query_defaults(scene, &query);
	*ret = query;
	return check_query(&query, err);
}

int command_explain(struct commands *ctx, const struct command_request *request, json_t **ret,
		    struct sl_err *err)
{
	struct explain_scene scene = {
		.dp = ctx->running->packets->dp,
		.policy = ctx->running->policy,
		.image = ctx->running->image,
		.config_path = ctx->running->config_path,
		.local = ctx->running->packets->local,
		.local_count = ctx->running->packets->local_count,
	};
	struct explain_query query;
	int r;

	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		const struct iface *iface = &ctx->running->packets->iface[slot];

		memcpy(scene.iface[slot].name, iface->name, sizeof(iface->name));
		scene.iface[slot].wanted = iface->wanted;
		scene.iface[slot].attached = iface->attached;
	}
	r = arg_query(&scene, request, &query, err);
	return r < 0 ? r : explain_to_json(&scene, &query, ret, err);
}
