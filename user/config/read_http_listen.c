// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * read_http_listen.c - listeners of the HTTP tier. A listener that other machines can reach needs
 * TLS or an explicit `insecure`, and a way to authenticate callers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/http_names.h"
#include "config/read_http.h"

#define SOCKET_PATH_MAX 107
#define CONNECTIONS_MAX 1000000
#define WAIT_MAX (3600 * SL_NS_PER_SEC)

static int key_address(struct reader *r, const struct yaml_node *node, void *into)
{
	struct listen_def *listen = into;
	const char *accepted = "ADDRESS:PORT, as 127.0.0.1:8180, or unix:PATH", *text;
	int rc = read_text(r, node, accepted, &text);

	if (rc)
		return rc;
	if (!strncmp(text, "unix:", 5)) {
		if (text[5] != '/' || strlen(text + 5) > SOCKET_PATH_MAX)
			return read_refuse(r, node, "unix: and an absolute path of up to 107 bytes");
	} else if (!is_listen_address(text)) {
		return read_refuse(r, node, accepted);
	}
	return read_copy(r, text, &listen->address);
}

static int read_yes(struct reader *r, const struct yaml_node *node, bool *ret)
{
	int value, rc = read_name(r, node, http_bool_names, &value);

	if (!rc)
		*ret = value;
	return rc;
}

static int key_insecure(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_yes(r, node, &((struct listen_def *)into)->insecure);
}

static int key_listen_tls(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_yes(r, node, &((struct listen_def *)into)->tls);
}

static int item_client(struct reader *r, const struct yaml_node *node, void *into)
{
	struct listen_def *listen = into;
	struct sl_prefix prefix;
	int rc = http_read_prefix(r, node, &prefix);

	if (!rc && append(listen->clients, listen->client_count, prefix))
		rc = read_no_memory(r);
	return rc;
}

static int key_clients(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_each(r, node, item_client, into);
}

static int key_max_wait(struct reader *r, const struct yaml_node *node, void *into)
{
	struct listen_def *listen = into;

	listen->has_max_wait = true;
	return read_duration(r, node, 0, WAIT_MAX, "a duration of 0s to 1h",
			     &listen->max_wait_ns);
}

/* As chmod(1) takes it. */
static int key_mode(struct reader *r, const struct yaml_node *node, void *into)
{
	const char *accepted = "an octal mode, 0600 to 0777", *text;
	int rc = read_text(r, node, accepted, &text);
	char *end;
	long mode;

	if (rc)
		return rc;
	mode = strtol(text, &end, 8);
	if (*end || strspn(text, "01234567") != strlen(text) || mode < 0600 || mode > 0777)
		return read_refuse(r, node, accepted);
	((struct listen_def *)into)->mode = mode;
	return 0;
}

static int key_group(struct reader *r, const struct yaml_node *node, void *into)
{
	const char *text;
	int rc = read_text(r, node, "a group's name", &text);

	return rc ? rc : read_copy(r, text, &((struct listen_def *)into)->group);
}

static int key_max_connections(struct reader *r, const struct yaml_node *node, void *into)
{
	return http_read_count(r, node, 1, CONNECTIONS_MAX, "1 to 1M",
			       &((struct listen_def *)into)->max_connections);
}

static int key_max_connections_per_address(struct reader *r, const struct yaml_node *node,
					   void *into)
{
	return http_read_count(r, node, 1, CONNECTIONS_MAX, "1 to 1M",
			       &((struct listen_def *)into)->max_connections_per_address);
}

static const struct key listen_keys[] = {
	{ "address", .read = key_address },
	{ "tls", .read = key_listen_tls },
	{ "insecure", .read = key_insecure },
	{ "clients", .read = key_clients },
	{ "max_wait", .read = key_max_wait },
	{ "max_connections", .read = key_max_connections },
	{ "max_connections_per_address", .read = key_max_connections_per_address },
	{ "mode", .read = key_mode },
	{ "group", .read = key_group },
};

static int check_unix_keys(struct reader *r, const struct yaml_node *map,
			   const struct listen_def *listen)
{
	static const char *const of_unix[] = { "mode", "group" };
	static const char *const of_ip[] = { "tls", "insecure", "clients",
					   "max_connections_per_address" };
	bool is_unix = !strncmp(listen->address, "unix:", 5);
	const char *const *wrong = is_unix ? of_ip : of_unix;
	size_t count = is_unix ? ARRAY_SIZE(of_ip) : ARRAY_SIZE(of_unix);

	for (size_t i = 0; i < count; i++) {
		const struct yaml_node *key = yaml_node_find(map, wrong[i]);

		if (key)
			return read_fail(r, key, EINVAL, "%s is for %s, which %s is not", wrong[i],
					 is_unix ? "an address with a port" : "a Unix socket",
					 listen->address);
	}
	return 0;
}

