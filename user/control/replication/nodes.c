// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* nodes.c - see nodes.h. */
#include "control/replication/nodes.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/bus/cluster.h"
#include "cluster/quota/quota.h"
#include "control/replication/addresses.h"
#include "control/replication/differences.h"
#include "control/replication/resets.h"
#include "control/replication/user_bans.h"
#include "control/replication/replication.h"
#include "control/replication/consumption.h"
#include "request/engine/engine.h"
#include "lib/file.h"
#include "lib/log.h"

#define NODES_FILE_NAME "nodes.json"
#define NODES_MAX 1024 /* as in cluster/bus/bus_peers.h */

/* Estimate: one of so many users is active and has a limit of scope cluster. */
#define USERS_A_SHARE 8
#define QUOTAS_LEAST 4096

/* ------------------------------------------------------------------ state_dir/nodes.json */

/*
 * The number of nodes. A node that starts while the cluster store is unavailable has no other nodes
 * in its list, and would use all of each limit alone (on_store_failure: local). nodes->nodes_file
 * is NULL without a cluster, or if there is no quota to divide.
 */
struct nodes_file {
	struct event *timer;
	u32 saved;
	bool failed;
};

static void write_nodes(struct nodes *nodes, u32 count)
{
	json_t *file = json_pack("{s:i, s:i}", "version", FILE_VERSION, "nodes", (int)count);
	char *path = file_join(nodes->running->state_dir, NODES_FILE_NAME),
	     *text = file ? json_dumps(file, 0) : NULL;
	struct sl_err err;
	int r = path && text ? file_replace(path, NULL, text, strlen(text), 0640, &err)
			     : sl_err_set(&err, ENOMEM, "out of memory");

	if (r < 0 && !nodes->nodes_file->failed)
		log_error("cluster: cannot save the number of nodes, a restart would lose it: %s",
			  err.message);
	nodes->nodes_file->failed = r < 0;
	if (!r)
		nodes->nodes_file->saved = count;
	json_decref(file);
	free(text);
	free(path);
}

static void on_nodes_timer(evutil_socket_t fd, short what, void *arg)
{
	struct nodes *nodes = arg;
	u32 count = cluster_sharing(nodes->cluster);

	if (count && count != nodes->nodes_file->saved)
		write_nodes(nodes, count);
}

static u32 read_nodes(struct nodes *nodes)
{
	const char *lost =
		"until the cluster store is available, this node applies limits as if it were alone";
	json_t *file = file_load_json(nodes->running->state_dir, NODES_FILE_NAME, lost);
	json_int_t count = json_integer_value(json_object_get(file, "nodes"));

	json_decref(file);
	return count > 0 && count <= NODES_MAX ? (u32)count : 0;
}

static int nodes_file_open(struct nodes *nodes, struct sl_err *err)
{
	const struct timeval period = { .tv_sec = 1 };
	struct nodes_file *file;

	if (!nodes->quotas)
		return 0;
	file = nodes->nodes_file = calloc(1, sizeof(*file));
	if (file)
		file->timer = event_new(nodes->base, -1, EV_PERSIST, on_nodes_timer, nodes);
	if (!file || !file->timer || event_add(file->timer, &period) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	file->saved = read_nodes(nodes);
	if (file->saved)
		cluster_expect(nodes->cluster, file->saved);
	return 0;
}

static void nodes_file_close(struct nodes *nodes)
{
	if (!nodes->nodes_file)
		return;
	if (nodes->nodes_file->timer)
		event_free(nodes->nodes_file->timer);
	free(nodes->nodes_file);
	nodes->nodes_file = NULL;
}

/* ------------------------------------------------------------------ quotas */

static int make_quotas(struct nodes *nodes, struct sl_err *err)
{
	u64 entries = nodes->running->requests.def->users / USERS_A_SHARE;

	if (quotas_new(entries > QUOTAS_LEAST ? entries : QUOTAS_LEAST, &nodes->quotas) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	quotas_set_deadline(nodes->quotas, nodes->running->started->cluster->deadline_ns);
	return 0;
}

int nodes_open(struct nodes *nodes, struct sl_err *err)
{
	const struct cluster_def *def = nodes->running->started->cluster;
	struct engine *engine = nodes->running->requests.engine;
	struct counters *counters = engine ? engine->ledger.counters : NULL;
	int r = 0;

	if (!def) {
		replication_close(nodes);
		return 0;
	}
	if (!nodes->replication)
		r = replication_open(nodes, err);
	if (!r && nodes->running->requests.def)
		r = make_quotas(nodes, err);
	if (!r)
		r = cluster_open(def, nodes->base, counters, nodes->quotas, &nodes->cluster, err);
	if (!r)
		r = nodes_file_open(nodes, err);
	return r;
}

int nodes_run(struct nodes *nodes, struct sl_err *err)
{
	int r = 0;

	if (!nodes->cluster)
		return 0;
	r = replication_start(nodes, err);
	if (!r)
		r = consumption_start(nodes, nodes->cluster, err);
	if (!r)
		r = resets_start(nodes, err);
	if (!r)
		r = user_bans_start(nodes, err);
	if (!r)
		r = differences_start(nodes, err);
	if (!r)
		r = addresses_start(nodes->base, nodes->cluster, &nodes->addresses, err);
	if (!r)
		r = cluster_run(nodes->cluster, err);
	if (r < 0)
		return r;
	log_info("cluster: started as node %s, cluster store %s", cluster_def(nodes->cluster)->node,
		 cluster_def(nodes->cluster)->redis.url[0].text);
	if (redis_tls_unused(&cluster_def(nodes->cluster)->redis))
		log_warn(REDIS_TLS_UNUSED);
	return 0;
}

void nodes_stop(struct nodes *nodes)
{
	cluster_stop(nodes->cluster);
}

void nodes_close(struct nodes *nodes)
{
	replication_close(nodes);
	resets_close(nodes);
	user_bans_close(nodes);
	differences_close(nodes);
	addresses_close(nodes->addresses);
	nodes->addresses = NULL;
	nodes_file_close(nodes);
	cluster_close(nodes->cluster);
	quotas_free(nodes->quotas);
	nodes->cluster = NULL;
	nodes->quotas = NULL;
}
