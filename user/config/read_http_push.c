// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* read_http_push.c - http.never_push_down, push_down and source_budget. */
#include <errno.h>
#include <string.h>

#include "config/http_names.h"
#include "config/read_http.h"

#define SECOND SL_NS_PER_SEC

static int item_never(struct reader *r, const struct yaml_node *node, void *into)
{
	struct http_def *http = into;
	struct sl_prefix prefix;
	int rc = http_read_prefix(r, node, &prefix);

	if (!rc && append(http->never_push_down, http->never_push_down_count, prefix))
		rc = read_no_memory(r);
	return rc;
}

int http_read_never_push_down(struct reader *r, const struct yaml_node *node, void *into)
{
	return yaml_node_is_null(node) ? 0 : read_each(r, node, item_never, into);
}

static int key_push_mode(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, push_mode_names, &value);

	if (!rc)
		((struct http_def *)into)->push_down.mode = value;
	return rc;
}

static int key_max_sources(struct reader *r, const struct yaml_node *node, void *into)
{
	/* As many as the data path has room for. */
	return http_read_count(r, node, 1, SL_PUSHES_MAX, "1 to 16384",
			     &((struct http_def *)into)->push_down.max_sources);
}

static int key_max_share(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_percent(r, node, 1, 1000, "0.1% to 100%",
			    &((struct http_def *)into)->push_down.max_share_permille);
}

static int key_min_requests(struct reader *r, const struct yaml_node *node, void *into)
{
	return http_read_count(r, node, 0, 1000000000, "0 to 1G",
			     &((struct http_def *)into)->push_down.min_requests);
}

static int read_length(struct reader *r, const struct yaml_node *node, u64 least, u64 most,
		       const char *accepted, u8 *ret)
{
	u64 len = 0;
	int rc = read_number(r, node, most, accepted, &len);

	if (!rc && len < least)
		rc = read_refuse(r, node, accepted);
	if (!rc)
		*ret = len;
	return rc;
}

static int key_push_ipv4(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_length(r, node, 16, 32, "16 to 32",
			   &((struct http_def *)into)->push_down.prefix[SL_V4]);
}

static int key_push_ipv6(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_length(r, node, 32, 128, "32 to 128",
			   &((struct http_def *)into)->push_down.prefix[SL_V6]);
}

static const struct key push_prefix_keys[] = {
	{ "ipv4", .read = key_push_ipv4 },
	{ "ipv6", .read = key_push_ipv6 },
};

static int key_push_prefix(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_map(r, node, push_prefix_keys, ARRAY_SIZE(push_prefix_keys), into);
}

static const struct key push_down_keys[] = {
	{ "mode", .read = key_push_mode },
	{ "max_sources", .read = key_max_sources },
	{ "max_share", .read = key_max_share },
	{ "min_requests", .read = key_min_requests },
	{ "prefix", .read = key_push_prefix },
};

int http_read_push_down(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_map(r, node, push_down_keys, ARRAY_SIZE(push_down_keys), into);
}

/* ---- source_budget ---- */

static int key_budget_limit(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_identifier(r, node, ((struct http_def *)into)->budget.limit);
}

static int item_user(struct reader *r, const struct yaml_node *node, void *into)
{
	struct budget_def *budget = &((struct http_def *)into)->budget;
	const char *accepted = "DOMAIN/RULE, as api/user";
	const char *slash = node->kind == YAML_TEXT ? strchr(node->text, '/') : NULL;

	if (!slash || slash == node->text || !slash[1])
		return read_refuse(r, node, accepted);
	return http_read_string(r, node, accepted, &budget->user, &budget->user_count);
}

static int key_budget_user(struct reader *r, const struct yaml_node *node, void *into)
{
	if (node->kind == YAML_LIST && !node->count)
		return read_refuse(r, node, "one or more of DOMAIN/RULE, as api/user");
	return read_each(r, node, item_user, into);
}

static int key_active(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_duration(r, node, SECOND, 24 * 3600 * SECOND, "a duration of 1s to 1d",
			     &((struct http_def *)into)->budget.active_ns);
}

static int read_packets(struct reader *r, const struct yaml_node *node, struct rate *ret)
{
	struct rate rate;
	int rc = read_rate(r, node, &rate);

	if (rc)
		return rc;
	if (rate.unit != RATE_PACKETS)
		return read_fail(r, node, EINVAL, "found %s; accepted here: a rate in packets",
				 read_found(r, node));
	*ret = rate;
	return 0;
}

static int key_base(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_packets(r, node, &((struct http_def *)into)->budget.base);
}

static int key_budget_max(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_packets(r, node, &((struct http_def *)into)->budget.max);
}

static int key_packets_per_request(struct reader *r, const struct yaml_node *node, void *into)
{
	/* As many as the data path has room for. */
	return http_read_count(r, node, 1, SL_PUSHES_MAX, "1 to 16384",
			     &((struct http_def *)into)->budget.packets_per_request);
}

static int key_max_users(struct reader *r, const struct yaml_node *node, void *into)
{
	/* As many as the data path has room for. */
	return http_read_count(r, node, 1, SL_PUSHES_MAX, "1 to 16384",
			     &((struct http_def *)into)->budget.max_users);
}

static const struct key budget_keys[] = {
	{ "limit", .read = key_budget_limit },
	{ "user", .read = key_budget_user },
	{ "active", .read = key_active },
	{ "base", .read = key_base },
	{ "packets_per_request", .read = key_packets_per_request },
	{ "max", .read = key_budget_max },
	{ "max_users", .read = key_max_users },
};

int http_read_source_budget(struct reader *r, const struct yaml_node *node, void *into)
{
	static const char *const required[] = { "limit", "user", "base", "max" };
	const struct budget_def *budget = &((struct http_def *)into)->budget;
	int rc = read_map(r, node, budget_keys, ARRAY_SIZE(budget_keys), into);

	for (size_t i = 0; !rc && i < ARRAY_SIZE(required); i++)
		rc = read_require(r, node, required[i]);
	if (!rc && (unsigned __int128)budget->max.count * budget->base.period_ns <
			   (unsigned __int128)budget->base.count * budget->max.period_ns)
		rc = read_fail(r, yaml_node_find(node, "max"), EINVAL,
			       "max is below base; accepted: "
			       "base, or more");
	return rc;
}
