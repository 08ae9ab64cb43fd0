// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* nodes_show.c - the cluster in `status`, `cluster show` and /metrics; see nodes.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster/bus/cluster_show.h"
#include "cluster/quota/quota.h"
#include "lib/clock.h"
#include "lib/json.h"
#include "lib/exposition.h"
#include "control/replication/addresses.h"
#include "control/replication/differences.h"
#include "control/replication/nodes.h"
#include "control/replication/replication.h"
#include "control/replication/consumption.h"
#include "request/engine/observe.h"
#include "request/rules/rule.h"

#define SERVERS_MAX 256
#define RULE_TEXT 256

/* ------------------------------------------------------------------ parts */

static json_t *store_to_json(struct nodes *nodes)
{
	struct redis_server_state *state = calloc(SERVERS_MAX, sizeof(*state));
	json_t *servers = json_array();
	struct redis_stats stats;
	u32 count = state ? cluster_servers(nodes->cluster, state, SERVERS_MAX) : 0;

	cluster_redis_stats(nodes->cluster, &stats);
	for (u32 i = 0; i < count; i++)
		json_array_append_new(servers,
				      json_pack("{s:s, s:b, s:b, s:b, s:b, s:s?}", "server",
						state[i].name, "sentinel", state[i].sentinel, "up",
						state[i].up, "idle", state[i].idle, "breaker_open",
						state[i].breaker_open, "error",
						*state[i].error ? state[i].error : NULL));
	free(state);
	return json_pack("{s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "up",
			 stats.servers && stats.up == stats.servers, "servers", servers, "commands",
			 json_u64(stats.commands), "errors", json_u64(stats.errors), "late",
			 json_u64(stats.late), "refused", json_u64(stats.refused), "breakers_open",
			 json_u64(stats.breakers_open));
}

static json_t *peers_to_json(struct nodes *nodes)
{
	struct cluster_peer *peer = NULL;
	json_t *list = json_array();
	u64 now_ns = clock_mono_ns();
	size_t count = 0;

	if (cluster_peers(nodes->cluster, &peer, &count) < 0)
		return list;
	for (size_t i = 0; i < count; i++)
		json_array_append_new(
			list,
			json_pack("{s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:s, s:o, s:o}", "node",
				  peer[i].node, "alive", peer[i].alive, "left", peer[i].left,
				  "silent_ns",
				  json_u64(now_ns > peer[i].received_ns
						   ? now_ns - peer[i].received_ns
						   : 0),
				  "lag_ns", json_u64(peer[i].lag_ns), "messages",
				  json_u64(peer[i].messages), "refused", json_u64(peer[i].refused),
				  "version", peer[i].version, "addresses",
				  addresses_to_json(nodes->addresses, peer[i].node), "differs",
				  peer[i].alive ? differences_to_json(nodes, peer[i].node)
						: json_null()));
	free(peer);
	return list;
}

static json_t *bus_to_json(const struct bus_stats *stats)
{
	json_t *refused = json_object();

	for (u32 i = BUS_GOOD + 1; i < BUS_VERDICT_COUNT; i++)
		json_object_set_new(refused, bus_verdict_name(i), json_u64(stats->refused[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:s, s:b, s:b}", "sent", json_u64(stats->sent),
			 "received", json_u64(stats->received), "dropped", json_u64(stats->dropped),
			 "skipped", json_u64(stats->skipped), "refused", refused, "error",
			 stats->error, "twice", stats->twice, "strangers", stats->strangers);
}

static json_t *quota_to_json(const struct nodes *nodes)
{
	struct quotas_stats stats;

	if (!nodes->quotas)
		return json_null();
	quotas_stats(nodes->quotas, &stats);
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "entries",
			 json_u64(stats.entries), "room", json_u64(stats.room), "full",
			 json_u64(stats.full), "leases", json_u64(stats.leases), "credit",
			 json_u64(stats.credit), "unflushed", json_u64(stats.unflushed), "lost",
			 json_u64(stats.lost), "restored", json_u64(stats.restored));
}

