// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * read_cluster.c - the `cluster:` section: the cluster store and this node's name.
 *
 * A password belongs in a file of its own: a URL with a password is refused, and not quoted in the
 * error, which is logged and shown.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/cluster_names.h"
#include "config/keys.h"
#include "config/read.h"

#define MS 1000000ULL
#define PATH_LENGTH_MAX 3500
#define SOCKET_PATH_MAX 107	/* sockaddr_un.sun_path with its final 0 */
#define URLS_MAX 64
#define HOST_MAX 253
#define NAME_LENGTH_MAX 128
#define PREFIX_LENGTH_MAX 64
#define PORT_DEFAULT 6379
#define PORT_SENTINEL 26379
#define DATABASE_MAX 65535
#define WAIT_MAX 16

#define URLS "redis://HOST[:PORT][/DATABASE], rediss:// the same with TLS, or unix:/PATH"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

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
	if (v6 ? inet_pton(AF_INET6, host, bytes) == 1 :
		 strspn(host, LETTERS DIGITS ".-_") == len)
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
static int take_user(struct reader *r, const struct yaml_node *node, struct redis_def *redis,
		     char **text)
{
	char *at = strrchr(*text, '@');

	if (!at)
		return 0;
	*at = 0;
	if (strchr(*text, ':'))
		return read_fail(r, node, EINVAL, "found a password in a URL (it is not shown "
				 "here); accepted: a URL without, and redis.password_file");
	if (!**text)
		return read_fail(r, node, EINVAL, "found a URL with an '@' and no user before it; "
				 "accepted: " URLS);
	if (redis->user && strcmp(redis->user, *text))
		return read_fail(r, node, EINVAL, "found the users \"%.60s\" and \"%.60s\"; "
				 "accepted: one user for all", *text, redis->user);
	if (read_copy(r, *text, &redis->user))
		return -ENOMEM;
	*text = at + 1;
	return 0;
}

static int read_unix(struct reader *r, const struct yaml_node *node, struct redis_url *url)
{
	const char *path = url->text + strlen("unix:");

	if (!strncmp(path, "//", 2))
		path += 2;
	if (path[0] != '/' || strlen(path) > SOCKET_PATH_MAX)
		return read_refuse(r, node, "unix:/PATH, an absolute path of up to 107 bytes");
	url->unix_socket = true;
	return read_copy(r, path, &url->host);
}

static int read_tcp(struct reader *r, const struct yaml_node *node, struct redis_def *redis,
		    struct redis_url *url)
{
	const char *begin = strstr(url->text, "://");
	char *copy = begin ? strdup(begin + 3) : NULL, *text = copy;
	int rc;

	url->tls = !strncmp(url->text, "rediss://", 9);
	if (!url->tls && strncmp(url->text, "redis://", 8)) {
		free(copy);
		/* text that is not a URL may still contain a password */
		return strchr(url->text, '@') ?
			       read_fail(r, node, EINVAL, "found something other than a Redis URL; accepted: " URLS) :
			       read_refuse(r, node, URLS);
	}
	if (!copy)
		return read_no_memory(r);
	rc = take_user(r, node, redis, &text);
	if (!rc) {
		parse_place(text, url);
		if (!url->host)
			rc = read_refuse(r, node, URLS);
	}
	free(copy);
	return rc;
}

static int item_url(struct reader *r, const struct yaml_node *node, void *into)
{
	struct redis_def *redis = into;
	struct redis_url *url;
	const char *text;
	int rc = read_text(r, node, URLS, &text);

	if (rc)
		return rc;
	if (redis->url_count == URLS_MAX)
		return read_fail(r, node, EINVAL, "found another URL; accepted: up to %d", URLS_MAX);
	if (append(redis->url, redis->url_count, (struct redis_url){ 0 }))
		return read_no_memory(r);
	url = &redis->url[redis->url_count - 1];
	url->port = redis->mode == REDIS_MODE_SENTINEL ? PORT_SENTINEL : PORT_DEFAULT;
	rc = read_copy(r, text, &url->text);
	if (rc)
		return rc;
	if (!strncmp(text, "unix:", 5))
		return read_unix(r, node, url);
	return read_tcp(r, node, redis, url);
}

