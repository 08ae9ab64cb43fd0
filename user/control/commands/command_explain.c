// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_explain.c - explain: parses the packet of the query; explain.c evaluates it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/running/entries.h"
#include "control/commands/commands.h"
#include "packet/explain/explain.h"
#include "config/model.h"

/* Refuses combinations of fields that no packet can have. */
static int check_query(const struct explain_scene *scene, const struct explain_query *query,
		       struct sl_err *err)
{
	const struct explain_packet *p = &query->packet;
	u32 least = explain_min_length(p);

	for (u32 field = QUERY_FIRST; field < QUERY_FIELD_COUNT; field++)
		if ((query->given & 1U << field) && !query_has(p, field))
			return sl_err_set(
				err, EINVAL, "'%s': %s", query_field_name[field],
				p->fragment == EXPLAIN_LATER
					? "a later fragment does not have this field"
					: "a packet of that protocol does not have this field; set proto "
					  "to another protocol");
	if (query_tag_is_lost(scene, p))
		return sl_err_set(err, EINVAL,
				  "'vlan': packets of %s have no Ethernet header, and so no tag",
				  scene->iface[p->interface].name);
	if (p->length < least)
		return sl_err_set(err, EINVAL,
				  "'length' is too small: such a packet has at least %u bytes",
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
	for (u32 field = QUERY_FIRST; field < QUERY_FIELD_COUNT; field++) {
		const char *text = arg_text(request, query_field_name[field]), *accepted;

		if (!text)
			continue;
		if (query_parse(scene, field, text, &query.packet, &accepted) < 0)
			return sl_err_set(err, EINVAL, "%s '%.80s': %s", query_field_name[field],
					  text, accepted);
		query.given |= 1U << field;
	}
	query_defaults(scene, &query);
	*ret = query;
	return check_query(scene, &query, err);
}

static void look_at_feeds(const struct commands *ctx, const struct explain_query *query,
			  struct explain_scene *scene)
{
	const struct sl_prefix source = { query->packet.src, (u8)query->packet.family,
					  query->packet.family == SL_V4 ? 32 : 128 };

	for (enum list_kind list = LIST_BLOCK; list <= LIST_EXEMPT; list++) {
		struct explain_fed *fed = &scene->fed[list];
		struct entry entry;

		if (!entries_longest(ctx->running, list, &source, &entry, &fed->origin))
			continue;
		fed->entry.prefix = entry.prefix;
		fed->entry.until_utc_ns = entry.until_utc_ns;
		memcpy(fed->entry.reason, entry.reason, sizeof(entry.reason));
	}
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
		scene.iface[slot].link = iface->link;
	}
	r = arg_query(&scene, request, &query, err);
	if (!r) {
		look_at_feeds(ctx, &query, &scene);
		r = explain_to_json(&scene, &query, ret, err);
	}
	if (!r)
		json_object_set_new(
			*ret, "lately",
			source_lately(ctx, &(struct sl_prefix){
						   query.packet.src, query.packet.family,
						   query.packet.family == SL_V4 ? 32 : 128 }));
	return r;
}
