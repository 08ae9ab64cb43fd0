// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_keys.c - the rows of the `cluster:` section: the cluster store and this node's name.
 *
 * A password belongs in a file of its own: a URL with a password is refused, and not quoted in the
 * error, which is logged and shown.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/cluster_def.h"
#include "config/keys.h"

#define MS 1000000ULL
#define SOCKET_PATH_MAX 107 /* sockaddr_un.sun_path with its final 0 */
#define HOST_MAX 253
#define PORT_DEFAULT 6379
#define PORT_SENTINEL 26379
#define DATABASE_MAX 65535

#define URLS "redis://HOST[:PORT][/DATABASE], rediss:// the same with TLS, or unix:/PATH"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define NODE_CHARACTERS LETTERS DIGITS "._-"

static const struct name redis_mode_names[] = {
	{ "single", REDIS_MODE_SINGLE },
	{ "sentinel", REDIS_MODE_SENTINEL },
	{ "cluster", REDIS_MODE_CLUSTER },
	{ "ring", REDIS_MODE_RING },
	{ NULL, 0 },
};

/* ---- an URL ---- */

/* A number of decimal digits to the end of the text. */
static bool parse_decimal(const char *text, u32 most, u32 *ret)
{
	size_t len = strspn(text, DIGITS);
	u32 value;

	if (!len || len > 5 || text[len])
		return false;
	value = strtoul(text, NULL, 10);
	*ret = value;
	return value <= most;
}

/* The host in `text`, without the brackets of an IPv6 address; NULL: none. */
static char *parse_host(const char *text, size_t len)
{
	unsigned char bytes[16];
	bool v6 = len > 2 && text[0] == '[' && text[len - 1] == ']';
	char *host;

	if (!len || len > HOST_MAX)
		return NULL;
	host = strndup(text + v6, len - 2 * v6);
	if (!host)
		return NULL;
	if (v6 ? inet_pton(AF_INET6, host, bytes) == 1 : strspn(host, LETTERS DIGITS ".-_") == len)
		return host;
	free(host);
	return NULL;
}

/* HOST[:PORT][/DATABASE]; the host stays NULL on a syntax error. Modifies `text`. */
static void parse_place(char *text, struct redis_url *url)
{
	char *slash = strchr(text, '/'), *end, *colon;
	u32 port = url->port, database = 0;

	if (slash) {
		*slash = 0;
		if (slash[1] && !parse_decimal(slash + 1, DATABASE_MAX, &database))
			return;
	}
	end = strrchr(text, ']');
	colon = strchr(end ? end : text, ':');
	if (colon) {
		*colon = 0;
		if (!parse_decimal(colon + 1, 65535, &port) || !port)
			return;
	}
	url->port = port;
	url->database = database;
	url->host = parse_host(text, strlen(text));
}

/* Stores a URL's user as the section's, and advances *text past it. */
static int take_user(struct reader *r, struct redis_def *redis, char **text)
{
	char *at = strrchr(*text, '@');

	if (!at)
		return 0;
	*at = 0;
	if (strchr(*text, ':'))
		return read_fail(r, r->at, EINVAL,
				 "found a password in a URL (it is not shown "
				 "here); accepted: a URL without, and redis.password_file");
	if (!**text)
		return read_fail(r, r->at, EINVAL,
				 "found a URL with an '@' and no user before it; "
				 "accepted: " URLS);
	if (redis->user && strcmp(redis->user, *text))
		return read_fail(r, r->at, EINVAL,
				 "found the users \"%.60s\" and \"%.60s\"; "
				 "accepted: one user for all",
				 *text, redis->user);
	if (read_copy(r, *text, &redis->user))
		return -ENOMEM;
	*text = at + 1;
	return 0;
}

static int read_unix(struct reader *r, struct redis_url *url)
{
	const char *path = url->text + strlen("unix:");

	if (!strncmp(path, "//", 2))
		path += 2;
	if (path[0] != '/' || strlen(path) > SOCKET_PATH_MAX)
		return text_refuse(r, "unix:/PATH, an absolute path of up to 107 bytes");
	url->unix_socket = true;
	return read_copy(r, path, &url->host);
}

