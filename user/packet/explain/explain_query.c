// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * explain_query.c - the packet of a query of explain: its fields, their defaults, and
 * which of those not given would change the answer; see explain.h.
 */
#include <errno.h>
#include <string.h>

#include "lib/json.h"
#include "packet/explain/explain.h"
#include "config/model.h"

#define FLAG_SYN 0x02
#define FLAG_ACK 0x10
#define DEFAULT_LENGTH 64
#define FULL_LENGTH 1500 /* a full frame's, of Ethernet */
/* Answers listed at most: many limits differ in one port each. */
#define CHANGES_MAX 32

const char *const query_field_name[QUERY_FIELD_COUNT] = {
#define NAME(id, name, ...) [MATCH_##id] = #name,
	MATCH_KEYS(NAME)
#undef NAME
		[QUERY_FRAGMENT] = "fragment",
};

/* Where the fields are. */
static const struct {
	size_t at, size;
} place[MATCH_KEY_COUNT] = {
#define PLACE(id, name, value, type, ...)                                                          \
	[MATCH_##id] = { offsetof(struct explain_packet, name), sizeof(type) },
	MATCH_KEYS(PLACE)
#undef PLACE
};

u32 query_number(const struct explain_packet *p, u32 field)
{
	const void *at = (const char *)p + place[field].at;

	switch (place[field].size) {
	case 1:
		return *(const u8 *)at;
	case 2:
		return *(const u16 *)at;
	default:
		return *(const u32 *)at;
	}
}

void query_set_number(struct explain_packet *p, u32 field, u32 value)
{
	void *at = (char *)p + place[field].at;

	switch (place[field].size) {
	case 1:
		*(u8 *)at = value;
		break;
	case 2:
		*(u16 *)at = value;
		break;
	default:
		*(u32 *)at = value;
		break;
	}
}

static u8 icmp_of(u8 family)
{
	return family == SL_V4 ? PROTO_ICMP : PROTO_ICMPV6;
}

bool query_has(const struct explain_packet *p, u32 field)
{
	enum match_needs needs;

	if (field == QUERY_FRAGMENT || !match_keys[field].needs)
		return true;
	needs = match_keys[field].needs;
	return p->fragment != EXPLAIN_LATER && match_needs_met(needs, p->family, p->proto);
}

bool query_tag_is_lost(const struct explain_scene *scene, const struct explain_packet *p)
{
	return p->vlan != SL_VLAN_NONE &&
	       scene->iface[p->interface % SL_IFACES_MAX].link == SL_LINK_IP;
}

/* ------------------------------------------------------------------ as JSON */

static json_t *number_or_name(const struct name *names, int value)
{
	const char *name = name_of(names, value);

	return name ? json_string(name) : json_integer(value);
}

static json_t *flags_to_json(u8 flags)
{
	char text[64] = "none";
	size_t used = 0;

	for (const struct name *flag = tcp_flag_names; flag->name; flag++)
		if (flags & flag->value)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
						 used ? "," : "", flag->name);
	return json_string(text);
}

static json_t *addr_to_json(struct sl_addr addr, u8 family)
{
	struct sl_prefix prefix = { addr, family, family == SL_V4 ? 32 : 128 };
	char text[SL_PREFIX_TEXT];

	return json_string(sl_prefix_format(&prefix, text, sizeof(text)));
}

static json_t *interface_to_json(const struct explain_scene *scene, u32 slot)
{
	return json_string(scene->iface[slot].name[0] ? scene->iface[slot].name : "none");
}

static json_t *field_to_json(const struct explain_scene *scene, const struct explain_packet *p,
			     u32 field)
{
	static const char *const fragments[] = { "none", "first", "later" };
	const struct match_key *key = &match_keys[field];

	if (field == QUERY_FRAGMENT)
		return json_string(fragments[p->fragment % 3]);
	switch (key->kind) {
	case MATCH_PREFIXES:
		return addr_to_json(p->dst, p->family);
	case MATCH_PROTOS:
		return number_or_name(proto_names, p->proto);
	case MATCH_FLAGS:
		return flags_to_json(p->tcp_flags);
	case MATCH_ICMP_TYPES:
		return number_or_name(p->family == SL_V4 ? icmp_names : icmpv6_names, p->icmp_type);
	case MATCH_INTERFACES:
		return interface_to_json(scene, p->interface);
	case MATCH_RANGES:
		break;
	}
	if (key->none && query_number(p, field) == key->none)
		return json_string("none");
	return json_integer(query_number(p, field));
}

