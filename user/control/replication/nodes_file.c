// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* nodes_file.c - see nodes_file.h. */
#include "control/replication/nodes_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/bus/cluster.h"
#include "lib/file.h"
#include "lib/log.h"

#define NODES_FILE_NAME "nodes.json"
#define NODES_MAX 1024			/* as in cluster/bus/bus_peers.h */

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
	int r = path && text ? file_replace(path, NULL, text, strlen(text), 0640, &err) :
			       sl_err_set(&err, ENOMEM, "out of memory");

	if (r < 0 && !nodes->nodes_file->failed)
		log_error("cluster: cannot save the number of nodes, a restart would lose it: %s", err.message);
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
	const char *lost = "until the cluster store is available, this node applies limits as if it were alone";
	json_t *file = file_load_json(nodes->running->state_dir, NODES_FILE_NAME, lost);
	json_int_t count = json_integer_value(json_object_get(file, "nodes"));

	json_decref(file);
	return count > 0 && count <= NODES_MAX ? (u32)count : 0;
}

int nodes_file_open(struct nodes *nodes, struct sl_err *err)
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

void nodes_file_close(struct nodes *nodes)
{
	if (!nodes->nodes_file)
		return;
	if (nodes->nodes_file->timer)
		event_free(nodes->nodes_file->timer);
	free(nodes->nodes_file);
	nodes->nodes_file = NULL;
}