static int read_tcp(struct reader *r, struct redis_def *redis, struct redis_url *url)
{
	const char *begin = strstr(url->text, "://");
	char *copy = begin ? strdup(begin + 3) : NULL, *text = copy;
	int rc;

	url->tls = !strncmp(url->text, "rediss://", 9);
	if (!url->tls && strncmp(url->text, "redis://", 8)) {
		free(copy);
		/* text that is not a URL may still contain a password */
		return strchr(url->text, '@')
			       ? read_fail(
					 r, r->at, EINVAL,
					 "found something other than a Redis URL; accepted: " URLS)
			       : text_refuse(r, URLS);
	}
	if (!copy)
		return read_no_memory(r);
	rc = take_user(r, redis, &text);
	if (!rc) {
		parse_place(text, url);
		if (!url->host)
			rc = text_refuse(r, URLS);
	}
	free(copy);
	return rc;
}

/* Into the section, of which `user` and `mode` were read before. */
static int url_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	struct redis_def *redis = &((struct policy *)r->model)->cluster->redis;
	struct redis_url *url = section;

	url->port = redis->mode == REDIS_MODE_SENTINEL ? PORT_SENTINEL : PORT_DEFAULT;
	if (read_copy(r, text, &url->text))
		return -ENOMEM;
	return strncmp(text, "unix:", 5) ? read_tcp(r, redis, url) : read_unix(r, url);
}

/* What a URL holds; as text it is its first field. */
static const struct key url_parts[] = {
	{ "text", KEY(struct redis_url, text), &type_text },
	{ "host", KEY(struct redis_url, host), &type_text },
};
static const struct keys url_keys = KEYS(struct redis_url, url_parts);

static void url_copy(const struct key *key, void *section, int *rc)
{
	keys_copy(&url_keys, section, rc);
}

static void url_clear(const struct key *key, void *section)
{
	keys_clear(&url_keys, section);
}

static const struct key_type type_url = {
	.name = "URL",
	.size = sizeof(struct redis_url),
	.text = url_read,
	.accepts = URLS,
	.write = type_text_write,
	.copy = url_copy,
	.clear = url_clear,
	.equal = type_text_equal,
};
static const struct key url_item = { .type = &type_url };

/* HOST:PORT/DATABASE identifies a server of a ring: redis_ring.c. */
static int check_twice(struct reader *r, const struct yaml_node *node,
		       const struct redis_def *redis, const struct redis_url *url)
{
	for (const struct redis_url *other = redis->url; other < url; other++)
		if (!strcmp(other->host, url->host) && other->unix_socket == url->unix_socket &&
		    other->port == url->port && other->database == url->database)
			return read_fail(r, node, EINVAL,
					 "found \"%.200s\", which is there already; "
					 "accepted with mode ring: each server once",
					 url->text);
	return 0;
}

/* Checks a URL against the mode; `url` is at `node`. */
static int check_url(struct reader *r, const struct yaml_node *node, const struct redis_def *redis,
		     const struct redis_url *url)
{
	const char *mode = name_of(redis_mode_names, redis->mode);
	const struct redis_url *first = redis->url;

	if (redis->mode == REDIS_MODE_RING)
		return check_twice(r, node, redis, url);
	if (redis->mode == REDIS_MODE_CLUSTER && url->database)
		return read_fail(r, node, EINVAL,
				 "found database %u, but a Redis Cluster has "
				 "number 0 alone; accepted with mode cluster: no number",
				 url->database);
	if (redis->mode != REDIS_MODE_CLUSTER && redis->mode != REDIS_MODE_SENTINEL)
		return 0;
	/* the servers that these name are reached the same way */
	if (url->unix_socket)
		return read_refuse(r, node,
				   redis->mode == REDIS_MODE_CLUSTER
					   ? "redis:// or rediss:// with mode cluster"
					   : "redis:// or rediss:// with mode sentinel");
	if (url->tls != first->tls || url->database != first->database)
		return read_fail(r, node, EINVAL,
				 "found another %s than in the first URL; accepted "
				 "with mode %s: the same in all",
				 url->tls != first->tls ? "scheme" : "database", mode);
	return 0;
}

