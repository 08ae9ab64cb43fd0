// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* consumption.c - see consumption.h. */
#include "control/replication/consumption.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/bus/cluster.h"
#include "control/replication/consumption_text.h"
#include "lib/clock.h"
#include "lib/json.h"
#include "lib/log.h"

#define CONSUMPTION_KIND "consumption"
/* Sources that are followed at a time: 320 bytes each. */
#define CONSUMPTION_ROOM 8192
/* A new source is found in the table within this time, up to 2M ways per interval. */
#define ROUND_NS (SL_NS_PER_SEC / 2)
/* Other nodes do not charge older reports. */
#define CONSUMPTION_VALID_NS (5 * SL_NS_PER_SEC)

struct consumption {
	struct running_part part;	/* first: a part is cast to its struct */
	struct nodes *nodes;
	struct dp_consumption *sources;
	struct cluster *cluster;
	struct event *timer;
	u64 sync_ns;			/* as at start */
	struct consumption_received received;
	u64 messages, sent, failed;
	u64 cpu_ns;			/* of scanning and publishing */
	struct dp_consumption_report told[CONSUMPTION_REPORT_MAX];
};

/* The data path's time. */
static struct sl_now consumption_now(const struct nodes *nodes)
{
	return clock_now(nodes->running->packets->dp->ops->state(nodes->running->packets->dp)
				 ->utc_offset_ns);
}

/* ------------------------------------------------------------------ start and end */

/* The seed is pinned with the table, so a restart keeps the bucket keys. */
static int take_seed(struct nodes *nodes, struct sl_err *err)
{
	struct sl_seed *seed =
		&nodes->running->packets->dp->ops->state(nodes->running->packets->dp)->seed;
	struct cluster_keys keys;
	int r = cluster_keys_read(nodes->running->file->cluster->secret_file, &keys, err);

	if (r < 0 || !memcmp(seed, &keys.seed, sizeof(*seed)))
		return r;
	*seed = keys.seed;
	log_info("cluster: bucket keys now use the cluster's seed; all sources start with empty buckets");
	return 0;
}

static void consumption_rules(struct running_part *part, const struct policy *policy)
{
	struct nodes *nodes = ((struct consumption *)part)->nodes;

	if (dp_consumption_rules(nodes->consumption->sources, nodes->running->image, policy,
				 consumption_now(nodes)) < 0)
		log_error("cluster: out of memory: packet limits of scope cluster apply to this node alone");
}

static const struct running_part_ops consumption_ops = { .installed = consumption_rules };

int consumption_open(struct nodes *nodes, struct sl_err *err)
{
	int r;

	if (!nodes->running->file->cluster || nodes->running->packets->absent)
		return 0;
	r = take_seed(nodes, err);
	if (r < 0)
		return r;
	nodes->consumption = calloc(1, sizeof(*nodes->consumption));
	if (!nodes->consumption || dp_consumption_new(nodes->running->packets->dp, CONSUMPTION_ROOM,
						      &nodes->consumption->sources) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	nodes->consumption->sync_ns = nodes->running->file->cluster->sync_ns;
	nodes->consumption->nodes = nodes;
	nodes->consumption->part.ops = &consumption_ops;
	running_join(nodes->running, &nodes->consumption->part);
	return 0;
}

void consumption_close(struct nodes *nodes)
{
	if (!nodes->consumption)
		return;
	if (nodes->consumption->timer)
		event_free(nodes->consumption->timer);
	running_leave(nodes->running, &nodes->consumption->part);
	dp_consumption_free(nodes->consumption->sources);
	free(nodes->consumption);
	nodes->consumption = NULL;
}

/* ------------------------------------------------------------------ publishing and receiving */

static void on_sync(evutil_socket_t fd, short what, void *arg)
{
	struct nodes *nodes = arg;
	struct consumption *consumption = nodes->consumption;
	struct sl_now now = consumption_now(nodes);
	u64 began_ns;
	json_t *body;
	u32 count;

	if (!dp_consumption_any(consumption->sources))
		return;
	began_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	dp_consumption_nodes(consumption->sources, cluster_size(consumption->cluster),
			     consumption->sync_ns);
	dp_consumption_look(consumption->sources, now, ROUND_NS);
	count = dp_consumption_take(consumption->sources, consumption->told, CONSUMPTION_REPORT_MAX,
				    now);
	if (count) {
		body = consumption_to_json(consumption->sources, consumption->told, count,
					   now.mono_ns);
		consumption->messages++;
		consumption->sent += count;
		consumption->failed += !body || cluster_send(consumption->cluster, CONSUMPTION_KIND, body, CONSUMPTION_VALID_NS) < 0;
	}
	consumption->cpu_ns += clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
}

static void on_consumption(void *arg, const struct cluster_message *message)
{
	struct nodes *nodes = arg;

	consumption_read(nodes->consumption->sources, message->body, message->age_ns,
			 consumption_now(nodes), &nodes->consumption->received);
}

int consumption_start(struct nodes *nodes, struct cluster *cluster, struct sl_err *err)
{
	u64 usec;
	struct timeval period;

	if (!nodes->consumption)
		return 0;
	usec = nodes->consumption->sync_ns / 1000;
	period = (struct timeval){ .tv_sec = (time_t)(usec / 1000000),
				   .tv_usec = (suseconds_t)(usec % 1000000) };
	nodes->consumption->cluster = cluster;
	cluster_on(cluster, CONSUMPTION_KIND, on_consumption, nodes);
	nodes->consumption->timer = event_new(nodes->base, -1, EV_PERSIST, on_sync, nodes);
	if (!nodes->consumption->timer || event_add(nodes->consumption->timer, &period) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	return 0;
}

json_t *consumption_show(const struct nodes *nodes)
{
	struct dp_consumption_stats stats;

	if (!nodes->consumption)
		return json_null();
	dp_consumption_stats(nodes->consumption->sources, &stats);
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "known",
			 json_u64(stats.known), "room", json_u64(stats.room), "displaced",
			 json_u64(stats.displaced), "messages",
			 json_u64(nodes->consumption->messages), "reported",
			 json_u64(nodes->consumption->sent), "charged",
			 json_u64(nodes->consumption->received.charged), "unknown",
			 json_u64(nodes->consumption->received.unknown), "bad",
			 json_u64(nodes->consumption->received.bad), "cpu_ns",
			 json_u64(nodes->consumption->cpu_ns));
}
