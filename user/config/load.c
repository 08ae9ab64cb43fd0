// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * load.c - the configuration file -> struct policy: the keys of the top level.
 *
 *     text -> tree.c (nodes with positions) -> read*.c (values) -> policy_check() (the whole)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limiter/params.h"
#include "config/read.h"
#include "conf/config_text.h"

/* sockaddr_un.sun_path with its final 0 */
#define SOCKET_PATH_MAX 107
#define BUCKETS_MAX 1000000000ULL

/* ---- interfaces ---- */

static int key_interface_name(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_interface_name(r, node, ((struct interface_def *)into)->name);
}

static int key_interface_mode(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, interface_mode_names, &value);

	if (!rc)
		((struct interface_def *)into)->mode = value;
	return rc;
}

static int key_interface_on_removed(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, on_removed_names, &value);

	if (!rc)
		((struct interface_def *)into)->on_removed = value;
	return rc;
}

static const struct key interface_keys[] = {
	{ "name", key_interface_name },
	{ "mode", key_interface_mode },
	{ "on_removed", key_interface_on_removed },
};

static int item_attached(struct reader *r, const struct yaml_node *node, void *into)
{
	struct interface_def def = { .mode = MODE_AUTO, .pos = { node->line, node->column } };
	struct policy *policy = into;
	size_t i;
	int rc;

	rc = read_map(r, node, interface_keys, ARRAY_SIZE(interface_keys), &def);
	if (!rc)
		rc = read_require(r, node, "name");
	if (rc)
		return rc;
	for (i = 0; i < policy->interface_count; i++)
		if (!strcmp(policy->interface[i].name, def.name))
			return read_fail(r, yaml_node_find(node, "name")->value, EINVAL,
					 "found \"%s\" "
					 "again, first in line %d; accepted: each interface once",
					 def.name, policy->interface[i].pos.line);
	if (policy->interface_count == SL_IFACES_MAX)
		return read_fail(r, node, EINVAL, "found another interface; accepted: up to %d",
				 SL_IFACES_MAX);
	return append(policy->interface, policy->interface_count, def) ? read_no_memory(r) : 0;
}

static int key_interfaces(struct reader *r, const struct yaml_node *node, void *into)
{
	return yaml_node_is_null(node) ? 0 : read_each(r, node, item_attached, into);
}

/* ---- table, failsafe, essential ---- */

static int key_table_buckets(struct reader *r, const struct yaml_node *node, void *into)
{
	u64 buckets;
	int rc = read_count(r, node, &buckets);

	if (rc)
		return rc;
	if (!buckets || buckets > BUCKETS_MAX)
		return read_refuse(r, node, "1 to 1G (a bucket takes 25 bytes)");
	((struct policy *)into)->table_buckets = buckets;
	return 0;
}

static const struct key table_keys[] = { { "buckets", key_table_buckets } };

static int key_table(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_map(r, node, table_keys, ARRAY_SIZE(table_keys), into);
}

static int item_failsafe(struct reader *r, const struct yaml_node *node, void *into)
{
	const char *accepted = "PORT/tcp or PORT/udp, as 22/tcp";
	const struct name *proto;
	struct policy *policy = into;
	struct failsafe_port port;
	const char *text;
	char digits[8] = "";
	size_t len;
	int rc;

	rc = read_text(r, node, accepted, &text);
	if (rc)
		return rc;
	len = strspn(text, "0123456789");
	if (!len || len > 5 || text[len] != '/')
		return read_refuse(r, node, accepted);
	memcpy(digits, text, len);
	proto = name_find(port_proto_names, text + len + 1);
	if (!proto || atoi(digits) < 1 || atoi(digits) > 65535)
		return read_refuse(r, node, accepted);
	port = (struct failsafe_port){ .port = atoi(digits), .proto = proto->value };
	return append(policy->failsafe, policy->failsafe_count, port) ? read_no_memory(r) : 0;
}

static int key_failsafe(struct reader *r, const struct yaml_node *node, void *into)
{
	return yaml_node_is_null(node) ? 0 : read_each(r, node, item_failsafe, into);
}

/* A rate whose unit follows from its key. */
static int read_rate_of(struct reader *r, const struct yaml_node *node, enum rate_unit unit,
			const char *unit_name, struct rate *ret)
{
	struct sl_params params;
	const char *reason;
	struct rate rate;
	int rc = read_rate(r, node, &rate);

	if (rc)
		return rc;
	if (rate.unit != unit)
		return read_fail(r, node, EINVAL, "found %s; accepted here: a rate in %s",
				 read_found(r, node), unit_name);
	if (params_compile(SL_ALGO_TOKEN_BUCKET, &rate, 0, 0, &params, &reason))
		return read_fail(r, node, EINVAL, "found %s: %s", read_found(r, node), reason);
	*ret = rate;
	return 0;
}

static int key_failsafe_rate(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_rate_of(r, node, RATE_CONNECTIONS, "connections",
			    &((struct policy *)into)->failsafe_rate);
}

static int key_essential_rate(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_rate_of(r, node, RATE_PACKETS, "packets",
			    &((struct policy *)into)->essential_rate);
}

