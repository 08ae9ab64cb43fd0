// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_set.c - sluicectl set add, del, replace, list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "lib/addr.h"

static void print_set(const json_t *result)
{
	char what[256];

	snprintf(what, sizeof(what), "set %s: %lld prefixes", text_of(result, "name"),
		 number_of(result, "count"));
	print_change(what, result);
}

static int ask(const struct cli *cli, const char *command, json_t *prefixes)
{
	json_t *args = json_pack("{s:s, s:o}", "name", cli->arg[0], "prefixes", prefixes);

	if (!args)
		return cli_refuse(cli, EXIT_USAGE, "an argument is not UTF-8");
	if (cli->given & CLI_FORCE)
		json_object_set_new(args, "force", json_true());
	return client_show(cli, command, args, print_set);
}

/* The command line's prefixes; one that is not UTF-8 becomes null, which the daemon refuses. */
static json_t *given(const struct cli *cli)
{
	json_t *prefixes = json_array();

	for (int i = 1; i < cli->arg_count; i++) {
		json_t *text = json_string(cli->arg[i]);

		json_array_append_new(prefixes, text ? text : json_null());
	}
	return prefixes;
}

int cmd_set_add(const struct cli *cli)
{
	return ask(cli, "set add", given(cli));
}

int cmd_set_del(const struct cli *cli)
{
	return ask(cli, "set del", given(cli));
}

/* ------------------------------------------------------------------ replace */

/* One line: a prefix, a comment or nothing. Parsed here so that an error has the file's line. */
static int add_line(const struct cli *cli, char *line, int number, json_t *prefixes)
{
	char *start = line + strspn(line, " \t"), *end;
	struct sl_prefix prefix;
	const char *reason;

	*strchrnul(start, '#') = '\0';
	for (end = start + strlen(start); end > start && strchr(" \t\r", end[-1]); end--)
		end[-1] = '\0';
	if (!*start)
		return EXIT_DONE;
	if (sl_prefix_parse(start, &prefix, &reason) < 0)
		return cli_refuse(cli, EXIT_REFUSED, "%s:%d:%d: found \"%.48s\": %s", cli->arg[1],
				  number, (int)(start - line) + 1, start, reason);
	json_array_append_new(prefixes, json_string(start));
	return EXIT_DONE;
}

int cmd_set_replace(const struct cli *cli)
{
	char *text, *path, *line, *end;
	json_t *prefixes;
	int number = 1, code = cli_read_file(cli, cli->arg[1], &text, &path);

	if (code != EXIT_DONE)
		return code;
	prefixes = json_array();
	for (line = text; code == EXIT_DONE && line; line = end ? end + 1 : NULL, number++) {
		end = strchr(line, '\n');
		if (end)
			*end = '\0';
		code = add_line(cli, line, number, prefixes);
	}
	free(text);
	free(path);
	if (code == EXIT_DONE)
		return ask(cli, "set replace", prefixes);
	json_decref(prefixes);
	return code;
}

/* ------------------------------------------------------------------ list */

static void print_prefixes(const json_t *result)
{
	const json_t *prefix;
	size_t i;

	json_array_foreach(json_object_get(result, "prefixes"), i, prefix)
		printf("%s\n", json_string_value(prefix));
}

static void print_sets(const json_t *result)
{
	struct table *table = table_new("SET|>PREFIXES|FROM|USED BY");
	const json_t *set, *user;
	size_t i, k;

	json_array_foreach(json_object_get(result, "sets"), i, set) {
		const char *file = text_of(set, "file");
		char users[256] = "-";
		size_t used = 0;

		json_array_foreach(json_object_get(set, "used_by"), k, user)
			if (used < sizeof(users))
				used += (size_t)snprintf(users + used, sizeof(users) - used, "%s%s",
							 k ? ", " : "", json_string_value(user));
		table_cell(table, "%s", text_of(set, "name"));
		table_cell(table, "%lld", number_of(set, "count"));
		table_cell(table, "%s", json_is_true(json_object_get(set, "live")) ? "live" :
					file[0] ? file : "file");
		table_cell(table, "%s", users);
	}
	table_print(table, "no sets");
}

int cmd_set_list(const struct cli *cli)
{
	if (!cli->arg_count)
		return client_show(cli, "set list", NULL, print_sets);
	return client_show(cli, "set list", json_pack("{s:s}", "name", cli->arg[0]),
			   print_prefixes);
}