/* HOST:PORT/DATABASE identifies a server of a ring: redis_ring.c. */
static int check_twice(struct reader *r, const struct yaml_node *node,
		       const struct redis_def *redis, const struct redis_url *url)
{
	for (const struct redis_url *other = redis->url; other < url; other++)
		if (!strcmp(other->host, url->host) && other->unix_socket == url->unix_socket &&
		    other->port == url->port && other->database == url->database)
			return read_fail(r, node, EINVAL, "found \"%.200s\", which is there already; "
					 "accepted with mode ring: each server once", url->text);
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
		return read_fail(r, node, EINVAL, "found database %u, but a Redis Cluster has "
				 "number 0 alone; accepted with mode cluster: no number",
				 url->database);
	if (redis->mode != REDIS_MODE_CLUSTER && redis->mode != REDIS_MODE_SENTINEL)
		return 0;
	/* the servers that these name are reached the same way */
	if (url->unix_socket)
		return read_refuse(r, node, redis->mode == REDIS_MODE_CLUSTER ?
				   "redis:// or rediss:// with mode cluster" :
				   "redis:// or rediss:// with mode sentinel");
	if (url->tls != first->tls || url->database != first->database)
		return read_fail(r, node, EINVAL, "found another %s than in the first URL; accepted "
				 "with mode %s: the same in all",
				 url->tls != first->tls ? "scheme" : "database", mode);
	return 0;
}

static int key_urls(struct reader *r, const struct yaml_node *node, void *into)
{
	struct redis_def *redis = into;
	const struct yaml_node *item = node->kind == YAML_LIST ? node->first : node;
	int rc;

	if (node->kind == YAML_LIST && !node->count)
		return read_refuse(r, node, URLS);
	rc = read_each(r, node, item_url, redis);
	for (size_t i = 0; !rc && i < redis->url_count; i++, item = item->next)
		rc = check_url(r, item, redis, &redis->url[i]);
	if (rc)
		return rc;
	if (redis->mode == REDIS_MODE_SINGLE && redis->url_count > 1)
		return read_fail(r, node->first->next, EINVAL, "found another URL; accepted with mode "
				 "single: one (several are for sentinel, cluster and ring)");
	if (redis->mode == REDIS_MODE_RING && redis->url_count < 2)
		return read_fail(r, node, EINVAL, "found one URL; accepted with mode ring: two or "
				 "more");
	return 0;
}

/* ---- redis ---- */

static int key_mode(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, redis_mode_names, &value);

	if (!rc)
		((struct redis_def *)into)->mode = value;
	return rc;
}

/* One word: no blanks, nothing that ends an inline command of Redis. */
static int read_word(struct reader *r, const struct yaml_node *node, const char *accepted,
		     char **field)
{
	const char *text;
	int rc = read_text(r, node, accepted, &text);

	if (rc)
		return rc;
	if (strlen(text) > NAME_LENGTH_MAX || strpbrk(text, " \t"))
		return read_refuse(r, node, accepted);
	return read_copy(r, text, field);
}

static int key_master(struct reader *r, const struct yaml_node *node, void *into)
{
	struct redis_def *redis = into;

	if (redis->mode != REDIS_MODE_SENTINEL)
		return read_fail(r, node, EINVAL, "master applies to sentinels only; accepted "
				 "with it: mode: sentinel");
	return read_word(r, node, "the master's name, as the sentinels have it", &redis->master);
}

static int key_user(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_word(r, node, "the name of a user of Redis, as sluice",
			 &((struct redis_def *)into)->user);
}

static int key_password_file(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_path(r, node, PATH_LENGTH_MAX, &((struct redis_def *)into)->password_file);
}

static int key_ca(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_path(r, node, PATH_LENGTH_MAX, &((struct redis_def *)into)->ca);
}

static int key_cert(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_path(r, node, PATH_LENGTH_MAX, &((struct redis_def *)into)->cert);
}

static int key_tls_key(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_path(r, node, PATH_LENGTH_MAX, &((struct redis_def *)into)->key);
}

static int key_tls_name(struct reader *r, const struct yaml_node *node, void *into)
{
	const char *accepted = "the name that the server's certificate is for", *text;
	int rc = read_text(r, node, accepted, &text);

	if (rc)
		return rc;
	if (strlen(text) > HOST_MAX || strspn(text, LETTERS DIGITS ".-_:") != strlen(text))
		return read_refuse(r, node, accepted);
	return read_copy(r, text, &((struct redis_def *)into)->tls_name);
}

static const struct key tls_keys[] = {
	{ "ca", .read = key_ca },
	{ "cert", .read = key_cert },
	{ "key", .read = key_tls_key },
	{ "name", .read = key_tls_name },
};