static int check_urls(struct reader *r, const struct yaml_node *node, const struct redis_def *redis)
{
	const struct yaml_node *item = node->kind == YAML_LIST ? node->first : node;
	int rc = 0;

	for (size_t i = 0; !rc && i < redis->url_count; i++, item = item->next)
		rc = check_url(r, item, redis, &redis->url[i]);
	if (rc)
		return rc;
	if (redis->mode == REDIS_MODE_SINGLE && redis->url_count > 1)
		return read_fail(r, node->first->next, EINVAL,
				 "found another URL; accepted with mode "
				 "single: one (several are for sentinel, cluster and ring)");
	if (redis->mode == REDIS_MODE_RING && redis->url_count < 2)
		return read_fail(r, node, EINVAL,
				 "found one URL; accepted with mode ring: two or "
				 "more");
	return 0;
}

/* ---- redis ---- */

/* One word: no blanks, nothing that ends an inline command of Redis. */
static int word_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	if (strpbrk(text, " \t"))
		return key_refuse_text(r, key);
	return type_text_read(r, text, key, section);
}

static const struct key_type type_word = TYPE_TEXT("text", .text = word_read);

#define REDIS(field) KEY(struct redis_def, field)

static const struct key tls_rows[] = {
	{ "ca", REDIS(ca), &type_path },
	{ "cert", REDIS(cert), &type_path },
	{ "key", REDIS(key), &type_path },
	{ "name", REDIS(tls_name), &type_text, .most = HOST_MAX,
	  .characters = LETTERS DIGITS ".-_:",
	  .accepted = "the name that the server's certificate is for" },
};

static int check_tls(struct reader *r, const struct yaml_node *node, void *section)
{
	const struct redis_def *redis = section;
	int rc = redis->cert ? read_require(r, node, "key") : 0;

	return rc || !redis->key ? rc : read_require(r, node, "cert");
}

static const struct keys tls_keys = KEYS(struct redis_def, tls_rows, .check = check_tls);

/* The prefix is part of every key and of ACL patterns: no braces, no pattern characters. */
static const struct key redis_rows[] = {
	{ "urls", KEY_LIST(struct redis_def, url, url_count), .item = &url_item, .least = 1,
	  .most = 64, .accepted = URLS, .flags = KEY_NEEDED | KEY_RESTART,
	  .help = "needed: `redis://HOST[:PORT][/DATABASE]`, `rediss://` with TLS, `unix:/PATH`" },
	{ "mode", REDIS(mode), &type_enum, .usual = "single", .names = redis_mode_names,
	  .flags = KEY_FIRST | KEY_RESTART, .help = "`single`, `sentinel`, `cluster` or `ring`" },
	{ "master", REDIS(master), &type_word, .usual = "mymaster", .most = 128,
	  .accepted = "the master's name, as the sentinels have it", .flags = KEY_RESTART,
	  .help = "with `sentinel`: the master's name" },
	{ "user", REDIS(user), &type_word, .most = 128, .flags = KEY_FIRST | KEY_RESTART,
	  .accepted = "the name of a user of Redis, as sluice", .unset = "none",
	  .help = "the file's first line is the password; a password in a URL is refused. A user "
		  "without a password file is for a Redis user with `nopass`" },
	{ "password_file", REDIS(password_file), &type_path, .flags = KEY_RESTART },
	{ "tls", .type = &type_map, .keys = &tls_keys, .flags = KEY_RESTART,
	  .unset = "the system's authorities",
	  .help = "`{ca: F, cert: F, key: F, name: N}`, for URLs with `rediss://`; `name` is the name "
		  "that the server's certificate must have, if it is not the host" },
	{ "prefix", REDIS(prefix), &type_text, .usual = "sluice:", .most = 64,
	  .characters = LETTERS DIGITS ".:_/-", .flags = KEY_RESTART,
	  .accepted = "1 to 64 characters of a-z, A-Z, 0-9 and .:_/-",
	  .help = "of all keys: two clusters in one Redis need different ones, and the ACL's pattern "
		  "must match it" },
	{ "wait", REDIS(wait), &type_number, .usual = "0", .most = 16, .flags = KEY_RESTART,
	  .accepted = "how many replicas, 0 to 16",
	  .help = "the number of replicas that must confirm a charge before it counts" },
};