static int check_syslog_keys(struct reader *r, const struct yaml_node *map)
{
	static const char *const wrong[] = { "max_connections", "max_connections_per_address" };

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		const struct yaml_node *key = yaml_node_find(map, wrong[i]);

		if (key)
			return read_fail(r, key, EINVAL, "%s is for listeners with connections; "
					 "syslog has none", wrong[i]);
	}
	return 0;
}

struct listening {
	struct http_def *http;
	enum listen_kind kind;
};

static int item_listen(struct reader *r, const struct yaml_node *node, void *into)
{
	struct listening *to = into;
	struct listen_def *listen;
	int rc;

	if (append(to->http->listen, to->http->listen_count, (struct listen_def){
			.max_connections = LISTEN_CONNECTIONS_DEFAULT,
			.max_connections_per_address = LISTEN_CONNECTIONS_PER_ADDRESS_DEFAULT }))
		return read_no_memory(r);
	listen = &to->http->listen[to->http->listen_count - 1];
	listen->kind = to->kind;
	listen->line = node->line;
	listen->column = node->column;
	if (node->kind != YAML_MAP) {
		rc = key_address(r, node, listen);
	} else {
		rc = read_map(r, node, listen_keys, ARRAY_SIZE(listen_keys), listen);
		if (!rc)
			rc = read_require(r, node, "address");
		if (!rc)
			rc = check_unix_keys(r, node, listen);
		if (!rc && to->kind == LISTEN_SYSLOG)
			rc = check_syslog_keys(r, node);
	}
	for (size_t i = 0; !rc && i + 1 < to->http->listen_count; i++)
		if (!strcmp(to->http->listen[i].address, listen->address) &&
		    (to->http->listen[i].kind == LISTEN_SYSLOG) == (to->kind == LISTEN_SYSLOG))
			rc = read_fail(r, node, EINVAL, "found %s again, first in line %d; "
				       "accepted: each address once", listen->address,
				       to->http->listen[i].line);
	return rc;
}

static int read_listen(struct reader *r, const struct yaml_node *node, void *into,
		       enum listen_kind kind)
{
	struct listening to = { into, kind };

	return yaml_node_is_null(node) ? 0 : read_each(r, node, item_listen, &to);
}

int http_read_listen(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_listen(r, node, into, LISTEN_HTTP);
}

int http_read_grpc(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_listen(r, node, into, LISTEN_GRPC);
}

int http_read_spoe(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_listen(r, node, into, LISTEN_SPOE);
}

int http_read_syslog(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_listen(r, node, into, LISTEN_SYSLOG);
}

/* ---- off loopback ---- */

static bool callers_are_known(const struct http_def *http)
{
	for (size_t i = 0; i < http->caller_count; i++)
		if (http->caller[i].token_file || http->caller[i].cert_cn)
			return true;
	return false;
}

/* The node of a listener, for errors. */
static const struct yaml_node *place_of(const struct yaml_node *map,
					const struct listen_def *listen)
{
	const struct yaml_node *at =
		yaml_node_find(map, name_of(listen_kind_names, listen->kind))->value;

	if (at->kind != YAML_LIST)
		return at;
	for (at = at->first; at->next; at = at->next)
		if (at->line == listen->line && at->column == listen->column)
			break;
	return at;
}

/* A listener that other machines can reach must authenticate its callers. */
static int check_remote(struct reader *r, const struct yaml_node *at, struct http_def *http,
			struct listen_def *listen)
{
	bool plain = listen->kind == LISTEN_SPOE || listen->kind == LISTEN_SYSLOG;

	if (plain && !listen->client_count && !listen->insecure)
		return read_fail(r, at, EINVAL, "other machines can reach %s; accepted: {address: "
				 "%s, clients: [CIDR]}", listen->address, listen->address);
	if (plain)
		return 0;
	if (!listen->insecure && http->cert)
		listen->tls = true;
	if (!listen->tls && !listen->insecure)
		return read_fail(r, at, EINVAL, "other machines can reach %s; accepted: with "
				 "http.tls, or {address: %s, insecure: true}", listen->address,
				 listen->address);
	if (!callers_are_known(http))
		return read_fail(r, at, EINVAL, "other machines can reach %s, and no caller can "
				 "authenticate; accepted: with callers that have a token_file or a cert_cn",
				 listen->address);
	return 0;
}

int http_check_listen(struct reader *r, const struct yaml_node *map, struct http_def *http)
{
	int rc = 0;

	for (size_t i = 0; i < http->listen_count && !rc; i++) {
		struct listen_def *listen = &http->listen[i];
		const struct yaml_node *at = place_of(map, listen);

		if (!listen_is_local(listen))
			rc = check_remote(r, at, http, listen);
		if (!rc && listen->tls && !http->cert)
			rc = read_fail(r, at, EINVAL, "%s has tls, but there is no certificate; "
				       "accepted with it: http.tls", listen->address);
		if (!rc && listen->tls && listen->insecure)
			rc = read_fail(r, at, EINVAL, "%s has tls and insecure; accepted: one of "
				       "them", listen->address);
	}
	return rc;
}
