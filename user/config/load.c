// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * load.c - the configuration file -> struct policy: the keys of the top level.
 *
 *     text -> tree.c (nodes with positions) -> rows (key.h) -> policy_check() (the whole)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/config_text.h"
#include "config/keys.h"
#include "config/load_def.h"
#include "limiter/params.h"

/* sockaddr_un.sun_path with its final 0 */
#define SOCKET_PATH_MAX 107

/* ---- interfaces, failsafe ---- */

static int check_interface(struct reader *r, const struct yaml_node *node, void *section)
{
	struct interface_def *def = section;

	def->pos = (struct config_pos){ node->line, node->column };
	return 0;
}

static const struct key interface_rows[] = {
	{ "name", KEY(struct interface_def, name), &type_interface,
	  .flags = KEY_NEEDED | KEY_UNIQUE },
	{ "mode", KEY(struct interface_def, mode), &type_enum, .usual = "auto",
	  .names = interface_mode_names },
	{ "on_removed", KEY(struct interface_def, on_removed), &type_enum, .usual = "attach",
	  .names = on_removed_names },
};

static const struct keys interface_keys =
	KEYS(struct interface_def, interface_rows, .check = check_interface);
static const struct key interface_item = { .type = &type_map, .keys = &interface_keys };

static int failsafe_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	struct failsafe_port *port = section;
	const struct name *proto;
	size_t len = strspn(text, "0123456789");

	if (!len || len > 5 || text[len] != '/')
		return key_refuse_text(r, key);
	proto = name_find(port_proto_names, text + len + 1);
	if (!proto || atoi(text) < 1 || atoi(text) > 65535)
		return key_refuse_text(r, key);
	port->port = (u16)atoi(text);
	port->proto = (u8)proto->value;
	return 0;
}

static void failsafe_write(struct writer *w, const struct key *key, const void *section)
{
	const struct failsafe_port *port = section;

	fprintf(w->out, "%u/%s", port->port, name_of(port_proto_names, port->proto));
}

static bool failsafe_equal(const struct key *key, const void *a, const void *b)
{
	const struct failsafe_port *x = a, *y = b;

	return x->port == y->port && x->proto == y->proto;
}

static const struct key_type type_failsafe = {
	.name = "port",
	.size = sizeof(struct failsafe_port),
	.text = failsafe_read,
	.write = failsafe_write,
	.equal = failsafe_equal,
};
static const struct key failsafe_item = {
	.type = &type_failsafe,
	.accepted = "PORT/tcp or PORT/udp, as 22/tcp",
};

/* ---- rates whose unit follows from their key ---- */

static int rate_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	struct sl_params params;
	const char *reason;
	struct rate rate;
	int rc = read_rate(r, text, &rate);

	if (rc)
		return rc;
	if (rate.unit != key->type->variant)
		return text_fail(r, "; accepted here: a rate in %s",
				 key->type->variant == RATE_PACKETS ? "packets" : "connections");
	if (params_compile(SL_ALGO_TOKEN_BUCKET, &rate, 0, 0, &params, &reason))
		return text_fail(r, ": %s", reason);
	*(struct rate *)key_field(key, section) = rate;
	return 0;
}

static void rate_write(struct writer *w, const struct key *key, const void *section)
{
	char text[96];

	fputs(rate_format(key_field_of(key, section), text, sizeof(text)), w->out);
}

static bool rate_equal(const struct key *key, const void *a, const void *b)
{
	const struct rate *x = key_field_of(key, a), *y = key_field_of(key, b);

	return x->count == y->count && x->period_ns == y->period_ns && x->unit == y->unit;
}

/* clang-format off */
#define TYPE_RATE(unit) \
	{ .name = "rate", .variant = unit, .text = rate_read, .accepts = RATES, .write = rate_write, .equal = rate_equal }
/* clang-format on */

const struct key_type type_packets = TYPE_RATE(RATE_PACKETS);
const struct key_type type_connections = TYPE_RATE(RATE_CONNECTIONS);

/* ---- the top level ---- */

