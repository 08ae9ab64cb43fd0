// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_override.c - sluicectl override set, del, list. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/table.h"

static void print_set(const json_t *result)
{
	char what[256];

	snprintf(what, sizeof(what), "override of %s set in limit %s", text_of(result, "src"),
		 text_of(result, "limit"));
	print_change(what, result);
}

int cmd_override_set(const struct cli *cli)
{
	json_t *pairs = json_array();

	for (int i = 2; i < cli->arg_count; i++) {
		if (!strchr(cli->arg[i], '=')) {
			json_decref(pairs);
			return cli_refuse(cli, EXIT_USAGE, "'%s' is not KEY=VALUE, as in "
					  "rate='5000 packets/s' burst=9000", cli->arg[i]);
		}
		if (json_array_append_new(pairs, json_string(cli->arg[i])) < 0) {
			json_decref(pairs);
			return cli_refuse(cli, EXIT_USAGE, "argument %d is not UTF-8", i + 1);
		}
	}
	return client_show(cli, "override set", json_pack("{s:s, s:s, s:o}", "name", cli->arg[0],
							  "src", cli->arg[1], "pairs", pairs),
			   print_set);
}

static void print_deleted(const json_t *result)
{
	char what[256];

	snprintf(what, sizeof(what), "override of %s removed from limit %s", text_of(result, "src"),
		 text_of(result, "limit"));
	print_change(what, result);
}

int cmd_override_del(const struct cli *cli)
{
	return client_show(cli, "override del", json_pack("{s:s, s:s}", "name", cli->arg[0], "src",
							  cli->arg[1]), print_deleted);
}

static void print_list(const json_t *result)
{
	struct table *table = table_new("SOURCE|RATE|>BURST|FROM");
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(result, "overrides"), i, one) {
		const char *file = text_of(one, "file");

		table_cell(table, "%s", text_of(one, "src"));
		table_cell(table, "%s", text_of(one, "rate"));
		table_cell(table, "%s", text_of(one, "burst"));
		if (json_is_true(json_object_get(one, "derived")))
			table_cell(table, "source_budget");
		else if (json_is_true(json_object_get(one, "live")))
			table_cell(table, "live");
		else
			table_cell(table, "%s%sline %lld", file, file[0] ? ", " : "",
				   number_of(one, "line"));
	}
	table_print(table, "no overrides");
}

int cmd_override_list(const struct cli *cli)
{
	return client_show(cli, "override list", json_pack("{s:s}", "name", cli->arg[0]),
			   print_list);
}