json_t *query_to_json(const struct explain_scene *scene, const struct explain_packet *packet,
		      u32 which)
{
	json_t *json = json_object();

	for (u32 field = QUERY_FIRST; field < QUERY_FIELD_COUNT; field++)
		if ((which & 1U << field) && query_has(packet, field))
			json_object_set_new(json, query_field_name[field],
					    field_to_json(scene, packet, field));
	return json;
}

/* ------------------------------------------------------------------ defaults */

bool query_default_dst(const struct explain_scene *scene, u8 family, struct sl_addr *ret)
{
	bool found = false;

	for (size_t i = 0; i < scene->local_count; i++) {
		const struct sl_prefix *local = &scene->local[i];
		u64 top = local->addr.hi >> 48;
		bool inner = family == SL_V4 ? top >> 8 == 127 || top == 0xa9fe
					     : !top || (top & 0xffc0) == 0xfe80;

		if (local->family != family || (found && inner))
			continue;
		*ret = local->addr;
		if (!inner)
			return true;
		found = true;
	}
	return found;
}

static u32 default_iface(const struct explain_scene *scene)
{
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (scene->iface[slot].attached)
			return slot;
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (scene->iface[slot].name[0] && scene->iface[slot].wanted)
			return slot;
	return 0;
}

void query_default_length(struct explain_query *query)
{
	u32 least = explain_min_length(&query->packet);

	if (!(query->given & 1U << MATCH_LENGTH))
		query->packet.length = least > DEFAULT_LENGTH ? least : DEFAULT_LENGTH;
}

void query_defaults(const struct explain_scene *scene, struct explain_query *query)
{
	struct explain_packet *p = &query->packet;

	for (u32 field = 0; field < MATCH_KEY_COUNT; field++)
		if (match_keys[field].kind == MATCH_RANGES && !(query->given & 1U << field))
			query_set_number(p, field, match_keys[field].usual);
	if (!(query->given & 1U << MATCH_DST))
		query_default_dst(scene, p->family, &p->dst);
	if (!(query->given & 1U << MATCH_PROTO))
		p->proto = query->given & 1U << MATCH_ICMP_TYPE ? icmp_of(p->family) : PROTO_TCP;
	if (!(query->given & 1U << MATCH_TCP_FLAGS))
		p->tcp_flags = FLAG_ACK;
	if (!(query->given & 1U << MATCH_ICMP_TYPE))
		p->icmp_type = p->family == SL_V4 ? 8 : 128; /* echo request */
	if (!(query->given & 1U << MATCH_INTERFACE))
		p->interface = default_iface(scene);
	query_default_length(query);
}

/* ------------------------------------------------------------------ what would change */

struct changes {
	const struct explain_scene *scene;
	struct explain *e;
	const struct explain_query *query;
	const struct explain_result *base;
	u32 cpu;
	u32 decisive; /* the first of the list: another action */
	u32 left_out;
	json_t *list;
};

static bool same_result(const struct explain_result *a, const struct explain_result *b)
{
	return a->action == b->action && a->reason == b->reason && a->limit == b->limit &&
	       a->tag == b->tag && a->dscp == b->dscp && a->mark == b->mark;
}

static bool is_listed(const struct changes *ch, const json_t *fields)
{
	const json_t *item;
	size_t i;

	json_array_foreach(ch->list, i, item)
		if (json_equal(json_object_get(item, "fields"), fields))
			return true;
	return false;
}

/* Explains a completed packet; `what` (or NULL): what it was completed for. */
static int try_completion(struct changes *ch, struct completion *c, const char *what, int line,
			  struct sl_err *err)
{
	struct explain_result answer;
	json_t *fields, *item;
	int rc;