static const struct key table_rows[] = {
	{ "buckets", KEY(struct policy, table_buckets), &type_count, .usual = "1M", .least = 1,
	  .most = 1000000000, .flags = KEY_RESTART },
};
static const struct keys table_keys = KEYS(struct policy, table_rows);

static const struct key essential_rows[] = {
	{ "rate", KEY(struct policy, essential_rate), &type_packets, .usual = "1000 packets/s" },
};
static const struct keys essential_keys = KEYS(struct policy, essential_rows);

static const struct key metrics_rows[] = {
	{ "listen", KEY(struct policy, metrics_listen), &type_address_port,
	  .flags = KEY_NEEDED | KEY_RESTART },
	{ "max_values", KEY(struct policy, max_values), &type_count, .usual = "200",
	  .most = 100000 },
	{ "token_file", KEY(struct policy, metrics_token_file), &type_path, .flags = KEY_ROOT },
};
static const struct keys metrics_keys = KEYS(struct policy, metrics_rows);

static const struct key events_rows[] = {
	{ "rate", KEY(struct policy, events_rate), &type_count, .usual = "1000", .most = 100000,
	  .help = "events of each kind that the data path reports a second, all CPUs together; 0: none" },
};
static const struct keys events_keys = KEYS(struct policy, events_rows);

static const struct key history_rows[] = {
	{ "size", KEY(struct policy, history_size), &type_count, .usual = "32M",
	  .most = 10000000000, .flags = KEY_RESTART },
	{ "age", KEY(struct policy, history_age_ns), &type_duration, .usual = "7d",
	  .least = 3600 * SL_NS_PER_SEC, .most = 366 * 86400 * SL_NS_PER_SEC,
	  .flags = KEY_RESTART },
};

static int check_history(struct reader *r, const struct yaml_node *node, void *section)
{
	const struct policy *policy = section;

	if (!policy->history_size || policy->history_size >= HISTORY_SIZE_MIN)
		return 0;
	return read_fail(r, node, EINVAL,
			 "history.size is %llu bytes; accepted: 0 (no history), or 4M to 10G",
			 policy->history_size);
}

static const struct keys history_keys = KEYS(struct policy, history_rows, .check = check_history);

static const struct key control_rows[] = {
	{ "socket", KEY(struct policy, control_socket), &type_path, .most = SOCKET_PATH_MAX,
	  .usual = "/run/sluice/control.sock", .flags = KEY_RESTART },
	{ "group", KEY(struct policy, control_group), &type_text, .accepted = "a group's name",
	  .flags = KEY_RESTART },
	{ "read_group", KEY(struct policy, control_read_group), &type_text,
	  .accepted = "a group's name", .flags = KEY_RESTART },
};
static const struct keys control_keys = KEYS(struct policy, control_rows);

static const struct key load_signal_item = { .type = &type_map, .keys = &load_signal_keys };