static bool is_cluster_scope(const struct rule *rule)
{
	for (u32 i = 0; i < rule->limit_count; i++)
		if (rule->limit[i].terms.cluster)
			return true;
	return false;
}

static json_t *rules_to_json(const struct nodes *nodes)
{
	static const char *const consistency[] = { "strict", "lease", "write_back" };
	static const char *const failure[] = { "local", "open", "closed", "error" };
	json_t *list = json_array();

	for (u32 i = 0; nodes->quotas && i < nodes->running->requests.rules->rule_count; i++) {
		const struct rule *rule = nodes->running->requests.rules->rule[i];
		char name[RULE_TEXT];

		if (!is_cluster_scope(rule))
			continue;
		snprintf(name, sizeof(name), "%s/%s", rule->domain, rule->path);
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:f}", "rule", name, "consistency",
						consistency[rule->consistency], "on_store_failure",
						failure[rule->on_store_failure], "overshoot",
						quotas_overshoot(nodes->quotas, rule->metric)));
	}
	return list;
}

static json_t *replication_to_json(const struct nodes *nodes)
{
	static const char *const name[REPLICATION_KIND_COUNT] = { "blocks", "bans", "pushdowns" };
	json_t *all = json_object();

	for (u32 kind = 0; kind < REPLICATION_KIND_COUNT; kind++) {
		u32 ours, theirs;

		replication_count(nodes, kind, &ours, &theirs);
		json_object_set_new(
			all, name[kind],
			json_pack("{s:i, s:i}", "own", (int)ours, "received", (int)theirs));
	}
	return all;
}

/* ------------------------------------------------------------------ commands */

json_t *nodes_to_json(struct nodes *nodes)
{
	const struct cluster_def *def = nodes->cluster ? cluster_def(nodes->cluster) : NULL;
	struct redis_stats stats;

	if (!def)
		return json_null();
	cluster_redis_stats(nodes->cluster, &stats);
	return json_pack("{s:s, s:i, s:b, s:o}", "node", def->node, "nodes",
			 (int)cluster_size(nodes->cluster), "store_up",
			 stats.servers && stats.up == stats.servers, "peers", peers_to_json(nodes));
}

int nodes_show(struct nodes *nodes, json_t **ret, struct sl_err *err)
{
	struct bus_stats bus;

	if (!nodes->cluster)
		return sl_err_set(err, ENOENT,
				  "no cluster: the configuration that sluiced was started "
				  "with has no section 'cluster'");
	cluster_bus_stats(nodes->cluster, &bus);
	*ret = json_pack(
		"{s:s, s:i, s:o, s:b, s:I, s:o, s:o, s:o, s:o, s:o}", "node",
		cluster_def(nodes->cluster)->node, "nodes", (int)cluster_size(nodes->cluster),
		"sync_ns", json_u64(cluster_def(nodes->cluster)->sync_ns), "clock_known",
		bus.clock_known, "clock_ahead_ns", (json_int_t)bus.ahead_ns, "store",
		store_to_json(nodes), "peers", peers_to_json(nodes), "bus", bus_to_json(&bus),
		"quota", quota_to_json(nodes), "replicated", replication_to_json(nodes));
	json_object_set_new(*ret, "rules", rules_to_json(nodes));
	json_object_set_new(*ret, "packets", consumption_show(nodes));
	return 0;
}

/* ------------------------------------------------------------------ metrics */