static const struct key essential_keys[] = { { "rate", key_essential_rate } };

static int key_essential(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_map(r, node, essential_keys, ARRAY_SIZE(essential_keys), into);
}

static int key_on_parse_error(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, on_parse_error_names, &value);

	if (!rc)
		((struct policy *)into)->on_parse_error = value;
	return rc;
}

static int key_fragments(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, fragments_names, &value);

	if (!rc)
		((struct policy *)into)->fragments = value;
	return rc;
}

/* ---- metrics, control, directories ---- */

static int key_metrics_listen(struct reader *r, const struct yaml_node *node, void *into)
{
	const char *accepted = "ADDRESS:PORT, as 127.0.0.1:9810 or '[::1]:9810'", *text;
	int rc = read_text(r, node, accepted, &text);

	if (rc)
		return rc;
	if (!is_listen_address(text))
		return read_refuse(r, node, accepted);
	return read_copy(r, text, &((struct policy *)into)->metrics_listen);
}

/* A count that accepts only its default until the feature exists. */
static int read_default_only(struct reader *r, const struct yaml_node *node, u64 value)
{
	u64 count;
	int rc = read_count(r, node, &count);

	if (!rc && count != value)
		rc = read_fail(r, node, EOPNOTSUPP, "%s is not supported by this version; accepted: "
			       "%llu", read_found(r, node), value);
	return rc;
}

static int key_top_sources(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_default_only(r, node, 0);
}

static int key_max_values(struct reader *r, const struct yaml_node *node, void *into)
{
	const char *accepted = "0 to 100K";
	u64 count;
	int rc = read_count(r, node, &count);

	if (rc)
		return rc;
	if (count > 100000)
		return read_refuse(r, node, accepted);
	((struct policy *)into)->max_values = count;
	return 0;
}

static const struct key metrics_keys[] = {
	{ "listen", key_metrics_listen },
	{ "top_sources", key_top_sources },
	{ "max_values", key_max_values },
};

static int key_metrics(struct reader *r, const struct yaml_node *node, void *into)
{
	int rc = read_map(r, node, metrics_keys, ARRAY_SIZE(metrics_keys), into);

	return rc ? rc : read_require(r, node, "listen");
}

static int key_control_socket(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_path(r, node, SOCKET_PATH_MAX, &((struct policy *)into)->control_socket);
}

static int read_group(struct reader *r, const struct yaml_node *node, char **field)
{
	const char *text;
	int rc = read_text(r, node, "a group's name", &text);

	return rc ? rc : read_copy(r, text, field);
}

static int key_control_group(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_group(r, node, &((struct policy *)into)->control_group);
}

static int key_control_read_group(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_group(r, node, &((struct policy *)into)->control_read_group);
}

static const struct key control_keys[] = {
	{ "socket", key_control_socket },
	{ "group", key_control_group },
	{ "read_group", key_control_read_group },
};

static int key_control(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_map(r, node, control_keys, ARRAY_SIZE(control_keys), into);
}

/* The daemon creates files below these: leaves room for their names. */
#define DIRECTORY_MAX 3500

static int key_state_dir(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_path(r, node, DIRECTORY_MAX, &((struct policy *)into)->state_dir);
}

static int key_pin_dir(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_path(r, node, DIRECTORY_MAX, &((struct policy *)into)->pin_dir);
}

/* `sets` first: later keys refer to sets. */
static const struct key policy_keys[] = {
	{ "sets", read_sets },
	{ "interfaces", key_interfaces },
	{ "table", key_table },
	{ "failsafe", key_failsafe },
	{ "failsafe_rate", key_failsafe_rate },
	{ "exempt", read_exempt },
	{ "never_ban", read_never_ban },
	{ "block", read_block },
	{ "essential", key_essential },
	{ "on_parse_error", key_on_parse_error },
	{ "fragments", key_fragments },
	{ "limits", read_limits },
	{ "http", read_http },
	{ "cluster", read_cluster },
	{ "metrics", key_metrics },
	{ "control", key_control },
	{ "crowdsec", NULL },
	{ "state_dir", key_state_dir },
	{ "pin_dir", key_pin_dir },
};

int policy_parse(const char *name, const char *text, size_t size, struct policy **ret,
		 struct sl_err *err)
{
	struct reader r = { .file = name, .err = err, .subject = "" };
	struct policy *policy = NULL;
	struct tree tree = { 0 };
	int rc;

	rc = policy_new(name, &policy);
	if (rc)
		return read_no_memory(&r);
	r.model = policy;
	rc = tree_parse(name, text, size, &tree, err);
	if (!rc)
		rc = read_map(&r, tree.root, policy_keys, ARRAY_SIZE(policy_keys), policy);
	tree_free(&tree);
	if (!rc)
		rc = policy_check(policy, err);
	if (rc)
		policy_free(policy);
	else
		*ret = policy;
	return rc;
}

int policy_load(const char *path, struct policy **ret, struct sl_err *err)
{
	size_t size;
	char *text;
	int rc;

	rc = config_text_read(path, false, &text, &size, err);
	if (rc)
		return rc;
	rc = policy_parse(path, text, size, ret, err);
	free(text);
	return rc;
}
