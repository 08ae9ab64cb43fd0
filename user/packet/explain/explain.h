/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * explain.h - the command `explain`: what dp_explain.h answers, joined with the policy: names,
 * lines of the file, list entries, and what the answer would depend on if more were known.
 *
 * Knows the configuration, its image and the data plane, as an explain_scene. Does not know the
 * daemon, the control socket, or how any of these came in force.
 */
#ifndef SLUICE_DAEMON_EXPLAIN_H
#define SLUICE_DAEMON_EXPLAIN_H

#include <jansson.h>

#include "config/policy.h"
#include "packet/compile/compile.h"
#include "packet/dataplane/dataplane.h"
#include "packet/explain/dp_explain.h"

/* All that an answer is made from; it changes nothing. */
struct explain_scene {
	struct dp *dp;
	const struct policy *policy;  /* in force */
	const struct sl_image *image; /* of `policy` */
	const char *config_path;
	struct {
		char name[16]; /* "": no interface has this slot */
		bool wanted, attached;
		enum sl_link link; /* where attached */
	} iface[SL_IFACES_MAX];
	const struct sl_prefix *local; /* this host's addresses */
	size_t local_count;
	/* What feeds list, behind the policy's: the longest prefix that covers the source. */
	struct explain_fed {
		const char *origin; /* NULL: nothing */
		struct list_entry entry;
	} fed[LIST_KIND_COUNT];
};

/* The fields of a query, besides the source: the match keys from QUERY_FIRST on, and this. */
enum query_field {
	QUERY_FIRST = MATCH_DST,
	QUERY_FRAGMENT = MATCH_KEY_COUNT,
	QUERY_FIELD_COUNT,
};

struct explain_query {
	struct explain_packet packet; /* fields that were not given have their default */
	u32 given;		      /* 1 << the field, or-ed */
};

/* Members of requests and answers; the source's is not used. */
extern const char *const query_field_name[QUERY_FIELD_COUNT];

/* Whether such a packet has the field at all. */
bool query_has(const struct explain_packet *packet, u32 field);
/* Whether it has a VLAN tag, and its interface has no place for one: no Ethernet header. */
bool query_tag_is_lost(const struct explain_scene *scene, const struct explain_packet *packet);
/* The number in a field; not of addresses. */
u32 query_number(const struct explain_packet *packet, u32 field);
void query_set_number(struct explain_packet *packet, u32 field, u32 value);
/* The fields in `which` that the packet has, as an object. */
json_t *query_to_json(const struct explain_scene *scene, const struct explain_packet *packet,
		      u32 which);

/* Parses a field's text; 0, or -EINVAL with what is accepted in *ret_accepted. */
int query_parse(const struct explain_scene *scene, u32 field, const char *text,
		struct explain_packet *packet, const char **ret_accepted);

/* Fills in the defaults of what is not given, for this source. */
void query_defaults(const struct explain_scene *scene, struct explain_query *query);
/* Its parts: an address of this host that others would send to, if one is known; the length. */
bool query_default_dst(const struct explain_scene *scene, u8 family, struct sl_addr *ret);
void query_default_length(struct explain_query *query);

/* A packet in the making, and which fields it took. */
struct completion {
	const struct explain_scene *scene;
	struct explain_query query;
	u32 added;
};

/* A field may become something else only where it was not given; false: it was. */
bool completion_set(struct completion *c, u32 field);
/* False: no packet with the fields given is counted by the limit, or goes to the port. */
bool complete_for_limit(struct completion *c, const struct limit_def *def);
bool complete_for_failsafe(struct completion *c, const struct failsafe_port *port);
bool complete_for_session(struct completion *c, const struct sl_session *session);

/*
 * How fields that were not given would change the answer `base`, found by asking: for each limit,
 * failsafe port, login session, new connection (where there are push-downs) and kind of fragment
 * that what was given does not contradict, the packet is completed so that it meets it. An array
 * into *ret; 0, or -errno and bucket states.
 */
int query_changes(const struct explain_scene *scene, struct explain *e,
		  const struct explain_query *query, u32 cpu, const struct explain_result *base,
		  json_t **ret, struct sl_err *err);

/* {"action", "reason", "step", "step_name", "limit", "line", ...} */
json_t *explain_result_to_json(const struct explain_scene *scene,
			       const struct explain_result *answer);
/* The whole answer of the command. 0, or -errno and bucket states. */
int explain_to_json(const struct explain_scene *scene, const struct explain_query *query,
		    json_t **ret, struct sl_err *err);

#endif