static void write_store(struct nodes *nodes, struct exposition *e)
{
	double bound[HISTOGRAM_BUCKETS - 1];
	struct redis_stats stats;

	cluster_redis_stats(nodes->cluster, &stats);
	metric_begin(e, "sluice_store_up", METRIC_GAUGE,
		     "1 if every server of the cluster store is reachable.");
	metric_u64(e, stats.servers && stats.up == stats.servers, NULL);
	metric_begin(
		e, "sluice_store_breaker_open", METRIC_GAUGE,
		"Servers of the cluster store with an open breaker: they get no commands for now.");
	metric_u64(e, stats.breakers_open, NULL);
	metric_begin(
		e, "sluice_store_errors", METRIC_COUNTER,
		"Commands that the cluster store refused, that timed out, or that could not be sent.");
	metric_u64(e, stats.errors + stats.late + stats.refused, NULL);
	for (u32 b = 0; b + 1 < HISTOGRAM_BUCKETS; b++)
		bound[b] = (double)histogram_bound_ns(b) / 1e9;
	metric_begin(e, "sluice_store_duration_seconds", METRIC_HISTOGRAM,
		     "Time from a command to the reply of the cluster store.");
	metric_histogram(e, stats.bucket, bound, HISTOGRAM_BUCKETS, (double)stats.sum_ns / 1e9);
}

static void write_overshoot(const struct nodes *nodes, struct exposition *e)
{
	metric_begin(
		e, "sluice_overshoot_ratio", METRIC_GAUGE,
		"Estimate of how far all nodes together exceeded a limit, at most, in the last "
		"hour: 0.1 is a tenth of the limit.");
	for (u32 i = 0; i < nodes->running->requests.rules->rule_count; i++) {
		const struct rule *rule = nodes->running->requests.rules->rule[i];
		char name[RULE_TEXT];

		if (!is_cluster_scope(rule))
			continue;
		snprintf(name, sizeof(name), "%s/%s", rule->domain, rule->path);
		metric_double(e, quotas_overshoot(nodes->quotas, rule->metric), "rule", name, NULL);
	}
}

static void write_forgotten(const struct nodes *nodes, struct exposition *e)
{
	struct quotas_stats stats;

	quotas_stats(nodes->quotas, &stats);
	metric_begin(e, "sluice_store_forgotten_requests", METRIC_COUNTER,
		     "Requests that this node had charged in the cluster store and that the store "
		     "lost: a failover, a restart without its data.");
	metric_u64(e, stats.lost, NULL);
	metric_begin(e, "sluice_store_restored_requests", METRIC_COUNTER,
		     "Lost requests that were charged in the cluster store again.");
	metric_u64(e, stats.restored, NULL);
}

static void write_peers(struct nodes *nodes, struct exposition *e)
{
	struct cluster_peer *peer = NULL;
	u64 now_ns = clock_mono_ns();
	size_t count = 0;

	if (cluster_peers(nodes->cluster, &peer, &count) < 0)
		return;
	metric_begin(e, "sluice_peer_lag_seconds", METRIC_GAUGE,
		     "Age of the newest message of a node.");
	/* A node that left the cluster is not late. */
	for (size_t i = 0; i < count; i++)
		if (!peer[i].left)
			metric_double(e,
				      now_ns > peer[i].received_ns
					      ? (double)(now_ns - peer[i].received_ns) / 1e9
					      : 0,
				      "peer", peer[i].node, NULL);
	metric_begin(e, "sluice_peer_differs", METRIC_GAUGE,
		     "1 while limits or rules of a node differ from those of this node.");
	for (size_t i = 0; i < count; i++) {
		json_t *differs = differences_to_json(nodes, peer[i].node);

		if (peer[i].alive)
			metric_u64(e, json_is_object(differs), "peer", peer[i].node, NULL);
		json_decref(differs);
	}
	free(peer);
}

void nodes_metrics(struct nodes *nodes, struct exposition *e)
{
	if (!nodes->cluster)
		return;
	write_store(nodes, e);
	if (nodes->quotas)
		write_forgotten(nodes, e);
	if (nodes->quotas && nodes->running->requests.rules)
		write_overshoot(nodes, e);
	write_peers(nodes, e);
}