static const struct key policy_rows[] = {
	{ "interfaces", KEY_LIST(struct policy, interface, interface_count),
	  .item = &interface_item, .most = SL_IFACES_MAX,
	  .help = "a list of `{name, mode, on_removed}`; up to 64, each once" },
	{ "table", .type = &type_map, .keys = &table_keys,
	  .help = "bucket keys (for example sources) counted at a time, 1 to 1G; 32 "
		  "bytes each, fixed at start" },
	{ "failsafe", KEY_LIST(struct policy, failsafe, failsafe_count), .item = &failsafe_item,
	  .help = "ports of this host, `PORT/tcp` or `PORT/udp`, that limits, bans "
		  "and wide blocks cannot close" },
	{ "failsafe_rate", KEY(struct policy, failsafe_rate), &type_connections,
	  .usual = "100 connections/s",
	  .help = "per source, to failsafe ports; in connections. Other TCP to them "
		  "has [rates derived from it](packet-walk.md#failsafe-ports)" },
	{ "sets", KEY(struct policy, set), &type_sets, .item = &set_element,
	  .count = offsetof(struct policy, set_count), .flags = KEY_FIRST,
	  .help = "named lists of addresses, see below" },
	{ "exempt", KEY(struct policy, list[LIST_EXEMPT]), &type_entries,
	  .help = "addresses that no limit and no block applies to" },
	{ "block", KEY(struct policy, list[LIST_BLOCK]), &type_entries,
	  .help = "addresses that are dropped" },
	{ "never_ban", KEY(struct policy, list[LIST_NEVER_BAN]), &type_entries_for_good,
	  .help = "addresses that no [ban](#ban) applies to; limits do. Without "
		  "`until`" },
	{ "essential", .type = &type_map, .keys = &essential_keys,
	  .help = "per address: ARP and [neighbor discovery](packet-walk.md#the-order) pass up to "
		  "this rate; in packets. Also that of [path-MTU "
		  "messages](packet-walk.md#path-mtu-messages)" },
	{ "on_parse_error", KEY(struct policy, on_parse_error), &type_enum, .usual = "pass",
	  .names = on_parse_error_names,
	  .help = "[packets that cannot be read "
		  "completely](packet-walk.md#what-is-wrong-with-a-packet): judged by every "
		  "limit that they could belong to (`pass`), or dropped (`drop`)" },
	{ "fragments", KEY(struct policy, fragments), &type_enum, .usual = "limit",
	  .names = fragments_names,
	  .help = "`limit`, `pass` or `drop`: IP fragments. With `limit` later "
		  "[fragments](packet-walk.md#fragments) meet the limits of their first" },
	{ "limits", KEY(struct policy, limit), &type_limits, .item = &limit_item,
	  .count = offsetof(struct policy, limit_count), .help = "see below; up to 256" },
	{ "http", KEY(struct policy, http), &type_section, .keys = &http_def_keys,
	  .flags = KEY_RESTART | KEY_FIRST, .help = "the HTTP tier, see [below](#http)" },
	{ "cluster", KEY(struct policy, cluster), &type_section, .keys = &cluster_def_keys,
	  .flags = KEY_RESTART,
	  .help = "a Redis shared with other nodes, see [cluster](cluster.md)" },
	{ "load_signals", KEY_LIST(struct policy, load_signal, load_signal_count),
	  .item = &load_signal_item, .most = LOAD_SIGNALS_MAX,
	  .help = "loads that the daemon measures, see [below](#load-signals); up to 32" },
	{ "metrics", .type = &type_map, .keys = &metrics_keys,
	  .help = "`listen`: `ADDRESS:PORT`, not a name. `max_values`: how many series values of "
		  "callers may create. `token_file`: its first line is the token for [load "
		  "signals](#load-signals)" },
	{ "events", .type = &type_map, .keys = &events_keys,
	  .help = "what `sluicectl events` shows. `rate`: at most so many of each kind a second from "
		  "the data path, all CPUs together, 0 for none" },
	{ "history", .type = &type_map, .keys = &history_keys,
	  .help = "events on disk, for `sluicectl why`. `size`: bytes, 4M to 10G, 0 for none; `age`: 1h "
		  "to 366d" },
	{ "control", .type = &type_map, .keys = &control_keys,
	  .help = "the socket of sluicectl, and groups that may use it" },
	{ "state_dir", KEY(struct policy, state_dir), &type_path, .usual = "/var/lib/sluice",
	  .flags = KEY_RESTART,
	  .help = "live changes, the history and the audit log; kept over restarts" },
	{ "pin_dir", KEY(struct policy, pin_dir), &type_path, .usual = "/sys/fs/bpf/sluice",
	  .flags = KEY_RESTART, .help = "pinned maps and programs" },
};
/* Keys of earlier versions. */
static const struct key_elsewhere removed[] = {
	{ "statsd",
	  "it was removed; accepted: metrics: {listen: ADDRESS:PORT}, which an agent for StatsD reads" },
	{ 0 },
};
const struct keys policy_keys = KEYS(struct policy, policy_rows, .elsewhere = removed);

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
		rc = keys_read(&r, tree.root, &policy_keys, policy);
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

int policy_write(const struct policy *policy, FILE *out)
{
	struct writer w = { .out = out };

	keys_write(&w, &policy_keys, policy);
	if (!w.any)
		fputs("{}\n", out); /* an empty file would be refused */
	return w.failed ? -ENOMEM : ferror(out) ? -EIO : 0;
}
