// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* nodes.c - see nodes.h. */
#include "control/replication/nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/bus/cluster.h"
#include "cluster/quota/quota.h"
#include "control/replication/addresses.h"
#include "control/replication/nodes_file.h"
#include "control/replication/resets.h"
#include "control/replication/replication.h"
#include "control/replication/consumption.h"
#include "request/server/tier.h"
#include "lib/log.h"

/* Of so many users one has a limit that nodes share, and is active. */
#define USERS_A_SHARE 8
#define QUOTAS_LEAST 4096

static int open_worker(void *arg, struct event_base *base, struct cluster_store **ret)
{
	return cluster_worker_open(arg, base, ret);
}

static int make_quotas(struct daemon *d, struct sl_err *err)
{
	u64 entries = d->http->def->users / USERS_A_SHARE;

	if (quotas_new(entries > QUOTAS_LEAST ? entries : QUOTAS_LEAST, &d->quotas) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	return 0;
}

int nodes_open(struct daemon *d, struct sl_err *err)
{
	const struct cluster_def *def = d->file->cluster;
	struct counters *counters = d->http ? d->http->counters : NULL;
	int r = 0;

	/* Another file may be in force than the one that was read first. */
	if (!def) {
		replication_close(d);
		return 0;
	}
	if (!d->replication)
		r = replication_open(d, err);
	if (!r && d->http)
		r = make_quotas(d, err);
	if (!r)
		r = cluster_open(def, d->base, counters, d->quotas, &d->cluster, err);
	if (!r)
		r = nodes_file_open(d, err);
	if (!r && d->http)
		r = tier_share(d->http, cluster_keys(d->cluster)->seed, d->quotas, def->deadline_ns,
			       open_worker, d->cluster, err);
	return r;
}

int nodes_run(struct daemon *d, struct sl_err *err)
{
	int r = 0;

	if (!d->cluster)
		return 0;
	r = replication_start(d, err);
	if (!r)
		r = consumption_start(d, d->cluster, err);
	if (!r)
		r = resets_start(d, err);
	if (!r)
		r = addresses_start(d->base, d->cluster, &d->addresses, err);
	if (!r)
		r = cluster_run(d->cluster, err);
	if (r < 0)
		return r;
	log_info("cluster: node %s, store %s", cluster_def(d->cluster)->node,
		 cluster_def(d->cluster)->redis.url[0].text);
	if (redis_tls_unused(&cluster_def(d->cluster)->redis))
		log_warn(REDIS_TLS_UNUSED);
	return 0;
}

void nodes_stop(struct daemon *d)
{
	cluster_stop(d->cluster);
}

void nodes_close(struct daemon *d)
{
	replication_close(d);
	resets_close(d);
	addresses_close(d->addresses);
	d->addresses = NULL;
	nodes_file_close(d);
	cluster_close(d->cluster);
	quotas_free(d->quotas);
	d->cluster = NULL;
	d->quotas = NULL;
}

/* ------------------------------------------------------------------ reload */

static bool same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

static bool same_urls(const struct redis_def *a, const struct redis_def *b)
{
	if (a->url_count != b->url_count)
		return false;
	for (size_t i = 0; i < a->url_count; i++)
		if (!same_text(a->url[i].text, b->url[i].text))
			return false;
	return true;
}

static bool same_redis(const struct redis_def *a, const struct redis_def *b)
{
	return same_urls(a, b) && a->mode == b->mode && same_text(a->master, b->master) &&
	       same_text(a->user, b->user) && same_text(a->password_file, b->password_file) &&
	       same_text(a->ca, b->ca) && same_text(a->cert, b->cert) && same_text(a->key, b->key) &&
	       same_text(a->tls_name, b->tls_name) && same_text(a->prefix, b->prefix) &&
	       a->wait == b->wait;
}

static const char *needs_restart(const struct cluster_def *was, const struct cluster_def *def)
{
	if (!was || !def)
		return was || def ? "cluster" : NULL;
	if (!same_redis(&was->redis, &def->redis))
		return "cluster.redis";
	if (!same_text(was->node, def->node))
		return "cluster.node";
	if (!same_text(was->secret_file, def->secret_file))
		return "cluster.secret_file";
	if (was->sync_ns != def->sync_ns)
		return "cluster.sync";
	return was->deadline_ns != def->deadline_ns ? "cluster.deadline" : NULL;
}

void nodes_configure(struct daemon *d, const struct cluster_def *def, json_t *notes)
{
	const char *key = needs_restart(d->cluster ? cluster_def(d->cluster) : NULL, def);

	if (key && notes)
		json_array_append_new(notes, json_sprintf(
			"%s is not what sluiced was started with: it counts only from the file that "
			"sluiced is started with, and takes a restart", key));
}
