// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_cluster.c - sluicectl cluster show. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "lib/units.h"

#define HOUR_MS 3600e3

static bool is_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

static void print_store(const json_t *store)
{
	struct table *table = table_new("SERVER|STATE");
	const json_t *server;
	size_t i;

	json_array_foreach(json_object_get(store, "servers"), i, server) {
		const char *error = text_of(server, "error");

		table_cell(table, "%s%s", text_of(server, "server"),
			   is_true(server, "sentinel") ? " (sentinel)" : "");
		table_cell(table, "%s%s%s", is_true(server, "up") ? "up" :
			   is_true(server, "breaker_open") ? "down, retried at intervals" : "down",
			   error[0] ? ": " : "", error);
	}
	table_print(table, "no server of the cluster store is known yet");
}

static void print_peers(const json_t *peers)
{
	struct table *table = table_new("NODE|STATE|>LAG MS|>SILENT S|>MESSAGES|>REFUSED|VERSION");
	const json_t *peer;
	char text[64];
	size_t i;

	json_array_foreach(peers, i, peer) {
		table_cell(table, "%s", text_of(peer, "node"));
		table_cell(table, "%s", is_true(peer, "alive") ? "alive" :
			   is_true(peer, "left") ? "left" : "gone");
		table_cell(table, "%.1f", (double)number_of(peer, "lag_ns") / 1e6);
		table_cell(table, "%.1f", (double)number_of(peer, "silent_ns") / 1e9);
		table_cell(table, "%s", thousands((unsigned long long)number_of(peer, "messages"),
						  text, sizeof(text)));
		table_cell(table, "%lld", number_of(peer, "refused"));
		table_cell(table, "%s", text_of(peer, "version"));
	}
	table_print(table, "no message of another node was received");
}

static void print_bus(const json_t *bus)
{
	const json_t *refused = json_object_get(bus, "refused"), *count;
	const char *why;

	printf("messages      %lld sent, %lld received, %lld not sent", number_of(bus, "sent"),
	       number_of(bus, "received"), number_of(bus, "dropped"));
	json_object_foreach((json_t *)refused, why, count)
		if (json_integer_value(count))
			printf(", %lld refused (%s)", (long long)json_integer_value(count), why);
	printf("\n");
	if (text_of(bus, "error")[0])
		printf("ERROR         %s\n", text_of(bus, "error"));
	if (is_true(bus, "twice"))
		printf("ERROR         another daemon uses the name of this node\n");
	if (is_true(bus, "strangers"))
		printf("ERROR         messages are signed with a secret other than cluster.secret_file's\n");
}

static void print_rules(const json_t *rules)
{
	struct table *table = table_new("RULE|CONSISTENCY|STORE UNAVAILABLE|>OVERSHOOT");
	const json_t *rule;
	size_t i;

	json_array_foreach(rules, i, rule) {
		table_cell(table, "%s", text_of(rule, "rule"));
		table_cell(table, "%s", text_of(rule, "consistency"));
		table_cell(table, "%s", text_of(rule, "on_store_failure"));
		table_cell(table, "%.2f%%", 100 * real_of(rule, "overshoot"));
	}
	table_print(table, "no rule has limits of scope cluster");
}

static void print_cluster(const json_t *result)
{
	const json_t *quotas = json_object_get(result, "quota");
	const json_t *replicated = json_object_get(result, "replicated"), *kind;
	double ahead_ms = (double)number_of(result, "clock_ahead_ns") / 1e6;
	const char *name;

	printf("node          %s, one of %lld\n", text_of(result, "node"), number_of(result, "nodes"));
	if (is_true(result, "clock_known"))
		printf("store clock   %+.1f ms from this machine's%s\n", ahead_ms,
		       ahead_ms < -HOUR_MS ? ": every message is refused as too old" : "");
	print_bus(json_object_get(result, "bus"));
	json_object_foreach((json_t *)replicated, name, kind)
		printf("%-13s %lld of its own, %lld of other nodes\n", name, number_of(kind, "own"),
		       number_of(kind, "received"));
	if (json_is_object(quotas))
		printf("quota         %lld entries of %lld; leases %lld with %lld requests; %lld "
		       "unflushed; %lld lost by the store, %lld restored\n", number_of(quotas, "entries"),
		       number_of(quotas, "room"), number_of(quotas, "leases"),
		       number_of(quotas, "credit"), number_of(quotas, "unflushed"),
		       number_of(quotas, "lost"), number_of(quotas, "restored"));
	printf("\n");
	print_store(json_object_get(result, "store"));
	printf("\n");
	print_peers(json_object_get(result, "peers"));
	if (json_is_object(quotas)) {
		printf("\n");
		print_rules(json_object_get(result, "rules"));
	}
}

int cmd_cluster_show(const struct cli *cli)
{
	return client_show(cli, "cluster show", NULL, print_cluster);
}
