// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_stats.c - sluicectl stats [LIMIT]. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/table.h"

static const char *const verdicts[] = { "pass", "drop", "tag", "shadow", "soft" };

static unsigned long long count_of(const json_t *object, const char *key)
{
	return (unsigned long long)number_of(object, key);
}

static void print_limits(const json_t *limits)
{
	struct table *table = table_new("LIMIT|MODE|RATE|>SOURCES|>OVER|>PASSED/S|>REFUSED/S|"
					">PASSED|>SOFT|>DROPPED|>TAGGED|>SHADOW");
	const json_t *limit;
	char text[64];
	size_t i;

	json_array_foreach(limits, i, limit) {
		const json_t *packets = json_object_get(limit, "packets");
		const json_t *rate = json_object_get(limit, "per_second");
		const json_t *sources = json_object_get(limit, "sources");

		table_cell(table, "%s", text_of(limit, "name"));
		table_cell(table, "%s", text_of(limit, "mode"));
		table_cell(table, "%s", text_of(limit, "rate"));
		table_cell(table, "%s", thousands(count_of(sources, "live"), text, sizeof(text)));
		table_cell(table, "%s", thousands(count_of(sources, "over"), text, sizeof(text)));
		table_cell(table, "%s", short_rate(real_of(rate, "pass") + real_of(rate, "soft"), text,
						   sizeof(text)));
		table_cell(table, "%s", short_rate(real_of(rate, "drop") + real_of(rate, "tag") +
						   real_of(rate, "shadow"), text, sizeof(text)));
		table_cell(table, "%s", thousands(count_of(packets, "pass"), text, sizeof(text)));
		table_cell(table, "%s", thousands(count_of(packets, "soft"), text, sizeof(text)));
		table_cell(table, "%s", thousands(count_of(packets, "drop"), text, sizeof(text)));
		table_cell(table, "%s", thousands(count_of(packets, "tag"), text, sizeof(text)));
		table_cell(table, "%s", thousands(count_of(packets, "shadow"), text, sizeof(text)));
	}
	table_print(table, "no limits");
}

static void print_reasons(const json_t *interfaces)
{
	struct table *table = table_new("INTERFACE|VERDICT|REASON|>PACKETS");
	const json_t *interface, *reason;
	char text[64];
	size_t i, k;

	json_array_foreach(interfaces, i, interface) {
		json_array_foreach(json_object_get(interface, "reasons"), k, reason) {
			table_cell(table, "%s", text_of(interface, "name"));
			table_cell(table, "%s", text_of(reason, "verdict"));
			table_cell(table, "%s", text_of(reason, "reason"));
			table_cell(table, "%s", thousands(count_of(reason, "packets"), text,
							  sizeof(text)));
		}
	}
	table_print(table, "no packets yet");
}

static void print_errors(const json_t *errors)
{
	const json_t *error;
	char text[64];
	size_t i;

	json_array_foreach(errors, i, error)
		printf("errors: %s of map %s failed %s times\n", text_of(error, "op"),
		       text_of(error, "map"),
		       thousands(count_of(error, "count"), text, sizeof(text)));
}

static void print_stats(const json_t *result)
{
	print_limits(json_object_get(result, "limits"));
	printf("\n");
	print_reasons(json_object_get(result, "interfaces"));
	print_errors(json_object_get(result, "map_errors"));
}

static void print_one(const json_t *result)
{
	const json_t *limit = json_array_get(json_object_get(result, "limits"), 0);
	const json_t *sources = json_object_get(limit, "sources");
	struct table *table = table_new("VERDICT|>PACKETS|>PACKETS/S|>BYTES");
	char text[64];

	printf("%s: %s, %s\n", text_of(limit, "name"), text_of(limit, "rate"),
	       text_of(limit, "mode"));
	printf("sources    %s in the table", thousands(count_of(sources, "live"), text, sizeof(text)));
	printf(", %s of them over the limit\n", thousands(count_of(sources, "over"), text, sizeof(text)));
	if (number_of(sources, "shadow"))
		printf("shadow     about %s sources would have been refused\n",
		       thousands(count_of(sources, "shadow"), text, sizeof(text)));
	printf("table      full for %s packets",
	       thousands(count_of(limit, "full"), text, sizeof(text)));
	printf("; %s sources evicted", thousands(count_of(limit, "evicted"), text, sizeof(text)));
	printf(", %s units evicted",
	       thousands(count_of(limit, "evicted_units"), text, sizeof(text)));
	printf("; %s offenders recorded\n\n", thousands(count_of(limit, "recorded"), text, sizeof(text)));
	for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
		table_cell(table, "%s", verdicts[i]);
		table_cell(table, "%s", thousands(count_of(json_object_get(limit, "packets"),
							   verdicts[i]), text, sizeof(text)));
		table_cell(table, "%s", short_rate(real_of(json_object_get(limit, "per_second"),
							   verdicts[i]), text, sizeof(text)));
		table_cell(table, "%s", thousands(count_of(json_object_get(limit, "bytes"),
							   verdicts[i]), text, sizeof(text)));
	}
	table_print(table, "");
}

int cmd_stats(const struct cli *cli)
{
	json_t *args = cli->arg_count ? json_pack("{s:s}", "limit", cli->arg[0]) : NULL;

	return client_show(cli, "stats", args, cli->arg_count ? print_one : print_stats);
}
