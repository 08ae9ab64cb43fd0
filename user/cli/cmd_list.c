// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_list.c - sluicectl block and exempt: add, del, list. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "lib/units.h"

static void print_added(const json_t *result)
{
	const char *until = text_of(result, "until");
	char what[256];

	snprintf(what, sizeof(what), "%s %s%s", text_of(result, "prefix"),
		 until[0] ? "until " : "for good", until);
	print_change(what, result);
}

static int add(const struct cli *cli, const char *command)
{
	json_t *args = json_pack("{s:s, s:b}", "prefix", cli->arg[0], "force",
				 (cli->given & CLI_FORCE) != 0);

	if (cli->for_text)
		json_object_set_new(args, "for", json_string(cli->for_text));
	if (cli->reason && json_object_set_new(args, "reason", json_string(cli->reason)) < 0) {
		json_decref(args);
		return cli_refuse(cli, EXIT_USAGE, "the reason is not UTF-8");
	}
	return client_show(cli, command, args, print_added);
}

static void print_deleted(const json_t *result)
{
	char what[256];

	snprintf(what, sizeof(what), "%s removed", text_of(result, "prefix"));
	print_change(what, result);
}

static int del(const struct cli *cli, const char *command)
{
	return client_show(cli, command, json_pack("{s:s}", "prefix", cli->arg[0]), print_deleted);
}

static void print_list(const json_t *result)
{
	struct table *table = table_new("PREFIX|UNTIL|LEFT|FROM|REASON");
	const json_t *entry;
	char text[64], node[96];
	size_t i;

	json_array_foreach(json_object_get(result, "entries"), i, entry) {
		const char *until = text_of(entry, "until");
		u64 left = (u64)number_of(entry, "left_ns") / SL_NS_PER_SEC * SL_NS_PER_SEC;

		table_cell(table, "%s", text_of(entry, "prefix"));
		table_cell(table, "%s", until[0] ? until : "for good");
		table_cell(table, "%s", until[0] ? duration_format(left, text, sizeof(text)) : "-");
		snprintf(node, sizeof(node), "node %s", text_of(entry, "node"));
		table_cell(table, "%s", text_of(entry, "node")[0] ? node :
			   json_is_true(json_object_get(entry, "live")) ? "live" : "file");
		table_cell(table, "%s", text_of(entry, "reason"));
	}
	table_print(table, "none");
}

int cmd_block_add(const struct cli *cli)
{
	return add(cli, "block add");
}

int cmd_block_del(const struct cli *cli)
{
	return del(cli, "block del");
}

int cmd_block_list(const struct cli *cli)
{
	return client_show(cli, "block list", NULL, print_list);
}

int cmd_exempt_add(const struct cli *cli)
{
	return add(cli, "exempt add");
}

int cmd_exempt_del(const struct cli *cli)
{
	return del(cli, "exempt del");
}

int cmd_exempt_list(const struct cli *cli)
{
	return client_show(cli, "exempt list", NULL, print_list);
}