static int check_redis(struct reader *r, const struct yaml_node *node, void *section)
{
	const struct redis_def *redis = section;
	const struct yaml_node *master = yaml_node_find(node, "master");

	if (master && redis->mode != REDIS_MODE_SENTINEL)
		return read_fail(r, master->value, EINVAL,
				 "master applies to sentinels only; accepted "
				 "with it: mode: sentinel");
	return check_urls(r, yaml_node_find(node, "urls")->value, redis);
}

const struct keys redis_keys = KEYS(struct redis_def, redis_rows, .check = check_redis);

/* ---- the section ---- */

/* The host's name, reduced to the characters of a node's name. */
static int init_node(void *section)
{
	struct cluster_def *def = section;
	char host[CLUSTER_NODE_MAX + 1] = "";

	if (gethostname(host, CLUSTER_NODE_MAX) || !host[0])
		strcpy(host, "localhost");
	for (char *c = host; *c; c++)
		if (!strchr(NODE_CHARACTERS, *c))
			*c = '-';
	def->node = strdup(host);
	return def->node ? 0 : -ENOMEM;
}

#define CLUSTER(field) KEY(struct cluster_def, field)

static const struct key cluster_rows[] = {
	{ "redis", CLUSTER(redis), &type_map, .keys = &redis_keys, .flags = KEY_NEEDED, .unset = "",
	  .help = "required, see [below](#redis)" },
	{ "node", CLUSTER(node), &type_text, .most = CLUSTER_NODE_MAX,
	  .characters = NODE_CHARACTERS, .flags = KEY_RESTART,
	  .accepted = "1 to 63 characters of a-z, A-Z, 0-9, . _ and -", .unset = "the host's name",
	  .help = "this node's name: up to 63 of `a-z A-Z 0-9 . _ -`; each node has another. `save` "
		  "omits it if it is the host's name" },
	{ "secret_file", CLUSTER(secret_file), &type_path, .flags = KEY_NEEDED | KEY_RESTART,
	  .help = "required: 32 bytes or more, the same on all nodes, readable by root (or "
		  "sluiced's user) alone" },
	{ "sync", CLUSTER(sync_ns), &type_duration, .usual = "100ms", .least = 20 * MS,
	  .most = 10000 * MS, .flags = KEY_RESTART,
	  .help = "how often nodes exchange messages, 20ms to 10s" },
	{ "deadline", CLUSTER(deadline_ns), &type_duration, .usual = "5ms", .least = MS,
	  .most = 1000 * MS, .flags = KEY_RESTART,
	  .help = "the time within which a response comes, whatever Redis does, 1ms to 1s; sluiced "
		  "waits four fifths of it for Redis" },
};
const struct keys cluster_def_keys = KEYS(struct cluster_def, cluster_rows, .init = init_node);

void cluster_def_free(struct cluster_def *def)
{
	keys_free(&cluster_def_keys, def);
}

int cluster_def_clone(const struct cluster_def *from, struct cluster_def **ret)
{
	struct cluster_def *copy = keys_clone(&cluster_def_keys, from);

	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

bool redis_tls_unused(const struct redis_def *redis)
{
	for (size_t i = 0; i < redis->url_count; i++)
		if (redis->url[i].tls)
			return false;
	return redis->ca || redis->cert || redis->tls_name;
}
