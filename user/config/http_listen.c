// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * http_listen.c - listeners of the HTTP tier: four keys, one array. A listener that other machines
 * can reach needs TLS or an explicit `insecure`, and a way to authenticate callers.
 */
#include "config/http_listen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SOCKET_PATH_MAX 107

static const struct {
	const char *key;
	bool plain;
} kinds[LISTEN_KIND_COUNT] = {
#define KIND(id, key, plain) [id] = { #key, plain },
	LISTEN_KINDS(KIND)
};

static int address_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	struct listen_def *listen = section;

	if (!strncmp(text, "unix:", 5)) {
		if (text[5] != '/' || strlen(text + 5) > SOCKET_PATH_MAX)
			return text_refuse(r, "unix: and an absolute path of up to 107 bytes");
	} else if (!is_listen_address(text)) {
		return key_refuse_text(r, key);
	}
	return read_copy(r, text, &listen->address);
}

static const struct key_type type_address = TYPE_TEXT("address", .text = address_read);
static const struct key client_item = { .type = &type_prefix };

#define LISTEN(field) KEY(struct listen_def, field)

static const struct key listen_rows[] = {
	{ "address", LISTEN(address), &type_address, .flags = KEY_NEEDED,
	  .accepted = "ADDRESS:PORT, as 127.0.0.1:8180, or unix:PATH",
	  .help = "required: `ADDRESS:PORT` or `unix:/PATH`" },
	{ "tls", LISTEN(tls), &type_bool, .help = "`true`: TLS, on this host, too" },
	{ "insecure", LISTEN(insecure), &type_bool, .help = "`true`: reachable without TLS" },
	{ "clients", KEY_LIST(struct listen_def, clients, client_count), .item = &client_item,
	  .help = "the addresses that may connect" },
	{ "max_wait", LISTEN(max_wait_ns), &type_duration, .most = 3600 * SL_NS_PER_SEC,
	  .given = offsetof(struct listen_def, has_max_wait),
	  .help = "the longest delay of a response, unless the caller sets it" },
	{ "max_connections", LISTEN(max_connections), &type_count, .usual = "20K", .least = 1,
	  .most = 1000000, .help = "at a time" },
	{ "max_connections_per_address", LISTEN(max_connections_per_address), &type_count,
	  .usual = "1K", .least = 1, .most = 1000000,
	  .help = "of an IPv4 address or IPv6 /64 that is not this host's" },
	{ "mode", LISTEN(mode), &type_mode, .least = 0600, .most = 0777, .unset = "'0660'",
	  .help = "of a Unix socket, octal" },
	{ "group", LISTEN(group), &type_text, .accepted = "a group's name",
	  .help = "of a Unix socket: the proxy's" },
};

static int check_listen(struct reader *r, const struct yaml_node *map, void *section)
{
	static const struct {
		const char *key;
		bool of_unix, of_ip, of_syslog;
	} kept[] = {
		{ "mode", true, false, true },
		{ "group", true, false, true },
		{ "tls", false, true, true },
		{ "insecure", false, true, true },
		{ "clients", false, true, true },
		{ "max_connections", true, true, false },
		{ "max_connections_per_address", false, true, false },
	};
	const struct listen_def *listen = section;
	bool is_unix = !strncmp(listen->address, "unix:", 5);

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		const struct yaml_node *key = yaml_node_find(map, kept[i].key);

		if (key && !(is_unix ? kept[i].of_unix : kept[i].of_ip))
			return read_fail(r, key, EINVAL, "%s is for %s, which %s is not",
					 kept[i].key,
					 is_unix ? "an address with a port" : "a Unix socket",
					 listen->address);
		if (key && listen->kind == LISTEN_SYSLOG && !kept[i].of_syslog)
			return read_fail(r, key, EINVAL,
					 "%s is for listeners with connections; "
					 "syslog has none",
					 kept[i].key);
	}
	return 0;
}

const struct keys listen_keys =
	KEYS(struct listen_def, listen_rows, .alone = "address", .check = check_listen);
const struct key listen_item = { .type = &type_map, .keys = &listen_keys };

/* ---- the listeners of one kind ---- */

static int read_listener(struct reader *r, const struct yaml_node *node, enum listen_kind kind,
			 struct http_def *http)
{
	struct listen_def *listen;
	int rc;

