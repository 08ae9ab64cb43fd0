// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * http_keys.c - the rows of the `http:` section. Listeners have a type of their own
 * (http_listen.c); rules have files of their own (user/request/rules/rule.h).
 */
#include <errno.h>
#include <string.h>

#include "config/http_def.h"
#include "config/http_listen.h"
#include "config/keys.h"

static const struct name full_names[] = {
	{ "open", FULL_OPEN },
	{ "closed", FULL_CLOSED },
	{ NULL, 0 },
};

static const struct name push_mode_names[] = {
	{ "enforce", PUSH_MODE_ENFORCE },
	{ "shadow", PUSH_MODE_SHADOW },
	{ "off", PUSH_MODE_OFF },
	{ NULL, 0 },
};

static const struct name right_names[] = {
	{ "check", MAY_CHECK },
	{ "report", MAY_REPORT },
	{ "push", MAY_PUSH },
	{ "override", MAY_OVERRIDE },
	{ NULL, 0 },
};

static const struct name log_values_names[] = {
	{ "hashed", false },
	{ "plain", true },
	{ NULL, 0 },
};

static const struct name auto_names[] = { { "auto", 0 }, { NULL, 0 } };

#define HTTP(field) KEY(struct http_def, field)

/* ---- tls, state ---- */

static const struct key tls_rows[] = {
	{ "cert", HTTP(cert), &type_path, .flags = KEY_NEEDED | KEY_ROOT },
	{ "key", HTTP(key), &type_path, .flags = KEY_NEEDED | KEY_ROOT },
	{ "client_ca", HTTP(client_ca), &type_path, .flags = KEY_ROOT },
};
static const struct keys tls_keys = KEYS(struct http_def, tls_rows);

static const struct key state_rows[] = {
	{ "users", HTTP(users), &type_count, .usual = "1M", .least = 1000, .most = 1000000000,
	  .flags = KEY_RESTART },
	{ "log_memory", HTTP(log_bytes), &type_count, .usual = "64M", .least = 65536,
	  .most = 1000000000000, .flags = KEY_RESTART },
	{ "on_full", HTTP(on_full), &type_enum, .usual = "open", .names = full_names },
};
static const struct keys state_keys = KEYS(struct http_def, state_rows);

/* ---- callers ---- */

static const struct key domain_item = { .type = &type_text, .accepted = "the name of a domain" };

static const struct key caller_rows[] = {
	{ "name", KEY(struct caller_def, name), &type_text, .most = SL_NAME_MAX - 1,
	  .characters = IDENTIFIER_CHARACTERS, .accepted = "1 to 63 characters of a-z, 0-9 and -",
	  .flags = KEY_NEEDED | KEY_UNIQUE },
	{ "token_file", KEY(struct caller_def, token_file), &type_path },
	{ "uid", KEY(struct caller_def, uid), &type_number, .most = ~0U - 1,
	  .given = offsetof(struct caller_def, has_uid), .accepted = "a user's number, as 33" },
	{ "cert_cn", KEY(struct caller_def, cert_cn), &type_text, .most = 63,
	  .accepted = "a certificate's common name, up to 63 bytes" },
	{ "domains", KEY_LIST(struct caller_def, domain, domain_count), .item = &domain_item,
	  .least = 1, .accepted = "one or more names; without the key all domains" },
	{ "may", KEY(struct caller_def, may), &type_flags, .names = right_names,
	  .flags = KEY_NEEDED },
};

static int check_caller(struct reader *r, const struct yaml_node *node, void *section)
{
	const struct policy *policy = r->model;
	const struct caller_def *caller = section;

	if (!caller->token_file && !caller->has_uid && !caller->cert_cn)
		return read_fail(r, node, EINVAL,
				 "caller \"%s\" has no credentials; accepted: one or "
				 "more of token_file, uid, cert_cn",
				 caller->name);
	if (caller->cert_cn && !policy->http->client_ca)
		return read_fail(r, yaml_node_find(node, "cert_cn"), EINVAL,
				 "cert_cn is given, but "
				 "client certificates are not requested; accepted with it: "
				 "http.tls.client_ca");
	return 0;
}

static const struct keys caller_keys = KEYS(struct caller_def, caller_rows, .check = check_caller);
static const struct key caller_item = { .type = &type_map, .keys = &caller_keys };

/* ---- push_down ---- */

static const struct key push_prefix_rows[] = {
	{ "ipv4", HTTP(push_down.prefix[SL_V4]), &type_number, .usual = "32", .least = 16,
	  .most = 32 },
	{ "ipv6", HTTP(push_down.prefix[SL_V6]), &type_number, .usual = "64", .least = 32,
	  .most = 128 },
};
static const struct keys push_prefix_keys = KEYS(struct http_def, push_prefix_rows);

/* At most as many sources as the data path has room for. */
static const struct key push_down_rows[] = {
	{ "mode", HTTP(push_down.mode), &type_enum, .usual = "enforce", .names = push_mode_names },
	{ "max_sources", HTTP(push_down.max_sources), &type_count, .usual = "10K", .least = 1,
	  .most = SL_PUSHES_MAX },
	{ "max_share", HTTP(push_down.max_share_permille), &type_percent, .usual = "10%",
	  .least = 1, .most = 1000 },
	{ "min_requests", HTTP(push_down.min_requests), &type_count, .usual = "20",
	  .most = 1000000000 },
	{ "prefix", .type = &type_map, .keys = &push_prefix_keys },
};
static const struct keys push_down_keys = KEYS(struct http_def, push_down_rows);

/* ---- source_budget ---- */

static int rule_name_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	const char *slash = strchr(text, '/');

	if (!slash || slash == text || !slash[1])
		return key_refuse_text(r, key);
	return type_text_read(r, text, key, section);
}

