// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * write_cluster.c - the `cluster:` section as text that read_cluster() reads back as equal. A
 * node's name that is the host's is left out, so that one file serves many hosts.
 */
#include <string.h>

#include "config/cluster_names.h"

static void write_urls(struct writer *w, const struct redis_def *redis)
{
	write_begin(w);
	fputs("urls: [", w->out);
	for (size_t i = 0; i < redis->url_count; i++) {
		if (i)
			fputs(", ", w->out);
		write_text(w->out, redis->url[i].text);
	}
	fputs("]\n", w->out);
}

static void write_pair(struct writer *w, const char *key, const char *value, const char **apart)
{
	if (!value)
		return;
	fprintf(w->out, "%s%s: ", *apart, key);
	write_text(w->out, value);
	*apart = ", ";
}

static void write_tls(struct writer *w, const struct redis_def *redis)
{
	const char *apart = "";

	if (!redis->ca && !redis->cert && !redis->key && !redis->tls_name)
		return;
	write_begin(w);
	fputs("tls: {", w->out);
	write_pair(w, "ca", redis->ca, &apart);
	write_pair(w, "cert", redis->cert, &apart);
	write_pair(w, "key", redis->key, &apart);
	write_pair(w, "name", redis->tls_name, &apart);
	fputs("}\n", w->out);
}

static void write_redis(struct writer *w, const struct redis_def *redis)
{
	write_begin(w);
	fputs("redis:\n", w->out);
	w->indent += 2;
	write_urls(w, redis);
	write_value(w, "mode", name_of(redis_mode_names, redis->mode));
	if (redis->mode == REDIS_MODE_SENTINEL)
		write_value(w, "master", redis->master);
	if (redis->user)
		write_value(w, "user", redis->user);
	if (redis->password_file)
		write_value(w, "password_file", redis->password_file);
	write_tls(w, redis);
	if (strcmp(redis->prefix, CLUSTER_PREFIX_DEFAULT))
		write_value(w, "prefix", redis->prefix);
	if (redis->wait)
		write_number(w, "wait", redis->wait);
	w->indent -= 2;
}

void write_cluster(struct writer *w, const struct cluster_def *cluster)
{
	char host[CLUSTER_NODE_MAX + 1], text[64];

	write_begin(w);
	fputs("cluster:\n", w->out);
	w->indent = 2;
	write_redis(w, &cluster->redis);
	cluster_host_node(host);
	if (strcmp(host, cluster->node))
		write_value(w, "node", cluster->node);
	write_value(w, "secret_file", cluster->secret_file);
	write_value(w, "sync", duration_format(cluster->sync_ns, text, sizeof(text)));
	write_value(w, "deadline", duration_format(cluster->deadline_ns, text, sizeof(text)));
	w->indent = 0;
}
