// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cluster_def.c - see cluster_def.h: defaults, copies, freeing; the names of the section. */
#include "config/cluster_def.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/cluster_names.h"

#define MS 1000000ULL

const struct name redis_mode_names[] = {
	{ "single", REDIS_MODE_SINGLE },
	{ "sentinel", REDIS_MODE_SENTINEL },
	{ "cluster", REDIS_MODE_CLUSTER },
	{ "ring", REDIS_MODE_RING },
	{ NULL, 0 },
};

void cluster_host_node(char ret[CLUSTER_NODE_MAX + 1])
{
	memset(ret, 0, CLUSTER_NODE_MAX + 1);
	if (gethostname(ret, CLUSTER_NODE_MAX) || !ret[0])
		strcpy(ret, "localhost");
	for (char *c = ret; *c; c++)
		if (!strchr(CLUSTER_NODE_CHARACTERS, *c))
			*c = '-';
}

int cluster_def_new(struct cluster_def **ret)
{
	struct cluster_def *def = calloc(1, sizeof(*def));
	char node[CLUSTER_NODE_MAX + 1];

	if (!def)
		return -ENOMEM;
	cluster_host_node(node);
	def->node = strdup(node);
	def->redis.master = strdup(CLUSTER_MASTER_DEFAULT);
	def->redis.prefix = strdup(CLUSTER_PREFIX_DEFAULT);
	def->sync_ns = CLUSTER_SYNC_DEFAULT_MS * MS;
	def->deadline_ns = CLUSTER_DEADLINE_DEFAULT_MS * MS;
	if (!def->node || !def->redis.master || !def->redis.prefix) {
		cluster_def_free(def);
		return -ENOMEM;
	}
	*ret = def;
	return 0;
}

void cluster_def_free(struct cluster_def *def)
{
	struct redis_def *redis = def ? &def->redis : NULL;

	if (!def)
		return;
	for (size_t i = 0; i < redis->url_count; i++) {
		free(redis->url[i].text);
		free(redis->url[i].host);
	}
	free(redis->url);
	free(redis->master);
	free(redis->user);
	free(redis->password_file);
	free(redis->ca);
	free(redis->cert);
	free(redis->key);
	free(redis->tls_name);
	free(redis->prefix);
	free(def->node);
	free(def->secret_file);
	free(def);
}

bool redis_tls_unused(const struct redis_def *redis)
{
	for (size_t i = 0; i < redis->url_count; i++)
		if (redis->url[i].tls)
			return false;
	return redis->ca || redis->cert || redis->tls_name;
}

/* A copy, NULL for NULL; sets *failed out of memory. */
static char *copy_string(const char *text, bool *failed)
{
	char *copy = text ? strdup(text) : NULL;

	*failed |= text && !copy;
	return copy;
}

static void copy_urls(struct redis_def *copy, const struct redis_def *from, bool *failed)
{
	copy->url_count = 0;
	copy->url = calloc(from->url_count ? from->url_count : 1, sizeof(*copy->url));
	*failed |= !copy->url;
	for (size_t i = 0; copy->url && i < from->url_count; i++) {
		copy->url[i] = from->url[i];
		copy->url[i].text = copy_string(from->url[i].text, failed);
		copy->url[i].host = copy_string(from->url[i].host, failed);
		copy->url_count++;
	}
}

int cluster_def_clone(const struct cluster_def *from, struct cluster_def **ret)
{
	struct cluster_def *copy = malloc(sizeof(*copy));
	const struct redis_def *redis = &from->redis;
	bool failed = false;

	if (!copy)
		return -ENOMEM;
	*copy = *from;
	copy_urls(&copy->redis, redis, &failed);
	copy->redis.master = copy_string(redis->master, &failed);
	copy->redis.user = copy_string(redis->user, &failed);
	copy->redis.password_file = copy_string(redis->password_file, &failed);
	copy->redis.ca = copy_string(redis->ca, &failed);
	copy->redis.cert = copy_string(redis->cert, &failed);
	copy->redis.key = copy_string(redis->key, &failed);
	copy->redis.tls_name = copy_string(redis->tls_name, &failed);
	copy->redis.prefix = copy_string(redis->prefix, &failed);
	copy->node = copy_string(from->node, &failed);
	copy->secret_file = copy_string(from->secret_file, &failed);
	if (failed) {
		cluster_def_free(copy);
		return -ENOMEM;
	}
	*ret = copy;
	return 0;
}