	if (append(http->listen, http->listen_count,
		   (struct listen_def){ .kind = kind, .line = node->line, .column = node->column }))
		return read_no_memory(r);
	listen = &http->listen[http->listen_count - 1];
	if (keys_init(&listen_keys, listen))
		return read_no_memory(r);
	rc = keys_read(r, node, &listen_keys, listen);
	for (struct listen_def *other = http->listen; !rc && other < listen; other++)
		if (!strcmp(other->address, listen->address) &&
		    (other->kind == LISTEN_SYSLOG) == (kind == LISTEN_SYSLOG))
			rc = read_fail(r, node, EINVAL,
				       "found %s again, first in line %d; "
				       "accepted: each address once",
				       listen->address, other->line);
	return rc;
}

static int listen_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		       void *section)
{
	const struct yaml_node *item = node->kind == YAML_LIST ? node->first : node;
	int rc = 0;

	if (yaml_node_is_null(node))
		return 0;
	for (; item && !rc; item = node->kind == YAML_LIST ? item->next : NULL)
		rc = read_listener(r, item, key->type->variant, section);
	return rc;
}

/* The next of a kind from *at on, or NULL. */
static const struct listen_def *next_of(const struct http_def *http, enum listen_kind kind,
					size_t *at)
{
	while (*at < http->listen_count)
		if (http->listen[(*at)++].kind == kind)
			return &http->listen[*at - 1];
	return NULL;
}

static void listen_lines(struct writer *w, const struct key *key, const void *section)
{
	const struct listen_def *listen;
	size_t at = 0;

	write_begin(w);
	fprintf(w->out, "%s:", key->name);
	while ((listen = next_of(section, key->type->variant, &at))) {
		fprintf(w->out, "\n%*s- ", w->indent + 2, "");
		keys_write_flow(w, &listen_keys, listen,
				keys_unlike(w, &listen_keys, listen, NULL));
	}
	fputc('\n', w->out);
}

static bool listen_equal(const struct key *key, const void *a, const void *b)
{
	const struct listen_def *x, *y;
	size_t at_a = 0, at_b = 0;

	do {
		x = next_of(a, key->type->variant, &at_a);
		y = next_of(b, key->type->variant, &at_b);
	} while (x && y && keys_equal(&listen_keys, x, y));
	return !x && !y;
}

/* The first of them owns the array. */
#define TYPE(id, key, plain)                                                                       \
	const struct key_type type_http_##key = {                                                  \
		.name = "listeners",                                                               \
		.variant = id,                                                                     \
		.read = listen_read,                                                               \
		.lines = listen_lines,                                                             \
		.equal = listen_equal,                                                             \
		.copy = id ? NULL : type_list_copy,                                                \
		.clear = id ? NULL : type_list_clear,                                              \
	};
LISTEN_KINDS(TYPE)

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
	const struct yaml_node *at = yaml_node_find(map, kinds[listen->kind].key)->value;

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
	bool plain = kinds[listen->kind].plain;

	if (plain && !listen->client_count && !listen->insecure)
		return read_fail(r, at, EINVAL,
				 "other machines can reach %s; accepted: {address: "
				 "%s, clients: [CIDR]}",
				 listen->address, listen->address);
	if (plain)
		return 0;
	if (!listen->insecure && http->cert)
		listen->tls = true;
	if (!listen->tls && !listen->insecure)
		return read_fail(r, at, EINVAL,
				 "other machines can reach %s; accepted: with "
				 "http.tls, or {address: %s, insecure: true}",
				 listen->address, listen->address);
	if (!callers_are_known(http))
		return read_fail(
			r, at, EINVAL,
			"other machines can reach %s, and no caller can "
			"authenticate; accepted: with callers that have a token_file or a cert_cn",
			listen->address);
	return 0;
}

int http_check_listen(struct reader *r, const struct yaml_node *map, void *section)
{
	struct http_def *http = section;
	int rc = 0;

	for (size_t i = 0; i < http->listen_count && !rc; i++) {
		struct listen_def *listen = &http->listen[i];
		const struct yaml_node *at = place_of(map, listen);

		if (!listen_is_local(listen))
			rc = check_remote(r, at, http, listen);
		if (!rc && listen->tls && !http->cert)
			rc = read_fail(r, at, EINVAL,
				       "%s has tls, but there is no certificate; "
				       "accepted with it: http.tls",
				       listen->address);
		if (!rc && listen->tls && listen->insecure)
			rc = read_fail(r, at, EINVAL,
				       "%s has tls and insecure; accepted: one of "
				       "them",
				       listen->address);
	}
	return rc;
}

bool listen_is_local(const struct listen_def *listen)
{
	return !strncmp(listen->address, "unix:", 5) || !strncmp(listen->address, "127.", 4) ||
	       !strncmp(listen->address, "[::1]:", 6);
}
