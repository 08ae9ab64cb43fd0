// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_config.c - sluicectl reload, save, diff. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/table.h"

static void print_reloaded(const json_t *result)
{
	char what[512];

	snprintf(what, sizeof(what), "reloaded %s: %lld limits, generation %lld",
		 text_of(result, "file"), number_of(result, "limits"),
		 number_of(result, "generation"));
	print_change(what, result);
}

int cmd_reload(const struct cli *cli)
{
	return client_show(cli, "reload", NULL, print_reloaded);
}

static void print_saved(const json_t *result)
{
	printf("saved %lld live changes to %s (the file before is %s.bak)\n",
	       number_of(result, "saved"), text_of(result, "file"), text_of(result, "file"));
}

int cmd_save(const struct cli *cli)
{
	return client_show(cli, "save", NULL, print_saved);
}

/* What an operation does it to, and how. */
static void add_details(struct table *table, const json_t *op)
{
	char text[512];
	const json_t *pair;
	size_t used, i;

	used = (size_t)snprintf(text, sizeof(text), "%s%s%s%s%s", text_of(op, "name"),
				text_of(op, "prefix"), text_of(op, "interface"),
				text_of(op, "reason")[0] ? " " : "", text_of(op, "reason"));
	json_array_foreach(json_object_get(op, "pairs"), i, pair)
		if (used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, " %s",
						 json_string_value(pair));
	table_cell(table, "%s", text);
}

int cmd_diff(const struct cli *cli)
{
	const json_t *op, *changes;
	struct table *table;
	json_t *result;
	size_t i;
	int code;

	if (cli->arg_count)
		return cli_refuse(cli, EXIT_REFUSED, "diff FILE is not supported by this version; "
				  "diff alone shows live changes");
	code = client_ask(cli, "diff", NULL, &result);
	if (code != EXIT_DONE)
		return code;
	changes = json_object_get(result, "changes");
	if (cli->json) {
		cli_print_json(result);
	} else {
		table = table_new("WHEN|UID|CHANGE|");
		json_array_foreach(changes, i, op) {
			table_cell(table, "%s", text_of(op, "when"));
			table_cell(table, "%lld", number_of(op, "uid"));
			table_cell(table, "%s", text_of(op, "op"));
			add_details(table, op);
		}
		table_print(table, "no live changes: what runs is what the file says");
	}
	code = json_array_size(changes) ? EXIT_DIFFERS : EXIT_DONE;
	json_decref(result);
	return code;
}
