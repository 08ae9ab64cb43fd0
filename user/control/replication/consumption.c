// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* consumption.c - see consumption.h. */
#include "control/replication/consumption.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/bus/cluster.h"
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
/* Largest age of a report's beginning: older use no longer counts in any bucket. */
#define AGE_MS_MAX 60000
#define NS_PER_MS 1000000ULL
#define UNITS_MAX (SL_BIT(46) - 1) /* no bucket holds more */
#define PER_SOURCE 3

struct consumption {
	struct running_part part; /* first: a part is cast to its struct */
	struct nodes *nodes;
	struct dp_consumption *sources;
	struct cluster *cluster;
	struct event *timer;
	u64 sync_ns; /* as at start */
	struct consumption_received received;
	struct dp_consumption_report reports[CONSUMPTION_REPORT_MAX];
};

/* The data path's time. */
static struct sl_now consumption_now(const struct nodes *nodes)
{
	return clock_now(nodes->running->packets->dp->state->utc_offset_ns);
}

/* ------------------------------------------------------------------ start and end */

/* The seed is pinned with the table, so a restart keeps the bucket keys. */
static int take_seed(struct nodes *nodes, struct sl_err *err)
{
	struct sl_seed *seed = &nodes->running->packets->dp->state->seed;
	struct cluster_keys keys;
	int r = cluster_keys_read(nodes->running->file->cluster->secret_file, &keys, err);

	if (r < 0 || !memcmp(seed, &keys.seed, sizeof(*seed)))
		return r;
	*seed = keys.seed;
	log_info(
		"cluster: bucket keys now use the cluster's seed; all sources start with empty buckets");
	return 0;
}

static void consumption_rules(struct running_part *part, const struct policy *policy)
{
	struct nodes *nodes = ((struct consumption *)part)->nodes;

	if (dp_consumption_rules(nodes->consumption->sources, nodes->running->image, policy,
				 consumption_now(nodes)) < 0)
		log_error(
			"cluster: out of memory: packet limits of scope cluster apply to this node alone");
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
	json_t *body;
	u32 count;

	if (!dp_consumption_any(consumption->sources))
		return;
	dp_consumption_nodes(consumption->sources, cluster_size(consumption->cluster),
			     consumption->sync_ns);
	dp_consumption_look(consumption->sources, now, ROUND_NS);
	count = dp_consumption_take(consumption->sources, consumption->reports,
				    CONSUMPTION_REPORT_MAX, now);
	if (count) {
		body = consumption_to_json(consumption->sources, consumption->reports, count,
					   now.mono_ns);
		if (body)
			cluster_send(consumption->cluster, CONSUMPTION_KIND, body,
				     CONSUMPTION_VALID_NS);
	}
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
	const struct consumption *consumption = nodes->consumption;

	return consumption ? json_pack("{s:o, s:o, s:o}", "charged",
				       json_u64(consumption->received.charged), "unknown",
				       json_u64(consumption->received.unknown), "bad",
				       json_u64(consumption->received.bad))
			   : json_null();
}

/* ------------------------------------------------------------------ a message: writing */

static int by_group(const void *a, const void *b)
{
	const struct dp_consumption_report *x = a, *y = b;

	return x->group < y->group ? -1 : x->group > y->group;
}

static json_t *limit_to_json(const struct dp_consumption *consumption, u32 group)
{
	char text[24];
	u64 kind;
	const char *name = dp_consumption_name(consumption, group, &kind);

	snprintf(text, sizeof(text), "%016llx", kind);
	return json_pack("{s:s, s:s, s:[]}", "meter", name, "kind", text, "used");
}

static void add_source(json_t *used, const struct dp_consumption_report *report, u64 mono_ns)
{
	u64 units = report->units < UNITS_MAX ? report->units : UNITS_MAX;

	json_array_append_new(used, json_integer((json_int_t)report->hash));
	json_array_append_new(used, json_integer((json_int_t)units));
	json_array_append_new(
		used, json_integer((json_int_t)((mono_ns - report->since_ns + NS_PER_MS - 1) /
						NS_PER_MS)));
}

json_t *consumption_to_json(const struct dp_consumption *consumption,
			    const struct dp_consumption_report *report, u32 count, u64 mono_ns)
{
	struct dp_consumption_report *sorted = calloc(count + 1, sizeof(*sorted));
	json_t *limits = json_array(), *limit = NULL;

	if (!sorted || !limits)
		goto out;
	memcpy(sorted, report, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_group);
	for (u32 i = 0; i < count; i++) {
		if (!i || sorted[i].group != sorted[i - 1].group) {
			limit = limit_to_json(consumption, sorted[i].group);
			json_array_append_new(limits, limit);
		}
		add_source(json_object_get(limit, "used"), &sorted[i], mono_ns);
	}
	free(sorted);
	return json_pack("{s:o}", "limits", limits);
out:
	free(sorted);
	json_decref(limits);
	return NULL;
}

/* ------------------------------------------------------------------ a message: reading */

/* A whole number from 0 to `most`. */
static bool read_number(const json_t *array, size_t at, u64 most, u64 *ret)
{
	const json_t *json = json_array_get(array, at);

	if (!json_is_integer(json) || json_integer_value(json) < 0 ||
	    (u64)json_integer_value(json) > most)
		return false;
	*ret = (u64)json_integer_value(json);
	return true;
}

static int find_limit(const struct dp_consumption *consumption, const json_t *limit, bool *ret_good)
{
	const char *row = json_string_value(json_object_get(limit, "meter"));
	const char *text = json_string_value(json_object_get(limit, "kind"));
	char *end;
	u64 kind;

	*ret_good = row && text && strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16;
	if (!*ret_good)
		return -1;
	kind = strtoull(text, &end, 16);
	return dp_consumption_find(consumption, row, kind);
}

void consumption_read(struct dp_consumption *consumption, const json_t *body, u64 age_ns,
		      struct sl_now now, struct consumption_received *received)
{
	const json_t *limits = json_object_get(body, "limits"), *limit;
	size_t i, sources = 0;

	if (!json_is_array(limits)) {
		received->bad++;
		return;
	}
	json_array_foreach((json_t *)limits, i, limit) {
		const json_t *used = json_object_get(limit, "used");
		struct dp_consumption_report report;
		u64 age_ms;
		bool good;
		int group = find_limit(consumption, limit, &good);

		if (!good || !json_is_array(used) || json_array_size(used) % PER_SOURCE) {
			received->bad++;
			continue;
		}
		received->unknown += group < 0;
		for (size_t k = 0; group >= 0 && k < json_array_size(used); k += PER_SOURCE) {
			if (!read_number(used, k, SL_KEY_HASH_MASK, &report.hash) ||
			    !read_number(used, k + 1, UNITS_MAX, &report.units) ||
			    !read_number(used, k + 2, AGE_MS_MAX, &age_ms) ||
			    sources++ >= CONSUMPTION_REPORT_MAX) {
				received->bad++;
				break;
			}
			report.group = (u32)group;
			age_ms = age_ms * NS_PER_MS + age_ns;
			report.since_ns = now.mono_ns > age_ms ? now.mono_ns - age_ms : 0;
			report.until_ns = now.mono_ns > age_ns ? now.mono_ns - age_ns : 0;
			dp_consumption_charge(consumption, &report, now);
			received->charged++;
		}
	}
}