static int key_tls(struct reader *r, const struct yaml_node *node, void *into)
{
	struct redis_def *redis = into;
	int rc = read_map(r, node, tls_keys, ARRAY_SIZE(tls_keys), redis);

	if (!rc && redis->cert)
		rc = read_require(r, node, "key");
	if (!rc && redis->key)
		rc = read_require(r, node, "cert");
	return rc;
}

/* Part of every key and of ACL patterns: no braces (hash tags), no pattern characters. */
static int key_prefix(struct reader *r, const struct yaml_node *node, void *into)
{
	const char *accepted = "1 to 64 characters of a-z, A-Z, 0-9 and .:_/-", *text;
	int rc = read_text(r, node, accepted, &text);

	if (rc)
		return rc;
	if (strlen(text) > PREFIX_LENGTH_MAX || strspn(text, LETTERS DIGITS ".:_/-") != strlen(text))
		return read_refuse(r, node, accepted);
	return read_copy(r, text, &((struct redis_def *)into)->prefix);
}

static int key_wait(struct reader *r, const struct yaml_node *node, void *into)
{
	u64 wait;
	int rc = read_number(r, node, WAIT_MAX, "how many replicas, 0 to 16", &wait);

	if (!rc)
		((struct redis_def *)into)->wait = wait;
	return rc;
}

/* `mode` before the keys that depend on it, `user` before the URLs that must agree. */
static const struct key redis_keys[] = {
	{ "mode", .read = key_mode },
	{ "user", .read = key_user },
	{ "urls", .read = key_urls },
	{ "master", .read = key_master },
	{ "password_file", .read = key_password_file },
	{ "tls", .read = key_tls },
	{ "prefix", .read = key_prefix },
	{ "wait", .read = key_wait },
};

static int key_redis(struct reader *r, const struct yaml_node *node, void *into)
{
	struct cluster_def *cluster = into;
	int rc = read_map(r, node, redis_keys, ARRAY_SIZE(redis_keys), &cluster->redis);

	return rc ? rc : read_require(r, node, "urls");
}

/* ---- the section ---- */

static int key_node(struct reader *r, const struct yaml_node *node, void *into)
{
	const char *accepted = "1 to 63 characters of a-z, A-Z, 0-9, . _ and -", *text;
	int rc = read_text(r, node, accepted, &text);

	if (rc)
		return rc;
	if (strlen(text) > CLUSTER_NODE_MAX ||
	    strspn(text, CLUSTER_NODE_CHARACTERS) != strlen(text))
		return read_refuse(r, node, accepted);
	return read_copy(r, text, &((struct cluster_def *)into)->node);
}

static int key_secret_file(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_path(r, node, PATH_LENGTH_MAX, &((struct cluster_def *)into)->secret_file);
}

static int key_sync(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_duration(r, node, 20 * MS, 10000 * MS, "a duration of 20ms to 10s",
			     &((struct cluster_def *)into)->sync_ns);
}

static int key_deadline(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_duration(r, node, MS, 1000 * MS, "a duration of 1ms to 1s",
			     &((struct cluster_def *)into)->deadline_ns);
}

static const struct key cluster_keys[] = {
	{ "redis", .read = key_redis },
	{ "node", .read = key_node },
	{ "secret_file", .read = key_secret_file },
	{ "sync", .read = key_sync },
	{ "deadline", .read = key_deadline },
};

static int cluster_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		        void *into)
{
	struct policy *policy = into;
	int rc;

	if (cluster_def_new(&policy->cluster))
		return read_no_memory(r);
	rc = read_map(r, node, cluster_keys, ARRAY_SIZE(cluster_keys), policy->cluster);
	if (!rc)
		rc = read_require(r, node, "redis");
	return rc ? rc : read_require(r, node, "secret_file");
}

static void cluster_lines(struct writer *w, const struct key *key, const void *section)
{
	const struct policy *policy = section;

	if (policy->cluster)
		write_cluster(w, policy->cluster);
}

static void cluster_copy(const struct key *key, void *section, int *rc)
{
	struct policy *policy = section;
	const struct cluster_def *from = policy->cluster;

	policy->cluster = NULL;
	if (from && !*rc)
		*rc = cluster_def_clone(from, &policy->cluster);
}

static void cluster_clear(const struct key *key, void *section)
{
	cluster_def_free(((struct policy *)section)->cluster);
	((struct policy *)section)->cluster = NULL;
}

const struct key_type type_cluster = {
	.name = "mapping", .read = cluster_read, .lines = cluster_lines, .copy = cluster_copy,
	.clear = cluster_clear,
};
