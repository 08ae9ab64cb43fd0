// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* usage.c - see usage.h. */
#include "control/replication/usage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/bus/cluster.h"
#include "control/replication/usage_text.h"
#include "lib/clock.h"
#include "lib/json.h"
#include "lib/log.h"

#define USAGE_KIND "usage"
/* Sources that are followed at a time: 320 bytes each. */
#define USAGE_ROOM 8192
/* A source that begins is found in the table within so long, up to 2M ways per interval. */
#define ROUND_NS (SL_NS_PER_SEC / 2)
/* Others do not charge what is older. */
#define USAGE_VALID_NS (5 * SL_NS_PER_SEC)

struct usage {
	struct dp_usage *sources;
	struct cluster *cluster;
	struct event *timer;
	u64 sync_ns;			/* as it was started with */
	struct usage_heard heard;
	u64 messages, sent, failed;
	u64 cpu_ns;			/* of looking and telling */
	struct dp_usage_told told[USAGE_TOLD_MAX];
};

/* As the data path has it. */
static struct sl_now usage_now(const struct daemon *d)
{
	return clock_now(d->dp->ops->state(d->dp)->utc_offset_ns);
}

/* ------------------------------------------------------------------ start and end */

/* The seed is pinned with the table, so that a restart goes on with the keys there are. */
static int take_seed(struct daemon *d, struct sl_err *err)
{
	struct sl_seed *seed = &d->dp->ops->state(d->dp)->seed;
	struct cluster_keys keys;
	int r = cluster_keys_read(d->file->cluster->secret_file, &keys, err);

	if (r < 0 || !memcmp(seed, &keys.seed, sizeof(*seed)))
		return r;
	*seed = keys.seed;
	log_info("keys of buckets are the cluster's from now on; sources begin anew");
	return 0;
}

int usage_open(struct daemon *d, struct sl_err *err)
{
	int r;

	if (!d->file->cluster || d->http_only)
		return 0;
	r = take_seed(d, err);
	if (r < 0)
		return r;
	d->usage = calloc(1, sizeof(*d->usage));
	if (!d->usage || dp_usage_new(d->dp, USAGE_ROOM, &d->usage->sources) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	d->usage->sync_ns = d->file->cluster->sync_ns;
	return 0;
}

void usage_rules(struct daemon *d, const struct policy *policy)
{
	if (!d->usage)
		return;
	if (dp_usage_rules(d->usage->sources, d->image, policy, usage_now(d)) < 0)
		log_error("no memory: limits of scope cluster hold on each node alone");
}

void usage_close(struct daemon *d)
{
	if (!d->usage)
		return;
	if (d->usage->timer)
		event_free(d->usage->timer);
	dp_usage_free(d->usage->sources);
	free(d->usage);
	d->usage = NULL;
}

/* ------------------------------------------------------------------ telling and hearing */

static void on_sync(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;
	struct usage *usage = d->usage;
	struct sl_now now = usage_now(d);
	u64 began_ns;
	json_t *body;
	u32 count;

	if (!dp_usage_any(usage->sources))
		return;
	began_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	dp_usage_nodes(usage->sources, cluster_size(usage->cluster), usage->sync_ns);
	dp_usage_look(usage->sources, now, ROUND_NS);
	count = dp_usage_take(usage->sources, usage->told, USAGE_TOLD_MAX, now);
	if (count) {
		body = usage_to_json(usage->sources, usage->told, count, now.mono_ns);
		usage->messages++;
		usage->sent += count;
		usage->failed += !body || cluster_send(usage->cluster, USAGE_KIND, body, USAGE_VALID_NS) < 0;
	}
	usage->cpu_ns += clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
}

static void on_usage(void *arg, const struct cluster_message *message)
{
	struct daemon *d = arg;

	usage_hear(d->usage->sources, message->body, message->age_ns,
		   usage_now(d), &d->usage->heard);
}

int usage_start(struct daemon *d, struct cluster *cluster, struct sl_err *err)
{
	u64 usec;
	struct timeval period;

	if (!d->usage)
		return 0;
	usec = d->usage->sync_ns / 1000;
	period = (struct timeval){ .tv_sec = (time_t)(usec / 1000000),
				   .tv_usec = (suseconds_t)(usec % 1000000) };
	d->usage->cluster = cluster;
	cluster_on(cluster, USAGE_KIND, on_usage, d);
	d->usage->timer = event_new(d->base, -1, EV_PERSIST, on_sync, d);
	if (!d->usage->timer || event_add(d->usage->timer, &period) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	return 0;
}

json_t *usage_show(const struct daemon *d)
{
	struct dp_usage_stats stats;

	if (!d->usage)
		return json_null();
	dp_usage_stats(d->usage->sources, &stats);
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "known",
			 json_u64(stats.known), "room", json_u64(stats.room), "displaced",
			 json_u64(stats.displaced), "messages", json_u64(d->usage->messages), "told",
			 json_u64(d->usage->sent), "charged", json_u64(d->usage->heard.charged),
			 "unknown", json_u64(d->usage->heard.unknown), "bad",
			 json_u64(d->usage->heard.bad), "cpu_ns", json_u64(d->usage->cpu_ns));
}
