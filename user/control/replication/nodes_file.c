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
#define NODES_MAX 1024			/* as many as are heard (cluster/bus/bus_peers.h) */

struct nodes_file {
	struct event *timer;
	u32 saved;
	bool failed;
};

static void write_nodes(struct daemon *d, u32 nodes)
{
	json_t *file = json_pack("{s:i, s:i}", "version", FILE_VERSION, "nodes", (int)nodes);
	char *path = file_join(d->state_dir, NODES_FILE_NAME), *text = file ? json_dumps(file, 0) : NULL;
	struct sl_err err;
	int r = path && text ? file_replace(path, NULL, text, strlen(text), 0640, &err) :
			       sl_err_set(&err, ENOMEM, "out of memory");

	if (r < 0 && !d->nodes_file->failed)
		log_error("how many nodes there are would not outlive a restart: %s", err.message);
	d->nodes_file->failed = r < 0;
	if (!r)
		d->nodes_file->saved = nodes;
	json_decref(file);
	free(text);
	free(path);
}

static void on_nodes_timer(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;
	u32 nodes = cluster_sharing(d->cluster);

	if (nodes && nodes != d->nodes_file->saved)
		write_nodes(d, nodes);
}

static u32 read_nodes(struct daemon *d)
{
	const char *lost = "until the store is there this node takes limits for its own";
	json_t *file = file_load_json(d->state_dir, NODES_FILE_NAME, lost);
	json_int_t nodes = json_integer_value(json_object_get(file, "nodes"));

	json_decref(file);
	return nodes > 0 && nodes <= NODES_MAX ? (u32)nodes : 0;
}

int nodes_file_open(struct daemon *d, struct sl_err *err)
{
	const struct timeval period = { .tv_sec = 1 };
	struct nodes_file *file;

	if (!d->quotas)
		return 0;
	file = d->nodes_file = calloc(1, sizeof(*file));
	if (file)
		file->timer = event_new(d->base, -1, EV_PERSIST, on_nodes_timer, d);
	if (!file || !file->timer || event_add(file->timer, &period) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	file->saved = read_nodes(d);
	if (file->saved)
		cluster_expect(d->cluster, file->saved);
	return 0;
}

void nodes_file_close(struct daemon *d)
{
	if (!d->nodes_file)
		return;
	if (d->nodes_file->timer)
		event_free(d->nodes_file->timer);
	free(d->nodes_file);
	d->nodes_file = NULL;
}