	if (!c->added || c->query.packet.length < explain_min_length(&c->query.packet) ||
	    query_tag_is_lost(ch->scene, &c->query.packet))
		return 0;
	rc = explain_run(ch->e, &c->query.packet, ch->cpu, &answer, err);
	if (rc < 0 || same_result(&answer, ch->base))
		return rc;
	fields = query_to_json(ch->scene, &c->query.packet, c->added);
	if (is_listed(ch, fields) || json_array_size(ch->list) == CHANGES_MAX) {
		ch->left_out += !is_listed(ch, fields);
		json_decref(fields);
		return 0;
	}
	item = json_pack("{s:o, s:o}", "fields", fields, "verdict",
			 explain_result_to_json(ch->scene, &answer));
	if (what)
		json_object_set_new(item, "matches", json_string(what));
	if (line)
		json_object_set_new(item, "line", json_integer(line));
	/* Those that decide otherwise about the packet come first. */
	if (answer.action != ch->base->action)
		json_array_insert_new(ch->list, ch->decisive++, item);
	else
		json_array_append_new(ch->list, item);
	return 0;
}

static struct completion start_completion(const struct changes *ch)
{
	return (struct completion){ .scene = ch->scene, .query = *ch->query };
}

static int try_fragments(struct changes *ch, struct sl_err *err)
{
	int rc = 0;

	for (u32 kind = EXPLAIN_FIRST; !rc && kind <= EXPLAIN_LATER; kind++) {
		struct completion c = start_completion(ch);

		if (!completion_set(&c, QUERY_FRAGMENT))
			return 0;
		c.query.packet.fragment = kind;
		query_default_length(&c.query);
		rc = try_completion(ch, &c, NULL, 0, err);
	}
	return rc;
}

/* A push-down may be for new connections only. */
static int try_connection(struct changes *ch, struct sl_err *err)
{
	struct completion c = start_completion(ch);
	struct explain_packet *p = &c.query.packet;

	if (!(ch->scene->dp->push_now->flags & SL_PUSH_ON) || p->fragment == EXPLAIN_LATER)
		return 0;
	if (p->proto != PROTO_TCP && !completion_set(&c, MATCH_PROTO))
		return 0;
	p->proto = PROTO_TCP;
	if (!completion_set(&c, MATCH_TCP_FLAGS))
		return 0;
	p->tcp_flags = FLAG_SYN;
	query_default_length(&c.query);
	return try_completion(ch, &c, "@push-down", 0, err);
}

/* A limit in bytes may have room for this length and not for a full frame. */
static int try_length(struct changes *ch, struct sl_err *err)
{
	struct completion c = start_completion(ch);

	if (!completion_set(&c, MATCH_LENGTH))
		return 0;
	c.query.packet.length = FULL_LENGTH;
	return try_completion(ch, &c, NULL, 0, err);
}

int query_changes(const struct explain_scene *scene, struct explain *e,
		  const struct explain_query *query, u32 cpu, const struct explain_result *base,
		  json_t **ret, struct sl_err *err)
{
	struct changes ch = { .scene = scene,
			      .e = e,
			      .query = query,
			      .base = base,
			      .cpu = cpu,
			      .list = json_array() };
	const struct policy *policy = scene->policy;
	int rc = 0;

	for (size_t i = 0; !rc && i < policy->limit_count; i++) {
		struct completion c = start_completion(&ch);

		if (complete_for_limit(&c, &policy->limit[i]))
			rc = try_completion(&ch, &c, policy->limit[i].name,
					    policy->limit[i].pos.line, err);
	}
	for (size_t i = 0; !rc && i < policy->failsafe_count; i++) {
		struct completion c = start_completion(&ch);

		if (complete_for_failsafe(&c, &policy->failsafe[i]))
			rc = try_completion(&ch, &c, "@failsafe", 0, err);
	}
	for (size_t i = 0; !rc && i < SL_SESSION_TABLE; i++) {
		struct completion c = start_completion(&ch);

		if (complete_for_session(&c, &scene->image->rules->session[i]))
			rc = try_completion(&ch, &c, "@session", 0, err);
	}
	if (!rc)
		rc = try_connection(&ch, err);
	if (!rc)
		rc = try_fragments(&ch, err);
	if (!rc)
		rc = try_length(&ch, err);
	if (rc < 0) {
		json_decref(ch.list);
		return rc;
	}
	if (ch.left_out)
		json_array_append_new(ch.list, json_pack("{s:i}", "more", (int)ch.left_out));
	*ret = ch.list;
	return 0;
}
