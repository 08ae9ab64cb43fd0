// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_rule.c - sluicectl rule list, show, set; user set, unset, block, exempt. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/table.h"

static void add_limits(struct table *table, const json_t *rule)
{
	const json_t *limit;
	char text[400] = "";
	size_t used = 0, i;

	json_array_foreach(json_object_get(rule, "limits"), i, limit) {
		if (used >= sizeof(text))
			break;
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s (%s)",
					 i ? ", " : "", text_of(limit, "rate"),
					 text_of(limit, "algorithm"));
	}
	table_cell(table, "%s", used ? text : "unlimited");
}

static void print_list(const json_t *result)
{
	struct table *table = table_new("RULE|LIMITS|>OVERRIDES|FILE|");
	const json_t *rule, *rules = json_object_get(result, "rules");
	size_t i;

	json_array_foreach(rules, i, rule) {
		bool live = json_is_true(json_object_get(rule, "live"));
		bool shadow = json_is_true(json_object_get(rule, "shadow"));

		table_cell(table, "%s", text_of(rule, "rule"));
		add_limits(table, rule);
		table_cell(table, "%lld", number_of(rule, "overrides"));
		table_cell(table, "%s:%lld", text_of(rule, "file"), number_of(rule, "line"));
		table_cell(table, "%s%s%s", shadow ? "shadow" : "", shadow && live ? ", " : "",
			   live ? "changed live" : "");
	}
	table_print(table, "no rules");
	if ((long long)i < number_of(result, "count"))
		printf("and %lld more\n", number_of(result, "count") - (long long)i);
}

int cmd_rule_list(const struct cli *cli)
{
	return client_show(cli, "rule list", NULL, print_list);
}

static void print_yaml(const json_t *result)
{
	printf("# %s, %s:%lld%s\n", text_of(result, "rule"), text_of(result, "file"),
	       number_of(result, "line"),
	       json_is_true(json_object_get(result, "live")) ? ", changed live" : "");
	fputs(text_of(result, "yaml"), stdout);
}

int cmd_rule_show(const struct cli *cli)
{
	return client_show(cli, "rule show", json_pack("{s:s%}", "name", cli->arg[0],
						       strlen(cli->arg[0])), print_yaml);
}

/* The arguments from `first` on, as JSON; NULL with an exit code in *ret_code. */
static json_t *pairs_of(const struct cli *cli, int first, int *ret_code)
{
	json_t *pairs = json_array();

	for (int i = first; i < cli->arg_count; i++) {
		if (!strchr(cli->arg[i], '=')) {
			*ret_code = cli_refuse(cli, EXIT_USAGE, "'%s' is not KEY=VALUE, as in "
					       "limits='10 requests/m,500 requests/h'", cli->arg[i]);
			json_decref(pairs);
			return NULL;
		}
		if (json_array_append_new(pairs, json_string(cli->arg[i])) < 0) {
			*ret_code = cli_refuse(cli, EXIT_USAGE, "argument %d is not UTF-8", i + 1);
			json_decref(pairs);
			return NULL;
		}
	}
	return pairs;
}

static void print_set(const json_t *result)
{
	print_change("rule changed", result);
}

int cmd_rule_set(const struct cli *cli)
{
	int code = EXIT_USAGE;
	json_t *pairs = pairs_of(cli, 1, &code);

	if (!pairs)
		return code;
	return client_show(cli, "rule set", json_pack("{s:s, s:o}", "name", cli->arg[0], "pairs",
						      pairs), print_set);
}

/* ---- user ---- */

static void print_user(const json_t *result, const char *words)
{
	const char *until = text_of(result, "until");
	char what[512];

	snprintf(what, sizeof(what), "%.150s %s %.150s%s%s", text_of(result, "value"), words,
		 text_of(result, "rule"), until[0] ? " until " : "", until);
	print_change(what, result);
}

static void print_user_set(const json_t *result)
{
	print_user(result, "has its own limits in");
}

static void print_user_unset(const json_t *result)
{
	print_user(result, "has the limits of");
}

static void print_user_block(const json_t *result)
{
	print_user(result, "is refused by");
}

static void print_user_exempt(const json_t *result)
{
	print_user(result, "is not limited by");
}

static int change_user(const struct cli *cli, const char *command, json_t *pairs,
		       void (*print)(const json_t *result))
{
	json_t *args = json_pack("{s:s, s:s}", "name", cli->arg[0], "value", cli->arg[1]);

	if (!args) {
		json_decref(pairs);
		return cli_refuse(cli, EXIT_USAGE, "an argument is not UTF-8");
	}
	if (pairs)
		json_object_set_new(args, "pairs", pairs);
	if (cli->for_text)
		json_object_set_new(args, "for", json_string(cli->for_text));
	return client_show(cli, command, args, print);
}

int cmd_user_set(const struct cli *cli)
{
	int code = EXIT_USAGE;
	json_t *pairs = pairs_of(cli, 2, &code);

	return pairs ? change_user(cli, "user set", pairs, print_user_set) : code;
}

int cmd_user_unset(const struct cli *cli)
{
	return change_user(cli, "user unset", NULL, print_user_unset);
}

int cmd_user_block(const struct cli *cli)
{
	return change_user(cli, "user block", NULL, print_user_block);
}

int cmd_user_exempt(const struct cli *cli)
{
	return change_user(cli, "user exempt", NULL, print_user_exempt);
}