static const struct key_type type_rule_name = TYPE_TEXT("rule", .text = rule_name_read);
static const struct key rule_name_item = {
	.type = &type_rule_name,
	.accepted = "DOMAIN/RULE, as api/user",
};

static const struct key budget_rows[] = {
	{ "limit", HTTP(budget.limit), &type_identifier, .flags = KEY_NEEDED },
	{ "user", KEY_LIST(struct http_def, budget.user, budget.user_count),
	  .item = &rule_name_item, .least = 1, .flags = KEY_NEEDED },
	{ "active", HTTP(budget.active_ns), &type_duration, .usual = "60s", .least = SL_NS_PER_SEC,
	  .most = 24 * 3600 * SL_NS_PER_SEC },
	{ "base", HTTP(budget.base), &type_packets, .flags = KEY_NEEDED },
	{ "packets_per_request", HTTP(budget.packets_per_request), &type_count, .usual = "40",
	  .least = 1, .most = SL_PUSHES_MAX },
	{ "max", HTTP(budget.max), &type_packets, .flags = KEY_NEEDED },
	{ "max_users", HTTP(budget.max_users), &type_count, .usual = "500", .least = 1,
	  .most = SL_PUSHES_MAX },
};

static int check_budget(struct reader *r, const struct yaml_node *node, void *section)
{
	const struct budget_def *budget = &((const struct http_def *)section)->budget;

	if ((unsigned __int128)budget->max.count * budget->base.period_ns >=
	    (unsigned __int128)budget->base.count * budget->max.period_ns)
		return 0;
	return read_fail(r, yaml_node_find(node, "max"), EINVAL,
			 "max is below base; accepted: base, or more");
}

static const struct keys budget_keys = KEYS(struct http_def, budget_rows, .check = check_budget);

/* ---- the section ---- */

static const struct key log_rows[] = {
	{ "file", HTTP(decision_log), &type_path, .flags = KEY_NEEDED | KEY_ROOT },
	{ "sample", HTTP(decision_sample), &type_count, .usual = "1", .least = 1,
	  .most = 1000000000 },
	{ "values", HTTP(decision_values), &type_enum, .usual = "hashed",
	  .names = log_values_names },
};
static const struct keys log_keys = KEYS(struct http_def, log_rows);

static const struct key host_item = {
	.type = &type_text,
	.accepted = "a host's name, as limiter.example",
};
static const struct key never_item = { .type = &type_prefix };

static const struct key http_rows[] = {
	{ "rules", HTTP(rules_dir), &type_path, .flags = KEY_NEEDED | KEY_ROOT,
	  .help = "the directory of [rules](http-rules.md), required" },
	{ "listen", HTTP(listen), &type_http_listen, .item = &listen_item,
	  .count = offsetof(struct http_def, listen_count), .flags = KEY_RESTART,
	  .help = "addresses of the frontends: `ADDRESS:PORT`, `unix:/PATH`, a list, "
		  "or mappings as below" },
/* The same help. */
/* clang-format off */
#define LISTEN_ROW(id, key, plain)						\
	{ #key, HTTP(listen), &type_http_##key, .flags = KEY_RESTART },
	/* clang-format on */
	LISTEN_KINDS_BESIDE_HTTP(LISTEN_ROW)
#undef LISTEN_ROW
		{ "hosts", KEY_LIST(struct http_def, host, host_count), .item = &host_item,
		  .help = "names that are accepted in a request's Host, besides addresses "
			  "and localhost" },
	{ "workers", HTTP(workers), &type_number, .usual = "auto", .names = auto_names, .least = 1,
	  .most = 256, .flags = KEY_RESTART, .help = "threads; `auto` is one per CPU" },
	{ "state", .type = &type_map, .keys = &state_keys,
	  .help = "room for users and, in bytes, for sliding logs; `on_full` is `open` or "
		  "`closed`" },
	{ "tls", .type = &type_map, .keys = &tls_keys, .flags = KEY_FIRST,
	  .help = "files: a certificate, its key, the CA of clients" },
	{ "callers", KEY_LIST(struct http_def, caller, caller_count), .item = &caller_item,
	  .most = 1000, .flags = KEY_ROOT,
	  .help = "the callers and their rights: `name`, one or more of "
		  "`token_file`, `uid`, `cert_cn`, then `domains` (all) and `may` "
		  "(`check`, `report`, `push`, `override`). Without callers: check "
		  "and report from this host" },
	{ "never_push_down", KEY_LIST(struct http_def, never_push_down, never_push_down_count),
	  .item = &never_item, .help = "sources that are never pushed down to the packet tier" },
	{ "push_down", .type = &type_map, .keys = &push_down_keys,
	  .help = "`mode` is `enforce`, `shadow` or `off`" },
	{ "source_budget", .type = &type_map, .keys = &budget_keys,
	  .help = "`limit`, `user`, `base`, `max` are required" },
	{ "retry_jitter", HTTP(retry_jitter_permille), &type_percent, .usual = "10%", .most = 1000,
	  .help = "the largest random share added to Retry-After" },
	{ "max_delayed", HTTP(max_delayed), &type_count, .usual = "10K", .most = 1000000,
	  .flags = KEY_RESTART, .help = "responses that may be delayed at a time" },
	{ "decision_log", .type = &type_map, .keys = &log_keys,
	  .help = "every `sample`-th decision; `values: plain` writes them out" },
};
const struct keys http_def_keys = KEYS(struct http_def, http_rows, .check = http_check_listen);

void http_def_free(struct http_def *def)
{
	keys_free(&http_def_keys, def);
}

int http_def_clone(const struct http_def *from, struct http_def **ret)
{
	struct http_def *copy = keys_clone(&http_def_keys, from);

	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}
